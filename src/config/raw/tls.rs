//! The written form of `tls` and `upstream_tls`. Files are named here and read by `validate`.

mod folder;
mod offers;
mod ordered;

use std::path::PathBuf;

use rustls::pki_types::ServerName;

use super::address;
use super::group::{items, list, there_already};
use super::kind::Shape;
use super::reader::{Reader, Section, choose, found, subject};
use super::shape;
use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::tls::offers::{CipherSuite, KeyGroup};
use crate::config::model::tls::{AlpnProtocol, ClientAuth, ExpiredList, TlsVersion, UnknownSni};
use crate::config::origin::{Field, Spot, Written};
use crate::config::yaml::{Entry, Node, Typed};
pub(in crate::config) use folder::{FoundCertificate, RawFolder};
pub(in crate::config) use ordered::RawOrdered;

/// A certificate with its key, as written.
#[derive(Debug)]
pub(in crate::config) struct RawIdentity {
    pub(in crate::config) cert: Field<PathBuf>,
    pub(in crate::config) key: Field<PathBuf>,
    /// An answer of its authority.
    pub(in crate::config) ocsp: Field<PathBuf>,
    /// Where something is said that is missing.
    pub(in crate::config) spot: Spot,
}

impl RawIdentity {
    /// True when a file is named, if only wrongly.
    pub(in crate::config) fn is_written(&self) -> bool {
        !matches!((&self.cert, &self.key), (Field::Absent, Field::Absent))
    }
}

/// One of `certificates`.
#[derive(Debug)]
pub(in crate::config) enum RawCertificate {
    /// A file.
    One(Box<RawIdentity>),
    /// All of a folder.
    Folder(RawFolder),
    /// One that an authority issues.
    Ordered(RawOrdered),
}

/// `tls`.
#[derive(Debug)]
pub(in crate::config) struct RawTls {
    pub(in crate::config) identity: RawIdentity,
    pub(in crate::config) certificates: Vec<RawCertificate>,
    /// `certificates` is there and none of it is usable; that has been said.
    pub(in crate::config) is_faulty: bool,
    pub(in crate::config) client_ca: Option<Written<PathBuf>>,
    pub(in crate::config) client_auth: Option<Written<ClientAuth>>,
    pub(in crate::config) client_crl: Field<Vec<Written<PathBuf>>>,
    pub(in crate::config) client_crl_expired: Option<Written<ExpiredList>>,
    pub(in crate::config) min_version: Option<Written<TlsVersion>>,
    /// The preferred one first.
    pub(in crate::config) alpn: Field<Vec<AlpnProtocol>>,
    pub(in crate::config) unknown_sni: Option<Written<UnknownSni>>,
    pub(in crate::config) cipher_suites: Field<Vec<CipherSuite>>,
    pub(in crate::config) groups: Field<Vec<KeyGroup>>,
}

/// `upstream_tls`.
#[derive(Debug)]
pub(in crate::config) struct RawUpstreamTls {
    pub(in crate::config) ca_file: Option<Written<PathBuf>>,
    pub(in crate::config) server_name: Field<ServerName<'static>>,
    pub(in crate::config) identity: RawIdentity,
    pub(in crate::config) insecure: Option<Written<bool>>,
}

/// Walks `tls` where there is one certificate and nothing is asked of clients.
pub(super) fn walk_one(entry: &Entry, shape: &Shape, reader: &mut Reader<'_>) -> Option<Written<RawTls>> {
    let spot = reader.key_spot(entry);
    let section = reader.section("`tls`", &entry.node, shape)?;
    let raw = RawTls {
        identity: identity(&section, ("cert_file", "cert_key"), spot.clone(), reader),
        certificates: Vec::new(),
        is_faulty: section.is_misspelt("cert_file"),
        client_ca: None,
        client_auth: None,
        client_crl: Field::Absent,
        client_crl_expired: None,
        min_version: section.find("min_version").and_then(|entry| min_version(entry, reader)),
        alpn: Field::Absent,
        unknown_sni: None,
        cipher_suites: Field::Absent,
        groups: Field::Absent,
    };
    Some(Written::new(raw, spot))
}

/// Walks `tls`; `shapes`: its own, and that of one of its certificates.
pub(super) fn walk(
    entry: &Entry,
    shapes: [&'static Shape; 2],
    reader: &mut Reader<'_>,
) -> Option<Written<RawTls>> {
    let spot = reader.key_spot(entry);
    let [shape, of_certificate] = shapes;
    let section = reader.section("`tls`", &entry.node, shape)?;
    let identity = identity(&section, ("cert_file", "cert_key"), spot.clone(), reader);
    let mut certificates = Vec::new();
    let mut is_faulty = section.is_misspelt("certificates") || section.is_misspelt("cert_file");
    if let Some(entry) = section.find("certificates") {
        let items = list(
            entry,
            reader,
            "a list, each item with `cert_file` and `cert_key`, with `dir`, or with `acme`",
        )
        .unwrap_or_default();
        certificates = items.iter().filter_map(|item| certificate(item, of_certificate, reader)).collect();
        is_faulty |= certificates.is_empty();
        if matches!(entry.node.typed(), Typed::List([]) | Typed::Null) {
            reader
                .report
                .spot(&reader.key_spot(entry), "`certificates` is empty")
                .expected("at least one certificate: `certificates: [{cert_file: a.pem, cert_key: a.key}]`, `[{dir: certs/}]`, or `[{acme: [example.com]}]`");
        }
    }
    let raw = RawTls {
        identity,
        certificates,
        is_faulty,
        client_ca: section.find("client_ca").and_then(|entry| file(entry, PathUse::Certificates, reader)),
        client_auth: section.find("client_auth").and_then(|entry| reader.choice(entry, ClientAuth::ALL)),
        client_crl: match section.find("client_crl") {
            Some(entry) => Field::read(files(entry, reader)),
            None if section.is_misspelt("client_crl") => Field::Faulty,
            None => Field::Absent,
        },
        client_crl_expired: section
            .find("client_crl_expired")
            .and_then(|entry| reader.choice(entry, ExpiredList::ALL)),
        min_version: section.find("min_version").and_then(|entry| min_version(entry, reader)),
        alpn: match section.find("alpn") {
            Some(entry) => Field::read(alpn(entry, reader)),
            None if section.is_misspelt("alpn") => Field::Faulty,
            None => Field::Absent,
        },
        unknown_sni: section.find("unknown_sni").and_then(|entry| reader.choice(entry, UnknownSni::ALL)),
        cipher_suites: match section.find("cipher_suites") {
            Some(entry) => {
                let names = [CipherSuite::ALL, CipherSuite::ALIASES];
                let example = "a cipher suite such as `TLS_AES_256_GCM_SHA384`";
                Field::read(offers::named(entry, names, example, reader))
            }
            None if section.is_misspelt("cipher_suites") => Field::Faulty,
            None => Field::Absent,
        },
        groups: match section.find("groups") {
            Some(entry) => {
                let names = [KeyGroup::ALL, KeyGroup::ALIASES];
                Field::read(offers::named(entry, names, "a group such as `X25519MLKEM768`", reader))
            }
            None if section.is_misspelt("groups") => Field::Faulty,
            None => Field::Absent,
        },
    };
    Some(Written::new(raw, spot))
}

/// Walks `upstream_tls`.
pub(super) fn walk_upstream(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<RawUpstreamTls>> {
    let spot = reader.key_spot(entry);
    let section = reader.section("`upstream_tls`", &entry.node, &shape::UPSTREAM_TLS)?;
    let server_name = match section.find("server_name") {
        Some(entry) => Field::read(reader.word(entry, "a host name such as `app.internal`", server_name)),
        None if section.is_misspelt("server_name") => Field::Faulty,
        None => Field::Absent,
    };
    let raw = RawUpstreamTls {
        ca_file: section.find("ca_file").and_then(|entry| file(entry, PathUse::Certificates, reader)),
        server_name,
        identity: identity(&section, ("client_cert", "client_key"), spot.clone(), reader),
        insecure: section.find("insecure").and_then(|entry| reader.switch(entry)),
    };
    Some(Written::new(raw, spot))
}

fn certificate(item: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<RawCertificate> {
    let section = reader.section("an entry of `certificates`", item, shape)?;
    let spot = reader.spot_of(item);
    if let Some(entry) = section.find("acme") {
        exclude(&section, "acme", &["cert_file", "cert_key", "ocsp_file", "dir"], reader);
        return ordered::walk(&section, entry, reader).map(RawCertificate::Ordered);
    }
    for key in ordered::BESIDE.into_iter().filter(|_| !section.is_misspelt("acme")) {
        if let Some(other) = section.find(key) {
            let message = format!("`{key}` has no effect without `acme`");
            reader.report.at(other.key_place, message).note("it says how a certificate is ordered");
        }
    }
    if let Some(entry) = section.find("dir") {
        exclude(&section, "dir", &["cert_file", "cert_key", "ocsp_file"], reader);
        let path = reader.word(entry, "the path of a folder", folder_path)?;
        return folder::look(&path.value, &path.spot, reader).map(RawCertificate::Folder);
    }
    let is_misspelt = ["cert_file", "dir", "acme"].iter().any(|key| section.is_misspelt(key));
    if section.find("cert_file").is_none() && !is_misspelt {
        let wrong = Wrong::new(
            "has no `cert_file`",
            "`{cert_file: a.pem, cert_key: a.key}`, `{dir: certs/}` or `{acme: [example.com]}`",
        );
        reader.report.wrong(&spot, "this certificate", wrong);
        return None;
    }
    if section.is_misspelt("dir") || section.is_misspelt("acme") {
        return None;
    }
    Some(RawCertificate::One(Box::new(identity(&section, ("cert_file", "cert_key"), spot, reader))))
}

/// Reports keys that can't stand beside `key`.
fn exclude(section: &Section<'_>, key: &str, others: &[&'static str], reader: &mut Reader<'_>) {
    for other in others {
        if let Some(entry) = section.find(other) {
            let message = format!("`{key}` and `{other}` exclude each other");
            reader.report.at(entry.key_place, message).note("a certificate of its own is an item of its own");
        }
    }
}

fn folder_path(text: &str) -> Result<String, Wrong> {
    if text.is_empty() {
        return Err(Wrong::new("is empty", "the path of a folder"));
    }
    Ok(text.to_owned())
}

fn identity(
    section: &Section<'_>,
    (cert, key): (&'static str, &'static str),
    spot: Spot,
    reader: &mut Reader<'_>,
) -> RawIdentity {
    let mut read = |key: &'static str, using: PathUse| match section.known(key) {
        Some(entry) => Field::read(file(entry, using, reader)),
        None if section.is_misspelt(key) => Field::Faulty,
        None => Field::Absent,
    };
    let (cert, key) = (read(cert, PathUse::Certificates), read(key, PathUse::PrivateKey));
    // Clients have none, and there is no such key there.
    RawIdentity { cert, key, ocsp: read("ocsp_file", PathUse::Certificates), spot }
}

/// The certificate that we show, and its key.
pub(super) fn client_identity(section: &Section<'_>, spot: Spot, reader: &mut Reader<'_>) -> RawIdentity {
    identity(section, ("client_cert", "client_key"), spot, reader)
}

/// The path of a PEM file.
pub(super) fn pem_file(entry: &Entry, using: PathUse, reader: &mut Reader<'_>) -> Option<Written<PathBuf>> {
    file(entry, using, reader)
}

fn file(entry: &Entry, using: PathUse, reader: &mut Reader<'_>) -> Option<Written<PathBuf>> {
    let read = reader.word(entry, "the path of a PEM file", |text| {
        if text.is_empty() {
            Err(Wrong::new("is empty", "the path of a PEM file"))
        } else {
            Ok(text.to_owned())
        }
    })?;
    Some(Written::new(reader.read_path(&read.value, using, &read.spot), read.spot))
}

/// One file, or several.
fn files(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<Written<PathBuf>>>> {
    const EXPECTED: &str = "the path of a file with revocation lists, or several of them";
    let items = items(entry, reader, EXPECTED)?;
    let mut all: Vec<Written<PathBuf>> = Vec::with_capacity(items.len());
    for item in items {
        let spot = reader.spot_of(item);
        let path = match (item.typed(), item.text()) {
            (Typed::Text(_), Some(text)) if !text.is_empty() => {
                reader.read_path(text, PathUse::Certificates, &spot)
            }
            _ => {
                reader.report.wrong(&spot, &subject(&entry.key), Wrong::new(found(item), EXPECTED));
                continue;
            }
        };
        if all.iter().any(|other| other.value == path) {
            let wrong = there_already(item, item.text().unwrap_or_default());
            reader.report.wrong(&reader.spot_of_use(item), &subject(&entry.key), wrong);
            continue;
        }
        all.push(Written::new(path, spot));
    }
    (all.len() == items.len()).then(|| Written::new(all, reader.key_spot(entry)))
}

fn min_version(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<TlsVersion>> {
    const EXPECTED: &str = "`1.2` or `1.3`";
    reader.parsed_with_numbers(entry, EXPECTED, |text| {
        let number = text.trim_start_matches("TLSv").trim_start_matches("TLS");
        let known = TlsVersion::ALL.iter().find(|(name, _)| *name == number);
        known.map(|(_, version)| *version).ok_or_else(|| {
            let wrong = Wrong::new(format!("is {}, which is not supported", quoted(text)), EXPECTED);
            if number.starts_with("1.") || number == "1" {
                wrong.instead("1.2").note("older versions can be broken (RFC 8996)")
            } else {
                wrong
            }
        })
    })
}

/// What clients may choose from, one or several.
fn alpn(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<AlpnProtocol>>> {
    const EXPECTED: &str = "`h2`, `http/1.1` or both, the preferred one first: `[h2, http/1.1]`";
    let items = items(entry, reader, EXPECTED)?;
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_), Some(text)) => alpn_protocol(text, EXPECTED),
            _ => Err(Wrong::new(found(item), EXPECTED)),
        };
        let (spot, wrong) = match read {
            Ok(protocol) if all.contains(&protocol) => {
                (reader.spot_of_use(item), there_already(item, item.text().unwrap_or_default()))
            }
            Ok(protocol) => {
                all.push(protocol);
                continue;
            }
            Err(wrong) if item.is_null() => (reader.spot(entry), wrong),
            Err(wrong) => (reader.spot_of(item), wrong),
        };
        reader.report.wrong(&spot, &subject(&entry.key), wrong);
    }
    (all.len() == items.len()).then(|| Written::new(all, reader.key_spot(entry)))
}

fn alpn_protocol(text: &str, expected: &str) -> Result<AlpnProtocol, Wrong> {
    choose(text, AlpnProtocol::ALL).map_err(|wrong| {
        let wrong = Wrong { expected: Some(expected.to_owned()), ..wrong };
        match text.to_lowercase().as_str() {
            "http/2" | "http2" | "http/2.0" => wrong.instead("h2"),
            "http" | "http1" | "http1.1" | "http/1" => wrong.instead("http/1.1"),
            "h2c" => wrong.note("HTTP/2 without TLS is `http2: on` on an `http` listener"),
            "http/1.0" => wrong.note("`http/1.1` takes clients that offer HTTP/1.0 alone, too"),
            _ => wrong,
        }
    })
}

/// Reads the name that a backend's certificate must have: a DNS name or an address.
pub(in crate::config) fn server_name(text: &str) -> Result<ServerName<'static>, Wrong> {
    let host = address::host(text)?;
    ServerName::try_from(host.trim_end_matches('.').to_owned()).map_err(|_| {
        Wrong::new(
            format!("is {}, which no certificate can be for", quoted(text)),
            "a host name such as `app.internal`",
        )
    })
}
