//! Requests for a host that the connection was not made for (RFC 9110 §15.5.20, RFC 9113 §9.1.1): 421.

use std::sync::Arc;

use evenkeel::config::model::route::HostPattern;
use evenkeel::config::model::{Config, Http2, Protocol, RouteConfig};
use evenkeel::message::Cause;
use fake_backend::{Authority, Issued, Running};
use rustls::ClientConfig;

use super::frames::{flag, kind};
use super::peer::{Came, Door, Peer};
use crate::support::tls::{BOTH, client_config, listener_tls};
use crate::support::{Keel, all_to, config, eventually, recording};

struct Scene {
    keel: Keel,
    backend: Running,
    authority: Authority,
}

impl Scene {
    /// The listener `web` with these keys in its section `tls` and these files, and what `change` makes of it.
    fn new(section: &str, issued: &[(&str, &[&str])], change: impl FnOnce(&mut Config, &Authority)) -> Scene {
        let (backend, authority) = (recording(), Authority::new("test authority"));
        let mut config = config(Protocol::Http, &[backend.addr()]);
        let files: Vec<(String, String)> = issued
            .iter()
            .flat_map(|(name, names)| {
                let Issued { cert_pem, key_pem, .. } = authority.issue(names.iter().copied());
                [(format!("{name}.pem"), cert_pem), (format!("{name}.key"), key_pem)]
            })
            .collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        config.listeners[0].tls = Some(listener_tls(section, &files));
        config.listeners[0].http2 = Some(Http2::default());
        change(&mut config, &authority);
        Scene { keel: Keel::start(&config), backend, authority }
    }

    /// A connection to this listener that is made for the host `name`, by a client with this certificate.
    fn connect(&self, listener: &str, name: &str, own: Option<&Issued>) -> Peer {
        let mut client: ClientConfig = client_config(&[self.authority.ca_pem()], BOTH, own);
        client.alpn_protocols = vec![b"h2".to_vec()];
        let door = Door { address: self.keel.addresses(listener)[0], tls: Some(Arc::new(client)) };
        let mut peer = Peer::connect_for(&door, name).unwrap();
        peer.shake().unwrap();
        peer
    }

    fn misdirected(&self) -> u64 {
        self.keel.server.readings().ended_with(Cause::MisdirectedRequest)
    }
}

/// The statuses of requests for these hosts, one after the other over this connection.
fn statuses(peer: &mut Peer, hosts: &[&str]) -> Vec<u16> {
    let streams = (1u32..).step_by(2).zip(hosts);
    let ask = |(stream, host): (u32, &&str)| {
        let block =
            peer.block(&[(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", host)]);
        peer.headers(stream, flag::WHOLE, &block);
        let mut status = None;
        loop {
            let Came::Frame(frame) = peer.next() else { panic!("{host}: {:?}", peer.log) };
            assert_ne!(frame.kind, kind::GOAWAY, "{host}: {:?}", peer.log);
            if frame.stream == stream && frame.kind == kind::HEADERS {
                status = frame.status();
            }
            if frame.stream == stream && frame.ends_stream() {
                return status.unwrap();
            }
        }
    };
    streams.map(ask).collect()
}

#[test]
fn a_host_with_another_certificate_is_misdirected_and_the_connection_goes_on() {
    let section = "cert_file: first.pem, cert_key: first.key, certificates: \
                   [{cert_file: shop.pem, cert_key: shop.key}, {cert_file: wild.pem, cert_key: wild.key}]";
    let issued = [
        ("first", &["first.test", "www.first.test"][..]),
        ("shop", &["shop.test"]),
        ("wild", &["*.wild.test"]),
    ];
    let scene = Scene::new(section, &issued, |_, _| ());
    // The connection is for the first; the backend gets what is for it, and nothing else.
    let mut first = scene.connect("web", "first.test", None);
    let hosts =
        ["first.test", "shop.test", "www.first.test:443", "SHOP.test.", "a.wild.test", "elsewhere.test"];
    assert_eq!(statuses(&mut first, &hosts), [200, 421, 200, 421, 421, 200]);
    let seen: Vec<String> = scene.backend.take_requests().iter().map(|request| request.head_text()).collect();
    assert_eq!(seen.len(), 3, "{seen:?}");
    for (head, host) in seen.iter().zip(["first.test", "www.first.test:443", "elsewhere.test"]) {
        assert!(head.contains(&format!("\r\nhost: {host}\r\n")), "{head}");
    }
    eventually("it is written down", || scene.misdirected() == 3);
    // One that is made for the host is never the wrong one.
    for (host, other) in [("shop.test", "first.test"), ("a.wild.test", "shop.test")] {
        let mut own = scene.connect("web", host, None);
        assert_eq!(statuses(&mut own, &[host, other, host]), [200, 421, 200], "{host}");
    }
    // One certificate is for both.
    assert_eq!(statuses(&mut scene.connect("web", "a.wild.test", None), &["b.wild.test"]), [200]);
}

#[test]
fn a_host_whose_clients_need_a_certificate_is_not_reached_over_another_listeners_connection() {
    let shop = ("shop", &["*.shop.test"][..]);
    let section = "cert_file: shop.pem, cert_key: shop.key";
    let scene = Scene::new(section, &[shop], |config, authority| {
        let Issued { cert_pem, key_pem, .. } = authority.issue(["*.shop.test"]);
        let files = [("shop.pem", &*cert_pem), ("shop.key", &*key_pem), ("ca.pem", authority.ca_pem())];
        let mut members = config.listeners[0].clone();
        members.name = "members".to_owned();
        members.tls = Some(listener_tls(&format!("{section}, client_ca: ca.pem"), &files));
        let mut route = RouteConfig::clone(&all_to("web")[0]);
        let name = "members.shop.test".to_owned();
        route.matches.hosts = vec![HostPattern { name, is_suffix: false, port: None }];
        members.routes = vec![Arc::new(route)];
        config.listeners.push(members);
    });
    // A wildcard certificate would let a browser share its connection to the public host.
    let mut public = scene.connect("web", "www.shop.test", None);
    let hosts = ["www.shop.test", "members.shop.test", "Members.shop.test.:443", "www.shop.test"];
    assert_eq!(statuses(&mut public, &hosts), [200, 421, 421, 200]);
    assert_eq!(scene.backend.take_requests().len(), 2);
    eventually("it is written down", || scene.misdirected() == 2);
    // It comes again over a connection of its own, where it has to show its certificate.
    let alice = scene.authority.issue_client("alice");
    let mut members = scene.connect("members", "members.shop.test", Some(&alice));
    assert_eq!(statuses(&mut members, &["members.shop.test"]), [200]);
    let head = scene.backend.take_requests()[0].head_text();
    assert!(head.contains("CN=alice"), "{head}");
}
