//! What a backend is told about the client, and that nobody can speak in the proxy's name.

use evenkeel::config::model::{Config, Forwarded, HostHeader};
use fake_backend::{Behaviour, Fault, Recorded};

use super::support::{Keel, recording};

const LIES: &str = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nForwarded: for=6.6.6.6\r\n\
                    X-Real-IP: 6.6.6.6\r\nX-Request-Id: theirs\r\nX_Forwarded_For: 6.6.6.6\r\nx-forwarded_proto: https\r\n";

/// What arrives of a request with these lines.
fn seen(forwarded: Forwarded, trusted: bool, lines: &str) -> Recorded {
    let backend = recording();
    let keel = Keel::with(&[&backend], |config| {
        config.listeners[0].forwarded = forwarded;
        if trusted {
            config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        }
    });
    let answer = keel.client().ask(&format!("GET / HTTP/1.1\r\nHost: test:8\r\n{lines}\r\n"));
    assert_eq!(answer.status, 200);
    backend.take_requests().pop().unwrap()
}

#[test]
fn what_an_untrusted_client_says_of_itself_is_replaced() {
    let seen = seen(Forwarded::XForwarded, false, LIES);
    assert_eq!(seen.header("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(seen.header("x-forwarded-proto"), ["http"]);
    assert_eq!(seen.header("x-forwarded-host"), ["test:8"]);
    assert_eq!(seen.header("via"), ["1.1 evenkeel"]);
    let id = seen.header("x-request-id");
    assert!(
        id.len() == 1 && id[0].len() == 32 && id[0].bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{id:?}"
    );
    let head = seen.head_text();
    assert!(!head.contains("6.6.6.6") && !head.contains("evil") && !head.contains('_'), "{head}");
}

#[test]
fn forwarded_of_the_rfc_instead() {
    let seen = seen(Forwarded::Rfc7239, false, LIES);
    assert_eq!(seen.header("forwarded"), ["for=127.0.0.1;proto=http;host=\"test:8\""]);
    assert!(!seen.head_text().to_ascii_lowercase().contains("x-forwarded"), "{}", seen.head_text());
}

#[test]
fn off_says_nothing_and_still_removes_lies() {
    let seen = seen(Forwarded::Off, false, LIES);
    let head = seen.head_text().to_ascii_lowercase();
    assert!(!head.contains("forwarded") && !head.contains("6.6.6.6"), "{head}");
    assert_eq!(seen.header("via"), ["1.1 evenkeel"]);
}

#[test]
fn a_trusted_proxy_is_appended_to() {
    let lines = "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: outside\r\nX-Request-Id: theirs\r\n";
    let first = seen(Forwarded::XForwarded, true, lines);
    assert_eq!(first.header("x-forwarded-for"), ["1.1.1.1, 2.2.2.2, 127.0.0.1"]);
    assert_eq!(first.header("x-forwarded-proto"), ["https"]);
    assert_eq!(first.header("x-forwarded-host"), ["outside"]);
    assert_eq!(first.header("x-request-id"), ["theirs"]);
    let second = seen(Forwarded::Rfc7239, true, "Forwarded: for=1.1.1.1\r\n");
    let ours = "for=1.1.1.1, for=127.0.0.1;proto=http;host=\"test:8\"";
    assert_eq!(second.header("forwarded"), [ours]);
}

#[test]
fn nominations_do_not_strip_what_the_proxy_adds() {
    for lines in [
        "Connection: X-Forwarded-For, X-Forwarded-Proto\r\nConnection: X-Forwarded-Host, X-Request-Id, Via\r\n",
        "Connection: x_forwarded_for, Host, Forwarded\r\n",
    ] {
        for trusted in [false, true] {
            let seen = seen(Forwarded::XForwarded, trusted, &format!("{lines}X-Forwarded-For: 1.1.1.1\r\n"));
            let expected = if trusted { "1.1.1.1, 127.0.0.1" } else { "127.0.0.1" };
            assert_eq!(seen.header("x-forwarded-for"), [expected]);
            assert_eq!(
                (seen.header("host"), seen.header("via")),
                (vec!["test:8".into()], vec!["1.1 evenkeel".into()])
            );
            assert!(seen.header("connection").is_empty());
        }
    }
}

#[test]
fn one_number_names_a_request_at_the_backend_and_in_the_answer() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    backend.behave(Behaviour::fault(Fault::Garbage));
    let answer = keel.client().get("/");
    let sent = backend.take_requests().pop().unwrap().header("x-request-id").pop().unwrap();
    assert_eq!((answer.status, answer.header("x-request-id")), (502, Some(sent.as_str())));
    assert!(answer.text().contains(&sent), "{}", answer.text());
}

#[test]
fn via_of_the_client_is_kept_and_ours_comes_last() {
    assert_eq!(
        seen(Forwarded::XForwarded, false, "Via: 1.1 edge\r\n").header("via"),
        ["1.1 edge", "1.1 evenkeel"]
    );
}

/// What arrives of this request under a changed config.
fn changed(change: impl FnOnce(&mut Config), request: &str) -> (Recorded, String) {
    let backend = recording();
    let keel = Keel::with(&[&backend], change);
    assert_eq!(keel.client().ask(request).status, 200);
    (backend.take_requests().pop().unwrap(), backend.addr().to_string())
}

#[test]
fn a_backend_gets_the_host_that_the_target_says_and_is_told_what_the_client_sent() {
    let of = |host: HostHeader, request: &str| {
        let (seen, address) = changed(|config| config.targets[0].host = host, request);
        assert_eq!(seen.header("x-forwarded-host"), ["test:8"]);
        let hosts = seen.header("host");
        let [host] = &hosts[..] else { panic!("one Host: {}", seen.head_text()) };
        host.replace(&address, "ADDRESS")
    };
    let plain = "GET / HTTP/1.1\r\nA: b\r\nHost: test:8\r\n\r\n";
    assert_eq!(of(HostHeader::Pass, plain), "test:8");
    assert_eq!(of(HostHeader::Backend, plain), "ADDRESS");
    let named = || HostHeader::Name("app.internal".into());
    assert_eq!(of(named(), plain), "app.internal");
    assert_eq!(of(named(), "GET http://test:8/x HTTP/1.1\r\nHost: other\r\n\r\n"), "app.internal");
    assert_eq!(of(named(), "GET / HTTP/1.0\r\nHost: test:8\r\n\r\n"), "app.internal");
}

#[test]
fn x_real_ip_is_the_client_however_many_trusted_proxies_stand_between() {
    let of = |on: bool, trusted: &[&str], lines: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: test\r\n{lines}\r\n");
        let (seen, _) = changed(
            |config| {
                config.listeners[0].x_real_ip = on;
                config.trusted_proxies = trusted.iter().map(|net| net.parse().unwrap()).collect();
            },
            &request,
        );
        seen.header("x-real-ip").join("|")
    };
    let near = &["127.0.0.0/8", "10.0.0.0/8"][..];
    assert_eq!(of(true, &[], LIES), "127.0.0.1", "a stranger is not believed");
    assert_eq!(of(false, &[], LIES), "", "nor passed on");
    assert_eq!(of(true, near, "X-Forwarded-For: 6.6.6.6, 192.0.2.7, 10.0.0.9\r\n"), "192.0.2.7");
    assert_eq!(of(true, near, "X-Real-IP: 192.0.2.8\r\nX-Forwarded-For: 1.1.1.1\r\n"), "192.0.2.8");
    assert_eq!(of(true, near, ""), "127.0.0.1");
    assert_eq!(of(true, near, "X-Forwarded-For: 192.0.2.7, unknown\r\n"), "", "nobody knows it");
}
