//! Who has logged in with a browser: a cookie in place of a token, for twelve hours.
//!
//! A cookie is the end of the session, a number of its own and the name of a token, with a code over these, the token itself and a
//! secret of this process (HMAC-SHA-256). So nothing is kept of those who are logged in: a cookie is good as long as the token is,
//! and no longer than the process. Kept are those who have logged out, until their cookies would have ended.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign, verify};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::sync::watch;

use crate::config::model::{AdminAccess, AdminToken};

/// How long a session lasts.
pub const LASTS: Duration = Duration::from_secs(12 * 3600);
/// Cookies of those who have logged out that are remembered; above that the first to end go, and with them all that end no later.
const OUT_MAX: usize = 4096;
/// Bytes of the code, of the end, of the number.
const CODE: usize = 32;
const END: usize = 8;
const NUMBER: usize = 16;
/// The longest cookie that is looked at.
const LONGEST: usize = 1024;

/// What is known of sessions.
#[derive(Debug)]
pub struct SessionBook {
    key: Key,
    out: Mutex<LoggedOut>,
    /// How many have.
    ended: watch::Sender<u64>,
}

/// Who has logged out.
///
/// Invariant: a session that has ended once is in `all` or ends no later than `void`, which only grows: none is ever good again.
#[derive(Debug, Default)]
struct LoggedOut {
    /// Ends and numbers.
    all: BTreeSet<(u64, [u8; NUMBER])>,
    /// Sessions that end by then are over, for want of room to remember which of them.
    void: u64,
}

/// Somebody who is logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrowserSession<'a> {
    /// With which token.
    pub token: &'a AdminToken,
    /// Until when, in seconds since 1970.
    pub ends: u64,
}

impl SessionBook {
    /// One with this secret.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> SessionBook {
        SessionBook {
            key: Key::new(HMAC_SHA256, &secret),
            out: Mutex::default(),
            ended: watch::Sender::new(0),
        }
    }

    /// The cookie of who logs in with `token` at `now`, in seconds since 1970. `number`: a random one.
    #[must_use]
    pub fn begin(&self, token: &AdminToken, now: u64, number: u128) -> String {
        let front = [&now.saturating_add(LASTS.as_secs()).to_be_bytes()[..], &number.to_be_bytes()].concat();
        let code = sign(&self.key, &signed(&front, token));
        URL_SAFE_NO_PAD.encode([code.as_ref(), &front, token.name.as_bytes()].concat())
    }

    /// Who has this cookie at `now`; `None`: nobody.
    #[must_use]
    pub fn who<'a>(&self, cookie: &[u8], access: &'a AdminAccess, now: u64) -> Option<BrowserSession<'a>> {
        let parts = CookieParts::of(cookie).filter(|parts| parts.ends > now)?;
        let out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if parts.ends <= out.void || out.all.contains(&(parts.ends, parts.number)) {
            return None;
        }
        drop(out);
        let tokens = access.tokens.iter().flatten().filter(|token| token.name.as_bytes() == &*parts.name);
        let mut good =
            tokens.filter(|token| verify(&self.key, &signed(&parts.front, token), &parts.code).is_ok());
        good.next().map(|token| BrowserSession { token, ends: parts.ends })
    }

    /// Ends the session of this cookie, which was found to be good.
    pub fn end(&self, cookie: &[u8]) {
        let Some(parts) = CookieParts::of(cookie) else { return };
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.all.insert((parts.ends, parts.number));
        while out.all.len() > OUT_MAX {
            out.void = out.all.pop_first().map_or(out.void, |(ends, _)| ends.max(out.void));
        }
        drop(out);
        self.ended.send_modify(|count| *count += 1);
    }

    /// Changes when somebody logs out.
    #[must_use]
    pub fn ended(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }
}

/// What the code of a cookie is over.
fn signed(front: &[u8], token: &AdminToken) -> Vec<u8> {
    [front, token.fingerprint(), token.name.as_bytes()].concat()
}

/// What stands in a cookie.
struct CookieParts {
    code: Vec<u8>,
    /// End and number as they stand there.
    front: Vec<u8>,
    ends: u64,
    number: [u8; NUMBER],
    name: Vec<u8>,
}

impl CookieParts {
    fn of(cookie: &[u8]) -> Option<CookieParts> {
        let bytes = URL_SAFE_NO_PAD.decode(cookie.get(..).filter(|cookie| cookie.len() <= LONGEST)?).ok()?;
        let (code, rest) = bytes.split_at_checked(CODE)?;
        let (front, name) = rest.split_at_checked(END + NUMBER)?;
        let (ends, number) = front.split_at_checked(END)?;
        Some(CookieParts {
            code: code.to_vec(),
            front: front.to_vec(),
            ends: u64::from_be_bytes(*ends.first_chunk()?),
            number: *number.first_chunk()?,
            name: name.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::Scope;

    fn access(tokens: &[(&str, &str)]) -> AdminAccess {
        let tokens =
            tokens.iter().map(|(name, secret)| AdminToken::new(name, Scope::Operate, secret.as_bytes()));
        AdminAccess {
            binds: Vec::new(),
            tokens: Some(tokens.collect()),
            hosts: Vec::new(),
            configure_over_tcp: false,
            tls: None,
        }
    }

    #[test]
    fn a_cookie_is_good_for_twelve_hours_and_as_long_as_its_token_and_its_process() {
        let here = access(&[("ci", "0123456789abcdef"), ("eyes", "123456789abcdef0")]);
        let book = SessionBook::new([7; 32]);
        let token = here.token(b"123456789abcdef0").expect("it is one");
        let cookie = book.begin(token, 1000, 5);
        let ends = 1000 + 12 * 3600;
        let who = |book: &SessionBook, access: &AdminAccess, now| {
            book.who(cookie.as_bytes(), access, now).map(|session| (session.token.name.clone(), session.ends))
        };
        assert_eq!(who(&book, &here, 1000), Some(("eyes".to_owned(), ends)));
        assert_eq!(who(&book, &here, ends - 1), Some(("eyes".to_owned(), ends)));
        assert_eq!(who(&book, &here, ends), None);
        assert_eq!(who(&book, &access(&[("eyes", "another one, as long")]), 1000), None);
        assert_eq!(who(&book, &access(&[("other", "123456789abcdef0")]), 1000), None);
        assert_eq!(who(&SessionBook::new([8; 32]), &here, 1000), None, "another process");
        assert!(!cookie.contains("123456789abcdef0"));
        let other = book.begin(token, 1000, 6);
        book.end(cookie.as_bytes());
        assert_eq!(who(&book, &here, 1000), None);
        assert!(book.who(other.as_bytes(), &here, 1000).is_some(), "only that one has logged out");
    }

    #[test]
    fn no_cookie_that_was_tampered_with_is_good() {
        let here = access(&[("a", "0123456789abcdef"), ("b", "123456789abcdef0")]);
        let book = SessionBook::new([7; 32]);
        let cookie = book.begin(here.token(b"0123456789abcdef").expect("it is one"), 0, u128::MAX);
        let bytes = URL_SAFE_NO_PAD.decode(&cookie).expect("it is encoded so");
        for place in 0..bytes.len() {
            let mut other = bytes.clone();
            other[place] ^= 3;
            assert_eq!(book.who(URL_SAFE_NO_PAD.encode(other).as_bytes(), &here, 1), None, "{place}");
        }
        for cut in 0..cookie.len() {
            assert_eq!(book.who(&cookie.as_bytes()[..cut], &here, 1), None, "{cut}");
        }
        for wrong in ["", "=", "\u{1F6A2}", &"A".repeat(LONGEST), &"A".repeat(LONGEST + 1)] {
            assert_eq!(book.who(wrong.as_bytes(), &here, 1), None);
        }
    }

    #[test]
    fn who_has_logged_out_is_out_however_many_follow() {
        let here = access(&[("a", "0123456789abcdef")]);
        let token = here.token(b"0123456789abcdef").expect("it is one");
        let book = SessionBook::new([7; 32]);
        let cookies: Vec<String> = (0..OUT_MAX as u64 + 2).map(|at| book.begin(token, at, 0)).collect();
        cookies.iter().for_each(|cookie| book.end(cookie.as_bytes()));
        let is_out = |cookie: &String| book.who(cookie.as_bytes(), &here, 0).is_none();
        assert!(cookies.iter().all(is_out));
        // Nobody else is, but for those that end no later than the last that is forgotten.
        let other = |at| book.begin(token, at, 1);
        assert!(is_out(&other(1)) && !is_out(&other(2)));
        assert_eq!(*book.ended().borrow(), OUT_MAX as u64 + 2);
    }
}
