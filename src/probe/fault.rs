//! Why a connect, a request or a lookup failed: whose fault it is, in a few words.

use std::io::{self, ErrorKind};

use super::finding::Finding;
use crate::net::connect::shortage;
use crate::tls;

/// `error` in a few words.
pub(super) fn words(error: &io::Error) -> String {
    let known = match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset => "connection reset",
        ErrorKind::BrokenPipe => "connection closed by the backend",
        ErrorKind::HostUnreachable => "host unreachable",
        ErrorKind::NetworkUnreachable => "network unreachable",
        ErrorKind::TimedOut => "connection timed out",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::NotFound => "no such socket",
        // The kinds are an open list; the system's text is the best that is left.
        _ => return error.to_string(),
    };
    known.to_owned()
}

/// What a failed connect, or one that broke off, says about a backend.
pub(super) fn of_io(error: &io::Error) -> Finding {
    match shortage(error) {
        Some(text) => Finding::Starved(text.into()),
        None => Finding::bad(words(error)),
    }
}

/// What a failed TLS handshake says about a backend. `hello`: its ServerHello had come.
pub(super) fn of_handshake(error: &io::Error, hello: bool) -> Finding {
    match (broken(error), error.kind()) {
        (Some(broken), _) => Finding::bad(format!("TLS: {}", tls::backend_words(broken, hello))),
        (None, ErrorKind::UnexpectedEof) => Finding::bad("TLS: closed in the handshake"),
        // The kinds are an open list.
        (None, _) => of_io(error),
    }
}

/// What a backend says about our certificate behind the handshake, if `error` is such a word.
pub(super) fn of_alert(error: &io::Error) -> Option<Finding> {
    matches!(broken(error), Some(rustls::Error::AlertReceived(_))).then(|| of_handshake(error, true))
}

fn broken(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// What a failed HTTP exchange says about a backend. `other`: what is said of one that speaks something else.
pub(super) fn of_http(error: &hyper::Error, other: &str) -> Finding {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return if broken(error).is_some() { of_handshake(error, true) } else { of_io(error) };
        }
        source = cause.source();
    }
    // hyper has a question for this only in servers; a test notices when the text changes.
    if error.is_parse() && error.to_string() == "message head is too large" {
        Finding::bad("the answer's head is too large")
    } else if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        Finding::bad("closed without an answer")
    } else {
        // A parse error, or bytes before the request was sent: whatever it speaks, it is something else.
        Finding::bad(other)
    }
}

/// What the end of an answer in the middle of its body says about a backend.
pub(super) fn of_body(error: &hyper::Error) -> Finding {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<io::Error>()
            && error.raw_os_error().is_some()
        {
            return of_io(error);
        }
        source = cause.source();
    }
    Finding::bad("the answer's body broke off")
}

/// Why a lookup failed, without the preamble that every such text has.
pub(super) fn of_lookup(error: &io::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("failed to lookup address information: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_local_shortage_is_told_from_a_refusal() {
        let of = |errno: rustix::io::Errno| of_io(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert_eq!(of(rustix::io::Errno::MFILE), Finding::Starved("out of descriptors (EMFILE)".into()));
        assert_eq!(of(rustix::io::Errno::CONNREFUSED), Finding::bad("connection refused"));
    }

    #[test]
    fn a_lookup_error_is_short() {
        let long = "failed to lookup address information: Name or service not known";
        assert_eq!(of_lookup(&io::Error::other(long)), "Name or service not known");
        assert_eq!(of_lookup(&io::Error::other("odd")), "odd");
    }
}
