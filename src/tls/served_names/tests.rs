use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use super::super::provider;
use super::*;
use crate::tls::fixtures::identity;

/// Certificates with these names, in this order.
fn identities(names: &[&[&str]]) -> Vec<Arc<Identity>> {
    names.iter().map(|names| Arc::new(identity(names))).collect()
}

/// The places of those that fit a client that asks for `name`.
fn chosen(identities: &[Arc<Identity>], name: Option<&str>) -> Vec<usize> {
    let chooser = Chooser::new(identities);
    let place = |one: &ServedCertificate| {
        let one = one.identity();
        identities.iter().position(|identity| Arc::ptr_eq(identity, &one)).expect("one of them")
    };
    chooser.candidates(name).iter().map(place).collect()
}

#[test]
fn a_certificate_is_found_by_its_name_in_any_spelling() {
    let all = identities(&[&["first.test"], &["shop.test", "www.shop.test"], &["*.wild.test"]]);
    for name in ["shop.test", "SHOP.Test", "shop.test.", "www.shop.test"] {
        assert_eq!(chosen(&all, Some(name)), [1], "{name}");
    }
    assert_eq!(chosen(&all, Some("first.test")), [0]);
}

#[test]
fn a_star_stands_for_exactly_one_label() {
    let all = identities(&[&["first.test"], &["*.wild.test"], &["exact.wild.test"]]);
    for name in ["a.wild.test", "A.WILD.TEST.", "xn--0-1.wild.test"] {
        assert_eq!(chosen(&all, Some(name)), [1], "{name}");
    }
    assert_eq!(chosen(&all, Some("exact.wild.test")), [2], "its own name comes first");
    for name in ["wild.test", "a.b.wild.test", ".wild.test.x", "awild.test", "*.other.test"] {
        assert_eq!(chosen(&all, Some(name)), [0], "{name}");
    }
}

#[test]
fn whoever_asks_for_nothing_we_have_sees_the_first() {
    let all = identities(&[&["first.test"], &["second.test"]]);
    for name in [None, Some("other.test"), Some("test"), Some("")] {
        assert_eq!(chosen(&all, name), [0], "{name:?}");
    }
}

#[test]
fn two_kinds_of_key_for_the_same_name_are_both_offered_in_order() {
    let all = identities(&[&["first.test"], &["both.test"], &["both.test"], &["first.test"]]);
    assert_eq!(chosen(&all, Some("both.test")), [1, 2]);
    assert_eq!(chosen(&all, Some("other.test")), [0, 3], "also where they are the default");
}

#[test]
fn names_that_are_shown_the_same_certificates_are_the_same_and_no_others() {
    let all =
        identities(&[&["first.test"], &["shop.test", "www.shop.test"], &["*.wild.test"], &["shop.test"]]);
    let served = ServedNames::new(&all);
    for (sni, host) in [
        (Some("first.test"), "first.test"),
        (Some("FIRST.test"), "First.Test."),
        (Some("first.test"), "unknown.test"),
        (Some("a.wild.test"), "b.wild.test"),
        (None, "first.test"),
        (None, "unknown.test"),
        (None, "192.0.2.7"),
        (Some("unknown.test"), "[2001:db8::1]"),
        (Some("first.test"), "::1"),
    ] {
        assert!(served.is_same(sni, host), "{sni:?} {host}");
    }
    for (sni, host) in [
        (Some("first.test"), "shop.test"),
        (Some("www.shop.test"), "shop.test"),
        (Some("a.wild.test"), "wild.test"),
        (Some("a.wild.test"), "b.a.wild.test"),
        (Some("shop.test"), "192.0.2.7"),
        (Some("shop.test"), "unknown.test"),
        (None, "shop.test"),
    ] {
        assert!(!served.is_same(sni, host), "{sni:?} {host}");
    }
}

#[test]
fn a_certificate_that_says_a_name_twice_is_shown_once_and_the_same_for_its_other_names() {
    let served = ServedNames::new(&identities(&[&["a.test", "a.test", "c.test"], &["b.test"]]));
    assert!(served.is_same(Some("a.test"), "c.test") && served.is_same(Some("c.test"), "a.test"));
    assert!(served.is_same(Some("a.test"), "unknown.test") && !served.is_same(Some("a.test"), "b.test"));
}

#[test]
fn one_certificate_is_shown_to_all_unless_others_are_refused() {
    let one = identities(&[&["a.test", "*.b.test"]]);
    assert!(ServedNames::new(&one).is_one());
    assert!(!ServedNames::new(&identities(&[&["a.test"], &["b.test"]])).is_one());
    let refusing = ServedNames(Arc::new(Chooser { refuses: true, ..Chooser::new(&one) }));
    assert!(!refusing.is_one());
}

/// What is heard of a client that asks for `name` and offers `protocols`, and what is agreed on.
fn heard(server: &Arc<ServerConfig>, name: &str, protocols: &[&str]) -> (Option<Box<str>>, Option<Vec<u8>>) {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut server = ServerConnection::new(Arc::clone(server)).expect("a server");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("memory");
    server.read_tls(&mut &hello[..]).expect("memory");
    let (taken, heard) = hearing(|| server.process_new_packets().map(|_| ()));
    taken.expect("a sound hello");
    (heard, server.alpn_protocol().map(<[u8]>::to_vec))
}

#[test]
fn the_name_that_a_client_asks_for_is_heard_whatever_it_offers() {
    let served = ServedNames::new(&identities(&[&["shop.test"]]));
    let mut server = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_cert_resolver(served.resolver());
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let server = Arc::new(server);
    let (name, agreed) = heard(&server, "Shop.test", &["http/1.1", "h2"]);
    assert_eq!((name.as_deref(), agreed.as_deref()), (Some("shop.test"), Some(&b"h2"[..])));
    let name = || Some("shop.test".into());
    assert_eq!(heard(&server, "shop.test", &["http/1.1"]), (name(), Some(b"http/1.1".to_vec())));
    assert_eq!(heard(&server, "shop.test", &[]), (name(), None));
    assert_eq!(heard(&server, "127.0.0.1", &["h2"]), (None, Some(b"h2".to_vec())), "an address is no name");
}

#[test]
fn nothing_is_heard_of_what_an_earlier_step_was_about() {
    ASKED.set(Some("shop.test".into()));
    assert_eq!(hearing(|| 1), (1, None));
    assert_eq!(hearing(|| ASKED.set(Some("www.test".into()))).1.as_deref(), Some("www.test"));
    assert_eq!(hearing(|| ()).1, None);
}

#[test]
fn an_answer_of_the_authority_is_shown_while_it_is_valid() {
    use crate::config::model::tls::Staple;
    let all = identities(&[&["shop.test"]]);
    let mut identity = (*all[0]).clone();
    assert!(identity.shown(|| unreachable!("nobody need know what time it is")).ocsp.is_none());
    let certified = Arc::new(CertifiedKey { ocsp: Some(b"good".to_vec()), ..(*identity.certified).clone() });
    identity.staple = Some(Staple { file: "a.ocsp".into(), until: 1_000, certified });
    let shown = |now: i64| identity.shown(|| now).ocsp.as_deref();
    assert_eq!([999, 1_000, 1_001].map(shown), [Some(&b"good"[..]), None, None]);
    assert_ne!(identity, *all[0], "what is shown differs");
}
