//! The PROXY protocol towards backends: each is told whose connection it gets, and no connection serves another client.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use evenkeel::config::model::{Config, Http2, Protocol, ProxySenders, SendProxy, UpstreamProtocol};
use evenkeel::message::proxy_header::{ProxyHeader, ProxyRead, read};

use super::support::h2::H2Client;
use super::support::tls::{BOTH, Secure, client_config};
use super::support::{Client, Keel, config, eventually, quick_health, recording};

/// A backend that wants to know whose connection it gets, and answers with that.
struct Curious {
    address: SocketAddr,
    /// What each of its connections began with.
    told: Arc<Mutex<Vec<ProxyHeader>>>,
}

impl Curious {
    fn start() -> Curious {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, told) = (listener.local_addr().unwrap(), Arc::default());
        let all = Arc::clone(&told);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let all = Arc::clone(&all);
                thread::spawn(move || Curious::serve(stream, &all));
            }
        });
        Curious { address, told }
    }

    fn serve(mut stream: TcpStream, told: &Mutex<Vec<ProxyHeader>>) {
        stream.set_nodelay(true).unwrap();
        let (mut held, mut space) = (Vec::new(), [0; 4096]);
        let mut header: Option<ProxyHeader> = None;
        loop {
            match stream.read(&mut space) {
                Ok(count @ 1..) => held.extend_from_slice(&space[..count]),
                Ok(0) | Err(_) => return,
            }
            if header.is_none() {
                match read(&held) {
                    ProxyRead::Header(this, length) => {
                        held.drain(..length);
                        told.lock().unwrap().push((*this).clone());
                        header = Some(*this);
                    }
                    ProxyRead::More => continue,
                    // It is closed: whoever asked is told of a backend that failed.
                    ProxyRead::None | ProxyRead::Fault(_) => return,
                }
            }
            while let Some(end) = held.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                held.drain(..end + 4);
                let of = header.as_ref().and_then(|header| header.addresses);
                let source = of.map_or("nobody".to_owned(), |(source, _)| source.to_string());
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{source}", source.len());
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        }
    }

    fn told(&self) -> Vec<ProxyHeader> {
        self.told.lock().unwrap().clone()
    }
}

/// In front of these, on one worker.
fn keel(backends: &[SocketAddr], version: SendProxy, change: impl FnOnce(&mut Config)) -> Keel {
    Keel::start(&told_config(backends, version, change))
}

fn told_config(backends: &[SocketAddr], version: SendProxy, change: impl FnOnce(&mut Config)) -> Config {
    let mut config = config(Protocol::Http, backends);
    config.targets[0].send_proxy = Some(version);
    change(&mut config);
    config
}

/// Hears whose connections it gets.
fn heard(config: &mut Config) {
    let from = vec!["127.0.0.1/32".parse().unwrap()];
    config.listeners[0].proxy_protocol =
        Some(Arc::new(ProxySenders { from, from_unix: false, required: true }));
}

fn own_address(client: &Client) -> String {
    client.socket.local_addr().unwrap().to_string()
}

#[test]
fn of_many_clients_whose_requests_take_turns_each_is_told_right_and_connections_are_used_again() {
    let backends = [Curious::start(), Curious::start()];
    let addresses: Vec<_> = backends.iter().map(|backend| backend.address).collect();
    for version in [SendProxy::V1, SendProxy::V2] {
        backends.iter().for_each(|backend| backend.told.lock().unwrap().clear());
        let keel = keel(&addresses, version, |_| ());
        let froms = (1..=5).map(|last| Ipv4Addr::new(127, 0, 0, last));
        let mut clients: Vec<Client> = froms.map(|from| Client::connect_from(from, keel.address())).collect();
        let own: Vec<String> = clients.iter().map(own_address).collect();
        let mut right = 0;
        for turn in 0..5_000 {
            let place = turn * 7 % clients.len();
            right += usize::from(clients[place].get("/").text() == own[place]);
        }
        assert_eq!(right, 5_000, "{version:?}");
        let told: Vec<ProxyHeader> = backends.iter().flat_map(Curious::told).collect();
        assert_eq!(told.len(), 2 * clients.len(), "{version:?}: one connection for each client and backend");
        let here = keel.address();
        assert!(told.iter().all(|header| header.addresses.is_some_and(|(_, to)| to == here)), "{told:?}");
        let ids: std::collections::HashSet<_> =
            told.iter().map(|header| header.told.unique_id().map(<[u8]>::to_vec)).collect();
        assert_eq!(ids.len(), if version == SendProxy::V1 { 1 } else { clients.len() });
        drop(clients);
        let closed = || keel.server.readings().pool.closed_idle;
        eventually("they end with their clients", || closed() == told.len() as u64);
    }
}

#[test]
fn what_a_connection_of_another_client_left_is_never_used_and_what_cannot_be_repeated_goes_out() {
    let backend = Curious::start();
    let keel = keel(&[backend.address], SendProxy::V1, |_| ());
    for _ in 0..20 {
        let mut client = keel.client();
        let own = own_address(&client);
        assert_eq!(client.get("/").text(), own);
        assert_eq!(client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").text(), own);
    }
    assert_eq!(backend.told().len(), 20);
}

#[test]
fn streams_of_one_client_share_what_was_told_of_it() {
    let backend = Curious::start();
    let keel = keel(&[backend.address], SendProxy::V2, |config| {
        config.listeners[0].http2 = Some(Http2::default());
    });
    let (one, other) = (H2Client::connect(keel.address()), H2Client::connect(keel.address()));
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        for client in [&one, &other] {
            seen.insert(client.get("/").text());
        }
    }
    assert_eq!((seen.len(), backend.told().len()), (2, 2), "{seen:?}");
}

#[test]
fn through_two_of_us_the_client_stays_who_it_is_over_either_protocol() {
    let backend = recording();
    for upstream in [UpstreamProtocol::Http, UpstreamProtocol::H2] {
        let inner = Keel::with(&[&backend], |config| {
            heard(config);
            config.listeners[0].http2 = Some(Http2::default());
        });
        let outer = keel(&[inner.address()], SendProxy::V2, |config| {
            config.targets[0].upstream = upstream;
            config.targets[0].health = Some(quick_health());
            config.listeners[0].http2 = Some(Http2::default());
        });
        eventually("its probes pass", || outer.client().get("/").status == 200);
        let _probes = backend.take_requests();
        for last in [3, 4, 3, 4] {
            let mut client = Client::connect_from(Ipv4Addr::new(127, 0, 0, last), outer.address());
            for _ in 0..3 {
                assert_eq!(client.get("/").status, 200);
                let seen = backend.take_requests().pop().unwrap();
                assert_eq!(seen.header("x-forwarded-for"), [format!("127.0.0.{last}")], "{upstream:?}");
            }
        }
        let readings = inner.server.readings();
        let bad = [evenkeel::message::Cause::BadProxyHeader, evenkeel::message::Cause::ProxySender];
        assert_eq!(bad.map(|cause| readings.ended_with(cause)), [0, 0], "probes are told of too");
    }
}

#[test]
fn what_was_told_of_a_client_ends_with_it_over_http_2_too() {
    let backend = recording();
    let inner = Keel::with(&[&backend], |config| {
        heard(config);
        config.listeners[0].http2 = Some(Http2::default());
    });
    let outer = keel(&[inner.address()], SendProxy::V2, |config| {
        config.targets[0].upstream = UpstreamProtocol::H2;
    });
    for _ in 0..10 {
        assert_eq!(outer.client().get("/").status, 200);
    }
    eventually("no connection to it is left", || inner.server.connections() == 0);
}

#[test]
fn of_what_one_client_has_used_only_a_few_wait_for_it_and_the_latest_are_kept() {
    let backends: Vec<Curious> = (0..8).map(|_| Curious::start()).collect();
    let addresses: Vec<_> = backends.iter().map(|backend| backend.address).collect();
    let keel = keel(&addresses, SendProxy::V1, |config| config.workers = 1);
    let mut client = keel.client();
    let own = own_address(&client);
    for _ in 0..8 {
        assert_eq!(client.get("/").text(), own);
    }
    eventually("five are kept", || keel.server.readings().pool.closed_idle == 3);
    drop(client);
    eventually("and end with it", || keel.server.readings().pool.closed_idle == 8);
}

#[test]
fn probes_are_nobodys() {
    for (version, is_local) in [(SendProxy::V1, false), (SendProxy::V2, true)] {
        for path in [None, Some("/health".to_owned())] {
            let backend = Curious::start();
            let _keel = keel(&[backend.address], version, |config| {
                config.targets[0].health = Some(quick_health());
                config.targets[0].backends[0].probe_path = path;
            });
            eventually("it is probed", || !backend.told().is_empty());
            let told = backend.told();
            assert!(told.iter().all(|header| header.is_local == is_local && header.addresses.is_none()));
        }
    }
}

#[test]
fn of_a_session_its_version_name_protocol_and_certificate_are_told() {
    let backend = Curious::start();
    let more = ", client_ca: ca.pem, client_auth: optional";
    let secure = Secure::with(Protocol::Http, &[], more, |config| {
        let targets = told_config(&[backend.address], SendProxy::V2, |_| ()).targets;
        *config = Config { targets, ..config.clone() };
    });
    let robot = secure.authority.issue_client("robot");
    for identity in [None, Some(&robot)] {
        let config = Arc::new(client_config(&[secure.authority.ca_pem()], BOTH, identity));
        assert_eq!(secure.client_with(&config).get("/").status, 200);
        let header = backend.told().pop().unwrap();
        let tls = header.told.tls().expect("it is told of");
        let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert_eq!(text(header.told.authority()).as_deref(), Some("localhost"));
        assert_eq!(text(tls.find(0x21)).as_deref(), Some("TLSv1.3"));
        assert_eq!(tls.has_certificate, identity.is_some());
        assert_eq!(text(tls.find(0x22)).as_deref(), identity.map(|_| "robot"));
        assert_eq!(header.told.unique_id().map(<[u8]>::len), Some(32));
    }
}

#[test]
fn over_tcp_it_stands_before_everything_and_before_tls() {
    let backend = recording();
    // Behind the header comes TLS, and inside of that the request.
    let inner = Secure::with(Protocol::Http, &[&backend], "", heard);
    let outer = {
        let mut config = config(Protocol::Tcp, &[inner.keel.address()]);
        config.targets[0].send_proxy = Some(SendProxy::V1);
        Keel::start(&config)
    };
    let tcp = Client::connect_from(Ipv4Addr::new(127, 0, 0, 9), outer.address()).socket;
    let mut client =
        Client::over(super::support::tls::TlsSocket::over(tcp, &inner.client, "localhost").unwrap());
    assert_eq!(client.get("/").status, 200);
    let seen = backend.take_requests().pop().unwrap();
    assert_eq!(seen.header("x-forwarded-for"), ["127.0.0.9"]);
}
