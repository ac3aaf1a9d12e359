//! What sessions are made of: cipher suites and key exchange groups, by their names.

/// A cipher suite (RFC 8446 §B.4, RFC 5289, RFC 7905). All of them are authenticated encryption with forward secrecy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CipherSuite {
    /// TLS 1.3 with AES-256-GCM.
    Aes256,
    /// TLS 1.3 with AES-128-GCM.
    Aes128,
    /// TLS 1.3 with ChaCha20-Poly1305.
    ChaCha20,
    /// TLS 1.2, an ECDSA or Ed25519 key, AES-256-GCM.
    EcdsaAes256,
    /// TLS 1.2, an ECDSA or Ed25519 key, AES-128-GCM.
    EcdsaAes128,
    /// TLS 1.2, an ECDSA or Ed25519 key, ChaCha20-Poly1305.
    EcdsaChaCha20,
    /// TLS 1.2, an RSA key, AES-256-GCM.
    RsaAes256,
    /// TLS 1.2, an RSA key, AES-128-GCM.
    RsaAes128,
    /// TLS 1.2, an RSA key, ChaCha20-Poly1305.
    RsaChaCha20,
}

impl CipherSuite {
    /// All of them with the names that IANA has given them, which is what is written in a config file.
    pub const ALL: &'static [(&'static str, CipherSuite)] = &[
        ("TLS_AES_256_GCM_SHA384", CipherSuite::Aes256),
        ("TLS_AES_128_GCM_SHA256", CipherSuite::Aes128),
        ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::ChaCha20),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", CipherSuite::EcdsaAes256),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", CipherSuite::EcdsaAes128),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", CipherSuite::EcdsaChaCha20),
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", CipherSuite::RsaAes256),
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", CipherSuite::RsaAes128),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", CipherSuite::RsaChaCha20),
    ];

    /// What OpenSSL, nginx and HAProxy call those that have another name there.
    pub const ALIASES: &'static [(&'static str, CipherSuite)] = &[
        ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::EcdsaAes256),
        ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::EcdsaAes128),
        ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::EcdsaChaCha20),
        ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::RsaAes256),
        ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::RsaAes128),
        ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::RsaChaCha20),
    ];

    /// It is one of TLS 1.3.
    #[must_use]
    pub fn is_new(self) -> bool {
        matches!(self, CipherSuite::Aes256 | CipherSuite::Aes128 | CipherSuite::ChaCha20)
    }

    /// It is one of TLS 1.2 for certificates with an RSA key.
    #[must_use]
    pub fn is_rsa(self) -> bool {
        matches!(self, CipherSuite::RsaAes256 | CipherSuite::RsaAes128 | CipherSuite::RsaChaCha20)
    }

    /// It needs no instructions for AES.
    #[must_use]
    pub fn is_chacha(self) -> bool {
        matches!(self, CipherSuite::ChaCha20 | CipherSuite::EcdsaChaCha20 | CipherSuite::RsaChaCha20)
    }
}

/// A group in which keys are exchanged (RFC 8446 §4.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyGroup {
    /// ML-KEM-768 beside X25519: what is recorded today stays secret from a quantum computer.
    X25519MlKem768,
    /// ML-KEM-768 beside P-256.
    P256MlKem768,
    /// X25519 (RFC 7748).
    X25519,
    /// The curve P-256.
    P256,
    /// The curve P-384.
    P384,
}

impl KeyGroup {
    /// All of them with the names that IANA has given them, which is what is written in a config file.
    pub const ALL: &'static [(&'static str, KeyGroup)] = &[
        ("X25519MLKEM768", KeyGroup::X25519MlKem768),
        ("SecP256r1MLKEM768", KeyGroup::P256MlKem768),
        ("x25519", KeyGroup::X25519),
        ("secp256r1", KeyGroup::P256),
        ("secp384r1", KeyGroup::P384),
    ];

    /// What others call those that have another name there.
    pub const ALIASES: &'static [(&'static str, KeyGroup)] =
        &[("P-256", KeyGroup::P256), ("prime256v1", KeyGroup::P256), ("P-384", KeyGroup::P384)];

    /// Those of a listener that says nothing, the preferred one first.
    pub const USUAL: [KeyGroup; 4] =
        [KeyGroup::X25519MlKem768, KeyGroup::X25519, KeyGroup::P256, KeyGroup::P384];

    /// A quantum computer does not break it.
    #[must_use]
    pub fn is_post_quantum(self) -> bool {
        matches!(self, KeyGroup::X25519MlKem768 | KeyGroup::P256MlKem768)
    }
}
