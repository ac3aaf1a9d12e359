//! Who may ask and tell the process things over TCP. Files have been read: what stands here is what was in them.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};

use super::tls::ListenerTls;

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

/// The admin API over TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminAccess {
    /// Where it listens; `"*:9900"` gives two. Port 0 lets the system choose.
    pub binds: Vec<SocketAddr>,
    /// Who may come; `None`: anybody, to look. Then all of `binds` are loopback addresses.
    pub tokens: Option<Vec<AdminToken>>,
    /// Names by which it may be addressed beside IP addresses and `localhost`, in lower case without a dot at the end.
    pub hosts: Vec<String>,
    /// The text of a config is taken there too, from a token with the scope `configure`.
    pub configure_over_tcp: bool,
    /// TLS; `None`: plain.
    pub tls: Option<Arc<ListenerTls>>,
}

impl AdminAccess {
    /// The token that reads `presented`. How long that takes says nothing about any token.
    #[must_use]
    pub fn token(&self, presented: &[u8]) -> Option<&AdminToken> {
        let presented = digest(&SHA256, presented);
        let tokens = self.tokens.iter().flatten();
        tokens.fold(None, |found, token| {
            let is_it = verify_slices_are_equal(&token.digest, presented.as_ref()).is_ok();
            if is_it { Some(token) } else { found }
        })
    }
}

/// A token: who has it, and what it is good for. What it reads is not kept.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminToken {
    /// The name of who has it: what stands as the author of a change.
    pub name: String,
    /// What it is good for.
    pub scope: Scope,
    /// SHA-256 of it.
    digest: [u8; 32],
}

impl AdminToken {
    /// The token that reads `secret`.
    #[must_use]
    pub fn new(name: &str, scope: Scope, secret: &[u8]) -> AdminToken {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, secret).as_ref());
        AdminToken { name: name.to_owned(), scope, digest: bytes }
    }

    /// What it is told from all others by, without saying what it reads: SHA-256 of that.
    #[must_use]
    pub fn fingerprint(&self) -> &[u8] {
        &self.digest
    }

    /// Whether `other` reads the same.
    #[must_use]
    pub fn is_same_secret(&self, other: &AdminToken) -> bool {
        verify_slices_are_equal(&self.digest, &other.digest).is_ok()
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminToken")
            .field("name", &self.name)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_holds_those_before_it() {
        let all = [Scope::Open, Scope::Read, Scope::Operate, Scope::Configure];
        assert!(all.is_sorted());
        for (name, scope) in Scope::OF_TOKENS {
            assert_eq!(scope.name(), *name);
        }
    }

    #[test]
    fn a_token_is_found_by_all_of_its_bytes_and_shown_by_none() {
        let tokens = [("one", Scope::Read), ("two", Scope::Configure)];
        let tokens = tokens.map(|(name, scope)| AdminToken::new(name, scope, name.repeat(9).as_bytes()));
        let access = AdminAccess {
            binds: Vec::new(),
            tokens: Some(tokens.to_vec()),
            hosts: Vec::new(),
            configure_over_tcp: false,
            tls: None,
        };
        let found = |secret: &str| access.token(secret.as_bytes()).map(|token| token.name.as_str());
        assert_eq!((found(&"one".repeat(9)), found(&"two".repeat(9))), (Some("one"), Some("two")));
        for wrong in ["", "one", "oneone", &"ONE".repeat(9), &format!("{}x", "one".repeat(9))] {
            assert_eq!(found(wrong), None, "{wrong}");
        }
        let shown = format!("{access:?}");
        assert!(shown.contains("two") && !shown.contains("twotwo") && !shown.contains("digest"), "{shown}");
    }
}
