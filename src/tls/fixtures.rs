//! Certificates for tests.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;

use crate::config::model::tls::Identity;

/// One for these names that signs itself.
pub(crate) fn identity(names: &[&str]) -> Identity {
    let key = KeyPair::generate().expect("randomness");
    let certificate = CertificateParams::default().self_signed(&key).expect("signed").der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let certified = CertifiedKey::new(vec![certificate], any_supported_type(&key).expect("P-256"));
    Identity {
        file: "a.pem".into(),
        certified: Arc::new(certified),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        begins: 0,
        expires: 0,
        facts: Default::default(),
        staple: None,
    }
}
