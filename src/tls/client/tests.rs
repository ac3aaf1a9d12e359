//! Whose certificates are taken.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::*;
use crate::tls::{TlsFault, backend_words};

/// A certificate for `app.internal` with a key of its own.
struct Own {
    params: CertificateParams,
    key: KeyPair,
    der: CertificateDer<'static>,
}

impl Own {
    fn new(authority: bool) -> Own {
        let mut params = CertificateParams::new(vec!["app.internal".to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        if authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().expect("randomness");
        let der = params.self_signed(&key).expect("it signs").der().clone();
        Own { params, key, der }
    }

    fn sign(&self) -> CertificateDer<'static> {
        let Own { params, .. } = Own::new(false);
        let issuer = Issuer::from_params(&self.params, &self.key);
        let key = KeyPair::generate().expect("randomness");
        params.signed_by(&key, &issuer).expect("it signs").der().clone()
    }
}

fn trusting(pins: &[&Own]) -> Verifier {
    let pins: Vec<_> = pins.iter().map(|own| own.der.clone()).collect();
    let authorities = Authorities { file: "ca.pem".into(), certificates: pins.into() };
    let chains = chains(Roots::default().of(Some(&authorities)));
    Verifier { whom: Whom::Trusted { chains, pins: Some(authorities.certificates) }, provider: provider() }
}

/// The fault at `now`, in seconds since 1970, and its words; `None`: the certificate is taken.
fn judged(
    verifier: &Verifier,
    leaf: &CertificateDer<'_>,
    name: &'static str,
    now: u64,
) -> Option<(TlsFault, String)> {
    let name = ServerName::try_from(name).expect("a name");
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
    let error = verifier.verify_server_cert(leaf, &[], &name, &[], now).err()?;
    Some((TlsFault::of(&error, true), backend_words(&error, true)))
}

/// 2025, 2015 and 2035.
const NOW: u64 = 1_750_000_000;
const EARLIER: u64 = 1_430_000_000;
const LATER: u64 = 2_060_000_000;

#[test]
fn a_certificate_in_ca_file_is_taken_for_its_own_name_while_it_is_in_force() {
    for authority in [false, true] {
        let own = Own::new(authority);
        let verifier = trusting(&[&own]);
        let judged = |name, now| judged(&verifier, &own.der, name, now);
        assert_eq!(judged("app.internal", NOW), None, "authority: {authority}");
        let (fault, text) = judged("other.internal", NOW).expect("another name");
        assert_eq!(fault, TlsFault::Name);
        assert_eq!(text, "its certificate is valid for app.internal, not for other.internal");
        let expired = "its certificate expired on 2030-01-01T00:00:00Z";
        assert_eq!(judged("app.internal", LATER), Some((TlsFault::Expired, expired.to_owned())));
        let early = "its certificate is not in force before 2020-01-01T00:00:00Z";
        assert_eq!(judged("app.internal", EARLIER), Some((TlsFault::Expired, early.to_owned())));
    }
}

#[test]
fn a_backends_own_certificate_in_ca_file_vouches_for_no_other() {
    let (server, authority) = (Own::new(false), Own::new(true));
    let fault = |trusted: &Own| {
        let judged = judged(&trusting(&[trusted]), &trusted.sign(), "app.internal", NOW);
        judged.map(|(fault, _)| fault)
    };
    assert_eq!(fault(&server), Some(TlsFault::Issuer));
    assert_eq!(fault(&authority), None);
}

#[test]
fn an_authoritys_own_certificate_that_is_not_in_ca_file_has_an_unknown_issuer() {
    let (known, stranger) = (Own::new(true), Own::new(true));
    let (fault, text) = judged(&trusting(&[&known]), &stranger.der, "app.internal", NOW).expect("a stranger");
    assert_eq!(fault, TlsFault::Issuer);
    assert_eq!(
        text,
        "its certificate is self-signed: name that file as `upstream_tls.ca_file`, or set `insecure: true`"
    );
}

#[test]
fn every_backend_has_sessions_and_a_complaint_of_its_own() {
    let settings = UpstreamTls {
        authorities: None,
        name: ServerName::try_from("app.internal").expect("a name"),
        identity: None,
        insecure: true,
    };
    let make = |alpn| Upstream::new(&settings, alpn, &Roots::default());
    let (first, second) = (make(Some(AlpnProtocol::Http1)), make(Some(AlpnProtocol::Http1)));
    assert!(!Arc::ptr_eq(&first.config, &second.config) && !Arc::ptr_eq(&first.complaint, &second.complaint));
    assert_eq!(first.config.alpn_protocols, [b"http/1.1".to_vec()]);
    assert_eq!(make(Some(AlpnProtocol::H2)).config.alpn_protocols, [b"h2".to_vec()]);
    assert!(make(None).config.alpn_protocols.is_empty());
    assert!(first.is_for(Some(AlpnProtocol::Http1)) && !first.is_for(None));
    assert!(!first.is_for(Some(AlpnProtocol::H2)));
}

/// Mozilla's list in the place of one that can't be read would trust more than the operator has said.
#[test]
fn mozillas_list_is_for_machines_without_any_and_never_in_the_place_of_a_chosen_one() {
    assert!(trusted(Vec::new(), true).is_empty());
    assert!(trusted(Vec::new(), false).len() > 50);
    let authority = Own::new(true).der;
    assert_eq!(trusted(vec![authority.clone()], true).len(), 1);
    assert_eq!(trusted(vec![authority], false).len(), 1);
    let chains = chains(Arc::new(RootCertStore::empty()));
    let nobody = Verifier { whom: Whom::Trusted { chains, pins: None }, provider: provider() };
    let (fault, _) = judged(&nobody, &Own::new(false).der, "app.internal", NOW).expect("nobody is trusted");
    assert_eq!(fault, TlsFault::Issuer);
}

#[test]
fn backends_that_trust_the_same_file_hold_it_once() {
    let key = KeyPair::generate().expect("randomness");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("signed").der().clone();
    let read = || Authorities { file: "ca.pem".into(), certificates: [authority.clone()].into() };
    let (one, other) = (read(), read());
    let roots = Roots::default();
    let first = roots.of(Some(&one));
    assert!(Arc::ptr_eq(&first, &roots.of(Some(&one.clone()))));
    assert!(!Arc::ptr_eq(&first, &roots.of(Some(&other))), "another reading is another list");
    assert_eq!(first.len(), 1);
}
