//! The end: nothing new, nothing lost, and no longer than allowed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenkeel::config::model::{Config, LogFormat};
use evenkeel::message::Cause;
use evenkeel::worker::Ended;
use fake_backend::{Behaviour, Running, TcpMode};

use super::life_lab::{LogFile, Watch, connect, end, read_to_end, tcp, tcp_fakes, until_refused};
use super::support::{Answer, Client, Keel, PATIENCE, eventually, fakes};

const NOTHING_CUT: Ended = Ended { cut: 0 };
const A_MOMENT: Duration = Duration::from_millis(200);

/// Asserts that something takes less than a second, which is as long as anything waits that is not to be waited for. A machine
/// that is busy may take that long for nothing, but not each time.
fn at_once(what: &str, mut take: impl FnMut() -> Duration) {
    assert!((0..10).any(|_| take() < Duration::from_secs(1)), "{what}");
}

fn closes(answer: &Answer) -> bool {
    answer.header("connection") == Some("close")
}

#[test]
fn with_no_connection_open_it_ends_at_once() {
    let backends = fakes(1);
    at_once("sooner than the silence of a connection", || {
        let keel = Keel::http(&[&backends[0]]);
        assert_eq!(keel.client().get("/").status, 200);
        eventually("all are gone", || keel.server.connections() == 0);
        let (address, watch) = (keel.address(), Watch::start());
        assert_eq!(end(keel), NOTHING_CUT);
        let took = watch.elapsed();
        until_refused(address);
        eventually("the pool is closed", || backends[0].open_connections() == 0);
        took
    });
}

#[test]
fn idle_connections_are_closed_after_a_silence_and_served_before() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut clients: Vec<Client> = (0..10).map(|_| keel.client()).collect();
    for client in &mut clients[..8] {
        assert_eq!(client.get("/").status, 200);
    }
    let watch = Watch::start();
    keel.server.shutdown().advance();
    until_refused(keel.address());
    // One that has asked before and one that has not.
    for place in [0, 9] {
        let answer = clients[place].get("/");
        assert!(answer.status == 200 && closes(&answer), "{answer:?}");
    }
    for client in &mut clients {
        assert!(client.is_closed(), "an end without a byte");
    }
    assert!(watch.elapsed() >= Duration::from_secs(1), "{:?}", watch.elapsed());
    assert_eq!(keel.server.wait().unwrap(), NOTHING_CUT);
    assert_eq!(backends[0].requests(), 10);
}

/// Asks until told that the connection ends; says how many whole answers came.
fn ask_until_closed(mut client: Client, answered: &AtomicU64) -> u64 {
    for number in 1.. {
        let answer = client.get(if number % 3 == 0 { "/bytes/20000" } else { "/chunked/3000" });
        assert!(answer.status == 200 && !answer.cut, "request {number}: {answer:?}");
        answered.fetch_add(1, Ordering::Relaxed);
        if closes(&answer) {
            assert!(client.is_closed(), "and then it does end");
            return number;
        }
    }
    0
}

/// Opens connections until that is refused; each must be served.
fn connect_until_refused(address: SocketAddr, answered: &AtomicU64) -> u64 {
    for number in 0.. {
        let Ok(socket) = TcpStream::connect_timeout(&address, PATIENCE) else { return number };
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut socket = socket;
        socket.write_all(b"GET /bytes/100 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        let answer = read_to_end(&mut socket).expect("no reset");
        assert!(answer.starts_with(b"HTTP/1.1 200 ") && answer.len() > 200, "connection {number}");
        answered.fetch_add(1, Ordering::Relaxed);
    }
    0
}

#[test]
fn no_answer_is_cut_while_64_clients_keep_asking_and_one_keeps_connecting() {
    let backends = fakes(2);
    let keel = Keel::http(&[&backends[0], &backends[1]]);
    let (address, answered) = (keel.address(), AtomicU64::new(0));
    let (ended, told) = std::thread::scope(|scope| {
        // All are connected before it begins to end.
        let clients: Vec<Client> = (0..64).map(|_| Client::connect(address)).collect();
        let asking: Vec<_> =
            clients.into_iter().map(|client| scope.spawn(|| ask_until_closed(client, &answered))).collect();
        let connecting = scope.spawn(|| connect_until_refused(address, &answered));
        eventually("all are busy", || answered.load(Ordering::Relaxed) > 1000);
        let ended = end(keel);
        let told: u64 = asking.into_iter().map(|thread| thread.join().unwrap()).sum();
        (ended, told + connecting.join().unwrap())
    });
    assert_eq!(ended, NOTHING_CUT);
    assert_eq!(told, answered.into_inner());
    assert_eq!(backends.iter().map(Running::requests).sum::<u64>(), told);
}

#[test]
fn a_slow_request_and_a_slow_upload_are_finished() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let (mut slow, mut upload) = (keel.client(), keel.client());
    slow.send("GET /delay/3000 HTTP/1.1\r\nHost: test\r\n\r\n");
    upload.send("POST /count HTTP/1.1\r\nHost: test\r\nContent-Length: 6\r\n\r\nabc");
    eventually("both are under way", || backends[0].requests() == 2);
    keel.server.shutdown().advance();
    until_refused(keel.address());
    assert_eq!(upload.send("def").answer().text(), "6");
    let answer = slow.answer();
    assert!(answer.status == 200 && closes(&answer), "{answer:?}");
    assert_eq!(keel.server.wait().unwrap(), NOTHING_CUT);
}

/// Two requests that no backend will ever finish, one before and one inside its answer.
fn endless(change: impl FnOnce(&mut Config)) -> (Keel, LogFile, Vec<Running>, [Client; 2]) {
    let backends = fakes(1);
    let mut log = None;
    let keel = Keel::with(&[&backends[0]], |config| {
        change(config);
        log = Some(LogFile::of(config, LogFormat::Json));
    });
    let mut clients = [keel.client(), keel.client()];
    clients[0].send("GET /delay/3600000 HTTP/1.1\r\nHost: test\r\n\r\n");
    // Delimited by the close: only a reset tells the client that it is not whole.
    clients[1].send("GET /close/1000?piece=10&every=3600000 HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("both are under way", || backends[0].requests() == 2);
    let (mut first, mut byte) = (Vec::new(), [0u8; 1]);
    // The head and the first piece, which need not come together.
    while first.windows(4).position(|four| four == b"\r\n\r\n").is_none_or(|end| first.len() < end + 14) {
        clients[1].socket.read_exact(&mut byte).unwrap();
        first.push(byte[0]);
    }
    assert!(first.starts_with(b"HTTP/1.1 200"));
    (keel, log.unwrap(), backends, clients)
}

fn assert_cut(log: &LogFile, clients: [Client; 2]) {
    for mut client in clients {
        assert!(read_to_end(&mut client.socket).is_err(), "an abort and not an end");
    }
    let mut records = log.records();
    records.sort_by_key(|record| record["status"].as_u64());
    let told: Vec<_> = records.iter().map(|r| (r["cause"].as_str(), r["status"].as_u64())).collect();
    assert_eq!(told, [(Some("shutdown"), None), (Some("shutdown"), Some(200))]);
    assert_eq!(records[1]["bytes_out"], 10, "what had passed is counted");
}

#[test]
fn what_takes_longer_than_the_shutdown_timeout_is_cut_counted_and_logged() {
    let (keel, log, _backends, clients) = endless(|config| config.shutdown_timeout = A_MOMENT);
    assert_eq!(end(keel), Ended { cut: 2 });
    assert_cut(&log, clients);
}

#[test]
fn without_a_shutdown_timeout_everything_is_cut_at_once() {
    at_once("nothing is waited for", || {
        let (keel, log, _backends, clients) = endless(|config| config.shutdown_timeout = Duration::ZERO);
        let idle = keel.client();
        eventually("it is in", || keel.server.connections() == 3);
        let watch = Watch::start();
        assert_eq!(end(keel), Ended { cut: 2 }, "a connection on which nothing is under way is not counted");
        let took = watch.elapsed();
        assert_cut(&log, clients);
        drop(idle);
        took
    });
}

#[test]
fn a_second_signal_cuts_what_the_first_one_waits_for() {
    let (keel, log, _backends, clients) =
        endless(|config| config.shutdown_timeout = Duration::from_secs(3600));
    keel.server.shutdown().advance();
    until_refused(keel.address());
    eventually("none but those two", || keel.server.connections() == 2);
    keel.server.shutdown().advance();
    assert_eq!(keel.server.wait().unwrap(), Ended { cut: 2 });
    assert_cut(&log, clients);
}

#[test]
fn dropping_a_server_cuts_everything() {
    let (keel, log, _backends, clients) = endless(|config| config.shutdown_timeout = PATIENCE * 10);
    let address = keel.address();
    drop(keel);
    until_refused(address);
    assert_cut(&log, clients);
}

fn echo(socket: &mut TcpStream, text: &str) {
    socket.write_all(text.as_bytes()).unwrap();
    let mut back = vec![0u8; text.len()];
    socket.read_exact(&mut back).unwrap();
    assert_eq!(back, text.as_bytes());
}

#[test]
fn a_tcp_connection_goes_on_until_the_timeout_or_its_own_end() {
    let backends = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo)));
    let mut log = None;
    let keel = tcp(&[&backends[0]], |config| {
        config.shutdown_timeout = Duration::from_secs(3600);
        log = Some(LogFile::of(config, LogFormat::Json));
    });
    let (mut ends, mut stays) = (connect(keel.address()), connect(keel.address()));
    echo(&mut ends, "before");
    echo(&mut stays, "before");
    keel.server.shutdown().advance();
    until_refused(keel.address());
    echo(&mut stays, "and while it drains");
    ends.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut ends).unwrap(), b"");
    eventually("one has ended", || keel.server.connections() == 1);
    keel.server.shutdown().advance();
    assert_eq!(keel.server.wait().unwrap(), Ended { cut: 1 });
    assert!(read_to_end(&mut stays).is_err(), "an abort and not an end");
    eventually("the backend sees an abort too", || backends[0].stats().aborted == 1);

    let mut records = log.unwrap().records();
    // Those without a byte looked whether connects are refused.
    records.retain(|record| record["bytes_in"] != 0);
    records.sort_by_key(|record| record["bytes_in"].as_u64());
    let [ended, cut] = &records[..] else { panic!("{records:?}") };
    assert_eq!(
        (&ended["cause"], &ended["bytes_in"], &ended["bytes_out"]),
        (&().into(), &6.into(), &6.into())
    );
    assert_eq!((&cut["cause"], &cut["bytes_in"]), (&"shutdown".into(), &25.into()));
    assert_eq!((&cut["bytes_out"], &cut["kind"]), (&25.into(), &"tcp".into()));
}

#[test]
fn an_upgraded_connection_goes_on_until_the_timeout() {
    let backends = fakes(1);
    let mut log = None;
    let keel = Keel::with(&[&backends[0]], |config| {
        config.shutdown_timeout = Duration::from_secs(3600);
        log = Some(LogFile::of(config, LogFormat::Json));
    });
    let mut client = keel.client();
    client.send("GET /upgrade HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(client.answer().status, 101);
    echo(&mut client.socket, "before");
    keel.server.shutdown().advance();
    until_refused(keel.address());
    echo(&mut client.socket, "and while it drains");
    keel.server.shutdown().advance();
    assert_eq!(keel.server.wait().unwrap(), Ended { cut: 1 });
    assert!(read_to_end(&mut client.socket).is_err(), "an abort and not an end");
    let records = log.unwrap().records();
    let [cut] = &records[..] else { panic!("{records:?}") };
    assert_eq!(
        (&cut["cause"], &cut["kind"], &cut["status"]),
        (&Cause::Shutdown.token().into(), &"upgrade".into(), &101.into())
    );
    assert_eq!((&cut["bytes_in"], &cut["bytes_out"]), (&25.into(), &25.into()));
}

#[test]
fn an_empty_line_behind_a_body_is_silence_too() {
    let backends = fakes(1);
    // Whatever else could end the connection takes longer than the test may.
    let keel = Keel::with(&[&backends[0]], |config| {
        config.shutdown_timeout = Duration::from_secs(3600);
        config.listeners[0].client_timeouts.head = Duration::from_secs(3600);
    });
    let mut client = keel.client();
    assert_eq!(client.post("/count", b"abc").text(), "3");
    // As some old clients do (RFC 9112 section 2.2).
    client.send("POST /count HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc\r\n");
    assert_eq!(client.answer().text(), "3");
    keel.server.shutdown().advance();
    assert!(client.is_closed());
    assert_eq!(keel.server.wait().unwrap(), NOTHING_CUT);
}
