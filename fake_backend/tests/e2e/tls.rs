//! Fakes that speak TLS, seen by a client of rustls: certificates, resumption, client certificates, and what
//! is recorded of it all.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use fake_backend::{
    Authority, Behaviour, Fake, Issued, Running, TcpMode, TlsFacts, TlsOptions, TlsVersion, pattern,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::{Client, SOON, text};

pub(crate) type TlsClient = Client<TlsStream<TcpStream>>;

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
}

/// A client that trusts this CA.
pub(crate) struct Config {
    ca_pem: String,
    name: &'static str,
    versions: Vec<&'static SupportedProtocolVersion>,
    own: Option<Issued>,
}

impl Config {
    pub(crate) fn of(ca_pem: &str) -> Self {
        let versions = vec![&version::TLS13, &version::TLS12];
        Self { ca_pem: ca_pem.to_owned(), name: "localhost", versions, own: None }
    }

    /// A connector; what it learns about sessions stays with it.
    fn build(&self) -> Connector {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(&self.ca_pem));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match &self.own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let key = PrivateKeyDer::from_pem_slice(own.key_pem.as_bytes()).unwrap();
                builder.with_client_auth_cert(certificates(&own.cert_pem), key).unwrap()
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Connector { connector: TlsConnector::from(Arc::new(config)), name: self.name }
    }
}

pub(crate) struct Connector {
    connector: TlsConnector,
    name: &'static str,
}

impl Connector {
    pub(crate) async fn try_connect(&self, fake: &Running) -> io::Result<TlsClient> {
        self.try_address(fake.addr()).await
    }

    async fn try_address(&self, address: SocketAddr) -> io::Result<TlsClient> {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from(self.name).unwrap();
        timeout(SOON, self.connector.connect(name, stream)).await.expect("it ends soon").map(Client::over)
    }

    pub(crate) async fn connect(&self, fake: &Running) -> TlsClient {
        self.try_connect(fake).await.unwrap()
    }

    /// One request on a connection of its own, and what its handshake came to.
    async fn get(&self, fake: &Running) -> TlsFacts {
        let mut client = self.connect(fake).await;
        assert_eq!(client.get("/").await.text(), format!("Hello from {}", fake.id()));
        fake.take_requests().pop().unwrap().tls.unwrap().as_ref().clone()
    }
}

async fn http(options: TlsOptions) -> Running {
    Fake::http("a").tls(options).record().start().await.unwrap()
}

/// A client with the defaults, which trusts this fake.
pub(crate) fn friend(fake: &Running) -> Connector {
    Config::of(fake.ca_pem().unwrap()).build()
}

/// A connection from a client that trusts this CA.
pub(crate) async fn trusting(ca_pem: &str, address: SocketAddr) -> io::Result<TlsClient> {
    Config::of(ca_pem).build().try_address(address).await
}

#[tokio::test]
async fn a_request_tells_what_the_handshake_agreed_upon_and_sessions_are_resumed() {
    let fake = http(TlsOptions::new()).await;
    assert_eq!(fake.url(), format!("https://{}", fake.addr()));
    let connector = friend(&fake);
    let first = connector.get(&fake).await;
    let expected = TlsFacts {
        version: "TLSv1.3".into(),
        resumed: false,
        server_name: Some("localhost".into()),
        alpn: Some("http/1.1".into()),
        group: Some("X25519MLKEM768".into()),
        client_subject: None,
    };
    assert_eq!(first, expected);
    assert!(connector.get(&fake).await.resumed);
    // Tickets stay good when the fake comes back.
    fake.stop();
    fake.restart().unwrap();
    assert!(connector.get(&fake).await.resumed);
    let stats = fake.stats();
    assert_eq!((stats.handshakes, stats.resumed, stats.failed_handshakes), (3, 2, 0));
    assert_eq!(fake.last_handshakes()[0].outcome, Ok(expected));
}

#[tokio::test]
async fn both_versions_resume_and_one_may_be_alone() {
    for (version, name) in [(&version::TLS12, "TLSv1.2"), (&version::TLS13, "TLSv1.3")] {
        let fake = http(TlsOptions::new()).await;
        let connector = Config { versions: vec![version], ..Config::of(fake.ca_pem().unwrap()) }.build();
        let [first, second] = [connector.get(&fake).await, connector.get(&fake).await];
        assert_eq!([&first.version[..], &second.version], [name; 2]);
        assert_eq!([first.resumed, second.resumed], [false, true], "{name}");
    }
    let fake = http(TlsOptions::new().versions(TlsVersion::Tls12, TlsVersion::Tls12)).await;
    assert_eq!(friend(&fake).get(&fake).await.version, "TLSv1.2");
    let modern = Config { versions: vec![&version::TLS13], ..Config::of(fake.ca_pem().unwrap()) };
    assert!(modern.build().try_connect(&fake).await.is_err());
    fake.wait_for(|stats| stats.failed_handshakes == 1, SOON).await.unwrap();
}

#[tokio::test]
async fn resumption_can_be_off() {
    for version in [&version::TLS12, &version::TLS13] {
        let fake = http(TlsOptions::new().without_resumption()).await;
        let connector = Config { versions: vec![version], ..Config::of(fake.ca_pem().unwrap()) }.build();
        for _ in 0..2 {
            assert!(!connector.get(&fake).await.resumed);
        }
    }
}

#[tokio::test]
async fn an_address_will_do_for_a_name_and_alpn_may_be_none() {
    let fake = Fake::http("a").tls(TlsOptions::new().alpn([""; 0])).record();
    let fake = fake.bind("127.0.0.5:0").start().await.unwrap();
    let connector = Config { name: "127.0.0.5", ..Config::of(fake.ca_pem().unwrap()) }.build();
    let facts = connector.get(&fake).await;
    assert_eq!((facts.server_name, facts.alpn), (None, None));
}

#[tokio::test]
async fn requests_in_one_record_are_all_seen() {
    let fake = http(TlsOptions::new()).await;
    let mut client = friend(&fake).connect(&fake).await;
    let start = "GET / HTTP/1.1\r\nHost: a\r\nX-Pad: ";
    let request = format!("{start}{:x<1$}\r\n\r\n", "", 1024 - start.len() - 4);
    client.send(request.repeat(12)).await;
    for _ in 0..12 {
        assert_eq!(client.answer().await.status(), 200);
    }
}

#[tokio::test]
async fn large_bodies_go_both_ways() {
    let fake = http(TlsOptions::new()).await;
    let mut client = friend(&fake).connect(&fake).await;
    let body = pattern(3_000_000);
    client.send(format!("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len())).await;
    client.send(&body).await;
    assert_eq!(client.answer().await.text(), "3000000");
    assert!(client.get("/bytes/3000000").await.body == body);
}

#[tokio::test]
async fn tcp_fakes_speak_it_too() {
    let fake = Fake::tcp("t").tls(TlsOptions::new()).behave(Behaviour::tcp(TcpMode::Echo)).record();
    let fake = fake.start().await.unwrap();
    assert_eq!(fake.url(), format!("tls://{}", fake.addr()));
    let mut client = friend(&fake).connect(&fake).await;
    client.send("one").await;
    assert_eq!(text(&client.take(3).await), "one");
    client.send("last").await;
    client.finish().await;
    assert_eq!(client.rest().await.unwrap(), b"last");
    let handshakes = fake.last_handshakes();
    assert_eq!((handshakes.len(), handshakes[0].connection), (1, 1));
    assert_eq!(handshakes[0].outcome.as_ref().unwrap().alpn, None);
}

#[tokio::test]
async fn clients_show_their_certificates() {
    let (good, bad) = (Authority::new("good"), Authority::new("bad"));
    let fake = http(TlsOptions::new().require_client(good.ca_pem())).await;
    let with = |own: Option<Issued>| Config { own, ..Config::of(fake.ca_pem().unwrap()) }.build();
    let facts = with(Some(good.issue_client("alice"))).get(&fake).await;
    assert_eq!(facts.client_subject.as_deref(), Some("CN=alice"));
    for own in
        [None, Some(bad.issue_client("mallory")), Some(good.leaf(["a"]).for_client().expired().issue())]
    {
        // Under TLS 1.3 the client is done before it is refused: the first read tells.
        if let Ok(mut client) = with(own).try_connect(&fake).await {
            assert!(client.rest().await.is_err());
        }
    }
    let stats = fake.wait_for(|stats| stats.failed_handshakes == 3, SOON).await.unwrap();
    assert_eq!(stats.handshakes, 1);

    let fake = http(TlsOptions::new().ask_client(good.ca_pem())).await;
    assert_eq!(friend(&fake).get(&fake).await.client_subject, None);
}

#[tokio::test]
async fn clients_refuse_what_is_wrong_with_a_certificate() {
    let (authority, other) = (Authority::new("known"), Authority::new("unknown"));
    let below = authority.intermediate("below");
    for (issued, refusal) in [
        (authority.issue(["localhost"]), None),
        (below.issue(["localhost"]), None),
        (authority.issue(["elsewhere"]), Some("BadCertificate")),
        (authority.leaf(["localhost"]).expired().issue(), Some("CertificateExpired")),
        (authority.leaf(["localhost"]).not_yet_valid().issue(), Some("CertificateExpired")),
        (authority.leaf(["localhost"]).for_client().issue(), Some("UnsupportedCertificate")),
        (other.issue(["localhost"]), Some("UnknownCA")),
    ] {
        let fake = http(TlsOptions::new().certificate(issued)).await;
        assert_eq!(fake.ca_pem(), None);
        let connected = Config::of(authority.ca_pem()).build().try_connect(&fake).await;
        assert_eq!(connected.is_err(), refusal.is_some(), "{refusal:?}");
        fake.wait_for(|stats| stats.handshakes + stats.failed_handshakes == 1, SOON).await.unwrap();
        let outcome = fake.last_handshakes().pop().unwrap().outcome;
        match refusal {
            None => assert!(outcome.is_ok(), "{outcome:?}"),
            Some(alert) => assert_eq!(outcome, Err(format!("received fatal alert: {alert}"))),
        }
    }
}

#[tokio::test]
async fn fakes_may_share_an_authority() {
    let authority = Authority::new("shared");
    let connector = Config { name: "one.test", ..Config::of(authority.ca_pem()) }.build();
    for _ in 0..2 {
        let fake = http(TlsOptions::new().authority(&authority).names(["one.test"])).await;
        assert_eq!(fake.ca_pem(), Some(authority.ca_pem()));
        assert!(!connector.get(&fake).await.resumed, "no ticket of another fake is good");
    }
}

#[tokio::test]
async fn what_is_given_is_checked_at_the_start() {
    let authority = Authority::new("a");
    let (one, two) = (authority.issue(["localhost"]), authority.issue(["localhost"]));
    let cases = [
        (TlsOptions::new().pem("nothing", &one.key_pem), "the certificate: there is no CERTIFICATE in it"),
        (TlsOptions::new().pem(&one.cert_pem, "nothing"), "the private key: "),
        (TlsOptions::new().pem(&one.cert_pem, &two.key_pem), "the certificate and its key: "),
        (TlsOptions::new().require_client("x"), "the clients' CA: there is no CERTIFICATE in it"),
    ];
    for (options, expected) in cases {
        let error = Fake::http("a").tls(options).start().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
