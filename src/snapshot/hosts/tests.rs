use std::time::Duration;

use super::*;
use crate::config::model::route::HostPattern;
use crate::config::model::tls::{AlpnProtocol, ListenerTls, UnknownSni};
use crate::config::model::{
    ClientTimeouts, EventFormat, Forwarded, Http2, Instance, Limits, LogLevel, MetricsConfig, Normalize,
    RouteConfig, ScaleConfig, WatchMode,
};
use crate::snapshot::{Listener, Snapshot, Snapshots};
use crate::tls::fixtures::identity;

/// A listener over TLS with certificates for these names, each list of them one, and routes for these hosts.
fn secured(name: &str, certificates: &[&[&str]], hosts: &[&str]) -> ListenerConfig {
    let tls = ListenerTls {
        alpn: AlpnProtocol::usual(true),
        ..ListenerTls::showing(certificates.iter().map(|names| Arc::new(identity(names))).collect())
    };
    let route = |host: &&str| {
        let mut route = RouteConfig::catch_all("web");
        let (name, is_suffix) = host.strip_prefix("*.").map_or((*host, false), |name| (name, true));
        route.name = (*host).to_owned();
        route.matches.hosts = vec![HostPattern { name: name.to_owned(), is_suffix, port: None }];
        Arc::new(route)
    };
    ListenerConfig {
        proxy_protocol: None,
        name: name.to_owned(),
        protocol: Protocol::Http,
        tls: Some(Arc::new(tls)),
        http2: Some(Http2::default()),
        binds: Vec::new(),
        access: Vec::new(),
        auth: None,
        told: [].into(),
        rate_limits: Vec::new(),
        routes: hosts.iter().map(route).collect(),
        normalize: Normalize::default(),
        default_host: None,
        limits: Limits::default(),
        client_timeouts: ClientTimeouts::default(),
        forwarded: Forwarded::default(),
        x_real_ip: false,
    }
}

fn config(listeners: &[ListenerConfig]) -> Config {
    Config {
        acme: Default::default(),
        cluster: None,
        resolver: Default::default(),
        instance: Instance::default(),
        admin: None,
        metrics: MetricsConfig::default(),
        webhooks: Vec::new(),
        scale: ScaleConfig::default(),
        access_lists: Vec::new(),
        rate_limits: Vec::new(),
        listeners: listeners.to_vec(),
        targets: Vec::new(),
        watch: WatchMode::default(),
        workers: 1,
        max_connections: None,
        shutdown_delay: Duration::ZERO,
        shutdown_timeout: Duration::ZERO,
        access_log: None,
        log_level: LogLevel::Info,
        log_format: EventFormat::Text,
        trusted_proxies: Vec::new(),
        cache_store: Default::default(),
        recorder: None,
        tracing: None,
        tests: Vec::new(),
    }
}

fn snapshot(listeners: &[ListenerConfig]) -> Arc<Snapshot> {
    Snapshot::of(&config(listeners))
}

/// The hosts of these that are misdirected on a connection that was made for `sni`.
fn misdirected<'h>(listener: &Listener, sni: Option<&str>, hosts: &[&'h str]) -> Vec<&'h str> {
    let is_misdirected = |host: &&&str| listener.is_misdirected(sni, host.as_bytes());
    hosts.iter().filter(is_misdirected).copied().collect()
}

const NONE: [&str; 0] = [];

#[test]
fn the_host_that_was_asked_for_is_never_misdirected_however_it_is_written() {
    // Another listener names it, too, and more closely.
    let all = [
        secured("public", &[&["first.test"], &["*.shop.test"]], &[]),
        secured("other", &[&["a.shop.test"]], &["a.shop.test"]),
    ];
    let snapshot = snapshot(&all);
    let same = [
        "a.shop.test",
        "A.Shop.TEST",
        "a.shop.test.",
        "a.shop.test:8443",
        "a.shop.test.:443",
        "a.shop.test:",
    ];
    for sni in ["a.shop.test", "A.SHOP.test", "a.shop.test."] {
        assert_eq!(misdirected(&snapshot.listeners[0], Some(sni), &same), NONE, "{sni}");
    }
    let others = ["a.shop.tes", "a.shop.testx", "b.a.shop.test", ".a.shop.test", ""];
    assert_eq!(misdirected(&snapshot.listeners[0], Some("a.shop.test"), &others), others);
}

#[test]
fn a_host_whose_connections_are_passed_through_belongs_on_another_connection() {
    let mut all = [secured("public", &[&["shop.test", "*.shop.test"]], &["shop.test", "*.shop.test"])];
    let passed = |host: &str, alpn: &[&str]| {
        let mut route = (*secured("", &[], &[host]).routes[0]).clone();
        route.is_passthrough = true;
        route.matches.alpn = alpn.iter().map(|one| (*one).to_owned()).collect();
        Arc::new(route)
    };
    all[0].routes.push(passed("mail.shop.test", &[]));
    all[0].routes.push(passed("news.shop.test", &["h2", "http/1.1"]));
    all[0].routes.push(passed("old.shop.test", &["http/1.1"]));
    let snapshot = snapshot(&all);
    let hosts = [
        "shop.test",
        "a.shop.test",
        "mail.shop.test",
        "MAIL.shop.test.:443",
        "news.shop.test",
        "old.shop.test",
        "x.mail.shop.test",
    ];
    // All of them have the one certificate.
    assert_eq!(
        misdirected(&snapshot.listeners[0], Some("shop.test"), &hosts),
        ["mail.shop.test", "MAIL.shop.test.:443", "news.shop.test"]
    );
    // A connection from before a reload is for nobody here any more; one that was not passed through, since it has offered something
    // else, is not sent round in circles.
    let own = |name| misdirected(&snapshot.listeners[0], Some(name), &[name]);
    assert_eq!(own("news.shop.test"), ["news.shop.test"]);
    assert_eq!(own("old.shop.test"), NONE);
    let would = |name, agreed| snapshot.listeners[0].would_pass_through(name, agreed);
    assert!(would(Some("mail.shop.test"), None) && would(Some("OLD.shop.test."), Some("http/1.1")));
    assert!(
        !would(Some("old.shop.test"), Some("h2"))
            && !would(Some("shop.test"), Some("h2"))
            && !would(None, None)
    );
}

#[test]
fn a_host_with_another_certificate_belongs_on_another_connection() {
    let all =
        [secured("public", &[&["first.test", "www.first.test"], &["shop.test"], &["*.wild.test"]], &[])];
    let snapshot = snapshot(&all);
    let of = |sni, hosts: &[&'static str]| misdirected(&snapshot.listeners[0], sni, hosts);
    let hosts =
        ["first.test", "www.first.test:443", "shop.test", "SHOP.test.", "a.wild.test", "unknown.test"];
    assert_eq!(of(Some("first.test"), &hosts), ["shop.test", "SHOP.test.", "a.wild.test"]);
    assert_eq!(
        of(Some("a.wild.test"), &["b.wild.test", "b.WILD.test:443"]),
        NONE,
        "one certificate for both"
    );
    assert_eq!(of(Some("a.wild.test"), &["wild.test", "b.c.wild.test"]), ["wild.test", "b.c.wild.test"]);
    // Who has asked for no name, or for none that we have, has seen the first.
    for sni in [None, Some("unknown.test")] {
        assert_eq!(of(sni, &hosts), ["shop.test", "SHOP.test.", "a.wild.test"], "{sni:?}");
    }
}

/// Where there is one certificate for all and no other listener, nobody looks who is asked for.
#[test]
fn with_one_certificate_for_everybody_no_host_is_misdirected_unless_others_are_refused() {
    let hosts = ["first.test", "other.test", "10.0.0.1", "[::1]:443", "a b"];
    let mut all = [secured("public", &[&["first.test"]], &["first.test"])];
    for sni in [None, Some("first.test"), Some("other.test")] {
        assert_eq!(misdirected(&snapshot(&all).listeners[0], sni, &hosts), NONE, "{sni:?}");
    }
    // Over a handshake of its own each of the others would have been refused.
    let refusing =
        ListenerTls { unknown_sni: UnknownSni::Refuse, ..(**all[0].tls.as_ref().expect("TLS")).clone() };
    all[0].tls = Some(Arc::new(refusing));
    let snapshot = snapshot(&all);
    assert_eq!(misdirected(&snapshot.listeners[0], Some("first.test"), &hosts), hosts[1..]);
}

#[test]
fn an_address_is_as_good_as_no_name() {
    let all = [
        secured("public", &[&["first.test"], &["shop.test"]], &[]),
        secured("other", &[&["other.test"]], &["10.0.0.1", "[2001:db8::1]"]),
    ];
    let snapshot = snapshot(&all);
    let addresses = ["10.0.0.1", "10.0.0.1:443", "[2001:db8::1]", "[2001:DB8::1]:443"];
    assert_eq!(misdirected(&snapshot.listeners[0], None, &addresses), NONE);
    assert_eq!(misdirected(&snapshot.listeners[0], Some("first.test"), &addresses), NONE);
    assert_eq!(misdirected(&snapshot.listeners[0], Some("shop.test"), &addresses), addresses);
}

#[test]
fn a_host_that_another_listener_names_more_closely_belongs_there() {
    let all = [
        secured("public", &[&["*.shop.test"]], &["www.shop.test", "*.deep.shop.test"]),
        secured("admin", &[&["*.shop.test"]], &["admin.shop.test", "*.inner.shop.test", "www.shop.test"]),
    ];
    let snapshot = snapshot(&all);
    let hosts = [
        "www.shop.test",
        "admin.shop.test",
        "Admin.Shop.test.:443",
        "any.shop.test",
        "a.inner.shop.test",
        "a.deep.shop.test",
        "elsewhere.test",
    ];
    let public = misdirected(&snapshot.listeners[0], Some("a.shop.test"), &hosts);
    // One label more than the star of the certificate stands for is another certificate, or none of ours: the first.
    assert_eq!(public, ["admin.shop.test", "Admin.Shop.test.:443", "a.inner.shop.test"]);
    let admin = misdirected(&snapshot.listeners[1], Some("a.shop.test"), &hosts);
    assert_eq!(admin, ["a.deep.shop.test"], "what both name, or nobody, is nobody's alone");
}

#[test]
fn a_default_host_is_named_too_and_listeners_without_tls_do_not_count() {
    let mut all = [
        secured("public", &[&["*.shop.test"]], &[]),
        secured("other", &[&["*.shop.test"]], &[]),
        secured("plain", &[&["plain.shop.test"]], &["plain.shop.test"]),
        secured("tcp", &[&["tcp.shop.test"]], &["tcp.shop.test"]),
    ];
    all[1].default_host = Some("main.shop.test".to_owned());
    all[2].tls = None;
    all[3].protocol = Protocol::Tcp;
    let snapshot = snapshot(&all);
    let hosts = ["main.shop.test", "plain.shop.test", "tcp.shop.test"];
    assert_eq!(misdirected(&snapshot.listeners[0], Some("a.shop.test"), &hosts), ["main.shop.test"]);
    assert_eq!(misdirected(&snapshot.listeners[2], None, &hosts), NONE, "without TLS nothing is known");
}

/// A client that nobody sends anywhere else is asked for nothing.
#[test]
fn one_listener_alone_or_none_with_http_2_names_no_hosts() {
    let mut all =
        [secured("public", &[&["a.test"]], &["a.test"]), secured("other", &[&["b.test"]], &["b.test"])];
    assert!(NamedHosts::of(&config(&all), None).is_some());
    assert!(NamedHosts::of(&config(&all[..1]), None).is_none());
    all.iter_mut().for_each(|listener| listener.http2 = None);
    assert!(NamedHosts::of(&config(&all), None).is_none());
}

#[test]
fn another_config_takes_along_what_does_not_differ_and_knows_what_others_name_now() {
    let snapshots = Snapshots::new();
    let put = |listeners: &[ListenerConfig]| snapshots.commit(snapshots.prepare(&config(listeners))).0;
    let mut all = [
        secured("public", &[&["*.shop.test"]], &[]),
        secured("other", &[&["*.shop.test"]], &["b.shop.test"]),
    ];
    let before = put(&all);
    let again = put(&all);
    assert!(Arc::ptr_eq(&before.listeners[0], &again.listeners[0]), "nothing differs");
    let hosts = ["b.shop.test", "c.shop.test"];
    assert_eq!(misdirected(&again.listeners[0], Some("a.shop.test"), &hosts), ["b.shop.test"]);
    all[1].routes = secured("other", &[], &["c.shop.test"]).routes;
    let now = put(&all);
    assert_eq!(misdirected(&now.listeners[0], Some("a.shop.test"), &hosts), ["c.shop.test"]);
    assert_eq!(misdirected(&before.listeners[0], Some("a.shop.test"), &hosts), ["b.shop.test"]);
    let sessions = |snapshot: &Snapshot| snapshot.listeners[0].tls.clone().expect("it has TLS");
    assert!(Arc::ptr_eq(&sessions(&before), &sessions(&now)), "its own sessions go on");
    assert!(Arc::ptr_eq(&before.listeners[0].state, &now.listeners[0].state), "and it is the same listener");
}

#[test]
fn http_2_and_alpn_of_a_listener_are_taken_by_a_reload_that_leaves_it_the_same_listener() {
    let snapshots = Snapshots::new();
    let put = |listener: &ListenerConfig| {
        let listeners = std::slice::from_ref(listener);
        Arc::clone(&snapshots.commit(snapshots.prepare(&config(listeners))).0.listeners[0])
    };
    let with = |change: &dyn Fn(&mut ListenerConfig, &mut ListenerTls), of: &ListenerConfig| {
        let mut listener = of.clone();
        let mut tls = ListenerTls::clone(listener.tls.as_ref().expect("it has TLS"));
        change(&mut listener, &mut tls);
        listener.tls = Some(Arc::new(tls));
        listener
    };
    let first = secured("public", &[&["a.test"]], &[]);
    let more =
        with(&|listener, _| listener.http2 = Some(Http2 { max_streams: 7, ..Http2::default() }), &first);
    let turned = with(&|_, tls| tls.alpn.reverse(), &more);
    let off = with(&|listener, _| listener.http2 = None, &turned);
    let steps = [&first, &more, &turned, &off].map(put);
    let sessions = |listener: &Listener| listener.tls.clone().expect("it has TLS");
    for pair in steps.windows(2) {
        assert!(!Arc::ptr_eq(&pair[0], &pair[1]) && Arc::ptr_eq(&pair[0].state, &pair[1].state));
    }
    assert!(Arc::ptr_eq(&sessions(&steps[0]), &sessions(&steps[1])), "what streams cost is no matter of TLS");
    assert!(!Arc::ptr_eq(&sessions(&steps[1]), &sessions(&steps[2])), "another order is");
    assert!(!Arc::ptr_eq(&sessions(&steps[2]), &sessions(&steps[3])), "and another choice");
    assert_eq!(steps[3].config.alpn(), [AlpnProtocol::Http1], "nobody is offered what is not spoken");
}
