//! `acme` at the top level, and certificates that are ordered.

use std::time::Duration;

use serde_json::{Value, json};

use super::certificates::Certs;
use super::every_key::{Check, target};
use super::listeners::front;
use super::*;
use crate::config::model::tls::acme::{AcmeChallenge, OrderedCertificate, OrderedKey};

fn all_ordered(config: &Config) -> Vec<&OrderedCertificate> {
    let all = config.listeners.iter().filter_map(|listener| listener.tls.as_deref());
    all.flat_map(|tls| &tls.ordered).map(|one| &**one).collect()
}

/// A listener that orders what `entry` says, beside one that speaks plain HTTP.
fn orders(entry: &str) -> String {
    front(&format!("protocol: https, tls: {{certificates: [{{{entry}}}]}}"))
}

/// The same of a target, with what stands at the top level.
fn of_target(top: &str, entry: &str) -> String {
    let keys = format!("tls: {{certificates: [{{{entry}}}]}}");
    format!("{top}\n{}", target(&keys).replacen("protocol: http,", "protocol: https,", 1))
}

fn acme(keys: &str) -> String {
    format!("acme: {{{keys}}}\n{}", orders("acme: [a.example.com]"))
}

/// Keys of this, each with a text in which it stands and what it changes.
pub(in crate::config::tests) fn rows() -> Vec<(&'static str, String, Check)> {
    let certs = Certs::shared();
    let hook = format!("acme: {{dns_hook: {}}}", certs.path("hook"));
    let eab = format!("eab: {{key_id: kid-1, hmac_key_file: {}}}", certs.path("eab.key"));
    let names: Check = |c| all_ordered(c).iter().any(|one| one.names == ["a.example.com", "b.example.com"]);
    let challenge: Check = |c| all_ordered(c).iter().any(|one| one.challenge == AcmeChallenge::Dns01);
    let key: Check = |c| all_ordered(c).iter().any(|one| one.key == OrderedKey::Rsa2048);
    let mut rows: Vec<(&'static str, String, Check)> = vec![
        ("acme", acme("directory: zerossl, ").replace("zerossl, ", "letsencrypt-staging"), |c| {
            c.acme.directory.host == "acme-staging-v02.api.letsencrypt.org"
        }),
        ("acme.directory", acme("directory: 'https://ca.internal:9000/acme/directory'"), |c| {
            (c.acme.directory.port, &*c.acme.directory.path, c.acme.is_public)
                == (9000, "/acme/directory", false)
        }),
        ("acme.ca_file", acme(&format!("ca_file: {}", certs.path("ca.pem"))), |c| {
            c.acme.authorities.is_some()
        }),
        ("acme.contact", acme("contact: [a@example.com, 'mailto:b@example.com']"), |c| {
            c.acme.contacts == ["a@example.com", "b@example.com"]
        }),
        ("acme.eab", acme(&eab), |c| c.acme.external_account.is_some()),
        ("acme.eab.key_id", acme(&eab), |c| {
            c.acme.external_account.as_ref().is_some_and(|account| account.id == "kid-1")
        }),
        ("acme.eab.hmac_key_file", acme(&eab), |c| {
            c.acme.external_account.as_ref().is_some_and(|account| &*account.key == b"secret-secret-secret")
        }),
        ("acme.challenge", acme("challenge: tls-alpn-01"), |c| {
            all_ordered(c).iter().any(|one| one.challenge == AcmeChallenge::TlsAlpn01)
        }),
        ("acme.key_type", acme("key_type: ecdsa-p384"), |c| {
            all_ordered(c).iter().any(|one| one.key == OrderedKey::EcdsaP384)
        }),
        ("acme.dns_hook", format!("{hook}\n{}", orders("acme: ['*.example.com']")), |c| {
            c.acme.hook.as_ref().is_some_and(|hook| hook.wait == Duration::from_secs(30))
        }),
        (
            "acme.dns_wait",
            format!("{}\n{}", hook.replace('}', ", dns_wait: 1m}"), orders("acme: ['*.example.com']")),
            |c| c.acme.hook.as_ref().is_some_and(|hook| hook.wait == Duration::from_secs(60)),
        ),
    ];
    let of_listener = |entry: &str| format!("{hook}\n{}", orders(entry));
    let on_target = |entry: &str| of_target(&hook, entry);
    for path in ["listeners.<name>.tls", "targets.<name>.tls"] {
        let is_listener = path.starts_with("listeners");
        let text = |entry: &str| if is_listener { of_listener(entry) } else { on_target(entry) };
        let path = |key: &str| &*format!("{path}.certificates[].{key}").leak();
        rows.push((path("acme"), text("acme: [A.example.com, b.example.com.]"), names));
        rows.push((path("challenge"), text("acme: a.example.com, challenge: dns-01"), challenge));
        rows.push((path("key_type"), text("acme: [a.example.com], key_type: rsa-2048"), key));
    }
    rows
}

/// Values that keys of this take.
pub(in crate::config::tests) fn values() -> [Value; 7] {
    let certs = Certs::shared();
    let (hook, key) = (certs.path("hook"), certs.path("eab.key"));
    [
        json!("ops@example.com"),
        json!({ "key_id": "kid-1", "hmac_key_file": key }),
        json!(hook),
        json!(key),
        json!("kid-1"),
        json!("tls-alpn-01"),
        json!("rsa-2048"),
    ]
}

/// What keys of this need around them.
pub(in crate::config::tests) fn set_up(path: &str, web: &mut Value) {
    let beside = ["certificates[].acme", "certificates[].challenge", "certificates[].key_type"];
    if path.starts_with("acme.eab.") {
        let key = Certs::shared().path("eab.key");
        web["acme"] = json!({ "eab": { "key_id": "kid-1", "hmac_key_file": key } });
    }
    if path == "acme.dns_wait" || beside.iter().any(|key| path.ends_with(key)) {
        web["acme"] = json!({ "dns_hook": Certs::shared().path("hook") });
    }
    if !beside.iter().any(|key| path.ends_with(key)) {
        return;
    }
    web["listeners"]["plain"] = json!({ "bind": 8082, "routes": [{ "target": "web" }] });
    for (owner, at) in [("listeners", "front"), ("targets", "web")] {
        if let Some(item) = web.pointer_mut(&format!("/{owner}/{at}/tls/certificates/0")) {
            *item = json!({ "acme": ["a.example.com"] });
        }
    }
}

#[test]
fn a_name_is_proven_as_the_config_can() {
    let of = |text: &str| {
        let config = load_with(text, &Flags::default()).unwrap_or_else(|why| panic!("{why}")).config;
        all_ordered(&config).iter().map(|one| one.challenge).collect::<Vec<_>>()
    };
    let plain = orders("acme: a.example.com").replacen(
        "listeners: {",
        "listeners: {plain: {bind: 8079, routes: [{target: web}]}, ",
        1,
    );
    assert_eq!(of(&plain), [AcmeChallenge::Http01], "somebody speaks plain HTTP");
    assert_eq!(of(&of_target("", "acme: a.example.com")), [AcmeChallenge::TlsAlpn01], "nobody does");
    let hook = format!("acme: {{dns_hook: {}, challenge: tls-alpn-01}}", Certs::shared().path("hook"));
    let both = of_target(&hook, "acme: ['*.example.com']}, {acme: [b.example.com]");
    assert_eq!(of(&both), [AcmeChallenge::Dns01, AcmeChallenge::TlsAlpn01]);
}

#[test]
fn the_first_of_all_certificates_is_for_everybody_else() {
    let cert = Certs::shared().path("both.pem");
    let first = |entries: &str| {
        let text = front(&format!("protocol: https, tls: {{certificates: [{entries}]}}"));
        let config = load_with(&text, &Flags::default()).unwrap_or_else(|why| panic!("{why}")).config;
        config.listeners.iter().find_map(|listener| listener.tls.as_ref()).map(|tls| tls.orders_first)
    };
    assert_eq!(first(&format!("{{acme: a.example.com}}, {{cert_file: {cert}}}")), Some(true));
    assert_eq!(first(&format!("{{cert_file: {cert}}}, {{acme: a.example.com}}")), Some(false));
}

#[test]
fn what_is_wrong_with_an_order_is_told() {
    let certs = Certs::shared();
    let (cert, hook) = (certs.path("both.pem"), certs.path("hook"));
    let many: Vec<String> = (0..101).map(|number| format!("n{number}.example.com")).collect();
    let both_dir = "acme: a.example.com, dir: x";
    for (entry, wanted) in [
        ("acme: 192.0.2.1", "`acme` is `192.0.2.1`, an address"),
        ("acme: '[2001:db8::1]'", "`acme` is `[2001:db8::1]`, an address"),
        ("acme: 'https://a.example.com/b'", "`acme` is `https://a.example.com/b`, a URL"),
        ("acme: 'a.example.com:443'", "`acme` is `a.example.com:443`, with a port"),
        ("acme: 'a.*.example.com'", "`acme` is `a.*.example.com`, with a star that is not its first label"),
        ("acme: '*'", "`acme` is `*`, with a star that is not its first label"),
        ("acme: a_b.example.com", "`acme` is `a_b.example.com`, which no certificate can be for"),
        ("acme: ''", "`acme` is ``, which no certificate can be for"),
        ("acme: []", "`acme` is an empty list"),
        ("acme: {a: b}", "`acme` is a mapping (`key: value`)"),
        ("acme: [7]", "`acme` is the number `7`"),
        ("acme: true", "`acme` is `true`"),
        ("acme: [a.example.com, A.example.com.]", "`acme` is `A.example.com.`, which is there already"),
        (&format!("acme: [{}]", many.join(", ")), "`acme` has 101 names"),
        ("acme: a.example.com, challenge: http", "`challenge` is `http`, which does not exist"),
        ("acme: a.example.com, key_type: rsa", "`key_type` is `rsa`, which does not exist"),
        (&format!("acme: a.example.com, cert_file: {cert}"), "`acme` and `cert_file` exclude each other"),
        (&format!("acme: a.example.com, cert_key: {cert}"), "`acme` and `cert_key` exclude each other"),
        ("acme: a.example.com, ocsp_file: x", "`acme` and `ocsp_file` exclude each other"),
        (both_dir, "`acme` and `dir` exclude each other"),
        (&format!("cert_file: {cert}, challenge: http-01"), "`challenge` has no effect without `acme`"),
        (&format!("cert_file: {cert}, key_type: rsa-2048"), "`key_type` has no effect without `acme`"),
        (
            "acme: '*.example.com'",
            "`*.example.com` is proven by `dns-01` alone, and nothing adds records to DNS",
        ),
        ("acme: '*.example.com', challenge: http-01", "`*.example.com` can't be proven by `http-01`"),
        ("acme: '*.example.com', challenge: tls-alpn-01", "`*.example.com` can't be proven by `tls-alpn-01`"),
        (
            "acme: a.example.com, challenge: dns-01",
            "`challenge: dns-01` needs somebody who adds records to DNS",
        ),
        ("acme: localhost", "letsencrypt issues no certificate for `localhost`, which has no dot"),
        (
            "acme: a.internal",
            "letsencrypt issues no certificate for `a.internal`, which ends in a name that is nobody's",
        ),
        ("acmee: a.example.com", "unknown key `acmee` in a certificate"),
    ] {
        let said = messages(&orders(entry), &Flags::default());
        assert_eq!(said, [wanted], "{entry}");
    }
    let said = messages(&of_target("", "acme: a.example.com, challenge: http-01"), &Flags::default());
    assert_eq!(said, ["`http-01` is answered where plain HTTP is spoken, and no listener speaks it"]);
    for (keys, wanted) in [
        (
            "directory: letsencript".to_owned(),
            "`directory` is `letsencript`, which is no authority".to_owned(),
        ),
        ("directory: 7".into(), "`directory` is the number `7`".into()),
        (
            "directory: 'http://ca.example/x'".into(),
            "`directory` is no https, and whoever stands on the way could answer for it".into(),
        ),
        (
            "directory: 'ftp://ca.example/x'".into(),
            "`directory` has a scheme other than `https` and `http`".into(),
        ),
        (
            "directory: 'https://me:pw@ca.example/x'".into(),
            "`directory` has a user, but authorities know accounts by their keys".into(),
        ),
        ("directory: zerossl".into(), "zerossl issues for its customers alone, and there is no `eab`".into()),
        ("directory: google".into(), "google issues for its customers alone, and there is no `eab`".into()),
        (
            format!("directory: 'http://127.0.0.1:1/', ca_file: {}", certs.path("ca.pem")),
            "`ca_file` has no effect, because `directory` is no https".into(),
        ),
        ("contact: ops".into(), "`contact` is `ops`, which is no mail address".into()),
        (
            "contact: ['a@b.example', 'mailto:a@b.example']".into(),
            "`contact` is `mailto:a@b.example`, which is there already".into(),
        ),
        (
            "contact: 'a@b.example?subject=x'".into(),
            "`contact` is `a@b.example?subject=x`, which is no mail address".into(),
        ),
        ("eab: {key_id: a}".into(), "`eab` has no `hmac_key_file`".into()),
        (format!("eab: {{hmac_key_file: {}}}", certs.path("eab.key")), "`eab` has no `key_id`".into()),
        (
            format!("eab: {{key_id: a, hmac_key_file: {}}}", certs.path("text.pem")),
            format!("`hmac_key_file` is `{}`, which is not in base64url", certs.path("text.pem")),
        ),
        (
            format!("eab: {{key_id: a, hmac_key_file: {}}}", certs.path("empty.pem")),
            format!("`hmac_key_file` is `{}`, which is empty", certs.path("empty.pem")),
        ),
        ("challenge: dns".into(), "`challenge` is `dns`, which does not exist".into()),
        ("key_type: ed25519".into(), "`key_type` is `ed25519`, which does not exist".into()),
        ("dns_wait: 1s".into(), "`dns_wait` has no effect without `dns_hook`".into()),
        (format!("dns_hook: {hook}, dns_wait: 2h"), "`dns_wait` is 2h, which is too large".into()),
        (
            format!("dns_hook: {}", certs.path("nothing")),
            format!("`dns_hook` is `{}`, which does not exist", certs.path("nothing")),
        ),
        (
            format!("dns_hook: {}", certs.path("folder")),
            format!("`dns_hook` is `{}`, which is no file", certs.path("folder")),
        ),
        (
            format!("dns_hook: {}", certs.path("a.pem")),
            format!("`dns_hook` is `{}`, which nobody may run", certs.path("a.pem")),
        ),
        (
            format!("dns_hook: {}", certs.path("open-hook")),
            format!("`dns_hook` is `{}`, which others than its owner may write", certs.path("open-hook")),
        ),
        ("email: ops@example.com".into(), "unknown key `email` in `acme`".into()),
    ] {
        assert_eq!(messages(&acme(&keys), &Flags::default()), [wanted], "{keys}");
    }
    let warned = load_with(&format!("acme: {{}}\n{WEB}"), &Flags::default()).expect("it is right").warnings;
    assert!(warned[0].contains("`acme` orders nothing"), "{warned:?}");
}

/// A config that comes over the network may name no program, and no key of an account, but those that are in force.
#[test]
fn no_config_from_afar_names_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["hook", "other"] {
        std::fs::write(path(name), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    std::fs::write(path("eab.key"), "c2VjcmV0LXNlY3JldC1zZWNyZXQ").unwrap();
    let file = path("t.yaml");
    std::fs::write(&file, acme("dns_hook: hook")).unwrap();
    let here = load(Some(&file), &Flags::default(), &env).unwrap_or_else(|why| panic!("{why}"));
    let fence = Fence::around(here.named, Some(&file));
    let afar = |keys: &str| load_fenced(&acme(keys), "text", Some(&file), &Flags::default(), &fence);
    assert!(afar("dns_hook: hook").is_ok());
    for keys in [
        "dns_hook: other",
        "dns_hook: /bin/true",
        "dns_hook: nothing",
        "eab: {key_id: a, hmac_key_file: eab.key}",
        "ca_file: hook",
    ] {
        let told = afar(keys).unwrap_err().to_string();
        assert!(told.contains("this is a file that can't be used here"), "{keys}: {told}");
    }
}
