//! Sessions are resumed by tickets: whichever worker a client meets, and never where it would have been asked for
//! something else (CVE-2025-23419).

use std::io;
use std::sync::Arc;

use evenkeel::config::model::Protocol;
use evenkeel::config::model::tls::ListenerTls;
use evenkeel::message::Cause;
use evenkeel::reload::bound::Bound;
use evenkeel::tls::{ServedNames, TicketKeys, Tickets, server_config};
use fake_backend::{Authority, Issued};
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls12Resumption,
    Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, Connection, HandshakeKind, NamedGroup, ServerConfig, ServerConnection,
};

use super::life_lab::until_ended;
use super::support::tls::{
    Secure, TLS12, TLS13, TlsSocket, client_config, listener_tls, more_tls, plain_tls,
};
use super::support::{Client, Keel, config, fakes, recording};

const RECONNECTS: usize = 1_000;
const LAST: &str = "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";

/// One connection with one request, which also takes in the tickets. Whether it was resumed.
fn visit(address: std::net::SocketAddr, config: &Arc<ClientConfig>, name: &str) -> io::Result<bool> {
    let socket = TlsSocket::open(address, config, name)?;
    let resumed = socket.is_resumed();
    let mut client = Client::over(socket);
    let answer = client.ask(LAST);
    if answer.status == 0 {
        // With TLS 1.3 a refusal comes behind the handshake.
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    assert_eq!(answer.status, 200, "{answer:?}");
    Ok(resumed)
}

#[test]
fn of_a_thousand_reconnects_to_two_workers_nearly_all_are_resumed_in_both_versions() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    for versions in [TLS12, TLS13] {
        let config = secure.versions(versions);
        assert!(
            !visit(secure.keel.address(), &config, "localhost").unwrap(),
            "there is nothing to resume yet"
        );
        let resumed =
            (0..RECONNECTS).filter(|_| visit(secure.keel.address(), &config, "localhost").unwrap()).count();
        assert!(resumed * 100 >= RECONNECTS * 95, "{resumed} of {RECONNECTS}");
    }
    let by_worker: Vec<u64> =
        secure.keel.server.readings_by_worker().iter().map(|worker| worker.connections.accepted).collect();
    assert!(by_worker.len() == 2 && by_worker.iter().all(|&count| count > 100), "{by_worker:?}");
}

/// Ways to hold tickets that ask nobody whose they are, as a client would that wants to be let in.
#[derive(Debug)]
struct Confused(ClientSessionMemoryCache);

impl Confused {
    fn name() -> ServerName<'static> {
        ServerName::try_from("any.test").unwrap()
    }
}

impl ClientSessionStore for Confused {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.0.set_kx_hint(Confused::name(), group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.0.kx_hint(&Confused::name())
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.0.set_tls12_session(Confused::name(), value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(&Confused::name())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.0.remove_tls12_session(&Confused::name());
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(Confused::name(), value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(&Confused::name())
    }
}

/// A listener with this certificate and more keys; `ca.pem` is that of the authority.
fn showing(issued: &Issued, authority: &Authority, more: &str) -> Arc<ListenerTls> {
    let files =
        [("a.pem", issued.cert_pem.as_str()), ("a.key", &issued.key_pem), ("ca.pem", authority.ca_pem())];
    listener_tls(&format!("cert_file: a.pem, cert_key: a.key{more}"), &files)
}

#[test]
fn a_ticket_of_an_open_listener_opens_none_that_asks_for_a_certificate() {
    let backend = recording();
    let authority = Authority::new("test authority");
    let issued = authority.issue(["localhost"]);
    let with = |more: &str| showing(&issued, &authority, more);
    let mut config = config(Protocol::Http, &[backend.addr()]);
    // The same certificate for all: only what is asked of clients differs.
    config.listeners[0].tls = Some(with(""));
    for more in [", client_ca: ca.pem", ", client_ca: ca.pem, client_auth: optional"] {
        let mut listener = config.listeners[0].clone();
        listener.tls = Some(with(more));
        config.listeners.push(listener);
    }
    let keel = Keel::start(&config);
    let addresses: Vec<_> = keel
        .server
        .bound()
        .iter()
        .map(|(_, bound)| match bound {
            Bound::Tcp(address) => *address,
            Bound::Udp(_) | Bound::Unix(_) => unreachable!("none is configured"),
        })
        .collect();
    let [open, asking, optional] = addresses[..] else { panic!("{addresses:?}") };
    let alice = authority.issue_client("alice");
    for (nth, versions) in (1..).zip([TLS12, TLS13]) {
        let anonymous = Arc::new(client_config(&[authority.ca_pem()], versions, None));
        for address in [open, optional] {
            assert!(
                !visit(address, &anonymous, "localhost").unwrap(),
                "a ticket of the other policy is no use"
            );
            assert!(visit(address, &anonymous, "localhost").unwrap(), "its own one is");
        }
        visit(open, &anonymous, "localhost").unwrap();
        visit(asking, &anonymous, "localhost").expect_err("no certificate, no session");
        until_ended(&keel, Cause::ClientCertificate, nth);
        // Nor is it taken from somebody who has a certificate: he must show it.
        let known = Arc::new(client_config(&[authority.ca_pem()], versions, Some(&alice)));
        assert!(!visit(open, &known, "localhost").unwrap());
        assert!(!visit(asking, &known, "localhost").unwrap(), "the handshake is a full one");
        let seen = backend.take_requests().pop().unwrap();
        assert_eq!(seen.header("client-cert").len(), 1, "{}", seen.head_text());
    }
}

#[test]
fn a_ticket_for_one_name_is_not_taken_for_another() {
    let backends = fakes(1);
    let authority = Authority::new("test authority");
    let issued = authority.issue(["a.test", "b.test"]);
    let mut config = config(Protocol::Http, &[backends[0].addr()]);
    config.listeners[0].tls = Some(showing(&issued, &authority, ""));
    let keel = Keel::start(&config);
    for versions in [TLS12, TLS13] {
        let mut client = client_config(&[authority.ca_pem()], versions, None);
        client.resumption = Resumption::store(Arc::new(Confused(ClientSessionMemoryCache::new(32))));
        let client = Arc::new(client);
        assert!(!visit(keel.address(), &client, "a.test").unwrap());
        assert!(visit(keel.address(), &client, "a.test").unwrap(), "so the ticket is good");
        assert!(!visit(keel.address(), &client, "b.test").unwrap(), "but not here");
    }
}

#[test]
fn a_session_with_a_certificate_still_has_it_when_it_is_resumed() {
    let backend = recording();
    let secure = Secure::with(Protocol::Http, &[&backend], ", client_ca: ca.pem", |_| ());
    let alice = secure.authority.issue_client("alice");
    for versions in [TLS12, TLS13] {
        let config = Arc::new(client_config(&[secure.authority.ca_pem()], versions, Some(&alice)));
        assert!(!visit(secure.keel.address(), &config, "localhost").unwrap());
        assert!(visit(secure.keel.address(), &config, "localhost").unwrap());
        let told: Vec<_> = backend
            .take_requests()
            .iter()
            .map(|seen| (seen.header("client-cert"), seen.header("x-forwarded-client-cert")))
            .collect();
        assert!(told.len() == 2 && told[0] == told[1], "{told:?}");
        assert!(told[0].1[0].contains("Subject=\"CN=alice\""), "{told:?}");
    }
}

/// A client of TLS 1.2 that asks for no ticket, as curl does.
fn ticketless(authority: &Authority, identity: Option<&Issued>) -> Arc<ClientConfig> {
    let mut config = client_config(&[authority.ca_pem()], TLS12, identity);
    config.resumption = Resumption::in_memory_sessions(8).tls12_resumption(Tls12Resumption::SessionIdOnly);
    Arc::new(config)
}

#[test]
fn a_client_of_tls_1_2_without_tickets_is_resumed_with_what_it_has_shown() {
    let backend = recording();
    let more = ", client_ca: ca.pem, client_auth: optional";
    let secure = Secure::with(Protocol::Http, &[&backend], more, |_| ());
    let alice = secure.authority.issue_client("alice");
    for identity in [None, Some(&alice)] {
        let config = ticketless(&secure.authority, identity);
        assert!(!visit(secure.keel.address(), &config, "localhost").unwrap());
        let resumed = (0..20).filter(|_| visit(secure.keel.address(), &config, "localhost").unwrap()).count();
        assert_eq!(resumed, 20, "whichever worker it met");
        for seen in backend.take_requests() {
            assert_eq!(seen.header("client-cert").len(), usize::from(identity.is_some()));
        }
    }
}

#[test]
fn a_session_without_a_ticket_is_of_no_use_at_another_listener() {
    let backends = fakes(1);
    let authority = Authority::new("test authority");
    let issued = authority.issue(["localhost"]);
    let serve = |more: &str| {
        let mut config = config(Protocol::Http, &[backends[0].addr()]);
        config.listeners[0].tls = Some(showing(&issued, &authority, more));
        Keel::start(&config)
    };
    let (open, asking) = (serve(""), serve(", client_ca: ca.pem"));
    let client = ticketless(&authority, None);
    visit(open.address(), &client, "localhost").unwrap();
    assert!(visit(open.address(), &client, "localhost").unwrap());
    visit(asking.address(), &client, "localhost").expect_err("no certificate, no session");
    until_ended(&asking, Cause::ClientCertificate, 1);
}

/// Gives the other side everything that one wants to send.
fn pass(from: &mut Connection, to: &mut Connection) -> Result<(), rustls::Error> {
    let mut wire = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut wire).unwrap();
    }
    let mut rest = &wire[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        to.process_new_packets()?;
    }
    Ok(())
}

/// Both ends in memory: what the server says of the handshake.
fn shake(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Result<HandshakeKind, rustls::Error> {
    let name = ServerName::try_from("localhost").unwrap();
    let mut client: Connection = ClientConnection::new(Arc::clone(client), name).unwrap().into();
    let mut server: Connection = ServerConnection::new(Arc::clone(server)).unwrap().into();
    while client.wants_write() || server.wants_write() {
        pass(&mut client, &mut server)?;
        pass(&mut server, &mut client)?;
    }
    Ok(server.handshake_kind().unwrap())
}

fn serving(tls: &ListenerTls, keys: &Arc<TicketKeys>) -> Arc<ServerConfig> {
    server_config(tls, &ServedNames::new(&tls.identities), &tls.alpn, Arc::clone(keys))
}

#[test]
fn tickets_survive_one_rotation_and_not_two() {
    let authority = Authority::new("test authority");
    let tls = plain_tls(&authority);
    let tickets = Tickets::default();
    let server = serving(&tls, &tickets.of(&tls));
    for versions in [TLS12, TLS13] {
        let fresh = || Arc::new(client_config(&[authority.ca_pem()], versions, None));
        let (once, twice) = (fresh(), fresh());
        assert_ne!(shake(&once, &server), Ok(HandshakeKind::Resumed));
        assert_ne!(shake(&twice, &server), Ok(HandshakeKind::Resumed));
        tickets.rotate();
        assert_eq!(shake(&once, &server), Ok(HandshakeKind::Resumed), "{versions:?}");
        tickets.rotate();
        assert_ne!(shake(&twice, &server), Ok(HandshakeKind::Resumed), "{versions:?}");
        assert_eq!(shake(&once, &server), Ok(HandshakeKind::Resumed), "it had a new one in between");
    }
}

#[test]
fn a_ticket_of_which_nothing_can_be_made_costs_a_full_handshake_and_nothing_else() {
    let authority = Authority::new("test authority");
    let tls = plain_tls(&authority);
    for versions in [TLS12, TLS13] {
        let keys = Arc::new(TicketKeys::default());
        // The first name the key by which it was sealed and yet can't be opened; of the second nothing is known.
        let mut altered = keys.export();
        altered.chunks_mut(48).for_each(|key| key[47] ^= 1);
        let (other, foreign) = (TicketKeys::default(), TicketKeys::default());
        other.inject(&altered).unwrap();
        for broken in [other, foreign] {
            let client = Arc::new(client_config(&[authority.ca_pem()], versions, None));
            shake(&client, &serving(&tls, &keys)).unwrap();
            let kind = shake(&client, &serving(&tls, &Arc::new(broken))).expect("no error");
            assert_ne!(kind, HandshakeKind::Resumed);
        }
    }
}

#[test]
fn listeners_share_keys_exactly_when_they_show_and_ask_the_same() {
    let authority = Authority::new("test authority");
    let issued = authority.issue(["localhost"]);
    let with = |more: &str| showing(&issued, &authority, more);
    let tickets = Tickets::default();
    let same = |one: &ListenerTls, other: &ListenerTls| Arc::ptr_eq(&tickets.of(one), &tickets.of(other));
    assert!(same(&with(""), &with("")), "also after a reload");
    assert!(same(&with(", client_ca: ca.pem"), &with(", client_ca: ca.pem, client_auth: required")));
    assert!(!same(&with(""), &with(", client_ca: ca.pem")));
    assert!(!same(&with(", client_ca: ca.pem"), &with(", client_ca: ca.pem, client_auth: optional")));
    assert!(!same(&with(""), &with(", min_version: '1.3'")));
    assert!(!same(&with(""), &more_tls(&authority, "")), "another certificate");
    let other = Authority::new("other authority");
    let asking = |authority| showing(&issued, authority, ", client_ca: ca.pem");
    assert!(!same(&asking(&authority), &asking(&other)), "another authority");
}
