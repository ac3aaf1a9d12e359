//! Which connections to backends carry a client's identity, and whose they are from then on.
//!
//! NTLM logs in a connection and not a request, and so may Negotiate (RFC 4559 §6): whatever comes on the connection
//! afterwards is taken for that client's. So such a connection is never shared: it is kept for the connection of the client
//! on which the handshake began, whose next requests go out on it, and is closed with it.
//!
//! `Proxy-Authorization` and `Proxy-Authenticate` do not pass, so no handshake can be made with them.

use std::cell::Cell;
use std::sync::Arc;

use crate::message::{Head, HeaderField, tokens};
use crate::proxy::pool::{Keep, Owner, Pool};
use crate::targets::{Backend, Health, Target};

/// For whom the connection of a request with this head is kept. `place`: where the number of its client's connection
/// stands; `None`: there is no such connection.
#[inline]
#[must_use]
pub fn keep(head: &Head, pool: &Pool, place: Option<&Cell<Option<Owner>>>) -> Keep {
    if head.has(HeaderField::Authorization) && asks(head) { own(pool, place) } else { Keep::Shared }
}

/// Whether an answer offers or continues such a handshake.
#[inline]
#[must_use]
pub fn is_offered(answer: &Head) -> bool {
    answer.has(HeaderField::WwwAuthenticate) && offers(answer)
}

/// That it is kept for the connection whose number stands at `place`. It gets one if it has none.
#[cold]
#[must_use]
pub fn own(pool: &Pool, place: Option<&Cell<Option<Owner>>>) -> Keep {
    let owner = place.and_then(|place| {
        place.set(place.get().or_else(|| pool.new_owner()));
        place.get()
    });
    owner.map_or(Keep::Closed, Keep::Private)
}

/// The backend that a request of `owner` goes to because a connection to it is kept for its client, if that may be used: a
/// cookie that names another one goes before it.
#[cold]
#[must_use]
pub fn pin(
    pool: &Pool,
    target: &Target,
    owner: Owner,
    cookie: Option<&Arc<Backend>>,
) -> Option<Arc<Backend>> {
    let backend = pool.kept_for(owner)?;
    let fits = backend.health() == Health::Up && backend.is_of(&target.state);
    let wanted = cookie.is_none_or(|cookie| cookie.id == backend.id);
    (fits && wanted).then_some(backend)
}

/// Whether a request carries credentials that log in its connection. There is one scheme in a line, at its beginning (RFC 9110
/// §11.6.2): no backend that keeps to that looks behind a comma.
#[inline(never)]
fn asks(head: &Head) -> bool {
    if head.repeats(HeaderField::Authorization) {
        return head.values(HeaderField::Authorization).any(logs_in);
    }
    head.value(HeaderField::Authorization).is_some_and(logs_in)
}

/// Whether these credentials, or this challenge, are of a scheme that logs in a connection.
#[inline]
fn logs_in(credentials: &[u8]) -> bool {
    // Nearly all of them are of another one, and begin with another letter.
    credentials.first().is_some_and(|first| first | 0x20 == b'n') && is_of_connection(credentials)
}

#[inline(never)]
fn is_of_connection(challenge: &[u8]) -> bool {
    [&b"ntlm"[..], b"negotiate"].into_iter().any(|name| {
        challenge.split_at_checked(name.len()).is_some_and(|(scheme, rest)| {
            scheme.eq_ignore_ascii_case(name) && rest.first().is_none_or(|next| matches!(next, b' ' | b'\t'))
        })
    })
}

/// Whether such a scheme is among the challenges of an answer: at the beginning of a line, or behind a comma. A comma may also
/// stand inside of a quoted text; a connection too many that is not shared does no harm.
#[cold]
fn offers(answer: &Head) -> bool {
    answer.values(HeaderField::WwwAuthenticate).any(|value| {
        // A long token of another scheme is not gone through byte by byte.
        if value.contains(&b',') { tokens(value).any(logs_in) } else { logs_in(value) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a request with these credentials gets a connection of its own.
    fn binding(values: &[&str]) -> bool {
        let mut head = Head::request("GET", "/", "x");
        values.iter().for_each(|value| head.push(b"authorization", value.as_bytes()));
        let pool = Pool::new(Arc::default());
        let place = Cell::new(None);
        let is_own = keep(&head, &pool, Some(&place)) != Keep::Shared;
        assert_eq!(keep(&head, &pool, None) == Keep::Closed, is_own, "{values:?}");
        assert_eq!(place.get().is_some(), is_own, "{values:?}");
        is_own
    }

    fn offered(values: &[&str]) -> bool {
        let mut answer = Head::answer(401);
        values.iter().for_each(|value| answer.push(b"WWW-Authenticate", value.as_bytes()));
        is_offered(&answer)
    }

    #[test]
    fn schemes_that_log_in_a_connection_are_known_wherever_they_stand() {
        for values in [
            &["NTLM"][..],
            &["NTLM TlRMTVNTUAABAAAA"],
            &["ntlm\tTlRM"],
            &["Negotiate YII="],
            &["nEGOTIATE"],
            &["Basic YTpi", "NTLM x"],
        ] {
            assert!(binding(values) && offered(values), "{values:?}");
        }
        for list in ["Basic realm=\"x\", Negotiate", "Basic realm=\"x\",NTLM"] {
            assert!(offered(&[list]) && !binding(&[list]), "{list}: credentials are no list");
        }
        for values in [
            &[][..],
            &["Basic NTLM"],
            &["Bearer negotiate"],
            &["NTLMv2 x"],
            &["Digest realm=\"a\", nc=1"],
            &["Digest a, b, c, d, e, f, g, h, i, j, k, l,"],
            &[""],
        ] {
            assert!(!binding(values) && !offered(values), "{values:?}");
        }
    }

    #[test]
    fn a_connection_keeps_its_number() {
        let pool = Pool::new(Arc::default());
        let (one, other) = (Cell::new(None), Cell::new(None));
        let kept = own(&pool, Some(&one));
        assert_eq!(own(&pool, Some(&one)), kept);
        assert_ne!(own(&pool, Some(&other)), kept);
    }
}
