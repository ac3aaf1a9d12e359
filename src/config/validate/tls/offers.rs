//! What sessions are made of, and what a choice of it costs.

use std::collections::HashSet;

use super::super::show::name_of;
use crate::config::effective::EffectiveRows;
use crate::config::model::tls::offers::{CipherSuite, KeyGroup};
use crate::config::model::tls::{ListenerTls, TlsVersion};
use crate::config::origin::{Field, Written};
use crate::config::raw::RawTls;
use crate::config::report::Report;

/// The cipher suites (none: all of them) and the groups of a listener that serves this.
pub(super) fn accept(
    tls: &RawTls,
    served: &ListenerTls,
    report: &mut Report,
    rows: &mut EffectiveRows,
    path: &impl Fn(&str) -> String,
) -> (Vec<CipherSuite>, Vec<KeyGroup>) {
    let suites = if let Field::Given(written) = &tls.cipher_suites { Some(written) } else { None };
    let shown = |suites: &Vec<CipherSuite>| match &**suites {
        [] => "all".to_owned(),
        some => listed(some.iter().map(|suite| name_of(CipherSuite::ALL, *suite))),
    };
    let chosen = rows.settle(path("cipher_suites"), suites, Vec::new(), shown);
    if let Some(written) = suites {
        judge_suites(written, served, report);
    }
    let written = if let Field::Given(written) = &tls.groups { Some(written) } else { None };
    let groups = rows.settle(path("groups"), written, KeyGroup::USUAL.to_vec(), |groups| {
        listed(groups.iter().map(|group| name_of(KeyGroup::ALL, *group)))
    });
    if let Some(written) = written {
        let is_old = !chosen.is_empty() && chosen.iter().all(|suite| !suite.is_new());
        if is_old && groups.iter().all(|group| group.is_post_quantum()) {
            let message = "all of `groups` are of TLS 1.3 and all of `cipher_suites` of TLS 1.2: no session could be made";
            report
                .spot(&written.spot, message)
                .expected("a group such as `x25519` beside them, or a suite of TLS 1.3");
        }
        warn_of_groups(written, report);
    }
    (chosen, groups)
}

fn listed(names: impl Iterator<Item = &'static str>) -> String {
    format!("[{}]", names.collect::<Vec<_>>().join(", "))
}

/// A certificate, as far as suites depend on it.
struct CertificateOffer<'a> {
    /// What people call it.
    what: String,
    key: &'a str,
    names: &'a [String],
}

impl CertificateOffer<'_> {
    fn is_rsa(&self) -> bool {
        self.key.starts_with("RSA") || self.key.starts_with("rsa")
    }
}

/// All that a listener shows.
fn certificates(served: &ListenerTls) -> Vec<CertificateOffer<'_>> {
    let read = served.identities.iter().map(|identity| CertificateOffer {
        what: identity.file.display().to_string(),
        key: &identity.facts.key,
        names: &identity.names,
    });
    let ordered = served.ordered.iter().map(|ordered| CertificateOffer {
        what: format!("for {}", ordered.names.join(", ")),
        key: ordered.key.name(),
        names: &ordered.names,
    });
    read.chain(ordered).collect()
}

/// Reports suites of which no session can be made, and warns of who gets none.
fn judge_suites(written: &Written<Vec<CipherSuite>>, served: &ListenerTls, report: &mut Report) {
    let (oldest, all) = (served.oldest, certificates(served));
    let suites = &written.value;
    let has = |is: &dyn Fn(&CipherSuite) -> bool| suites.iter().any(is);
    let has_new = has(&|suite| suite.is_new());
    if oldest == TlsVersion::V13 && !has_new {
        let problem = report.spot(
            &written.spot,
            "`cipher_suites` has none of TLS 1.3, and `min_version: 1.3` speaks nothing else",
        );
        problem.expected(
            "one of `TLS_AES_256_GCM_SHA384`, `TLS_AES_128_GCM_SHA256` and `TLS_CHACHA20_POLY1305_SHA256`",
        );
        return;
    }
    let mut costs = Vec::new();
    if !has_new {
        costs.push("none is of TLS 1.3, so all clients speak TLS 1.2, with one round trip more".to_owned());
    }
    if oldest == TlsVersion::V12 {
        let has_old = has(&|suite| !suite.is_new());
        if !has_old {
            costs.push("none is of TLS 1.2, so clients that speak nothing newer get no session".to_owned());
        }
        // What clients of TLS 1.2 can use of the certificates depends on their keys.
        let is_of_use =
            |one: &&CertificateOffer<'_>| has(&|suite| !suite.is_new() && suite.is_rsa() == one.is_rsa());
        // One of two for the same names is enough.
        let served: HashSet<&String> = all.iter().filter(is_of_use).flat_map(|one| one.names).collect();
        let is_idle = |one: &&CertificateOffer<'_>| {
            !is_of_use(one) && !one.names.iter().all(|name| served.contains(name))
        };
        let idle: Vec<&CertificateOffer<'_>> = all.iter().filter(|_| has_old).filter(is_idle).collect();
        if !has_new && !idle.is_empty() && idle.len() == all.len() {
            let message =
                format!("none of `cipher_suites` is for the key of a certificate here: {}", idle[0].key);
            report.spot(&written.spot, message).expected("a suite for that kind of key, or one of TLS 1.3");
        } else if let Some(first) = idle.first() {
            let more = match idle.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let (what, key) = (&first.what, first.key);
            costs.push(format!("none of TLS 1.2 is for the certificate {what}{more}, whose key is {key}"));
        }
    }
    if !has(&|suite| suite.is_chacha()) {
        costs.push(
            "none is with ChaCha20, so clients without instructions for AES compute several times as much"
                .to_owned(),
        );
    }
    for cost in costs {
        report.warn(&written.spot, &format!("what `cipher_suites` costs: {cost}"));
    }
}

fn warn_of_groups(written: &Written<Vec<KeyGroup>>, report: &mut Report) {
    let groups = &written.value;
    let mut costs = Vec::new();
    if !groups.iter().any(|group| group.is_post_quantum()) {
        costs.push(
            "without `X25519MLKEM768` whoever records sessions today can read them with a quantum computer one day",
        );
    }
    if !groups.contains(&KeyGroup::X25519) {
        costs.push("without `x25519`, which most clients offer at once, many need one round trip more");
    }
    if !groups.contains(&KeyGroup::P256) {
        costs.push("without `secp256r1` clients that know curves of NIST alone get no session");
    }
    if groups.iter().all(|group| group.is_post_quantum()) {
        costs.push("all are of TLS 1.3, so clients of TLS 1.2 get no session");
    }
    for cost in costs {
        report.warn(&written.spot, &format!("what `groups` costs: {cost}"));
    }
}
