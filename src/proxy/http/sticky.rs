//! Sticky sessions: which backend a client's cookie names, and telling the client of another one.
//!
//! What the cookie holds is made and read by [`Pins`]; here is what HTTP adds: RFC 6265 on the way in and on the way
//! out. It works on heads, whatever protocol the client speaks.

use std::sync::Arc;

use crate::message::Head;
use crate::targets::{Backend, Pins, Target};

use crate::message::cookie::cookies;

/// The backend that the request's cookie names, for a target that has sticky sessions.
///
/// A user agent sends every cookie of that name that fits the path (RFC 6265 §5.4), so one of another application may
/// stand in front of ours: the first that is known counts.
#[inline]
#[must_use]
pub fn pin<'a>(target: &'a Target, head: &Head) -> Option<&'a Arc<Backend>> {
    target.pins.as_ref().and_then(|pins| named(pins, head))
}

#[inline(never)]
fn named<'a>(pins: &'a Pins, head: &Head) -> Option<&'a Arc<Backend>> {
    cookies(head, pins.cookie()).into_iter().find_map(|value| pins.find(unquoted(value)))
}

/// Some clients put quotes around what they were given without.
fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value)
}

/// Makes the answer of `backend` tell the client its name, unless its cookie named that one already.
///
/// A backend's own cookie of that name is left alone. Caches that many clients share must not give one client's
/// cookie to others, and they may store an answer in spite of its Set-Cookie (RFC 9111 §7.3); one whose backend says
/// nothing about caches is marked `private`.
#[inline(never)]
pub fn tell(answer: &mut Head, pins: &Pins, pin: Option<&Arc<Backend>>, backend: &Backend, secured: bool) {
    if pin.is_some_and(|pin| pin.id == backend.id) || sets(answer, pins.cookie()) {
        return;
    }
    let Some(value) = pins.value_of(backend.id) else { return };
    let secure = if secured { "; Secure" } else { "" };
    let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}", pins.cookie());
    answer.push(b"Set-Cookie", cookie.as_bytes());
    // A 101 is stored by nobody.
    if answer.status != 101 && answer.named("cache-control").is_none() {
        answer.push(b"Cache-Control", b"private");
    }
}

/// Whether an answer sets the cookie `name` (RFC 6265 §5.2: the name ends at the first `=`).
fn sets(answer: &Head, name: &str) -> bool {
    answer.lines().iter().map(|line| answer.pair(line)).any(|(field, value)| {
        field.eq_ignore_ascii_case(b"set-cookie") && {
            let end = memchr::memchr2(b';', b'=', value).filter(|&end| value[end] == b'=');
            end.is_some_and(|end| value[..end].trim_ascii() == name.as_bytes())
        }
    })
}
