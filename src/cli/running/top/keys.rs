//! Keys: what is marked, how it is sorted, and what is asked for. Pure.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::by_hand::{HandAct, ProposedChange, WEIGHT_MAX};
use super::listing::{ListPlace, ListWanted};

/// The longest filter.
const FILTER_MAX: usize = 60;

/// What the keys are for now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum PageMode {
    /// To move and to choose.
    #[default]
    Browse,
    /// To read what they are for.
    Help,
    /// To type a filter.
    Filter,
    /// To type a weight for this backend.
    Weight { target: String, backend: String, typed: String },
    /// To say whether this is to be done.
    Confirm(ProposedChange),
}

/// What a key asks of others than the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PageWish {
    /// The end.
    End,
    /// All of the screen anew.
    Redraw,
    /// This change.
    Change(ProposedChange),
}

/// What the person at the terminal has chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct TopPage {
    pub(super) wanted: ListWanted,
    pub(super) mode: PageMode,
    pub(super) marked: Option<ListPlace>,
    /// Where it was when it was last seen.
    at: usize,
    /// The first line that is shown.
    pub(super) first: usize,
    /// What is marked is shown in full; lines of that which are above the screen.
    pub(super) opened: Option<usize>,
    pub(super) is_held: bool,
    /// What has come of the latest wish.
    pub(super) said: Option<String>,
    /// Lines that have room.
    room: usize,
}

impl TopPage {
    /// Follows what is marked through a list that is another one now, on a screen with room for so many lines.
    pub(super) fn settle(&mut self, places: &[ListPlace], room: usize) {
        self.room = room.max(1);
        let last = places.len().saturating_sub(1);
        let found = self.marked.as_ref().and_then(|marked| places.iter().position(|place| place == marked));
        if found.is_none() && self.opened.is_some() && self.marked.is_some() {
            // Whoever looks at one thing is not shown another one all of a sudden.
            return;
        }
        self.at = found.unwrap_or(self.at.min(last));
        self.marked = places.get(self.at).cloned();
        self.first = self.first.min(places.len().saturating_sub(self.room)).min(self.at);
        self.first = self.first.max((self.at + 1).saturating_sub(self.room));
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: KeyEvent, places: &[ListPlace]) -> Option<PageWish> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'C') => Some(PageWish::End),
                KeyCode::Char('l' | 'L') => Some(PageWish::Redraw),
                _ => None,
            };
        }
        match &mut self.mode {
            PageMode::Browse => self.browse(key.code, places),
            PageMode::Help => {
                self.mode = PageMode::Browse;
                None
            }
            PageMode::Filter => {
                self.filter(key.code);
                None
            }
            PageMode::Weight { .. } => {
                self.weigh(key.code);
                None
            }
            PageMode::Confirm(change) => match key.code {
                KeyCode::Char('y' | 'Y') => {
                    let change = change.clone();
                    self.mode = PageMode::Browse;
                    self.said = Some("asked for…".to_owned());
                    Some(PageWish::Change(change))
                }
                KeyCode::Char('n' | 'N') | KeyCode::Esc => {
                    self.mode = PageMode::Browse;
                    self.said = Some("nothing was done".to_owned());
                    None
                }
                // Neither yes nor no.
                _ => None,
            },
        }
    }

    /// Takes a text that was pasted: it is no row of keys.
    pub(super) fn paste(&mut self, text: &str) {
        if self.mode == PageMode::Filter {
            text.chars().for_each(|sign| self.filter(KeyCode::Char(sign)));
        }
    }

    fn browse(&mut self, code: KeyCode, places: &[ListPlace]) -> Option<PageWish> {
        self.said = None;
        let page = self.room.saturating_sub(1).max(1);
        match code {
            KeyCode::Char('q') => return Some(PageWish::End),
            KeyCode::Up | KeyCode::Char('k') => self.go(places, |at| at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.go(places, |at| at + 1),
            KeyCode::PageUp => self.go(places, |at| at.saturating_sub(page)),
            KeyCode::PageDown => self.go(places, |at| at + page),
            KeyCode::Home => self.go(places, |_| 0),
            KeyCode::End => self.go(places, |_| usize::MAX),
            KeyCode::Enter => self.opened = self.marked.as_ref().map(|_| self.opened.unwrap_or(0)),
            KeyCode::Esc if self.opened.is_some() => self.opened = None,
            KeyCode::Esc => self.wanted.filter.clear(),
            KeyCode::Char('?' | 'h') => self.mode = PageMode::Help,
            KeyCode::Char(' ' | 'p') => self.is_held = !self.is_held,
            KeyCode::Char('s') => self.wanted.by = self.wanted.by.next(),
            KeyCode::Char('r') => self.wanted.is_reversed = !self.wanted.is_reversed,
            KeyCode::Char('/') if self.opened.is_none() => self.mode = PageMode::Filter,
            KeyCode::Char('d') => self.propose(HandAct::Drain),
            KeyCode::Char('u') => self.propose(HandAct::Ready),
            KeyCode::Char('x') => self.propose(HandAct::Down),
            KeyCode::Char('w') => {
                if let Some((target, backend)) = self.backend() {
                    self.mode = PageMode::Weight { target, backend, typed: String::new() };
                }
            }
            _ => {}
        }
        None
    }

    /// To another line; of what is opened, up and down.
    fn go(&mut self, places: &[ListPlace], to: impl Fn(usize) -> usize) {
        match &mut self.opened {
            // Whoever draws it knows where it ends.
            Some(above) => *above = to(*above).min(usize::from(u16::MAX)),
            None => {
                self.at = to(self.at).min(places.len().saturating_sub(1));
                self.marked = places.get(self.at).cloned();
            }
        }
    }

    /// The backend that is marked; where none is, it is told.
    fn backend(&mut self) -> Option<(String, String)> {
        if let Some(ListPlace::Backend(target, backend)) = &self.marked {
            return Some((target.clone(), backend.clone()));
        }
        self.said = Some("that is done to backends: mark one first".to_owned());
        None
    }

    fn propose(&mut self, act: HandAct) {
        if let Some((target, backend)) = self.backend() {
            self.mode = PageMode::Confirm(ProposedChange { target, backend, act });
        }
    }

    fn filter(&mut self, code: KeyCode) {
        let filter = &mut self.wanted.filter;
        match code {
            KeyCode::Esc => {
                filter.clear();
                self.mode = PageMode::Browse;
            }
            KeyCode::Enter => self.mode = PageMode::Browse,
            KeyCode::Backspace => drop(filter.pop()),
            KeyCode::Char(sign) if filter.chars().count() < FILTER_MAX && !sign.is_control() => {
                filter.push(sign)
            }
            _ => {}
        }
    }

    fn weigh(&mut self, code: KeyCode) {
        let PageMode::Weight { target, backend, typed } = &mut self.mode else { return };
        let weight = match code {
            KeyCode::Char(digit) if digit.is_ascii_digit() && typed.len() < 3 => {
                typed.push(digit);
                return;
            }
            KeyCode::Backspace => {
                typed.pop();
                return;
            }
            KeyCode::Esc => {
                self.mode = PageMode::Browse;
                self.said = Some("nothing was done".to_owned());
                return;
            }
            KeyCode::Char('f') => None,
            KeyCode::Enter => match typed.parse() {
                Ok(weight) if weight <= WEIGHT_MAX => Some(weight),
                _ => {
                    typed.clear();
                    return;
                }
            },
            _ => return,
        };
        let (target, backend) = (std::mem::take(target), std::mem::take(backend));
        self.mode = PageMode::Confirm(ProposedChange { target, backend, act: HandAct::Weight(weight) });
    }
}
