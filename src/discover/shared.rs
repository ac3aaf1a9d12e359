//! What nodes that act as one tell one another of a name.

use std::sync::Arc;
use std::time::Duration;

use super::answer::HeardAddress;
use crate::config::model::discovery::DnsQuestion;

/// The addresses of a name as they are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldAddresses {
    /// Them, in their order, with for how long good answers have lacked each; `None`: the latest has it. None of them: nobody knows any.
    pub heard: Vec<(HeardAddress, Option<Duration>)>,
    /// How long the latest good answer about them holds.
    pub ttl: Duration,
}

/// What a name has come to on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameFinding {
    /// What is asked for, in its canonical form.
    pub question: DnsQuestion,
    /// What is known.
    pub known: ToldAddresses,
    /// What came of asking.
    pub asked: NameAsked,
}

/// What came of asking for a name, since this node was last told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameAsked {
    /// Nothing yet, or it does not ask, or has had no good answer a few times.
    NotYet,
    /// A good answer.
    Good,
    /// No good answer several times in a row, and why.
    Failing(String),
}

/// What a node is to do about a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameOrder {
    /// Who asks for it; `None`: this node does.
    pub by: Option<Arc<str>>,
    /// What all know of it.
    pub told: Option<ToldAddresses>,
}
