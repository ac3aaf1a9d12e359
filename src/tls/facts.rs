//! What a backend is told about a client's verified certificate.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

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
        element(&mut lines, "Subject", &parsed.subject().to_string());
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
    fn bytes_that_are_no_certificate_give_a_hash_and_no_names() {
        let text = String::from_utf8(certificate_lines(b"x")).expect("ascii");
        assert!(text.starts_with("Client-Cert: :eA==:\r\nX-Forwarded-Client-Cert: Hash=2d7116"), "{text}");
        assert!(text.ends_with("\r\n") && !text.contains("Subject"), "{text}");
    }
}
