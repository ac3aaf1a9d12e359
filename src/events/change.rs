//! Transitions: of a backend, and of a target as a whole.

use std::fmt;
use std::time::Duration;

use super::kind::EventKind;
use super::wording::{name, rough, sentence};

/// A backend changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendChange<'a> {
    /// The target's name.
    pub target: &'a str,
    /// The backend's name inside the target.
    pub backend: &'a str,
    /// The state it left: `unknown`, `up`, `down` or `draining`.
    pub from: &'a str,
    /// The state it is in now.
    pub to: &'a str,
    /// Who decided that: `operator`, `probe`, `agent`, `name`, `breaker` or `outlier`.
    pub source: &'a str,
    /// What the deciding input said.
    pub reason: &'a str,
    /// How long it was in the state that it left; `None`: it had none.
    pub after: Option<Duration>,
    /// How many backends of the target get requests now.
    pub left: usize,
    /// How many there are.
    pub of: usize,
}

impl BackendChange<'_> {
    /// By the state that it is in now.
    pub(super) fn kind(&self) -> EventKind {
        match self.to {
            "up" => EventKind::BackendUp,
            "draining" => EventKind::BackendDraining,
            _ => EventKind::BackendDown,
        }
    }

    /// Nobody wanted that.
    pub(super) fn is_lost(&self) -> bool {
        self.to == "down" && self.source != "operator"
    }
}

impl fmt::Display for BackendChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BackendChange { target, backend, from, to, source, reason, after, left, of } = self;
        let again = match after {
            Some(after) if *to == "up" && *from == "down" => format!(" again after {}", rough(*after)),
            _ => String::new(),
        };
        let how = match (self.is_lost(), *source) {
            (true, "breaker") => ", breaker open",
            (true, "outlier") => ", left out",
            _ => "",
        };
        // Where others have no verdict yet, those who are up are not what is left.
        let word = if *to == "up" || *from == "unknown" { "up" } else { "left" };
        let (middle, end) = (format!(" is {to}{again}{how}: "), format!(" ({left} of {of} {word})"));
        f.write_str(&sentence("backend ", &[target, backend], &middle, reason, &end))
    }
}

/// It is another matter who serves a target's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetChange<'a> {
    /// Its name.
    pub target: &'a str,
    /// What it was: `unknown`, `up`, `backups` (no others are left) or `down`.
    pub from: &'a str,
    /// What it is.
    pub state: &'a str,
    /// How long it was what it was; `None`: it was nothing yet.
    pub after: Option<Duration>,
    /// How many backends of the target get requests now.
    pub left: usize,
    /// How many there are.
    pub of: usize,
}

impl TargetChange<'_> {
    /// By who serves it now.
    pub(super) fn kind(&self) -> EventKind {
        match self.state {
            "down" => EventKind::TargetDown,
            "backups" => EventKind::TargetBackups,
            _ => EventKind::TargetUp,
        }
    }
}

impl fmt::Display for TargetChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TargetChange { target, from, state, after, left, of } = self;
        let without = match (*from, after) {
            ("down", Some(after)) => format!(" after {} without a backend", rough(*after)),
            ("backups", Some(after)) => format!(" after {} on backups", rough(*after)),
            _ => String::new(),
        };
        write!(f, "target {}: ", name(target))?;
        match *state {
            "down" => write!(f, "no backend left ({left} of {of})"),
            "backups" if *from == "down" => write!(f, "on backups{without} ({left} of {of} left)"),
            "backups" => write!(f, "on backups ({left} of {of} left)"),
            _ => write!(f, "back{without} ({left} of {of} up)"),
        }
    }
}
