//! Certificates and keys out of PEM files, with an answer to every way in which such a file can be wrong.

mod name;
mod order;
pub(super) mod revoked;
pub(super) mod shown;
pub(super) mod stand_in;
pub(super) mod staple;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};
use x509_parser::public_key::PublicKey;

use name::shown_name;
use order::Disorder;

use super::error::{Wrong, quoted};
use super::model::tls::{Identity, IdentityFacts};

/// A PEM file larger than this is another file.
const FILE_MAX: u64 = 4 * 1024 * 1024;

const CERTIFICATE: &str = "a PEM file that begins with the server's own certificate";
const CHAIN: &str = "the server's own certificate, and behind it those of its issuers, the nearest first";
const AUTHORITIES: &str = "a PEM file with the certificates of authorities";
const KEY: &str = "a PEM file with an unencrypted private key";

/// What some editors put in front of a text (U+FEFF); PEM readers would miss the first section.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The object identifier `pkcs7-data` in DER: a PKCS #12 bundle begins with a few lengths and this.
const PKCS7_DATA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";

/// That a key names this file, and why it is of no use.
fn wrong(file: &Path, why: &str, expected: &str) -> Wrong {
    Wrong::new(format!("is {}, which {why}", quoted(&file.display().to_string())), expected)
}

/// An identity out of PEM texts instead of files, for embedders: a chain, leaf first, and its key.
///
/// # Errors
/// What is wrong with them, in words.
pub fn identity_of(certificate: &str, private: &str) -> Result<Identity, String> {
    let name = Path::new("(in memory)");
    let told = |wrong: Wrong| wrong.message;
    let chain = chain_in(certificate.as_bytes(), name, CERTIFICATE).map_err(told)?;
    let key = key_in(private.as_bytes(), name).map_err(told)?;
    identity(name, chain, key, name).map_err(|mismatch| match mismatch {
        Mismatch::Certificate(wrong) | Mismatch::Key(wrong) | Mismatch::NotInForce(wrong) => wrong.message,
    })
}

/// An identity out of one file, in which a chain, leaf first, stands beside its key. Whether it is in force now is for the caller to say.
///
/// # Errors
/// What is wrong with it, in words.
pub fn identity_in(file: &Path) -> Result<Identity, String> {
    let told = |wrong: Wrong| wrong.message;
    let (chain, key) = (chain(file).map_err(told)?, key(file).map_err(told)?);
    joined(file, chain, key, file).map_err(|mismatch| match mismatch {
        Mismatch::Certificate(wrong) | Mismatch::Key(wrong) | Mismatch::NotInForce(wrong) => wrong.message,
    })
}

/// Reads the certificates of authorities: at least one, each fit to be trusted.
pub(super) fn authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    let certificates = certificates(file, AUTHORITIES)?;
    let mut roots = RootCertStore::empty();
    for (place, certificate) in certificates.iter().enumerate() {
        roots.add(certificate.clone()).map_err(|_| {
            let why = format!("has a certificate (number {}) that can't be trusted", place + 1);
            wrong(file, &why, AUTHORITIES)
        })?;
    }
    Ok(certificates)
}

/// Reads a certificate chain: at least one certificate, each well-formed.
pub(super) fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    certificates(file, CERTIFICATE)
}

fn certificates(file: &Path, expected: &str) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    chain_in(&read(file, expected)?, file, expected)
}

fn chain_in(bytes: &[u8], file: &Path, expected: &str) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    let mut chain = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(bytes) {
        let number = chain.len() + 1;
        let certificate = certificate.map_err(|error| {
            let why = damage(&error);
            wrong(file, &format!("has a damaged PEM section at certificate {number}: {why}"), expected)
        })?;
        if X509Certificate::from_der(&certificate).is_err() {
            let why = format!("has a certificate (number {number}) that is damaged");
            return Err(wrong(file, &why, expected));
        }
        chain.push(certificate);
    }
    if chain.is_empty() {
        return Err(no_certificate(file, bytes, expected));
    }
    Ok(chain)
}

fn damage(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => "its END line is missing, the file may be cut off".into(),
        pem::Error::IllegalSectionStart { .. } => "its BEGIN line has no end".into(),
        // An open list; these texts are made for readers.
        other => other.to_string(),
    }
}

fn is_bundle(bytes: &[u8]) -> bool {
    bytes.first() == Some(&0x30) && contains(&bytes[..bytes.len().min(64)], PKCS7_DATA)
}

fn bundle(file: &Path, expected: &str) -> Wrong {
    wrong(file, "is a PKCS #12 bundle", expected).note(format!(
        "convert it: `openssl pkcs12 -in {} -nodes -out both.pem`, which then holds certificate and key",
        file.display()
    ))
}

fn no_certificate(file: &Path, bytes: &[u8], expected: &str) -> Wrong {
    let labels = labels(bytes);
    let has = |word: &str| labels.iter().any(|label| label.contains(word));
    if has("PRIVATE KEY") {
        wrong(file, "has a private key and no certificate", expected)
            .note("are the two files in each other's place?")
    } else if has("REQUEST") {
        wrong(file, "is a certificate request", expected).note("the authority makes the certificate from it")
    } else if labels.is_empty() && X509Certificate::from_der(bytes).is_ok() {
        wrong(file, "is a certificate in DER", expected)
            .note(format!("convert it: `openssl x509 -inform der -in {} -out cert.pem`", file.display()))
    } else if is_bundle(bytes) {
        bundle(file, expected)
    } else {
        wrong(file, "has no certificate in it", expected)
    }
}

/// Whether a private key is in a file, as far as its labels say.
pub(super) fn holds_key(file: &Path) -> bool {
    read(file, KEY).is_ok_and(|bytes| labels(&bytes).iter().any(|label| label.contains("PRIVATE KEY")))
}

/// The same, and nothing else is.
pub(super) fn holds_only_key(file: &Path) -> bool {
    read(file, KEY).is_ok_and(|bytes| {
        let labels = labels(&bytes);
        let is_key = |label: &String| label.contains("PRIVATE KEY") || label.contains("PARAMETERS");
        labels.iter().any(|label| label.contains("PRIVATE KEY")) && labels.iter().all(is_key)
    })
}

/// Whether a certificate is that of an authority.
pub(super) fn is_authority(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, one)| one.is_ca())
}

/// Reads the private key of a file.
pub(super) fn key(file: &Path) -> Result<Arc<dyn SigningKey>, Wrong> {
    key_in(&read(file, KEY)?, file)
}

fn key_in(bytes: &[u8], file: &Path) -> Result<Arc<dyn SigningKey>, Wrong> {
    let labels = labels(bytes);
    let has = |word: &str| labels.iter().any(|label| label.contains(word));
    // PKCS #8 says so in its label, the older form in a header line.
    if has("ENCRYPTED PRIVATE KEY") || contains(bytes, b"Proc-Type: 4,ENCRYPTED") {
        let hint = format!("decrypt it: `openssl pkey -in {} -out plain.key`", file.display());
        return Err(
            wrong(file, "is encrypted, and nobody could type the password at a restart", KEY).note(hint)
        );
    }
    let key = match PrivateKeyDer::from_pem_slice(bytes) {
        Ok(key) => key,
        Err(_) if has("OPENSSH PRIVATE KEY") => {
            let hint = format!("convert a copy of it: `ssh-keygen -p -m pkcs8 -f {}`", file.display());
            return Err(wrong(file, "has a private key in the form of OpenSSH", KEY).note(hint));
        }
        Err(_) if has("PRIVATE KEY") => return Err(wrong(file, "has a private key that is damaged", KEY)),
        Err(_) if has("CERTIFICATE") => {
            return Err(wrong(file, "has a certificate and no private key", KEY)
                .note("`cert_key` names the file of the key; without it `cert_file` holds both"));
        }
        Err(_) if has("PUBLIC KEY") => {
            return Err(wrong(file, "has a public key and no private key", KEY));
        }
        Err(_) if is_bundle(bytes) => return Err(bundle(file, KEY)),
        Err(_) if PrivateKeyDer::try_from(bytes).is_ok() => {
            let hint = format!("convert it: `openssl pkey -inform der -in {} -out key.pem`", file.display());
            return Err(wrong(file, "is a private key in DER", KEY).note(hint));
        }
        Err(_) => return Err(wrong(file, "has no private key in it", KEY)),
    };
    default_provider().key_provider.load_private_key(key).map_err(|_| {
        let why = "has a private key that is damaged or of a kind that is not supported";
        wrong(
            file,
            why,
            "an RSA key of 2048 to 8192 bits, an ECDSA key (P-256, P-384, P-521), or an Ed25519 key",
        )
    })
}

/// What is wrong with two files that are each right.
pub(super) enum Mismatch {
    /// With the certificate.
    Certificate(Wrong),
    /// With the key.
    Key(Wrong),
    /// The certificate is right, but not now.
    NotInForce(Wrong),
}

/// Joins a chain and a key that belong together and are in force now.
pub(super) fn identity(
    file: &Path,
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn SigningKey>,
    key_file: &Path,
) -> Result<Identity, Mismatch> {
    let identity = joined(file, chain, key, key_file)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    in_force(identity.begins, identity.expires, i64::try_from(now).unwrap_or(i64::MAX))
        .map_err(|why| Mismatch::NotInForce(wrong(file, &why, "a certificate that is in force")))?;
    Ok(identity)
}

/// Joins a chain and a key that belong together.
fn joined(
    file: &Path,
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn SigningKey>,
    key_file: &Path,
) -> Result<Identity, Mismatch> {
    let certified = CertifiedKey::new(chain, key);
    // A key whose public part is not known can't be compared; the first handshake would show.
    if let Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch)) =
        certified.keys_match()
    {
        let later = (1..certified.cert.len()).find(|&nth| {
            let alone = CertifiedKey::new(vec![certified.cert[nth].clone()], Arc::clone(&certified.key));
            alone.keys_match().is_ok()
        });
        return Err(match later {
            Some(nth) => Mismatch::Certificate(
                wrong(file, &format!("has the server's own certificate in place {}", nth + 1), CERTIFICATE)
                    .note("the chain begins with it; its issuer follows, then the issuer's issuer"),
            ),
            None => {
                let certificate = quoted(&file.display().to_string());
                Mismatch::Key(wrong(
                    key_file,
                    &format!("is not the key of the certificate in {certificate}"),
                    "the private key that the certificate was made for",
                ))
            }
        });
    }
    let Some(Ok((_, leaf))) = certified.cert.first().map(|leaf| X509Certificate::from_der(leaf)) else {
        return Err(Mismatch::Certificate(wrong(file, "has a certificate that is damaged", CERTIFICATE)));
    };
    let (begins, expires) = (leaf.validity().not_before, leaf.validity().not_after);
    let mut doubt = None;
    if let Some(Disorder { why, cure, is_doubtful }) = order::disorder(&certified.cert, is_known_root) {
        if !is_doubtful {
            return Err(Mismatch::Certificate(wrong(file, &why, CHAIN).note(cure)));
        }
        doubt = Some(format!("{why}; {cure}"));
    }
    let names = names(&leaf);
    let (begins, expires) = (begins.timestamp(), expires.timestamp());
    let facts = IdentityFacts { doubt, ..facts(&leaf, &certified.cert) };
    Ok(Identity {
        file: file.to_owned(),
        certified: Arc::new(certified),
        names,
        begins,
        expires,
        facts,
        staple: None,
    })
}

/// What people want to know of it.
fn facts(leaf: &X509Certificate<'_>, chain: &[CertificateDer<'_>]) -> IdentityFacts {
    let subject = |one: &CertificateDer<'_>| {
        let (_, one) = X509Certificate::from_der(one).ok()?;
        Some(shown_name(one.subject()))
    };
    let key = match leaf.public_key().parsed() {
        Ok(PublicKey::RSA(key)) => format!("RSA {}", key.key_size()),
        // Of P-521 whole bytes are counted.
        Ok(PublicKey::EC(point)) => format!("ECDSA P-{}", point.key_size().min(521)),
        Ok(_) | Err(_) => "Ed25519".to_owned(),
    };
    IdentityFacts {
        key,
        chain: chain.iter().filter_map(subject).collect(),
        is_self_issued: leaf.subject().as_raw() == leaf.issuer().as_raw(),
        doubt: None,
    }
}

/// Whether a root of this name (in DER) is among those that this machine trusts. They are read once.
fn is_known_root(name: &[u8]) -> bool {
    static NAMES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let certificates = rustls_native_certs::load_native_certs().certs;
        let name = |one: &CertificateDer<'_>| {
            X509Certificate::from_der(one).ok().map(|(_, one)| one.subject().as_raw().to_vec())
        };
        certificates.iter().filter_map(name).collect()
    });
    NAMES.iter().any(|known| known == name)
}

/// Whether a certificate is in force; times in seconds since 1970.
fn in_force(begins: i64, expires: i64, now: i64) -> Result<(), String> {
    let date = |seconds: i64| {
        let since = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
    };
    if now > expires {
        Err(format!("expired on {}", date(expires)))
    } else if now < begins {
        Err(format!("is not in force before {}", date(begins)))
    } else {
        Ok(())
    }
}

/// The names a certificate is for. Without any, as in very old ones, the common name counts.
fn names(leaf: &X509Certificate<'_>) -> Vec<String> {
    let alternative = leaf.subject_alternative_name().ok().flatten();
    let mut names: Vec<String> = alternative
        .iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            // SNI names hosts and nothing else (RFC 6066 §3).
            _ => None,
        })
        .collect();
    if alternative.is_none() {
        names.extend(
            leaf.subject().iter_common_name().filter_map(|name| name.as_str().ok()).map(str::to_lowercase),
        );
    }
    names
}

fn read(file: &Path, expected: &str) -> Result<Vec<u8>, Wrong> {
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => wrong(file, "does not exist", expected).note(absent(file)),
        ErrorKind::PermissionDenied => {
            wrong(file, "this user may not read", expected).note("let the user that runs evenkeel read it")
        }
        // The system's kinds are an open list, and its own text says the rest.
        _ => wrong(file, &format!("can't be read: {error}"), expected),
    };
    let facts = std::fs::metadata(file).map_err(unreadable)?;
    if facts.is_dir() {
        return Err(wrong(file, "is a folder", expected));
    }
    if facts.len() > FILE_MAX {
        return Err(wrong(file, "is larger than 4MiB", expected));
    }
    let mut bytes = if facts.is_file() { std::fs::read(file).map_err(unreadable)? } else { Vec::new() };
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        let why = if facts.is_file() { "is empty" } else { "is no ordinary file" };
        return Err(wrong(file, why, expected));
    }
    Ok(bytes)
}

/// What whoever named a file that is not there may have meant.
fn absent(file: &Path) -> &'static str {
    let name = file.as_os_str().as_encoded_bytes();
    if contains(name, b"-----BEGIN ") {
        "the path of a file belongs here, not what is in it"
    } else if name.starts_with(b"~") || contains(name, b"/~") {
        "`~` has no meaning here; write `${HOME}`"
    } else {
        "a relative path counts from the folder of the config file"
    }
}

/// The labels of the PEM sections, as in `-----BEGIN label-----`.
fn labels(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let label = |line: &str| Some(line.trim().strip_prefix("-----BEGIN ")?.strip_suffix("-----")?.to_owned());
    text.lines().filter_map(label).collect()
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(bytes, what).is_some()
}
