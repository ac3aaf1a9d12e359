//! What is shown until an authority has issued a certificate.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::identity;
use crate::config::model::tls::Identity;

const DAY: Duration = Duration::from_secs(24 * 3_600);
/// The name of what it pretends to be read from.
const FILE: &str = "(self-signed)";

/// One that is for `names` and signs itself: no client trusts it that was not told to.
pub(in crate::config) fn stand_in(names: &[String]) -> Arc<Identity> {
    let made = || -> Result<Identity, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name = DistinguishedName::new();
        let now = SystemTime::now();
        (params.not_before, params.not_after) = ((now - DAY).into(), (now + 365 * DAY).into());
        params.distinguished_name.push(DnType::CommonName, "evenkeel, until the authority has issued one");
        let certificate = params.self_signed(&key)?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let private = default_provider().key_provider.load_private_key(private);
        let private = private.map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
        let file = Path::new(FILE);
        let made = identity(file, vec![certificate.der().clone()], private, file);
        made.map_err(|_| rcgen::Error::CouldNotParseCertificate)
    };
    // Names were looked at, and keys of this kind are made from nothing but chance.
    Arc::new(made().expect("a certificate can be made for host names"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_is_for_all_names_and_signs_itself() {
        let names = ["a.example".to_owned(), "*.b.example".to_owned()];
        let made = stand_in(&names);
        assert_eq!(made.names, names);
        assert!(made.facts.is_self_issued && made.facts.key == "ECDSA P-256", "{:?}", made.facts);
        assert_ne!(made.certified.cert, stand_in(&names).certified.cert, "each has a key of its own");
    }
}
