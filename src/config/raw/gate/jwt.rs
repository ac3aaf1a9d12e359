//! `jwt` of an auth rule: tokens that somebody else has signed.

use std::path::PathBuf;
use std::time::Duration;

use super::given::given;
use super::told::told;
use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::HttpUrl;
use crate::config::model::jwt::JwtAlgorithm;
use crate::config::origin::{Spot, Written};
use crate::config::raw::bounds::LEEWAY_MAX;
use crate::config::raw::group::{items, there_already};
use crate::config::raw::reader::{Reader, choose, found};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::http_url::http_url;
use crate::config::yaml::{Entry, Node, Typed};

const KEYS_FORM: &str = "`jwks_file: keys.json`, or `jwks_url: \"https://id.example/jwks\"`, or both";
const FILE_FORM: &str = "a file of public keys, a JWK set";
const CA_FORM: &str = "a PEM file of those who may issue the certificate of `jwks_url`";
const ISSUER_FORM: &str = "who issues the tokens, as in their `iss`";
const AUDIENCE_FORM: &str = "for whom tokens are, as in their `aud`, or a list of that";
const ALGORITHMS_FORM: &str = "an algorithm such as `ES256`, or a list of them";
const CLAIMS_FORM: &str = "a mapping from claims to headers, such as `{sub: X-User}`";

/// `jwt`.
#[derive(Debug)]
pub(in crate::config) struct RawJwtAuth {
    pub(in crate::config) jwks_file: Option<Written<PathBuf>>,
    pub(in crate::config) jwks_url: Option<Written<HttpUrl>>,
    pub(in crate::config) ca_file: Option<Written<PathBuf>>,
    pub(in crate::config) issuer: Option<Written<String>>,
    pub(in crate::config) audience: Option<Written<Vec<String>>>,
    pub(in crate::config) algorithms: Option<Written<Vec<JwtAlgorithm>>>,
    /// Claims, each with its header.
    pub(in crate::config) claims_to_headers: Option<Written<Vec<(String, String)>>>,
    pub(in crate::config) leeway: Option<Written<Duration>>,
}

impl RawJwtAuth {
    /// Where its keys are named first.
    pub(in crate::config) fn first(&self) -> Option<&Spot> {
        let file = self.jwks_file.as_ref().map(|file| &file.spot);
        file.or(self.jwks_url.as_ref().map(|url| &url.spot))
    }
}

/// Walks `jwt`.
pub(super) fn jwt(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawJwtAuth> {
    let section = reader.section("`jwt`", &entry.node, &shape::JWT)?;
    let file = |using: PathUse, word: fn(&str) -> Result<String, Wrong>, form: &'static str| {
        move |entry: &Entry, reader: &mut Reader<'_>| {
            let read = reader.word(entry, form, word)?;
            let path = reader.read_path(&read.value, using, &read.spot);
            Some(Written::new(path, read.spot))
        }
    };
    let text = |form: &'static str| {
        move |entry: &Entry, reader: &mut Reader<'_>| reader.word(entry, form, |text| some(text, form))
    };
    let jwks_file = given(section.find("jwks_file"), reader, file(PathUse::PublicKeys, key_file, FILE_FORM));
    let jwks_url = given(section.find("jwks_url"), reader, http_url);
    let ca_file = given(
        section.find("ca_file"),
        reader,
        file(PathUse::Certificates, |text| some(text, CA_FORM), CA_FORM),
    );
    let issuer = given(section.find("issuer"), reader, text(ISSUER_FORM));
    let audience = given(section.find("audience"), reader, audience);
    let algorithms = given(section.find("algorithms"), reader, algorithms);
    let claims_to_headers = given(section.find("claims_to_headers"), reader, claims);
    let leeway = given(section.find("leeway"), reader, |entry, reader| {
        reader.duration(entry, Duration::ZERO..=LEEWAY_MAX)
    });
    let is_meant =
        ["jwks_file", "jwks_url"].iter().any(|key| section.find(key).is_some() || section.is_misspelt(key));
    if !is_meant {
        let message = "`jwt` has no keys: nothing says who signs the tokens";
        reader.report.spot(&reader.key_spot(entry), message).expected(KEYS_FORM);
        return None;
    }
    Some(RawJwtAuth {
        jwks_file: jwks_file?,
        jwks_url: jwks_url?,
        ca_file: ca_file?,
        issuer: issuer?,
        audience: audience?,
        algorithms: algorithms?,
        claims_to_headers: claims_to_headers?,
        leeway: leeway?,
    })
}

fn some(text: &str, form: &str) -> Result<String, Wrong> {
    if text.is_empty() { Err(Wrong::new("is empty", form)) } else { Ok(text.to_owned()) }
}

/// The name of a file of keys.
fn key_file(text: &str) -> Result<String, Wrong> {
    if ["https://", "http://"].iter().any(|scheme| text.starts_with(scheme)) {
        return Err(Wrong::new("is a URL", FILE_FORM).note("keys behind a URL are fetched by `jwks_url`"));
    }
    some(text, FILE_FORM)
}

fn audience(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<String>>> {
    each("an entry of `audience`", AUDIENCE_FORM, entry, reader, |text| some(text, AUDIENCE_FORM))
}

fn algorithms(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<JwtAlgorithm>>> {
    each("an entry of `algorithms`", ALGORITHMS_FORM, entry, reader, algorithm)
}

fn algorithm(text: &str) -> Result<JwtAlgorithm, Wrong> {
    // They are written as RFC 7518 does, and read in any case.
    if let Some((_, known)) = JwtAlgorithm::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        return Ok(*known);
    }
    let upper = text.to_ascii_uppercase();
    let wrong = choose(text, JwtAlgorithm::ALL);
    if upper == "NONE" {
        return wrong.map_err(|wrong| wrong.note("a token without a signature is whoever wrote it"));
    }
    if upper == "ED25519" {
        return wrong.map_err(|wrong| wrong.hint("write `EdDSA`, as most tokens of such keys do", "EdDSA"));
    }
    if text.contains([',', ' ']) {
        return wrong.map_err(|wrong| wrong.note("several are a list: `[ES256, RS256]`"));
    }
    if upper.starts_with("HS") {
        let note = "who can verify such a token can sign one too: use a pair of keys, a private one to sign and a public one to verify";
        return wrong.map_err(|wrong| wrong.note(note));
    }
    wrong
}

/// One value or several, each once.
fn each<T: PartialEq>(
    item: &str,
    form: &str,
    entry: &Entry,
    reader: &mut Reader<'_>,
    mut read: impl FnMut(&str) -> Result<T, Wrong>,
) -> Option<Written<Vec<T>>> {
    let nodes = items(entry, reader, form)?;
    let mut all: Vec<T> = Vec::with_capacity(nodes.len());
    for node in nodes {
        match word(node, form).and_then(|text| read(text).map(|value| (value, text))) {
            Ok((value, text)) if all.contains(&value) => {
                let spot = reader.spot_of_use(node);
                reader.report.wrong(&spot, item, there_already(node, text));
            }
            Ok((value, _)) => all.push(value),
            Err(wrong) => reader.report.wrong(&reader.spot_of(node), item, wrong),
        }
    }
    (all.len() == nodes.len()).then(|| Written::new(all, reader.spot(entry)))
}

fn word<'n>(node: &'n Node, form: &str) -> Result<&'n str, Wrong> {
    match (node.typed(), node.text()) {
        (Typed::Text(_) | Typed::Integer(_) | Typed::Float(_), Some(text)) => Ok(text),
        _ => Err(Wrong::new(found(node), form)),
    }
}

/// Whether a backend may take these names for one: some read `_` as `-`.
fn is_one(name: &str, other: &str) -> bool {
    let folded = |name: &str| name.to_ascii_lowercase().replace('_', "-");
    folded(name) == folded(other)
}

/// Claims, each with the header that backends are told it by.
fn claims(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<(String, String)>>> {
    let entries = match entry.node.typed() {
        Typed::Map(entries) if !entries.is_empty() => entries,
        _ => {
            reader.refuse(entry, CLAIMS_FORM);
            return None;
        }
    };
    let mut all: Vec<(String, String)> = Vec::with_capacity(entries.len());
    for one in entries {
        let subject = format!("the header of the claim {}", quoted(&one.key));
        match word(&one.node, "a header such as `X-User`").and_then(told) {
            Ok(header) if all.iter().any(|(_, other)| is_one(other, &header)) => {
                let wrong = Wrong::new(
                    format!("is {}, which another claim has already", quoted(&header)),
                    "another header for each claim",
                );
                reader.report.wrong(&reader.spot(one), &subject, wrong);
            }
            Ok(header) => all.push((one.key.clone(), header)),
            Err(wrong) => reader.report.wrong(&reader.spot(one), &subject, wrong),
        }
    }
    (all.len() == entries.len()).then(|| Written::new(all, reader.spot(entry)))
}
