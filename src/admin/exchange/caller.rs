//! Who asks, and what of it is allowed.

use std::net::IpAddr;

use crate::config::model::Scope;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// `uid 0`, `token NAME` or `anonymous`: what stands as the author of a change.
    pub who: String,
    /// The most that it may do.
    pub scope: Scope,
    /// It came over the unix socket.
    pub is_local: bool,
    /// From where; `None`: over the unix socket.
    pub address: Option<IpAddr>,
    /// When its session ends, in seconds since 1970; `None`: it has come with none.
    pub session_ends: Option<u64>,
}

impl Caller {
    /// The user `uid`, over the unix socket: every right.
    #[must_use]
    pub fn user(uid: u32) -> Caller {
        Caller { who: format!("uid {uid}"), is_local: true, ..Caller::anonymous(Scope::Configure) }
    }

    /// Whoever has the token of this name.
    #[must_use]
    pub fn token(name: &str, scope: Scope) -> Caller {
        Caller { who: format!("token {name}"), ..Caller::anonymous(scope) }
    }

    /// Somebody over TCP who has said nothing of itself.
    #[must_use]
    pub fn anonymous(scope: Scope) -> Caller {
        Caller { who: "anonymous".to_owned(), scope, is_local: false, address: None, session_ends: None }
    }
}
