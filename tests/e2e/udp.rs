//! UDP targets: flows, their backends, and who gets what.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::eventually;
use super::support::port::unused_udp;
use super::support::process::Process;
use super::udp_lab::{Echo, UdpClient, config, echoes, metric};

/// Who has answered.
fn name(said: &str) -> &str {
    said.split(':').next().unwrap()
}

#[test]
fn a_datagram_goes_to_a_backend_and_its_answer_comes_back() {
    let backends = echoes(2);
    let process = Process::start(&config(&backends, ""), 1);
    let [first, second] = [(), ()].map(|()| UdpClient::to(process.address("game")));
    let said = [first.ask("one"), second.ask("two")];
    let mut names: Vec<&str> = said.iter().map(|said| name(said)).collect();
    names.sort_unstable();
    assert_eq!(names, ["b0", "b1"], "{said:?}");
    for text in ["three", "", "four"] {
        let again = first.ask(text);
        let (name, rest) = again.split_once(':').unwrap();
        assert_eq!(rest, text);
        assert!(said[0].starts_with(&format!("{name}:")), "a flow stays where it is: {said:?} {again}");
    }
    assert_eq!(backends.iter().map(Echo::heard).sum::<u64>(), 5);
    let long = "x".repeat(1200);
    assert!(first.ask(&long).ends_with(&long));
    let longest = vec![b'y'; 60_000];
    second.send(&longest);
    assert!(second.receive().ends_with(&longest));
}

#[test]
fn every_algorithm_spreads_flows_and_a_hash_keeps_a_client_over_a_restart() {
    let backends = echoes(3);
    for balance in ["round_robin", "least_connections", "random", "maglev", "ring_hash"] {
        let config = config(&backends, &format!("    balance: {balance}\n"));
        let process = Process::start(&config, 1);
        let ask = |process: &Process| {
            let answers = (2..40).map(|host| {
                let own = format!("127.0.0.{host}:0");
                name(&UdpClient::from(&own, process.address("game")).ask("x")).to_owned()
            });
            answers.collect::<Vec<String>>()
        };
        let before = ask(&process);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        before.iter().for_each(|name| *counts.entry(name).or_default() += 1);
        assert_eq!(counts.len(), 3, "{balance}: {counts:?}");
        if matches!(balance, "round_robin" | "least_connections") {
            assert!(counts.values().all(|count| (12..=13).contains(count)), "{balance}: {counts:?}");
        }
        drop(process);
        if matches!(balance, "maglev" | "ring_hash") {
            assert_eq!(ask(&Process::start(&config, 1)), before, "{balance}");
        }
    }
}

#[test]
fn nobody_but_the_backend_of_a_flow_is_heard_and_nobody_but_its_client_hears_it() {
    let backends = echoes(1);
    let process = Process::start(&config(&backends, ""), 1);
    let client = UdpClient::to(process.address("game"));
    client.ask("hello");
    // Where its leg is: somebody else on this machine may send there as well.
    let port = super::udp_lab::peer_of(process.id(), backends[0].address.port()).expect("a leg");
    let stranger = UdpClient::to(([127, 0, 0, 1], port).into());
    stranger.send(b"forged");
    client.send(b"again");
    assert_eq!(client.receive(), b"b0:again");
    assert_eq!(client.receive_within(Duration::from_millis(200)), None);
}

#[test]
fn silence_ends_a_flow_and_leaves_a_line_in_the_log() {
    let backends = echoes(1);
    let more = "    timeouts: {flow: 2s}\n";
    let process = Process::start(&config(&backends, more), 1);
    let client = UdpClient::to(process.address("game"));
    client.ask("hello");
    let status = || process.ask("GET /api/v1/status", b"").1;
    eventually("the flow has ended", || status()["listeners"][0]["connections"] == 0);
    eventually("it is in the log", || {
        process.records().iter().any(|line| line["kind"] == "udp" && line["bytes_in"] == 5)
    });
    assert_eq!(client.ask("again"), "b0:again", "the next datagram begins another");
}

#[test]
fn a_backend_that_is_gone_loses_at_most_one_datagram_of_each_flow() {
    let mut backends = echoes(2);
    let process = Process::start(&config(&backends, ""), 1);
    let clients: Vec<UdpClient> = (0..16).map(|_| UdpClient::to(process.address("game"))).collect();
    let at: Vec<String> = clients.iter().map(|client| name(&client.ask("x")).to_owned()).collect();
    assert_eq!(at.iter().filter(|name| *name == "b0").count(), 8);
    drop(backends.remove(0));
    for (client, at) in clients.iter().zip(&at) {
        // The first one of a flow that was there may be lost, and no other: each waits for what becomes of the one before it.
        client.send(b"0");
        let first = match &**at {
            "b0" => client.receive_within(Duration::from_millis(300)),
            _ => Some(client.receive()),
        };
        assert!(first.as_ref().is_none_or(|first| first == b"b1:0"), "{first:?}");
        for number in 1..5 {
            client.send(number.to_string().as_bytes());
            let mut said = client.receive();
            if number == 1 && first.is_none() && said == b"b1:0" {
                // It was late.
                said = client.receive();
            }
            assert_eq!(said, format!("b1:{number}").as_bytes());
        }
    }
    let (_, target) = process.ask("GET /api/v1/targets/game", b"");
    assert_eq!(target["backends"][0]["inputs"][5]["says"], "ejected", "{target}");
}

#[test]
fn a_drain_moves_flows_and_loses_nothing() {
    let backends = echoes(2);
    let process = Process::start(&config(&backends, ""), 1);
    let clients: Vec<UdpClient> = (0..8).map(|_| UdpClient::to(process.address("game"))).collect();
    clients.iter().for_each(|client| {
        client.ask("x");
    });
    let patch = |body| {
        let (status, answer) = process
            .ask("PATCH /api/v1/targets/game/backends/b0", json!({ "state": body }).to_string().as_bytes());
        assert_eq!(status, 200, "{answer}");
    };
    patch("drain");
    for client in &clients {
        assert_eq!(client.ask("y"), "b1:y");
    }
    let heard = backends[0].heard();
    patch("up");
    patch("down");
    for client in &clients {
        assert_eq!(client.ask("z"), "b1:z");
    }
    assert_eq!(backends[0].heard(), heard, "nothing more went there");
}

#[test]
fn who_has_not_shown_that_it_is_there_gets_only_so_many_times_what_it_has_sent() {
    let backends = echoes(1);
    let process = Process::start(&config(&backends, "    limits: {reply_factor: 3}\n"), 1);
    backends[0].answer(5);
    let client = UdpClient::to(process.address("game"));
    // Each answer has 13 bytes, and so two of them are within three times ten.
    client.send(&[b'a'; 10]);
    assert_eq!([client.receive().len(), client.receive().len()], [13, 13]);
    let dropped = || metric(&process, "evenkeel_udp_dropped_total", "reason=\"reply_factor\"");
    eventually("the rest is dropped", || dropped() == 3);
    assert_eq!(client.receive_within(Duration::from_millis(200)), None);
    // It has answered an answer: it is there.
    client.send(&[b'a'; 10]);
    for _ in 0..5 {
        assert_eq!(client.receive().len(), 13);
    }
}

#[test]
fn where_there_is_no_room_strangers_without_an_answer_make_way_and_nobody_else() {
    let backends = echoes(1);
    let process = Process::start(
        &config(&backends, "    limits: {connections: 4}\n").replace("workers: 2", "workers: 1"),
        1,
    );
    // Each has an address of its own: one that has rested makes way for others of its address.
    let from = |number: u8| UdpClient::from(&format!("127.0.0.{number}:0"), process.address("game"));
    let proven: Vec<UdpClient> = (11..14).map(from).collect();
    for client in &proven {
        client.ask("one");
        client.ask("two");
    }
    // From now on the backend says nothing.
    backends[0].answer(0);
    let strangers: Vec<UdpClient> = (0..50).map(|_| UdpClient::to(process.address("game"))).collect();
    strangers.iter().for_each(|stranger| stranger.send(b"?"));
    eventually("they have all come", || backends[0].heard() == 6 + 50);
    assert_eq!(metric(&process, "evenkeel_udp_evicted_total", ""), 49);
    backends[0].answer(1);
    for client in &proven {
        assert_eq!(client.ask("three"), "b0:three");
    }
    let fourth = from(14);
    fourth.ask("one");
    fourth.ask("two");
    // All four are proven: nobody makes way.
    let late = from(15);
    late.send(b"late");
    let refused = || metric(&process, "evenkeel_udp_dropped_total", "reason=\"refused\"");
    eventually("it is refused", || refused() == 1);
    assert_eq!(late.receive_within(Duration::from_millis(200)), None);
    eventually("why is told", || {
        let is_it = |line: &Value| line["cause"] == "too_many_connections" && line["kind"] == "udp";
        process.records().iter().any(is_it)
    });
}

#[test]
fn lists_and_rates_hold_for_flows_and_who_is_blocked_is_cut() {
    let backends = echoes(1);
    let more = "    access: [{deny: [127.0.0.9]}]\n    rate_limit: [few]\n";
    let config = format!(
        "rate_limits: {{few: {{rate: 1/h, burst: 2, by: [client_ip]}}}}\n{}",
        config(&backends, more)
    );
    let process = Process::start(&config, 1);
    let address = process.address("game");
    let silent = |client: &UdpClient| client.receive_within(Duration::from_millis(200)).is_none();
    let denied = UdpClient::from("127.0.0.9:0", address);
    denied.send(b"x");
    assert!(silent(&denied));
    let [first, second, third] = [(); 3].map(|()| UdpClient::from("127.0.0.8:0", address));
    assert_eq!((first.ask("x"), second.ask("y")), ("b0:x".to_owned(), "b0:y".to_owned()));
    third.send(b"z");
    assert!(silent(&third), "the third flow of this client is too soon");
    assert_eq!(first.ask("again"), "b0:again", "a datagram of a flow is none");
    let (status, answer) = process.ask("POST /api/v1/access/blocked/entries", br#"{"network": "127.0.0.8"}"#);
    assert!(matches!(status, 200 | 201), "{answer}");
    first.send(b"x");
    assert!(silent(&first), "it is blocked");
    eventually("all of it is in the log", || {
        let log = process.records();
        let causes = ["access_denied", "rate_limited", "blocked"];
        causes.iter().all(|cause| log.iter().any(|line| line["cause"] == *cause))
    });
}

#[test]
fn probes_of_udp_take_a_backend_out_and_bring_it_back() {
    let backends = echoes(2);
    let more =
        "    health_check: {send: ping, receive: ':ping', interval: 50ms, timeout: 2s, fall: 2, rise: 1}\n";
    let process = Process::start(&config(&backends, more), 1);
    let client = UdpClient::to(process.address("game"));
    assert!(client.ask("x").ends_with(":x"), "it waits for the first verdict");
    let state = |number: usize| {
        let (_, target) = process.ask("GET /api/v1/targets/game", b"");
        target["backends"][number]["state"].as_str().unwrap().to_owned()
    };
    eventually("both are up", || (state(0), state(1)) == ("up".to_owned(), "up".to_owned()));
    backends[0].answer(0);
    eventually("one is down", || state(0) == "down");
    for _ in 0..4 {
        assert!(UdpClient::to(process.address("game")).ask("y").starts_with("b1:"));
    }
    backends[0].answer(1);
    eventually("it is back", || state(0) == "up");
}

#[test]
fn a_reload_keeps_flows_and_a_listener_that_is_gone_lets_its_flows_go() {
    let backends = echoes(2);
    let one = config(&backends, "");
    let process = Process::start(&one, 1);
    let client = UdpClient::to(process.address("game"));
    let before = client.ask("x");
    let said = process.reload(&one.replace("protocol: udp", "protocol: udp\n    timeouts: {flow: 20s}"));
    assert!(!said.contains("refused"), "{said}");
    assert_eq!(name(&client.ask("y")), name(&before));
    let other = "targets:\n  web:\n    protocol: tcp\n    listener: 127.0.0.1:0\n    backends: [{host: 127.0.0.1, port: 1}]\n";
    let address = process.address("game");
    process.reload(other);
    eventually("nobody listens there any more", || std::net::UdpSocket::bind(address).is_ok());
}

#[test]
fn a_shutdown_waits_for_an_answer_and_not_for_silence() {
    let backends = echoes(1);
    let mut process = Process::start(&config(&backends, ""), 1);
    let client = UdpClient::to(process.address("game"));
    client.ask("x");
    process.terminate();
    eventually("it has ended", || process.has_ended());
    assert_eq!(backends[0].heard(), 1);
}

#[test]
fn backends_that_are_all_gone_cost_no_socket_for_each_datagram_and_come_back() {
    let (_guards, addresses): (Vec<_>, Vec<_>) = (0..2).map(|_| unused_udp()).unzip();
    let backends: Vec<Echo> = addresses.iter().map(|at| Echo::start_at("front", *at)).collect();
    let text = config(&backends, "    breaker: off\n");
    let far = format!("host: {}", addresses[0].ip());
    let process = Process::start(&text.replace("host: 127.0.0.1", &far), 1);
    let client = UdpClient::to(process.address("game"));
    client.ask("x");
    drop(backends);
    for _ in 0..200 {
        client.send(b"y");
    }
    eventually("all of it has come", || metric(&process, "evenkeel_udp_datagrams_total", "received") == 201);
    let sockets = || {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", process.id())).unwrap();
        fds.filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok())
            .filter(|link| link.to_string_lossy().starts_with("socket:"))
            .count()
    };
    assert!(sockets() < 40, "{}", sockets());
    // They answer nothing from now on, and are there.
    let backends: Vec<Echo> = addresses.iter().map(|at| Echo::start_at("back", *at)).collect();
    backends.iter().for_each(|backend| backend.answer(0));
    let mut sent = 0;
    eventually("one hears it again", || {
        client.send(b"z");
        sent += 1;
        backends.iter().map(Echo::heard).sum::<u64>() >= 5
    });
    assert!(sockets() < 40, "{} after {sent}", sockets());
}

#[test]
fn who_waits_for_a_first_verdict_has_one_flow_however_often_he_asks() {
    let backends = echoes(3);
    backends.iter().for_each(|backend| backend.hold(true));
    let more = "    health_check: {send: ping, receive: ':ping', interval: 50ms, timeout: 20s, rise: 1}\n";
    let process = Process::start(&config(&backends, more), 1);
    let client = UdpClient::to(process.address("game"));
    for number in 0..4 {
        client.send(format!("{number}").as_bytes());
    }
    eventually("they have come", || metric(&process, "evenkeel_udp_datagrams_total", "received") == 4);
    backends.iter().for_each(|backend| backend.hold(false));
    let answers: Vec<String> = (0..4).map(|_| String::from_utf8(client.receive()).unwrap()).collect();
    assert!(answers.iter().all(|answer| name(answer) == name(&answers[0])), "{answers:?}");
    let status = process.ask("GET /api/v1/status", b"").1;
    assert_eq!(status["listeners"][0]["connections"], 1, "{answers:?}");
}

#[test]
fn a_leg_that_a_flow_has_left_gives_no_more_than_the_flow_could_have() {
    let backends = echoes(2);
    let process = Process::start(&config(&backends, "    limits: {reply_factor: 3}\n"), 1);
    let client = UdpClient::to(process.address("game"));
    let first = client.ask("0123456789");
    let at = if name(&first) == "b0" { 0 } else { 1 };
    let (status, answer) = process.ask(
        &format!("PATCH /api/v1/targets/game/backends/b{at}"),
        json!({ "state": "drain" }).to_string().as_bytes(),
    );
    assert_eq!(status, 200, "{answer}");
    // Not behind an answer of the one that it goes to now: what it has sent before the first was answered does not count.
    let other = UdpClient::to(process.address("game"));
    backends[1 - at].answer(50);
    other.send(b"0123456789");
    let _ = (other.receive(), other.receive());
    assert_eq!(other.receive_within(Duration::from_millis(200)), None);
}

#[test]
fn a_storm_leaves_room_for_connections() {
    let backends = echoes(1);
    backends[0].answer(0);
    let tcp = fake_backend::Fake::tcp("t").start_in_thread().unwrap();
    let web = format!(
        "  web:\n    protocol: tcp\n    listener: 127.0.0.1:0\n    backends: [{{host: 127.0.0.1, port: {}}}]\n",
        tcp.port()
    );
    let config =
        format!("max_connections: 40\n{}{web}", config(&backends, "")).replace("workers: 2", "workers: 1");
    let process = Process::start(&config, 2);
    eventually("a connection is served beside them", || {
        for _ in 0..20 {
            UdpClient::to(process.address("game")).send(b"?");
        }
        let mut socket = std::net::TcpStream::connect(process.address("web")).unwrap();
        let mut said = String::new();
        let _ = std::io::Read::read_to_string(&mut socket, &mut said);
        said == "Hello from t"
    });
}

#[test]
fn a_flow_of_so_many_answers_is_over_when_they_are_there() {
    let backends = echoes(1);
    let process = Process::start(&config(&backends, "    limits: {replies: 2}\n"), 1);
    let client = UdpClient::to(process.address("game"));
    let open = || process.ask("GET /api/v1/status", b"").1["listeners"][0]["connections"].as_u64().unwrap();
    client.ask("x");
    assert_eq!(open(), 1, "one answer is missing");
    backends[0].answer(3);
    // Two datagrams may have four answers: with one there already, the third of these is the last.
    client.send(b"y");
    let _ = (client.receive(), client.receive(), client.receive());
    eventually("it is over", || open() == 0);
    assert_eq!(client.receive_within(Duration::from_millis(200)), None);
    backends[0].answer(1);
    assert_eq!(client.ask("again"), "b0:again", "the next begins another");
}

#[test]
fn what_goes_one_way_is_no_reason_to_wait_at_the_end() {
    let backends = echoes(1);
    backends[0].answer(0);
    let mut process = Process::start(&config(&backends, ""), 1);
    let client = UdpClient::to(process.address("game"));
    client.send(b"a line");
    client.send(b"another");
    eventually("both have come", || backends[0].heard() == 2);
    process.terminate();
    eventually("it has ended", || process.has_ended());
    eventually("it has cut nothing", || {
        process.said().iter().any(|line| line.contains("everything was finished"))
    });
}
