//! The rows of curl over HTTP/2: those of the other schemes that have a form in it, and those whose form is another one.

use fake_backend::{Behaviour, Fault, pattern};

use super::curl::Row;

/// What has no form in HTTP/2, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("post-in-chunks", "nothing is in chunks; put-of-unknown-length is what comes next to it"),
    ("connection-close", "no field is about the connection"),
    ("http-1.0", "another version"),
    ("absolute-form", "there is no such form: the-authority-names-the-host"),
    ("an-offer-of-http-2", "it would be an offer to upgrade"),
    ("sessions-are-resumed", "curl makes one connection of what would need several"),
    ("clear-http-on-the-tls-port", "clear HTTP is HTTP/1.1"),
];

/// Of `others`, those that have a form in HTTP/2, and those that are made in another way there.
pub fn rows<'r>(others: impl Iterator<Item = &'r Row>) -> Vec<&'r Row> {
    let (mut rows, mut left): (Vec<_>, Vec<_>) =
        (Vec::new(), WITHOUT.iter().map(|(name, _)| *name).collect());
    for row in others {
        let is_made_here = ROWS.iter().any(|own| own.0 == row.0);
        match left.iter().position(|name| *name == row.0) {
            Some(at) => drop(left.remove(at)),
            None if is_made_here => {}
            None => rows.push(row),
        }
    }
    assert!(left.is_empty(), "no such rows: {left:?}");
    rows.extend(ROWS);
    rows
}

const ROWS: &[Row] = &[
    ("many-requests-at-once", |scene| {
        let url = scene.url("/bytes/1000?[1-100]");
        let got = scene.curl(&["-Z", "--parallel-max", "100", &url]);
        assert_eq!((got.exit, got.transfers.len(), got.body.len()), (Some(0), 100, 100_000));
        assert!(got.transfers.iter().all(|one| one.0 == 200), "{:?}", got.transfers);
        assert_eq!(got.connections(), 1, "{}", got.trace);
    }),
    ("the-authority-names-the-host", |scene| {
        scene.fetch(&["-H", "Host: origin.test"], "/path?query");
        let received = scene.received();
        assert!(received.starts_with("GET /path?query HTTP/1.1\r\n"), "{received}");
        assert!(received.to_ascii_lowercase().contains("\r\nhost: origin.test\r\n"), "{received}");
    }),
    ("malformed-requests", |scene| {
        for arguments in [["-X", "GE T"], ["-X", "G@T"], ["-H", "X: a\u{1}b"], ["-H", "Host: a b"]] {
            // 92: the stream was reset.
            let got = scene.curl(&[&arguments[..], &[&scene.url("/")]].concat());
            assert_eq!((got.exit, got.status()), (Some(92), 0), "{arguments:?} {}", got.trace);
        }
        assert_eq!(scene.backend.last_requests(), []);
    }),
    ("redirects-of-posts", |scene| {
        let got = scene.fetch(&["-L", "-d", "the body again"], "/moved-for-good");
        assert_eq!((got.text().as_str(), got.connections()), ("the body again", 1), "{}", got.trace);
    }),
    ("cookies-of-an-answer", |scene| {
        let got = scene.fetch(&[], "/cookies");
        assert!(got.heads.contains("set-cookie: a=1\r\nset-cookie: b=2\r\n"), "{}", got.heads);
    }),
    ("packed-answers", |scene| {
        let got = scene.fetch(&["--compressed"], "/packed/bytes/100000");
        assert!(got.heads.contains("content-encoding: ") && got.body == pattern(100_000), "{}", got.heads);
    }),
    ("a-stream-that-fails-is-the-only-one", |scene| {
        scene.backend.behave(Behaviour::fault(Fault::CloseMidBody).times(1));
        let got = scene.curl(&[&scene.url("/bytes/1000?[1-3]")]);
        // The head of the first may have come with the reset, and then curl does not look at it.
        assert_eq!(got.transfers.iter().map(|one| one.0).collect::<Vec<_>>()[1..], [200; 2], "{}", got.trace);
        assert!(got.body.ends_with(&pattern(1000).repeat(2)) && got.body.len() < 3000, "{}", got.trace);
        assert_eq!(got.connections(), 1, "{}", got.trace);
    }),
    ("an-answer-before-the-upload-is-over", |scene| {
        scene.backend.behave(Behaviour::status(413).answering_early().closing());
        let body = scene.file("body", &pattern(5_000_000));
        let got = scene.curl(&["-H", "Expect:", "-T", &body, &scene.url("/")]);
        assert_eq!((got.exit, got.status()), (Some(0), 413), "{}", got.trace);
        assert_eq!(got.text(), "Hello from fake-1");
    }),
];
