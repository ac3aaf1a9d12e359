//! Who shows who they are, and how: the entries of `auth`.

use std::sync::Arc;
use std::time::Duration;

use super::jwt::JwtAuth;

/// One entry of `auth`.
#[derive(Clone, Debug, PartialEq)]
pub struct Auth {
    /// The key it was written under.
    pub name: String,
    /// How a client shows who it is.
    pub kind: AuthKind,
}

/// How a client shows who it is.
#[derive(Clone, Debug, PartialEq)]
pub enum AuthKind {
    /// By a name and a password (RFC 7617).
    Basic(BasicAuth),
    /// By a token that somebody else has signed (RFC 6750, RFC 7519).
    Jwt(JwtAuth),
    /// Another service says whether it may come in.
    Forward(ForwardAuth),
}

impl Auth {
    /// Names of the header lines by which backends are told who a client is: no client may send them itself.
    pub fn told(&self) -> impl Iterator<Item = &str> {
        let (names, claims) = match &self.kind {
            AuthKind::Basic(_) => (&[][..], &[][..]),
            AuthKind::Jwt(jwt) => (&[][..], &*jwt.rules.claims_to_headers),
            AuthKind::Forward(forward) => (&*forward.copy_headers, &[][..]),
        };
        names.iter().chain(claims.iter().map(|(_, header)| header)).map(String::as_str)
    }
}

/// Names and passwords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicAuth {
    /// What the users are asked for.
    pub realm: String,
    /// By name; each name once.
    pub users: Arc<[User]>,
}

/// Somebody who may come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Without a colon, at most 255 bytes.
    pub name: String,
    /// What their password is compared with.
    pub hash: PasswordHash,
}

/// A hash as it stands in a file of users, known to be well-formed.
#[derive(Clone, PartialEq, Eq)]
pub enum PasswordHash {
    /// `$2y$`, `$2b$` or `$2a$`.
    Bcrypt(Box<str>),
    /// `$argon2id$`.
    Argon2(Box<str>),
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PasswordHash::Bcrypt(_) => "Bcrypt(…)",
            PasswordHash::Argon2(_) => "Argon2(…)",
        })
    }
}

impl PasswordHash {
    /// As it stands in the file.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            PasswordHash::Bcrypt(text) | PasswordHash::Argon2(text) => text,
        }
    }
}

/// A service that says who may come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardAuth {
    /// The target that is asked.
    pub target: Arc<str>,
    /// The path, perhaps with a query.
    pub path: String,
    /// Header lines of its answer that the backend gets.
    pub copy_headers: Vec<String>,
    /// How long it may take, with the body of its answer. Default 5 s.
    pub timeout: Duration,
}

impl ForwardAuth {
    /// What `timeout` is where nobody says.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
}
