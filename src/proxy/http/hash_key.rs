//! What of a request decides which backend it goes to, where its target hashes.

use std::net::{IpAddr, SocketAddr};

use memchr::memmem;

use crate::config::model::{Forwarded, HashKey};
use crate::message::{Head, HeaderField};
use crate::targets::hash;
use crate::targets::hash_address;

use crate::message::cookie::cookie;

/// Most proxies that are followed from one to the next, empty items of their lists included.
const HOPS: usize = 64;
/// Most bytes of Forwarded that are read: quotes can only be told from the left, so all of it must be.
const FORWARDED: usize = 4 * 1024;

/// Who sent a request, as far as it can be known.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// The address that the connection came from; `None`: a unix socket.
    pub peer: Option<IpAddr>,
    /// It may speak for its clients.
    pub trusted: bool,
    /// In which words it is expected to; the others are taken where these are absent.
    pub kind: Forwarded,
}

/// The hash of what `by` names in a request; of the client's address where there is no such thing, or it is empty; where nobody knows
/// that, of the address of the proxy that does not tell it. `None`: there is no address either.
///
/// `trusts` tells whether an address is that of a proxy that may speak for its clients.
#[cold]
#[inline(never)]
pub fn hash_key(by: &HashKey, head: &Head, sender: Sender, trusts: impl Fn(IpAddr) -> bool) -> Option<u64> {
    let found = match by {
        HashKey::ClientIp => None,
        HashKey::Path => Some(split(head).0),
        HashKey::Query => Some(split(head).1),
        HashKey::Parameter(name) => parameter(split(head).1, name.as_bytes()),
        HashKey::Header(name) => head.named(name),
        HashKey::Cookie(name) => cookie(head, name),
    };
    match found.filter(|found| !found.is_empty()) {
        Some(found) => Some(hash(found)),
        None => nearest(head, sender, trusts).address.map(hash_address),
    }
}

/// The path and the query, without the question mark between them.
fn split(head: &Head) -> (&[u8], &[u8]) {
    let path = head.path();
    match memchr::memchr(b'?', path) {
        Some(mark) => (&path[..mark], &path[mark + 1..]),
        None => (path, &[]),
    }
}

/// The value of the first parameter called `name`, as it was written.
fn parameter<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    // Parameters may be as short as a byte: only what reads like the name is looked at.
    memmem::find_iter(query, name).find_map(|at| {
        let is_first = matches!(query[..at].last(), None | Some(b'&'));
        match &query[at + name.len()..] {
            [] | [b'&', ..] if is_first => Some(&[][..]),
            [b'=', value @ ..] if is_first => {
                Some(&value[..memchr::memchr(b'&', value).unwrap_or(value.len())])
            }
            _ => None,
        }
    })
}

/// The address of the client. `None`: nobody knows it. The connection is one of a unix socket, or a trusted proxy says that it comes from
/// somebody else and not from whom, in words that can be read: the address of that proxy would be a lie.
#[inline(always)]
pub fn client(head: &Head, sender: Sender, trusts: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    // Most clients come by themselves.
    if sender.trusted { told_client(head, sender, trusts) } else { sender.peer }
}

#[inline(never)]
fn told_client(head: &Head, sender: Sender, trusts: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    nearest(head, sender, trusts).client()
}

/// As near to a client as one gets.
pub struct Nearest {
    /// The client's address, or that of the proxy that does not tell it.
    pub address: Option<IpAddr>,
    /// It is the client's.
    is_client: bool,
}

impl Nearest {
    /// The address, if it is the client's.
    #[must_use]
    pub fn client(&self) -> Option<IpAddr> {
        self.address.filter(|_| self.is_client)
    }
}

/// Follows what trusted proxies say from right to left, from the nearest proxy on, up to the first address that is not a trusted
/// proxy's own: what stands left of it anybody may have written. It ends as well where a proxy does not tell: then nobody behind it can
/// be asked.
pub fn nearest(head: &Head, sender: Sender, trusts: impl Fn(IpAddr) -> bool) -> Nearest {
    let Sender { mut peer, trusted, kind } = sender;
    let fields = match kind {
        Forwarded::Rfc7239 => [HeaderField::Forwarded, HeaderField::XForwardedFor],
        Forwarded::XForwarded | Forwarded::Off => [HeaderField::XForwardedFor, HeaderField::Forwarded],
    };
    let field = if trusted { fields.into_iter().find(|&field| head.has(field)) } else { None };
    // A proxy that says nothing of others asks for itself.
    let Some(field) = field else { return Nearest { address: peer, is_client: true } };
    let lines = head.lines().iter().rev().filter(|line| line.field == field);
    let mut values = lines.map(|line| head.at(line.value()));
    // Of a list with nothing in it, or one of which the end is not looked at, nobody knows whose it is.
    let mut is_client = false;
    // `unknown`, a name, or nothing: this proxy does not tell.
    let mut ends_at = |node: Option<&[u8]>| {
        let told = node.and_then(address);
        is_client = told.is_some();
        peer = told.or(peer);
        told.is_none_or(|address| !trusts(address))
    };
    if field == HeaderField::Forwarded {
        let mut room = FORWARDED;
        let _ = values.any(|value| {
            let left = room.checked_sub(value.len());
            room = left.unwrap_or_default();
            match left.and_then(|_| quoted_split(value, b',')) {
                Some(elements) => elements.into_iter().rev().any(|element| ends_at(forwarded_for(element))),
                None => ends_at(None),
            }
        });
    } else {
        // X-Forwarded-For knows no quotes: one that a client opened must not swallow what proxies added.
        let mut items = values.flat_map(from_the_right);
        let mut hops = items.by_ref().take(HOPS).map(<[u8]>::trim_ascii).filter(|item| !item.is_empty());
        // So many proxies there are not.
        if !hops.any(|item| ends_at(Some(item))) && items.next().is_some() {
            ends_at(None);
        }
    }
    Nearest { address: peer, is_client }
}

/// The items of a list with commas, empty ones too, the last one first. Nothing is looked at before it is asked for.
fn from_the_right(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(list);
    std::iter::from_fn(move || {
        let list = rest?;
        let comma = memchr::memrchr(b',', list);
        rest = comma.map(|comma| &list[..comma]);
        Some(comma.map_or(list, |comma| &list[comma + 1..]))
    })
}

/// The value of `for` in one element of Forwarded (RFC 7239 §4), without quotes.
fn forwarded_for(element: &[u8]) -> Option<&[u8]> {
    quoted_split(element, b';')?.into_iter().find_map(|pair| {
        let equals = memchr::memchr(b'=', pair)?;
        let value = &pair[equals + 1..];
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        pair[..equals].eq_ignore_ascii_case(b"for").then_some(value)
    })
}

/// The parts of `text` between separators that stand outside of quoted strings, trimmed; empty ones are left out
/// (RFC 9110 §5.6.1). `None`: a string does not end, so it can't be told who wrote what.
fn quoted_split(text: &[u8], separator: u8) -> Option<Vec<&[u8]>> {
    let (mut quoted, mut escaped) = (false, false);
    let parts = text.split(|&byte| {
        let was_escaped = std::mem::take(&mut escaped);
        match byte {
            b'"' if !was_escaped => quoted = !quoted,
            b'\\' if quoted && !was_escaped => escaped = true,
            _ => {}
        }
        byte == separator && !quoted
    });
    let parts = parts.map(<[u8]>::trim_ascii).filter(|part| !part.is_empty()).collect();
    (!quoted).then_some(parts)
}

/// An address as proxies write it: bare, or with a port; IPv6 also in brackets.
fn address(node: &[u8]) -> Option<IpAddr> {
    /// None is longer than this.
    const LONGEST: usize = 64;
    let text = std::str::from_utf8(Some(node).filter(|node| node.len() <= LONGEST)?).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PEER: Sender = Sender {
        peer: Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1))),
        trusted: true,
        kind: Forwarded::XForwarded,
    };

    fn head(target: &str, lines: &[(&str, &str)]) -> Head {
        let mut head = Head::request("GET", target, "h");
        for (name, value) in lines {
            head.push(name.as_bytes(), value.as_bytes());
        }
        head
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Proxies live in 10.0.0.0/8.
    fn trusts(address: IpAddr) -> bool {
        matches!(address.to_canonical(), IpAddr::V4(v4) if v4.octets()[0] == 10)
    }

    fn key(by: HashKey, head: &Head) -> Option<u64> {
        hash_key(&by, head, PEER, trusts)
    }

    #[test]
    fn each_key_is_the_bytes_that_it_names() {
        let lines =
            [("X-Tenant", "blue"), ("x-tenant", "red"), ("Cookie", "a=1; sid=s1"), ("cookie", "sid=s2")];
        let head = head("/shop/x?b=2&id=7%20&id=8", &lines);
        for (by, value) in [
            (HashKey::Path, "/shop/x"),
            (HashKey::Query, "b=2&id=7%20&id=8"),
            (HashKey::Parameter("id".into()), "7%20"),
            (HashKey::Parameter("b".into()), "2"),
            (HashKey::Header("x-tenant".into()), "blue"),
            (HashKey::Cookie("sid".into()), "s1"),
        ] {
            assert_eq!(key(by.clone(), &head), Some(hash(value.as_bytes())), "{by:?}");
        }
    }

    #[test]
    fn the_client_stands_in_for_what_is_not_there() {
        let address = Some(hash_address(ip("10.0.0.1")));
        for target in ["/", "/?", "/?id", "/?id=", "/?id=&id=5", "/?xid=5", "/?ID=5"] {
            let head = head(target, &[("x-tenant", ""), ("cookie", "sid=")]);
            for by in [
                HashKey::ClientIp,
                HashKey::Parameter("id".into()),
                HashKey::Header("x-tenant".into()),
                HashKey::Header("x-other".into()),
                HashKey::Cookie("sid".into()),
            ] {
                assert_eq!(key(by.clone(), &head), address, "{by:?} of {target}");
            }
        }
        assert_eq!(key(HashKey::Query, &head("/?", &[])), address);
        let nobody = Sender { peer: None, trusted: false, kind: Forwarded::XForwarded };
        assert_eq!(hash_key(&HashKey::ClientIp, &head("/", &[]), nobody, trusts), None);
        assert!(hash_key(&HashKey::Path, &head("/", &[]), nobody, trusts).is_some());
    }

    #[test]
    fn a_client_in_either_form_is_one_client() {
        assert_eq!(hash_address(ip("::ffff:192.0.2.1")), hash_address(ip("192.0.2.1")));
        assert_ne!(hash_address(ip("192.0.2.1")), hash_address(ip("192.0.2.2")));
    }

    #[test]
    fn a_trusted_proxy_speaks_for_its_client() {
        for (lines, expected) in [
            (&[][..], "10.0.0.1"),
            (&[("X-Forwarded-For", "192.0.2.7")], "192.0.2.7"),
            (&[("X-Forwarded-For", "6.6.6.6, 192.0.2.7, 10.1.1.1 ,10.2.2.2")], "192.0.2.7"),
            (
                &[
                    ("X-Forwarded-For", "6.6.6.6"),
                    ("X-Forwarded-For", "192.0.2.7"),
                    ("X-Forwarded-For", "10.1.1.1"),
                ],
                "192.0.2.7",
            ),
            (&[("X-Forwarded-For", "10.3.3.3, 10.2.2.2")], "10.3.3.3"),
            (&[("X-Forwarded-For", "6.6.6.6, ,")], "6.6.6.6"),
            (&[("X-Forwarded-For", "192.0.2.7:4711")], "192.0.2.7"),
            (&[("X-Forwarded-For", "2001:db8::7")], "2001:db8::7"),
            (&[("X-Forwarded-For", "[2001:db8::7]:4711")], "2001:db8::7"),
            (&[("X-Forwarded-For", "[2001:db8::7]")], "2001:db8::7"),
            (&[("Forwarded", "for=6.6.6.6, For=192.0.2.7;proto=https, by=x;for=10.1.1.1")], "192.0.2.7"),
            (&[("Forwarded", "for=\"[2001:db8::7]:80\";host=\"a,b;for=1.1.1.1\"")], "2001:db8::7"),
            (&[("Forwarded", "for=6.6.6.6"), ("X-Forwarded-For", "192.0.2.7")], "192.0.2.7"),
        ] {
            let head = head("/", lines);
            assert_eq!(client(&head, PEER, trusts), Some(ip(expected)), "{lines:?}");
        }
    }

    #[test]
    fn whom_a_trusted_proxy_does_not_tell_nobody_knows_and_no_proxy_stands_in_but_for_a_hash() {
        let many = |last: &str| format!("{last}, {}", vec!["10.1.1.1"; HOPS].join(", "));
        let (far, empty) = (many("192.0.2.7"), format!("192.0.2.7{}", ",".repeat(HOPS)));
        let long = format!("for=192.0.2.7;x=\"{}\"", "x".repeat(FORWARDED));
        for (lines, proxy) in [
            (&[("X-Forwarded-For", "unknown")][..], "10.0.0.1"),
            (&[("X-Forwarded-For", "6.6.6.6, unknown, 10.2.2.2")], "10.2.2.2"),
            (&[("X-Forwarded-For", "10.3.3.3, no address")], "10.0.0.1"),
            (&[("X-Forwarded-For", "10.3.3.3, 1.2.3")], "10.0.0.1"),
            (&[("X-Forwarded-For", "10.3.3.3, \"10.2.2.2\"")], "10.0.0.1"),
            (&[("X-Forwarded-For", "10.3.3.3"), ("X-Forwarded-For", "_hidden")], "10.0.0.1"),
            (&[("X-Forwarded-For", "")], "10.0.0.1"),
            (&[("X-Forwarded-For", " , ")], "10.0.0.1"),
            (&[("X-Forwarded-For", &far)], "10.1.1.1"),
            (&[("X-Forwarded-For", &empty)], "10.0.0.1"),
            (&[("Forwarded", "for=6.6.6.6, for=_hidden")], "10.0.0.1"),
            (&[("Forwarded", "for=unknown, for=10.2.2.2")], "10.2.2.2"),
            (&[("Forwarded", "")], "10.0.0.1"),
            (&[("Forwarded", "proto=https")], "10.0.0.1"),
            (&[("Forwarded", "for=6.6.6.6;a=\", for=192.0.2.7;host=\"h\"")], "10.0.0.1"),
            (&[("Forwarded", &long)], "10.0.0.1"),
        ] {
            let head = head("/", lines);
            assert_eq!(client(&head, Sender { kind: Forwarded::Off, ..PEER }, trusts), None, "{lines:?}");
            assert_eq!(key(HashKey::ClientIp, &head), Some(hash_address(ip(proxy))), "{lines:?}");
        }
    }

    #[test]
    fn the_words_that_the_listener_uses_come_first() {
        let head = head("/", &[("X-Forwarded-For", "192.0.2.7"), ("Forwarded", "for=192.0.2.8")]);
        let of = |kind| client(&head, Sender { kind, ..PEER }, trusts);
        assert_eq!(of(Forwarded::Rfc7239), Some(ip("192.0.2.8")));
        assert_eq!([Forwarded::XForwarded, Forwarded::Off].map(of), [Some(ip("192.0.2.7")); 2]);
    }

    #[test]
    fn a_stranger_speaks_for_nobody() {
        let head = head("/", &[("X-Forwarded-For", "192.0.2.7"), ("Forwarded", "for=192.0.2.7")]);
        let stranger = Sender { peer: Some(ip("198.51.100.1")), trusted: false, kind: Forwarded::XForwarded };
        assert_eq!(client(&head, stranger, trusts), Some(ip("198.51.100.1")));
    }

    proptest! {
        #[test]
        fn whatever_is_sent_there_is_a_key(target in "/[ -~]{0,40}", value in "[ -~]{0,60}", kind in 0usize..3) {
            let lines = [("X-Forwarded-For", &*value), ("Forwarded", &*value), ("Cookie", &*value), ("x", &*value)];
            let head = head(&target, &lines);
            let sender = Sender { kind: Forwarded::ALL[kind].1, ..PEER };
            for by in [
                HashKey::ClientIp, HashKey::Path, HashKey::Query, HashKey::Parameter("a".into()),
                HashKey::Header("x".into()), HashKey::Cookie("a".into()),
            ] {
                prop_assert!(hash_key(&by, &head, sender, trusts).is_some());
            }
        }

        /// Whatever stands left of the last address that a proxy saw changes nothing.
        #[test]
        fn what_a_client_writes_itself_changes_nothing(forged in "[ -~]{0,40}") {
            let honest = head("/", &[("X-Forwarded-For", "192.0.2.7, 10.1.1.1")]);
            let value = format!("{forged}, 192.0.2.7, 10.1.1.1");
            let forged = head("/", &[("X-Forwarded-For", &value)]);
            prop_assert_eq!(client(&forged, PEER, trusts), client(&honest, PEER, trusts));
        }
    }
}
