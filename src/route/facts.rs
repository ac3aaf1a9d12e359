//! What texts with variables are filled in with.
//!
//! Every value is bytes of the wire as they came: nothing is decoded. What may go where a text stands is the business of `render`.

use std::cell::OnceCell;
use std::io::Write as _;
use std::net::IpAddr;

use regex::bytes::Regex;

use crate::config::model::text::{Text, TextPiece, Variable};
use crate::message::Head;
use crate::message::cookie::cookie;
use crate::message::proxy_header::ToldLines;

/// Groups of an expression that have a name.
const GROUPS: usize = 9;

/// What is known of a request when a text is filled in.
#[derive(Debug)]
pub struct TextFacts<'a> {
    /// Its head, as the client sent it.
    pub head: &'a Head,
    /// What `$1` to `$9` are.
    pub groups: Groups<'a>,
    /// The client's address, as trusted proxies tell it; `None` on a unix socket.
    pub client: Option<IpAddr>,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The request's number.
    pub id: u128,
    /// The target's name; empty: it goes to none.
    pub target: &'a str,
    /// The backend's name; empty: there is none, or not yet.
    pub backend: &'a str,
    /// The version of TLS with the client; empty: there is none.
    pub tls: &'a str,
    /// The subject of the client's certificate; empty: it showed none.
    pub subject: &'a str,
    /// Who the client has shown to be; empty: it has not.
    pub user: &'a str,
    /// What a balancer in front has told; `None`: nothing.
    pub told: Option<&'a ToldLines>,
}

/// What the groups of a route's `path_regex` found in a path. It is not looked for before somebody asks.
#[derive(Debug, Default)]
pub struct Groups<'a> {
    regex: Option<&'a Regex>,
    path: &'a [u8],
    found: OnceCell<[&'a [u8]; GROUPS]>,
}

impl<'a> Groups<'a> {
    /// Those of `regex` in the path that was matched.
    #[must_use]
    pub fn of(regex: &'a Regex, path: &'a [u8]) -> Groups<'a> {
        Groups { regex: Some(regex), path, found: OnceCell::new() }
    }

    /// What a group found, 1 to 9; empty: nothing, or there is no such group.
    #[must_use]
    pub fn get(&self, number: u8) -> &'a [u8] {
        let found = self.found.get_or_init(|| {
            let mut groups = [&[][..]; GROUPS];
            if let Some(captures) = self.regex.and_then(|regex| regex.captures(self.path)) {
                for (place, group) in groups.iter_mut().enumerate() {
                    *group = captures.get(place + 1).map(|group| group.as_bytes()).unwrap_or_default();
                }
            }
            groups
        });
        usize::from(number).checked_sub(1).and_then(|place| found.get(place)).copied().unwrap_or_default()
    }
}

impl TextFacts<'_> {
    /// Appends a text with all that is filled in, as it is.
    pub fn push(&self, text: &Text, out: &mut Vec<u8>) {
        for piece in text.pieces() {
            match piece {
                TextPiece::Plain(plain) => out.extend_from_slice(plain.as_bytes()),
                TextPiece::Value(variable) => self.push_value(variable, out),
            }
        }
    }

    /// Appends one value; nothing, where there is none.
    pub fn push_value(&self, variable: &Variable, out: &mut Vec<u8>) {
        let head = self.head;
        match variable {
            Variable::Host => out.extend_from_slice(head.authority()),
            Variable::Hostname => out.extend_from_slice(hostname(head.authority())),
            Variable::Path => out.extend_from_slice(head.path()),
            Variable::PathOnly => out.extend_from_slice(split(head.path()).0),
            Variable::Query => out.extend_from_slice(split(head.path()).1),
            Variable::Scheme => out.extend_from_slice(self.scheme.as_bytes()),
            Variable::Method => out.extend_from_slice(head.method()),
            // Memory takes everything.
            Variable::ClientIp => {
                let _ = self.client.map(|client| write!(out, "{}", client.to_canonical()));
            }
            Variable::Id => {
                let _ = write!(out, "{:032x}", self.id);
            }
            Variable::Target => out.extend_from_slice(self.target.as_bytes()),
            Variable::Backend => out.extend_from_slice(self.backend.as_bytes()),
            Variable::Tls => out.extend_from_slice(self.tls.as_bytes()),
            Variable::TlsClientSubject => out.extend_from_slice(self.subject.as_bytes()),
            Variable::User => out.extend_from_slice(self.user.as_bytes()),
            Variable::Proxy(fact) => {
                out.extend_from_slice(self.told.and_then(|told| told.fact(*fact)).unwrap_or_default());
            }
            Variable::Header(name) => out.extend_from_slice(head.named(name).unwrap_or_default()),
            Variable::Cookie(name) => out.extend_from_slice(cookie(head, name).unwrap_or_default()),
            Variable::Group(number) => out.extend_from_slice(self.groups.get(*number)),
        }
    }
}

/// A path, and the query behind the first `?`.
#[must_use]
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'?', path) {
        Some(mark) => (&path[..mark], &path[mark + 1..]),
        None => (path, &[]),
    }
}

/// An authority without its port. The colons of an address in brackets are no ports.
fn hostname(authority: &[u8]) -> &[u8] {
    let bracket = memchr::memrchr(b']', authority).unwrap_or(0);
    let colon = memchr::memrchr(b':', authority).filter(|&colon| colon >= bracket);
    &authority[..colon.unwrap_or(authority.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::ProxyFact;

    #[test]
    fn every_variable_is_what_stands_on_the_wire() {
        let mut head = Head::request("GET", "/a%20b/x?q=%41&r", "h.example:8080");
        head.push(b"X-One", b"first");
        head.push(b"x-one", b"second");
        head.push(b"Cookie", b"a=1; b=\"2\"");
        let regex = Regex::new("^/(a[^/]*)/(x)(y)?").expect("an expression");
        let lines =
            b"\x01\0\x02h2\x05\0\x02id\xea\0\x03vpc\x20\0\x17\x01\0\0\0\0\x21\0\x07TLSv1.3\x22\0\x05robot";
        let told = ToldLines::new(lines).expect("whole ones");
        let facts = TextFacts {
            told: Some(&told),
            head: &head,
            groups: Groups::of(&regex, b"/a%20b/x"),
            client: Some("::ffff:192.0.2.7".parse().expect("an address")),
            scheme: "https",
            id: 0xfeed,
            target: "api",
            backend: "b1",
            tls: "1.3",
            subject: "CN=robot",
            user: "anna",
        };
        let id = "0000000000000000000000000000feed";
        for (variable, value) in [
            (Variable::Host, "h.example:8080"),
            (Variable::Hostname, "h.example"),
            (Variable::Path, "/a%20b/x?q=%41&r"),
            (Variable::PathOnly, "/a%20b/x"),
            (Variable::Query, "q=%41&r"),
            (Variable::Scheme, "https"),
            (Variable::Method, "GET"),
            (Variable::ClientIp, "192.0.2.7"),
            (Variable::Id, id),
            (Variable::Target, "api"),
            (Variable::Backend, "b1"),
            (Variable::Tls, "1.3"),
            (Variable::TlsClientSubject, "CN=robot"),
            (Variable::User, "anna"),
            (Variable::Proxy(ProxyFact::Alpn), "h2"),
            (Variable::Proxy(ProxyFact::Authority), ""),
            (Variable::Proxy(ProxyFact::UniqueId), "id"),
            (Variable::Proxy(ProxyFact::Tls), "TLSv1.3"),
            (Variable::Proxy(ProxyFact::ClientName), "robot"),
            (Variable::Proxy(ProxyFact::Line(0xea)), "vpc"),
            (Variable::Proxy(ProxyFact::Line(0xeb)), ""),
            (Variable::Header("x-one".into()), "first"),
            (Variable::Header("x-two".into()), ""),
            (Variable::Cookie("b".into()), "\"2\""),
            (Variable::Cookie("c".into()), ""),
            (Variable::Group(1), "a%20b"),
            (Variable::Group(2), "x"),
            (Variable::Group(3), ""),
            (Variable::Group(9), ""),
        ] {
            let mut out = Vec::new();
            facts.push_value(&variable, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), value, "{variable:?}");
        }
    }

    #[test]
    fn a_port_is_cut_off_and_nothing_else() {
        for (authority, name) in [
            ("h", "h"),
            ("h:80", "h"),
            ("h:", "h"),
            ("[::1]", "[::1]"),
            ("[::1]:80", "[::1]"),
            ("", ""),
            (":80", ""),
        ] {
            assert_eq!(hostname(authority.as_bytes()), name.as_bytes(), "{authority}");
        }
    }
}
