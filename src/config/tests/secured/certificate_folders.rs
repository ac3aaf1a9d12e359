//! `tls.certificates[].dir`, `tls.unknown_sni`, `tls.client_crl`, `tls.ocsp_file`.

use std::path::Path;
use std::time::SystemTime;

use rcgen::{CertificateParams, KeyPair};

use super::certificates::Certs;
use super::every_key::{Check, target};
use super::listeners::front;
use super::*;
use crate::config::model::tls::{ExpiredList, ListenerTls, Revoked, UnknownSni};

/// A folder of its own, with what `make` puts into it.
fn folder(make: impl FnOnce(&Path)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path());
    folder
}

/// A certificate for `name` and its key.
fn pair(name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Whatever is asked of TLS.
fn tls(config: &Config) -> &ListenerTls {
    config.listeners.iter().find_map(|listener| listener.tls.as_deref()).unwrap()
}

/// Keys of this, each with a text in which it stands and what it changes. The folder stays for as long as the tests run.
pub(in crate::config::tests) fn rows() -> Vec<(&'static str, String, Check)> {
    let folder = folder(|path| {
        let (cert, key) = pair("localhost");
        write(&path.join("a.pem"), &format!("{key}{cert}"));
    });
    let dir = folder.keep().display().to_string();
    let mut rows = Vec::new();
    let (both, answer) = (Certs::shared().path("both.pem"), Certs::shared().path("a.ocsp"));
    let is_stapled: Check = |c| {
        let mut all = c.listeners.iter().filter_map(|listener| listener.tls.as_deref());
        all.any(|tls| tls.identities.iter().any(|one| one.staple.is_some()))
    };
    for (path, text) in [
        ("listeners.<name>.tls", front as fn(&str) -> String),
        ("targets.<name>.tls", |keys| target(keys).replacen("protocol: http, ", "", 1)),
    ] {
        let whole = |keys: &str| text(&format!("protocol: https, tls: {{{keys}}}"));
        let stapled = format!("cert_file: {both}, ocsp_file: {answer}");
        rows.push((&*format!("{path}.ocsp_file").leak(), whole(&stapled), is_stapled));
        let one = whole(&format!("certificates: [{{{stapled}}}]"));
        rows.push((&*format!("{path}.certificates[].ocsp_file").leak(), one, is_stapled));
        let text = |more: &str| whole(&format!("certificates: [{{dir: {dir}}}], {more}"));
        let has: Check = |c| tls(c).identities.len() == 1 && tls(c).identities[0].names == ["localhost"];
        rows.push((&*format!("{path}.certificates[].dir").leak(), text(""), has));
        let refuse: Check = |c| {
            let tls = c.listeners.iter().find_map(|listener| listener.tls.as_deref());
            tls.is_some_and(|tls| tls.unknown_sni == UnknownSni::Refuse)
        };
        rows.push((&*format!("{path}.unknown_sni").leak(), text("unknown_sni: refuse"), refuse));
        let certs = Certs::shared();
        let revoking = |expired: &str| {
            let (authority, list) = (certs.path("clients.pem"), certs.path("crl.der"));
            text(&format!("client_ca: {authority}, client_crl: {list}, client_crl_expired: {expired}"))
        };
        let lists: Check = |c| revoked(c).is_some_and(|revoked| revoked.lists[0].issuer == "Clients");
        let refuse: Check = |c| revoked(c).is_some_and(|revoked| revoked.expired == ExpiredList::Refuse);
        rows.push((&*format!("{path}.client_crl").leak(), revoking("keep"), lists));
        rows.push((&*format!("{path}.client_crl_expired").leak(), revoking("refuse"), refuse));
    }
    // Each key changes something that is not there without it.
    rows.into_iter()
        .map(
            |(path, text, check)| {
                if path.ends_with("dir") {
                    (path, text, is_from_folder as Check)
                } else {
                    (path, text, check)
                }
            },
        )
        .collect()
}

fn revoked(config: &Config) -> Option<&Revoked> {
    let tls = config.listeners.iter().find_map(|listener| listener.tls.as_deref())?;
    tls.clients.as_ref()?.revoked.as_ref()
}

fn is_from_folder(config: &Config) -> bool {
    let mut all = config.listeners.iter().filter_map(|listener| listener.tls.as_deref());
    all.any(|tls| tls.identities.iter().any(|one| one.file.ends_with("a.pem") && one.names == ["localhost"]))
}

/// A listener that shows what is in this folder.
fn showing(folder: &Path, more: &str) -> Result<Loaded, Problems> {
    let text = front(&format!("protocol: https, tls: {{certificates: [{{dir: certs}}{more}]}}"));
    load_text(&text, "t.yaml", folder, &Flags::default(), &env)
}

#[test]
fn a_folder_is_looked_through_for_pairs_however_they_are_laid_out_and_is_watched() {
    let folder = folder(|path| {
        let certs = path.join("certs");
        let (cert, key) = pair("a.example");
        write(&certs.join("a.pem"), &format!("{cert}{key}"));
        let (cert, key) = pair("b.example");
        write(&certs.join("b.crt"), &cert);
        write(&certs.join("b.key"), &key);
        let (cert, key) = pair("c.example");
        write(&certs.join("c.example/fullchain.pem"), &cert);
        write(&certs.join("c.example/privkey.pem"), &key);
        write(&certs.join("c.example/cert.pem"), &cert);
        let (cert, key) = pair("d.example");
        write(&certs.join("d/tls.crt"), &cert);
        write(&certs.join("d/tls.key"), &key);
        let (cert, key) = pair("e.example");
        write(&certs.join("e.pem"), &cert);
        write(&certs.join("e-key.pem"), &key);
        write(&certs.join("README"), "certificates");
        write(&certs.join(".f.pem"), "half of one");
    });
    let (cert, key) = pair("z.example");
    write(&folder.path().join("z.pem"), &format!("{cert}{key}"));
    let loaded = showing(folder.path(), ", {cert_file: z.pem}").unwrap();
    let names: Vec<&str> =
        tls(&loaded.config).identities.iter().flat_map(|one| &one.names).map(String::as_str).collect();
    assert_eq!(names, ["a.example", "b.example", "c.example", "d.example", "e.example", "z.example"]);
    let certs = folder.path().join("certs");
    let (cert, key) = pair("f.example");
    let before = loaded.files.named();
    write(&certs.join("notes.txt"), "nothing");
    assert_eq!(before.again(), before);
    write(&certs.join("f.pem"), &format!("{cert}{key}"));
    assert_ne!(before.again(), before, "a new one is noticed");
    let told = loaded.certificate_lines(SystemTime::now(), false);
    let file = certs.join("a.pem").display().to_string();
    assert_eq!(told[0], "certificates of listener front");
    assert!(
        told[1].starts_with(&format!("  a.example: {file}, ECDSA P-256, "))
            && told[1].ends_with(", self-signed"),
        "{told:#?}"
    );
    assert_eq!(told.last().unwrap(), &format!("  any other name: {file}"));
}

#[test]
fn what_is_wrong_with_a_folder_is_told_all_at_once() {
    let empty = folder(|path| std::fs::create_dir(path.join("certs")).unwrap());
    let none = folder(|_| ());
    let file = folder(|path| write(&path.join("certs"), "a file"));
    let broken = folder(|path| {
        let certs = path.join("certs");
        let (cert, _) = pair("a.example");
        let (alone, other) = pair("a.example");
        write(&certs.join("a.pem"), &alone);
        write(&certs.join("b.pem"), &cert);
        write(&certs.join("b.key"), &other);
        write(&certs.join("c.pem"), "nothing");
        let (cert, key) = pair("d.example");
        write(&certs.join("d.pem"), &format!("{cert}{key}"));
    });
    for (folder, wanted) in [
        (&empty, vec!["`dir` is `certs`, which has no certificates in it"]),
        (&none, vec!["`dir` is `certs`, which does not exist"]),
        (&file, vec!["`dir` is `certs`, which can't be read: Not a directory (os error 20)"]),
        (
            &broken,
            vec![
                "a file of `dir` is `certs/c.pem`, which has no certificate in it",
                "a file of `dir` is `certs/a.pem`, which has a certificate and no private key",
                "a file of `dir` is `certs/b.key`, which is not the key of the certificate in `certs/b.pem`",
            ],
        ),
    ] {
        let said = showing(folder.path(), "").unwrap_err();
        let root = format!("{}/", folder.path().display());
        let said: Vec<String> = said.list().iter().map(|one| one.message.replace(&root, "")).collect();
        assert_eq!(said, wanted);
    }
    for (keys, wanted) in [
        ("{dir: certs, cert_file: a.pem}", "`dir` and `cert_file` exclude each other"),
        ("{dir: ''}", "`dir` is empty"),
        ("{dir: [a]}", "`dir` is a list"),
        ("{dirr: certs}", "unknown key `dirr` in a certificate"),
        ("{}", "this certificate has no `cert_file`"),
    ] {
        let text = front(&format!("protocol: https, tls: {{certificates: [{keys}]}}"));
        let good = folder(|path| {
            let (cert, key) = pair("d.example");
            write(&path.join("certs/d.pem"), &format!("{cert}{key}"));
        });
        let said = load_text(&text, "t.yaml", good.path(), &Flags::default(), &env).unwrap_err();
        let said: Vec<&str> = said.list().iter().map(|one| one.message.as_str()).collect();
        assert!(said.len() == 1 && said[0].starts_with(wanted), "{keys}: {said:?}");
    }
    let text = front("protocol: https, tls: {certificates: [{dir: certs}], unknown_sni: reject}");
    let said = messages(&text, &Flags::default());
    assert!(said.iter().any(|one| one.starts_with("`unknown_sni` is `reject`, which")), "{said:?}");
}

#[test]
fn lists_that_are_overdue_or_of_somebody_else_are_warned_of() {
    let certs = Certs::shared();
    let warned = |authority: &str, list: &str| {
        let (authority, list, both) = (certs.path(authority), certs.path(list), certs.path("both.pem"));
        let keys = format!("cert_file: {both}, client_ca: {authority}, client_crl: {list}");
        let loaded =
            load_with(&front(&format!("protocol: https, tls: {{{keys}}}")), &Flags::default()).unwrap();
        loaded.all_warnings(SystemTime::now())
    };
    assert_eq!(warned("clients.pem", "crl.pem"), [""; 0]);
    let overdue = warned("clients.pem", "old-crl.der");
    assert!(
        overdue.len() == 1
            && overdue[0].ends_with("which front asks, should have been renewed: what it says still holds"),
        "{overdue:?}"
    );
    let strange = warned("ca.pem", "crl.pem");
    assert!(
        strange.len() == 1 && strange[0].contains("is one of `Clients`, who is none of those in `client_ca`"),
        "{strange:?}"
    );
}

#[test]
fn what_tools_put_beside_certificates_is_nobodys_and_what_has_ended_is_left_out() {
    let folder = folder(|path| {
        let certs = path.join("certs");
        let (cert, key) = pair("a.example");
        // As certbot, lego, acme.sh and cert-manager do.
        for (name, text) in [
            ("fullchain.pem", &cert),
            ("privkey.pem", &key),
            ("cert.pem", &cert),
            ("b.crt", &cert),
            ("b.key", &key),
        ] {
            write(&certs.join(name), text);
        }
        for name in ["chain.pem", "b.issuer.crt", "ca.crt", "ca.cer"] {
            std::fs::copy(Certs::shared().path("ca.pem"), certs.join(name)).unwrap();
        }
        for name in ["old.pem", "old.key"] {
            std::fs::copy(Certs::shared().path(name), certs.join(name)).unwrap();
        }
    });
    let loaded = showing(folder.path(), "").unwrap();
    let files =
        tls(&loaded.config).identities.iter().map(|one| one.file.file_name().unwrap().to_str().unwrap());
    assert_eq!(files.collect::<Vec<_>>(), ["b.crt", "fullchain.pem"]);
    let told = loaded
        .warnings
        .iter()
        .any(|one| one.contains("old.pem`, which expired on 2002-02-03") && one.ends_with("it is left out"));
    assert!(told, "{:?}", loaded.warnings);
    for name in ["b.crt", "b.key", "fullchain.pem", "privkey.pem", "cert.pem"] {
        std::fs::remove_file(folder.path().join("certs").join(name)).unwrap();
    }
    let said = showing(folder.path(), "").unwrap_err().to_string();
    assert!(said.contains("which has no certificate in it that can be shown"), "{said}");
}

#[test]
fn a_config_from_afar_reads_nothing_out_of_a_folder_of_certificates() {
    let folder = folder(|path| {
        let (cert, key) = pair("a.example");
        write(&path.join("certs/a.pem"), &format!("{cert}{key}"));
        // Not one of those that were found.
        write(&path.join("certs/b.crt"), &cert);
        write(&path.join("plain.pem"), &format!("{cert}{key}"));
        write(&path.join("other/c.pem"), &format!("{cert}{key}"));
    });
    let text = |keys: &str| front(&format!("protocol: https, tls: {{{keys}}}"));
    let file = folder.path().join("t.yaml");
    std::fs::write(&file, text("certificates: [{dir: certs}]")).unwrap();
    let here = load(Some(&file), &Flags::default(), &env).unwrap();
    let fence = Fence::around(here.named, Some(&file));
    let afar = |keys: &str| load_fenced(&text(keys), "text", Some(&file), &Flags::default(), &fence);
    assert!(afar("certificates: [{dir: certs}]").is_ok());
    for keys in [
        "certificates: [{dir: other}]",
        "certificates: [{dir: certs}], client_ca: certs/b.crt",
        "certificates: [{dir: certs}], client_ca: certs/a.pem",
        "certificates: [{dir: certs}, {cert_file: plain.pem, cert_key: other/c.pem}]",
    ] {
        let told = afar(keys).unwrap_err().to_string();
        assert!(
            told.contains("this is a file that can't be used here") && !told.contains("PRIVATE"),
            "{keys}: {told}"
        );
    }
}

#[test]
fn kinds_of_keys_are_told_by_their_usual_names() {
    let kinds = [
        (&rcgen::PKCS_ECDSA_P256_SHA256, "ECDSA P-256"),
        (&rcgen::PKCS_ECDSA_P384_SHA384, "ECDSA P-384"),
        (&rcgen::PKCS_ECDSA_P521_SHA512, "ECDSA P-521"),
        (&rcgen::PKCS_ED25519, "Ed25519"),
    ];
    for (algorithm, wanted) in kinds {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate =
            CertificateParams::new(vec!["a.example".to_owned()]).unwrap().self_signed(&key).unwrap();
        let identity = identity_of(&certificate.pem(), &key.serialize_pem()).unwrap();
        assert_eq!(identity.facts.key, wanted);
    }
}
