//! `acme`: who issues certificates for us, and what holds for all that are ordered.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::authorities;
use crate::config::effective::{EffectiveRows, number_of};
use crate::config::error::{Wrong, quoted};
use crate::config::files::whole;
use crate::config::model::tls::acme::{AcmeChallenge, AcmeConfig, DnsHook, ExternalAccount, OrderedKey};
use crate::config::model::{HttpUrl, Protocol};
use crate::config::origin::{Field, Origin, Written};
use crate::config::raw::{
    KNOWN_AUTHORITIES, KnownAuthority, Raw, RawCertificate, RawDirectory, RawExternalAccount, RawTls, Spoken,
};
use crate::config::report::Report;
use crate::config::units::show_duration;
use crate::config::validate::show::name_of;

const KEY_EXPECTED: &str = "the key as the authority has given it: one line of base64url";
const PROGRAM_EXPECTED: &str = "a program that this process may run, and that nobody else may write";
/// In MiB.
const KEY_MAX: u64 = 1;

/// What holds for all certificates that are ordered.
#[derive(Debug, Default)]
pub(in crate::config::validate) struct AcmeTerms {
    /// How names are proven where an entry does not say; `None`: as the config can.
    pub(super) challenge: Option<AcmeChallenge>,
    pub(super) key: OrderedKey,
    /// Records can be added to DNS, or something is wrong with how.
    pub(super) has_hook: bool,
    /// Somebody listens who speaks plain HTTP.
    pub(super) has_plain_http: bool,
    /// The authority issues for names that the whole world can look up; its name.
    pub(super) public: Option<&'static str>,
}

/// Makes it.
pub(in crate::config::validate) fn accept(
    raw: &Raw,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> (AcmeConfig, AcmeTerms) {
    let has_plain_http = has_plain_http(raw);
    let has_any = orders_any(raw);
    let acme = &raw.acme;
    if acme.spot.is_none() && !has_any {
        return (AcmeConfig::default(), AcmeTerms { has_plain_http, ..AcmeTerms::default() });
    }
    if let (Some(spot), false) = (&acme.spot, has_any) {
        report.warn(
            spot,
            "`acme` orders nothing: no listener has `tls: {certificates: [{acme: [example.com]}]}`",
        );
    }
    let (directory, known) = directory(&acme.directory, report, rows);
    let vouched = match &acme.ca_file {
        Some(file) if !directory.is_tls => {
            let message = "`ca_file` has no effect, because `directory` is no https";
            report.spot(&file.spot, message).note("write `https://`, or remove `ca_file`");
            None
        }
        Some(file) => authorities(file, "`ca_file`", report, rows, "acme.ca_file".to_owned()),
        None => {
            rows.note("acme.ca_file", "the system's", Origin::Default);
            None
        }
    };
    let contacts = rows.settle("acme.contact", acme.contacts.as_ref(), Vec::new(), |all| match &**all {
        [] => "none".to_owned(),
        all => format!("[{}]", all.join(", ")),
    });
    let external_account = match &acme.external {
        Some(raw) => external(raw, report, rows),
        None => {
            rows.note("acme.eab", "none", Origin::Default);
            None
        }
    };
    if let (Some((name, KnownAuthority { wants_account: true, .. })), None, Field::Given(written)) =
        (known, &acme.external, &acme.directory)
    {
        report
            .spot(&written.spot, format!("{name} issues for its customers alone, and there is no `eab`"))
            .expected("`eab: {key_id: …, hmac_key_file: …}`, as the authority has given them");
    }
    let challenge = acme.challenge.as_ref().map(|written| written.value);
    match &acme.challenge {
        Some(written) => rows.note(
            "acme.challenge",
            name_of(AcmeChallenge::ALL, written.value),
            written.spot.origin.clone(),
        ),
        None => rows.note("acme.challenge", "what the config can answer", Origin::Default),
    }
    let key =
        rows.settle("acme.key_type", acme.key.as_ref(), OrderedKey::default(), |key| key.name().to_owned());
    let wait =
        rows.settle("acme.dns_wait", acme.wait.as_ref(), AcmeConfig::DNS_WAIT, |wait| show_duration(*wait));
    if let (Some(written), Field::Absent) = (&acme.wait, &acme.hook) {
        report.spot(&written.spot, "`dns_wait` has no effect without `dns_hook`").note("remove it");
    }
    let program = match &acme.hook {
        Field::Given(written) => program(written, report, rows),
        Field::Faulty => None,
        Field::Absent => {
            rows.note("acme.dns_hook", "none", Origin::Default);
            None
        }
    };
    let hook = program.map(|program| DnsHook { program, wait });
    let terms = AcmeTerms {
        challenge,
        key,
        has_hook: !matches!(acme.hook, Field::Absent),
        has_plain_http,
        public: known.map(|(name, _)| name),
    };
    let is_public = known.is_some();
    (AcmeConfig { directory, authorities: vouched, contacts, external_account, is_public, hook }, terms)
}

/// Whether any certificate is ordered.
fn orders_any(raw: &Raw) -> bool {
    let orders = |tls: &Field<RawTls>| match tls {
        Field::Given(tls) => {
            tls.value.certificates.iter().any(|one| matches!(one, RawCertificate::Ordered(_)))
        }
        Field::Faulty | Field::Absent => false,
    };
    raw.targets.iter().any(|target| orders(&target.tls))
        || raw.listeners.iter().any(|listener| orders(&listener.tls))
}

/// Whether anybody listens who speaks plain HTTP, as far as that is known.
fn has_plain_http(raw: &Raw) -> bool {
    let is_plain = |spoken: &Field<Spoken>, default: bool| match spoken {
        Field::Given(spoken) => spoken.value.protocol == Protocol::Http && !spoken.value.is_https,
        Field::Absent => default,
        Field::Faulty => true,
    };
    raw.listeners.iter().any(|listener| is_plain(&listener.protocol, true))
        || raw
            .targets
            .iter()
            .any(|target| is_plain(&target.protocol, false) && !matches!(target.listener, Field::Absent))
}

type Known = Option<(&'static str, KnownAuthority)>;

fn directory(raw: &Field<RawDirectory>, report: &mut Report, rows: &mut EffectiveRows) -> (HttpUrl, Known) {
    const PATH: &str = "acme.directory";
    let (usual, authority) = KNOWN_AUTHORITIES[0];
    match raw {
        Field::Given(Written { value: RawDirectory::Known(name, known), spot }) => {
            rows.note(PATH, *name, spot.origin.clone());
            (known.url(), Some((name, *known)))
        }
        Field::Given(Written { value: RawDirectory::At(url), spot }) => {
            let content = number_of([url.identity().as_bytes()]);
            rows.note_hidden(PATH.to_owned(), url.to_string(), spot.origin.clone(), content);
            let is_here =
                url.host == "localhost" || url.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
            if !url.is_tls && !is_here {
                report
                    .spot(spot, "`directory` is no https, and whoever stands on the way could answer for it")
                    .note("write `https://` (RFC 8555 §6.1); only this machine may be asked in plain text");
            }
            if url.user.is_some() {
                report
                    .spot(spot, "`directory` has a user, but authorities know accounts by their keys")
                    .note("an account that the authority has given goes into `eab`");
            }
            let known = KNOWN_AUTHORITIES.iter().find(|(_, known)| known.url() == *url);
            (url.clone(), known.map(|(name, known)| (*name, *known)))
        }
        Field::Faulty => (authority.url(), None),
        Field::Absent => {
            rows.note(PATH, usual, Origin::Default);
            (authority.url(), Some((usual, authority)))
        }
    }
}

fn external(
    raw: &RawExternalAccount,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<ExternalAccount> {
    for (key, is_there, expected) in [
        ("key_id", !matches!(raw.id, Field::Absent), "what the authority calls the account"),
        ("hmac_key_file", !matches!(raw.key_file, Field::Absent), "a file with the key that goes with it"),
    ] {
        if !is_there {
            report.spot(&raw.spot, format!("`eab` has no `{key}`")).expected(expected);
        }
    }
    let (Field::Given(id), Field::Given(file)) = (&raw.id, &raw.key_file) else { return None };
    rows.note("acme.eab.key_id", id.value.clone(), id.spot.origin.clone());
    match mac_key(&file.value) {
        Ok(key) => {
            let content = number_of([&key[..]]);
            rows.note_file(
                "acme.eab.hmac_key_file".to_owned(),
                &file.value,
                file.spot.origin.clone(),
                Some(content),
            );
            Some(ExternalAccount { id: id.value.clone(), key: key.into() })
        }
        Err(wrong) => {
            report.wrong(&file.spot, "`hmac_key_file`", wrong);
            None
        }
    }
}

/// Reads a key. Nothing that is said of it repeats it.
fn mac_key(file: &Path) -> Result<Vec<u8>, Wrong> {
    let text = whole::text(file, KEY_MAX, KEY_EXPECTED)?;
    let text = text.trim().trim_end_matches('=');
    let key = URL_SAFE_NO_PAD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text));
    let wrong = |why: &str| {
        Wrong::new(format!("is {}, which {why}", quoted(&file.display().to_string())), KEY_EXPECTED)
    };
    match key {
        Ok(key) if key.is_empty() => Err(wrong("is empty")),
        Ok(key) => Ok(key),
        Err(_) => Err(wrong("is not in base64url")),
    }
}

/// A program that can be run; `None`: there is a fault, which has been reported.
fn program(written: &Written<PathBuf>, report: &mut Report, rows: &mut EffectiveRows) -> Option<PathBuf> {
    let path = &written.value;
    let wrong = |why: String| {
        Wrong::new(format!("is {}, which {why}", quoted(&path.display().to_string())), PROGRAM_EXPECTED)
    };
    let fault = match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => wrong("does not exist".to_owned()),
        Err(error) => wrong(format!("can't be looked at: {error}")),
        Ok(facts) if !facts.is_file() => wrong("is no file".to_owned()),
        Ok(facts) if facts.permissions().mode() & 0o111 == 0 => {
            let path = path.display();
            wrong("nobody may run".to_owned()).note(format!("`chmod +x {path}`"))
        }
        Ok(facts) if facts.permissions().mode() & 0o022 != 0 => {
            let path = path.display();
            wrong("others than its owner may write".to_owned()).note(format!("`chmod go-w {path}`"))
        }
        Ok(_) => {
            rows.note_file("acme.dns_hook".to_owned(), path, written.spot.origin.clone(), None);
            return Some(path.clone());
        }
    };
    report.wrong(&written.spot, "`dns_hook`", fault);
    None
}

impl AcmeTerms {
    /// What names are proven by that an entry says nothing of.
    pub(super) fn usual_challenge(&self, has_wildcard: bool) -> AcmeChallenge {
        match self.challenge {
            _ if has_wildcard => AcmeChallenge::Dns01,
            Some(challenge) => challenge,
            None if self.has_plain_http => AcmeChallenge::Http01,
            None => AcmeChallenge::TlsAlpn01,
        }
    }
}

/// The names that no authority issues for to whom the whole world can look them up (RFC 6761, RFC 6762, RFC 7686, RFC 9476).
const RESERVED: [&str; 10] =
    ["alt", "arpa", "example", "home.arpa", "internal", "invalid", "local", "localhost", "onion", "test"];

/// Why no such authority issues for this name; `None`: one may.
pub(super) fn is_private(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("*.").unwrap_or(name);
    let is_below = |top: &str| name.strip_suffix(top).is_some_and(|rest| rest.ends_with('.'));
    if !name.contains('.') {
        Some("has no dot")
    } else if RESERVED.into_iter().any(is_below) {
        Some("ends in a name that is nobody's")
    } else {
        None
    }
}
