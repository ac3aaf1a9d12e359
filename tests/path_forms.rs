//! Every way to write a path × what stands in its way: none gets past it.
//!
//! Each form says what becomes of `/admin` and of `/admin/x` written in it: it is the same path, another one, or it is refused. Behind it are
//! all of `fuzz_cases::readers`: whatever the route for the rest hands on, none of them reads as a path of the other route.

use std::net::IpAddr;

use evenkeel::access::{AddressRules, RuleStock};
use evenkeel::config::model::ListenerConfig;
use evenkeel::config::{self, Flags};
use evenkeel::message::Head;
use evenkeel::proxy::http::h1::parse;
use evenkeel::route::{Asked, Router, path_form};
use fuzz_cases::readers::Reader;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    /// It is one of the route that is asked for.
    Asked,
    /// It is one of the route for the rest, and goes on.
    Rest,
    /// 403.
    Denied,
    /// 400.
    Refused,
}

/// What a form makes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The same path.
    Same,
    /// Another path, for every backend.
    Other,
    /// It has several readings.
    Several,
    /// None.
    None,
}

/// A listener with a route of each kind before one for the rest.
struct Kind {
    name: &'static str,
    listener: ListenerConfig,
    router: Router,
    /// Of the first route.
    rules: AddressRules,
    is_exact: bool,
    /// What becomes of its own requests.
    own: Becomes,
}

impl Kind {
    fn all(normalize: &str) -> Vec<Kind> {
        let prefix = "path_prefix: /admin";
        let kinds = [
            ("prefix", prefix, "", Becomes::Asked),
            ("exact", "path: /admin", "", Becomes::Asked),
            ("expression", "path_regex: '^/admin(/|$)'", "", Becomes::Asked),
            ("closed", prefix, "access: {deny: [0.0.0.0/0, '::/0']},", Becomes::Denied),
            ("closed, exact", "path: /admin", "access: {deny: [0.0.0.0/0, '::/0']},", Becomes::Denied),
            ("access from elsewhere", prefix, "access: {allow: [10.0.0.0/8]},", Becomes::Denied),
            ("access from there", prefix, "access: {allow: [192.0.2.0/24]},", Becomes::Asked),
        ];
        let loaded = |(name, pattern, access, own): (&'static str, &str, &str, Becomes)| {
            let text = format!(
                "listeners:\n  l:\n    bind: 127.0.0.1:0\n    normalize: {{{normalize}}}\n    routes:\n    - {{name: asked, match: {{{pattern}}}, {access} target: t}}\n    - {{name: rest, target: t}}\ntargets:\n  t: {{backends: [{{host: 127.0.0.1, port: 1}}]}}\n"
            );
            let folder = std::path::Path::new(".");
            let loaded = config::load_text(&text, "test", folder, &Flags::default(), &|_| None)
                .unwrap_or_else(|problems| panic!("{problems}"));
            let listener = loaded.config.listeners[0].clone();
            let router = Router::new(&listener.routes, None);
            let rules = AddressRules::new(&listener.routes[0].access, &mut RuleStock::default());
            Kind { name, listener, router, rules, is_exact: pattern.starts_with("path:"), own }
        };
        kinds.into_iter().map(loaded).collect()
    }

    /// What becomes of a request for this path, and the path that a backend gets.
    fn ask(&self, path: &[u8]) -> (Becomes, Vec<u8>) {
        let client: IpAddr = "192.0.2.1".parse().expect("an address");
        let text = [b"GET ", path, b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
        let mut head = Head::new();
        if parse::request(&text, 100, &mut head).is_err() {
            return (Becomes::Refused, Vec::new());
        }
        let sent = head.path().split(|&byte| byte == b'?').next().unwrap_or_default();
        let Ok(form) = path_form::form(sent, &self.listener.normalize) else {
            return (Becomes::Refused, Vec::new());
        };
        let asked = Asked { head: &head, path: &form, client: Some(client), certificate: None };
        let becomes = match self.router.find(&asked) {
            Ok(Some(0)) => match self.rules.refusal(asked.client) {
                Some(_) => Becomes::Denied,
                None => Becomes::Asked,
            },
            Ok(_) => Becomes::Rest,
            Err(_) => Becomes::Refused,
        };
        (becomes, form.to_vec())
    }

    fn owns(&self, path: &[u8]) -> bool {
        let rest = path.strip_prefix(b"/admin");
        rest.is_some_and(|rest| rest.is_empty() || !self.is_exact && rest.starts_with(b"/"))
    }
}

/// Every form of one of the paths, with what it makes of it.
fn forms(path: &str) -> Vec<(String, Form)> {
    let mut all = vec![(path.to_owned(), Form::Same)];
    let below = path.strip_prefix("/admin").expect("a path of it");
    // Escapes of letters, in both cases of their digits.
    for set in 1..32_u32 {
        let escaped = |case: fn(u8) -> String| {
            let letters = b"admin".iter().enumerate();
            let letters = letters.map(|(at, &letter)| match set >> at & 1 {
                1 => case(letter),
                _ => char::from(letter).to_string(),
            });
            format!("/{}{below}", letters.collect::<String>())
        };
        all.push((escaped(|letter| format!("%{letter:02x}")), Form::Same));
        all.push((escaped(|letter| format!("%{letter:02X}")), Form::Same));
        // Twice: a backend that decodes once sees another name, one that decodes twice sees this one.
        all.push((escaped(|letter| format!("%25{letter:02x}")), Form::Several));
        all.push((escaped(|letter| format!("%25{letter:02X}")), Form::Several));
    }
    // What leads nowhere, before it.
    let dots = [".", "%2e", "%2E", "x/..", "x/%2e%2e", "x/.%2E", "x/%2e.", "x/y/../..", "./.", "x/../x/.."];
    all.extend(dots.map(|dots| (format!("/{dots}{path}"), Form::Same)));
    all.extend(["/..", "/%2e%2e", "/x/../..", "/./.."].map(|up| (format!("{up}{path}"), Form::None)));
    // What no path may be like, before it and at its end.
    let never = ["..;", "..;x=1", ".;", "%2e%2e;x", "..%2f", "%2F..", "..%5C", "%5c%2e%2e", "x%2f.%2fy"];
    for never in never {
        all.push((format!("/x/{never}{path}"), Form::None));
        all.push((format!("{path}/{never}"), Form::None));
    }
    let never = [
        "\\",
        "..\\",
        "#",
        "%00",
        "%0d%0a",
        "%7F",
        "%c0%ae%c0%ae",
        "%c0%af",
        "%C1%9C",
        "%e0%80%af",
        "%f0%80%80%af",
        "%ff",
        "%",
        "%2",
        "%zz",
        "%u002f",
        "%-1",
        "\u{2215}",
    ];
    for never in never {
        all.push((format!("/x/{never}{path}"), Form::None));
        all.push((format!("{path}/{never}"), Form::None));
        all.push((format!("{path}{never}/y"), Form::None));
    }
    // Bytes that some take for a slash or a dot.
    all.extend(["%E2%88%95", "%ef%bc%8f", "%E2%80%A4"].map(|odd| (format!("/x{odd}{path}"), Form::Other)));
    // What is a name of its own for some, and a mark for others.
    for mark in ["%2F", "%2f", "%5C", "%5c", "%252F", "%252f", "%255C", "/", "//"] {
        all.push((format!("/{mark}{}", &path[1..]), Form::Several));
    }
    for mark in [";", ";x", ";x=1", "%3B", "%3bx", "%253B", "%3F", "%3fx", "%23", "%2523x", ";%2Fx"] {
        all.push((format!("/admin{mark}{below}"), Form::Several));
    }
    for mark in [
        "/;x",
        "/%3Bx",
        "/%253Bx",
        "/x/%252e%252e",
        "/x/%252E%252e",
        "/%252e",
        "/x/%25252e%25252e",
        "/x/%252e%252e;y",
    ] {
        all.push((format!("{mark}{path}"), Form::Several));
    }
    // Names beside it.
    for other in [
        "/Admin",
        "/ADMIN",
        "/admin.",
        "/admin%20",
        "/admi",
        "/admin1",
        "/.admin",
        "/admin-x",
        "/a/admin",
        "/%41dmin",
        "/adm%C3%AFn",
    ] {
        all.push((format!("{other}{below}"), Form::Other));
    }
    all
}

#[test]
fn no_form_of_a_path_gets_past_a_route() {
    let readers = Reader::all();
    let (mut cases, mut wrong) = (0, Vec::new());
    for normalize in ["", "merge_slashes: on", "dot_segments: refuse", "encoded_slash: refuse"] {
        for kind in Kind::all(normalize) {
            for path in ["/admin", "/admin/x", "/admin/"] {
                for (spelled, form) in forms(path) {
                    cases += 1;
                    let (found, forwarded) = kind.ask(spelled.as_bytes());
                    let own = if kind.owns(path.as_bytes()) { kind.own } else { Becomes::Rest };
                    let fits = match form {
                        // What the listener refuses altogether is refused; slashes that it merges are no others.
                        _ if found == Becomes::Refused && !normalize.is_empty() => true,
                        _ if normalize == "merge_slashes: on" && forwarded == path.as_bytes() => found == own,
                        Form::Same => found == own,
                        Form::Other => found == Becomes::Rest,
                        Form::None => found == Becomes::Refused,
                        // Unless it is nobody's however it is read.
                        Form::Several => found == Becomes::Refused || own == Becomes::Rest,
                    };
                    let strayed = readers
                        .iter()
                        .find(|reader| found == Becomes::Rest && kind.owns(&reader.read(&forwarded)));
                    if !fits || strayed.is_some() {
                        wrong.push(format!(
                            "{}, {normalize}: {spelled} ({form:?}): {found:?}, {strayed:?}",
                            kind.name
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {cases}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases >= 2_000, "{cases} cases");
}

#[test]
fn what_a_route_takes_however_it_is_read_goes_on_as_it_is() {
    for kind in Kind::all("").iter().filter(|kind| !kind.is_exact) {
        for path in [
            "/admin/a%2Fb",
            "/admin//x",
            "/admin/x;y=1",
            "/admin/%252e",
            "/admin/50%25",
            "/admin/%5C",
            "/admin/a%3Fb",
        ] {
            assert_eq!(
                kind.ask(path.as_bytes()),
                (kind.own, path.as_bytes().to_vec()),
                "{}: {path}",
                kind.name
            );
        }
        for path in ["/x%2Fy", "//x", "/x;y", "/100%25", "/a/admin;x"] {
            assert_eq!(
                kind.ask(path.as_bytes()),
                (Becomes::Rest, path.as_bytes().to_vec()),
                "{}: {path}",
                kind.name
            );
        }
    }
}
