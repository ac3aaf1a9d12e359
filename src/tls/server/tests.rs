use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;

use super::*;

/// Certificates with these names, in this order.
fn identities(names: &[&[&str]]) -> Vec<Arc<Identity>> {
    let identity = |names: &&[&str]| {
        let key = KeyPair::generate().expect("randomness");
        let certificate = CertificateParams::default().self_signed(&key).expect("signed").der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let certified = CertifiedKey::new(vec![certificate], any_supported_type(&key).expect("P-256"));
        Arc::new(Identity {
            file: "a.pem".into(),
            certified: Arc::new(certified),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            expires: 0,
        })
    };
    names.iter().map(identity).collect()
}

/// The places of those that fit a client that asks for `name`.
fn chosen(identities: &[Arc<Identity>], name: Option<&str>) -> Vec<usize> {
    let chooser = Chooser::new(identities);
    let place = |key: &Arc<CertifiedKey>| {
        identities.iter().position(|identity| Arc::ptr_eq(&identity.certified, key)).expect("one of them")
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
