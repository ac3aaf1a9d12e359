//! What whoever asks for an upgrade says and hears, and what carries it out.

use std::path::PathBuf;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

/// What somebody wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpgradeAsk {
    /// The binary; `None`: the one that this process was started from, which may be another file by now.
    pub binary: Option<PathBuf>,
    /// Where too many earlier processes drain the oldest cuts what it has.
    pub force: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeReport {
    /// The version that serves now.
    pub version: String,
    /// The process that does.
    pub process: u32,
    /// The how manieth of its row it is.
    pub generation: u32,
    /// Those who drain, the oldest first.
    pub draining: Vec<Draining>,
}

/// A process that drains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draining {
    /// Its number.
    pub process: u32,
    /// For how long.
    pub seconds: u64,
}

/// Why nothing came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradeProblem {
    /// It is not what was asked for that is wrong.
    pub is_conflict: bool,
    /// In words.
    pub detail: String,
}

/// What carries it out.
pub trait UpgradeDesk: Send + Sync {
    /// Puts another process into the place of this one, which drains then.
    fn upgrade(
        &self,
        ask: UpgradeAsk,
    ) -> Pin<Box<dyn Future<Output = Result<UpgradeReport, UpgradeProblem>> + Send + '_>>;
}
