//! Hashed targets: one key, one backend, whoever is asked and however often.

use std::io::Read;
use std::net::Ipv4Addr;

use evenkeel::config::model::{Balance, Config, HashKey, Policy, Protocol};
use fake_backend::{Behaviour, Fake, Running, TcpMode};

use super::support::{Client, Keel, config, eventually, fakes};

/// So many backends that all keys on one of them is no accident.
const BACKENDS: usize = 5;
const BOTH: [Balance; 2] = [Balance::RingHash, Balance::Maglev];

/// A target in front of `backends` that hashes. Backends are named alike in every test: names decide.
fn hashed(backends: &[Running], policy: Policy) -> Config {
    let addresses: Vec<_> = backends.iter().map(Running::addr).collect();
    let mut config = config(Protocol::Http, &addresses);
    for (number, backend) in config.targets[0].backends.iter_mut().enumerate() {
        backend.name = format!("b{number}");
    }
    config.targets[0].balance = policy;
    config
}

/// By this key, whatever else a backend has to do.
fn by(algorithm: Balance, hash_key: HashKey) -> Policy {
    Policy { algorithm, hash_key, bounded_load: None, ..Policy::default() }
}

/// TCP backends in this mode.
fn greeters(mode: TcpMode) -> Vec<Running> {
    let start = |number| Fake::tcp(format!("fake-{number}")).behave(Behaviour::tcp(mode)).start_in_thread();
    (1..=BACKENDS).map(|number| start(number).unwrap()).collect()
}

/// A TCP target that hashes the client's address.
fn hashed_tcp(backends: &[Running], policy: Policy) -> Config {
    let mut config = hashed(backends, policy);
    (config.listeners[0].protocol, config.targets[0].protocol) = (Protocol::Tcp, Protocol::Tcp);
    config
}

/// Which backend answers a request with these lines.
fn asked(client: &mut Client, target: &str, lines: &str) -> String {
    let answer = client.ask(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n{lines}\r\n"));
    assert_eq!(answer.status, 200);
    answer.text()
}

/// How many different backends answered.
fn different(mut answers: Vec<String>) -> usize {
    answers.sort();
    answers.dedup();
    answers.len()
}

#[test]
fn a_header_value_has_its_backend_on_every_connection_and_in_every_process() {
    let backends = fakes(BACKENDS);
    for algorithm in BOTH {
        let mut config = hashed(&backends, by(algorithm, HashKey::Header("x-tenant".into())));
        let one = Keel::start(&config);
        // Another node lists them in another order and serves with other workers.
        config.targets[0].backends.reverse();
        config.workers = 1;
        let other = Keel::start(&config);
        let mut found = Vec::new();
        for tenant in 0..16 {
            let line = format!("X-Tenant: tenant-{tenant}\r\n");
            let mut answers = Vec::new();
            for keel in [&one, &other] {
                for _ in 0..3 {
                    let mut client = keel.client();
                    answers.extend((0..3).map(|_| asked(&mut client, "/", &line)));
                }
            }
            found.push(answers[0].clone());
            assert_eq!(different(answers), 1, "{algorithm:?}: tenant {tenant} was seen by several");
        }
        assert!(different(found) > 2, "{algorithm:?}: tenants are spread");
    }
}

#[test]
fn every_part_of_a_request_can_be_the_key() {
    let backends = fakes(BACKENDS);
    // For each key: what varies what it names, and what varies everything else.
    type Vary = fn(usize) -> (String, String);
    let cases: [(HashKey, Vary, Vary); 5] = [
        (
            HashKey::Path,
            |n| (format!("/{n}"), String::new()),
            |n| (format!("/same?{n}"), format!("X-A: {n}\r\n")),
        ),
        (HashKey::Query, |n| (format!("/?{n}"), String::new()), |n| (format!("/{n}?same"), String::new())),
        (
            HashKey::Parameter("id".into()),
            |n| (format!("/?x=1&id={n}"), String::new()),
            |n| (format!("/{n}?x={n}&id=same&id={n}"), String::new()),
        ),
        (
            HashKey::Cookie("sid".into()),
            |n| ("/".into(), format!("Cookie: a=b; sid={n}\r\n")),
            |n| (format!("/{n}"), format!("Cookie: a={n}; sid=same\r\n")),
        ),
        (
            HashKey::ClientIp,
            |n| ("/".into(), format!("X-Forwarded-For: 192.0.2.{n}\r\n")),
            |n| (format!("/{n}"), format!("X-Forwarded-For: 198.51.100.{n}, 192.0.2.1\r\n")),
        ),
    ];
    for (key, differs, same) in cases {
        let mut config = hashed(&backends, by(Balance::Maglev, key.clone()));
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        let keel = Keel::start(&config);
        let mut client = keel.client();
        let mut of = |vary: Vary| {
            let asks = (0..20).map(vary);
            different(asks.map(|(target, lines)| asked(&mut client, &target, &lines)).collect())
        };
        assert_eq!(of(same), 1, "{key:?}: one value was seen by several");
        assert!(of(differs) > 2, "{key:?}: values are spread");
    }
}

/// Nobody chooses a backend by what a trusted proxy did not say.
#[test]
fn a_client_that_nobody_trusts_is_its_own_address() {
    let backends = fakes(BACKENDS);
    let keel = Keel::start(&hashed(&backends, by(Balance::RingHash, HashKey::ClientIp)));
    let answers =
        (0..20).map(|n| asked(&mut keel.client(), "/", &format!("X-Forwarded-For: 192.0.2.{n}\r\n")));
    assert_eq!(different(answers.collect()), 1);
}

#[test]
fn a_tcp_client_has_its_backend_by_its_address() {
    let backends = greeters(TcpMode::Greet);
    for algorithm in BOTH {
        let config = hashed_tcp(&backends, by(algorithm, HashKey::ClientIp));
        let nodes = [Keel::start(&config), Keel::start(&config)];
        let mut found = Vec::new();
        for last in 1..=12 {
            let own = Ipv4Addr::new(127, 0, 0, last);
            let answers: Vec<String> = (0..6)
                .map(|turn| {
                    let mut client = Client::connect_from(own, nodes[turn % 2].address());
                    client.finish_sending();
                    let mut text = String::new();
                    client.socket.read_to_string(&mut text).unwrap();
                    assert!(text.starts_with("Hello"), "{text:?}");
                    text
                })
                .collect();
            found.push(answers[0].clone());
            assert_eq!(different(answers), 1, "{algorithm:?}: {own} was seen by several");
        }
        assert!(different(found) > 2, "{algorithm:?}: clients are spread");
    }
}

#[test]
fn another_backend_stands_in_and_the_key_comes_home() {
    let backends = fakes(BACKENDS);
    for algorithm in BOTH {
        let keel = Keel::start(&hashed(&backends, by(algorithm, HashKey::Path)));
        let home = asked(&mut keel.client(), "/a", "");
        let at = backends.iter().position(|backend| home.contains(backend.id())).unwrap();
        // Refused connects: the request goes on to another, the same for each that is refused.
        backends[at].stop();
        eventually("its connections are closed", || backends[at].open_connections() == 0);
        let away = asked(&mut keel.client(), "/a", "");
        assert_ne!(away, home, "{algorithm:?}");
        assert_eq!(asked(&mut keel.client(), "/a", ""), away, "{algorithm:?}");
        backends[at].restart().unwrap();
        eventually("the key is home again", || asked(&mut keel.client(), "/a", "") == home);
    }
}

/// What comes while a backend has its share goes to the next on the ring; without a bound it does not.
#[test]
fn the_bound_on_load_spreads_one_client() {
    let backends = greeters(TcpMode::GreetAndEcho);
    let greetings = |bounded_load| {
        let policy = Policy { bounded_load, ..by(Balance::RingHash, HashKey::ClientIp) };
        let keel = Keel::start(&hashed_tcp(&backends, policy));
        let mut clients: Vec<Client> = Vec::new();
        let greeting = |_| {
            let mut client = keel.client();
            let mut text = [0; "Hello from fake-1".len()];
            client.socket.read_exact(&mut text).unwrap();
            // Held until all are there.
            clients.push(client);
            String::from_utf8_lossy(&text).into_owned()
        };
        let greetings: Vec<String> = (0..BACKENDS).map(greeting).collect();
        different(greetings)
    };
    assert_eq!(greetings(None), 1);
    // Up to the fourth a backend may have ⌈1.01 × 4 / 5⌉, which is one.
    assert!(greetings(Some(101)) >= 4);
}
