//! Starting, stopping, coming back on the same port, and the control requests.

use fake_backend::{Behaviour, Fake};
use tokio::net::TcpStream;

use crate::client::{Client, SOON};

async fn is_refused(fake: &fake_backend::Running) -> bool {
    TcpStream::connect(fake.addr())
        .await
        .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

#[tokio::test]
async fn stop_refuses_and_drops_and_restart_brings_it_back() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    client.get("/").await;
    for _ in 0..3 {
        fake.stop();
        assert!(is_refused(&fake).await);
        assert_eq!(client.rest().await.unwrap(), b"");
        fake.wait_for(|stats| stats.open == 0, SOON).await.unwrap();
        fake.restart().unwrap();
        client = Client::connect(fake.addr()).await;
        assert_eq!(client.get("/").await.status(), 200);
    }
    assert_eq!((fake.requests(), fake.connections()), (4, 4));
}

#[tokio::test]
async fn a_stopped_fake_keeps_its_port_from_others() {
    let fake = Fake::http("a").start().await.unwrap();
    fake.stop();
    let others: Vec<_> = (0..50).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    assert!(others.iter().all(|other| other.local_addr().unwrap() != fake.addr()));
    fake.restart().unwrap();
    assert!(!is_refused(&fake).await);
}

#[tokio::test]
async fn stop_accepting_leaves_open_connections_alone() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    client.get("/").await;
    fake.stop_accepting();
    assert!(is_refused(&fake).await);
    assert_eq!(client.get("/").await.status(), 200);
    fake.restart().unwrap();
    assert_eq!(client.get("/").await.status(), 200);
    assert!(!is_refused(&fake).await);
}

#[tokio::test]
async fn a_refusing_fake_holds_its_port_until_it_is_restarted() {
    let fake = Fake::http("a").refusing().start().await.unwrap();
    assert!(is_refused(&fake).await);
    fake.restart().unwrap();
    assert_eq!(Client::connect(fake.addr()).await.get("/").await.status(), 200);
}

#[tokio::test]
async fn dropping_stops() {
    let fake = Fake::http("a").start().await.unwrap();
    let address = fake.addr();
    let mut client = Client::connect(address).await;
    client.get("/").await;
    drop(fake);
    assert!(TcpStream::connect(address).await.is_err());
    assert_eq!(client.rest().await.unwrap(), b"");
}

#[tokio::test]
async fn a_taken_port_is_an_error() {
    let fake = Fake::http("a").start().await.unwrap();
    let error = Fake::http("b").bind_addr(fake.addr()).start().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    let error = Fake::http("b").bind("nowhere").start().await.unwrap_err();
    assert_eq!(error.to_string(), "`nowhere` is no address with a port");
}

#[test]
fn a_thread_of_its_own_serves_callers_without_a_runtime() {
    use std::io::{Read, Write};
    let fake = Fake::http("t").start_in_thread().unwrap();
    let mut stream = std::net::TcpStream::connect(fake.addr()).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("Hello from t"));
    drop(stream);
    fake.wait_for_blocking(|stats| stats.requests == 1 && stats.open == 0, SOON).unwrap();
    fake.stop();
    assert!(std::net::TcpStream::connect(fake.addr()).is_err());
    fake.restart().unwrap();
    assert!(std::net::TcpStream::connect(fake.addr()).is_ok());
}

#[test]
fn a_local_runtime_will_do() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).unwrap();
    runtime.block_on(async {
        let fake = Fake::http("l").start().await.unwrap();
        assert_eq!(Client::connect(fake.addr()).await.get("/").await.text(), "Hello from l");
        assert_eq!(fake.url(), format!("http://{}", fake.addr()));
    });
}

#[tokio::test]
async fn waiting_too_long_tells_the_counters() {
    let fake = Fake::http("a").start().await.unwrap();
    let late =
        fake.wait_for(|stats| stats.requests == 1, std::time::Duration::from_millis(1)).await.unwrap_err();
    assert!(late.to_string().contains("requests: 0"), "{late}");
}

#[tokio::test]
async fn control_is_off_unless_allowed() {
    let fake = Fake::http("a").start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    client.send("POST /_fake?status=500 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(client.answer().await.text(), "Hello from a");
    assert_eq!((client.get("/").await.status(), fake.requests()), (200, 2));
}

#[tokio::test]
async fn control_requests_change_the_behaviour() {
    let fake = Fake::http("a").control().start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    let post = async |query: &str| {
        let mut client = Client::connect(fake.addr()).await;
        client.send(format!("POST /_fake?{query} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let answer = client.answer().await;
        (answer.status(), answer.text().to_owned())
    };
    assert_eq!(post("status=500&times=2").await, (200, "ok\n".into()));
    let statuses =
        [client.get("/").await.status(), client.get("/").await.status(), client.get("/").await.status()];
    assert_eq!(statuses, [500, 500, 200]);
    assert_eq!(post("status=500&fault=nonsense").await.0, 400);
    assert_eq!(client.get("/").await.status(), 200);
    post("health=down&close=1").await;
    assert_eq!(client.get("/health").await.status(), 503);
    assert_eq!(fake.behaviour(), Behaviour::default().closing());
    post("reset=1&refuse=1").await;
    assert_eq!(fake.behaviour(), Behaviour::default());
    assert!(is_refused(&fake).await);
}

#[tokio::test]
async fn control_tells_the_counters_even_of_a_hanging_fake() {
    let fake = Fake::http("a").control().behave(Behaviour::hang()).start().await.unwrap();
    let mut client = Client::connect(fake.addr()).await;
    let answer = client.get("/_fake").await;
    assert!(
        answer.text().starts_with("id=a\nhealthy=true\nconnections=1\nopen=1\nrequests=0\n"),
        "{}",
        answer.text()
    );
}
