//! Which route has a request, as a table: `fixtures/routing/*.yaml` are configs as anybody writes them, whose `x-requests` say for each
//! request whose it is. They go through the real loader, the real parser and the real decision; there are no sockets.
//!
//! A line is `METHOD HOST TARGET | Header: value | from ADDRESS -> OUTCOME`. A `-` for the host: an HTTP/1.0 request without one. Nobody says where it is from: 192.0.2.1. The outcome is
//! the name of a route, or what the client gets: 400 for a path or a head that is refused, 403 from `access`, 404 without a route.

use std::net::IpAddr;
use std::path::Path;

use evenkeel::access::{AddressRules, RuleStock};
use evenkeel::config::model::ListenerConfig;
use evenkeel::config::{self, Flags};
use evenkeel::message::Head;
use evenkeel::proxy::http::h1::parse;
use evenkeel::proxy::http::hash_key::Sender;
use evenkeel::proxy::http::routing::found::{find, known};
use evenkeel::proxy::http::routing::recent::RecentRoutes;
use evenkeel::route::{Asked, Router, path_form};
use evenkeel::snapshot::Snapshots;

/// A line of a table.
struct Row<'a> {
    head: Vec<u8>,
    from: Option<IpAddr>,
    outcome: &'a str,
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Option<Row<'a>> {
        let (asked, outcome) = line.rsplit_once(" -> ")?;
        let mut parts = asked.split(" | ").map(str::trim);
        let [method, host, target] = parts.next()?.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        let mut head = match host {
            "-" => format!("{method} {target} HTTP/1.0\r\n"),
            host => format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", host.trim_matches('"')),
        };
        let mut from = "192.0.2.1".parse().ok();
        for part in parts {
            match part.strip_prefix("from ") {
                Some("unix") => from = None,
                Some(address) => from = Some(address.parse().ok()?),
                None => head.extend([part, "\r\n"]),
            }
        }
        head.push_str("\r\n");
        Some(Row { head: head.into_bytes(), from, outcome: outcome.trim() })
    }
}

/// What becomes of a request at this listener.
fn outcome(listener: &ListenerConfig, router: &Router, row: &Row<'_>) -> String {
    let mut head = Head::new();
    if parse::request(&row.head, listener.limits.headers, &mut head).is_err() {
        return "400".to_owned();
    }
    let sent = head.path().split(|&byte| byte == b'?').next().unwrap_or_default();
    let Ok(path) = path_form::form(sent, &listener.normalize) else { return "400".to_owned() };
    let asked = Asked { head: &head, path: &path, client: row.from, certificate: None };
    let route = match router.find(&asked) {
        Ok(Some(place)) => &listener.routes[place],
        Ok(None) => return "404".to_owned(),
        Err(_) => return "400".to_owned(),
    };
    let rules = AddressRules::new(&route.access, &mut RuleStock::default());
    match rules.refusal(asked.client) {
        Some(rule) => rule.list.status.map_or_else(|| "drop".to_owned(), |status| status.to_string()),
        None => route.name.clone(),
    }
}

/// The lines of `x-requests`, with their numbers in the file.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with("x-requests: |"));
    let lines = lines.skip(1).map(|(number, line)| (number + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn each_request_of_the_table_has_the_route_that_the_table_says() {
    let (mut rows, mut wrong) = (0, Vec::new());
    let folder = std::fs::read_dir("fixtures/routing").expect("the folder of fixtures");
    for entry in folder {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let file = path.display();
        let loaded = config::load(Some(Path::new(&path)), &Flags::default(), &|_| None)
            .unwrap_or_else(|problems| panic!("{problems}"));
        let [listener] = &loaded.config.listeners[..] else { panic!("{file}: one listener") };
        let router = Router::new(&listener.routes, listener.default_host.as_deref());
        for (number, line) in lines(&text) {
            let row = Row::read(line).unwrap_or_else(|| panic!("{file}:{number}: no row: {line}"));
            let found = outcome(listener, &router, &row);
            if found != row.outcome {
                wrong.push(format!("{file}:{number}: {line}, but it is {found}"));
            }
            rows += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {rows} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rows >= 400, "{rows} rows");
}

/// The route that is remembered has to be the one that would be found, whoever has asked for the same host and path before: each request is
/// asked several times, and in between one that has nothing else of it.
#[test]
fn what_is_remembered_is_what_would_be_found() {
    let (mut remembered, mut differ) = (0, 0);
    for entry in std::fs::read_dir("fixtures/routing").expect("the folder of fixtures") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let loaded = config::load(Some(Path::new(&path)), &Flags::default(), &|_| None).expect("a config");
        let draft = Snapshots::new().prepare(&loaded.config);
        let listener = &draft.snapshot().listeners[0];
        let recent = RecentRoutes::default();
        let mut ask = |line: &str, bytes: &[u8], from: Option<IpAddr>| {
            let mut head = Head::new();
            if parse::request(bytes, listener.config.limits.headers, &mut head).is_err() {
                return None;
            }
            let sender = Sender { peer: from, trusted: false, kind: listener.config.forwarded };
            let name = |recent| match find(listener, &head, sender, None, recent) {
                Ok(found) => found.route.config.name.clone(),
                Err(unrouted) => unrouted.cause.token().to_owned(),
            };
            let expected = name(None);
            if let Some(route) = known(listener, &head, &sender, None, &recent) {
                assert_eq!(route.config.name, expected, "{}: {line}", path.display());
                remembered += 1;
            }
            assert_eq!(name(Some(&recent)), expected);
            Some(expected)
        };
        let rows: Vec<(&str, Row<'_>)> =
            lines(&text).filter_map(|(_, line)| Some((line, Row::read(line)?))).collect();
        for (line, row) in rows.iter().chain(rows.iter().rev()) {
            let is_first =
                |line: &&[u8]| !line.contains(&b':') || line.to_ascii_lowercase().starts_with(b"host:");
            let lines: Vec<&[u8]> = row.head.split(|&byte| byte == b'\n').collect();
            let bare = lines.iter().copied().filter(is_first).collect::<Vec<_>>().join(&b'\n');
            let found = [(&row.head, row.from), (&bare, None), (&row.head, row.from), (&bare, row.from)]
                .map(|(bytes, from)| ask(line, bytes, from));
            differ += usize::from(found[0] != found[1]);
        }
    }
    assert!(
        remembered > 1_000 && differ > 50,
        "{remembered} were remembered, {differ} differ without conditions"
    );
}
