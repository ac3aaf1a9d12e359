//! The certificate that proves a name in a handshake.

use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

/// The one that says `digest` for `name` (RFC 8737 §3).
///
/// # Errors
/// The name is none.
pub(super) fn proving(name: &str, digest: &[u8]) -> Result<CertifiedKey, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions.push(CustomExtension::new_acme_identifier(digest));
    let certificate = params.self_signed(&key)?;
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let private = any_supported_type(&private).map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    Ok(CertifiedKey::new(vec![certificate.der().clone()], private))
}
