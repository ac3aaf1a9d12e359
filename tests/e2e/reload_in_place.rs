//! What a reload changes under whoever uses it: logs, checks, addresses, and how little of the rest it touches.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenkeel::config::model::{AccessLog, Bind, Config, LogFormat, LogPath, Protocol, Share, Template};
use evenkeel::message::Cause;
use evenkeel::reload::Refused;
use evenkeel::snapshot::Snapshots;
use evenkeel::targets::Health;
use fake_backend::{Behaviour, Running};

use super::support::port::Reserved;
use super::support::{self, Client, Keel, Stop, all_to, backend, config, eventually, fakes, quick_health};

fn log_at(folder: &tempfile::TempDir, name: &str) -> Option<AccessLog> {
    let path = LogPath::File(folder.path().join(name));
    Some(AccessLog { path, format: LogFormat::Json, sample: Share::ALL })
}

fn lines(folder: &tempfile::TempDir, name: &str) -> usize {
    std::fs::read_to_string(folder.path().join(name)).unwrap_or_default().lines().count()
}

#[test]
fn a_request_under_way_is_logged_where_it_ends_and_none_twice() {
    let (backends, folder) = (fakes(1), tempfile::tempdir().unwrap());
    let of = |log| Config { access_log: log, ..config(Protocol::Http, &[backends[0].addr()]) };
    let keel = Keel::start(&of(log_at(&folder, "a")));
    let mut client = keel.client();
    assert_eq!(client.get("/").status, 200);
    backends[0].behave(Behaviour::default().latency(Duration::from_secs(3)).times(1));
    client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is under way", || backends[0].requests() == 2);
    keel.reload(&of(log_at(&folder, "b"))).unwrap();
    assert_eq!(client.answer().status, 200);
    keel.reload(&of(None)).unwrap();
    eventually("each has its own", || (lines(&folder, "a"), lines(&folder, "b")) == (1, 1));
    assert_eq!(client.get("/").status, 200);
    keel.reload(&of(log_at(&folder, "a"))).unwrap();
    assert_eq!(client.get("/").status, 200);
    eventually("it is appended to", || lines(&folder, "a") == 2);
    assert_eq!(keel.server.readings().access_dropped, 0);
}

#[test]
fn a_log_that_can_not_be_opened_changes_nothing_and_leaves_nothing_behind() {
    let (backends, folder) = (fakes(2), tempfile::tempdir().unwrap());
    let of = |backend: &Running, log| Config { access_log: log, ..config(Protocol::Http, &[backend.addr()]) };
    let keel = Keel::start(&of(&backends[0], log_at(&folder, "a")));
    std::fs::create_dir(folder.path().join("b")).unwrap();
    assert!(matches!(keel.reload(&of(&backends[1], log_at(&folder, "b"))), Err(Refused::AccessLog(_))));
    // Neither does a reload that something else refuses leave the file of its log.
    let mut other = of(&backends[1], log_at(&folder, "c"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    other.listeners[0].binds.push(Bind::Tcp(taken.local_addr().unwrap()));
    assert!(matches!(keel.reload(&other), Err(Refused::Bind(_))));
    assert!(!folder.path().join("c").exists());
    assert_eq!(keel.client().get("/").text(), "Hello from fake-1");
    eventually("the old one goes on", || lines(&folder, "a") == 1);
}

#[test]
fn another_form_is_in_force_for_the_next_record() {
    let (backends, folder) = (fakes(1), tempfile::tempdir().unwrap());
    let of = |format| {
        let log = log_at(&folder, "a").map(|log| AccessLog { format, ..log });
        Config { access_log: log, ..config(Protocol::Http, &[backends[0].addr()]) }
    };
    let keel = Keel::start(&of(LogFormat::Json));
    let mut client = keel.client();
    assert_eq!(client.get("/one").status, 200);
    keel.reload(&of(LogFormat::Template(Template::parse("<{path}>").unwrap()))).unwrap();
    assert_eq!(client.get("/two").status, 200);
    let text = || std::fs::read_to_string(folder.path().join("a")).unwrap();
    eventually("both are there", || text().lines().count() == 2);
    let text = text();
    let (first, second) = text.trim_end().split_once('\n').unwrap();
    assert!(first.starts_with('{') && first.contains("\"/one\"") && second == "</two>", "{text}");
}

/// What fails of a client that opens connection after connection to this address until it is told to stop.
fn knocking(address: SocketAddr, stop: &AtomicBool) -> (usize, usize) {
    let (mut good, mut bad) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        match Client::connect(address).get("/").status {
            200 => good += 1,
            _ => bad += 1,
        }
    }
    (good, bad)
}

#[test]
fn an_address_goes_from_one_to_all_and_back_without_losing_a_connection() {
    let backends = fakes(1);
    let reserved = Reserved::on(Ipv4Addr::UNSPECIFIED);
    let address: SocketAddr = (Ipv4Addr::LOCALHOST, reserved.number()).into();
    let stop = AtomicBool::new(false);
    let at = |ip: Ipv4Addr| {
        let mut config = config(Protocol::Http, &[backends[0].addr()]);
        config.listeners[0].binds = vec![Bind::Tcp((ip, address.port()).into())];
        config
    };
    let keel = Keel::start(&at(Ipv4Addr::LOCALHOST));
    let mut kept = keel.client();
    assert_eq!(kept.get("/").status, 200);
    let (good, bad) = std::thread::scope(|scope| {
        let knocking = scope.spawn(|| knocking(address, &stop));
        let ends = Stop(&stop);
        for ip in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
            let before = backends[0].requests();
            keel.reload(&at(ip)).unwrap();
            assert_eq!(keel.address(), (ip, address.port()).into());
            assert_eq!(Client::connect(address).get("/").status, 200);
            eventually("it goes on", || backends[0].requests() > before + 1);
        }
        drop(ends);
        knocking.join().unwrap()
    });
    assert!(good > 3 && bad == 0, "{good} {bad}");
    assert_eq!(kept.get("/").status, 200);
    assert_eq!(keel.server.readings().ended_with(Cause::Shutdown), 0);
    // Also when what is refused for another reason had it already.
    let mut refused = at(Ipv4Addr::LOCALHOST);
    refused.access_log = Some(AccessLog {
        path: LogPath::File("/no/such/folder/a.log".into()),
        format: LogFormat::Json,
        sample: Share::ALL,
    });
    assert!(keel.reload(&refused).is_err());
    assert_eq!(Client::connect(address).get("/").status, 200);
    assert_eq!(keel.address(), (Ipv4Addr::UNSPECIFIED, address.port()).into());
}

#[test]
fn an_address_that_was_just_given_up_can_be_had_again() {
    let backends = fakes(1);
    let reserved = Reserved::new();
    let address: SocketAddr = (Ipv4Addr::LOCALHOST, reserved.number()).into();
    let at = |bind| {
        let mut config = config(Protocol::Http, &[backends[0].addr()]);
        config.listeners[0].binds = vec![Bind::Tcp(bind)];
        config
    };
    let keel = Keel::start(&at(address));
    for _ in 0..3 {
        keel.reload(&at(([127, 0, 0, 2], 0).into())).unwrap();
        // Workers may still accept what is queued there.
        keel.reload(&at(address)).unwrap();
        assert_eq!(Client::connect(address).get("/").status, 200);
    }
}

#[test]
fn a_port_that_the_system_chose_may_be_written_out() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let address = keel.address();
    let mut written = config(Protocol::Http, &[backends[0].addr()]);
    written.listeners[0].binds = vec![Bind::Tcp(address)];
    for _ in 0..2 {
        keel.reload(&written).unwrap();
        assert_eq!((keel.address(), Client::connect(address).get("/").status), (address, 200));
    }
}

#[test]
fn an_address_goes_over_to_a_listener_of_another_protocol() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let address = keel.address();
    let mut kept = keel.client();
    assert_eq!(kept.get("/").status, 200);
    let mut other = config(Protocol::Tcp, &[backends[0].addr()]);
    (other.listeners[0].name, other.targets[0].name) = ("raw".into(), "raw".into());
    other.listeners[0].routes = all_to("raw");
    keel.reload(&other).unwrap();
    assert_eq!(keel.address(), address);
    let mut raw = Client::connect(address);
    assert_eq!(raw.get("/").text(), "Hello from fake-1");
    drop(raw);
    let of = |cause| keel.server.readings().ended_with(cause);
    eventually("it was a TCP connection", || of(Cause::Done) == 2);
    assert!(kept.is_closed(), "its listener is gone");
    keel.reload(&config(Protocol::Http, &[backends[0].addr()])).unwrap();
    assert_eq!(Client::connect(address).get("/").header("content-length"), Some("17"));
}

#[test]
fn another_check_keeps_the_backend_and_its_pooled_connection() {
    let backends = fakes(1);
    let of = |path: Option<&str>, port| {
        let mut config = config(Protocol::Http, &[backends[0].addr()]);
        config.targets[0].health = Some(evenkeel::config::model::HealthCheck { port, ..quick_health() });
        config.targets[0].backends[0].probe_path = path.map(str::to_owned);
        config
    };
    let keel = Keel::start(&of(None, None));
    let mut client = keel.client();
    eventually("it is up", || keel.server.targets()[0].status()[0].health == Health::Up);
    assert_eq!(client.get("/").status, 200);
    let before = Arc::clone(&keel.server.targets()[0].backends[0]);
    let since = keel.server.targets()[0].status()[0].since;
    for turn in 0..6 {
        let own = (turn % 2 == 0).then(|| backends[0].port());
        let path = (turn % 3 == 0).then_some("/health");
        let reloaded = keel.reload(&of(path, own)).unwrap();
        assert_eq!((reloaded.added, reloaded.removed), (0, 0));
        assert_eq!(client.get("/").status, 200);
        assert!(Arc::ptr_eq(&before, &keel.server.targets()[0].backends[0]));
    }
    assert_eq!(keel.server.targets()[0].status()[0].since, since);
    assert_eq!((before.generation(), keel.server.readings().pool.closed_idle), (0, 0));
}

#[test]
fn where_all_backends_are_replaced_no_request_fails_until_one_of_the_new_ones_is_up() {
    support::events::listen();
    let backends = fakes(4);
    let of = |these: &[Running]| {
        let mut config = config(Protocol::Http, &these.iter().map(Running::addr).collect::<Vec<_>>());
        (config.targets[0].name, config.targets[0].health) = ("succeeded".into(), Some(quick_health()));
        config.listeners[0].routes = all_to("succeeded");
        // Each probe asks, so that a backend can be slow to come up.
        config.targets[0].backends.iter_mut().for_each(|one| one.probe_path = Some("/health".into()));
        config
    };
    let keel = Keel::start(&of(&backends[..2]));
    let up = |place: usize| keel.server.targets()[0].status()[place].health == Health::Up;
    eventually("both are up", || up(0) && up(1));
    let mut client = keel.client();
    for these in [&backends[2..], &backends[..2], &backends[2..]] {
        for one in these {
            one.behave(Behaviour::default().latency(Duration::from_millis(300)).times(1));
        }
        keel.reload(&of(these)).unwrap();
        let mut newcomers = 0;
        eventually("they have taken over", || {
            let answer = client.get("/");
            assert_eq!(answer.status, 200);
            newcomers += u32::from(these.iter().any(|one| answer.text().ends_with(one.id())));
            newcomers > 3
        });
        eventually("it is told", || {
            !support::events::with("target succeeded: its new backends have taken over from the 2").is_empty()
        });
    }
}

#[test]
fn a_change_of_one_backend_of_ten_thousand_touches_that_one() {
    let mut whole = config(Protocol::Http, &[]);
    let (listener, target) = (whole.listeners.remove(0), whole.targets.remove(0));
    for number in 0..1000 {
        let (mut listener, mut target) = (listener.clone(), target.clone());
        (listener.name, target.name) = (format!("t{number}"), format!("t{number}"));
        listener.routes = all_to(&target.name);
        target.backends = (0..10).map(|port| backend(([127, 0, 0, 1], 1000 + port).into())).collect();
        whole.listeners.push(listener);
        whole.targets.push(target);
    }
    let snapshots = Snapshots::new();
    let (before, _) = snapshots.commit(snapshots.prepare(&whole));
    whole.targets[500].backends[3] = backend(([127, 0, 0, 2], 99).into());
    let (after, gone) = snapshots.commit(snapshots.prepare(&whole));
    assert_eq!((after.given.backends.len(), gone.backends.len()), (1, 1));
    assert_eq!((after.given.targets.len(), after.given.listeners.len()), (0, 0));
    let (listeners, listeners_gone) = after.turnover(Some(&before));
    let names: Vec<&str> = listeners.iter().map(|listener| listener.config.name.as_str()).collect();
    assert_eq!((names, listeners_gone.len()), (vec!["t500"], 0));
    for (number, (was, now)) in before.targets.iter().zip(&after.targets).enumerate() {
        assert_eq!(Arc::ptr_eq(was, now), number != 500);
        for (place, (was, now)) in was.backends.iter().zip(&now.backends).enumerate() {
            assert_eq!(Arc::ptr_eq(was, now), (number, place) != (500, 3));
        }
    }
}

#[test]
fn workers_are_told_of_what_differs_and_hold_no_config_afterwards() {
    let backends = fakes(2);
    let of = |body| {
        let mut config = super::reload::config_of(&["a", "b", "c", "d"], &[&backends[0]; 4]);
        config.listeners[1].limits.body = body;
        config
    };
    let keel = Keel::start(&of(None));
    for turn in 1..=5 {
        let reloaded = keel.reload(&of(Some(turn))).unwrap();
        let alive = keel.server.reloader().snapshots.alive();
        assert_eq!((reloaded.told, reloaded.number, alive), (1, turn + 1, 1));
    }
    let reloaded = keel.reload(&of(Some(5))).unwrap();
    assert_eq!((reloaded.told, keel.server.reloader().snapshots.alive()), (0, 1));
}
