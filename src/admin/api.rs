//! What the API has to do with.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::RwLock;

use super::dashboard::FrameKeeper;
use super::door::sessions::SessionBook;
use super::exchange::caller::Caller;
use super::history::HistoryBook;
use super::status::rates::RateBook;
use super::status::wall::WallClock;
use super::upgrading::desk::UpgradeDesk;
use crate::cluster::node::ClusterNode;
use crate::config::{Fence, Loaded};
use crate::events::EventHistory;
use crate::metrics::CountsBook;
use crate::net::now;
use crate::reload::running::{Loader, RunningConfig};

/// Reads a text as if it stood where the config stands; its name is the one that messages have. With a fence it came from afar.
pub type TextLoader = Arc<dyn Fn(&str, &str, Option<&Fence>) -> anyhow::Result<Loaded> + Send + Sync>;

/// Who answers.
#[derive(Clone, Debug)]
pub struct AboutProcess {
    /// The process's name.
    pub name: String,
    /// The absolute path of its config.
    pub config: Option<String>,
}

/// What handlers have at hand.
pub struct Api {
    /// Who answers.
    pub about: AboutProcess,
    /// The config in force, and the way to another one.
    pub running: Arc<RunningConfig>,
    /// By which the text of another config is read.
    pub text: TextLoader,
    /// This node among the others; `None`: it stands alone.
    pub cluster: Option<Arc<ClusterNode>>,
    /// What puts another process into the place of this one; `None`: nothing does.
    pub upgrades: Option<Arc<dyn UpgradeDesk>>,
    /// What the processes before have counted.
    pub counts: Arc<CountsBook>,
    /// What was told of late.
    pub events: Arc<EventHistory>,
    /// What was counted of late.
    pub(super) rates: RateBook,
    /// How moments are told.
    pub(super) wall: WallClock,
    /// What was counted second by second, while there is a page that may be looked at.
    pub(super) history: HistoryBook,
    /// Who has logged in with a browser.
    pub(super) sessions: SessionBook,
    /// What the dashboard shows.
    pub(super) frames: FrameKeeper,
    /// A number of this process, so that a revision of the one before is none of this one.
    born: u32,
    /// All backends have had a verdict once.
    pub(super) was_judged: AtomicBool,
    /// Held exclusively by a change that is made only if nothing has changed (`If-Match`), from the comparison to its end, and shared
    /// by all other changes.
    pub(super) changing: RwLock<()>,
}

impl Api {
    /// Of a process that serves.
    #[must_use]
    pub fn new(about: AboutProcess, running: Arc<RunningConfig>, text: TextLoader) -> Api {
        let (was_judged, changing) = (AtomicBool::default(), RwLock::default());
        let born = rand::random();
        let (rates, frames) = (RateBook::new(now()), FrameKeeper::new(born));
        let sessions = SessionBook::new(rand::random());
        // Who has no subscriber that keeps events has none.
        let events = EventHistory::here().unwrap_or_else(EventHistory::new);
        let (wall, history) = (WallClock::default(), HistoryBook::default());
        Api {
            about,
            running,
            text,
            cluster: None,
            upgrades: None,
            counts: Arc::default(),
            events,
            rates,
            wall,
            history,
            sessions,
            frames,
            born,
            was_judged,
            changing,
        }
    }

    /// The same of a process that is one of a cluster.
    #[must_use]
    pub fn with_cluster(self, cluster: Option<Arc<ClusterNode>>) -> Api {
        Api { cluster, ..self }
    }

    /// The same of a process that can be upgraded.
    #[must_use]
    pub fn with_upgrades(self, upgrades: Arc<dyn UpgradeDesk>) -> Api {
        Api { upgrades: Some(upgrades), ..self }
    }

    /// The same of one that goes on with what others have counted.
    #[must_use]
    pub fn counting_in(self, counts: Arc<CountsBook>) -> Api {
        Api { counts, ..self }
    }

    /// Whether the text of a config is taken over TCP too.
    #[must_use]
    pub fn takes_configs_over_tcp(&self) -> bool {
        self.running.reloader.admin.borrow().as_ref().is_some_and(|admin| admin.configure_over_tcp)
    }

    /// What the config in force is told from the others by: another one after each change, as the value of `ETag` and `If-Match`.
    #[must_use]
    pub fn revision(&self) -> String {
        let number = self.running.reloader.snapshots.current().map_or(0, |snapshot| snapshot.number);
        format!("\"{:08x}-{number}\"", self.born)
    }

    /// Reads `text`, which `caller` has sent, in the place of the config; messages call it `file`.
    #[must_use]
    pub fn loader_of(&self, text: String, file: Option<String>, caller: &Caller) -> Loader {
        let read = Arc::clone(&self.text);
        let fence = (!caller.is_local).then(|| {
            Fence::around(
                self.running.by_hand().file.named.clone(),
                self.about.config.as_deref().map(Path::new),
            )
        });
        // Whoever looks at what it says later sees this name at a terminal, which another one's words shall not drive.
        let file = file.map(|name| name.replace(char::is_control, "·"));
        let name = file.or_else(|| self.about.config.clone()).unwrap_or_else(|| "request".to_owned());
        Arc::new(move || read(&text, &name, fence.as_ref()))
    }
}
