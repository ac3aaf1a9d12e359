//! Many fakes in one process.

use std::io::Write;

use fake_backend::{Fake, raise_descriptor_limit};
use tokio::task::JoinSet;

use crate::client::Client;

/// Kibibytes of memory this process has resident.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_five_hundred_workers_answer_in_under_a_gigabyte() {
    const WORKERS: usize = 2_500;
    // Each worker's listener, and both ends of a connection to each.
    let limit = raise_descriptor_limit();
    assert!(limit > 3 * WORKERS as u64 + 100, "only {limit} descriptors are allowed");
    let before = resident();
    let mut fakes = Vec::new();
    for number in 1..=WORKERS {
        fakes.push(Fake::http(format!("fake-{number}")).start().await.unwrap());
    }
    let mut clients = JoinSet::new();
    for fake in &fakes {
        let (address, expected) = (fake.addr(), format!("Hello from {}", fake.id()));
        clients.spawn(async move {
            let mut client = Client::connect(address).await;
            assert_eq!(client.get("/").await.text(), expected);
            client
        });
    }
    // All connections are open at once before memory is looked at.
    let clients = clients.join_all().await;
    let grown = resident().saturating_sub(before);
    let report =
        format!("{WORKERS} fakes, a connection to each: {} KiB resident, {grown} of them new\n", resident());
    std::io::stderr().write_all(report.as_bytes()).unwrap();
    assert_eq!(clients.len(), WORKERS);
    assert!(fakes.iter().all(|fake| fake.requests() == 1 && fake.open_connections() == 1));
    assert!(resident() < 1024 * 1024, "{} KiB resident", resident());
    // The bound of a regression: about 10 KiB per worker with its open connection and the client's half.
    assert!(grown < 100 * 1024, "{grown} KiB for {WORKERS} workers");
}
