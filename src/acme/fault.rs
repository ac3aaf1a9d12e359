//! Why there is no certificate.

use std::time::SystemTime;

use instant_acme::{Error, Problem};

/// Of what is told this much is kept.
const WORDS: usize = 600;

/// Why, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OrderFault {
    /// In words.
    pub(super) why: String,
    /// The authority was never asked for a certificate.
    pub(super) is_unreached: bool,
    /// The authority does not know the account.
    pub(super) is_lost: bool,
    /// The authority was asked to sign: it may have issued a certificate.
    pub(super) is_signed: bool,
    /// Until when the authority does not want to be asked.
    pub(super) rest: Option<SystemTime>,
}

impl OrderFault {
    /// One of our own.
    pub(super) fn own(why: impl Into<String>) -> OrderFault {
        // An authority may say as much as it likes.
        let why: String = why.into().chars().take(WORDS).collect();
        OrderFault { why, is_unreached: false, is_lost: false, is_signed: false, rest: None }
    }

    /// What an authority has answered, or that it has not, when it was asked for `what`.
    pub(super) fn of(what: &str, error: &Error) -> OrderFault {
        let is_lost = is(error, "accountDoesNotExist");
        OrderFault { is_lost, ..OrderFault::own(format!("{what}: {}", words(error))) }
    }

    /// It came before the authority was asked for a certificate.
    pub(super) fn before_any_order(self) -> OrderFault {
        OrderFault { is_unreached: true, ..self }
    }
}

/// Whether an authority has answered with an error of this kind (RFC 8555 §6.7).
pub(super) fn is(error: &Error, kind: &str) -> bool {
    let Error::Api(Problem { r#type: Some(of), .. }) = error else { return false };
    of.rsplit(':').next() == Some(kind)
}

/// In words.
fn words(error: &Error) -> String {
    match error {
        Error::Api(problem) => problem_words(problem),
        Error::Json(_) => "its answer is not what was expected".to_owned(),
        Error::Timeout(_) => "it does not come to an end".to_owned(),
        // These texts are made for readers.
        other => other.to_string(),
    }
}

/// What an authority says that something went wrong with.
pub(super) fn problem_words(problem: &Problem) -> String {
    let kind = problem.r#type.as_deref().and_then(|kind| kind.rsplit(':').next());
    let detail = problem.detail.as_deref().unwrap_or("no reason");
    let mut text = match kind {
        Some(kind) => format!("{detail} ({kind})"),
        None => detail.to_owned(),
    };
    for sub in &problem.subproblems {
        text.push_str("; ");
        text.push_str(sub.detail.as_deref().unwrap_or("no reason"));
    }
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
