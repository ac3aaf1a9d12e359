//! The request, made once: with the fields that a program sends which is neither a browser nor a benchmark.

use super::options::Options;

const TARGET: &str = "/api/items?page=2";
const AGENT: &str = "rig/1.0";
const ANY: &str = "*/*";
const CODINGS: &str = "gzip, deflate";
const TOKEN: &str = "Bearer 0123456789abcdef0123456789abcdef";
const SOURCE: (&str, &str) = ("X-Request-Source", "measurement");

/// What is sent for each request.
pub(super) enum Request {
    /// HTTP/1: the head and the content.
    Lines(Vec<u8>),
    /// HTTP/2: header blocks.
    Fields(Blocks),
}

/// The same fields twice, as HPACK has them (RFC 7541).
pub(super) struct Blocks {
    /// For a connection's first request: the server is to keep those fields that say the same in each request.
    pub(super) first: Vec<u8>,
    /// For all others: they name what it keeps.
    pub(super) next: Vec<u8>,
}

impl Request {
    /// As the options want it.
    pub(super) fn new(options: &Options) -> Request {
        if options.streams.is_none() {
            return Request::Lines(lines(options));
        }
        let made = |kept| block(&options.host, options.tls.is_some(), kept);
        Request::Fields(Blocks { first: made(false), next: made(true) })
    }
}

fn lines(options: &Options) -> Vec<u8> {
    let (method, length) = match options.upload {
        Some(bytes) => ("POST", format!("Content-Length: {bytes}\r\n")),
        None => ("GET", String::new()),
    };
    let close = if options.close { "Connection: close\r\n" } else { "" };
    let (name, source) = SOURCE;
    let head = format!(
        "{method} {TARGET} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {AGENT}\r\nAccept: {ANY}\r\n\
         Accept-Encoding: {CODINGS}\r\nAuthorization: {TOKEN}\r\n{name}: {source}\r\n{length}{close}\r\n",
        options.host
    );
    let mut request = head.into_bytes();
    request.resize(request.len() + options.upload.unwrap_or_default(), b'u');
    request
}

/// One block, with the choices that libraries make: a target and a token are not kept, the others are. Numbers are those of the static
/// table, from 62 on of what was kept, the latest first.
fn block(host: &str, secure: bool, kept: bool) -> Vec<u8> {
    let (get, scheme) = (0x82, if secure { 0x87 } else { 0x86 });
    let mut block = vec![get, scheme];
    let keep = |block: &mut Vec<u8>, number: u8, name: &[u8], value: &str| {
        if kept {
            block.push(0x80 | number);
        } else {
            block.extend_from_slice(name);
            string(block, value);
        }
    };
    block.push(4);
    string(&mut block, TARGET);
    keep(&mut block, 65, &[0x40 | 1], host);
    keep(&mut block, 64, &[0x40 | 58], AGENT);
    keep(&mut block, 63, &[0x40 | 19], ANY);
    // It has CODINGS as its value.
    block.push(0x80 | 16);
    // Never to be kept: 15, and 8 more.
    block.extend_from_slice(&[0x10 | 15, 8]);
    string(&mut block, TOKEN);
    let mut name = vec![0x40];
    string(&mut name, &SOURCE.0.to_ascii_lowercase());
    keep(&mut block, 62, &name, SOURCE.1);
    block
}

/// A string as it is, behind its length.
fn string(block: &mut Vec<u8>, text: &str) {
    match text.len() {
        length @ 0..127 => block.push(length as u8),
        length => {
            block.push(127);
            let mut left = length - 127;
            while left > 127 {
                block.push(left as u8 | 0x80);
                left >>= 7;
            }
            block.push(left as u8);
        }
    }
    block.extend_from_slice(text.as_bytes());
}
