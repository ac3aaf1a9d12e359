//! Why there is no session with a backend: in one word for the cause, in a sentence for the operator.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, OtherError, PeerIncompatible};

/// The longest text, in characters: much of it is the peer's.
const LONGEST: usize = 400;
/// Names of a certificate that are told; some have a hundred.
const NAMES: usize = 3;
/// The last second that can be written as a date, at the end of the year 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// Why there is no session with a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// Its certificate is for another name.
    Name,
    /// Its certificate has expired, or is not in force yet.
    Expired,
    /// Nobody whom we trust has issued its certificate.
    Issuer,
    /// It did not accept our certificate, or wants one.
    Refused,
    /// What it sent is not TLS.
    NotTls,
    /// Anything else: no common version or suite, a broken message, a certificate that is wrong otherwise.
    Other,
}

impl TlsFault {
    /// What `error` means. `hello`: the backend's ServerHello had come before.
    #[must_use]
    pub fn of(error: &Error, hello: bool) -> TlsFault {
        match error {
            Error::InvalidCertificate(wrong) => match wrong {
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    TlsFault::Name
                }
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => TlsFault::Expired,
                CertificateError::UnknownIssuer => TlsFault::Issuer,
                // rustls' list is open.
                _ if is_authority(wrong) || is_self_signed(wrong) => TlsFault::Issuer,
                _ => TlsFault::Other,
            },
            Error::AlertReceived(
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied,
            ) => TlsFault::Refused,
            // In TLS 1.2 a missing certificate has no alert of its own. With a ServerHello version and suite are
            // agreed on, and our certificate is what is left to fail on (RFC 5246 §7.4.6).
            Error::AlertReceived(AlertDescription::HandshakeFailure) if hello => TlsFault::Refused,
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            ) => TlsFault::NotTls,
            // rustls' list is open.
            _ => TlsFault::Other,
        }
    }
}

/// [`words`] about a backend, with what its keys can do about it.
#[must_use]
pub fn backend_words(error: &Error, hello: bool) -> String {
    let text = words(error, hello);
    match error {
        Error::InvalidCertificate(wrong) if is_self_signed(wrong) => {
            format!("{text}: name that file as `upstream_tls.ca_file`, or set `insecure: true`")
        }
        // rustls' list is open, and most of it needs no cure of ours.
        _ => text,
    }
}

/// What went wrong, about the peer as "it". `hello` as in [`TlsFault::of`]. The text is short and without control
/// characters, whatever the peer has put into its certificate.
#[must_use]
pub fn words(error: &Error, hello: bool) -> String {
    let text = match (error, TlsFault::of(error, hello)) {
        (Error::InvalidCertificate(wrong), fault) => match wrong {
            CertificateError::NotValidForNameContext { expected, presented } => {
                let expected = expected.to_str();
                match names(presented) {
                    None => format!("its certificate has no name (subjectAltName), and {expected} is needed"),
                    Some(names) => format!("its certificate is valid for {names}, not for {expected}"),
                }
            }
            CertificateError::ExpiredContext { not_after, .. } => {
                format!("its certificate expired on {}", date(not_after.as_secs()))
            }
            CertificateError::NotValidYetContext { not_before, .. } => {
                format!("its certificate is not in force before {}", date(not_before.as_secs()))
            }
            _ if is_self_signed(wrong) => "its certificate is self-signed".to_owned(),
            _ if is_authority(wrong) => {
                "its certificate is that of an authority, and not one whom we trust".to_owned()
            }
            // rustls' list is open.
            _ => match fault {
                TlsFault::Name => "its certificate is for another name".to_owned(),
                TlsFault::Expired => "its certificate has expired or is not in force yet".to_owned(),
                TlsFault::Issuer => "its certificate was issued by nobody whom we trust".to_owned(),
                TlsFault::Refused | TlsFault::NotTls | TlsFault::Other => {
                    format!("its certificate is wrong: {wrong}")
                }
            },
        },
        (Error::AlertReceived(AlertDescription::ProtocolVersion), _)
        | (Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13), _) => {
            "it speaks no version of TLS from 1.2 on".to_owned()
        }
        (Error::AlertReceived(alert), TlsFault::Refused) => {
            format!("it did not accept our certificate, or wants one (alert {alert:?})")
        }
        (Error::AlertReceived(alert), _) => format!("it ended the session with the alert {alert:?}"),
        (_, TlsFault::NotTls) => "it does not speak TLS".to_owned(),
        // rustls' list is open, and its text the best that is left.
        (_, _) => error.to_string(),
    };
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    text.chars().map(plain).take(LONGEST).collect()
}

/// A backend's certificate is its own issuer, and does not stand in `ca_file`.
#[derive(Debug)]
pub(super) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the certificate is self-signed")
    }
}

impl std::error::Error for SelfSigned {}

fn is_self_signed(wrong: &CertificateError) -> bool {
    matches!(wrong, CertificateError::Other(OtherError(inner)) if inner.is::<SelfSigned>())
}

/// True when a certificate of an authority was shown as a server's own: `openssl req -x509` makes such, and only
/// one that stands in `ca_file` is taken.
fn is_authority(wrong: &CertificateError) -> bool {
    // The error within is of a crate that is none of our dependencies; a test notices when its text changes.
    matches!(wrong, CertificateError::Other(inner) if inner.to_string().contains("CaUsedAsEndEntity"))
}

/// The first of the names of a certificate, as rustls words them: `DnsName("a.example")`, `IpAddress(10.0.0.7)`.
fn names(presented: &[String]) -> Option<String> {
    let plain = |name: &String| {
        let inner = name.strip_prefix("DnsName(\"").and_then(|rest| rest.strip_suffix("\")"));
        let inner = inner.or_else(|| name.strip_prefix("IpAddress(").and_then(|rest| rest.strip_suffix(')')));
        inner.unwrap_or(name).chars().take(LONGEST / 8).collect::<String>()
    };
    let first = presented.iter().take(NAMES).map(plain).collect::<Vec<_>>().join(", ");
    match presented.len() {
        0 => None,
        count if count > NAMES => Some(format!("{first} and {} more", count - NAMES)),
        _ => Some(first),
    }
}

fn date(seconds: u64) -> String {
    let since = Duration::from_secs(seconds.min(LAST_SECOND));
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    fn wrong_name(presented: &[&str]) -> Error {
        Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("b.example").expect("a name").to_owned(),
            presented: presented.iter().map(|&name| name.to_owned()).collect(),
        })
    }

    #[test]
    fn a_wrong_name_is_told_with_both_names() {
        let text = |presented: &[&str]| words(&wrong_name(presented), true);
        assert_eq!(
            text(&["DnsName(\"a.example\")"]),
            "its certificate is valid for a.example, not for b.example"
        );
        assert_eq!(
            text(&["DnsName(\"a\")", "IpAddress(10.0.0.7)", "DnsName(\"c\")", "DnsName(\"d\")"]),
            "its certificate is valid for a, 10.0.0.7, c and 1 more, not for b.example"
        );
        assert_eq!(text(&[]), "its certificate has no name (subjectAltName), and b.example is needed");
    }

    #[test]
    fn what_a_peer_writes_into_its_certificate_can_neither_forge_nor_flood_a_log() {
        let long = "x".repeat(100_000);
        let text = words(&wrong_name(&["DnsName(\"a\nWARN \u{1b}[2J\u{202e}\")", &long]), true);
        assert!(text.starts_with("its certificate is valid for a?WARN ?[2J?, xxx"), "{text}");
        assert!(text.len() <= LONGEST && text.contains("not for b.example"), "{text}");
    }

    #[test]
    fn dates_are_readable_and_never_panic() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let expired = |not_after| {
            Error::InvalidCertificate(CertificateError::ExpiredContext { time: at(0), not_after })
        };
        assert_eq!(
            words(&expired(at(1_000_000_000)), true),
            "its certificate expired on 2001-09-09T01:46:40Z"
        );
        assert!(words(&expired(at(u64::MAX)), true).ends_with("9999-12-31T23:59:59Z"));
    }

    #[test]
    fn a_failed_handshake_is_about_our_certificate_only_behind_a_hello() {
        let error = Error::AlertReceived(AlertDescription::HandshakeFailure);
        assert_eq!(
            (TlsFault::of(&error, true), TlsFault::of(&error, false)),
            (TlsFault::Refused, TlsFault::Other)
        );
        assert!(words(&error, false).contains("ended the session with the alert HandshakeFailure"));
    }
}
