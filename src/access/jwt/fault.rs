//! Why a token does not let its bearer in.

/// Why a token does not let its bearer in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenFault {
    /// What kind of fault it is: each has a cause of its own.
    pub kind: TokenFaultKind,
    /// What it is, as a predicate. Nothing in it is a word of the client.
    pub what: &'static str,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenFaultKind {
    /// There is no token.
    Missing,
    /// It is none: another form, a part that can't be read, a field twice, something in it that has to be understood and is not.
    Malformed,
    /// It is not signed as it has to be, or not by whom it says.
    Signature,
    /// Its time is over.
    Expired,
    /// It is not for this place, not by this issuer, or not valid yet; or it does not say what it must.
    Claims,
    /// The key that it names is not known.
    Keys,
}

impl TokenFault {
    /// One of this kind.
    pub(super) const fn new(kind: TokenFaultKind, what: &'static str) -> TokenFault {
        TokenFault { kind, what }
    }

    /// What the client is told in `WWW-Authenticate` (RFC 6750 §3): who has shown nothing is told no error. What is wrong is no secret: of a
    /// token that nobody has vouched for only its form is told.
    #[must_use]
    pub fn challenge(&self) -> String {
        match self.kind {
            TokenFaultKind::Missing => "Bearer".to_owned(),
            _ => {
                format!("Bearer error=\"invalid_token\", error_description=\"the token {}\"", self.what)
            }
        }
    }
}
