//! What routes do with requests: rewrites, header edits, splits, answers of our own.

use super::every_key::Check;
use super::listeners::{POOL, front, of, route};
use super::*;
use crate::config::model::route::{
    Action, HeaderEdit, HeaderEdits, Respond, RetryOn, Rewrite, Split, SplitBy, SplitSide,
};
use crate::config::model::*;

/// A listener whose only route has these keys, and no `target`.
pub(super) fn acting(keys: &str) -> String {
    front("protocol: http").replace("target: web", keys)
}

/// The first route.
pub(super) fn first(config: &Config) -> &RouteConfig {
    &of(config).routes[0]
}

fn split(config: &Config) -> Option<&Split> {
    match &first(config).action {
        Action::Split(split) => Some(split),
        _ => None,
    }
}

fn answer(config: &Config) -> Option<&Respond> {
    match &first(config).action {
        Action::Respond(respond) => Some(respond),
        _ => None,
    }
}

fn set(name: &str, value: &str) -> HeaderEdit {
    HeaderEdit::Set(name.to_owned(), Text::plain(value))
}

fn add(name: &str, value: &str) -> HeaderEdit {
    HeaderEdit::Add(name.to_owned(), Text::plain(value))
}

fn remove(name: &str) -> HeaderEdit {
    HeaderEdit::Remove(name.to_owned())
}

/// A row of `every_key` for each key.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    let mut rows = edits();
    rows.extend(actions());
    rows
}

fn edits() -> Vec<(&'static str, String, Check)> {
    let both = "request: {remove: X-A}, response: {remove: X-B}";
    vec![
        ("listeners.<name>.headers", front(&format!("headers: {{{both}}}")), |c| {
            first(c).headers.request == [remove("X-A")] && first(c).headers.response == [remove("X-B")]
        }),
        ("listeners.<name>.headers.request", front("headers: {request: {remove: X-A}}"), |c| {
            first(c).headers.request == [remove("X-A")]
        }),
        ("listeners.<name>.headers.request.set", front("headers: {request: {set: {X-A: b}}}"), |c| {
            first(c).headers.request == [set("X-A", "b")]
        }),
        ("listeners.<name>.headers.request.add", front("headers: {request: {add: {X-A: b}}}"), |c| {
            first(c).headers.request == [add("X-A", "b")]
        }),
        ("listeners.<name>.headers.request.remove", front("headers: {request: {remove: [X-A, b]}}"), |c| {
            first(c).headers.request == [remove("X-A"), remove("b")]
        }),
        ("listeners.<name>.headers.response", front("headers: {response: {remove: X-A}}"), |c| {
            first(c).headers.response == [remove("X-A")]
        }),
        ("listeners.<name>.headers.response.set", front("headers: {response: {set: {X-A: b}}}"), |c| {
            first(c).headers.response == [set("X-A", "b")]
        }),
        ("listeners.<name>.headers.response.add", front("headers: {response: {add: {X-A: b}}}"), |c| {
            first(c).headers.response == [add("X-A", "b")]
        }),
        ("listeners.<name>.headers.response.remove", front("headers: {response: {remove: [X-A, b]}}"), |c| {
            first(c).headers.response == [remove("X-A"), remove("b")]
        }),
        ("listeners.<name>.routes[].headers", route(&format!("headers: {{{both}}}")), |c| {
            first(c).headers.request == [remove("X-A")] && first(c).headers.response == [remove("X-B")]
        }),
        ("listeners.<name>.routes[].headers.request", route("headers: {request: {remove: X-A}}"), |c| {
            first(c).headers.request == [remove("X-A")]
        }),
        (
            "listeners.<name>.routes[].headers.request.set",
            route("headers: {request: {set: {X-A: b}}}"),
            |c| first(c).headers.request == [set("X-A", "b")],
        ),
        (
            "listeners.<name>.routes[].headers.request.add",
            route("headers: {request: {add: {X-A: [b, 1]}}}"),
            |c| first(c).headers.request == [add("X-A", "b"), add("X-A", "1")],
        ),
        (
            "listeners.<name>.routes[].headers.request.remove",
            route("headers: {request: {remove: X-A}}"),
            |c| first(c).headers.request == [remove("X-A")],
        ),
        ("listeners.<name>.routes[].headers.response", route("headers: {response: {remove: X-A}}"), |c| {
            first(c).headers.response == [remove("X-A")]
        }),
        (
            "listeners.<name>.routes[].headers.response.set",
            route("headers: {response: {set: {X-A: b}}}"),
            |c| first(c).headers.response == [set("X-A", "b")],
        ),
        (
            "listeners.<name>.routes[].headers.response.add",
            route("headers: {response: {add: {X-A: b}}}"),
            |c| first(c).headers.response == [add("X-A", "b")],
        ),
        (
            "listeners.<name>.routes[].headers.response.remove",
            route("headers: {response: {remove: X-A}}"),
            |c| first(c).headers.response == [remove("X-A")],
        ),
        ("listeners.<name>.routes[].rewrite", route("rewrite: {path: /a}"), |c| {
            first(c).rewrite == Some(Rewrite::Path(Text::plain("/a")))
        }),
        (
            "listeners.<name>.routes[].rewrite.path",
            route("rewrite: {path: '/a{path}'}"),
            |c| matches!(&first(c).rewrite, Some(Rewrite::Path(text)) if text.source() == "/a{path}"),
        ),
        ("listeners.<name>.routes[].rewrite.strip_prefix", route("rewrite: {strip_prefix: /a/}"), |c| {
            first(c).rewrite == Some(Rewrite::Prefix { strip: "/a".into(), add: String::new() })
        }),
        ("listeners.<name>.routes[].rewrite.add_prefix", route("rewrite: {add_prefix: /v2}"), |c| {
            first(c).rewrite == Some(Rewrite::Prefix { strip: String::new(), add: "/v2".into() })
        }),
        ("listeners.<name>.routes[].retries", route("retries: off"), |c| first(c).own.attempts == Some(1)),
        ("listeners.<name>.routes[].retries.attempts", route("retries: {attempts: 4}"), |c| {
            first(c).own.attempts == Some(4) && first(c).own.retry_on.is_none()
        }),
        ("listeners.<name>.routes[].retries.on", route("retries: {on: [connect, 502-504]}"), |c| {
            first(c).own.retry_on
                == Some(RetryOn {
                    connect: true,
                    reset: false,
                    timeout: false,
                    statuses: vec![502..=504],
                    grpc: GrpcStatuses::default(),
                })
        }),
        ("listeners.<name>.routes[].hash_key", route("hash_key: path"), |c| {
            first(c).own.hash_key == Some(HashKey::Path)
        }),
        ("listeners.<name>.routes[].hash_key.header", route("hash_key: {header: X-User}"), |c| {
            first(c).own.hash_key == Some(HashKey::Header("x-user".into()))
        }),
        ("listeners.<name>.routes[].hash_key.cookie", route("hash_key: {cookie: Id}"), |c| {
            first(c).own.hash_key == Some(HashKey::Cookie("Id".into()))
        }),
        ("listeners.<name>.routes[].hash_key.query", route("hash_key: {query: u}"), |c| {
            first(c).own.hash_key == Some(HashKey::Parameter("u".into()))
        }),
        ("listeners.<name>.routes[].upgrade", route("upgrade: off"), |c| {
            first(c).own.upgrade == Some(Vec::new())
        }),
    ]
}

fn actions() -> Vec<(&'static str, String, Check)> {
    let by = |by: &str| acting(&format!("split: {{targets: {{web: 5}}, by: {by}}}"));
    vec![
        ("listeners.<name>.routes[].split", acting("split: {targets: {web: 5}}"), |c| {
            split(c).is_some_and(|split| split.by == SplitBy::Chance)
        }),
        ("listeners.<name>.routes[].split.targets", acting("split: {targets: {web: 5}}"), |c| {
            split(c).is_some_and(|split| split.sides == [SplitSide { target: "web".into(), weight: 5 }])
        }),
        ("listeners.<name>.routes[].split.by", by("client_ip"), |c| {
            split(c).is_some_and(|split| split.by == SplitBy::Key(HashKey::ClientIp))
        }),
        ("listeners.<name>.routes[].split.by.header", by("{header: X-User}"), |c| {
            split(c).is_some_and(|split| split.by == SplitBy::Key(HashKey::Header("x-user".into())))
        }),
        ("listeners.<name>.routes[].split.by.cookie", by("{cookie: user}"), |c| {
            split(c).is_some_and(|split| split.by == SplitBy::Key(HashKey::Cookie("user".into())))
        }),
        ("listeners.<name>.routes[].split.by.query", by("{query: u}"), |c| {
            split(c).is_some_and(|split| split.by == SplitBy::Key(HashKey::Parameter("u".into())))
        }),
        (
            "listeners.<name>.routes[].redirect",
            acting("redirect: {to: /a}"),
            |c| matches!(&first(c).action, Action::Redirect(redirect) if redirect.status == 308),
        ),
        (
            "listeners.<name>.routes[].redirect.to",
            acting("redirect: {to: 'https://{hostname}{path}'}"),
            |c| matches!(&first(c).action, Action::Redirect(to) if to.to.source() == "https://{hostname}{path}"),
        ),
        (
            "listeners.<name>.routes[].redirect.status",
            acting("redirect: {to: /a, status: 302}"),
            |c| matches!(&first(c).action, Action::Redirect(redirect) if redirect.status == 302),
        ),
        ("listeners.<name>.routes[].respond", acting("respond: {}"), |c| {
            answer(c).is_some_and(|answer| {
                (answer.status, answer.body.is_empty(), &answer.content_type) == (200, true, &None)
            })
        }),
        ("listeners.<name>.routes[].respond.status", acting("respond: {status: 503}"), |c| {
            answer(c).is_some_and(|answer| answer.status == 503)
        }),
        ("listeners.<name>.routes[].respond.body", acting("respond: {body: '{host} $1'}"), |c| {
            answer(c).is_some_and(|answer| answer.body == b"{host} $1")
        }),
        ("listeners.<name>.routes[].respond.body_file", acting("respond: {body_file: README.md}"), |c| {
            answer(c).is_some_and(|answer| answer.body.starts_with(b"# "))
        }),
        (
            "listeners.<name>.routes[].respond.content_type",
            acting("respond: {body: '<p>', content_type: text/html}"),
            |c| answer(c).is_some_and(|answer| answer.content_type.as_deref() == Some("text/html")),
        ),
        (
            "listeners.<name>.routes[].respond.headers",
            acting("respond: {headers: {Retry-After: 120}}"),
            |c| {
                answer(c).is_some_and(|answer| answer.headers == [("Retry-After".into(), Text::plain("120"))])
            },
        ),
    ]
}

#[test]
fn edits_are_made_in_one_order_and_those_of_the_listener_first() {
    let text = front("headers: {request: {set: {X-B: b, x-a: '{host}'}}, response: {remove: Server}}").replace(
        "target: web",
        "target: web, headers: {request: {add: {X-Tag: a}, set: {X-Env: 2.10, X-Yes: yes}, remove: [Cookie]}}",
    );
    let config = config(&text);
    let host = Text::parse("{host}", text::TextPlace::REQUEST).unwrap();
    assert_eq!(
        first(&config).headers,
        HeaderEdits {
            request: vec![
                set("X-B", "b"),
                HeaderEdit::Set("x-a".into(), host),
                remove("Cookie"),
                set("X-Env", "2.10"),
                set("X-Yes", "yes"),
                add("X-Tag", "a"),
            ],
            response: vec![remove("Server")],
        }
    );
}

#[test]
fn headers_that_are_ours_can_not_be_edited() {
    let told = |side: &str, edit: &str| {
        let text = route(&format!("headers: {{{side}: {{{edit}}}}}"));
        load_with(&text, &Flags::default()).err().map(|problems| problems.to_string())
    };
    let framing =
        ["Content-Length", "transfer-encoding", "Connection", "Keep-Alive", "Proxy-Connection", "TE"];
    let framing =
        framing.iter().chain(&["Trailer", "Upgrade", "HTTP2-Settings", "Proxy-Authorization", "Via"]);
    for name in framing {
        for side in ["request", "response"] {
            for name in [(*name).to_owned(), name.replace('-', "_")] {
                for edit in
                    [format!("set: {{{name}: a}}"), format!("add: {{{name}: a}}"), format!("remove: {name}")]
                {
                    let told = told(side, &edit).unwrap_or_else(|| panic!("{side} {edit}"));
                    assert!(told.contains("no edit may touch it") && told.contains("1 problem"), "{told}");
                }
            }
        }
    }
    let of_requests =
        ["Host", "Expect", "X-Forwarded-For", "x_forwarded_proto", "Forwarded", "X-Real-IP", "X-Request-Id"];
    for name in of_requests {
        let edit = format!("set: {{{name}: a}}");
        assert!(told("request", &edit).is_some_and(|told| told.contains("no edit may touch it")), "{name}");
        assert_eq!(told("response", &edit), None, "{name}");
    }
    for name in ["X-Forwarded-Port", "X-Forwarded-Prefix", "Server", "Cookie", "Content-Type", "Connectio"] {
        assert_eq!(told("request", &format!("set: {{{name}: a}}")), None, "{name}");
    }
    let alias = told("request", "remove: content_length").unwrap();
    assert!(alias.contains("which many servers take for `content-length`"), "{alias}");
}

#[test]
fn what_is_wrong_with_an_edit_is_told_with_its_place() {
    for (edits, told) in [
        ("set: {X-A: b, x-a: c}", "is there already, in another spelling"),
        ("set: {'X A': b}", "which is no name of a header"),
        ("set: {'X-A:': b}", "without the colon"),
        ("set: {X-A: }", "`remove` takes a header away"),
        ("set: {X-A: [a, b]}", "is a list"),
        ("set: {X-A: {client_ip}}", "needs quotes"),
        ("set: {X-A: '{clientip}'}", "did you mean `{client_ip}`?"),
        ("set: {X-A: '{remote_addr}'}", "did you mean `{client_ip}`?"),
        ("set: {X-A: '{http_x_user}'}", "did you mean `{header.x-user}`?"),
        ("set: {X-A: '{zebra}'}", "`header.<name>`"),
        ("set: {X-A: '{backend}'}", "no backend is chosen yet"),
        ("set: {X-A: '$1'}", "there is no `path_regex`"),
        ("set: {X-A: 'a{'}", "has a `{` that no `}` closes"),
        ("set: {X-A: 'a}'}", "has a `}` that no `{` opens"),
        ("set: {X-A: '{header.a b}'}", "which no request can have"),
        ("set: {X-A: \"a\\r\\nX-B: c\"}", "has a line end"),
        ("set: {X-A: \"a\\0\"}", "control character"),
        ("set: {X-A: ' a'}", "begins with a blank"),
        ("set: {X-A: 'a '}", "ends with a blank"),
        ("set: X-A", "a mapping from names to values"),
        ("remove: []", "is an empty list"),
        ("remove: [X-A, x-a]", "is there already"),
        ("sets: {X-A: b}", "did you mean `set`?"),
    ] {
        let problems = load_with(&route(&format!("headers: {{request: {{{edits}}}}}")), &Flags::default());
        let problems = problems.unwrap_err();
        let text = problems.to_string();
        assert!(text.contains(told), "{edits}: {text}");
        assert!(problems.list()[0].place.is_some(), "{edits}: {text}");
    }
    let text = format!("{}\n", route("headers: {request: {set: {X-A: 'é {hst} b'}}}"));
    let problems = load_with(&text, &Flags::default()).unwrap_err();
    let place = problems.list()[0].place.unwrap();
    let written = text.lines().next().unwrap().chars().skip(place.column as usize - 1);
    assert_eq!(written.take(place.width as usize).collect::<String>(), "{hst}");
}

#[test]
fn groups_are_those_of_the_path_regex_of_the_route() {
    let with = |regex: &str, text: &str| {
        let keys =
            format!("match: {{path_regex: '{regex}'}}, headers: {{request: {{set: {{X-A: '{text}'}}}}}}");
        load_with(&route(&keys), &Flags::default()).err().map(|problems| problems.to_string())
    };
    assert_eq!(with("^/(a)(b)", "$1 $2"), None);
    assert_eq!(with("^/a", "$$1"), None);
    assert!(with("^/(a)", "$2").unwrap().contains("`path_regex` has one group"));
    assert!(with("^/a", "$1").unwrap().contains("`path_regex` has no group"));
    // One problem is enough where the expression itself is wrong.
    assert!(with("^/(a", "$1").unwrap().contains("1 problem"));
}

#[test]
fn what_is_wrong_with_a_rewrite_is_told() {
    for (keys, told) in [
        ("rewrite: {}", "says nothing"),
        ("rewrite: {path: a}", "does not begin with a slash"),
        ("rewrite: {path: '{query}'}", "does not begin with a slash"),
        ("rewrite: {path: '/a b'}", "which no path has as it is"),
        ("rewrite: {path: '/a#b'}", "which no path has as it is"),
        ("rewrite: {path: /ä}", "which no path has as it is"),
        ("rewrite: {path: /a, strip_prefix: /b}", "exclude each other"),
        ("rewrite: {strip_prefix: a}", "does not begin with a slash"),
        ("rewrite: {strip_prefix: /}", "is the root"),
        ("rewrite: {add_prefix: '/a?b'}", "with more than a path"),
        ("rewrite: /a", "a mapping"),
        ("rewrite: {strip: /a}", "unknown key `strip`"),
        ("match: {path: /b}, rewrite: {strip_prefix: /a}", "has no effect"),
        ("match: {path_prefix: /ab}, rewrite: {strip_prefix: /a}", "has no effect"),
    ] {
        let problems = load_with(&route(keys), &Flags::default()).unwrap_err().to_string();
        assert!(problems.contains(told) && problems.contains("1 problem"), "{keys}: {problems}");
    }
    for keys in [
        "match: {path_prefix: /a}, rewrite: {strip_prefix: /a/b}",
        "match: {path: /a/b}, rewrite: {strip_prefix: /a}",
    ] {
        assert!(first(&config(&route(keys))).rewrite.is_some(), "{keys}");
    }
}

#[test]
fn what_is_wrong_with_a_split_is_told() {
    for (split, told) in [
        ("{}", "`split` has no `targets`"),
        ("{targets: {}}", "a mapping from targets to weights"),
        ("{targets: [web]}", "a mapping from targets to weights"),
        ("{targets: {web: 95%}}", "write `95`"),
        ("{targets: {web: -1}}", "too small"),
        ("{targets: {web: 1000001}}", "too large"),
        ("{targets: {web: 0}}", "have the weight 0"),
        ("{targets: {wep: 1}}", "did you mean `web`?"),
        ("{targets: {web: 1}, by: cookie}", "{cookie: NAME}"),
        ("{targets: {web: 1}, by: {cookie: a, header: b}}", "`by` has more than one of"),
        ("{target: {web: 1}}", "did you mean `targets`?"),
        ("web", "a mapping"),
    ] {
        let problems =
            load_with(&acting(&format!("split: {split}")), &Flags::default()).unwrap_err().to_string();
        assert!(problems.contains(told) && problems.contains("1 problem"), "{split}: {problems}");
    }
}

#[test]
fn a_route_has_one_action() {
    let told = |keys: &str| messages(&acting(keys), &Flags::default()).join("\n");
    assert!(told("name: a").contains("a route without `target`"));
    assert!(told("target: web, redirect: {to: /a}").contains("`target` and `redirect` exclude each other"));
    let three = told("respond: {}, split: {targets: {web: 1}}, target: web");
    assert!(three.contains("`respond` and `split`") && three.contains("`respond` and `target`"), "{three}");
    for (key, action) in [
        ("rewrite: {path: /a}", "redirect: {to: /b}"),
        ("retries: off", "redirect: {to: /b}"),
        ("hash_key: path", "respond: {}"),
        ("upgrade: off", "respond: {}"),
        ("headers: {request: {remove: Cookie}}", "respond: {}"),
    ] {
        let told = told(&format!("{key}, {action}"));
        assert!(told.contains("has no effect: with `re"), "{key}: {told}");
    }
    assert_eq!(
        first(&config(&acting("redirect: {to: /b}, headers: {response: {remove: Server}}")))
            .headers
            .response
            .len(),
        1
    );
}

#[test]
fn a_tcp_listener_has_no_keys_about_requests() {
    for keys in ["headers: {request: {remove: Cookie}}", "rewrite: {path: /a}", "retries: off"] {
        let text = route(keys).replace("protocol: http", "protocol: tcp");
        let told = messages(&text, &Flags::default()).join("\n");
        assert!(told.contains("belongs to HTTP, but the listener `front` speaks tcp"), "{keys}: {told}");
    }
    let text = front("protocol: tcp, headers: {request: {remove: Cookie}}");
    assert!(messages(&text, &Flags::default())[0].contains("`headers` belongs to HTTP"));
}

#[test]
fn check_prints_what_is_in_force_of_a_route() {
    let keys = "name: a, match: {path_prefix: /a}, rewrite: {strip_prefix: /a, add_prefix: /b}, headers: {request: {set: {X-A: '{host}'}, add: {X-B: [1, 2]}, remove: [Cookie, X-C]}}, retries: {attempts: 2, on: reset}, hash_key: {cookie: u}, upgrade: off, split: {targets: {web: 3}, by: path}";
    let rows = effective(&acting(keys), &Flags::default());
    let shown: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.strip_prefix("listeners.front.routes.a."))
        .map(|row| row.strip_suffix(" (t.yaml:1)").unwrap())
        .collect();
    assert_eq!(
        shown,
        [
            "match = /a",
            "rewrite = {strip_prefix: /a, add_prefix: /b}",
            "headers.request.remove = [Cookie, X-C]",
            "headers.request.set.X-A = {host}",
            "headers.request.add.X-B[0] = 1",
            "headers.request.add.X-B[1] = 2",
            "retries.attempts = 2",
            "retries.on = [reset]",
            "hash_key = {cookie: u}",
            "upgrade = off",
            "split.targets.web = 3",
            "split.by = path",
        ]
    );
    let of_listener = effective(&front("headers: {response: {set: {X-A: b}}}"), &Flags::default());
    assert!(of_listener.contains(&"listeners.front.headers.response.set.X-A = b (t.yaml:1)".to_owned()));
}

#[test]
fn of_a_split_each_target_keeps_its_own_silence() {
    let two = "targets: {web: {backends: [{host: a, port: 1}], timeouts: {idle: 5s}}, api: {backends: [{host: a, port: 1}]}}";
    let idle =
        |keys: &str| first(&config(&acting(keys).replace(POOL, two))).own.idle.map(|idle| idle.as_secs());
    assert_eq!(idle("split: {targets: {web: 1, api: 1}}"), None);
    assert_eq!(idle("split: {targets: {web: 1}}"), Some(5));
    assert_eq!(idle("split: {targets: {web: 1, api: 1}}, timeouts: {idle: 7s}"), Some(7));
}

#[test]
fn a_listener_that_answers_everything_itself_needs_no_target() {
    let config = config(&acting("redirect: {to: 'https://{hostname}{path}'}").replace(POOL, ""));
    assert!(config.targets.is_empty() && matches!(first(&config).action, Action::Redirect(_)));
}
