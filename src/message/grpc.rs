//! What gRPC says in the lines of a head, over whatever wire: its statuses, its deadline, and what either stands for in HTTP
//! (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>).

use std::time::Duration;

use super::{Cause, Head};
use crate::config::model::GrpcStatus;

/// The type of a call's messages. Behind it stands nothing, their encoding (`+proto`), or a parameter; `-web` is another protocol.
const CONTENT_TYPE: &[u8] = b"application/grpc";
const WEB: &[u8] = b"application/grpc-web";
/// Digits of a `grpc-timeout`.
const TIMEOUT_DIGITS: usize = 8;

impl GrpcStatus {
    /// That of a `grpc-status` line. One that nobody has registered is [`GrpcStatus::Unknown`], as clients take it.
    #[must_use]
    pub fn of_value(value: &[u8]) -> GrpcStatus {
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<usize>().ok());
        number.and_then(|number| GrpcStatus::ALL.get(number)).copied().unwrap_or(GrpcStatus::Unknown)
    }

    /// That of an answer which is nothing but a head (Trailers-Only); `None`: its trailers will say it, or nobody does.
    #[must_use]
    pub fn of_head(head: &Head) -> Option<GrpcStatus> {
        head.named("grpc-status").map(GrpcStatus::of_value)
    }

    /// That of trailer lines with their CRLFs; `None`: they have none.
    #[must_use]
    pub fn of_trailers(lines: &[u8]) -> Option<GrpcStatus> {
        value_of(lines, b"grpc-status").map(GrpcStatus::of_value)
    }

    /// What a client takes an answer for that has no gRPC in it
    /// (<https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md>).
    #[must_use]
    pub const fn of_http(status: u16) -> GrpcStatus {
        match status {
            400 => GrpcStatus::Internal,
            401 => GrpcStatus::Unauthenticated,
            403 => GrpcStatus::PermissionDenied,
            404 => GrpcStatus::Unimplemented,
            429 | 502 | 503 | 504 => GrpcStatus::Unavailable,
            _ => GrpcStatus::Unknown,
        }
    }

    /// What a call ends with that did so for `cause`, where `status` is what another client would get.
    #[must_use]
    pub const fn of_cause(cause: Cause, status: u16) -> GrpcStatus {
        match cause {
            Cause::GrpcTimeout => GrpcStatus::DeadlineExceeded,
            // Nobody would hear of a status for it in HTTP.
            Cause::TunnelIdle | Cause::BodyTimeout => GrpcStatus::Unavailable,
            Cause::BodyTooLarge => GrpcStatus::ResourceExhausted,
            _ => GrpcStatus::of_http(status),
        }
    }
}

/// Whether a head is that of a call, or of the answer to one.
#[must_use]
pub fn is_grpc(head: &Head) -> bool {
    let Some(kind) = head.named("content-type") else { return false };
    let Some((start, rest)) = kind.split_at_checked(CONTENT_TYPE.len()) else { return false };
    start.eq_ignore_ascii_case(CONTENT_TYPE) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
}

/// Whether a head is that of a call in the form of the web, which goes over any HTTP: its statuses stand in bodies.
#[must_use]
pub fn is_web(head: &Head) -> bool {
    let kind = head.named("content-type").unwrap_or_default();
    kind.get(..WEB.len()).is_some_and(|start| start.eq_ignore_ascii_case(WEB))
}

/// How long a call may take, by its `grpc-timeout`; `None`: it does not say, or nothing that can be understood.
#[must_use]
pub fn timeout_of(head: &Head) -> Option<Duration> {
    let (unit, digits) = head.named("grpc-timeout")?.split_last()?;
    if digits.is_empty() || digits.len() > TIMEOUT_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// What a backend says about trying again (<https://github.com/grpc/proposal/blob/master/A6-client-retries.md#pushback>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushback {
    /// After so much time.
    After(Duration),
    /// Not at all.
    Never,
}

/// What the head of an answer says about trying again; `None`: nothing.
#[must_use]
pub fn pushback_of(head: &Head) -> Option<Pushback> {
    let value = head.named("grpc-retry-pushback-ms")?;
    let millis = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u32>().ok());
    // Whatever is no such number means no.
    Some(millis.map_or(Pushback::Never, |millis| Pushback::After(Duration::from_millis(millis.into()))))
}

/// The value of the first line with this name, which is in lower case.
fn value_of<'l>(lines: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let lines = lines.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| {
            let (start, value) = line.split_at_checked(name.len())?;
            let value = value.strip_prefix(b":")?;
            start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
        })
        .next()
}

/// The trailers of a call that ends for `cause`, with CRLFs: what happened, and which request it was. `id` is in hex.
#[must_use]
pub fn trailers(status: GrpcStatus, cause: Cause, id: &[u8]) -> Vec<u8> {
    let mut lines = format!("grpc-status: {}\r\ngrpc-message: ", status as u8).into_bytes();
    lines.extend_from_slice(&message(cause, id));
    lines.extend_from_slice(b"\r\n");
    lines
}

/// The value of `grpc-message` for a call that ends for `cause`: what has to be is percent-encoded.
#[must_use]
pub fn message(cause: Cause, id: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    for &byte in cause.text().as_bytes() {
        match byte {
            b'%' | ..b' ' | 0x7f.. => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            plain => out.push(plain),
        }
    }
    out.extend_from_slice(b" cause: ");
    out.extend_from_slice(cause.token().as_bytes());
    out.extend_from_slice(b" request: ");
    out.extend_from_slice(id);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::GrpcStatuses;

    fn head(name: &str, value: &str) -> Head {
        let mut head = Head::request("POST", "/shop.Cart/Add", "x");
        head.push(name.as_bytes(), value.as_bytes());
        head
    }

    #[test]
    fn a_call_is_known_by_its_type_and_the_web_s_form_is_another_protocol() {
        for (kind, is) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("Application/GRPC; x=y", true),
            ("application/grpc-web", false),
            ("application/grpc-web+proto", false),
            ("application/grp", false),
            ("", false),
        ] {
            assert_eq!(is_grpc(&head("content-type", kind)), is, "{kind}");
            assert_eq!(is_web(&head("content-type", kind)), kind.contains("-web"), "{kind}");
        }
        assert!(!is_grpc(&Head::request("POST", "/", "x")));
    }

    #[test]
    fn timeouts_have_at_most_eight_digits_and_a_unit() {
        for (value, nanos) in [
            ("1n", Some(1)),
            ("20u", Some(20_000)),
            ("300m", Some(300_000_000)),
            ("7S", Some(7_000_000_000)),
            ("2M", Some(120_000_000_000)),
            ("99999999H", Some(99_999_999 * 3_600_000_000_000_u128)),
            ("0S", Some(0)),
            ("100000000S", None),
            ("S", None),
            ("", None),
            ("-1S", None),
            ("1s", None),
            ("1", None),
            ("1 S", None),
        ] {
            let timeout = timeout_of(&head("grpc-timeout", value));
            assert_eq!(timeout.map(|timeout| timeout.as_nanos()), nanos, "{value}");
        }
        assert_eq!(timeout_of(&head("x", "1S")), None);
    }

    #[test]
    fn statuses_are_read_from_heads_and_trailers() {
        assert_eq!(GrpcStatus::of_head(&head("grpc-status", "14")), Some(GrpcStatus::Unavailable));
        assert_eq!(GrpcStatus::of_head(&head("grpc-message", "14")), None);
        for (lines, status) in [
            (&b"grpc-status: 0\r\n"[..], Some(GrpcStatus::Ok)),
            (b"x: 1\r\nGrpc-Status:13\r\ngrpc-message: a\r\n", Some(GrpcStatus::Internal)),
            (b"grpc-status: 17\r\n", Some(GrpcStatus::Unknown)),
            (b"grpc-status: x\r\n", Some(GrpcStatus::Unknown)),
            (b"grpc-status-details-bin: 0\r\n", None),
            (b"", None),
        ] {
            assert_eq!(GrpcStatus::of_trailers(lines), status, "{lines:?}");
        }
    }

    #[test]
    fn numbers_names_and_sets_agree() {
        let mut seen = std::collections::HashSet::new();
        for (number, status) in GrpcStatus::ALL.iter().enumerate() {
            assert_eq!(*status as usize, number);
            assert_eq!(GrpcStatus::of_value(number.to_string().as_bytes()), *status);
            assert!(seen.insert(status.name()));
        }
        let set = GrpcStatuses::of(|status| status.http() >= 500);
        let names: Vec<_> = set.iter().map(GrpcStatus::name).collect();
        assert_eq!(names, ["unknown", "internal", "unavailable", "data_loss"]);
        assert!(set.has(GrpcStatus::Internal) && !set.has(GrpcStatus::DeadlineExceeded));
        assert!(GrpcStatuses::default().is_empty() && !set.is_empty());
    }

    #[test]
    fn causes_follow_the_official_mapping_but_for_what_http_has_no_word_for() {
        for (cause, status) in [
            (Cause::NoRoute, GrpcStatus::Unimplemented),
            (Cause::AccessDenied, GrpcStatus::PermissionDenied),
            (Cause::TokenExpired, GrpcStatus::Unauthenticated),
            (Cause::RateLimited, GrpcStatus::Unavailable),
            (Cause::BackendClosed, GrpcStatus::Unavailable),
            (Cause::NoBackend, GrpcStatus::Unavailable),
            (Cause::FirstByteTimeout, GrpcStatus::Unavailable),
            (Cause::BadHead, GrpcStatus::Internal),
            (Cause::HeadTooLarge, GrpcStatus::Unknown),
            (Cause::GrpcTimeout, GrpcStatus::DeadlineExceeded),
            (Cause::TunnelIdle, GrpcStatus::Unavailable),
        ] {
            assert_eq!(GrpcStatus::of_cause(cause, cause.status()), status, "{cause}");
        }
        // No call that has failed looks as if it had not.
        for &cause in Cause::ALL.iter().filter(|cause| cause.status() >= 400) {
            assert_ne!(GrpcStatus::of_cause(cause, cause.status()), GrpcStatus::Ok, "{cause}");
        }
    }

    #[test]
    fn a_backend_says_when_it_wants_to_be_asked_again() {
        let after = |value| pushback_of(&head("grpc-retry-pushback-ms", value));
        assert_eq!(after("250"), Some(Pushback::After(Duration::from_millis(250))));
        assert_eq!(after("0"), Some(Pushback::After(Duration::ZERO)));
        for value in ["-1", "", "soon", "99999999999"] {
            assert_eq!(after(value), Some(Pushback::Never), "{value}");
        }
        assert_eq!(pushback_of(&head("x", "1")), None);
    }

    #[test]
    fn a_message_says_what_happened_and_has_no_byte_that_a_line_may_not() {
        for &cause in Cause::ALL {
            let lines = String::from_utf8(trailers(GrpcStatus::Unavailable, cause, b"feed")).expect("text");
            assert!(lines.starts_with("grpc-status: 14\r\ngrpc-message: "), "{lines}");
            assert!(lines.ends_with(&format!(" cause: {} request: feed\r\n", cause.token())), "{lines}");
            assert_eq!(lines.matches('\n').count(), 2, "{lines}");
        }
    }
}
