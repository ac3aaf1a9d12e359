//! Tokens: their keys read, what must hold for one settled.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::config::effective::{EffectiveRows, number_of};
use crate::config::error::{Wrong, quoted};
use crate::config::files::whole;
use crate::config::model::HttpUrl;
use crate::config::model::jwt::{JwtAlgorithm, JwtAuth, JwtRules, KeySet, KeysUrl};
use crate::config::origin::{Origin, Written};
use crate::config::raw::RawJwtAuth;
use crate::config::report::Report;
use crate::config::units::show_duration;
use crate::config::validate::tls::authorities;

/// How tokens may be signed where nobody says: as most are.
const ALGORITHMS: &[JwtAlgorithm] = &[JwtAlgorithm::Es256, JwtAlgorithm::Rs256, JwtAlgorithm::EdDsa];
/// A file of keys larger than this, in MiB, is another file.
const FILE_MAX: u64 = 1;
const EXPECTED: &str = "a file with a set of public keys: `{\"keys\": [{\"kty\": …}]}`";
/// How `check` shows that nobody wrote them.
const SYSTEM: &str = "the system's";

/// Makes the rule that stands at `path`.
pub(super) fn jwt(
    raw: &RawJwtAuth,
    path: &str,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<JwtAuth> {
    let path = |key: &str| format!("{path}.jwt.{key}");
    let list = |all: &Vec<String>| format!("[{}]", all.join(", "));
    let algorithms = rows
        .settle(path("algorithms"), raw.algorithms.as_ref(), ALGORITHMS.to_vec(), |all| list(&names(all)));
    let keys = match &raw.jwks_file {
        Some(file) => Some(Arc::new(key_file(file, &algorithms, path("jwks_file"), report, rows)?)),
        None => None,
    };
    let authorities = match &raw.ca_file {
        Some(file) => Some(authorities(file, "`ca_file`", report, rows, path("ca_file"))?),
        None => None,
    };
    refuse_idle_authorities(raw, report);
    let keys_url = raw.jwks_url.as_ref().map(|written| {
        let Written { value: url, spot } = written;
        let content = number_of([url.identity().as_bytes()]);
        rows.note_hidden(path("jwks_url"), url.to_string(), spot.origin.clone(), content);
        if authorities.is_none() {
            rows.note(path("ca_file"), SYSTEM, Origin::Default);
        }
        warn_of_plain_keys(written, report);
        KeysUrl { url: url.clone(), authorities: authorities.clone() }
    });
    let issuer = raw.issuer.as_ref().map(|issuer| {
        rows.note(path("issuer"), issuer.value.clone(), issuer.spot.origin.clone());
        issuer.value.clone()
    });
    let rules = JwtRules {
        algorithms,
        issuer,
        audience: rows.settle(path("audience"), raw.audience.as_ref(), Vec::new(), list),
        leeway: rows.settle(path("leeway"), raw.leeway.as_ref(), Duration::ZERO, |time| show_duration(*time)),
        claims_to_headers: rows.settle(
            path("claims_to_headers"),
            raw.claims_to_headers.as_ref(),
            Vec::new(),
            |all| {
                format!(
                    "{{{}}}",
                    all.iter()
                        .map(|(claim, header)| format!("{claim}: {header}"))
                        .collect::<Vec<_>>()
                        .join(", ")
                )
            },
        ),
    };
    if let (true, Some(at)) = (rules.audience.is_empty(), raw.first()) {
        let message =
            "without `audience` a token lets its bearer in also when it was made for another service";
        report.warn(at, message);
    }
    Some(JwtAuth { rules, keys, keys_url })
}

fn names(algorithms: &[JwtAlgorithm]) -> Vec<String> {
    let name = |one| JwtAlgorithm::ALL.iter().find(|(_, known)| *known == one).map_or("", |(name, _)| name);
    algorithms.iter().map(|one| name(*one).to_owned()).collect()
}

/// Reads the keys of a file.
fn key_file(
    file: &Written<PathBuf>,
    algorithms: &[JwtAlgorithm],
    path: String,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<KeySet> {
    let read = whole::bytes(&file.value, FILE_MAX, EXPECTED).and_then(|bytes| {
        let keys = KeySet::parse(&bytes, algorithms).map_err(|fault| {
            let name = quoted(&file.value.display().to_string());
            Wrong::new(format!("is {name}, which {fault}"), EXPECTED)
        })?;
        Ok((keys, number_of([&*bytes])))
    });
    match read {
        Ok((keys, content)) => {
            rows.note_file(path, &file.value, file.spot.origin.clone(), Some(content));
            Some(keys)
        }
        Err(wrong) => {
            report.wrong(&file.spot, "`jwks_file`", wrong);
            None
        }
    }
}

fn refuse_idle_authorities(raw: &RawJwtAuth, report: &mut Report) {
    let Some(file) = &raw.ca_file else { return };
    match &raw.jwks_url {
        Some(written) if written.value.is_tls => {}
        Some(_) => {
            let problem = report.spot(&file.spot, "`ca_file` has no effect, because `jwks_url` is no https");
            problem.note("write `https://`, or remove `ca_file`");
        }
        None => {
            let problem = report.spot(&file.spot, "`ca_file` has no effect without `jwks_url`");
            problem.note("it says who issues the certificate of that; remove it");
        }
    }
}

/// Whoever can put other keys in the place of these can sign tokens for anybody.
fn warn_of_plain_keys(written: &Written<HttpUrl>, report: &mut Report) {
    let url = &written.value;
    let is_here = url.host == "localhost" || url.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if !url.is_tls && !is_here {
        let message = format!(
            "the keys of {url} come over plain http: whoever is on the way can put in their own, and be anybody"
        );
        report.warn(&written.spot, &message);
    }
}
