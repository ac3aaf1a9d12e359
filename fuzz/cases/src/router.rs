//! Any routes, and any requests for them: whose a request is, asked in two ways.

use std::sync::Arc;

use evenkeel::config::model::route::{FieldMatch, FieldTest, HostPattern, PathPattern};
use evenkeel::config::model::{RouteConfig, Wildcard};
use evenkeel::message::Head;
use evenkeel::proxy::http::h1::parse;
use evenkeel::route::{Asked, Router, path_form};
use evenkeel::tls::CertificateFacts;
use ipnet::IpNet;
use regex::bytes::Regex;

use crate::naive;
use crate::ours::HEADERS;

const HOSTS: &[&str] =
    &["a", "b.a", "c.b.a", "*.a", "*.b.a", "a:80", "*.a:80", "*.b.a:81", "[::1]", "[::1]:80", "1.2.3.4"];
const PATHS: &[&str] = &[
    "",
    "/",
    "/x",
    "/x/y",
    "/x/y/z",
    "/xy",
    "/x//y",
    "/x;p",
    "=/",
    "=/x",
    "=/x/y",
    "=/x%2Fy",
    "=/x/",
    "~^/x",
    "~y$",
    "~^/x/[^/]+$",
    "~;",
];
const METHODS: &[&str] = &["GET", "POST", "get"];
const NAMES: &[&str] = &["q", "r", "x-a", "Q"];
const VALUES: &[&str] = &["1", "", "a b", "1, 2", "a;b"];
const EXPRESSIONS: &[&str] = &["^1$", "b", "^$", "."];
const NETWORKS: &[&str] = &["10.0.0.0/8", "10.1.0.0/16", "::/0", "0.0.0.0/0", "2001:db8::/32"];
const ASKED: &[&str] = &[
    "a",
    "A.",
    "b.a",
    "c.b.a",
    "d.c.b.a",
    "x.a:80",
    "x.b.a:081",
    "a:80",
    "a:080",
    "a:",
    "ab",
    "[::1]",
    "[0:0::1]:80",
    "[::2]",
    "1.2.3.4",
    ".a",
    "z",
];
const PIECES: &[&str] =
    &["/", "x", "y", "z", "//", ".", "..", "%2F", "%78", ";p", "%252F", "%3b", "xy", "%25", "%40", "é"];
const QUERIES: &[&str] =
    &["q", "q=1", "q=%31", "%71=1", "r=a+b", "r=a%20b", "Q=", "q=1, 2", "x-a=a;b", "=", "q=%zz", "r=%2B"];
const LINES: &[&str] = &[
    "X-A: 1",
    "x-a: 1, 2",
    "X-a:",
    "Cookie: q=1",
    "cookie: r=a b; q=",
    "Cookie: x-a=1;Q=1",
    "Q: 1",
    "R: a b",
];
const CLIENTS: &[&str] = &["10.1.2.3", "10.2.2.3", "::ffff:10.1.2.3", "2001:db8::7", "192.0.2.1"];

const WILDCARDS: &[&str] = &["*", "*CN=r*", "CN=robot", "CN=*,*", "*.a", "spiffe://a/*", "*::*", "*A*"];
const SUBJECTS: &[&str] = &["", "CN=robot", "CN=robot, O=x", "O=x, CN=r2", "cn=robot"];
const ALTERNATIVES: &[&str] =
    &["b.A", "a", "x@b.a", "spiffe://a/r", "spiffe://A/r", "2001:db8::7", "192.0.2.7"];

/// Bytes that choose.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        usize::from(*first) % count
    }

    fn one(&mut self, of: &'static [&'static str]) -> &'static str {
        of[self.below(of.len())]
    }

    /// Up to `most`, often none.
    fn some(&mut self, most: usize, of: &'static [&'static str]) -> Vec<&'static str> {
        let count = self.below(2 * most + 2).saturating_sub(most);
        (0..count).map(|_| self.one(of)).collect()
    }

    fn route(&mut self, name: usize) -> RouteConfig {
        let mut route = RouteConfig { name: name.to_string(), ..RouteConfig::catch_all("t") };
        route.order = [None, None, None, Some(1), Some(2)][self.below(5)];
        let matches = &mut route.matches;
        matches.hosts = self.some(2, HOSTS).into_iter().map(host).collect();
        matches.path = path(self.one(PATHS));
        matches.methods = self.some(1, METHODS).into_iter().map(str::to_owned).collect();
        matches.headers = self.fields();
        matches.queries = self.fields();
        matches.cookies = self.fields();
        matches.headers.iter_mut().for_each(|field| field.name.make_ascii_lowercase());
        let networks = self.some(1, NETWORKS).into_iter();
        matches.clients = networks.map(|network| network.parse::<IpNet>().expect("a network")).collect();
        // Most have none, and cost one byte.
        if self.below(4) == 1 {
            let mut wildcards = || self.some(2, WILDCARDS).into_iter().map(Wildcard::new).collect();
            (matches.certificate.subjects, matches.certificate.names) = (wildcards(), wildcards());
        }
        route
    }

    fn fields(&mut self) -> Vec<FieldMatch> {
        let names = self.some(1, NAMES).into_iter();
        names.map(|name| FieldMatch { name: name.to_owned(), test: self.test() }).collect()
    }

    fn test(&mut self) -> FieldTest {
        match self.below(4) {
            0 => FieldTest::Present(self.below(2) == 0),
            1 => FieldTest::Regex(Regex::new(self.one(EXPRESSIONS)).expect("an expression")),
            _ => FieldTest::Is(vec![self.one(VALUES).to_owned(), self.one(VALUES).to_owned()]),
        }
    }

    fn certificate(&mut self) -> Option<CertificateFacts> {
        let names = |all: Vec<&str>| all.into_iter().map(Into::into).collect();
        (self.below(2) == 1).then(|| CertificateFacts {
            common_name: Box::default(),
            subject: self.one(SUBJECTS).into(),
            names: names(self.some(2, ALTERNATIVES)),
        })
    }

    fn head(&mut self) -> String {
        let mut target = "/".to_owned();
        target.extend(self.some(5, PIECES));
        if target == "/" && self.below(8) == 1 {
            target = "*".to_owned();
        }
        let query = self.some(3, QUERIES).join("&").replace(' ', "%20");
        let mark = if self.below(2) == 0 { "?" } else { "" };
        let lines: Vec<_> = self.some(3, LINES).into_iter().map(|line| format!("{line}\r\n")).collect();
        let (method, host) = (self.one(METHODS), self.one(ASKED));
        format!("{method} {target}{mark}{query} HTTP/1.1\r\nHost: {host}\r\n{}\r\n", lines.concat())
    }
}

fn host(text: &str) -> HostPattern {
    let (rest, port) = match text.rsplit_once(':') {
        Some((rest, port)) if !rest.contains(':') || rest.ends_with(']') => (rest, port.parse().ok()),
        _ => (text, None),
    };
    let suffix = rest.strip_prefix("*.");
    HostPattern { name: suffix.unwrap_or(rest).to_owned(), is_suffix: suffix.is_some(), port }
}

fn path(text: &str) -> PathPattern {
    match text.split_at(text.len().min(1)) {
        ("", _) => PathPattern::Any,
        ("=", exact) => PathPattern::Exact(exact.to_owned()),
        ("~", regex) => PathPattern::Regex(Regex::new(regex).expect("an expression")),
        _ => PathPattern::Prefix(text.to_owned()),
    }
}

/// Bytes that choose routes and requests: the router and a naive one agree on whose each request is. It refuses one only for a path that has
/// several readings, and none that nobody has.
pub fn router(bytes: &[u8]) {
    let mut choices = Choices(bytes);
    let count = 1 + choices.below(12);
    let routes: Vec<_> = (0..count).map(|name| Arc::new(choices.route(name))).collect();
    let default = [None, Some("a"), Some("b.a"), Some("z")][choices.below(4)];
    let router = Router::new(&routes, default);
    while !choices.0.is_empty() {
        let text = choices.head();
        let client = choices.one(CLIENTS).parse().ok();
        let certificate = choices.certificate();
        let mut head = Head::new();
        if parse::request(text.as_bytes(), HEADERS, &mut head).is_err() {
            continue;
        }
        let sent = head.path().split(|&byte| byte == b'?').next().unwrap_or_default();
        let Ok(path) = path_form::form(sent, &Default::default()) else { continue };
        let asked = Asked { head: &head, path: &path, client, certificate: certificate.as_ref() };
        let wanted = naive::find(&routes, default, &asked);
        match router.find(&asked) {
            Ok(found) => assert_eq!(found, wanted, "{text}"),
            Err(_) => {
                let has_marks =
                    path.windows(2).any(|pair| matches!(pair, b"//" | [b';' | b'%', _] | [_, b';']));
                assert!(has_marks && wanted.is_some(), "{text}");
            }
        }
    }
}
