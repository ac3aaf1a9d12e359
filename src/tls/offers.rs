//! What sessions with clients are made of.

use std::sync::Arc;

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::{cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};

use super::provider;
use crate::config::model::tls::ListenerTls;
use crate::config::model::tls::offers::{CipherSuite, KeyGroup};

/// The provider with what a listener has chosen of it.
pub(super) fn provider_of(tls: &ListenerTls) -> Arc<CryptoProvider> {
    let is_usual = tls.groups == KeyGroup::USUAL;
    if tls.cipher_suites.is_empty() && is_usual {
        return provider();
    }
    let mut chosen = (*provider()).clone();
    if !tls.cipher_suites.is_empty() {
        chosen.cipher_suites = tls.cipher_suites.iter().copied().map(suite).collect();
    }
    if !is_usual {
        chosen.kx_groups = tls.groups.iter().copied().map(group).collect();
    }
    Arc::new(chosen)
}

fn suite(suite: CipherSuite) -> SupportedCipherSuite {
    match suite {
        CipherSuite::Aes256 => cipher_suite::TLS13_AES_256_GCM_SHA384,
        CipherSuite::Aes128 => cipher_suite::TLS13_AES_128_GCM_SHA256,
        CipherSuite::ChaCha20 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        CipherSuite::EcdsaAes256 => cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        CipherSuite::EcdsaAes128 => cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        CipherSuite::EcdsaChaCha20 => cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        CipherSuite::RsaAes256 => cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        CipherSuite::RsaAes128 => cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        CipherSuite::RsaChaCha20 => cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    }
}

fn group(group: KeyGroup) -> &'static dyn SupportedKxGroup {
    match group {
        KeyGroup::X25519MlKem768 => kx_group::X25519MLKEM768,
        KeyGroup::P256MlKem768 => kx_group::SECP256R1MLKEM768,
        KeyGroup::X25519 => kx_group::X25519,
        KeyGroup::P256 => kx_group::SECP256R1,
        KeyGroup::P384 => kx_group::SECP384R1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Our names are those of IANA; rustls calls the suites of TLS 1.3 otherwise.
    #[test]
    fn names_are_those_of_what_they_stand_for_and_all_of_it_has_one() {
        for (name, ours) in CipherSuite::ALL {
            let theirs = format!("{:?}", suite(*ours).suite()).replace("TLS13_", "TLS_");
            assert_eq!(theirs, *name);
        }
        assert_eq!(CipherSuite::ALL.len(), provider().cipher_suites.len());
        for (name, ours) in KeyGroup::ALL {
            assert_eq!(format!("{:?}", group(*ours).name()).to_lowercase(), name.to_lowercase());
        }
        let usual: Vec<_> = KeyGroup::USUAL.iter().map(|one| group(*one).name()).collect();
        let theirs: Vec<_> = provider().kx_groups.iter().map(|one| one.name()).collect();
        assert_eq!(usual, theirs);
    }
}
