//! `acme`: who issues certificates for us, and as whom we come.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::HttpUrl;
use crate::config::model::tls::acme::{AcmeChallenge, AcmeConfig, OrderedKey};
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::bounds::HOUR;
use crate::config::raw::group::{items, there_already};
use crate::config::raw::reader::{Reader, found, subject};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::http_url::http_url;
use crate::config::yaml::{Entry, Typed};

const DIRECTORY_FORM: &str =
    "`letsencrypt`, `letsencrypt-staging`, `zerossl`, `google`, or the URL of a directory";
const CONTACT_FORM: &str = "mail addresses such as `ops@example.com`";
const PATH_FORM: &str = "the path of a file";
const ID_FORM: &str = "what the authority calls the account";

/// Authorities that have a name.
pub(in crate::config) const AUTHORITIES: &[(&str, KnownAuthority)] = &[
    ("letsencrypt", KnownAuthority::new(AcmeConfig::USUAL.0, AcmeConfig::USUAL.1, false)),
    ("letsencrypt-staging", KnownAuthority::new("acme-staging-v02.api.letsencrypt.org", "/directory", false)),
    ("zerossl", KnownAuthority::new("acme.zerossl.com", "/v2/DV90", true)),
    ("google", KnownAuthority::new("dv.acme-v02.api.pki.goog", "/directory", true)),
];

/// An authority that everybody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct KnownAuthority {
    host: &'static str,
    path: &'static str,
    /// It issues for its customers alone.
    pub(in crate::config) wants_account: bool,
}

impl KnownAuthority {
    const fn new(host: &'static str, path: &'static str, wants_account: bool) -> KnownAuthority {
        KnownAuthority { host, path, wants_account }
    }

    /// Where its directory is.
    pub(in crate::config) fn url(self) -> HttpUrl {
        HttpUrl { is_tls: true, host: self.host.to_owned(), port: 443, path: self.path.into(), user: None }
    }
}

/// Where a directory is.
#[derive(Debug)]
pub(in crate::config) enum RawDirectory {
    /// By name.
    Known(&'static str, KnownAuthority),
    /// By its URL.
    At(HttpUrl),
}

/// `eab`.
#[derive(Debug)]
pub(in crate::config) struct RawExternalAccount {
    pub(in crate::config) id: Field<String>,
    pub(in crate::config) key_file: Field<PathBuf>,
    pub(in crate::config) spot: Spot,
}

/// `acme`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawAcme {
    /// Where it stands; `None`: nowhere.
    pub(in crate::config) spot: Option<Spot>,
    pub(in crate::config) directory: Field<RawDirectory>,
    pub(in crate::config) ca_file: Option<Written<PathBuf>>,
    pub(in crate::config) contacts: Option<Written<Vec<String>>>,
    pub(in crate::config) external: Option<RawExternalAccount>,
    pub(in crate::config) challenge: Option<Written<AcmeChallenge>>,
    pub(in crate::config) key: Option<Written<OrderedKey>>,
    pub(in crate::config) hook: Field<PathBuf>,
    pub(in crate::config) wait: Option<Written<Duration>>,
}

/// Walks it.
pub(in crate::config::raw) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> RawAcme {
    let mut raw = RawAcme { spot: Some(reader.key_spot(entry)), ..RawAcme::default() };
    let Some(section) = reader.section("`acme`", &entry.node, &shape::ACME) else { return raw };
    raw.directory = match section.find("directory") {
        Some(entry) => Field::read(directory(entry, reader)),
        None if section.is_misspelt("directory") => Field::Faulty,
        None => Field::Absent,
    };
    raw.ca_file = section.find("ca_file").and_then(|entry| path(entry, PathUse::Certificates, reader));
    raw.contacts = section.find("contact").and_then(|entry| contacts(entry, reader));
    raw.external = section.find("eab").and_then(|entry| external(entry, reader));
    raw.challenge = section.find("challenge").and_then(|entry| reader.choice(entry, AcmeChallenge::ALL));
    raw.key = section.find("key_type").and_then(|entry| reader.choice(entry, OrderedKey::ALL));
    raw.hook = match section.find("dns_hook") {
        Some(entry) => Field::read(path(entry, PathUse::Program, reader)),
        None if section.is_misspelt("dns_hook") => Field::Faulty,
        None => Field::Absent,
    };
    raw.wait = section.find("dns_wait").and_then(|entry| reader.duration(entry, Duration::ZERO..=HOUR));
    raw
}

fn directory(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<RawDirectory>> {
    match (entry.node.typed(), entry.node.text()) {
        (Typed::Text(_), Some(text)) if text.contains("://") => {
            let url = http_url(entry, reader)?;
            Some(Written::new(RawDirectory::At(url.value), url.spot))
        }
        _ => reader.parsed(entry, DIRECTORY_FORM, |text| {
            let lower = text.to_ascii_lowercase();
            let plain = |name: &str| name.replace(['\'', ' ', '_', '-'], "");
            let known = AUTHORITIES.iter().find(|(name, _)| *name == lower);
            known.map(|(name, known)| RawDirectory::Known(name, *known)).ok_or_else(|| {
                let wrong = Wrong::new(format!("is {}, which is no authority", quoted(text)), DIRECTORY_FORM);
                match AUTHORITIES.iter().find(|(name, _)| plain(name) == plain(&lower)) {
                    Some((name, _)) => wrong.instead(*name),
                    None if lower == "staging" => wrong.instead("letsencrypt-staging"),
                    None => wrong,
                }
            })
        }),
    }
}

fn path(entry: &Entry, using: PathUse, reader: &mut Reader<'_>) -> Option<Written<PathBuf>> {
    let read = reader.word(entry, PATH_FORM, |text| {
        if text.is_empty() { Err(Wrong::new("is empty", PATH_FORM)) } else { Ok(text.to_owned()) }
    })?;
    Some(Written::new(reader.read_path(&read.value, using, &read.spot), read.spot))
}

fn contacts(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<String>>> {
    let items = items(entry, reader, CONTACT_FORM)?;
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        let wrong = match (item.typed(), item.text()) {
            (Typed::Text(_), Some(text)) => match contact(text) {
                Ok(contact) if all.contains(&contact) => there_already(item, text),
                Ok(contact) => {
                    all.push(contact);
                    continue;
                }
                Err(wrong) => wrong,
            },
            _ => Wrong::new(found(item), CONTACT_FORM),
        };
        let spot = if item.is_null() { reader.spot(entry) } else { reader.spot_of_use(item) };
        reader.report.wrong(&spot, &subject(&entry.key), wrong);
    }
    (all.len() == items.len()).then(|| Written::new(all, reader.spot(entry)))
}

fn contact(text: &str) -> Result<String, Wrong> {
    let address = text.strip_prefix("mailto:").unwrap_or(text);
    let is_plain = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic() && c != ',');
    match address.split_once('@') {
        // RFC 8555 §7.3: no header fields, and one address.
        Some((user, host)) if is_plain(user) && is_plain(host) && !host.contains(['@', '?']) => {
            Ok(address.to_owned())
        }
        _ => Err(Wrong::new(format!("is {}, which is no mail address", quoted(text)), CONTACT_FORM)),
    }
}

fn external(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawExternalAccount> {
    let section = reader.section("`eab`", &entry.node, &shape::EAB)?;
    let id = match section.find("key_id") {
        Some(entry) => Field::read(reader.word(entry, ID_FORM, |text| {
            if text.is_empty() { Err(Wrong::new("is empty", ID_FORM)) } else { Ok(text.to_owned()) }
        })),
        None if section.is_misspelt("key_id") => Field::Faulty,
        None => Field::Absent,
    };
    let key_file = match section.find("hmac_key_file") {
        Some(entry) => Field::read(path(entry, PathUse::SigningKey, reader)),
        None if section.is_misspelt("hmac_key_file") => Field::Faulty,
        None => Field::Absent,
    };
    Some(RawExternalAccount { id, key_file, spot: reader.key_spot(entry) })
}
