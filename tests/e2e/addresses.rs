//! Addresses of backends: several of one name, of which some do not answer (connections to them begin in turn and do not wait
//! for one another: RFC 8305), and one that no local port is left for.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use evenkeel::config::model::Protocol;
use evenkeel::net::now;
use evenkeel::targets::{Circuit, Health};
use fake_backend::{Fake, Running};

use super::life_lab::{
    Deaf, by_name, connect, probe, read_to_end, reset_on_close, status, tcp, tcp_fakes, until,
};
use super::support::{Keel, config, eventually, fakes, quick_health};

const HOUR: Duration = Duration::from_secs(3600);

/// A backend on 127.0.0.1 and a socket on 127.0.0.2 that answers no handshake, on one port.
fn beside(start: impl Fn(SocketAddr) -> std::io::Result<Running>) -> (Running, Deaf) {
    loop {
        let deaf = Deaf::on(IpAddr::from([127, 0, 0, 2]));
        // The other address may have been taken meanwhile.
        if let Ok(running) = start(SocketAddr::from(([127, 0, 0, 1], deaf.address.port()))) {
            return (running, deaf);
        }
    }
}

/// In front of a backend by name that then gets these addresses. What waits for a connection waits for an hour.
fn named(protocol: Protocol, port: u16, addresses: &[[u8; 4]]) -> Keel {
    let mut config = config(protocol, &[]);
    config.targets[0].backends.push(by_name("localhost", port));
    config.targets[0].timeouts.connect = HOUR;
    let keel = Keel::start(&config);
    until(&keel, 0, Health::Up);
    readdress(&keel, addresses);
    keel
}

fn readdress(keel: &Keel, addresses: &[[u8; 4]]) {
    let addresses: Vec<IpAddr> = addresses.iter().copied().map(IpAddr::from).collect();
    let target = &keel.server.targets()[0];
    drop(target.state.resolve(&target.backends[0], Ok(&addresses), now()));
}

#[test]
fn an_address_that_does_not_answer_does_not_use_up_the_time_of_the_next() {
    let (backend, deaf) = beside(|address| Fake::http("fake-1").bind_addr(address).start_in_thread());
    for addresses in [
        &[[127, 0, 0, 2], [127, 0, 0, 1]][..],
        // Nobody is at the third.
        &[[127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 1]],
        &[[127, 0, 0, 3], [127, 0, 0, 2], [127, 0, 0, 1]],
    ] {
        let keel = named(Protocol::Http, deaf.address.port(), addresses);
        assert_eq!(keel.client().get("/").text(), "Hello from fake-1");
    }
    assert_eq!(backend.requests(), 3);
}

#[test]
fn a_tcp_connection_goes_to_the_address_that_answers() {
    let (_backend, deaf) = beside(|address| Fake::tcp("fake-1").bind_addr(address).start_in_thread());
    let keel = named(Protocol::Tcp, deaf.address.port(), &[[127, 0, 0, 2], [127, 0, 0, 1]]);
    assert_eq!(read_to_end(&mut connect(keel.address())).unwrap(), b"Hello from fake-1");
}

#[test]
fn a_probe_does_not_wait_for_an_address_that_does_not_answer() {
    let (backend, deaf) = beside(|address| Fake::http("fake-1").bind_addr(address).start_in_thread());
    let mut config = config(Protocol::Http, &[]);
    config.targets[0].backends.push(by_name("localhost", deaf.address.port()));
    let mut health = quick_health();
    health.timeout = HOUR;
    probe(&mut config, health);
    let keel = Keel::start(&config);
    until(&keel, 0, Health::Up);
    readdress(&keel, &[[127, 0, 0, 2], [127, 0, 0, 1]]);
    let probes = backend.stats().probes;
    eventually("it is probed again", || backend.stats().probes >= probes + 3);
}

/// What is run in a network of its own: 64 local ports towards any one address. 77: that can't be had here.
const SMALL_NETWORK: &str = "ip link set lo up && echo '40000 40063' > /proc/sys/net/ipv4/ip_local_port_range || exit 77\n\
                             exec \"$0\" --exact addresses::where_local_ports_are_few --ignored";

#[test]
#[expect(clippy::print_stderr, reason = "who runs the tests is to know what was skipped")]
fn a_lack_of_local_ports_towards_one_backend_leaves_the_others() {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--net", "--map-root-user", "--", "sh", "-c", SMALL_NETWORK]).arg(own);
    match command.output() {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("1 passed"), "{said}");
        }
        // So does `unshare` where it may not.
        Ok(output) if matches!(output.status.code(), Some(1 | 77)) => {
            eprintln!("skipped: no network of its own here")
        }
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stdout)),
        Err(_) => eprintln!("skipped: no unshare here"),
    }
}

#[test]
#[ignore = "run by the test above"]
fn where_local_ports_are_few() {
    let (http, raw) = (fakes(2), tcp_fakes(2, |fake| fake));
    let keel = Keel::http(&[&http[0], &http[1]]);
    let relay = tcp(&[&raw[0], &raw[1]], |_| ());
    let use_up = |backend: &Running| -> Vec<TcpStream> {
        std::iter::from_fn(|| match TcpStream::connect(backend.addr()) {
            Ok(stream) => Some(stream),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::AddrNotAvailable, "{error}");
                None
            }
        })
        .collect()
    };
    let held = [use_up(&http[0]), use_up(&raw[0])];
    assert!(held.iter().all(|held| held.len() > 10), "{held:?}");
    for _ in 0..10 {
        // Not to be repeated, but nothing of it was sent.
        assert_eq!(keel.client().post("/", b"x").text(), "Hello from fake-2");
        assert_eq!(read_to_end(&mut connect(relay.address())).unwrap(), b"Hello from fake-2");
    }
    for keel in [&keel, &relay] {
        let passed_over = status(keel, 0);
        assert_eq!((passed_over.ejected_until, passed_over.circuit), (None, Circuit::Closed));
    }
    // Where there is nobody else, the cause says what is missing.
    http[1].stop();
    // A connection for each would use up what they need themselves.
    let mut client = keel.client();
    eventually("its own cause", || {
        let answer = client.get("/");
        answer.status == 503 && answer.text().contains("cause: no_local_port")
    });
    held.iter().flatten().for_each(reset_on_close);
    drop(held);
    eventually("it is used again", || client.get("/").text() == "Hello from fake-1");
}
