//! `tls` and `upstream_tls`: reads the files they name and checks that everything fits together.

pub(super) mod acme;
mod clients;
mod folder;
mod offers;
mod ordered;
mod trusted;

use std::sync::Arc;

use rustls::pki_types::ServerName;

use super::http2;
use super::owner::KeyOwner;
use super::show::name_of;
use crate::config::certificate::staple::staple;
use crate::config::certificate::{self, Mismatch};
use crate::config::edit::Fix;
use crate::config::effective::{EffectiveRows, number_of};
use crate::config::error::quoted;
use crate::config::model::tls::{
    AlpnProtocol, Authorities, Identity, ListenerTls, TlsVersion, UnknownSni, UpstreamTls,
};
use crate::config::model::{BackendAddress, Protocol};
use crate::config::origin::{Field, Origin, Spot, Written};
use crate::config::raw::{RawBackend, RawCertificate, RawIdentity, RawTarget, RawTls, Spoken, server_name};
use crate::config::report::Report;
use acme::AcmeTerms;
pub(super) use trusted::authorities;

/// Whether a target speaks TLS on any side, as far as its keys say.
pub(super) fn is_wanted(raw: &RawTarget) -> bool {
    is_spoken_to_backends(raw)
        || !matches!(raw.tls, Field::Absent)
        || !matches!(raw.upstream_tls, Field::Absent)
}

/// Whether the URL of any backend says so.
fn is_spoken_to_backends(raw: &RawTarget) -> bool {
    match &raw.backends {
        Field::Given(backends) => backends.value.iter().any(|backend| backend.place.value.tls == Some(true)),
        Field::Faulty | Field::Absent => false,
    }
}

/// TLS of a listener, if it has any.
pub(super) fn listener(
    raw: &KeyOwner<'_>,
    spoken: Option<Spoken>,
    terms: &AcmeTerms,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Arc<ListenerTls>> {
    let name = raw.told();
    if raw.passes_all {
        if let Field::Given(written) = raw.tls {
            let message = format!(
                "`tls` has no effect: all routes of {name} pass TLS through, so nothing is decrypted"
            );
            report
                .spot(&written.spot, message)
                .note("remove it, or `passthrough` of a route that is to be decrypted");
        }
        return None;
    }
    let written = match (raw.tls, spoken) {
        (Field::Given(written), Some(Spoken { protocol: Protocol::Http, is_https: false })) => {
            let message = format!("`tls` belongs to https, but {name} speaks http");
            let problem = report.spot(&written.spot, message);
            match raw.protocol {
                Field::Given(Written { spot: Spot { place: Some(place), .. }, .. }) => {
                    problem.hint("set `protocol: https`", Fix::At(*place, "https".to_owned()))
                }
                _ => problem.note("set `protocol: https`"),
            };
            written
        }
        (Field::Given(written), _) => written,
        (Field::Absent, Some(Spoken { is_https: true, .. })) => {
            let spot = if let Field::Given(written) = raw.protocol { &written.spot } else { &raw.name.spot };
            report
                .spot(spot, format!("{name} speaks https and has no `tls`"))
                .expected("`tls: {cert_file: server.pem, cert_key: server.key}`");
            return None;
        }
        (Field::Absent | Field::Faulty, _) => return None,
    };
    let path = |key: &str| raw.path(&format!("tls.{key}"));
    let served = served(written, &name, terms, &path, report, rows);
    let tls = &written.value;
    let unknown_sni =
        rows.settle(path("unknown_sni"), tls.unknown_sni.as_ref(), UnknownSni::Default, |unknown| {
            name_of(UnknownSni::ALL, *unknown).to_owned()
        });
    let (cipher_suites, groups) = offers::accept(tls, &served, report, rows, &path);
    let alpn = alpn(raw, written, spoken, report, rows);
    Some(Arc::new(ListenerTls { alpn, unknown_sni, cipher_suites, groups, ..served }))
}

/// What clients may choose from.
fn alpn(
    owner: &KeyOwner<'_>,
    tls: &Written<RawTls>,
    spoken: Option<Spoken>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Vec<AlpnProtocol> {
    let written = if let Field::Given(written) = &tls.value.alpn { Some(written) } else { None };
    if let Some(Spoken { protocol: Protocol::Http, .. }) = spoken {
        let usual = AlpnProtocol::usual(http2::is_spoken(owner, spoken));
        return rows.settle(owner.path("tls.alpn"), written, usual, |all| {
            let names = all.iter().map(|protocol| name_of(AlpnProtocol::ALL, *protocol));
            format!("[{}]", names.collect::<Vec<_>>().join(", "))
        });
    }
    if let (Some(written), Some(_)) = (written, spoken) {
        let message = format!("`alpn` belongs to HTTP, but {} speaks {}", owner.told(), owner.spoken_name());
        let problem = report.spot(&written.spot, message);
        match written.spot.place {
            Some(place) => problem.hint("remove it, or set `protocol: https`", Fix::Remove(place)),
            None => problem,
        };
    }
    Vec::new()
}

/// TLS towards whoever connects to `owner`, over which HTTP/1.1 is spoken.
pub(super) fn served(
    written: &Written<RawTls>,
    owner: &str,
    terms: &AcmeTerms,
    path: &impl Fn(&str) -> String,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> ListenerTls {
    let tls = &written.value;
    let (mut identities, mut ordered) = (Vec::new(), Vec::new());
    if tls.identity.is_written() {
        identities.extend(identity(&tls.identity, SERVER, report, rows, &path("")));
    }
    for (index, certificate) in tls.certificates.iter().enumerate() {
        let path = path(&format!("certificates[{index}]."));
        match certificate {
            RawCertificate::One(raw) => identities.extend(identity(raw, SERVER, report, rows, &path)),
            RawCertificate::Folder(raw) => identities.extend(folder::accept(raw, report, rows, &path)),
            RawCertificate::Ordered(raw) => ordered.extend(ordered::accept(raw, terms, report, rows, &path)),
        }
    }
    if !tls.identity.is_written() && tls.certificates.is_empty() && !tls.is_faulty {
        report
            .spot(&written.spot, format!("the `tls` of {owner} names no certificate"))
            .expected("`cert_file` and `cert_key`, or `certificates`");
    }
    let oldest = rows.settle(path("min_version"), tls.min_version.as_ref(), TlsVersion::V12, |version| {
        name_of(TlsVersion::ALL, *version).to_owned()
    });
    let clients = clients::accept(tls, report, rows, path);
    let alpn = AlpnProtocol::usual(false);
    let is_first = matches!(tls.certificates.first(), Some(RawCertificate::Ordered(_)));
    let orders_first = is_first && !tls.identity.is_written();
    ListenerTls { clients, oldest, alpn, ordered, orders_first, ..ListenerTls::showing(identities) }
}

/// What the backends of a target are spoken to with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UpstreamSettings {
    /// `None`: there is no `upstream_tls`.
    server_name: Option<Field<ServerName<'static>>>,
    target: String,
    authorities: Option<Authorities>,
    identity: Option<Arc<Identity>>,
    insecure: bool,
    is_faulty: bool,
}

/// How `check` shows that nobody wrote them.
const SYSTEM: &str = "the system's";
const HOST: &str = "the backend's host";

/// Reads what `upstream_tls` names.
pub(super) fn upstream(raw: &RawTarget, report: &mut Report, rows: &mut EffectiveRows) -> UpstreamSettings {
    let target = raw.name.value.as_str();
    let mut upstream = UpstreamSettings {
        server_name: None,
        target: target.to_owned(),
        authorities: None,
        identity: None,
        insecure: false,
        is_faulty: matches!(raw.upstream_tls, Field::Faulty),
    };
    let path = |key: &str| format!("targets.{target}.upstream_tls.{key}");
    let Field::Given(written) = &raw.upstream_tls else {
        if is_spoken_to_backends(raw) {
            rows.note(path("ca_file"), SYSTEM, Origin::Default);
            rows.note(path("server_name"), HOST, Origin::Default);
            rows.note(path("insecure"), "false", Origin::Default);
        }
        return upstream;
    };
    let tls = &written.value;
    upstream.server_name = Some(tls.server_name.clone());
    if let Some(file) = &tls.ca_file {
        upstream.authorities = authorities(file, "`ca_file`", report, rows, path("ca_file"));
    } else {
        rows.note(path("ca_file"), SYSTEM, Origin::Default);
    }
    match &tls.server_name {
        Field::Given(name) => {
            rows.note(path("server_name"), name.value.to_str(), name.spot.origin.clone());
        }
        Field::Faulty | Field::Absent => rows.note(path("server_name"), HOST, Origin::Default),
    }
    if tls.identity.is_written() {
        upstream.identity = identity(&tls.identity, CLIENT, report, rows, &path(""));
    }
    upstream.insecure = rows.settle(path("insecure"), tls.insecure.as_ref(), false, ToString::to_string);
    if let (true, Some(file)) = (upstream.insecure, &tls.ca_file) {
        report
            .spot(&file.spot, "`ca_file` has no effect, because `insecure: true` takes any certificate")
            .note("remove `insecure`: backends are then verified by this file");
    }
    upstream
}

impl UpstreamSettings {
    /// TLS towards one backend, if it is to be used.
    pub(super) fn of(&self, backend: &RawBackend, report: &mut Report) -> Option<Arc<UpstreamTls>> {
        let place = &backend.place;
        match (place.value.tls, &self.server_name) {
            (Some(false), Some(_)) => {
                let message = format!(
                    "this backend is written without TLS, but the target {} has `upstream_tls`",
                    quoted(&self.target)
                );
                report
                    .spot(&place.spot, message)
                    .note("write `https://` or `tls://`, or remove `upstream_tls`");
                return None;
            }
            (Some(false) | None, None) => return None,
            (Some(true), None) if self.is_faulty => return None,
            (Some(true), _) | (None, Some(_)) => {}
        }
        let name = match (&self.server_name, &place.value.address) {
            (Some(Field::Given(name)), _) => name.value.clone(),
            (Some(Field::Faulty), _) => return None,
            (Some(Field::Absent) | None, BackendAddress::Host { host, .. }) => {
                match server_name(backend.found.as_ref().map_or(host.as_str(), |found| found.asks.host())) {
                    Ok(name) => name,
                    Err(wrong) => {
                        report.wrong(&place.spot, "the host of a backend with TLS", wrong);
                        return None;
                    }
                }
            }
            (Some(Field::Absent) | None, BackendAddress::Unix(_)) => {
                report
                    .spot(
                        &place.spot,
                        "a backend on a unix socket has no name that a certificate could be for",
                    )
                    .expected("`server_name` in `upstream_tls`");
                return None;
            }
        };
        Some(Arc::new(UpstreamTls {
            authorities: self.authorities.clone(),
            name,
            identity: self.identity.clone(),
            insecure: self.insecure,
        }))
    }
}

/// What the two keys of an identity are called.
type Keys = (&'static str, &'static str);
const SERVER: Keys = ("cert_file", "cert_key");
const CLIENT: Keys = ("client_cert", "client_key");

/// What a client of ours shows.
pub(super) fn client_identity(
    raw: &RawIdentity,
    report: &mut Report,
    rows: &mut EffectiveRows,
    path: &str,
) -> Option<Arc<Identity>> {
    identity(raw, CLIENT, report, rows, path)
}

fn identity(
    raw: &RawIdentity,
    (cert_name, written_key): Keys,
    report: &mut Report,
    rows: &mut EffectiveRows,
    path: &str,
) -> Option<Arc<Identity>> {
    let cert = match &raw.cert {
        Field::Given(cert) => cert,
        Field::Faulty => return None,
        Field::Absent => {
            report
                .spot(&raw.spot, format!("there is a `{written_key}` and no `{cert_name}`"))
                .expected(format!("`{cert_name}`, the PEM file with the certificate"));
            return None;
        }
    };
    // A file with both is what many tools make.
    let key = match &raw.key {
        Field::Given(key) => key,
        Field::Faulty => return None,
        Field::Absent => cert,
    };
    let key_name = if matches!(raw.key, Field::Absent) { cert_name } else { written_key };
    let chain = certificate::chain(&cert.value)
        .map_err(|wrong| report.wrong(&cert.spot, &format!("`{cert_name}`"), wrong));
    if chain.is_err() && matches!(raw.key, Field::Absent) {
        // What is wrong with the one file for both has been said.
        return None;
    }
    let private = certificate::key(&key.value)
        .map_err(|wrong| report.wrong(&key.spot, &format!("`{key_name}`"), wrong));
    let (Ok(chain), Ok(private)) = (chain, private) else { return None };
    let content = number_of(chain.iter().map(|certificate| certificate.as_ref()));
    rows.note_file(format!("{path}{cert_name}"), &cert.value, cert.spot.origin.clone(), Some(content));
    let (key_origin, content) = match &raw.key {
        // Another key is another public key.
        Field::Given(key) => {
            let public = private.public_key();
            (key.spot.origin.clone(), public.map(|public| number_of([public.as_ref()])))
        }
        // What is to be said about the one file has been said.
        Field::Faulty | Field::Absent => (Origin::Default, None),
    };
    rows.note_file(format!("{path}{written_key}"), &key.value, key_origin, content);
    match certificate::identity(&cert.value, chain, private, &key.value) {
        Ok(mut identity) => {
            if let Field::Given(ocsp) = &raw.ocsp {
                match staple(&ocsp.value, &identity.certified) {
                    Ok(staple) => {
                        let content = staple.certified.ocsp.as_deref().map(|answer| number_of([answer]));
                        rows.note_file(
                            format!("{path}ocsp_file"),
                            &ocsp.value,
                            ocsp.spot.origin.clone(),
                            content,
                        );
                        identity.staple = Some(staple);
                    }
                    Err(wrong) => report.wrong(&ocsp.spot, "`ocsp_file`", wrong),
                }
            }
            Some(Arc::new(identity))
        }
        Err(Mismatch::Certificate(wrong) | Mismatch::NotInForce(wrong)) => {
            report.wrong(&cert.spot, &format!("`{cert_name}`"), wrong);
            None
        }
        Err(Mismatch::Key(wrong)) => {
            report.wrong(&key.spot, &format!("`{key_name}`"), wrong);
            None
        }
    }
}
