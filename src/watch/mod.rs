//! Watches the files of a config: whatever they become is loaded once it has come to rest.
//!
//! The kernel says where to look (`notices`), and what counts is what is found there: the state of each file beside that in
//! which it was read last. So a log that is written beside the config causes a glance at most, nothing is lost between a
//! reading and the watch, and file systems of which the kernel says nothing are watched too, if more slowly.

mod debounce;
mod folders;
mod notices;

use std::future::pending;
use std::io::ErrorKind;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::config::Files;
use crate::events;
use crate::net::now;
use debounce::Debounce;
use folders::Folders;
use notices::Notices;

/// From one look to the next at least, however much happens.
const PAUSE: Duration = Duration::from_millis(100);
/// From one look to the next where the kernel can't say everything.
const GLANCE: Duration = Duration::from_secs(2);
/// The same where it should: network file systems don't say what others write.
const ROUND: Duration = Duration::from_secs(10);

/// Who watches. `seen` is what was read last, each file as it was before that.
pub struct Watcher {
    seen: watch::Receiver<Files>,
    eye: Eye,
}

impl Watcher {
    /// Of these files, and of those that take their place.
    #[must_use]
    pub fn new(seen: watch::Receiver<Files>) -> Watcher {
        Watcher { seen, eye: Eye::default() }
    }

    /// Waits until one of the files differs from what was read last, and all have come to rest. False: nobody reads any more. Who
    /// reads then has to say what, or the same change is told again. Called inside of a runtime.
    pub async fn changed(&mut self) -> bool {
        loop {
            let files = self.seen.borrow_and_update().clone();
            tokio::select! {
                read = self.seen.changed() => {
                    if read.is_err() {
                        return false;
                    }
                }
                () = self.eye.until_other(&files) => return true,
            }
        }
    }
}

/// What looks.
#[derive(Default)]
struct Eye {
    /// `None`: not asked for yet, or there are none to be had.
    notices: Option<Notices>,
    /// Somebody was told that the kernel does not say everything.
    is_told: bool,
    /// The kernel says everything that it knows.
    is_complete: bool,
}

impl Eye {
    /// Waits until `files` are other ones and have come to rest.
    async fn until_other(&mut self, files: &Files) {
        if files.is_empty() {
            self.notices = None;
            return pending().await;
        }
        let (mut last, mut debounce) = (files.clone(), Debounce::default());
        let mut is_other = true;
        loop {
            // First the watch and then the look, so that nothing is lost between the two. Links may lead elsewhere now.
            if is_other || !self.is_complete {
                self.watch(folders_of(last.clone()).await);
            }
            let found = look(last.clone()).await;
            let now = now();
            is_other = found != last;
            if is_other {
                debounce.changed(now);
                last = found;
            }
            if debounce.is_due(now) {
                if last != *files {
                    return;
                }
                debounce = Debounce::default();
            }
            sleep(PAUSE).await;
            if !is_other {
                let round = if self.is_complete { ROUND } else { GLANCE };
                self.wait(debounce.due().map_or(round, |due| due.since(now).min(round))).await;
            }
        }
    }

    /// Watches these folders from now on.
    fn watch(&mut self, folders: Folders) {
        let fault = self.follow(&folders).err().or(folders.missing.map(|folder| {
            let folder = folder.display();
            format!("the folder {folder} is not there")
        }));
        self.is_complete = fault.is_none() && !folders.is_search_missing;
        match fault {
            Some(fault) if !self.is_told => {
                events::watch_falls_back(&fault, GLANCE);
                self.is_told = true;
            }
            Some(_) => {}
            None => self.is_told = false,
        }
    }

    /// The same, or why not all of them can be.
    fn follow(&mut self, folders: &Folders) -> Result<(), String> {
        let notices = match &mut self.notices {
            Some(notices) => notices,
            none => none.insert(Notices::new().map_err(|error| format!("the system: {error}"))?),
        };
        notices.follow(&folders.all).map_err(|(folder, error)| match error.kind() {
            ErrorKind::StorageFull => {
                "the system has no more watches (fs.inotify.max_user_watches)".to_owned()
            }
            // An open list; the system's own words say the rest.
            _ => format!("the folder {}: {error}", folder.display()),
        })
    }

    /// Waits until the kernel says something, for this long at most.
    async fn wait(&mut self, longest: Duration) {
        let heard = async {
            match &self.notices {
                Some(notices) => notices.wait().await,
                None => pending().await,
            }
        };
        // Whatever is wrong with it, a new one may be right.
        if let Ok(Err(_)) = timeout(longest, heard).await {
            (self.notices, self.is_complete) = (None, false);
        }
    }
}

/// The files as they are now. A look that panics finds nothing new.
async fn look(files: Files) -> Files {
    let before = files.clone();
    spawn_blocking(move || files.again()).await.unwrap_or(before)
}

async fn folders_of(files: Files) -> Folders {
    spawn_blocking(move || Folders::of(files.paths(), &files.searched())).await.unwrap_or_default()
}
