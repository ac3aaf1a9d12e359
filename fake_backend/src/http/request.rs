//! Heads of requests: from bytes to what the fake needs to know, strictly. A fake is also a judge: whatever RFC
//! 9112 forbids a proxy to send is refused with its reason, answered 400 and counted as malformed.

use super::body::Framing;

/// The longest head that is read.
pub(crate) const LONGEST_HEAD: usize = 1024 * 1024;
const MOST_HEADERS: usize = 512;

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// As received, with the empty line.
    pub(crate) head: Vec<u8>,
    pub(crate) method: String,
    /// Without query, scheme and authority.
    pub(crate) path: String,
    /// Without the question mark.
    pub(crate) query: String,
    pub(crate) framing: Framing,
    /// HTTP/1.0, which knows no chunks and no 1xx.
    pub(crate) old: bool,
    pub(crate) keep_alive: bool,
    pub(crate) expects_continue: bool,
    /// The protocol of an `Upgrade` line that `Connection` names.
    pub(crate) upgrade: Option<String>,
    pub(crate) websocket_key: Option<String>,
}

/// What is wrong with a request, for the 400.
pub(crate) type Fault = &'static str;

impl Request {
    /// The head at the start of `bytes`, or `None` when it is not complete yet.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>, Fault> {
        // A ClientHello has no empty line to wait for.
        if bytes.first().is_some_and(|&byte| byte.is_ascii_control() && byte != b'\r' && byte != b'\n') {
            return Err("the first byte is no HTTP");
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return if bytes.len() > LONGEST_HEAD { Err("the head is too long") } else { Ok(None) };
        };
        let head = &bytes[..end + 4];
        if head.iter().enumerate().any(|(at, &byte)| byte == b'\n' && (at == 0 || head[at - 1] != b'\r')) {
            return Err("a line ends with LF alone");
        }
        if head.starts_with(b"\r\n") {
            return Err("an empty line comes before the request line");
        }
        let mut lines = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut lines);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err("the head is not complete"),
            Err(httparse::Error::TooManyHeaders) => return Err("there are too many headers"),
            Err(_) => return Err("the head is no HTTP/1 head"),
        }
        let old = parsed.version == Some(0);
        let method = parsed.method.unwrap_or_default().to_owned();
        let target = parsed.path.unwrap_or_default();
        let mut request = Self {
            head: head.to_vec(),
            method,
            path: String::new(),
            query: String::new(),
            framing: Framing::Length(0),
            old,
            keep_alive: !old,
            expects_continue: false,
            upgrade: None,
            websocket_key: None,
        };
        request.take_target(target);
        request.take_headers(parsed.headers)?;
        Ok(Some(request))
    }

    fn take_target(&mut self, target: &str) {
        let origin = match target.split_once("://") {
            Some((_, rest)) if !target.starts_with('/') => rest.find('/').map_or("/", |slash| &rest[slash..]),
            Some(_) | None => target,
        };
        let (path, query) = origin.split_once('?').unwrap_or((origin, ""));
        path.clone_into(&mut self.path);
        query.clone_into(&mut self.query);
    }

    fn take_headers(&mut self, headers: &[httparse::Header<'_>]) -> Result<(), Fault> {
        let (mut hosts, mut length, mut chunked) = (0, None, false);
        let mut upgrade = None;
        let mut connection = Vec::new();
        for header in headers {
            let text = String::from_utf8_lossy(header.value);
            let value = text.trim_matches([' ', '\t']);
            match header.name.to_ascii_lowercase().as_str() {
                "host" => hosts += 1,
                "content-length" if length.is_some() => return Err("there are two Content-Length lines"),
                "content-length" => {
                    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                    length = Some(
                        value.parse::<u64>().ok().filter(|_| digits).ok_or("Content-Length is no number")?,
                    );
                }
                "transfer-encoding" if chunked => return Err("there are two Transfer-Encoding lines"),
                "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => chunked = true,
                "transfer-encoding" => return Err("Transfer-Encoding is not `chunked`"),
                "connection" => {
                    connection.extend(value.split(',').map(|word| word.trim().to_ascii_lowercase()))
                }
                "expect" => self.expects_continue = value.eq_ignore_ascii_case("100-continue"),
                "upgrade" => upgrade = Some(value.to_owned()),
                "sec-websocket-key" => self.websocket_key = Some(value.to_owned()),
                _ => {}
            }
        }
        let named = |word: &str| connection.iter().any(|name| name == word);
        self.keep_alive = if self.old { named("keep-alive") } else { true } && !named("close");
        self.upgrade = upgrade.filter(|_| named("upgrade") && !self.old);
        self.framing = match (chunked, length) {
            (true, Some(_)) => return Err("there are both Transfer-Encoding and Content-Length"),
            (true, None) if self.old => return Err("HTTP/1.0 has no Transfer-Encoding"),
            (true, None) => Framing::Chunked,
            (false, length) => Framing::Length(length.unwrap_or(0)),
        };
        match hosts {
            1 => Ok(()),
            0 if self.old => Ok(()),
            0 => Err("there is no Host"),
            _ => Err("there are two Host lines"),
        }
    }

    /// The value of a key in the query.
    pub(crate) fn asked(&self, key: &str) -> Option<&str> {
        self.query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(name, _)| *name == key)
            .map(|(_, v)| v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &str) -> Result<Request, Fault> {
        Request::parse(head.as_bytes()).map(|request| request.expect("the head is complete"))
    }

    #[test]
    fn a_head_is_read_in_both_forms_of_its_target() {
        let request =
            parse("GET http://host:80/a/b?c=1&d=2 HTTP/1.1\r\nHost: host\r\n\r\nrest").expect("it is right");
        assert_eq!((request.path.as_str(), request.asked("d")), ("/a/b", Some("2")));
        assert!(request.head.ends_with(b"host\r\n\r\n"));
        let request = parse("GET /x?u=http://y HTTP/1.0\r\n\r\n").expect("it is right");
        assert_eq!((request.path.as_str(), request.keep_alive), ("/x", false));
        assert_eq!(Request::parse(b"GET / HTTP/1.1\r\nHost"), Ok(None));
    }

    #[test]
    fn what_the_rfc_forbids_is_refused() {
        for (head, reason) in [
            ("GET / HTTP/1.1\r\n\r\n", "there is no Host"),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "there are two Host lines"),
            ("GET / HTTP/1.1\nHost: a\r\n\r\n", "a line ends with LF alone"),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", "Content-Length is no number"),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
                "there are two Content-Length lines",
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "there are both Transfer-Encoding and Content-Length",
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
                "Transfer-Encoding is not `chunked`",
            ),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", "the head is no HTTP/1 head"),
        ] {
            assert_eq!(parse(head).map(|_| ()), Err(reason), "{head:?}");
        }
    }
}
