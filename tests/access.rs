//! Who may come in by address, listener and route together: `fixtures/access/levels.yaml` has a table of it. Its config goes through
//! the real loader, and each case through the decision that the data path and `explain` share; there are no sockets.

use std::path::Path;
use std::sync::Arc;

use evenkeel::config::model::{Config, SampleRequest};
use evenkeel::config::{self, Flags};
use evenkeel::decision::{Destiny, decide};
use evenkeel::snapshot::{Listener, Snapshot};

const TABLE: &str = "fixtures/access/levels.yaml";

/// A line of the table.
struct Case<'a> {
    request: SampleRequest,
    outcome: &'a str,
}

impl<'a> Case<'a> {
    fn read(line: &'a str) -> Option<Case<'a>> {
        let (asked, outcome) = line.rsplit_once(" -> ")?;
        let (asked, client) =
            asked.split_once(" for ").map_or((asked, None), |(asked, client)| (asked, Some(client)));
        let [listener, path, peer] = asked.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let mut request = SampleRequest::new("GET", &format!("http://h{path}")).ok()?;
        request.listener = Some(listener.to_owned());
        request.from = peer.parse().ok()?;
        if let Some(client) = client {
            request.add_line(&format!("X-Forwarded-For: {client}")).ok()?;
        }
        Some(Case { request, outcome })
    }

    /// What becomes of it: the route that has it, or the status, or `drop`.
    fn outcome(&self, listeners: &[Arc<Listener>]) -> String {
        let chain = decide(listeners, &self.request).unwrap_or_else(|nobody| panic!("{nobody}"));
        match chain.verdict {
            Destiny::Forwarded { .. } | Destiny::PassedThrough { .. } => {
                chain.route.expect("a route leads there")
            }
            Destiny::Answered { status, .. } => status.to_string(),
            Destiny::Dropped => "drop".to_owned(),
        }
    }
}

fn table() -> (Config, String) {
    let text = std::fs::read_to_string(TABLE).expect("the table");
    let loaded = config::load(Some(Path::new(TABLE)), &Flags::default(), &|_| None);
    (loaded.unwrap_or_else(|problems| panic!("{problems}")).config, text)
}

/// The cases, with their lines.
fn cases(text: &str) -> Vec<(usize, &str, Case<'_>)> {
    let lines = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with("x-cases: |")).skip(1);
    let lines = lines.map(|(number, line)| (number + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let case = |(number, line)| {
        (number, line, Case::read(line).unwrap_or_else(|| panic!("{TABLE}:{number}: no case: {line}")))
    };
    lines.map(case).collect()
}

#[test]
fn each_case_of_the_table_comes_to_what_the_table_says() {
    let (config, text) = table();
    let snapshot = Snapshot::of(&config);
    let cases = cases(&text);
    let wrong = cases.iter().filter_map(|(number, line, case)| {
        let found = case.outcome(&snapshot.listeners);
        (found != case.outcome).then(|| format!("{TABLE}:{number}: {line}, but it is {found}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(cases.len() >= 40, "{} cases", cases.len());
}

/// Whatever the table says: a case is let through where the listener alone lets it through and the route alone does, and what
/// refuses it first says how.
#[test]
fn no_route_opens_what_its_listener_has_closed() {
    let (config, text) = table();
    let (mut of_listeners, mut of_routes) = (config.clone(), config.clone());
    for listener in &mut of_listeners.listeners {
        for route in &mut listener.routes {
            Arc::make_mut(route).access.clear();
        }
    }
    of_routes.listeners.iter_mut().for_each(|listener| listener.access.clear());
    let [whole, by_listener, by_route] =
        [&config, &of_listeners, &of_routes].map(|config| Snapshot::of(config).listeners.clone());
    let mut widened = 0;
    for (_, line, case) in cases(&text) {
        let [whole, by_listener, by_route] =
            [&whole, &by_listener, &by_route].map(|listeners| case.outcome(listeners));
        let is_let_in =
            |outcome: &str| outcome.starts_with(|sign: char| sign.is_ascii_lowercase()) && outcome != "drop";
        let expected = if is_let_in(&by_listener) { &by_route } else { &by_listener };
        assert_eq!(&whole, expected, "{line}: by its listener {by_listener}, by its route {by_route}");
        widened += usize::from(!is_let_in(&by_listener) && is_let_in(&by_route));
    }
    assert!(widened >= 10, "in {widened} cases a route lets in whom its listener does not");
}

#[test]
fn who_asks_what_would_become_of_a_request_is_told_which_list_decides() {
    let (config, _) = table();
    let snapshot = Snapshot::of(&config);
    for (case, told) in [
        ("narrow /all 203.0.113.1 -> 404", "access   does not let the client in: `offices` of the listener"),
        ("narrow /one 10.1.1.1 -> 451", "access   does not let the client in: a list of the route"),
        ("both /none 192.0.2.66 -> 401", "access   does not let the client in: `bad` of the listener"),
        ("narrow /plain 10.1.1.1 -> plain", "access   lets the client in"),
    ] {
        let case = Case::read(case).expect("a case");
        let chain = decide(&snapshot.listeners, &case.request).expect("a listener");
        assert!(chain.lines().iter().any(|line| line == told), "{told}: {:?}", chain.lines());
    }
    let open = Case::read("open /plain 203.0.113.1 -> plain").expect("a case");
    let chain = decide(&snapshot.listeners, &open.request).expect("a listener");
    assert!(!chain.lines().iter().any(|line| line.starts_with("access")), "{:?}", chain.lines());
}
