//! Lines for the person at the terminal.
//!
//! What serves does not wait until somebody reads them: a thread writes, and a line that finds its queue full is left out. Each
//! goes out in one write, so that events, which come on a way of their own, don't tear it.

use std::io::{ErrorKind, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, park_timeout};
use std::time::Duration;

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::events;
use crate::net;
use crate::shutdown::Shutdown;
use crate::targets::{Health, Target};

/// How long the welcome waits for the events of the start.
const EVENTS_MAX: Duration = Duration::from_secs(3);
/// How often it looks.
const GLANCE: Duration = Duration::from_millis(50);
/// Lines that wait at most.
const LINES: usize = 16;

/// The way to the terminal.
#[derive(Clone, Debug)]
pub(super) struct Terminal(SyncSender<String>);

impl Terminal {
    /// Prints the welcome, behind the events of the start, and then what is said. The demo ends when nobody can read it any more:
    /// as behind `| head`, and when the terminal is gone.
    pub(super) fn open(
        welcome: String,
        targets: Vec<Arc<Target>>,
        shutdown: Shutdown,
    ) -> anyhow::Result<Terminal> {
        let (said, lines) = sync_channel::<String>(LINES);
        let ending = shutdown.clone();
        let writer = move || {
            wait_for(&targets);
            let mut texts = std::iter::once(welcome).chain(lines);
            let written = texts.try_for_each(|text| std::io::stdout().lock().write_all(text.as_bytes()));
            if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
                end(&ending);
            }
        };
        Builder::new().name("terminal".to_owned()).spawn(writer).context("the demo's lines")?;
        let watch = move || {
            if is_hung_up() {
                end(&shutdown);
            }
        };
        Builder::new().name("hang-up".to_owned()).spawn(watch).context("the watch over the terminal")?;
        Ok(Terminal(said))
    }

    /// To whoever reads there.
    #[cfg(test)]
    pub(super) fn to(lines: SyncSender<String>) -> Terminal {
        Terminal(lines)
    }

    /// Prints a line, or leaves it out where nobody has read those before it.
    pub(super) fn say(&self, line: &str) {
        let _ = self.0.try_send(format!("{line}\n"));
    }
}

/// Nobody is there any more who could end it.
fn end(shutdown: &Shutdown) {
    if !shutdown.drain.is_cancelled() {
        events::nobody_reads();
        shutdown.drain.cancel();
    }
}

/// Waits until it is known of all backends how they are.
fn wait_for(targets: &[Arc<Target>]) {
    let begun = net::now();
    let is_judged =
        |target: &Arc<Target>| target.backends.iter().all(|backend| backend.health() != Health::Unknown);
    while !targets.iter().all(is_judged) && net::now().since(begun) < EVENTS_MAX {
        park_timeout(GLANCE);
    }
    // The last of the events is on its way.
    park_timeout(GLANCE);
}

/// Waits until standard output leads to nobody; for ever where it leads to a file. False: that can't be told.
fn is_hung_up() -> bool {
    let out = std::io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    loop {
        match poll(&mut polled, None) {
            Ok(_) => return polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
