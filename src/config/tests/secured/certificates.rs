//! TLS in a config file: every way in which it can be wrong has a message of its own, at the right place.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType, IsCa,
    KeyIdMethod, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize, SerialNumber,
};

use super::*;
use crate::config::certificate::staple::tests::response;

/// Certificates and keys in a folder of their own, and files that are something else.
pub(in crate::config::tests) struct Certs(tempfile::TempDir);

impl Certs {
    /// The one folder of this test binary.
    pub(in crate::config::tests) fn shared() -> &'static Certs {
        static SHARED: LazyLock<Certs> = LazyLock::new(Certs::new);
        &SHARED
    }

    /// The path of a file.
    pub(in crate::config::tests) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    fn new() -> Certs {
        let certs = Certs(tempfile::tempdir().unwrap());
        for (name, host) in [("a", "localhost"), ("b", "Shop.example")] {
            let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
            params.serial_number = Some(SerialNumber::from(if name == "a" { 7_u64 } else { 8 }));
            certs.issue(name, params);
        }
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        certs.issue("ca", authority);
        let mut old = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (old.not_before, old.not_after) =
            (rcgen::date_time_ymd(2001, 1, 1), rcgen::date_time_ymd(2002, 2, 3));
        certs.issue("old", old);
        let mut early = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (early.not_before, early.not_after) =
            (rcgen::date_time_ymd(3001, 1, 1), rcgen::date_time_ymd(3002, 2, 3));
        certs.issue("early", early);
        let read = |name: &str| std::fs::read_to_string(certs.path(name)).unwrap();
        certs.write("both.pem", &format!("{}{}", read("a.key"), read("a.pem")));
        certs.write("reversed.pem", &format!("{}{}", read("ca.pem"), read("a.pem")));
        certs.revoke();
        let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
        let certificate =
            CertificateParams::new(vec!["rsa.example".to_owned()]).unwrap().self_signed(&rsa).unwrap();
        certs.write("rsa.pem", &format!("{}{}", certificate.pem(), rsa.serialize_pem()));
        for (file, serial, says) in [("a.ocsp", 7, 0), ("b.ocsp", 8, 0), ("revoked.ocsp", 7, 1)] {
            let answer = response(0, serial, says, Some("30000101000000Z"));
            std::fs::write(certs.0.path().join(file), answer).unwrap();
        }
        std::fs::create_dir(certs.0.path().join("pairs")).unwrap();
        certs.write("pairs/both.pem", &format!("{}{}", read("a.key"), read("a.pem")));
        certs.write("eab.key", "c2VjcmV0LXNlY3JldC1zZWNyZXQ\n");
        for (name, mode) in [("hook", 0o755), ("open-hook", 0o777)] {
            certs.write(name, "#!/bin/sh\n");
            let rights = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(certs.path(name), rights).unwrap();
        }
        certs.write("tokens", "ci operate 0123456789abcdef\n");
        certs.write("otlp.headers", "Authorization: Bearer 0123456789abcdef\n");
        certs.write("empty.pem", "\n");
        certs.write("text.pem", "just some words\n");
        certs.write(
            "request.pem",
            "-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n",
        );
        certs.write("damaged.pem", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n");
        certs.write("broken.pem", "-----BEGIN CERTIFICATE-----\nM*A=\n-----END CERTIFICATE-----\n");
        certs.write(
            "locked.key",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n",
        );
        certs.write(
            "old-locked.key",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMAA=\n-----END RSA PRIVATE KEY-----\n",
        );
        certs.write("odd.key", "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n");
        std::fs::create_dir(certs.0.path().join("folder")).unwrap();
        let der = rustls::pki_types::CertificateDer::from(certs.der("a.pem"));
        std::fs::write(certs.0.path().join("a.der"), &der).unwrap();
        std::fs::write(certs.0.path().join("key.der"), certs.key_der("a.key")).unwrap();
        // The first bytes of what `openssl pkcs12 -export` makes.
        let bundle =
            b"\x30\x82\x04\x1a\x02\x01\x03\x30\x82\x03\xd0\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01\xa0";
        std::fs::write(certs.0.path().join("bundle.p12"), bundle).unwrap();
        certs.write("public.pem", "-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----\n");
        certs.write(
            "ssh.key",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nMAA=\n-----END OPENSSH PRIVATE KEY-----\n",
        );
        certs.write("cut.pem", &read("a.pem")[..200]);
        certs.write("marked.pem", &format!("\u{feff}{}", read("a.pem").replace('\n', "\r\n")));
        certs.write("marked.key", &format!("\u{feff}{}", read("a.key")));
        let mut soon = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        soon.not_after = (SystemTime::now() + Duration::from_secs(3 * 24 * 3600 + 3600)).into();
        certs.issue("soon", soon);
        certs
    }

    /// An authority, and lists of what it has revoked; one of them somebody else has signed in its name.
    fn revoke(&self) {
        let authority = || {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.distinguished_name.push(DnType::CommonName, "Clients");
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
        };
        let (issuer, namesake) = (authority(), authority());
        self.write("clients.pem", &issuer.pem());
        for (name, by, year) in
            [("crl", &issuer, 3000), ("old-crl", &issuer, 2002), ("forged-crl", &namesake, 3000)]
        {
            let list = CertificateRevocationListParams {
                this_update: rcgen::date_time_ymd(2001, 1, 1),
                next_update: rcgen::date_time_ymd(year, 1, 1),
                crl_number: SerialNumber::from(1),
                issuing_distribution_point: None,
                revoked_certs: Vec::new(),
                key_identifier_method: KeyIdMethod::Sha256,
            };
            let list = list.signed_by(by).unwrap();
            self.write(&format!("{name}.pem"), &list.pem().unwrap());
            std::fs::write(self.0.path().join(format!("{name}.der")), list.der()).unwrap();
        }
        self.write("bad-crl.pem", "-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n");
    }

    fn issue(&self, name: &str, params: CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    fn der(&self, name: &str) -> Vec<u8> {
        use rustls::pki_types::pem::PemObject as _;
        rustls::pki_types::CertificateDer::from_pem_file(self.0.path().join(name)).unwrap().to_vec()
    }

    fn key_der(&self, name: &str) -> Vec<u8> {
        use rustls::pki_types::pem::PemObject as _;
        let key = rustls::pki_types::PrivateKeyDer::from_pem_file(self.0.path().join(name)).unwrap();
        key.secret_der().to_vec()
    }
}

/// The problems of one target, whose keys stand in `$`-free flow style; files are named without their folder.
fn problems(target: &str) -> Vec<String> {
    let folder = Certs::shared().0.path();
    let text = format!("targets: {{web: {{listener: 8080, {target}}}}}\n");
    let folder_text = format!("{}/", folder.display());
    match load_text(&text, "t.yaml", folder, &Flags::default(), &env) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.list().iter().map(|one| one.message.replace(&folder_text, "")).collect(),
    }
}

const PLAIN: &str = "backends: [{host: a, port: 1}]";

#[test]
fn every_broken_set_up_has_a_message_of_its_own() {
    let cert = |cert: &str, key: &str| {
        format!("protocol: https, {PLAIN}, tls: {{cert_file: {cert}, cert_key: {key}}}")
    };
    let client = |added: &str| {
        format!("protocol: https, {PLAIN}, tls: {{cert_file: a.pem, cert_key: a.key, {added}}}")
    };
    let revoking = |file: &str| client(&format!("client_ca: clients.pem, client_crl: {file}"));
    let upstream = |added: &str| format!("protocol: http, {PLAIN}, upstream_tls: {{{added}}}");
    let table = [
        (cert("no.pem", "a.key"), "`cert_file` is `no.pem`, which does not exist"),
        (cert("empty.pem", "a.key"), "`cert_file` is `empty.pem`, which is empty"),
        (cert("folder", "a.key"), "`cert_file` is `folder`, which is a folder"),
        (cert("text.pem", "a.key"), "`cert_file` is `text.pem`, which has no certificate in it"),
        (cert("a.key", "a.key"), "`cert_file` is `a.key`, which has a private key and no certificate"),
        (cert("request.pem", "a.key"), "`cert_file` is `request.pem`, which is a certificate request"),
        (cert("a.der", "a.key"), "`cert_file` is `a.der`, which is a certificate in DER"),
        (
            cert("damaged.pem", "a.key"),
            "`cert_file` is `damaged.pem`, which has a certificate (number 1) that is damaged",
        ),
        (
            cert("reversed.pem", "a.key"),
            "`cert_file` is `reversed.pem`, which has the server's own certificate in place 2",
        ),
        (cert("old.pem", "old.key"), "`cert_file` is `old.pem`, which expired on 2002-02-03T00:00:00Z"),
        (
            cert("early.pem", "early.key"),
            "`cert_file` is `early.pem`, which is not in force before 3001-01-01T00:00:00Z",
        ),
        (cert("a.pem", "no.key"), "`cert_key` is `no.key`, which does not exist"),
        (cert("a.pem", "a.pem"), "`cert_key` is `a.pem`, which has a certificate and no private key"),
        (
            cert("a.pem", "locked.key"),
            "`cert_key` is `locked.key`, which is encrypted, and nobody could type the password at a restart",
        ),
        (
            cert("a.pem", "old-locked.key"),
            "`cert_key` is `old-locked.key`, which is encrypted, and nobody could type the password at a restart",
        ),
        (
            cert("a.pem", "odd.key"),
            "`cert_key` is `odd.key`, which has a private key that is damaged or of a kind that is not supported",
        ),
        (cert("a.pem", "text.pem"), "`cert_key` is `text.pem`, which has no private key in it"),
        (cert("a.pem", "key.der"), "`cert_key` is `key.der`, which is a private key in DER"),
        (
            cert("a.pem", "public.pem"),
            "`cert_key` is `public.pem`, which has a public key and no private key",
        ),
        (cert("a.pem", "ssh.key"), "`cert_key` is `ssh.key`, which has a private key in the form of OpenSSH"),
        (cert("a.pem", "bundle.p12"), "`cert_key` is `bundle.p12`, which is a PKCS #12 bundle"),
        (cert("bundle.p12", "a.key"), "`cert_file` is `bundle.p12`, which is a PKCS #12 bundle"),
        (
            cert("cut.pem", "a.key"),
            "`cert_file` is `cut.pem`, which has a damaged PEM section at certificate 1: its END line is missing, the file may be cut off",
        ),
        (cert("a.pem", "b.key"), "`cert_key` is `b.key`, which is not the key of the certificate in `a.pem`"),
        (client("client_ca: no.pem"), "`client_ca` is `no.pem`, which does not exist"),
        (client("client_ca: a.key"), "`client_ca` is `a.key`, which has a private key and no certificate"),
        (client("client_auth: required"), "`client_auth` has no effect without `client_ca`"),
        (client("client_crl: crl.pem"), "`client_crl` has no effect without `client_ca`"),
        (client("client_crl_expired: keep"), "`client_crl_expired` has no effect without `client_ca`"),
        (
            client("client_ca: clients.pem, client_crl_expired: keep"),
            "`client_crl_expired` has no effect without `client_crl`",
        ),
        (revoking("no.pem"), "`client_crl` is `no.pem`, which does not exist"),
        (revoking("text.pem"), "`client_crl` is `text.pem`, which has no list of revoked certificates in it"),
        (
            revoking("clients.pem"),
            "`client_crl` is `clients.pem`, which has certificates and no list of revoked ones",
        ),
        (
            revoking("bad-crl.pem"),
            "`client_crl` is `bad-crl.pem`, which has a list (number 1) that is damaged",
        ),
        (
            revoking("forged-crl.pem"),
            "`client_crl` is `forged-crl.pem`, which does not bear the signature of `Clients`",
        ),
        (revoking("[crl.pem, crl.pem]"), "`client_crl` is `crl.pem`, which is there already"),
        (revoking("{a: b}"), "`client_crl` is a mapping (`key: value`)"),
        (revoking("[]"), "`client_crl` is an empty list"),
        (
            revoking("crl.pem, client_crl_expired: drop"),
            "`client_crl_expired` is `drop`, which does not exist",
        ),
        (client("ocsp_file: no.ocsp"), "`ocsp_file` is `no.ocsp`, which does not exist"),
        (client("ocsp_file: text.pem"), "`ocsp_file` is `text.pem`, which is no OCSP response"),
        (
            client("ocsp_file: b.ocsp"),
            "`ocsp_file` is `b.ocsp`, which is an answer about another certificate",
        ),
        (
            client("ocsp_file: revoked.ocsp"),
            "`ocsp_file` is `revoked.ocsp`, which says that the certificate is revoked",
        ),
        (
            client("certificates: [{cert_file: b.pem, cert_key: b.key, ocsp_file: a.ocsp}]"),
            "`ocsp_file` is `a.ocsp`, which is an answer about another certificate",
        ),
        (client("min_version: 1.1"), "`min_version` is `1.1`, which is not supported"),
        (client("certificates: []"), "`certificates` is empty"),
        (client("certificates: [{cert_key: b.key}]"), "this certificate has no `cert_file`"),
        (format!("protocol: https, {PLAIN}"), "the target `web` speaks https and has no `tls`"),
        (
            format!("protocol: https, {PLAIN}, tls: {{}}"),
            "the `tls` of the target `web` names no certificate",
        ),
        (
            format!("protocol: https, {PLAIN}, tls: {{cert_key: a.key}}"),
            "there is a `cert_key` and no `cert_file`",
        ),
        (
            format!("protocol: http, {PLAIN}, tls: {{cert_file: a.pem, cert_key: a.key}}"),
            "`tls` belongs to https, but the target `web` speaks http",
        ),
        (upstream("ca_file: empty.pem"), "`ca_file` is `empty.pem`, which is empty"),
        (
            upstream("client_cert: a.pem, client_key: b.key"),
            "`client_key` is `b.key`, which is not the key of the certificate in `a.pem`",
        ),
        (upstream("client_key: a.key"), "there is a `client_key` and no `client_cert`"),
        (
            upstream("server_name: 'a b'"),
            "`server_name` is `a b`, which is neither an IP address nor a host name",
        ),
        (
            upstream("ca_file: ca.pem, insecure: true"),
            "`ca_file` has no effect, because `insecure: true` takes any certificate",
        ),
        (
            "protocol: http, upstream_tls: {}, backends: [{url: 'http://a:1'}]".into(),
            "this backend is written without TLS, but the target `web` has `upstream_tls`",
        ),
        (
            "protocol: http, upstream_tls: {}, backends: [{url: 'unix:/a.sock'}]".into(),
            "a backend on a unix socket has no name that a certificate could be for",
        ),
        (
            format!("protocol: http, {PLAIN}, timeouts: {{tls: 1s}}"),
            "`tls` in `timeouts` has no effect: the target `web` uses no TLS",
        ),
    ];
    let mut seen = BTreeSet::new();
    for (target, message) in &table {
        assert_eq!(problems(target), [*message], "{target}");
        seen.insert(message);
    }
    assert_eq!(seen.len(), table.len(), "no two are alike");
}

#[test]
fn a_damaged_pem_section_is_named_by_its_number() {
    let found =
        problems(&format!("protocol: https, {PLAIN}, tls: {{cert_file: broken.pem, cert_key: a.key}}"));
    assert!(found[0].contains("has a damaged PEM section at certificate 1"), "{found:?}");
}

#[test]
fn a_byte_order_mark_does_not_hide_the_first_section() {
    let found =
        problems(&format!("protocol: https, {PLAIN}, tls: {{cert_file: marked.pem, cert_key: marked.key}}"));
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_path_that_can_not_be_meant_so_says_what_is_wanted() {
    let hint = |file: &str| {
        let text = format!(
            "targets: {{web: {{protocol: https, listener: 1, {PLAIN}, tls: {{cert_file: {file}, cert_key: a.key}}}}}}"
        );
        let folder = Certs::shared().0.path();
        load_text(&text, "t.yaml", folder, &Flags::default(), &env).unwrap_err().to_string()
    };
    assert!(hint("'-----BEGIN CERTIFICATE-----'").contains("not what is in it"));
    assert!(hint("~/a.pem").contains("`~` has no meaning here; write `${HOME}`"));
}

#[test]
fn advice_about_schemes_keeps_tls() {
    let shown = |target: &str| {
        let text = format!("targets: {{web: {{listener: 1, {target}}}}}");
        load_text(&text, "t.yaml", "".as_ref(), &Flags::default(), &env).unwrap_err().to_string()
    };
    assert!(shown("backends: [{url: 'https://a:1'}]").contains("or write `tls://…`"));
    assert!(shown("protocol: http, backends: [{url: 'tls://a:1'}]").contains("or write `https://…`"));
}

#[test]
fn check_says_which_backends_are_spoken_to_over_tls() {
    let text =
        "targets: {web: {protocol: http, listener: 1, backends: [{url: 'https://a'}, {url: 'http://b'}]}}";
    let loaded = load_text(text, "t.yaml", "".as_ref(), &Flags::default(), &env).unwrap();
    let value = |key: &str| {
        let path = format!("targets.web.backends{key}");
        loaded.effective.iter().find(|row| row.path == path).map(|row| row.value.clone()).unwrap()
    };
    assert_eq!((value("[0].address"), value("[1].address")), ("a:443, over TLS".into(), "b:80".into()));
    assert_eq!(value("[0].health_path"), "none, a TLS handshake is the check");
    assert_eq!(value("[1].health_path"), "none, a TCP connect is the check");
}

#[test]
fn certificates_in_the_last_fifth_of_their_life_are_named_with_who_shows_them() {
    let folder = Certs::shared().0.path();
    let text = "admin: {listener: 9900, tls: {cert_file: soon.pem, cert_key: soon.key}}
targets:
  web: {protocol: https, listener: 1, backends: [{host: a, port: 1}],
    tls: {cert_file: soon.pem, cert_key: soon.key}}
  api: {protocol: http, listener: 2, backends: [{host: a, port: 1}, {host: b, port: 1}],
    upstream_tls: {client_cert: soon.pem, client_key: soon.key}}
  fresh: {protocol: https, listener: 3, backends: [{host: a, port: 1}], tls: {cert_file: a.pem, cert_key: a.key}}
";
    let config = load_text(text, "t.yaml", folder, &Flags::default(), &env).unwrap().config;
    let now = SystemTime::now();
    let found: Vec<_> = config.expiring(now).iter().map(|(who, one, _)| (*who, one.days_left(now))).collect();
    assert_eq!(found, [("web", 3), ("api", 3), ("admin", 3)]);
}

#[test]
fn check_shows_everything_that_decides_about_tls() {
    let folder = Certs::shared().0.path();
    let rows = |target: &str| -> Vec<String> {
        let text = format!("targets: {{web: {{{target}}}}}");
        let loaded = load_text(&text, "t.yaml", folder, &Flags::default(), &env).unwrap();
        let all =
            loaded.effective.iter().filter(|row| row.path.contains("tls.") && !row.path.contains("timeouts"));
        let place = format!("{}/", folder.display());
        all.map(|row| format!("{} {} {}", row.path, row.value.replace(&place, ""), row.origin)).collect()
    };
    let listener = rows(
        "protocol: https, listener: 1, backends: [{host: a, port: 1}], tls: {cert_file: a.pem, cert_key: a.key, certificates: [{cert_file: both.pem}]}",
    );
    assert_eq!(
        listener,
        [
            "targets.web.tls.cert_file a.pem t.yaml:1",
            "targets.web.tls.cert_key a.key t.yaml:1",
            "targets.web.tls.certificates[0].cert_file both.pem t.yaml:1",
            "targets.web.tls.certificates[0].cert_key both.pem default",
            "targets.web.tls.min_version 1.2 default",
            "targets.web.tls.unknown_sni default default",
            "targets.web.tls.cipher_suites all default",
            "targets.web.tls.groups [X25519MLKEM768, x25519, secp256r1, secp384r1] default",
            "targets.web.tls.alpn [h2, http/1.1] default",
        ]
    );
    let upstream = [
        "targets.web.upstream_tls.ca_file the system's default",
        "targets.web.upstream_tls.server_name the backend's host default",
        "targets.web.upstream_tls.insecure false default",
    ];
    assert_eq!(rows("protocol: http, listener: 1, backends: [{url: 'https://a'}]"), upstream, "by URL alone");
    assert_eq!(
        rows("protocol: http, listener: 1, backends: [{host: a, port: 1}], upstream_tls: {}"),
        upstream
    );
    let named = rows(
        "protocol: http, listener: 1, backends: [{host: a, port: 1}, {host: b, port: 1}], upstream_tls: {server_name: c}",
    );
    assert_eq!(named[1], "targets.web.upstream_tls.server_name c t.yaml:1");
    assert_eq!(named.len(), 3, "once, however many backends there are: {named:?}");
}

#[test]
fn both_files_of_a_pair_are_judged_in_one_run() {
    let found =
        problems(&format!("protocol: https, {PLAIN}, tls: {{cert_file: no.pem, cert_key: locked.key}}"));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn one_file_may_hold_both_and_names_are_lower_case() {
    let folder = Certs::shared().0.path();
    let text = "targets: {web: {listener: 1, backends: [{host: a, port: 1}], tls: {cert_file: both.pem,
        certificates: [{cert_file: b.pem, cert_key: b.key}]}}}";
    let loaded = load_text(text, "t.yaml", folder, &Flags::default(), &env).unwrap();
    let tls = loaded.config.listeners[0].tls.clone().unwrap();
    assert_eq!(tls.identities[0].names, ["localhost"]);
    assert_eq!(tls.identities[1].names, ["shop.example"]);
}

#[test]
fn an_https_url_alone_is_tls_and_others_stay_plain() {
    let text = "targets: {web: {protocol: http, listener: 1, backends: [{url: 'https://A.example.'}, {host: b, port: 1}]}}";
    let backends = config(text).targets[0].backends.clone();
    let tls = backends[0].tls.clone().unwrap();
    assert_eq!((tls.name.to_str().into_owned(), tls.insecure), ("A.example".to_owned(), false));
    assert_eq!(backends[1].tls, None);
}
