//! All that is shown at one moment. Pure: what happens comes in, and `now` beside it.

use std::time::Duration;

use ratatui::crossterm::event::KeyEvent;

use super::frames::{Known, ToldRows};
use super::keys::{PageWish, TopPage};
use super::listing::{ListPlace, listed};
use super::look::Look;
use crate::tick::Tick;

/// Without a word for so long it is no longer known how things are.
pub(super) const STALE: Duration = Duration::from_secs(3);

/// All that is shown.
#[derive(Clone, Debug)]
pub(super) struct TopState {
    pub(super) look: Look,
    /// The words that name the process in a command: ` --socket PATH`, or nothing.
    pub(super) words: String,
    pub(super) page: TopPage,
    latest: Known,
    /// What was known when the picture was held.
    held: Option<Box<Known>>,
    pub(super) places: Vec<ListPlace>,
    /// When something was heard last.
    pub(super) heard: Tick,
    /// Why nothing is heard any more, if somebody said so.
    pub(super) lost: Option<String>,
}

impl TopState {
    /// Before anything is known.
    pub(super) fn new(look: Look, words: String, now: Tick) -> TopState {
        TopState {
            look,
            words,
            page: TopPage::default(),
            latest: Known::default(),
            held: None,
            places: Vec::new(),
            heard: now,
            lost: None,
        }
    }

    /// What is shown of the process.
    pub(super) fn known(&self) -> &Known {
        self.held.as_deref().unwrap_or(&self.latest)
    }

    /// What is known of the process, also while a picture is held: what is done now is done to that.
    pub(super) fn latest(&self) -> &Known {
        &self.latest
    }

    /// Frames that were heard of the process that is there now.
    pub(super) fn frames(&self) -> u64 {
        self.latest.frames
    }

    /// How long nothing was heard, if that is too long.
    pub(super) fn silence(&self, now: Tick) -> Option<Duration> {
        let silence = now.since(self.heard);
        (silence > STALE).then_some(silence)
    }

    /// Takes what the stream has told.
    pub(super) fn hear(&mut self, told: ToldRows, now: Tick) {
        let before = self.latest.process.pid;
        let was_lost = self.lost.take().is_some();
        let silence = now.since(self.heard).as_secs();
        self.heard = now;
        if self.latest.take(told) {
            let after = self.latest.process.pid;
            self.page.said =
                Some(format!("evenkeel was started anew: process {after} in the place of {before}"));
        } else if was_lost {
            self.page.said = Some(format!("evenkeel is heard again, after {silence}s"));
        }
        self.relist();
    }

    /// The stream has ended, or could not be begun.
    pub(super) fn lose(&mut self, why: String) {
        self.lost = Some(why);
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<PageWish> {
        let wish = self.page.press(key, &self.places);
        match (self.page.is_held, &self.held) {
            (true, None) => self.held = Some(Box::new(self.latest.clone())),
            (false, Some(_)) => self.held = None,
            _ => {}
        }
        self.relist();
        wish
    }

    /// Takes a text that was pasted.
    pub(super) fn paste(&mut self, text: &str) {
        self.page.paste(text);
        self.relist();
    }

    fn relist(&mut self) {
        self.places = listed(self.known(), &self.page.wanted);
    }
}
