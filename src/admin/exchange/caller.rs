//! Who asks, and what of it is allowed.

/// What somebody may do; each may do what the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Ask whether the process is alive and ready.
    Open,
    /// Look at everything.
    Read,
    /// Change what the backends of a config are used for: state, weight.
    Operate,
    /// Change what there is: add, remove, put another config into force.
    Configure,
}

impl Scope {
    /// Those that a token can have, each with the name that it has in a token file.
    pub const OF_TOKENS: &'static [(&'static str, Scope)] =
        &[("read", Scope::Read), ("operate", Scope::Operate), ("configure", Scope::Configure)];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Open => "open",
            Scope::Read => "read",
            Scope::Operate => "operate",
            Scope::Configure => "configure",
        }
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// `uid 0`, `token NAME` or `anonymous`: what stands as the author of a change.
    pub who: String,
    /// The most that it may do.
    pub scope: Scope,
    /// It came over the unix socket.
    pub is_local: bool,
}

impl Caller {
    /// The user `uid`, over the unix socket: every right.
    #[must_use]
    pub fn user(uid: u32) -> Caller {
        Caller { who: format!("uid {uid}"), scope: Scope::Configure, is_local: true }
    }

    /// Whoever has the token of this name.
    #[must_use]
    pub fn token(name: &str, scope: Scope) -> Caller {
        Caller { who: format!("token {name}"), scope, is_local: false }
    }

    /// Somebody over TCP who has said nothing of itself.
    #[must_use]
    pub fn anonymous(scope: Scope) -> Caller {
        Caller { who: "anonymous".to_owned(), scope, is_local: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_holds_those_before_it() {
        assert!(
            Scope::Open < Scope::Read && Scope::Read < Scope::Operate && Scope::Operate < Scope::Configure
        );
        for (name, scope) in Scope::OF_TOKENS {
            assert_eq!(scope.name(), *name);
        }
    }
}
