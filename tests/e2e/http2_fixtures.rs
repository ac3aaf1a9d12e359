//! The hostile and odd requests of `fixtures/http/request` in the form of HTTP/2: whatever bytes stand there as method, path,
//! authority, names, values and body, a backend gets one request that says the same, or none.
//!
//! The form is made without any understanding. A request is cut at CRLF, at the first and the last blank of its first line, and at the
//! first colon of the others; what is behind the empty line is DATA. So it has a form if its first line is in three parts.

use std::cell::RefCell;
use std::collections::BTreeMap;

use evenkeel::config::model::Http2;
use fake_backend::Recorded;
use fuzz_cases::strict;

use super::h2_lab::{Came, Door, Frame, Peer, flag, integer, kind};
use super::support::fixture::{self, Fixture};
use super::support::{Keel, eventually, recording};

/// Bytes that a frame may have.
const FRAME: usize = 16_384;
/// Who is asked where the form says so of itself.
const OTHER: &[u8] = b"x";
/// Fields that HTTP/2 bars (RFC 9113 §8.2.2).
const BARRED: &[&str] =
    &["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];
/// Fields that are for us, and go no further.
const DROPPED: &[&str] = &["http2-settings", "proxy-authenticate", "proxy-authorization"];
/// Fields that speak about the client, in whichever spelling: what it says of itself goes no further.
const ABOUT_CLIENT: &[&str] = &[
    "client-cert",
    "client-cert-chain",
    "forwarded",
    "x-forwarded-client-cert",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-real-ip",
    "x-request-id",
];
/// What is added.
const OURS: &[&str] =
    &["transfer-encoding", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id"];
/// Says of which form a request is.
const CASE: &[u8] = b"x-case";

/// Name and value.
type Line = (Vec<u8>, Vec<u8>);

/// Where the form says who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// In `:authority`, which is the first Host line.
    Authority,
    /// In `host`, as it was.
    Host,
    /// In both, which need not be the same.
    Both,
}

/// A request as HTTP/2 says it.
#[derive(Clone, Debug)]
struct Form {
    name: String,
    method: Vec<u8>,
    path: Vec<u8>,
    authority: Option<Vec<u8>>,
    lines: Vec<Line>,
    body: Vec<u8>,
    trailers: Vec<Line>,
}

/// What became of it for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Answered(u16),
    Reset,
    /// The connection is over.
    Over,
}

fn lower(name: &[u8]) -> String {
    name.iter().map(|&byte| char::from(byte).to_ascii_lowercase()).collect()
}

/// A line at its first colon, without the one blank that is usual behind it.
fn line(text: &[u8]) -> Line {
    let colon = text.iter().position(|&byte| byte == b':').unwrap_or(text.len());
    let value = text.get(colon + 1..).unwrap_or_default();
    (text[..colon].to_ascii_lowercase(), value.strip_prefix(b" ").unwrap_or(value).to_vec())
}

/// Cut at the first place where `what` stands.
fn cut<'a>(text: &'a [u8], what: &[u8]) -> (&'a [u8], Option<&'a [u8]>) {
    match text.windows(what.len()).position(|window| window == what) {
        Some(at) => (&text[..at], Some(&text[at + what.len()..])),
        None => (text, None),
    }
}

fn lines(mut text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while !text.is_empty() {
        let (first, rest) = cut(text, b"\r\n");
        lines.push(first);
        text = rest.unwrap_or_default();
    }
    lines
}

/// All forms of a fixture: with the lines that HTTP/2 bars and without them, and of those with chunks one whose trailers are trailers.
fn forms(fixture: &Fixture) -> Vec<Form> {
    let (head, body) = cut(&fixture.bytes, b"\r\n\r\n");
    let head = lines(head);
    let Some((first, rest)) = head.split_first() else { return Vec::new() };
    let blank = |byte: &u8| *byte == b' ';
    let (Some(one), Some(two)) = (first.iter().position(blank), first.iter().rposition(blank)) else {
        return Vec::new();
    };
    let Some(path) = first.get(one + 1..two) else { return Vec::new() };
    let plain = Form {
        name: fixture.name.clone(),
        method: first[..one].to_vec(),
        path: path.to_vec(),
        authority: None,
        lines: rest.iter().map(|text| line(text)).collect(),
        body: body.unwrap_or_default().to_vec(),
        trailers: Vec::new(),
    };
    let mut forms = vec![plain.clone()];
    let mut freed = plain.clone();
    freed.lines.retain(|(name, _)| !BARRED.contains(&lower(name).trim()));
    if freed.lines.len() < plain.lines.len() {
        if let (content, Some(trailers)) = cut(&freed.body, b"\r\n0\r\n") {
            let content = cut(content, b"\r\n").1.unwrap_or(content).to_vec();
            let trailers = lines(trailers).into_iter().filter(|text| !text.is_empty()).map(line).collect();
            forms.push(Form { body: content, trailers, ..freed.clone() });
        }
        forms.push(freed);
    }
    let says = [Says::Authority, Says::Host, Says::Both];
    forms.iter().flat_map(|form| says.map(|says| form.saying(says))).collect()
}

impl Form {
    fn saying(&self, says: Says) -> Form {
        let mut form = self.clone();
        let host = form.lines.iter().position(|(name, _)| name == b"host");
        form.authority = match (says, host) {
            (Says::Authority, Some(at)) => Some(form.lines.remove(at).1),
            (Says::Both, _) => Some(OTHER.to_vec()),
            (Says::Host, _) | (Says::Authority, None) => None,
        };
        form.name = format!("{} ({says:?}, {} lines)", self.name, form.lines.len());
        form
    }

    /// A block of literals that nobody keeps.
    fn block(lines: &[Line]) -> Vec<u8> {
        let mut out = Vec::new();
        for text in lines.iter().flat_map(|(name, value)| [name, value]).enumerate() {
            if text.0 % 2 == 0 {
                out.push(0);
            }
            integer(&mut out, 0, 7, text.1.len());
            out.extend_from_slice(text.1);
        }
        out
    }

    /// Its frames on stream 1, as the `case`th. `piece`: bytes of a body in one of them.
    fn frames(&self, case: usize, piece: usize) -> Vec<Frame> {
        let pseudo = |name: &str, value: &[u8]| (name.as_bytes().to_vec(), value.to_vec());
        let mut head = vec![pseudo(":method", &self.method), pseudo(":scheme", b"http")];
        head.push(pseudo(":path", &self.path));
        head.extend(self.authority.iter().map(|authority| pseudo(":authority", authority)));
        head.extend(self.lines.iter().cloned());
        head.push((CASE.to_vec(), case.to_string().into_bytes()));
        let mut frames = Vec::new();
        for (at, block) in Form::block(&head).chunks(FRAME).enumerate() {
            let kind = if at == 0 { kind::HEADERS } else { kind::CONTINUATION };
            frames.push(Frame::new(kind, flag::NONE, 1, block));
        }
        frames.last_mut().unwrap().flags |= flag::END_HEADERS;
        let data = self.body.chunks(piece).map(|piece| Frame::new(kind::DATA, flag::NONE, 1, piece));
        frames.extend(data);
        if !self.trailers.is_empty() {
            frames.push(Frame::new(kind::HEADERS, flag::END_HEADERS, 1, Form::block(&self.trailers)));
        }
        let last = if frames.last().unwrap().kind == kind::CONTINUATION { 0 } else { frames.len() - 1 };
        frames[last].flags |= flag::END_STREAM;
        frames
    }

    /// What of its lines a backend is to see, in order.
    fn goes_on(&self) -> Vec<Line> {
        let is_about = |name: &str| ABOUT_CLIENT.contains(&name.replace('_', "-").as_str());
        let stays = |name: &str| name == "host" || DROPPED.contains(&name) || is_about(name);
        self.lines.iter().filter(|(name, _)| !stays(&lower(name))).cloned().collect()
    }

    /// The length that it says its body has.
    fn said(&self) -> Option<Option<usize>> {
        let line = self.lines.iter().find(|(line, _)| line == b"content-length");
        line.map(|(_, value)| String::from_utf8_lossy(value).parse().ok())
    }

    /// The same, where the body goes on behind it: when that is seen, a backend may have had all that was said.
    fn reached(&self) -> Option<usize> {
        self.said().flatten().filter(|&said| said < self.body.len())
    }

    /// What a backend got of it says the same.
    fn judge(&self, seen: &Recorded) {
        let (name, text) = (&self.name, seen.head_text());
        assert!(
            self.lines.iter().all(|(line, _)| !BARRED.contains(&lower(line).as_str())),
            "{name}: what HTTP/2 bars was taken: {text}"
        );
        let request =
            strict::request(&seen.head, 0).unwrap_or_else(|stop| panic!("{name}: {stop:?}: {text}"));
        assert_eq!(request.end, seen.head.len(), "{name}: {text}");
        assert_eq!((&request.method, &request.target), (&self.method, &self.path), "{name}: {text}");
        let host = self.lines.iter().find(|(line, _)| line == b"host").map(|(_, value)| value);
        let authority = self.authority.as_ref().or(host);
        assert_eq!(Some(&request.authority), authority, "{name}: {text}");
        assert!(host.is_none_or(|host| Some(host) == authority), "{name}: two hosts: {text}");
        let (ours, theirs): (Vec<_>, Vec<_>) = request
            .fields
            .into_iter()
            .filter(|(line, _)| lower(line) != "host" && line != CASE)
            .partition(|(line, _)| OURS.contains(&lower(line).as_str()));
        assert_eq!(theirs, self.goes_on(), "{name}: {text}");
        for added in OURS {
            let mut values = ours.iter().filter(|(line, _)| lower(line) == *added).map(|(_, value)| value);
            let first = values.next();
            assert!(values.next().is_none(), "{name}: {added} twice: {text}");
            if *added == "x-forwarded-for" {
                assert_eq!(first.map(Vec::as_slice), Some(&b"127.0.0.1"[..]), "{name}: {text}");
            }
        }
        if !seen.complete {
            assert!(self.body.starts_with(&seen.body), "{name}: {:?}", seen.body);
            return;
        }
        let body = &self.body[..self.reached().unwrap_or(self.body.len())];
        assert_eq!(String::from_utf8_lossy(&seen.body), String::from_utf8_lossy(body), "{name}");
        assert!(self.said().is_none_or(|said| said == Some(body.len())), "{name}: {text}");
        let trailers: Vec<u8> = self
            .trailers
            .iter()
            .flat_map(|(name, value)| [name, &b": "[..], value, b"\r\n"].concat())
            .collect();
        assert_eq!(String::from_utf8_lossy(&seen.trailers), String::from_utf8_lossy(&trailers), "{name}");
    }
}

/// Sends them, each when its forerunner was taken in if they drip, and tells how stream 1 has ended.
fn end(peer: &mut Peer, frames: &[Frame], drips: bool, name: &str) -> End {
    let (mut rest, mut status, mut end) = (frames.iter(), None, None);
    let mut waits = false;
    loop {
        while !waits && let Some(frame) = rest.next() {
            peer.say(&frame.bytes());
            // Nothing may stand between the parts of a head.
            let is_amidst = rest.as_slice().first().is_some_and(|next| next.kind == kind::CONTINUATION);
            waits = drips && !is_amidst;
            if waits {
                peer.ping(flag::NONE, *b"and now?");
            }
        }
        if let Some(end) = end.filter(|_| !waits) {
            return end;
        }
        let frame = match peer.next() {
            Came::Frame(frame) => frame,
            Came::End => return End::Over,
            other => panic!("{name}: {other}: {:?}", peer.log),
        };
        match frame.kind {
            kind::GOAWAY => return End::Over,
            kind::PING => waits = false,
            kind::RST_STREAM if frame.stream == 1 => end = end.or(Some(End::Reset)),
            kind::HEADERS if frame.stream == 1 => status = frame.status().or(status),
            _ => {}
        }
        if frame.stream == 1 && frame.ends_stream() {
            let status = status.unwrap_or_else(|| panic!("{name}: no status: {:?}", peer.log));
            end = Some(End::Answered(status));
        }
    }
}

/// An ordinary request on stream 3 is answered, with the head that its backend saw.
fn ordinary(peer: &mut Peer, tag: &str) {
    let lines = [(":method", "GET"), (":scheme", "http"), (":path", tag), (":authority", "next.example")];
    let lines = lines.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    peer.headers(3, flag::WHOLE, &Form::block(&lines));
    let mut body = Vec::new();
    loop {
        match peer.next() {
            Came::Frame(frame) if frame.stream != 3 => assert_ne!(frame.kind, kind::GOAWAY, "{tag}"),
            Came::Frame(frame) => {
                assert!(frame.kind != kind::HEADERS || frame.status() == Some(200), "{tag}: {:?}", peer.log);
                if frame.kind == kind::DATA {
                    body.extend_from_slice(&frame.payload);
                }
                if frame.ends_stream() {
                    break;
                }
            }
            other => panic!("{tag}: {other}: {:?}", peer.log),
        }
    }
    let head = String::from_utf8_lossy(&body).into_owned();
    assert!(head.starts_with(&format!("GET {tag} HTTP/1.1\r\nhost: next.example\r\n")), "{head}");
}

/// What was tried, and how it ended.
struct Tried {
    fixture: String,
    form: Form,
    end: End,
}

/// Tries all forms, and gives how many were served, refused and cut at the backend.
fn try_all(drips: bool) -> [usize; 3] {
    let backend = recording();
    let keel = Keel::with(&[&backend], |config| {
        config.workers = 1;
        config.listeners[0].http2 = Some(Http2::default());
        config.listeners[0].limits.head_size = 4096;
        config.listeners[0].limits.headers = 50;
        config.listeners[0].limits.body = Some(10_000);
    });
    let door = Door { address: keel.address(), tls: None };
    let connect = || {
        let mut peer = Peer::connect(&door).unwrap();
        peer.shake().unwrap();
        peer
    };
    let tried = RefCell::new(Vec::new());
    let mut fixtures = fixture::all("request", fixture::REQUEST);
    fixtures.retain(|fixture| !forms(fixture).is_empty());
    assert!(fixtures.len() >= 280, "only {} have a form", fixtures.len());
    fixture::each(&fixtures, |fixture| {
        for form in forms(fixture) {
            let case = tried.borrow().len();
            let piece = if drips { form.body.len() / 3 + 1 } else { FRAME };
            let mut peer = connect();
            let end = end(&mut peer, &form.frames(case, piece), drips, &form.name);
            tried.borrow_mut().push(Tried { fixture: fixture.name.clone(), form, end });
            if end == End::Over {
                peer = connect();
            }
            ordinary(&mut peer, &format!("/head?{case}"));
        }
    });
    eventually("each request has come to its end, or was cut", || {
        let whole = backend.last_requests().iter().filter(|seen| seen.complete).count() as u64;
        whole + backend.stats().aborted == backend.requests()
    });
    let tried = tried.into_inner();
    let mut seen: BTreeMap<usize, Vec<Recorded>> = BTreeMap::new();
    let mut ordinary = 0..tried.len();
    for request in backend.take_requests() {
        let text = request.head_text();
        match &request.header("x-case")[..] {
            [] => {
                let next =
                    format!("GET /head?{} HTTP/1.1\r\nhost: next.example\r\n", ordinary.next().unwrap());
                assert!(request.complete && text.starts_with(&next), "a request that nobody sent: {text}");
            }
            [case] => seen.entry(case.parse().unwrap()).or_default().push(request),
            many => panic!("{many:?}: {text}"),
        }
    }
    assert!(ordinary.is_empty() && seen.keys().all(|&case| case < tried.len()));
    let mut counts = [0; 3];
    for (case, Tried { end, .. }) in tried.iter().enumerate() {
        counts[usize::from(!matches!(end, End::Answered(..400)))] += 1;
        counts[2] += seen.get(&case).map_or(0, |seen| seen.iter().filter(|seen| !seen.complete).count());
    }
    fixture::each(&fixtures, |fixture| {
        let of = tried.iter().enumerate().filter(|(_, tried)| tried.fixture == fixture.name);
        for (case, Tried { form, end, .. }) in of {
            let seen = seen.get(&case).map_or(&[][..], Vec::as_slice);
            seen.iter().for_each(|seen| form.judge(seen));
            let whole = seen.iter().filter(|seen| seen.complete).count();
            let expected = match end {
                End::Answered(..400) if !drips && form.reached().is_some() => 0..=0,
                End::Answered(..400) => 1..=1,
                End::Answered(_) => 0..=1,
                End::Reset if drips && form.reached().is_some() => 0..=1,
                End::Reset | End::Over => 0..=0,
            };
            assert!(seen.len() <= 1 && expected.contains(&whole), "{}: {end:?}, {seen:?}", form.name);
        }
    });
    assert_eq!((backend.stats().malformed, keel.server.readings().panics), (0, 0));
    counts
}

#[test]
fn a_request_in_the_form_of_http_2_arrives_as_what_it_says_or_not_at_all() {
    let [served, refused, _] = try_all(false);
    assert!(served >= 615 && refused >= 786, "{served} served, {refused} refused");
}

#[test]
fn so_it_does_frame_by_frame() {
    let [served, refused, cut] = try_all(true);
    assert!(served >= 600 && refused >= 770 && cut > 20, "{served} served, {refused} refused, {cut} cut");
}
