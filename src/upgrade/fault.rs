//! Why there was no upgrade. The process goes on as if nobody had asked.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why there was no upgrade.
#[derive(Debug, Error)]
pub enum UpgradeFault {
    /// The binary can't be had, or is nobody's to trust.
    #[error("{}: {why}", .path.display())]
    Binary {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The new process ended, or said nothing one could understand.
    #[error("the new process {0}")]
    Ended(String),
    /// It says why it can't.
    #[error("the new process can't: {0}")]
    Refused(String),
    /// It understands other words.
    #[error("evenkeel {version} takes over from another version only: it understands {}, and this process {}", versions(*.theirs), versions(*.ours))]
    Strangers {
        /// Its version.
        version: String,
        /// The versions of words that it understands, lowest and highest.
        theirs: [u32; 2],
        /// Those that this process understands.
        ours: [u32; 2],
    },
    /// It was not there in time.
    #[error("the new process was not ready within {0} seconds")]
    Late(u64),
    /// There is one already.
    #[error("another upgrade is under way")]
    UnderWay,
    /// The process ends.
    #[error("this process is about to end")]
    Ending,
    /// Too many processes drain.
    #[error("{}", crowd(.0))]
    Crowd(Vec<(u32, u64)>),
    /// This process can't have another one in its place.
    #[error("{0}")]
    Unable(String),
    /// What this process has can't be put together.
    #[error("can't hand over: {0}")]
    Legacy(#[from] io::Error),
}

fn versions([least, most]: [u32; 2]) -> String {
    if least == most {
        format!("version {least} of these words")
    } else {
        format!("versions {least} to {most} of these words")
    }
}

fn crowd(drains: &[(u32, u64)]) -> String {
    let each: Vec<String> =
        drains.iter().map(|(process, seconds)| format!("process {process}, for {seconds} s")).collect();
    format!(
        "{} processes of earlier upgrades still drain: {}\n  hint: wait, or have the oldest one cut what it has with `--force`",
        drains.len(),
        each.join("; ")
    )
}
