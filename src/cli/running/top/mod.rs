//! `evenkeel top`: the state of everything at the terminal, second by second.
//!
//! The stream of the dashboard is read (`feed`) into what is known (`frames`, of `rows` and their `track`s). Keys choose what is shown of
//! it (`keys`, `listing`) and what is done by hand (`by_hand`); both together are the `state`, of which `view` makes a screen. All of that
//! is pure; the terminal itself is `screen`, and what happens is brought together here.

mod by_hand;
mod feed;
mod figures;
mod frames;
mod keys;
mod listing;
mod look;
mod rows;
mod screen;
mod state;
mod track;
mod view;

use std::io::{self, IsTerminal as _, stdout};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::terminal;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver, Sender, UnboundedReceiver};
use tokio::time::sleep;

use super::ask::ask;
use super::{PATIENCE, find, lost};
use crate::cli::args::running::ProcessOptions;
use crate::cli::args::top::TopOptions;
use crate::cli::output;
use crate::net::now;
use by_hand::{ProposedChange, outcome, quoted};
use feed::{FeedNews, connect, follow};
use keys::PageWish;
use look::{Look, Surroundings};
use screen::TopScreen;
use state::TopState;

/// Without news the screen is drawn anew after this time: it says how long there were none.
const GLANCE: Duration = Duration::from_millis(1_200);
/// Frames on their way to the screen. Who reads no more of them gets whole ones later.
const FRAMES: usize = 4;
/// Columns where nobody says how many there are.
const COLUMNS: u16 = 80;

/// Shows the process until a key or a signal ends it.
pub(in crate::cli) fn run(options: &TopOptions) -> anyhow::Result<ExitCode> {
    if !options.once && !stdout().is_terminal() {
        return lost(
            "standard output is not a terminal\n  hint: `evenkeel status` prints the state of everything, `evenkeel top --once` one screen",
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let first = match connect(&options.process).await {
            Ok(first) => first,
            Err(error) => return lost(&format!("{error:#}")),
        };
        let state = TopState::new(look(options), words(&options.process), now());
        let (news, heard) = mpsc::channel(FRAMES);
        tokio::spawn(follow(options.process.clone(), first, news));
        if options.once { once(state, heard).await } else { watch(options, state, heard).await }
    })
}

fn look(options: &TopOptions) -> Look {
    let value = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(value).find(|value| !value.is_empty());
    let (no_color, term) = (value("NO_COLOR"), value("TERM"));
    let around =
        Surroundings { no_color: no_color.as_deref(), term: term.as_deref(), locale: locale.as_deref() };
    Look::of(options.no_color, options.ascii, &around)
}

/// What names the process in a command, as it was named here.
fn words(process: &ProcessOptions) -> String {
    let named = |flag: &str, path: &std::path::Path| format!(" {flag} {}", quoted(&path.to_string_lossy()));
    match process {
        ProcessOptions { socket: Some(path), .. } => named("--socket", path),
        ProcessOptions { config: Some(path), .. } => named("-c", path),
        ProcessOptions { .. } => String::new(),
    }
}

/// Prints one screen, as soon as rates are known.
async fn once(mut state: TopState, mut heard: Receiver<FeedNews>) -> anyhow::Result<ExitCode> {
    while state.frames() < 2 {
        match heard.recv().await {
            Some(FeedNews::Frame(told)) => state.hear(told, now()),
            Some(FeedNews::Lost(why)) => return lost(&why),
            None => return lost("the stream has ended"),
        }
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let size = || terminal::size().ok().filter(|_| stdout().is_terminal()).map(|(width, _)| width);
    output::print(&view::whole(&state, columns.or_else(size).unwrap_or(COLUMNS), now()))?;
    Ok(ExitCode::SUCCESS)
}

/// Signals that end it, each with its number.
struct Endings([(Signal, u8); 3]);

impl Endings {
    fn new() -> io::Result<Endings> {
        let of = |kind: SignalKind, number| signal(kind).map(|signal| (signal, number));
        Ok(Endings([
            of(SignalKind::hangup(), 1)?,
            of(SignalKind::interrupt(), 2)?,
            of(SignalKind::terminate(), 15)?,
        ]))
    }

    /// The number of the one that comes.
    async fn next(&mut self) -> u8 {
        let [(hangup, first), (interrupt, second), (terminate, third)] = &mut self.0;
        tokio::select! {
            _ = hangup.recv() => *first,
            _ = interrupt.recv() => *second,
            _ = terminate.recv() => *third,
        }
    }
}

async fn watch(
    options: &TopOptions,
    mut state: TopState,
    mut heard: Receiver<FeedNews>,
) -> anyhow::Result<ExitCode> {
    // Before the terminal is ours: whoever is ended in between leaves it as it was.
    let mut endings = Endings::new()?;
    let mut screen = TopScreen::take().context("the terminal can't be used")?;
    let mut keys = keys_of_the_terminal()?;
    let (answers, mut answered) = mpsc::channel(1);
    loop {
        let at = now();
        screen.draw(|frame| view::draw(&mut state, frame.area(), at, frame.buffer_mut()))?;
        tokio::select! {
            biased;
            number = endings.next() => return Ok(ExitCode::from(128 + number)),
            key = keys.recv() => match key {
                Some(Ok(Event::Key(key))) => match state.press(key) {
                    Some(PageWish::End) => return Ok(ExitCode::SUCCESS),
                    Some(PageWish::Redraw) => screen.redraw()?,
                    Some(PageWish::Change(change)) => {
                        tokio::spawn(carry_out(options.process.clone(), change, answers.clone()));
                    }
                    None => {}
                },
                Some(Ok(Event::Paste(text))) => state.paste(&text),
                // Its size is asked for with each drawing.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error).context("the keys can't be read"),
                None => return Ok(ExitCode::FAILURE),
            },
            Some(said) = answered.recv() => state.page.said = Some(said),
            Some(news) = heard.recv() => match news {
                FeedNews::Frame(told) => state.hear(told, now()),
                FeedNews::Lost(why) => state.lose(why),
            },
            () = sleep(GLANCE) => {}
        }
    }
}

/// What is typed, read by a thread of its own: nothing else can wait for it.
fn keys_of_the_terminal() -> io::Result<UnboundedReceiver<io::Result<Event>>> {
    let (typed, keys) = mpsc::unbounded_channel();
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
        loop {
            let event = event::read();
            let is_over = event.is_err();
            if typed.send(event).is_err() || is_over {
                return;
            }
        }
    })?;
    Ok(keys)
}

/// Asks for a change, and tells what has come of it.
async fn carry_out(process: ProcessOptions, change: ProposedChange, answers: Sender<String>) {
    let said = match find::socket(&process).await {
        Ok(socket) => match ask(&socket, change.asked(), PATIENCE).await {
            Ok((status, body)) => outcome(status.is_success(), &body),
            Err(error) => format!("nobody says what has come of it: {error:#}"),
        },
        Err(error) => format!("not done: {error:#}"),
    };
    // Nobody waits for it any more.
    let _ = answers.send(said).await;
}

#[cfg(test)]
mod tests;
