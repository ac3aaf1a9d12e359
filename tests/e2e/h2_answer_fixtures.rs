//! The hostile and odd answers of `fixtures/http/answer` in the form of HTTP/2: whatever bytes stand there as status, names, values and body, the
//! client gets what they say, a 502 or 504, or an answer that is visibly cut; and whoever shares the connection notices nothing.
//!
//! The form is made without any understanding. An answer is cut at CRLF, at the first two blanks of its first line, and at the first colon
//! of the others; what is behind the empty line is DATA, or behind a 1xx the next head.

use std::sync::Arc;
use std::time::Duration;

use evenkeel::proxy::http::h2::code::ErrorCode;
use evenkeel::proxy::http::h2::frame;
use evenkeel::proxy::http::h2::hpack::{Pseudo, encode};

use super::support::fixture::{self, Fixture};
use super::support::h2_backend::{BackendLine, RawH2, keel};
use super::support::{Client, eventually};

/// Bytes that a frame may have.
const FRAME: usize = 16_384;
/// Fields that HTTP/2 bars (RFC 9113 §8.2.2).
const BARRED: &[&str] =
    &["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "http2-settings"];

/// How a form ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormEnd {
    /// As it should.
    Whole,
    /// With RST_STREAM.
    Reset,
    /// Not at all.
    Silent,
}

#[derive(Clone, Debug)]
struct FormHead {
    status: Vec<u8>,
    lines: Vec<(Vec<u8>, Vec<u8>)>,
}

/// An answer as HTTP/2 says it.
#[derive(Clone, Debug)]
struct Form {
    name: String,
    method: String,
    heads: Vec<FormHead>,
    body: Vec<u8>,
    end: FormEnd,
}

/// Cut at the first place where `what` stands.
fn cut<'a>(text: &'a [u8], what: &[u8]) -> (&'a [u8], Option<&'a [u8]>) {
    match text.windows(what.len()).position(|window| window == what) {
        Some(at) => (&text[..at], Some(&text[at + what.len()..])),
        None => (text, None),
    }
}

fn head(text: &[u8]) -> (FormHead, &[u8]) {
    let (first, mut rest) = cut(text, b"\r\n");
    let (_, behind) = cut(first, b" ");
    let (status, _) = cut(behind.unwrap_or_default(), b" ");
    let mut head = FormHead { status: status.to_vec(), lines: Vec::new() };
    while let Some(text) = rest {
        let (line, behind) = cut(text, b"\r\n");
        if line.is_empty() {
            return (head, behind.unwrap_or_default());
        }
        let (name, value) = cut(line, b":");
        let value = value.unwrap_or_default();
        head.lines.push((name.to_ascii_lowercase(), value.strip_prefix(b" ").unwrap_or(value).to_vec()));
        rest = behind;
    }
    (head, b"")
}

fn form(fixture: &Fixture) -> Form {
    let mut heads = Vec::new();
    let mut rest = &fixture.bytes[..];
    loop {
        let (next, behind) = head(rest);
        let is_interim = next.status.len() == 3 && next.status[0] == b'1' && next.status != b"101";
        heads.push(next);
        rest = behind;
        if !is_interim || rest.is_empty() {
            break;
        }
    }
    let told = fixture.value("client");
    let is_silent = told.starts_with("late ") || told.ends_with(" answer_stalled");
    let end = match fixture.value("ending") {
        _ if is_silent => FormEnd::Silent,
        "close" | "reset" => FormEnd::Reset,
        _ => FormEnd::Whole,
    };
    let (name, method) = (fixture.name.clone(), fixture.value("method").to_owned());
    Form { name, method, heads, body: rest.to_vec(), end }
}

impl FormHead {
    fn values<'h>(&'h self, wanted: &str) -> Vec<&'h [u8]> {
        let named = self.lines.iter().filter(|(name, _)| name == wanted.as_bytes());
        named.map(|(_, value)| &value[..]).collect()
    }

    /// RFC 9113 §8.2, §8.3.2, and the grammar of fields.
    fn is_valid(&self) -> bool {
        let is_token = |name: &[u8]| {
            let others = b"!#$%&'*+-.^_`|~";
            !name.is_empty()
                && name
                    .iter()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || others.contains(byte))
        };
        let is_value = |value: &[u8]| {
            let ends_in_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
            value.iter().all(|&byte| byte == b'\t' || byte >= 0x20 && byte != 0x7f)
                && !ends_in_blank(value.first())
                && !ends_in_blank(value.last())
        };
        let status = std::str::from_utf8(&self.status).ok().and_then(|status| status.parse::<u16>().ok());
        let is_status = self.status.len() == 3
            && self.status.iter().all(u8::is_ascii_digit)
            && status.is_some_and(|status| status >= 100 && status != 101);
        is_status
            && self.lines.iter().all(|(name, value)| {
                // What some reader takes for a framing field is none that goes on.
                let alias: Vec<u8> =
                    name.iter().map(|&byte| if byte == b'_' { b'-' } else { byte }).collect();
                let is_alias =
                    alias != *name && [&b"transfer-encoding"[..], b"content-length"].contains(&&alias[..]);
                is_token(name)
                    && is_value(value)
                    && !is_alias
                    && !BARRED.iter().any(|barred| name == barred.as_bytes())
            })
    }

    fn status(&self) -> u16 {
        String::from_utf8_lossy(&self.status).parse().unwrap_or(0)
    }
}

impl Form {
    /// Whether it says one thing, and all of it: so this is what the client is to get.
    fn is_plain(&self) -> bool {
        let last = self.heads.last().unwrap();
        let has_body = self.method != "HEAD" && !matches!(last.status(), 204 | 304);
        let lengths = last.values("content-length");
        let length = match &lengths[..] {
            [] => None,
            [one] if (1..20).contains(&one.len()) && one.iter().all(u8::is_ascii_digit) => {
                String::from_utf8_lossy(one).parse::<u64>().ok().map(Some).unwrap_or(Some(u64::MAX))
            }
            _ => Some(u64::MAX),
        };
        let fits = match length {
            // What a length says of a body that is not there has to be a length all the same.
            Some(u64::MAX) => false,
            _ if !has_body => self.body.is_empty(),
            None => true,
            Some(length) => length == self.body.len() as u64,
        };
        self.end == FormEnd::Whole
            && last.status() >= 200
            && self.heads.iter().all(FormHead::is_valid)
            && fits
    }

    /// The same but for a body where none has a place.
    fn is_plain_without_body(&self) -> bool {
        let has_body = self.method != "HEAD" && !matches!(self.heads.last().unwrap().status(), 204 | 304);
        !has_body && Form { body: Vec::new(), end: FormEnd::Whole, ..self.clone() }.is_plain()
    }

    /// Whether it may be more than anybody has to take.
    fn is_large(&self) -> bool {
        let size = |head: &FormHead| {
            head.lines.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>()
        };
        let is_large = |head: &FormHead| head.lines.len() > 50 || size(head) > 8192;
        self.heads.len() > 8 || self.heads.iter().any(is_large)
    }

    fn send(&self, line: &mut BackendLine, stream: u32) {
        for (place, head) in self.heads.iter().enumerate() {
            let mut block = Vec::new();
            encode::pseudo(&mut block, Pseudo::Status, &head.status);
            head.lines.iter().for_each(|(name, value)| encode::field(&mut block, name, value));
            let is_last = place + 1 == self.heads.len() && self.body.is_empty() && self.end == FormEnd::Whole;
            let parts: Vec<&[u8]> = block.chunks(FRAME).collect();
            for (number, part) in parts.iter().enumerate() {
                let mut flags = if number + 1 == parts.len() { frame::END_HEADERS } else { 0 };
                let kind = if number == 0 { frame::HEADERS } else { frame::CONTINUATION };
                if number == 0 && is_last {
                    flags |= frame::END_STREAM;
                }
                line.frame(kind, flags, stream, part);
            }
        }
        let parts: Vec<&[u8]> = self.body.chunks(FRAME).collect();
        for (number, part) in parts.iter().enumerate() {
            let ends = number + 1 == parts.len() && self.end == FormEnd::Whole;
            line.frame(frame::DATA, if ends { frame::END_STREAM } else { 0 }, stream, part);
        }
        if self.end == FormEnd::Reset {
            line.reset(stream, ErrorCode::INTERNAL_ERROR);
        }
    }
}

/// A backend that answers `/N` with the form of that number, and what else is asked with the path; `/held` is answered when `/go` is.
fn backend(forms: Arc<Vec<Form>>) -> RawH2 {
    RawH2::start(move |_, line| {
        line.settings(&[]);
        let mut held = Vec::new();
        while let Some(asked) = line.asked() {
            match asked.path[1..].parse::<usize>() {
                Ok(number) => forms[number].send(line, asked.stream),
                Err(_) if asked.path == "/held" => held.push(asked.stream),
                Err(_) => {
                    if asked.path == "/go" {
                        held.drain(..).for_each(|stream| line.answer(stream, "/held"));
                    }
                    line.answer(asked.stream, &asked.path);
                }
            }
        }
    })
}

/// Sends all of these, and holds each to what is above; gives how many were passed on.
fn run(forms: Vec<Form>, patience: Duration) -> usize {
    let forms = Arc::new(forms);
    let backend = backend(Arc::clone(&forms));
    let keel = keel(&backend, |config| {
        config.targets[0].timeouts.first_byte = patience;
        config.targets[0].timeouts.idle = patience;
        config.targets[0].resilience.breaker = None;
    });
    let (mut whole, mut larger) = (0, 0);
    for (number, form) in forms.iter().enumerate() {
        let name = &form.name;
        let ask = |method: &str, path: &str| format!("{method} {path} HTTP/1.1\r\nHost: test\r\n\r\n");
        let mut neighbour = keel.client();
        // Where nothing is waited for, somebody shares the connection meanwhile. A head of any size need not be read to its end, and then
        // nothing more can be read of the connection.
        let is_shared = form.end != FormEnd::Silent && !form.is_large();
        larger += usize::from(form.is_large());
        if is_shared {
            neighbour.send(ask("GET", "/held"));
            eventually("it is there", || keel.server.targets()[0].backends[0].in_flight() == 1);
        }
        let mut client = keel.client();
        client.send(ask(&form.method, &format!("/{number}")));
        let answer = loop {
            let answer = if form.method == "HEAD" { client.answer_to_head() } else { client.answer() };
            if !(100..200).contains(&answer.status) {
                break answer;
            }
        };
        let is_refused = matches!(answer.status, 502 | 504) && answer.header("proxy-status").is_some();
        if form.is_plain() && (!form.is_large() || !is_refused) {
            whole += 1;
            assert!(!is_refused && !answer.cut, "{name}: {}", answer.head);
            let status = form.heads.last().unwrap().status();
            assert_eq!((answer.status, &answer.body), (status, &form.body), "{name}: {}", answer.head);
        } else {
            // What comes where no body has a place, or how that ends, may come too late to be seen, and nobody gets it.
            let is_late = !answer.cut && answer.body.is_empty() && form.is_plain_without_body();
            assert!(is_refused || answer.cut || is_late, "{name}: {} {:?}", answer.head, answer.text());
        }
        let mut other: Client = keel.client();
        assert_eq!(other.get("/go").text(), "/go", "{name}");
        if is_shared {
            let answer = neighbour.answer();
            assert_eq!((answer.status, answer.text().as_str()), (200, "/held"), "{name}");
        }
        eventually("no lease is left", || keel.server.targets()[0].backends[0].in_flight() == 0);
        assert!(backend.connections() <= 1 + larger, "{name}: the fault is the stream's");
    }
    assert_eq!(keel.server.readings().panics, 0);
    whole
}

fn forms() -> (Vec<Form>, Vec<Form>) {
    let forms = fixture::all("answer", fixture::ANSWER).iter().map(form).collect::<Vec<_>>();
    forms.into_iter().partition(|form| form.end == FormEnd::Silent)
}

#[test]
fn an_answer_in_the_form_of_http_2_arrives_as_what_it_says_or_visibly_not() {
    let (_, forms) = forms();
    assert!(forms.len() > 150, "{}", forms.len());
    let whole = run(forms, Duration::from_secs(20));
    assert!(whole >= 20, "{whole} were passed on");
}

#[test]
fn an_answer_that_falls_silent_ends_and_the_next_one_is_intact() {
    let (silent, _) = forms();
    assert!(silent.len() >= 8, "{}", silent.len());
    assert_eq!(run(silent, Duration::from_secs(1)), 0);
}
