use rcgen::{CertificateParams, KeyPair, SerialNumber};

use super::*;

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = match content.len() {
        short @ 0..128 => vec![short as u8],
        long => vec![0x82, (long >> 8) as u8, long as u8],
    };
    [&[tag][..], &length, content].concat()
}

/// An answer of one authority about the certificate with this number: `status` is how it ends, `says` what it says.
pub(in crate::config) fn response(status: u8, serial: u8, says: u8, next: Option<&str>) -> Vec<u8> {
    let hash = der(0x30, &der(0x06, b"\x2b\x0e\x03\x02\x1a"));
    let id = der(0x30, &[hash, der(4, &[1; 20]), der(4, &[2; 20]), der(2, &[serial])].concat());
    let says = if says == 1 { der(0xa1, &der(0x18, b"20200101000000Z")) } else { der(0x80 | says, b"") };
    let next = next.map_or_else(Vec::new, |next| der(0xa0, &der(0x18, next.as_bytes())));
    let single = der(0x30, &[id, says, der(0x18, b"20200101000000Z"), next].concat());
    let responder = der(0xa2, &der(4, &[3; 20]));
    let data = [responder, der(0x18, b"20200101000000Z"), der(0x30, &single)].concat();
    let algorithm = der(0x30, &der(0x06, b"\x2a\x86\x48\xce\x3d\x04\x03\x02"));
    let basic = der(0x30, &[der(0x30, &data), algorithm, der(3, &[0; 70])].concat());
    let held = der(0x30, &[der(0x06, b"\x2b\x06\x01\x05\x05\x07\x30\x01\x01"), der(4, &basic)].concat());
    let bytes = if status == 0 { der(0xa0, &held) } else { Vec::new() };
    der(0x30, &[der(10, &[status]), bytes].concat())
}

#[test]
fn an_answer_is_taken_that_is_good_and_about_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.ocsp");
    let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    params.serial_number = Some(SerialNumber::from(7_u64));
    let key = KeyPair::generate().unwrap();
    let leaf = params.self_signed(&key).unwrap().der().clone();
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).unwrap();
    let certified = CertifiedKey::new(vec![leaf], key);
    let said = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        staple(&file, &certified).map(|staple| staple.until).map_err(|wrong| wrong.message)
    };
    let why = |bytes: &[u8]| said(bytes).unwrap_err().split("which ").nth(1).unwrap().to_owned();
    assert_eq!(said(&response(0, 7, 0, Some("20300102030405Z"))), Ok(1_893_553_445));
    assert_eq!(said(&response(0, 7, 0, None)), Ok(i64::MAX));
    assert_eq!(why(&response(0, 8, 0, None)), "is an answer about another certificate");
    assert_eq!(why(&response(0, 7, 1, None)), "says that the certificate is revoked");
    assert_eq!(why(&response(0, 7, 2, None)), "says that its authority does not know the certificate");
    assert_eq!(why(&response(3, 7, 0, None)), "is no answer: the authority has said \"try later\"");
    assert_eq!(why(b"nothing of the kind"), "is no OCSP response");
    let whole = response(0, 7, 0, Some("20300102030405Z"));
    for end in 1..whole.len() {
        assert_eq!(why(&whole[..end]), "is no OCSP response", "{end} bytes of it");
    }
    for at in 0..whole.len() {
        let mut altered = whole.clone();
        altered[at] ^= 0x55;
        // Whatever comes of it, it is no panic.
        let _ = said(&altered);
    }
}
