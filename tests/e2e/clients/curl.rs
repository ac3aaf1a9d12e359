//! The rows of curl.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use fake_backend::{Behaviour, Ending, Fault, pattern};

use super::program::{Ended, Program, version};
use super::scene::{Scene, Scheme};
use super::{curl_http2, curl_tls, judge, tell};
use crate::support::eventually;

/// A case with its name.
pub type Row = (&'static str, fn(&Scene));

/// What one run of curl brought.
pub struct Got {
    pub exit: Option<i32>,
    /// The bodies, one behind the other.
    pub body: Vec<u8>,
    /// Every head as it came, 1xx too, and trailers.
    pub heads: String,
    /// What `-v` says.
    pub trace: String,
    /// Of each transfer: status, new connections, version.
    pub transfers: Vec<(u16, u32, String)>,
}

impl Got {
    /// The status of the last transfer.
    pub fn status(&self) -> u16 {
        self.transfers.last().map_or(0, |transfer| transfer.0)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// All connections that were opened.
    pub fn connections(&self) -> u32 {
        self.transfers.iter().map(|transfer| transfer.1).sum()
    }
}

impl Scene {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("curl");
        // First `-q`: what a developer has in ~/.curlrc must not count.
        command.args(["-q", "-sSv", "--max-time", "60", "-D"]).arg(self.folder().join("heads"));
        command.args(["-w", "%{stderr}\nTRANSFER %{http_code} %{num_connects} %{http_version}\n"]);
        if self.scheme != Scheme::Http {
            command.arg("--cacert").arg(self.ca());
        }
        if self.scheme == Scheme::Http2 {
            command.arg("--http2");
        }
        command.args(arguments);
        command
    }

    /// Runs curl with these arguments, URLs among them.
    pub fn curl(&self, arguments: &[&str]) -> Got {
        // A transfer that fails early leaves the file of the one before it.
        let _ = std::fs::remove_file(self.folder().join("heads"));
        let Ended { status, stdout, stderr } = Program::start(&mut self.command(arguments)).end(Vec::new());
        let transfers = stderr.lines().filter_map(|line| {
            let mut words = line.strip_prefix("TRANSFER ")?.split(' ');
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.to_owned()))
        });
        let transfers: Vec<(u16, u32, String)> = transfers.collect();
        // Whoever was answered was answered in the version that the row is about.
        let mut answered = transfers.iter().filter(|transfer| transfer.0 != 0);
        assert!(answered.all(|transfer| transfer.2 == self.version()), "{transfers:?} {stderr}");
        let heads = std::fs::read(self.folder().join("heads")).unwrap_or_default();
        Got {
            exit: status.code(),
            body: stdout,
            heads: String::from_utf8_lossy(&heads).into_owned(),
            transfers,
            trace: stderr,
        }
    }

    /// The same with a path behind the other arguments; it must go well.
    pub fn fetch(&self, arguments: &[&str], path: &str) -> Got {
        let url = self.url(path);
        let got = self.curl(&[arguments, &[url.as_str()]].concat());
        assert_eq!(got.exit, Some(0), "{}", got.trace);
        got
    }

    /// The version that answers come in, as curl says it.
    fn version(&self) -> &'static str {
        match self.scheme {
            Scheme::Http | Scheme::Https => "1.1",
            Scheme::Http2 => "2",
        }
    }

    /// A line of a client or of an answer, as it is in this version: in HTTP/2 names are in lower case.
    fn line(&self, line: &str) -> String {
        match (self.scheme, line.split_once(':')) {
            (Scheme::Http2, Some((name, value))) => format!("{}:{value}\r\n", name.to_ascii_lowercase()),
            (Scheme::Http | Scheme::Https | Scheme::Http2, _) => format!("{line}\r\n"),
        }
    }

    /// The first line of an answer as curl shows it: there are no words behind the status in HTTP/2.
    fn status_line(&self, status: u16, reason: &str) -> String {
        let reason = if self.scheme == Scheme::Http2 { "" } else { reason };
        format!("HTTP/{} {status} {reason}\r\n", self.version())
    }

    /// The head of the last request as the backend received it.
    pub fn received(&self) -> String {
        self.backend.last_requests().pop().unwrap().head_text()
    }

    /// The next answer, byte by byte. The connection stays: the next request, which may be sent over it, would race with its end.
    fn raw(&self, bytes: impl Into<Vec<u8>>) {
        let fault = Fault::Raw { bytes: bytes.into(), ending: Ending::Serve };
        self.backend.behave(Behaviour::fault(fault).times(1));
    }
}

/// Makes every row over this scheme.
pub fn all(scheme: Scheme, at_least: usize) {
    let Some(version) = version("curl", &["--version"]) else { return };
    let scene = Scene::new(scheme);
    let rows: Vec<&Row> = match scheme {
        Scheme::Http => ROWS.iter().collect(),
        Scheme::Https => ROWS.iter().chain(curl_tls::ROWS).collect(),
        Scheme::Http2 => {
            if !scene.curl(&["--version"]).text().contains("HTTP2") {
                return tell("SKIPPED curl over http2: this curl knows no HTTP/2");
            }
            curl_http2::rows(ROWS.iter().chain(curl_tls::ROWS))
        }
    };
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(name, row)| {
            scene.reset();
            let made = catch_unwind(AssertUnwindSafe(|| {
                row(&scene);
                scene.reset();
                assert_eq!(scene.fetch(&[], "/next").text(), "Hello from fake-1", "the next request");
            }));
            let why = |panic: Box<dyn std::any::Any + Send>| {
                panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "see above".to_owned())
            };
            ((*name).to_owned(), made.map_err(why))
        })
        .collect();
    judge(version.split(' ').take(2).collect::<Vec<_>>().join(" ").as_str(), scheme, &rows, at_least);
}

const ROWS: &[Row] = &[
    ("get", |scene| {
        let got = scene.fetch(&[], "/");
        assert_eq!((got.status(), got.text().as_str()), (200, "Hello from fake-1"));
    }),
    ("head", |scene| {
        let got = scene.fetch(&["-I"], "/bytes/1000");
        assert!(got.heads.contains(&scene.line("Content-Length: 1000")), "{}", got.heads);
        assert!(scene.received().starts_with("HEAD /bytes/1000 HTTP/1.1\r\n"));
    }),
    ("post-with-length", |scene| {
        let body = scene.file("body", b"some\r\nbody\0");
        assert_eq!(scene.fetch(&["--data-binary", &format!("@{body}")], "/echo").body, b"some\r\nbody\0");
    }),
    ("post-in-chunks", |scene| {
        let got = scene.fetch(&["-H", "Transfer-Encoding: chunked", "-d", "hello"], "/echo");
        assert_eq!(got.text(), "hello");
        assert!(got.heads.contains("Transfer-Encoding: chunked\r\n"), "{}", got.heads);
    }),
    ("post-of-a-form", |scene| {
        let file = scene.file("upload.txt", b"the file's content");
        let got = scene.fetch(&["-F", "field=value", "-F", &format!("file=@{file}")], "/echo").text();
        assert!(got.contains("the file's content") && got.contains("filename=\"upload.txt\""), "{got}");
    }),
    ("put-of-nothing", |scene| {
        scene.fetch(&["-X", "PUT", "-d", ""], "/");
        assert!(scene.received().contains(&scene.line("Content-Length: 0")), "{}", scene.received());
    }),
    ("put-of-unknown-length", |scene| {
        let url = scene.url("/echo");
        let ended = Program::start(&mut scene.command(&["-T", "-", &url])).end(pattern(300_000));
        assert!(ended.stdout == pattern(300_000), "{}", ended.stderr);
    }),
    ("delete-with-a-body", |scene| {
        assert_eq!(scene.fetch(&["-X", "DELETE", "-d", "why"], "/echo").text(), "why");
    }),
    ("options-of-the-server", |scene| {
        assert_eq!(scene.fetch(&["-X", "OPTIONS", "--request-target", "*"], "").status(), 200);
        assert!(scene.received().starts_with("OPTIONS * HTTP/1.1\r\n"));
    }),
    ("methods", |scene| {
        for method in ["PATCH", "PROPFIND", "BREW"] {
            assert_eq!(scene.fetch(&["-X", method], "/").status(), 200);
            assert!(scene.received().starts_with(method));
        }
    }),
    ("expect-continue", |scene| {
        let got =
            scene.fetch(&["-H", "Expect: 100-continue", "--expect100-timeout", "60", "-d", "hello"], "/echo");
        assert_eq!(
            (got.text().as_str(), got.heads.contains(&scene.status_line(100, "Continue"))),
            ("hello", true)
        );
    }),
    ("expect-refused", |scene| {
        scene.backend.behave(Behaviour::status(413).answering_early());
        let body = scene.file("body", &pattern(5_000_000));
        let got = scene.curl(&[
            "-H",
            "Expect: 100-continue",
            "--expect100-timeout",
            "60",
            "-T",
            &body,
            &scene.url("/"),
        ]);
        assert_eq!(got.status(), 413, "{}", got.trace);
        assert!(!got.heads.contains(&scene.status_line(100, "Continue")), "{}", got.heads);
    }),
    ("early-hints", |scene| {
        let got = scene.fetch(&[], "/early-hints");
        assert!(got.heads.starts_with(&scene.status_line(103, "Early Hints")), "{}", got.heads);
        assert_eq!((got.status(), got.text().as_str()), (200, "Hello from fake-1"));
    }),
    ("trailers", |scene| {
        let got = scene.fetch(&[], "/chunked/1000?trailer=1");
        assert!(got.heads.contains(&scene.line("X-Trailer: fake-1")), "{}", got.heads);
        assert_eq!(got.body, pattern(1000));
    }),
    ("answers-without-a-body", |scene| {
        let urls = [204, 304, 204, 200].map(|status| scene.url(&format!("/status/{status}")));
        let got = scene.curl(&urls.each_ref().map(String::as_str));
        assert_eq!(got.transfers.iter().map(|one| one.0).collect::<Vec<_>>(), [204, 304, 204, 200]);
        assert_eq!((got.connections(), got.text().as_str()), (1, "Hello from fake-1"));
    }),
    ("one-connection-for-many-requests", |scene| {
        let url = scene.url("/bytes/[1-20]");
        let got = scene.curl(&[&url]);
        assert_eq!((got.transfers.len(), got.connections(), got.body.len()), (20, 1, 210));
    }),
    ("many-requests-at-once", |scene| {
        let url = scene.url("/bytes/1000?[1-100]");
        let got = scene.curl(&["-Z", "--parallel-immediate", "--parallel-max", "20", &url]);
        assert_eq!((got.exit, got.transfers.len(), got.body.len()), (Some(0), 100, 100_000));
        assert!(got.transfers.iter().all(|one| one.0 == 200) && got.connections() > 1);
    }),
    ("connection-close", |scene| {
        let (one, two) = (scene.url("/1"), scene.url("/2"));
        let got = scene.curl(&["-H", "Connection: close", &one, &two]);
        assert_eq!((got.connections(), got.heads.matches("Connection: close\r\n").count()), (2, 2));
    }),
    ("http-1.0", |scene| {
        let got = scene.fetch(&["--http1.0"], "/chunked/100000");
        assert!(got.body == pattern(100_000) && !got.heads.contains("chunked"), "{}", got.heads);
    }),
    ("absolute-form", |scene| {
        scene.fetch(&["--request-target", "http://origin.test/path?query"], "");
        let received = scene.received();
        assert!(received.starts_with("GET /path?query HTTP/1.1\r\n"), "{received}");
        assert!(received.contains("\r\nHost: origin.test\r\n"), "{received}");
    }),
    ("an-offer-of-http-2", |scene| {
        if !scene.curl(&["--version"]).text().contains("HTTP2") {
            return tell("SKIPPED an-offer-of-http-2: this curl knows no HTTP/2");
        }
        let got = scene.fetch(&["--http2"], "/head");
        assert_eq!((got.status(), got.transfers[0].2.as_str()), (200, "1.1"));
        assert!(!got.text().contains("h2c") && !got.text().contains("HTTP2-Settings"), "{}", got.text());
    }),
    ("large-heads", |scene| {
        let header = |length| format!("X-Large: {}", "x".repeat(length));
        assert_eq!(scene.fetch(&["-H", &header(30_000)], "/").status(), 200);
        assert_eq!(scene.fetch(&["-H", &header(33_000)], "/").status(), 431);
        assert_eq!(scene.backend.last_requests().len(), 1);
    }),
    ("a-large-head-of-the-answer", |scene| {
        let value = "y".repeat(20_000);
        scene.raw(format!("HTTP/1.1 200 OK\r\nX-Large: {value}\r\nContent-Length: 2\r\n\r\nhi"));
        let got = scene.fetch(&[], "/");
        assert!(got.heads.contains(&scene.line(&format!("X-Large: {value}"))) && got.text() == "hi");
        scene.raw(format!("HTTP/1.1 200 OK\r\nX-Large: {}\r\n\r\n", value.repeat(20)));
        assert_eq!(scene.fetch(&[], "/").status(), 502);
    }),
    ("malformed-requests", |scene| {
        for arguments in [["-X", "GE T"], ["-X", "G@T"], ["-H", "X: a\u{1}b"], ["-H", "Host: a b"]] {
            assert_eq!(scene.fetch(&arguments, "/").status(), 400, "{arguments:?}");
        }
        assert_eq!(scene.backend.last_requests(), []);
    }),
    ("compressed-answers", |scene| {
        // `gzip -n` of "hello\n".
        let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\xe7\x02\0 0:6\x06\0\0\0";
        let mut answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 26\r\n\r\n".to_vec();
        answer.extend_from_slice(gzip);
        scene.raw(answer);
        assert_eq!(scene.fetch(&["--compressed"], "/").text(), "hello\n");
        assert!(scene.received().contains("gzip"), "{}", scene.received());
    }),
    ("redirects", |scene| {
        scene.raw("HTTP/1.1 302 Found\r\nLocation: /bytes/5\r\nContent-Length: 0\r\n\r\n");
        let got = scene.fetch(&["-L"], "/");
        assert_eq!((got.status(), got.body), (200, pattern(5)));
    }),
    ("headers-of-the-client", |scene| {
        let arguments = ["-u", "a:b", "-A", "agent/1", "-b", "c=d", "-e", "http://from.test/", "-r", "0-9"];
        scene.fetch(&[&arguments[..], &["-H", "X-Forwarded-For: 1.2.3.4"]].concat(), "/");
        let received = scene.received();
        for line in ["Authorization: Basic YTpi", "User-Agent: agent/1", "Cookie: c=d", "Range: bytes=0-9"] {
            assert!(received.contains(&scene.line(line)), "{line} in {received}");
        }
        let proto = format!("\r\nX-Forwarded-Proto: {}\r\n", scene.scheme.in_urls());
        assert!(received.contains(&proto) && !received.contains("1.2.3.4"), "{received}");
    }),
    ("ten-megabytes-up", |scene| {
        let body = scene.file("body", &pattern(10_000_000));
        for framing in ["X-Framing: length", "Transfer-Encoding: chunked"] {
            assert_eq!(scene.fetch(&["-T", &body, "-H", framing], "/count").text(), "10000000");
        }
    }),
    ("ten-megabytes-down", |scene| {
        for framing in ["bytes", "chunked", "close"] {
            let got = scene.fetch(&[], &format!("/{framing}/10000000"));
            assert!(got.body == pattern(10_000_000), "{framing}");
        }
    }),
    ("ten-megabytes-both-ways-at-once", |scene| {
        let body = scene.file("body", &pattern(10_000_000));
        assert!(scene.fetch(&["-T", &body], "/echo").body == pattern(10_000_000));
    }),
    ("a-slow-backend", |scene| {
        assert_eq!(scene.fetch(&[], "/bytes/50?piece=10&every=10").body, pattern(50));
        assert_eq!(scene.fetch(&[], "/delay/50").text(), "Hello from fake-1");
    }),
    ("an-upload-that-is-killed", |scene| {
        let (url, before) = (scene.url("/"), scene.backend.stats().aborted);
        let mut curl = Program::start(&mut scene.command(&["-T", "-", &url]));
        curl.write(&pattern(200_000));
        eventually("half of it is there", || {
            scene.backend.last_requests().pop().is_some_and(|seen| seen.body.len() > 100_000)
        });
        drop(curl);
        eventually("the abort is seen", || scene.backend.stats().aborted == before + 1);
        assert!(scene.backend.last_requests().iter().all(|seen| !seen.complete));
    }),
    ("a-download-that-is-killed", |scene| {
        for framing in ["bytes", "chunked"] {
            let (url, before) =
                (scene.url(&format!("/{framing}/1000000000000")), scene.backend.stats().aborted);
            let mut curl = Program::start(&mut scene.command(&[&url]));
            assert!(curl.read(100_000) == pattern(100_000));
            drop(curl);
            eventually("the abort is seen", || scene.backend.stats().aborted == before + 1);
        }
    }),
    ("cut-answers", |scene| {
        // 18: a transfer was shorter than promised; 56: it was reset; 92: its stream was.
        for (path, fault) in [
            ("/bytes/1000", Fault::CloseMidBody),
            ("/bytes/1000", Fault::ResetMidBody),
            ("/chunked/1000", Fault::CloseMidBody),
            ("/chunked/1000", Fault::ResetMidBody),
            ("/", Fault::LengthTooLong),
        ] {
            scene.backend.behave(Behaviour::fault(fault.clone()).times(1));
            let got = scene.curl(&[&scene.url(path)]);
            assert!(matches!(got.exit, Some(18 | 56 | 92)), "{path} {fault:?}: {:?} {}", got.exit, got.trace);
        }
    }),
    ("bad-backends", |scene| {
        for fault in [Fault::CloseUnanswered, Fault::ResetMidHead, Fault::TwoLengths, Fault::Garbage] {
            scene.backend.behave(Behaviour::fault(fault.clone()));
            let got = scene.fetch(&["-d", "x"], "/");
            assert_eq!(got.status(), 502, "{fault:?}");
            assert!(got.heads.contains(scene.line("Proxy-Status: evenkeel").trim_end()), "{}", got.heads);
        }
    }),
];
