//! Certificates of clients that their issuer has revoked.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use evenkeel::config::model::Protocol;
use evenkeel::message::Cause;
use fake_backend::{Authority, Issued};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    CrlDistributionPoint, CrlIssuingDistributionPoint, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SerialNumber,
};
use rustls::{AlertDescription, ClientConfig};

use super::life_lab::until_ended;
use super::support::process::Process;
use super::support::tls::{TLS12, TLS13, TlsSocket, alert, client_config, listener_tls};
use super::support::{Keel, config, eventually, fakes};

/// Who issues certificates to clients, and revokes them.
struct Issuing(CertifiedIssuer<'static, KeyPair>);

impl Issuing {
    fn new(name: &str) -> Issuing {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Issuing(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn issue(&self, serial: u64) -> Issued {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued { cert_pem: certificate.pem(), key_pem: key.serialize_pem() }
    }

    /// A list of these, to be renewed so many seconds from now on.
    fn list(&self, revoked: &[u64], seconds: i64) -> String {
        self.list_of(revoked, seconds, None)
    }

    /// The same of a part of its certificates: those that say that their list is at this place.
    fn list_of(&self, revoked: &[u64], seconds: i64, part: Option<&str>) -> String {
        let revoked = revoked.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: rcgen::date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let age = Duration::from_secs(seconds.unsigned_abs());
        let next = if seconds < 0 { SystemTime::now() - age } else { SystemTime::now() + age };
        let params = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2020, 1, 1),
            next_update: next.into(),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: part.map(|uri| CrlIssuingDistributionPoint {
                distribution_point: CrlDistributionPoint { uris: vec![uri.to_owned()] },
                scope: None,
            }),
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0).unwrap().pem().unwrap()
    }
}

/// A client with this certificate, which remembers its sessions.
fn client(authority: &Authority, issued: &Issued, is_new: bool) -> Arc<ClientConfig> {
    let versions = if is_new { TLS13 } else { TLS12 };
    Arc::new(client_config(&[authority.ca_pem()], versions, Some(issued)))
}

/// Asks for something, since with TLS 1.3 a server says afterwards what it thinks of a certificate.
fn ask(address: std::net::SocketAddr, client: &Arc<ClientConfig>) -> Result<bool, Option<AlertDescription>> {
    use std::io::{Read, Write};
    let told = |error: std::io::Error| alert(&error);
    let mut socket = TlsSocket::open(address, client, "localhost").map_err(told)?;
    socket.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").map_err(told)?;
    let mut text = String::new();
    socket.read_to_string(&mut text).map_err(told)?;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    Ok(socket.is_resumed())
}

#[test]
fn a_list_that_changes_ends_what_was_let_in_also_where_it_resumes() {
    let (authority, issuing) = (Authority::new("test authority"), Issuing::new("Clients"));
    let backend = &fakes(1)[0];
    let folder = tempfile::tempdir().unwrap();
    let put = |folder: &Path, name: &str, text: &str| {
        fs::write(folder.join(".new"), text).unwrap();
        fs::rename(folder.join(".new"), folder.join(name)).unwrap();
    };
    let own = authority.issue(["localhost"]);
    for (name, text) in [
        ("own.pem", format!("{}{}", own.cert_pem, own.key_pem)),
        ("ca.pem", issuing.0.pem()),
        ("crl.pem", issuing.list(&[99], 3600)),
        (
            "evenkeel.yaml",
            format!(
                "workers: 1\ntargets:\n  web:\n    protocol: https\n    listener: 127.0.0.1:0\n    health_check: off\n    \
                 tls: {{cert_file: own.pem, client_ca: ca.pem, client_crl: crl.pem}}\n    \
                 backends: [{{host: 127.0.0.1, port: {}}}]\n",
                backend.port()
            ),
        ),
    ] {
        put(folder.path(), name, &text);
    }
    // Of several workers one may have the new list a moment before another.
    let process = Process::start_in(folder, 1);
    let address = process.address("web");
    let (one, other, revoked) = (issuing.issue(7), issuing.issue(8), issuing.issue(99));
    let clients: Vec<_> = [true, false]
        .into_iter()
        .flat_map(|is_new| [client(&authority, &one, is_new), client(&authority, &other, is_new)])
        .collect();
    for client in &clients {
        assert_eq!(ask(address, client), Ok(false));
        assert_eq!(ask(address, client), Ok(true), "it is resumed");
    }
    for is_new in [true, false] {
        let refused = ask(address, &client(&authority, &revoked, is_new));
        assert_eq!(refused, Err(Some(AlertDescription::CertificateRevoked)));
    }
    put(process.folder(), "crl.pem", &issuing.list(&[99, 7], 3600));
    eventually("the list is in force", || ask(address, &clients[0]).is_err());
    for (place, client) in clients.iter().enumerate() {
        // Whoever is not in it shows its certificate once more.
        let wanted = if place % 2 == 0 { Err(Some(AlertDescription::CertificateRevoked)) } else { Ok(false) };
        assert_eq!(ask(address, client), wanted, "{place}");
    }
}

#[test]
fn a_list_that_should_have_been_renewed_is_kept_or_refuses() {
    let (authority, issuing, other) =
        (Authority::new("test authority"), Issuing::new("Clients"), Issuing::new("Others"));
    let backends = fakes(1);
    let own = authority.issue(["localhost"]);
    let (good, revoked) = (issuing.issue(7), issuing.issue(99));
    let listless = other.issue(99);
    let authorities = format!("{}{}", issuing.0.pem(), other.0.pem());
    let list = issuing.list(&[99], -3600);
    let files = [
        ("own.pem", &*own.cert_pem),
        ("own.key", &own.key_pem),
        ("ca.pem", &authorities),
        ("crl.pem", &list),
    ];
    let revoked_alert = Err(Some(AlertDescription::CertificateRevoked));
    for (more, wanted, ends) in [
        ("", Ok(false), 2),
        (", client_crl_expired: keep", Ok(false), 2),
        (", client_crl_expired: refuse", Err(Some(AlertDescription::CertificateExpired)), 4),
    ] {
        let mut config = config(Protocol::Http, &[backends[0].addr()]);
        let keys =
            format!("cert_file: own.pem, cert_key: own.key, client_ca: ca.pem, client_crl: crl.pem{more}");
        config.listeners[0].tls = Some(listener_tls(&keys, &files));
        let overdue = config.overdue_lists(SystemTime::now());
        assert_eq!(overdue.len(), 1);
        assert_eq!((overdue[0].0, &*overdue[0].1.issuer), ("web", "Clients"));
        let keel = Keel::start(&config);
        for is_new in [true, false] {
            let of = |issued: &Issued| ask(keel.address(), &client(&authority, issued, is_new));
            let got = of(&good);
            assert!(got == wanted || wanted.is_err() && got.is_err(), "{more}: {got:?}");
            let got = of(&revoked);
            assert!(got == revoked_alert || wanted.is_err() && got.is_err(), "{more}: {got:?}");
            assert_eq!(of(&listless), Ok(false), "its issuer has no list");
        }
        until_ended(&keel, Cause::ClientCertificate, ends);
        drop(keel);
    }
}

#[test]
fn whoever_is_in_any_list_of_his_issuer_is_out() {
    let (authority, issuing) = (Authority::new("test authority"), Issuing::new("Clients"));
    let backends = fakes(1);
    let own = authority.issue(["localhost"]);
    let ca = issuing.0.pem();
    // The older one, the newer one, and one of a part of which no certificate says to be.
    let lists = [
        issuing.list(&[7], -3600),
        issuing.list(&[8], 3600),
        issuing.list_of(&[9], 3600, Some("http://ca.example/9.crl")),
    ];
    let files = [
        ("own.pem", &*own.cert_pem),
        ("own.key", &own.key_pem),
        ("ca.pem", &ca),
        ("a.crl", &lists[0]),
        ("b.crl", &lists[1]),
        ("c.crl", &lists[2]),
    ];
    let mut config = config(Protocol::Http, &[backends[0].addr()]);
    let keys = "cert_file: own.pem, cert_key: own.key, client_ca: ca.pem, client_crl: [a.crl, b.crl, c.crl], client_crl_expired: refuse";
    config.listeners[0].tls = Some(listener_tls(keys, &files));
    assert_eq!(config.overdue_lists(SystemTime::now()).len(), 0, "there is a newer one of that issuer");
    let keel = Keel::start(&config);
    for (serial, wanted) in [(7, false), (8, false), (9, false), (10, true)] {
        let client = client(&authority, &issuing.issue(serial), true);
        assert_eq!(ask(keel.address(), &client).is_ok(), wanted, "{serial}");
    }
    until_ended(&keel, Cause::ClientCertificate, 3);
}
