use super::*;
use crate::config::model::route::HostPattern;

/// A route: its hosts, protocols and networks in one text such as `a.example *.b.example +h2 10.0.0.0/8`.
fn route(is_passthrough: bool, text: &str) -> Arc<RouteConfig> {
    let mut route = RouteConfig { is_passthrough, ..RouteConfig::catch_all("t") };
    for word in text.split_whitespace() {
        if let Some(protocol) = word.strip_prefix('+') {
            route.matches.alpn.push(protocol.to_owned());
        } else if word.contains('/') {
            route.matches.clients.push(word.parse().expect("a network"));
        } else {
            let (name, is_suffix) = word.strip_prefix("*.").map_or((word, false), |name| (name, true));
            route.matches.hosts.push(HostPattern { name: name.to_owned(), is_suffix, port: None });
        }
    }
    Arc::new(route)
}

/// `>` in front: it passes through.
fn passages(texts: &[&str]) -> Passages {
    let routes: Vec<_> = texts
        .iter()
        .map(|text| text.strip_prefix('>').map_or_else(|| route(false, text), |text| route(true, text)))
        .collect();
    Passages::new(&routes).expect("some pass through")
}

fn find(passages: &Passages, name: &str, protocols: &[&str], client: &str) -> HelloVerdict {
    let protocols: Vec<Box<[u8]>> = protocols.iter().map(|one| one.as_bytes().into()).collect();
    let name = Some(name).filter(|name| !name.is_empty());
    passages.find(name, &protocols, client.parse().ok())
}

#[test]
fn the_nearest_name_has_a_connection() {
    let passages = passages(&[
        "shop.example",
        ">mail.example *.mail.example",
        ">*.example",
        "*.web.example",
        ">deep.web.example",
        ">",
    ]);
    let table = [
        ("shop.example", HelloVerdict::Here),
        ("mail.example", HelloVerdict::Through(1)),
        ("a.mail.example", HelloVerdict::Through(1)),
        ("a.b.mail.example", HelloVerdict::Through(1)),
        ("other.example", HelloVerdict::Through(2)),
        ("a.other.example", HelloVerdict::Through(2)),
        ("example", HelloVerdict::Through(5)),
        ("a.web.example", HelloVerdict::Here),
        ("web.example", HelloVerdict::Through(2)),
        ("deep.web.example", HelloVerdict::Through(4)),
        ("a.deep.web.example", HelloVerdict::Here),
        ("elsewhere.test", HelloVerdict::Through(5)),
        ("", HelloVerdict::Through(5)),
    ];
    for (name, wanted) in table {
        assert_eq!(find(&passages, name, &[], "192.0.2.1"), wanted, "{name}");
    }
}

#[test]
fn conditions_are_asked_and_what_nobody_takes_is_decrypted_or_nobodys() {
    let mixed = passages(&[
        ">a.example",
        ">a.example +h2 +acme-tls/1",
        ">a.example +h2 10.0.0.0/8",
        ">b.example +h2",
        "b.example",
        ">c.example +h2",
        ">*.example 10.0.0.0/8",
        "shop.test",
    ]);
    let table = [
        ("a.example", &["h2"][..], "10.1.1.1", HelloVerdict::Through(2)),
        ("a.example", &["http/1.1", "h2"], "192.0.2.1", HelloVerdict::Through(1)),
        ("a.example", &["acme-tls/1"], "10.1.1.1", HelloVerdict::Through(1)),
        ("a.example", &["http/1.1"], "10.1.1.1", HelloVerdict::Through(0)),
        ("a.example", &[], "::ffff:10.1.1.1", HelloVerdict::Through(0)),
        ("b.example", &["h2"], "192.0.2.1", HelloVerdict::Through(3)),
        ("b.example", &["http/1.1"], "10.1.1.1", HelloVerdict::Here),
        ("c.example", &["http/1.1"], "10.1.1.1", HelloVerdict::Through(6)),
        ("c.example", &["http/1.1"], "::ffff:10.1.1.1", HelloVerdict::Through(6)),
        ("c.example", &["http/1.1"], "192.0.2.1", HelloVerdict::Here),
        ("c.example", &[], "", HelloVerdict::Here),
        ("d.example", &["h"], "192.0.2.1", HelloVerdict::Here),
        ("", &["h2"], "10.1.1.1", HelloVerdict::Here),
    ];
    for (name, protocols, client, wanted) in table {
        assert_eq!(find(&mixed, name, protocols, client), wanted, "{name} {protocols:?} {client}");
    }
    let all = passages(&[">a.example", ">*.b.example +h2"]);
    for (name, protocols, wanted) in [
        ("a.example", &[][..], HelloVerdict::Through(0)),
        ("c.b.example", &["h2"], HelloVerdict::Through(1)),
        ("c.b.example", &["h3"], HelloVerdict::Nowhere),
        ("other.test", &["h2"], HelloVerdict::Nowhere),
        ("", &["h2"], HelloVerdict::Nowhere),
    ] {
        assert_eq!(find(&all, name, protocols, "192.0.2.1"), wanted, "{name} {protocols:?}");
    }
    assert!(Passages::new(&[route(false, "a.example")]).is_none());
}

#[test]
fn where_http_2_would_be_passed_through_is_known_by_the_name() {
    let mixed = passages(&[
        "shop.example",
        ">a.example",
        ">b.example +imap",
        ">*.c.example +h2 10.0.0.0/8",
        "e.c.example",
    ]);
    for (name, wanted) in [
        ("a.example", true),
        ("b.example", false),
        ("x.c.example", true),
        ("c.example", false),
        ("e.c.example", false),
        ("shop.example", false),
        ("other.test", false),
    ] {
        assert_eq!(mixed.takes_http2(Some(name)), wanted, "{name}");
    }
    assert!(!mixed.takes_http2(None));
    let by_default = passages(&["shop.example", ">"]);
    assert!(by_default.takes_http2(None) && by_default.takes_http2(Some("x.test")));
    assert!(!by_default.takes_http2(Some("shop.example")));
}

#[test]
fn what_would_surely_be_passed_through_is_known_without_its_client() {
    let mixed = passages(&[
        ">a.example",
        ">b.example +h2",
        ">c.example 10.0.0.0/8",
        "b.example",
        ">*.example +h2",
        "d.example",
        ">",
        "e.test",
    ]);
    for (name, protocol, wanted) in [
        ("a.example", None, true),
        ("a.example", Some("h2"), true),
        ("b.example", Some("h2"), true),
        ("b.example", Some("http/1.1"), false),
        ("b.example", None, false),
        // Whoever is not from there is passed through by the wider one or by the widest.
        ("c.example", Some("h2"), true),
        ("c.example", Some("http/1.1"), true),
        ("d.example", Some("h2"), false),
        ("x.example", Some("http/1.1"), true),
        ("e.test", None, false),
        ("other.test", None, true),
    ] {
        assert_eq!(mixed.surely_takes(Some(name), protocol), wanted, "{name} {protocol:?}");
    }
    assert!(mixed.surely_takes(None, None));
    // By address nobody can come back for a name, and who is not from there would come back for ever.
    let near = passages(&["> 10.0.0.0/8", "a.example"]);
    let near =
        [near.takes_http2(None), near.surely_takes(None, Some("h2")), near.takes_http2(Some("x.test"))];
    assert_eq!(near, [false, false, true]);
}
