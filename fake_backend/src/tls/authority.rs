//! Certificates made at run time: an authority, the servers and clients it vouches for, and the wrong ones a
//! test needs (expired, not valid yet, under another authority). Nothing is kept on disk. Public, so that
//! tests and demos of a proxy take theirs from here too.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

/// What is valid now is so from a day ago, for clocks that are slow, to a year ahead: some clients refuse longer lives.
const DAY: Duration = Duration::from_hours(24);
const YEAR: Duration = Duration::from_hours(24 * 365);

/// Whoever trusts this authority's certificate trusts what it issues. A clone is the same authority.
///
/// ```
/// let authority = fake_backend::Authority::new("test authority");
/// let issued = authority.issue(["localhost", "127.0.0.1"]);
/// assert!(issued.cert_pem.starts_with("-----BEGIN CERTIFICATE-----"));
/// let old = authority.leaf(["localhost"]).expired().issue();
/// assert_ne!(old.cert_pem, issued.cert_pem);
/// ```
#[derive(Clone)]
pub struct Authority {
    issuer: Arc<CertifiedIssuer<'static, KeyPair>>,
    /// The certificates from this authority's own up to, and without, the root's; empty for a root.
    between: String,
    root_pem: String,
}

impl fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// A root authority with this common name.
    ///
    /// # Panics
    /// When the system has no randomness to make a key from.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let issuer = CertifiedIssuer::self_signed(authority_params(name), new_key())
            .expect("a P-256 key signs any certificate");
        Self { root_pem: issuer.pem(), between: String::new(), issuer: Arc::new(issuer) }
    }

    /// An intermediate authority below this one. What it issues carries the certificates up to the root.
    ///
    /// # Panics
    /// When the system has no randomness to make a key from.
    #[must_use]
    pub fn intermediate(&self, name: &str) -> Self {
        let issuer = CertifiedIssuer::signed_by(authority_params(name), new_key(), &self.issuer)
            .expect("a P-256 key signs any certificate");
        let between = issuer.pem() + &self.between;
        Self { root_pem: self.root_pem.clone(), between, issuer: Arc::new(issuer) }
    }

    /// The root's certificate in PEM: what a client must trust.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.root_pem
    }

    /// A server's certificate for these DNS names and IP addresses, valid from a day ago for a year.
    ///
    /// # Panics
    /// When a name is not ASCII; names are punycoded by who writes them.
    #[must_use]
    pub fn issue<S: Into<String>>(&self, names: impl IntoIterator<Item = S>) -> Issued {
        self.leaf(names).issue()
    }

    /// A certificate for a client, with this common name and no other.
    ///
    /// # Panics
    /// When the system has no randomness to make a key from.
    #[must_use]
    pub fn issue_client(&self, name: &str) -> Issued {
        self.leaf([""; 0]).subject(name).for_client().issue()
    }

    /// A certificate to be described before it is issued.
    pub fn leaf<S: Into<String>>(&self, names: impl IntoIterator<Item = S>) -> Leaf<'_> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let now = SystemTime::now();
        Leaf {
            authority: self,
            subject: names.first().cloned().unwrap_or_default(),
            names,
            valid: (now - DAY, now + YEAR),
            client: false,
        }
    }
}

/// A certificate before it is issued; see [`Authority::leaf`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Leaf<'a> {
    authority: &'a Authority,
    names: Vec<String>,
    subject: String,
    valid: (SystemTime, SystemTime),
    client: bool,
}

impl Leaf<'_> {
    /// The common name, instead of the first of the names.
    pub fn subject(self, name: &str) -> Self {
        Self { subject: name.to_owned(), ..self }
    }

    /// Valid from `not_before` to `not_after`, both to the second, neither before 1970.
    pub fn valid(self, not_before: SystemTime, not_after: SystemTime) -> Self {
        Self { valid: (not_before, not_after), ..self }
    }

    /// No longer valid since yesterday.
    pub fn expired(self) -> Self {
        let now = SystemTime::now();
        self.valid(now - YEAR, now - DAY)
    }

    /// Valid from tomorrow.
    pub fn not_yet_valid(self) -> Self {
        let now = SystemTime::now();
        self.valid(now + DAY, now + YEAR)
    }

    /// For TLS clients (extended key usage clientAuth), no longer for servers.
    pub fn for_client(self) -> Self {
        Self { client: true, ..self }
    }

    /// Makes the key and the certificate.
    ///
    /// # Panics
    /// When a name is not ASCII.
    #[must_use]
    pub fn issue(self) -> Issued {
        let mut params = CertificateParams::new(self.names).expect("the names are ASCII");
        params.distinguished_name.push(DnType::CommonName, self.subject);
        // What lies before 1970 becomes 1970.
        let date = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            date_time_ymd(1970, 1, 1) + Duration::from_secs(since.as_secs())
        };
        (params.not_before, params.not_after) = (date(self.valid.0), date(self.valid.1));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![if self.client {
            ExtendedKeyUsagePurpose::ClientAuth
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        }];
        params.use_authority_key_identifier_extension = true;
        let key = new_key();
        let certificate =
            params.signed_by(&key, &self.authority.issuer).expect("a P-256 key signs any certificate");
        Issued { cert_pem: certificate.pem() + &self.authority.between, key_pem: key.serialize_pem() }
    }
}

/// A certificate and its private key, both in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// The certificate, and behind it those of intermediate authorities.
    pub cert_pem: String,
    /// The private key (PKCS#8, ECDSA P-256).
    pub key_pem: String,
}

impl fmt::Debug for Issued {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Issued").field("cert_pem", &self.cert_pem).finish_non_exhaustive()
    }
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("the system has randomness")
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.use_authority_key_identifier_extension = true;
    params
}
