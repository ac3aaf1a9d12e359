//! Which answers are worth compressing, and may be (RFC 9110 §8.4, §7.7), and what their heads say then.

use crate::config::model::cache::{Coding, CompressPolicy};
use crate::message::{Head, HeaderField, Version, tokens};

/// Why an answer goes as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhyPlain {
    /// It has no body, or a part that cannot be told.
    Status,
    /// It is a part of an answer that might be compressed as a whole. A part is one of the answer as it is: its bytes are counted there, and
    /// it has the strong tag of that.
    Part,
    /// It is coded already.
    Coded,
    /// The request or the answer says `no-transform`.
    NoTransform,
    /// It sets a cookie.
    SetCookie,
    /// It has a digest of its bytes.
    Digest,
    /// It is short.
    Short,
    /// Its media type is none that becomes shorter.
    MediaType,
    /// Its client speaks HTTP/1.0: a body of unknown length would end with the connection.
    OldClient,
}

/// What is known of an answer that may be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Whether each piece that comes goes out at once, whatever that costs in length: events, and other streams of small messages.
    pub flushes_each: bool,
}

impl Compression {
    /// Whether an answer may be compressed for somebody. `length`: of its body, if that is known.
    pub fn of(
        request: &Head,
        answer: &Head,
        length: Option<u64>,
        policy: &CompressPolicy,
    ) -> Result<Compression, WhyPlain> {
        let is_part = answer.status == 206;
        if answer.status < 200 || matches!(answer.status, 204 | 205 | 304 | 416) {
            return Err(WhyPlain::Status);
        }
        if request.version == Version::Http10 {
            return Err(WhyPlain::OldClient);
        }
        let mut media = None;
        for line in answer.lines() {
            let (name, value) = answer.pair(line);
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                6 | 11 | 14
                    if is("digest") || is("content-md5") || is("content-digest") || is("repr-digest") =>
                {
                    return Err(WhyPlain::Digest);
                }
                12 if is("content-type") => media = Some(value),
                13 if is("content-range") && !is_part => return Err(WhyPlain::Status),
                13 if is("cache-control") && forbids_change(value) => return Err(WhyPlain::NoTransform),
                16 if is("content-encoding") && !value.eq_ignore_ascii_case(b"identity") => {
                    return Err(WhyPlain::Coded);
                }
                10 if !policy.cookies && is("set-cookie") => return Err(WhyPlain::SetCookie),
                _ => {}
            }
        }
        let asks = request.lines().iter().map(|line| request.pair(line));
        if asks
            .filter(|(name, _)| name.eq_ignore_ascii_case(b"cache-control"))
            .any(|(_, value)| forbids_change(value))
        {
            return Err(WhyPlain::NoTransform);
        }
        if !is_part && length.is_some_and(|length| length < policy.at_least) {
            return Err(WhyPlain::Short);
        }
        let Some(media) = media.map(essence).filter(|media| is_compressible(media)) else {
            return Err(WhyPlain::MediaType);
        };
        if is_part {
            return Err(WhyPlain::Part);
        }
        let is = |known: &[u8]| media.eq_ignore_ascii_case(known);
        Ok(Compression {
            flushes_each: is(b"text/event-stream")
                || is(b"application/x-ndjson")
                || is(b"application/json-seq"),
        })
    }
}

/// `no-transform` (RFC 9111 §5.2.1.6, §5.2.2.6). What stands in a quoted string is seen too: better once too often.
fn forbids_change(value: &[u8]) -> bool {
    tokens(value).any(|item| item.eq_ignore_ascii_case(b"no-transform"))
}

/// Type and subtype without parameters.
fn essence(value: &[u8]) -> &[u8] {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    value[..end].trim_ascii()
}

/// Media types that become shorter beside `text/*` and those that end with `+json`, `+xml` or `+text`.
const COMPRESSIBLE: &[&str] = &[
    "application/json",
    "application/javascript",
    "application/xml",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/json-seq",
    "application/graphql",
    "application/yaml",
    "application/toml",
    "application/sql",
    "application/rtf",
    "application/x-sh",
    "application/x-protobuf",
    "application/protobuf",
    "application/vnd.ms-fontobject",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/x-icon",
    "image/vnd.microsoft.icon",
];

fn is_compressible(media: &[u8]) -> bool {
    let ends =
        |end: &[u8]| media.len() > end.len() && media[media.len() - end.len()..].eq_ignore_ascii_case(end);
    media.len() > 5 && media[..5].eq_ignore_ascii_case(b"text/")
        || ends(b"+json")
        || ends(b"+xml")
        || ends(b"+text")
        || COMPRESSIBLE.iter().any(|known| media.eq_ignore_ascii_case(known.as_bytes()))
}

/// Says that an answer depends on what its client accepts, if it does not say so already (RFC 9110 §12.5.5).
pub fn vary(answer: &mut Head) {
    let named = answer
        .lines()
        .iter()
        .map(|line| answer.pair(line))
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"vary"));
    let is_there = named
        .flat_map(|(_, value)| tokens(value))
        .any(|item| item == b"*" || item.eq_ignore_ascii_case(b"accept-encoding"));
    if !is_there {
        answer.push(b"Vary", b"Accept-Encoding");
    }
}

/// Makes the head of an answer that of the compressed one: its coding, no length, no ranges, and a tag that is weak, because the bytes
/// are others than those that it was given for (RFC 9110 §8.8.1).
pub fn recode(answer: &mut Head, coding: Coding) {
    let tag = answer.named("etag").filter(|tag| tag.starts_with(b"\"")).map(|tag| [b"W/", tag].concat());
    let is = |name: &[u8], known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    answer.remove(|name| match name.len() {
        4 => tag.is_some() && is(name, "etag"),
        13 => is(name, "accept-ranges"),
        14 => is(name, "content-length"),
        16 => is(name, "content-encoding"),
        _ => false,
    });
    answer.push(b"Content-Encoding", coding.token().as_bytes());
    if let Some(tag) = tag {
        answer.push(b"ETag", &tag);
    }
    debug_assert!(!answer.has(HeaderField::ContentLength));
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn with(mut head: Head, lines: Lines<'_>) -> Head {
        lines.iter().for_each(|(name, value)| head.push(name.as_bytes(), value.as_bytes()));
        head
    }

    const HTML: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");

    fn one(asks: Lines<'_>, status: u16, lines: Lines<'_>, length: Option<u64>) -> Result<bool, WhyPlain> {
        let request = with(Head::request("GET", "/", "a"), asks);
        let answer = with(Head::answer(status), lines);
        Compression::of(&request, &answer, length, &CompressPolicy::default()).map(|found| found.flushes_each)
    }

    #[test]
    fn what_is_compressed() {
        assert_eq!(one(&[], 200, &[HTML], Some(1024)), Ok(false));
        assert_eq!(one(&[], 404, &[HTML], None), Ok(false));
        assert_eq!(one(&[], 200, &[HTML], Some(1023)), Err(WhyPlain::Short));
        assert_eq!(one(&[], 200, &[("Content-Type", "Text/Event-Stream")], None), Ok(true));
        for status in [101, 204, 205, 304, 416] {
            assert_eq!(one(&[], status, &[HTML], None), Err(WhyPlain::Status), "{status}");
        }
        let range = ("Content-Range", "bytes 0-1/2");
        assert_eq!(one(&[], 206, &[HTML, range], Some(2)), Err(WhyPlain::Part));
        assert_eq!(one(&[], 206, &[("Content-Type", "image/png"), range], None), Err(WhyPlain::MediaType));
        for (line, why) in [
            (("Content-Encoding", "gzip"), WhyPlain::Coded),
            (("Content-Range", "bytes 0-1/2"), WhyPlain::Status),
            (("Cache-Control", "max-age=1, No-Transform"), WhyPlain::NoTransform),
            (("Set-Cookie", "a=b"), WhyPlain::SetCookie),
            (("Content-MD5", "x"), WhyPlain::Digest),
            (("Repr-Digest", "x"), WhyPlain::Digest),
            (("Content-Digest", "x"), WhyPlain::Digest),
            (("Digest", "x"), WhyPlain::Digest),
        ] {
            assert_eq!(one(&[], 200, &[HTML, line], None), Err(why), "{line:?}");
        }
        assert_eq!(one(&[], 200, &[HTML, ("Content-Encoding", "identity")], None), Ok(false));
        assert_eq!(one(&[("Cache-Control", "no-transform")], 200, &[HTML], None), Err(WhyPlain::NoTransform));
        let mut old = Head::request("GET", "/", "a");
        old.version = Version::Http10;
        let answer = with(Head::answer(200), &[HTML]);
        assert_eq!(
            Compression::of(&old, &answer, None, &CompressPolicy::default()),
            Err(WhyPlain::OldClient)
        );
        let policy = CompressPolicy { cookies: true, ..CompressPolicy::default() };
        let answer = with(Head::answer(200), &[HTML, ("Set-Cookie", "a=b")]);
        assert!(Compression::of(&Head::request("GET", "/", "a"), &answer, None, &policy).is_ok());
    }

    #[test]
    fn media_types() {
        for media in [
            "text/plain",
            "TEXT/CSS;x",
            "application/json",
            "application/ld+json",
            "image/svg+xml",
            "application/wasm",
            "font/ttf",
        ] {
            assert_eq!(one(&[], 200, &[("Content-Type", media)], None), Ok(false), "{media}");
        }
        for media in [
            "image/png",
            "video/mp4",
            "application/zip",
            "font/woff2",
            "application/octet-stream",
            "",
            "text/",
            "+json",
            "textual/x",
        ] {
            assert_eq!(one(&[], 200, &[("Content-Type", media)], None), Err(WhyPlain::MediaType), "{media}");
        }
        assert_eq!(one(&[], 200, &[], None), Err(WhyPlain::MediaType));
    }

    #[test]
    fn rfc9110_8_8_1_the_compressed_one_has_a_weak_tag_and_no_length() {
        let mut answer = with(
            Head::answer(200),
            &[HTML, ("ETag", "\"a\""), ("Content-Length", "5"), ("Accept-Ranges", "bytes"), ("X", "1")],
        );
        recode(&mut answer, Coding::Brotli);
        let text = String::from_utf8_lossy(answer.at(answer.start_and_lines())).into_owned();
        assert_eq!(
            text,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nX: 1\r\nContent-Encoding: br\r\nETag: W/\"a\"\r\n"
        );
        let mut weak = with(Head::answer(200), &[("ETag", "W/\"a\"")]);
        recode(&mut weak, Coding::Gzip);
        assert_eq!(weak.named("etag"), Some(&b"W/\"a\""[..]));
    }

    #[test]
    fn rfc9110_12_5_5_vary_is_said_once() {
        for (lines, count) in [
            (&[][..], 1),
            (&[("Vary", "Accept")], 2),
            (&[("Vary", "Accept, accept-encoding")], 1),
            (&[("vary", "*")], 1),
        ] {
            let mut answer = with(Head::answer(200), lines);
            vary(&mut answer);
            assert_eq!(answer.lines().len(), count, "{lines:?}");
        }
    }
}
