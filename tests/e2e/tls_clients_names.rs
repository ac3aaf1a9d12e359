//! Which certificate a client sees, and which version, protocol and key exchange come of what it offers.

use std::sync::{Arc, LazyLock};

use evenkeel::config::model::Protocol;
use evenkeel::message::Cause;
use fake_backend::{Authority, Issued};
use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::{
    AlertDescription, ClientConfig, NamedGroup, ProtocolVersion, SignatureScheme, SupportedProtocolVersion,
};

use super::life_lab::until_ended;
use super::support::tls::{
    BOTH, Secure, TLS12, TLS13, TlsSocket, alert, client_config, client_config_of, credulous, first_der,
    listener_tls,
};
use super::support::{Keel, config, fakes};

/// One authority for all, and an RSA certificate that trusts itself: nobody else makes one here.
static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::new("test authority"));

fn rsa(name: &str) -> Issued {
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
    Issued { cert_pem: certificate.pem(), key_pem: key.serialize_pem() }
}

/// A server that shows these, the first by default.
fn showing(issued: &[&Issued]) -> Keel {
    let mut files = Vec::new();
    for (place, one) in issued.iter().enumerate() {
        files.push((format!("{place}.pem"), one.cert_pem.as_str()));
        files.push((format!("{place}.key"), one.key_pem.as_str()));
    }
    let rest: Vec<String> =
        (1..issued.len()).map(|place| format!("{{cert_file: {place}.pem, cert_key: {place}.key}}")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let more = if rest.is_empty() { String::new() } else { format!(", certificates: [{}]", rest.join(", ")) };
    let section = format!("cert_file: 0.pem, cert_key: 0.key{more}");
    // Nothing is ever asked of a backend here.
    let mut config = config(Protocol::Http, &[([127, 0, 0, 1], 9).into()]);
    config.listeners[0].tls = Some(listener_tls(&section, &files));
    Keel::start(&config)
}

/// Which of these certificates a client sees that asks for `name`.
fn seen(keel: &Keel, issued: &[&Issued], config: ClientConfig, name: &str) -> usize {
    let socket = TlsSocket::open(keel.address(), &Arc::new(config), name).unwrap();
    issued.iter().position(|one| first_der(&one.cert_pem) == socket.leaf()).unwrap()
}

#[test]
fn each_name_gets_its_certificate_and_all_others_the_first() {
    let first = AUTHORITY.issue(["first.test"]);
    let shop = AUTHORITY.issue(["Shop.test", "www.shop.test"]);
    let wild = AUTHORITY.issue(["*.wild.test"]);
    let all = [&first, &shop, &wild];
    let keel = showing(&all);
    for versions in [TLS12, TLS13] {
        for (name, place) in [
            ("first.test", 0),
            ("shop.test", 1),
            ("WWW.SHOP.TEST", 1),
            ("shop.test.", 1),
            ("a.wild.test", 2),
            ("a.b.wild.test", 0),
            ("wild.test", 0),
            ("unknown.test", 0),
            // An address is never asked for by SNI.
            ("127.0.0.1", 0),
        ] {
            assert_eq!(seen(&keel, &all, credulous(versions), name), place, "{name}");
        }
        let mut silent = credulous(versions);
        silent.enable_sni = false;
        assert_eq!(seen(&keel, &all, silent, "shop.test"), 0, "nothing was asked for");
    }
    // A client that does look is content with the right one, and only with that.
    let careful = Arc::new(client_config(&[AUTHORITY.ca_pem()], BOTH, None));
    assert!(TlsSocket::open(keel.address(), &careful, "www.shop.test").is_ok());
    assert!(TlsSocket::open(keel.address(), &careful, "unknown.test").is_err());
}

/// A client that can verify only signatures for which `keep` says yes.
fn knowing(
    roots: &[&str],
    versions: &[&'static SupportedProtocolVersion],
    keep: fn(SignatureScheme) -> bool,
) -> ClientConfig {
    let mut provider = default_provider();
    let all = provider.signature_verification_algorithms;
    let mapping: Vec<_> = all.mapping.iter().filter(|(scheme, _)| keep(*scheme)).copied().collect();
    // Tests end; rustls wants them for ever.
    provider.signature_verification_algorithms =
        WebPkiSupportedAlgorithms { all: all.all, mapping: Box::leak(mapping.into_boxed_slice()) };
    client_config_of(provider, roots, versions, None)
}

#[test]
fn a_client_that_knows_one_kind_of_key_gets_the_certificate_of_that_kind() {
    let is_ecdsa = |scheme| {
        matches!(scheme, SignatureScheme::ECDSA_NISTP256_SHA256 | SignatureScheme::ECDSA_NISTP384_SHA384)
    };
    let is_rsa = |scheme| {
        matches!(
            scheme,
            SignatureScheme::RSA_PSS_SHA256
                | SignatureScheme::RSA_PSS_SHA384
                | SignatureScheme::RSA_PKCS1_SHA256
        )
    };
    let (ecdsa, rsa) = (AUTHORITY.issue(["both.test"]), rsa("both.test"));
    let other = AUTHORITY.issue(["other.test"]);
    let all = [&other, &ecdsa, &rsa];
    let keel = showing(&all);
    let roots = [AUTHORITY.ca_pem(), &rsa.cert_pem];
    for versions in [TLS12, TLS13] {
        assert_eq!(seen(&keel, &all, knowing(&roots, versions, is_ecdsa), "both.test"), 1);
        assert_eq!(seen(&keel, &all, knowing(&roots, versions, is_rsa), "both.test"), 2);
        assert_eq!(
            seen(&keel, &all, knowing(&roots, versions, |_| true), "both.test"),
            1,
            "the first written"
        );
    }
    // Nothing fits: a handshake that fails with a reason.
    let nothing = Arc::new(knowing(&roots, TLS13, is_rsa));
    let error = TlsSocket::open(keel.address(), &nothing, "other.test").err().unwrap();
    assert_eq!(alert(&error), Some(AlertDescription::HandshakeFailure), "{error}");
    until_ended(&keel, Cause::TlsHandshake, 1);
}

#[test]
fn versions_are_those_of_the_config_and_an_older_client_is_told() {
    let backends = fakes(1);
    let both = Secure::http(&[&backends[0]]);
    assert_eq!(both.open_with(&both.versions(TLS12)).version(), ProtocolVersion::TLSv1_2);
    assert_eq!(both.open_with(&both.versions(TLS13)).version(), ProtocolVersion::TLSv1_3);
    assert_eq!(both.open_with(&both.versions(BOTH)).version(), ProtocolVersion::TLSv1_3, "the better one");

    let new = Secure::with(Protocol::Http, &[&backends[0]], ", min_version: '1.3'", |_| ());
    assert_eq!(new.open().version(), ProtocolVersion::TLSv1_3);
    let error = TlsSocket::open(new.keel.address(), &new.versions(TLS12), "localhost").err().unwrap();
    assert_eq!(alert(&error), Some(AlertDescription::ProtocolVersion), "{error}");
    until_ended(&new.keel, Cause::TlsHandshake, 1);
}

#[test]
fn http_1_1_is_agreed_on_whatever_else_is_offered_and_nothing_else_is() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    let offering = |offered: &[&str]| {
        let mut config = client_config(&[secure.authority.ca_pem()], BOTH, None);
        config.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsSocket::open(secure.keel.address(), &Arc::new(config), "localhost")
    };
    for (offered, agreed) in
        [(&["h2", "http/1.1"][..], Some(&b"http/1.1"[..])), (&["http/1.1"], Some(b"http/1.1")), (&[], None)]
    {
        assert_eq!(offering(offered).unwrap().session.alpn_protocol(), agreed, "{offered:?}");
    }
    let error = offering(&["h2"]).err().unwrap();
    assert_eq!(alert(&error), Some(AlertDescription::NoApplicationProtocol), "{error}");
    until_ended(&secure.keel, Cause::TlsHandshake, 1);
}

#[test]
fn a_recent_client_gets_a_key_exchange_that_outlasts_quantum_computers() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    let group = |socket: &TlsSocket| socket.session.negotiated_key_exchange_group().unwrap().name();
    assert_eq!(group(&secure.open()), NamedGroup::X25519MLKEM768);
    // One that offers both and has guessed the old one is served as well, and one that knows no other too.
    let mut provider = default_provider();
    provider.kx_groups = vec![kx_group::X25519];
    let old = client_config_of(provider, &[secure.authority.ca_pem()], BOTH, None);
    assert_eq!(group(&secure.open_with(&Arc::new(old))), NamedGroup::X25519);
}
