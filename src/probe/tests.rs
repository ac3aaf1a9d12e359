//! Whole lives of probed backends. Where no byte has to travel the clock is paused: a connect to a unix
//! socket is answered at once or not at all, so those tests see exact times.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::finding::Finding;
use super::*;
use crate::config::model::{self, BackendAddress, HostHeader, Policy, Protocol, Timeouts, UpstreamProtocol};
use crate::lasting::again;
use crate::targets::{Ask, Chance, Heard, Outcome, Pick, Registry, Target, Tried, Verdict};
use crate::tick::nanos;

const SECOND: Duration = Duration::from_secs(1);

fn health(interval: Duration, timeout: Duration) -> HealthCheck {
    HealthCheck { interval, timeout, ..HealthCheck::default() }
}

pub(super) fn target(
    health: Option<HealthCheck>,
    addresses: Vec<BackendAddress>,
    path: Option<&str>,
) -> Arc<Target> {
    Registry::new().apply(&[config(health, addresses, path)]).remove(0)
}

fn config(
    health: Option<HealthCheck>,
    addresses: Vec<BackendAddress>,
    path: Option<&str>,
) -> model::TargetConfig {
    let backends = addresses.into_iter().map(|address| model::BackendConfig {
        name: address.to_string(),
        address,
        probe_path: path.map(str::to_owned),
        tls: None,
        portion: model::Portion::default(),
        state: model::BackendState::Up,
        state_by: None,
        dialing: Default::default(),
        found: None,
    });
    model::TargetConfig {
        send_proxy: None,
        name: "web".into(),
        protocol: Protocol::Http,
        host: HostHeader::Pass,
        balance: Policy::default(),
        sticky: None,
        health,
        timeouts: Timeouts::default(),
        drain_timeout: model::TargetConfig::DRAIN_TIMEOUT,
        resilience: model::Resilience::default(),
        upgrade: Vec::new(),
        upstream: UpstreamProtocol::Http,
        backends: backends.collect(),
        sources: Vec::new(),
    }
}

fn unix(path: &Path) -> BackendAddress {
    BackendAddress::Unix(path.to_owned())
}

fn host(host: &str, port: u16) -> BackendAddress {
    BackendAddress::Host { host: host.into(), port }
}

/// Probes of these, with the system's resolver.
fn start<C>(targets: &[Arc<Target>], clock: C, cancel: &CancellationToken) -> Probes<C>
where
    C: Fn() -> Tick + Clone + Send + Sync + 'static,
{
    start_with(targets, &Resolver::System, clock, cancel)
}

fn start_with<C>(
    targets: &[Arc<Target>],
    resolver: &Resolver,
    clock: C,
    cancel: &CancellationToken,
) -> Probes<C>
where
    C: Fn() -> Tick + Clone + Send + Sync + 'static,
{
    let mut probes = Probes::new(resolver.clone(), clock, nobody(), Arc::default(), cancel);
    probes.follow(targets);
    probes
}

/// Nobody takes those that leave.
fn nobody() -> Departures {
    tokio::sync::mpsc::unbounded_channel().0
}

/// The first backend of `target`.
fn subject<C: Fn() -> Tick>(target: &Arc<Target>, clock: C) -> ProbeSubject<C> {
    ProbeSubject {
        target: Arc::clone(&target.name),
        state: Arc::clone(&target.state),
        backend: Arc::clone(&target.backends[0]),
        check: target.backends[0].check(),
        clock,
    }
}

/// The rules of a check without a path.
fn rules(health: HealthCheck) -> ProbeRules {
    let (upstream, host) = (UpstreamProtocol::Http, HostHeader::Pass);
    ProbeRules { check: 0, health, path: None, protocol: Protocol::Http, upstream, send_proxy: None, host }
}

/// The clock of the test's runtime.
fn clock() -> impl Fn() -> Tick + Clone + Send + Sync + 'static {
    let start = Instant::now();
    move || Tick(nanos(start.elapsed()))
}

/// Waits until the backend with this number has this health; gives the time that took.
async fn until(target: &Target, number: usize, health: Health) -> Duration {
    let started = Instant::now();
    let arrival = async {
        loop {
            let changed = target.state.changed();
            if target.backends[number].health() == health {
                return;
            }
            changed.await;
        }
    };
    // Paused clocks run far ahead while nothing happens, so this bound is generous.
    timeout(Duration::from_secs(60), arrival).await.unwrap_or_else(|_| panic!("never {health:?}"));
    started.elapsed()
}

/// What is logged on this thread while the guard lives.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(&mut *self.0.lock().expect("no panic"), bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn capture() -> (Lines, tracing::subscriber::DefaultGuard) {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        (lines, tracing::subscriber::set_default(subscriber))
    }

    fn all(&self) -> Vec<String> {
        let bytes = self.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("text").lines().map(str::to_owned).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_goes_and_returns_by_rise_and_fall_with_one_line_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.sock");
    let target = target(Some(health(2 * SECOND, SECOND)), vec![unix(&path)], None);
    let (lines, _guard) = Lines::capture();
    let cancel = CancellationToken::new();
    let mut tasks = start(std::slice::from_ref(&target), clock(), &cancel);

    assert_eq!(until(&target, 0, Health::Down).await, Duration::ZERO, "the first probe is due at once");
    sleep(30 * SECOND).await;
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("bind");
    // At most one interval to the next probe, half of one to the second; both with 10 % of jitter.
    let up = until(&target, 0, Health::Up).await;
    assert!(Duration::from_millis(900) <= up && up <= Duration::from_millis(3310), "{up:?}");
    // Right after a good probe: a whole interval to the first bad one, then two halves.
    drop(listener);
    let down = until(&target, 0, Health::Down).await;
    assert!(Duration::from_millis(3590) <= down && down <= Duration::from_millis(4410), "{down:?}");

    // Control has its turn.
    sleep(Duration::from_millis(1)).await;
    cancel.cancel();
    timeout(SECOND, async { while tasks.tasks().join_next().await.is_some() {} })
        .await
        .expect("all tasks end");
    let (of_backend, of_target): (Vec<String>, _) =
        lines.all().into_iter().partition(|line| line.contains("backend web/"));
    let [first, second, third] = &of_backend[..] else { panic!("three lines: {of_backend:#?}") };
    let is_lost = |line: &String| line.contains("target web: no backend left");
    assert!(of_target.len() == 3 && is_lost(&of_target[0]) && is_lost(&of_target[2]), "{of_target:#?}");
    assert!(of_target[1].contains("target web: back after 3"), "{of_target:#?}");
    assert!(first.contains("WARN") && first.contains("is down: no such socket (0 of 1 up)"), "{first}");
    assert!(second.contains("INFO") && second.contains(": 2 probes passed (1 of 1 up)"), "{second}");
    assert!(third.contains("WARN") && third.contains("is down: connection refused (0 of 1 left)"), "{third}");
}

#[tokio::test]
async fn a_hung_backend_delays_no_other() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let hung = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
    let mut addresses = vec![host("127.0.0.1", port(&hung))];
    addresses.extend(vec![host("127.0.0.1", port(&listener)); 20]);
    let _server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("accept");
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        }
    });
    let target = target(Some(health(SECOND, 600 * SECOND)), addresses, Some("/ping"));
    let _tasks = start(std::slice::from_ref(&target), clock(), &CancellationToken::new());
    for number in 1..=20 {
        until(&target, number, Health::Up).await;
    }
    assert_eq!(target.backends[0].health(), Health::Unknown);
    assert!(matches!(target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(1))), Pick::Lease(_)));
}

#[tokio::test(start_paused = true)]
async fn health_off_is_up_from_the_start_without_a_probe() {
    let target = target(None, vec![host("127.0.0.1", 9)], None);
    assert!(matches!(target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(1))), Pick::Lease(_)));
    let mut tasks = start(std::slice::from_ref(&target), clock(), &CancellationToken::new());
    assert_eq!(tasks.tasks().len(), 1, "the one that compares siblings");
}

/// Answers of a name over time: the call counts and what it says now.
#[derive(Default)]
struct Book {
    calls: usize,
    addresses: Option<Vec<IpAddr>>,
}

fn resolver() -> (Arc<Mutex<Book>>, Resolver) {
    let book = Arc::new(Mutex::new(Book::default()));
    let read = Arc::clone(&book);
    let lookup = move |host: &str| {
        assert_eq!(host, "app.internal");
        let mut book = read.lock().expect("no panic");
        book.calls += 1;
        book.addresses.clone().ok_or_else(|| io::Error::other("Name or service not known"))
    };
    (book, Resolver::Given(Arc::new(lookup)))
}

fn ips(lasts: &[u8]) -> Option<Vec<IpAddr>> {
    Some(lasts.iter().map(|&last| IpAddr::from([127, 0, 0, last])).collect())
}

#[tokio::test(start_paused = true)]
async fn a_name_is_looked_up_every_ten_seconds_and_keeps_its_last_good_addresses() {
    let (book, resolver) = resolver();
    // Two backends on one name: one task, one lookup.
    let target = target(None, vec![host("app.internal", 81), host("app.internal", 82)], None);
    let (lines, _guard) = Lines::capture();
    let _tasks = start_with(std::slice::from_ref(&target), &resolver, clock(), &CancellationToken::new());
    until(&target, 0, Health::Down).await;
    until(&target, 1, Health::Down).await;
    assert_eq!(&*target.status()[0].reason, "name does not resolve: Name or service not known");
    assert!(matches!(target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(1))), Pick::None(_)));

    book.lock().expect("no panic").addresses = ips(&[1, 2]);
    assert_eq!(until(&target, 1, Health::Up).await, 10 * SECOND);
    assert_eq!(book.lock().expect("no panic").calls, 2);
    let addresses = |number: usize| -> Vec<String> {
        target.backends[number].endpoints().iter().map(ToString::to_string).collect()
    };
    assert_eq!(addresses(1), ["127.0.0.1:82", "127.0.0.2:82"]);

    let generation = target.backends[1].generation();
    book.lock().expect("no panic").addresses = None;
    sleep(25 * SECOND).await;
    assert_eq!((addresses(1).len(), target.backends[1].health()), (2, Health::Up));
    assert_eq!(target.backends[1].generation(), generation);
    book.lock().expect("no panic").addresses = ips(&[3]);
    sleep(10 * SECOND).await;
    assert_eq!(addresses(1), ["127.0.0.3:82"]);
    assert_eq!(target.backends[1].generation(), generation + 1);
    let lost = lines.all().into_iter().filter(|line| line.contains("last addresses stay in use")).count();
    assert_eq!(lost, 1, "one line per stretch of failed lookups");
}

#[tokio::test]
async fn probes_of_a_name_start_when_it_resolves() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let port = listener.local_addr().expect("bound").port();
    let (book, resolver) = resolver();
    book.lock().expect("no panic").addresses = ips(&[1]);
    let target = target(Some(health(SECOND, 30 * SECOND)), vec![host("app.internal", port)], None);
    let _tasks = start_with(std::slice::from_ref(&target), &resolver, clock(), &CancellationToken::new());
    until(&target, 0, Health::Up).await;
}

#[tokio::test]
async fn the_system_resolves_localhost() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let port = listener.local_addr().expect("bound").port();
    let target = target(Some(health(SECOND, 30 * SECOND)), vec![host("localhost", port)], None);
    let _tasks = start(std::slice::from_ref(&target), clock(), &CancellationToken::new());
    until(&target, 0, Health::Up).await;
}

#[test]
fn a_local_shortage_leaves_the_verdict_and_is_logged_once_per_stretch() {
    let target = target(Some(health(SECOND, SECOND)), vec![host("127.0.0.1", 9)], None);
    let subject = subject(&target, || Tick(1));
    let (lines, _guard) = Lines::capture();
    let mut starved = false;
    subject.take(Finding::Verdict(Verdict::Good), Duration::ZERO, &mut starved);
    for _ in 0..2 {
        for _ in 0..10 {
            subject.take(
                Finding::Starved("out of descriptors (EMFILE)".into()),
                Duration::ZERO,
                &mut starved,
            );
            assert_eq!(target.backends[0].health(), Health::Up);
        }
        subject.take(Finding::Verdict(Verdict::Good), Duration::ZERO, &mut starved);
    }
    let starved = lines.all().into_iter().filter(|line| line.contains("EMFILE")).count();
    assert_eq!(starved, 2);
}

#[test]
fn tasks_can_run_on_a_runtime_with_several_threads() {
    fn send<T: Send>(value: T) -> T {
        value
    }
    let target = target(Some(health(SECOND, SECOND)), vec![host("127.0.0.1", 9)], Some("/"));
    let subject = subject(&target, || Tick(1));
    drop(send(watch(&subject, &rules(health(SECOND, SECOND)), None, &ProbeDesk::default())));
}

#[tokio::test(start_paused = true)]
async fn siblings_are_compared_also_where_nobody_is_probed() {
    let target = target(None, vec![host("127.0.0.1", 1), host("127.0.0.1", 2)], None);
    let cancel = CancellationToken::new();
    let _tasks = start(std::slice::from_ref(&target), clock(), &cancel);
    sleep(SECOND / 2).await;
    let (now, tried, chance) = (Tick(nanos(SECOND / 2)), Tried::new(), Chance::seeded(1));
    for turn in 0..400 {
        let Pick::Lease(lease) = target.pick(&Ask::new(&tried, &chance, now)) else { panic!("both are up") };
        // Every other answer of the first, so that there are never several errors in a row.
        let error = turn % 4 == 0;
        assert!(!error || Arc::ptr_eq(lease.backend(), &target.backends[0]), "by turns");
        lease.note_answer(Heard { error, ..Heard::GOOD }, now);
        lease.finish(Outcome::Success, now);
    }
    let out = || target.status().into_iter().map(|status| status.ejected_until.is_some()).collect::<Vec<_>>();
    assert_eq!(out(), [false, false]);
    sleep(SECOND).await;
    assert_eq!(out(), [true, false]);
}

mod duty;
mod panics;
mod reloads;
mod traffic;
