//! `tls.cipher_suites` and `tls.groups`.

use serde_json::{Value, json};

use super::certificates::Certs;
use super::every_key::{Check, target};
use super::listeners::front;
use super::*;
use crate::config::model::tls::ListenerTls;
use crate::config::model::tls::offers::{CipherSuite, KeyGroup};

/// Values that keys of this take.
pub(in crate::config::tests) fn values() -> [Value; 4] {
    [
        json!("TLS_AES_128_GCM_SHA256"),
        json!(["ECDHE-RSA-AES128-GCM-SHA256", "TLS_AES_256_GCM_SHA384"]),
        json!("X25519"),
        json!(["P-256", "x25519mlkem768"]),
    ]
}

fn tls(config: &Config) -> Option<&ListenerTls> {
    config.listeners.iter().find_map(|listener| listener.tls.as_deref())
}

fn on_listener(keys: &str) -> String {
    let cert = Certs::shared().path("both.pem");
    front(&format!("protocol: https, tls: {{cert_file: {cert}, {keys}}}"))
}

fn on_target(keys: &str) -> String {
    let cert = Certs::shared().path("both.pem");
    target(&format!("tls: {{cert_file: {cert}, {keys}}}")).replacen("protocol: http,", "protocol: https,", 1)
}

/// Keys of this, each with a text in which it stands and what it changes.
pub(in crate::config::tests) fn rows() -> Vec<(&'static str, String, Check)> {
    let suites: Check =
        |c| tls(c).is_some_and(|tls| tls.cipher_suites == [CipherSuite::Aes256, CipherSuite::EcdsaAes128]);
    let groups: Check = |c| tls(c).is_some_and(|tls| tls.groups == [KeyGroup::X25519, KeyGroup::P256]);
    let mut rows = Vec::new();
    for (path, text) in
        [("listeners.<name>.tls", on_listener as fn(&str) -> String), ("targets.<name>.tls", on_target)]
    {
        let written = "cipher_suites: [TLS_AES_256_GCM_SHA384, ecdhe-ecdsa-aes128-gcm-sha256]";
        rows.push((&*format!("{path}.cipher_suites").leak(), text(written), suites));
        rows.push((&*format!("{path}.groups").leak(), text("groups: [X25519, prime256v1]"), groups));
    }
    rows
}

#[test]
fn what_is_no_suite_and_no_group_is_told_with_what_is_one() {
    for (keys, wanted) in [
        (
            "cipher_suites: TLS_RSA_WITH_AES_128_CBC_SHA",
            "`cipher_suites` is `TLS_RSA_WITH_AES_128_CBC_SHA`, which does not exist",
        ),
        ("cipher_suites: 'HIGH:!aNULL'", "`cipher_suites` is `HIGH:!aNULL`, which does not exist"),
        ("cipher_suites: []", "`cipher_suites` is an empty list"),
        ("cipher_suites: {a: b}", "`cipher_suites` is a mapping (`key: value`)"),
        (
            "cipher_suites: [ECDHE-RSA-AES128-GCM-SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]",
            "`cipher_suites` is `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`, which is there already",
        ),
        (
            "cipher_suites: ECDHE-ECDSA-AES128-GCM-SHA256, min_version: 1.3",
            "`cipher_suites` has none of TLS 1.3, and `min_version: 1.3` speaks nothing else",
        ),
        (
            "cipher_suites: ECDHE-ECDSA-AES128-GCM-SHA256, groups: X25519MLKEM768",
            "all of `groups` are of TLS 1.3 and all of `cipher_suites` of TLS 1.2: no session could be made",
        ),
        (
            "cipher_suites: ECDHE-RSA-AES128-GCM-SHA256",
            "none of `cipher_suites` is for the key of a certificate here: ECDSA P-256",
        ),
        ("groups: secp256k1", "`groups` is `secp256k1`, which does not exist"),
        ("groups: [x25519, 7]", "`groups` is the number `7`"),
        ("groups: []", "`groups` is an empty list"),
        ("curves: x25519", "unknown key `curves` in `tls`"),
    ] {
        let said = messages(&on_listener(keys), &Flags::default());
        assert_eq!(said, [wanted], "{keys}");
    }
}

#[test]
fn what_a_choice_costs_is_said() {
    let warned = |keys: &str| {
        let loaded = load_with(&on_listener(keys), &Flags::default()).unwrap();
        let told = loaded.warnings.iter().map(|one| one.split("costs: ").nth(1).unwrap_or(one).to_owned());
        told.map(|one| one.split(',').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let all: Vec<&str> = CipherSuite::ALL.iter().map(|(name, _)| *name).collect();
    assert_eq!(warned(&format!("cipher_suites: [{}]", all.join(", "))), [""; 0]);
    assert_eq!(warned("groups: [X25519MLKEM768, x25519, secp256r1]"), [""; 0]);
    assert_eq!(
        warned("cipher_suites: TLS_AES_256_GCM_SHA384"),
        ["none is of TLS 1.2", "none is with ChaCha20"]
    );
    assert_eq!(warned("cipher_suites: TLS_CHACHA20_POLY1305_SHA256, min_version: 1.3"), [""; 0]);
    let rsa = warned("cipher_suites: [ECDHE-RSA-CHACHA20-POLY1305, TLS_AES_128_GCM_SHA256]");
    assert!(rsa.len() == 1 && rsa[0].starts_with("none of TLS 1.2 is for the certificate "), "{rsa:?}");
    assert_eq!(warned("cipher_suites: ECDHE-ECDSA-CHACHA20-POLY1305"), ["none is of TLS 1.3"]);
    assert_eq!(
        warned("groups: secp384r1").iter().map(|one| one.split(' ').nth(1).unwrap()).collect::<Vec<_>>(),
        ["`X25519MLKEM768`", "`x25519`", "`secp256r1`"]
    );
    assert!(warned("groups: X25519MLKEM768").contains(&"all are of TLS 1.3".to_owned()));
}
