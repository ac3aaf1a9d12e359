//! Backends that are addresses of names: a server of DNS says which, and whatever it does, no target is emptied.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use fake_backend::{Fake, Running};
use hickory_resolver::proto::op::ResponseCode;

use super::support::dns::{FakeDns, Says, addresses, alias, services};
use super::support::process::Process;
use super::support::{Client, Stop, eventually};

/// Backends at the same port of 127.0.0.1, 127.0.0.2 and so on; the first is called `at-1`.
fn neighbours(count: u8) -> (u16, Vec<Running>) {
    'next: loop {
        let first = Fake::http("at-1").start_in_thread().unwrap();
        let (port, mut all) = (first.port(), vec![first]);
        for number in 2..=count {
            let address = SocketAddr::from(([127, 0, 0, number], port));
            // Somebody may have it there.
            let Ok(next) = Fake::http(format!("at-{number}")).bind_addr(address).start_in_thread() else {
                continue 'next;
            };
            all.push(next);
        }
        return (port, all);
    }
}

fn at(numbers: &[u8]) -> Vec<String> {
    numbers.iter().map(|number| format!("127.0.0.{number}")).collect()
}

/// A target `web` of which more is said in `target`, whose names this server is asked for every 50 ms.
fn config(dns: &FakeDns, target: &str) -> String {
    format!(
        "resolver: {{servers: '{}', timeout: 300ms, attempts: 1, ttl_min: 50ms, ttl_max: 50ms, hold: 0s}}\n\
         targets: {{web: {{protocol: http, listener: 127.0.0.1:0, health_check: {{interval: 50ms}}, {target}}}}}\n",
        dns.address
    )
}

fn app(dns: &FakeDns, port: u16) -> String {
    config(dns, &format!("backends: [{{dns: app.internal, port: {port}}}]"))
}

/// The same where what is known is to be there when it serves: it waits so long for the first answer.
fn patient(dns: &FakeDns, port: u16) -> String {
    app(dns, port).replace("timeout: 300ms", "timeout: 2s")
}

struct Lab {
    process: Process,
    address: SocketAddr,
}

impl Lab {
    fn start(config: &str) -> Lab {
        let process = Process::start(config, 1);
        let address = process.address("web");
        Lab { process, address }
    }

    /// Who has answered of a few requests, in order.
    fn answering(&self) -> Vec<String> {
        let mut client = Client::connect(self.address);
        let mut all: Vec<String> =
            (0..12).map(|_| client.get("/").text().replace("Hello from ", "")).collect();
        all.sort();
        all.dedup();
        all
    }

    fn comes_to(&self, wanted: &[&str]) {
        eventually(&format!("{wanted:?} answer"), || self.answering() == wanted);
    }

    /// What a command says.
    fn evenkeel(&self, words: &[&str]) -> String {
        String::from_utf8(self.process.command(words).stdout).unwrap()
    }

    fn metrics(&self) -> String {
        let mut stream = UnixStream::connect(self.process.socket()).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// The names of the target's backends.
    fn backends(&self) -> Vec<String> {
        let (status, answer) = self.process.ask("GET /api/v1/targets/web", b"");
        assert_eq!(status, 200, "{answer}");
        let all = answer["backends"].as_array().unwrap().iter();
        all.map(|backend| backend["name"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn each_address_of_a_name_is_a_backend_and_new_ones_come_as_others_go() {
    let (port, _backends) = neighbours(3);
    let dns = FakeDns::start();
    dns.say("app.internal", addresses(0, at(&[1, 2])));
    let lab = Lab::start(&patient(&dns, port));
    assert_eq!(
        Client::connect(lab.address).get("/").status,
        200,
        "before the first client somebody is there"
    );
    lab.comes_to(&["at-1", "at-2"]);
    assert_eq!(
        lab.backends(),
        [format!("app.internal/127.0.0.1:{port}"), format!("app.internal/127.0.0.2:{port}")]
    );
    dns.say("app.internal", addresses(0, at(&[2, 3])));
    lab.comes_to(&["at-2", "at-3"]);
    let left = [format!("app.internal/127.0.0.2:{port}"), format!("app.internal/127.0.0.3:{port}")];
    // What has answered before may still be drained.
    eventually("the first is gone", || lab.backends() == left);
    let told = lab.process.said();
    let line = told.iter().find(|line| line.contains("DNS: ")).unwrap();
    assert!(line.contains(&format!("web/app.internal/127.0.0.3:{port}")), "{line}");
}

/// The last good set stays, whatever is answered; and nobody has to wait for DNS at the start.
#[test]
fn no_failure_empties_a_target() {
    let (port, _backends) = neighbours(2);
    let dns = FakeDns::start();
    dns.say("app.internal", addresses(0, at(&[1, 2])));
    let lab = Lab::start(&patient(&dns, port));
    let is_over = AtomicBool::new(false);
    let served = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let _stop = Stop(&is_over);
        let load = || {
            let mut client = Client::connect(lab.address);
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(client.get("/").status, 200);
                served.fetch_add(1, Ordering::Relaxed);
            }
        };
        let loads = [scope.spawn(load), scope.spawn(load)];
        let kinds = [
            Says::Code(ResponseCode::ServFail),
            Says::Code(ResponseCode::NXDomain),
            Says::Code(ResponseCode::Refused),
            Says::Nothing,
            Says::Lame,
            Says::Silence,
            addresses::<&str>(0, []),
            addresses(0, ["0.0.0.0"]),
            alias(0, "nowhere.internal"),
        ];
        for kind in kinds {
            let before = dns.asked();
            dns.say("app.internal", kind.clone());
            eventually(&format!("{kind:?} has come four times"), || dns.asked() >= before + 8);
            assert_eq!(lab.backends().len(), 2, "{kind:?}");
        }
        is_over.store(true, Ordering::Relaxed);
        loads.into_iter().for_each(|load| load.join().unwrap());
    });
    assert!(served.load(Ordering::Relaxed) > 100);
    let (_, target) = lab.process.ask("GET /api/v1/targets/web", b"");
    let name = &target["names"][0];
    assert_eq!((&name["name"], &name["asked_as"]), (&"app.internal".into(), &"dns".into()));
    assert_eq!(name["addresses"], serde_json::json!(at(&[1, 2])));
    assert_eq!((&name["ttl_ms"], &name["lacked"]), (&50.into(), &serde_json::json!([])));
    assert_eq!(name["trouble"]["reason"], "the name does not exist (NXDOMAIN)");
    assert!(name["answered_age_ms"].as_u64() > name["trouble"]["age_ms"].as_u64(), "{name}");
    let status = lab.evenkeel(&["status", "web"]);
    let lines =
        ["dns app.internal: 2 addresses, answered ", "    ! for ", ": the name does not exist (NXDOMAIN)"];
    assert!(lines.iter().all(|line| status.contains(line)), "{status}");
    let failing = |value| format!("evenkeel_dns_failing{{kind=\"dns\",name=\"app.internal\"}} {value}\n");
    assert!(lab.metrics().contains(&failing(1)), "{}", lab.metrics());
    dns.say("app.internal", addresses(0, at(&[2])));
    lab.comes_to(&["at-2"]);
    assert!(lab.metrics().contains(&failing(0)));
    assert!(lab.metrics().contains("evenkeel_dns_addresses{kind=\"dns\",name=\"app.internal\"} 1\n"));
}

#[test]
fn check_asks_when_it_is_told_to() {
    let dns = FakeDns::start();
    dns.say("app.internal", addresses(30, at(&[1, 2])));
    dns.say("_x._tcp.app.internal", Says::Code(ResponseCode::NXDomain));
    let folder = tempfile::tempdir().unwrap();
    let text = config(&dns, "backends: [{dns: app.internal, port: 80}, {srv: _x._tcp.app.internal}]")
        .replace("timeout: 300ms", "timeout: 5s");
    std::fs::write(folder.path().join("evenkeel.yaml"), text).unwrap();
    let check = |flags: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        let output =
            command.arg("check").arg(folder.path().join("evenkeel.yaml")).args(flags).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(check(&[]).ends_with("the config is valid\n"));
    assert_eq!(dns.asked(), 0);
    let said = check(&["--resolve"]);
    let wanted = "warning: srv _x._tcp.app.internal: the name does not exist (NXDOMAIN)\n\
                  dns app.internal: 2 addresses, TTL 50ms\n  127.0.0.1\n  127.0.0.2\n";
    assert!(said.contains(wanted), "{said}");
}

#[test]
fn a_process_starts_without_dns_and_serves_as_soon_as_there_is_an_answer() {
    let (port, _backends) = neighbours(1);
    let dns = FakeDns::start();
    dns.say("app.internal", Says::Silence);
    let lab = Lab::start(&app(&dns, port));
    let answer = Client::connect(lab.address).get("/");
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(lab.backends().is_empty());
    dns.say("app.internal", addresses(60, at(&[1])));
    lab.comes_to(&["at-1"]);
}

/// Servers that show a part of their answer at a time are many.
#[test]
fn answers_that_rotate_do_not_flap() {
    let (port, _backends) = neighbours(3);
    let dns = FakeDns::start();
    dns.say("app.internal", addresses(0, at(&[1])));
    let lab = Lab::start(&app(&dns, port).replace("hold: 0s", "hold: 1h"));
    for turn in 0..12_u8 {
        let before = dns.asked();
        dns.say("app.internal", addresses(0, at(&[1 + turn % 3])));
        eventually("it was heard", || dns.asked() >= before + 4);
    }
    assert_eq!(lab.answering(), ["at-1", "at-2", "at-3"]);
    let gone = lab.process.said().iter().filter(|line| line.contains("DNS: -")).count();
    assert_eq!(gone, 0, "nobody has left");
}

#[test]
fn what_is_too_long_for_a_datagram_comes_over_tcp_and_chains_of_names_are_followed() {
    let (port, _backends) = neighbours(1);
    let dns = FakeDns::start();
    dns.say("app.internal", alias(0, "one.internal"));
    dns.say("one.internal", alias(0, "two.internal"));
    let all: Vec<String> = (1..=250).map(|number| format!("127.1.0.{number}")).collect();
    dns.say("two.internal", addresses(0, &all));
    let lab = Lab::start(&patient(&dns, port).replace("hold: 0s", "hold: 0s, addresses: 200"));
    assert_eq!(lab.backends().len(), 200, "no more than may be");
    assert!(dns.asked_over_tcp() > 0);
    let told = lab.process.said();
    assert!(
        told.iter().any(|line| line.contains("50 addresses more than `resolver.addresses` (200)")),
        "{told:#?}"
    );
}

#[test]
fn services_say_where_and_how_much() {
    let (port, _backends) = neighbours(3);
    let dns = FakeDns::start();
    dns.say(
        "_http._tcp.app.internal",
        services(
            0,
            &[(10, 300, port, "a.internal"), (10, 100, port, "b.internal"), (20, 0, port, "c.internal")],
        ),
    );
    for (host, number) in [("a", 1), ("b", 2), ("c", 3)] {
        dns.say(&format!("{host}.internal"), addresses(0, at(&[number])));
    }
    let lab = Lab::start(&config(&dns, "backends: [{srv: _http._tcp.app.internal}]"));
    lab.comes_to(&["at-1", "at-2"]);
    let (_, target) = lab.process.ask("GET /api/v1/targets/web", b"");
    let said: Vec<(String, u64, u64)> = target["backends"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let number = |key: &str| one[key].as_u64().unwrap();
            (one["name"].as_str().unwrap().to_owned(), number("weight"), number("priority"))
        })
        .collect();
    let name = |number: u8| format!("_http._tcp.app.internal/127.0.0.{number}:{port}");
    assert_eq!(said, [(name(1), 256, 0), (name(2), 85, 0), (name(3), 1, 1)]);
    // A host that can't be found out now is as it was; one that the records lack is not.
    dns.say("a.internal", Says::Code(ResponseCode::ServFail));
    dns.say(
        "_http._tcp.app.internal",
        services(0, &[(10, 300, port, "a.internal"), (20, 0, port, "c.internal")]),
    );
    lab.comes_to(&["at-1"]);
    // The connection over which it was asked may still be drained.
    eventually("the second is gone", || lab.backends() == [name(1), name(3)]);
}

/// It would have been a change by a config that nobody has taken.
#[test]
fn a_config_that_is_refused_changes_nothing_about_names() {
    let (port, _backends) = neighbours(3);
    let (dns, other) = (FakeDns::start(), FakeDns::start());
    dns.say("app.internal", addresses(0, at(&[1, 2])));
    other.say("app.internal", addresses(0, at(&[3])));
    let lab = Lab::start(&patient(&dns, port));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let more = format!(
        "  mail: {{listener: '{}', health_check: off, backends: [{{dns: mail.internal, port: 25}}]}}\n",
        taken.local_addr().unwrap()
    );
    for refused in [
        patient(&other, port) + &more,
        patient(&dns, port).replace("hold: 0s", "hold: 0s, addresses: 1") + &more,
    ] {
        let said = lab.process.reload(&refused);
        assert!(said.contains("reload refused"), "{said}");
        let before = dns.asked();
        eventually("it asks as before", || dns.asked() >= before + 8);
        assert_eq!(lab.answering(), ["at-1", "at-2"]);
    }
    let told = lab.process.said();
    assert!(!told.iter().any(|line| line.contains("DNS: ")), "{told:#?}");
}

#[test]
fn a_rollback_brings_back_what_was_known_also_while_nobody_answers() {
    let (port, _backends) = neighbours(2);
    let dns = FakeDns::start();
    dns.say("app.internal", addresses(0, at(&[1, 2])));
    let lab = Lab::start(&patient(&dns, port));
    dns.say("app.internal", Says::Silence);
    let (status, answer) = lab.process.ask(
        "POST /api/v1/config/apply?confirm=120\nContent-Type: application/yaml",
        config(&dns, &format!("backends: [{{host: 127.0.0.1, port: {port}}}]")).as_bytes(),
    );
    assert_eq!(status, 200, "{answer}");
    assert_eq!(lab.backends(), [format!("127.0.0.1:{port}")]);
    let (status, answer) = lab.process.ask("POST /api/v1/config/rollback", b"");
    assert_eq!(status, 200, "{answer}");
    assert_eq!(lab.backends().len(), 2);
    lab.comes_to(&["at-1", "at-2"]);
}

/// Hosts that are silent, ports where nobody can be and addresses of another kind take nothing from the rest.
#[test]
fn one_bad_part_of_a_service_takes_nothing_from_the_others() {
    let (port, _backends) = neighbours(2);
    let dns = FakeDns::start();
    let mut records =
        vec![(10, 1, port, "a.internal"), (10, 1, 0, "b.internal"), (10, 1, port, "B.internal")];
    let silent: Vec<String> = (0..40).map(|number| format!("silent-{number}.internal")).collect();
    records.extend(silent.iter().map(|host| (10, 1, port, &**host)));
    dns.say("_http._tcp.app.internal", services(0, &records));
    silent.iter().for_each(|host| dns.say(host, Says::Silence));
    dns.say("a.internal", addresses(0, at(&[1])));
    dns.say(
        "b.internal",
        addresses(0, ["127.0.0.2", "::ffff:127.0.0.1", "fe80::1", "255.255.255.255", "0.0.0.5"]),
    );
    let text =
        config(&dns, "backends: [{srv: _http._tcp.app.internal, family: ipv4}]").replace("300ms", "100ms");
    let lab = Lab::start(&text);
    lab.comes_to(&["at-1", "at-2"]);
    assert_eq!(lab.backends().len(), 2, "{:?}", lab.backends());
}

#[test]
fn a_target_without_an_address_says_so() {
    let dns = FakeDns::start();
    let lab = Lab::start(&app(&dns, 80));
    eventually("it is down", || lab.evenkeel(&["status", "web"]).contains("! web is down"));
    let status = lab.evenkeel(&["status"]);
    assert!(
        status.contains("no address is known of its names") && status.contains("NOT UP: web (down)"),
        "{status}"
    );
    eventually("it is told", || {
        lab.process.said().iter().any(|line| line.contains("target web: no backend left"))
    });
}

#[test]
fn files_of_backends_are_watched_and_a_broken_one_changes_nothing() {
    let (port, _backends) = neighbours(3);
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("more.yaml");
    let write = |text: &str| {
        std::fs::write(list.with_extension("new"), text).unwrap();
        std::fs::rename(list.with_extension("new"), &list).unwrap();
    };
    let item = |number: u8| format!("- {{host: 127.0.0.{number}, port: {port}}}\n");
    write(&item(1));
    let text = "targets: {web: {protocol: http, listener: 127.0.0.1:0, health_check: {interval: 50ms}, backends: [{file: more.yaml}]}}\n";
    std::fs::write(folder.path().join("evenkeel.yaml"), text).unwrap();
    let process = Process::start_in(folder, 1);
    let address = process.address("web");
    let lab = Lab { process, address };
    assert_eq!(lab.answering(), ["at-1"]);
    write(&(item(2) + &item(3)));
    lab.comes_to(&["at-2", "at-3"]);
    for broken in ["", "[]", "- {host: 127.0.0.1}\n", "- [\n"] {
        // Also of the reload before it may be told only now.
        let refused = || {
            let all = lab.process.reloads();
            all.iter().filter(|line| line.contains("reload refused") && line.contains("more.yaml")).count()
        };
        let before = refused();
        write(broken);
        eventually("it is refused", || refused() > before);
        assert_eq!(lab.answering(), ["at-2", "at-3"]);
    }
    write(&item(1));
    lab.comes_to(&["at-1"]);
}
