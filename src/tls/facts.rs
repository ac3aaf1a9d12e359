//! What is known of a client's verified certificate, and what a backend is told about it.

use std::net::IpAddr;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};
use x509_parser::x509::X509Name;

/// Header lines about a certificate that was verified: `Client-Cert` (RFC 9440), the whole of it, and
/// `X-Forwarded-Client-Cert` in the form that Envoy gave it, for whoever wants names without a parser.
#[must_use]
pub fn certificate_lines(certificate: &[u8]) -> Vec<u8> {
    let mut lines = format!("Client-Cert: :{}:\r\n", STANDARD.encode(certificate)).into_bytes();
    lines.extend_from_slice(b"X-Forwarded-Client-Cert: Hash=");
    for byte in digest::digest(&digest::SHA256, certificate).as_ref() {
        lines.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    if let Ok((_, parsed)) = X509Certificate::from_der(certificate) {
        element(&mut lines, "Subject", &subject(parsed.subject()));
        let alternative = parsed.subject_alternative_name().ok().flatten();
        for name in alternative.iter().flat_map(|extension| &extension.value.general_names) {
            match name {
                GeneralName::URI(uri) => element(&mut lines, "URI", uri),
                GeneralName::DNSName(name) => element(&mut lines, "DNS", name),
                // The whole certificate is in the other line.
                _ => {}
            }
        }
    }
    lines.extend_from_slice(b"\r\n");
    lines
}

/// Whom a verified certificate is about. Routes ask for it, and texts name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Its subject as RFC 4514 writes it; empty: it has none.
    pub subject: Box<str>,
    /// The first common name in it; empty: there is none.
    pub common_name: Box<str>,
    /// Its other names (subjectAltName): DNS names, email addresses, URIs, and IP addresses as they are written; in their order.
    pub names: Box<[Box<str>]>,
}

impl CertificateFacts {
    /// Those of a certificate; none of bytes that are no certificate.
    #[must_use]
    pub fn of(certificate: &[u8]) -> CertificateFacts {
        let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
            return CertificateFacts::default();
        };
        let alternative = parsed.subject_alternative_name().ok().flatten();
        let names = alternative.iter().flat_map(|extension| &extension.value.general_names);
        let common_name = parsed.subject().iter_common_name().find_map(|name| name.as_str().ok());
        CertificateFacts {
            subject: subject(parsed.subject()).into(),
            common_name: common_name.unwrap_or_default().into(),
            names: names.filter_map(other_name).map(String::into_boxed_str).collect(),
        }
    }
}

/// A name as people write it; `None`: it is of another kind.
fn other_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(text) | GeneralName::RFC822Name(text) | GeneralName::URI(text) => {
            Some((*text).to_owned())
        }
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)).ok().map(|ip| ip.to_string())
        }
        _ => None,
    }
}

/// A name as RFC 4514 writes it, the first part first. A comma inside of a value must not look like the one between two:
/// an authority that has signed `a, O=admins` as somebody's common name has not said that they are one.
fn subject(name: &X509Name<'_>) -> String {
    let mut text = String::new();
    for rdn in name.iter_rdn() {
        for (place, attribute) in rdn.iter().enumerate() {
            text.push_str(match (text.is_empty(), place) {
                (true, _) => "",
                (false, 0) => ", ",
                (false, _) => " + ",
            });
            match oid2abbrev(attribute.attr_type(), oid_registry()) {
                Ok(known) => text.push_str(known),
                Err(_) => text.push_str(&attribute.attr_type().to_id_string()),
            }
            text.push('=');
            match attribute.as_str() {
                Ok(value) => escape(&mut text, value),
                // In an encoding of old: as it stands, in hex.
                Err(_) => {
                    text.push('#');
                    attribute.as_slice().iter().for_each(|byte| text.push_str(&format!("{byte:02x}")));
                }
            }
        }
    }
    text
}

/// One value of a name (RFC 4514 §2.4).
fn escape(text: &mut String, value: &str) {
    let last = value.chars().count().saturating_sub(1);
    for (place, character) in value.chars().enumerate() {
        let special = match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=' => true,
            ' ' => place == 0 || place == last,
            '#' => place == 0,
            _ => false,
        };
        if special {
            text.push('\\');
        }
        text.push(character);
    }
}

/// One `;key="value"`. Whatever an authority has signed, it can't end the value or the line.
fn element(lines: &mut Vec<u8>, key: &str, value: &str) {
    lines.extend_from_slice(format!(";{key}=\"").as_bytes());
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => lines.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => lines.push(byte),
            _ => lines.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    lines.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_in_a_certificate_can_end_its_value_or_its_line() {
        let mut lines = Vec::new();
        element(&mut lines, "Subject", "CN=a\"; b\\\r\nX: ü");
        assert_eq!(lines, b";Subject=\"CN=a\\\"; b\\\\%0D%0AX: %C3%BC\"");
    }

    #[test]
    fn a_comma_in_a_name_does_not_begin_another_part_of_it() {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let said = [
            (rcgen::DnType::OrganizationName, " users "),
            (rcgen::DnType::CommonName, "mallory, O=admins+OU=\"root\""),
        ];
        said.into_iter().for_each(|(kind, value)| params.distinguished_name.push(kind, value));
        let key = rcgen::KeyPair::generate().expect("randomness");
        let certificate = params.self_signed(&key).expect("signed");
        let (_, parsed) = X509Certificate::from_der(certificate.der()).expect("a certificate");
        let expected = r#"O=\ users\ , CN=mallory\, O\=admins\+OU\=\"root\""#;
        assert_eq!(subject(parsed.subject()), expected);
        assert_eq!(&*CertificateFacts::of(certificate.der()).subject, expected);
        let lines = String::from_utf8(certificate_lines(certificate.der())).expect("ascii");
        let quoted = expected.replace('\\', r"\\").replace('"', r#"\""#);
        assert!(lines.contains(&format!(";Subject=\"{quoted}\"")), "{lines}");
    }

    #[test]
    fn bytes_that_are_no_certificate_give_a_hash_and_no_names() {
        let text = String::from_utf8(certificate_lines(b"x")).expect("ascii");
        assert!(text.starts_with("Client-Cert: :eA==:\r\nX-Forwarded-Client-Cert: Hash=2d7116"), "{text}");
        assert!(text.ends_with("\r\n") && !text.contains("Subject"), "{text}");
        assert_eq!(CertificateFacts::of(b"x"), CertificateFacts::default());
    }

    #[test]
    fn names_of_every_kind_are_texts() {
        let mut params = rcgen::CertificateParams::default();
        let text = |text: &str| text.try_into().expect("ascii");
        params.subject_alt_names = vec![
            rcgen::SanType::DnsName(text("Robots.example")),
            rcgen::SanType::Rfc822Name(text("r2@robots.example")),
            rcgen::SanType::URI(text("spiffe://robots.example/r2")),
            rcgen::SanType::IpAddress("192.0.2.7".parse().expect("an address")),
            rcgen::SanType::IpAddress("2001:db8::7".parse().expect("an address")),
        ];
        let key = rcgen::KeyPair::generate().expect("randomness");
        let certificate = params.self_signed(&key).expect("signed");
        let facts = CertificateFacts::of(certificate.der());
        let names: Vec<&str> = facts.names.iter().map(|name| &**name).collect();
        let all =
            ["Robots.example", "r2@robots.example", "spiffe://robots.example/r2", "192.0.2.7", "2001:db8::7"];
        assert_eq!(names, all);
    }
}
