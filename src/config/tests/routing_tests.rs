//! `tests`: how they are written. Whether they pass is another question (`decision`).

use super::every_key::Check;
use super::*;
use crate::config::model::route::FieldTest;
use crate::config::model::routing_test::ExpectedAuth;
use crate::config::model::{ExpectedAnswer, RoutingTest, SampleCertificate};

/// `WEB` with one test, and more keys in it.
fn with(more: &str) -> String {
    format!("tests: [{{request: 'GET http://a/x', {more}}}]\n{WEB}")
}

/// One over TLS.
fn over_tls(more: &str) -> String {
    with(&format!("expect: {{target: web}}, {more}")).replace("http://", "https://")
}

/// The same with an expectation.
fn expecting(expect: &str) -> String {
    with(&format!("expect: {{{expect}}}"))
}

fn only(config: &Config, is_so: fn(&RoutingTest) -> bool) -> bool {
    config.tests.first().is_some_and(is_so)
}

/// A row for each key: a config that says something else than the default, and how to see that.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    let sent = |keys: &str| with(&format!("expect: {{target: web}}, {keys}"));
    vec![
        ("tests", with("expect: {target: web}"), |c| c.tests.len() == 1),
        ("tests[].request", with("expect: {target: web}"), |c| {
            only(c, |test| (&*test.request.method, &*test.request.target) == ("GET", "/x"))
        }),
        ("tests[].listener", sent("listener: web"), |c| {
            only(c, |test| test.request.listener.as_deref() == Some("web"))
        }),
        ("tests[].from", sent("from: 10.1.2.3"), |c| {
            only(c, |test| test.request.from.to_string() == "10.1.2.3")
        }),
        ("tests[].headers", sent("headers: {X-Beta: yes, X-V: [2.10, 007]}"), |c| {
            only(c, |test| {
                let headers = test.request.headers.iter().map(|(name, value)| format!("{name}: {value}"));
                headers.eq(["X-Beta: yes", "X-V: 2.10", "X-V: 007"])
            })
        }),
        ("tests[].cookies", sent("cookies: {user: a, v: 1.0}"), |c| {
            only(c, |test| test.request.headers == [("Cookie".to_owned(), "user=a; v=1.0".to_owned())])
        }),
        ("tests[].client_cert", over_tls("client_cert: {}"), |c| {
            only(c, |test| test.request.certificate == Some(SampleCertificate::default()))
        }),
        ("tests[].client_cert.subject", over_tls("client_cert: {subject: 'O=x, CN=robot'}"), |c| {
            only(c, |test| {
                test.request.certificate.as_ref().is_some_and(|shown| shown.subject == "O=x, CN=robot")
            })
        }),
        ("tests[].client_cert.san", over_tls("client_cert: {san: [r2.example, 'spiffe://a/b']}"), |c| {
            only(c, |test| {
                let names = test.request.certificate.as_ref().map(|shown| &shown.names[..]);
                names.is_some_and(|names| names == ["r2.example", "spiffe://a/b"])
            })
        }),
        ("tests[].expect", expecting("target: web"), |c| only(c, |test| test.expect.targets == ["web"])),
        ("tests[].expect.target", expecting("target: [web, api]"), |c| {
            only(c, |test| test.expect.targets == ["web", "api"])
        }),
        ("tests[].expect.route", expecting("route: a/x"), |c| {
            only(c, |test| test.expect.route.as_deref() == Some("a/x"))
        }),
        ("tests[].expect.path", expecting("path: /v2/x?a"), |c| {
            only(c, |test| test.expect.path.as_deref() == Some("/v2/x?a"))
        }),
        ("tests[].expect.headers", expecting("headers: {X-Env: prod, Cookie: {present: false}}"), |c| {
            only(c, |test| {
                let [first, second] = &test.expect.headers[..] else { return false };
                (first.name.as_str(), &first.test) == ("x-env", &FieldTest::Is(vec!["prod".into()]))
                    && second.test == FieldTest::Present(false)
            })
        }),
        ("tests[].expect.status", expecting("status: Drop"), |c| {
            only(c, |test| test.expect.answer == Some(ExpectedAnswer::Drop))
        }),
        ("tests[].expect.auth", expecting("auth: staff"), |c| {
            only(c, |test| test.expect.auth == Some(ExpectedAuth::Rule("staff".to_owned())))
        }),
        ("tests[].expect.location", expecting("location: 'https://a/'"), |c| {
            only(c, |test| test.expect.location.as_deref() == Some("https://a/"))
        }),
    ]
}

#[test]
fn a_test_that_asks_or_expects_nothing_is_told() {
    let told = |text: &str| messages(text, &Flags::default());
    for (text, said) in [
        (format!("tests: [{{expect: {{target: web}}}}]\n{WEB}"), "this test has no `request`"),
        (format!("tests: [{{request: 'GET http://a/'}}]\n{WEB}"), "this test has no `expect`"),
        (expecting(""), "this test expects nothing"),
        (expecting("status: 200, target: web"), "is expected to be answered here and to go to a backend"),
        (expecting("status: 99"), "`status` is 99, which is too small"),
        (expecting("auth: [a, b]"), "`auth` is a list"),
        (expecting("auth: "), "`auth` has no value"),
        (expecting("pth: /x"), "unknown key `pth` in `expect`"),
        (with("expect: {target: web}, headers: {Host: b}"), "`Host` is what the URL of `request` says"),
        (with("expect: {target: web}, headers: {'a b': c}"), "`a b` is no name of one"),
        (with("expect: {target: web}, headers: {X-IP: {client_ip}}"), "`X-IP` is a mapping"),
        (with("expect: {target: web}, headers: {A: \"b\\r\\nC: d\"}"), "`A` has a character"),
        (with("expect: {target: web}, cookies: {a: 'b; c=d'}"), "`a` has a `;`"),
        (with("expect: {target: web}, from: 10.0.0.0/8"), "`from` is `10.0.0.0/8`"),
    ] {
        let told = told(&text);
        assert!(told.len() == 1 && told[0].contains(said), "{text}\n{told:?}");
    }
    for (request, said) in [
        ("GET", "which is not both"),
        ("http://a/", "which is not both"),
        ("GET /x", "which has no `http://` or `https://`"),
        ("GET ftp://a/", "which is neither"),
        ("G@T http://a/", "whose method is none"),
        ("GET http://a/#x", "with a `#`"),
        ("GET http://a:x/", "with a port that is none"),
    ] {
        let text = format!("tests: [{{request: '{request}', expect: {{target: web}}}}]\n{WEB}");
        let told = told(&text);
        assert!(told.len() == 1 && told[0].contains(said), "{text}\n{told:?}");
    }
}

#[test]
fn tests_of_several_files_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("main.yaml", &format!("include: more.yaml\n{}", expecting("target: web")));
    write("more.yaml", "tests: [{request: 'GET http://b/', expect: {status: 404}}]\n");
    let loaded = load(Some(&folder.path().join("main.yaml")), &Flags::default(), &env).unwrap();
    let requests: Vec<String> = loaded.config.tests.iter().map(|test| test.request.to_string()).collect();
    assert_eq!(requests, ["GET http://a/x", "GET http://b/"]);
    let rows = loaded.effective.iter().filter(|row| row.path.starts_with("tests["));
    let rows: Vec<String> = rows.map(|row| format!("{} {}", row.path, row.value)).collect();
    assert_eq!(rows, ["tests[0] GET http://a/x", "tests[1] GET http://b/"]);
}
