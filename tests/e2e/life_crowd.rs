//! Many more requests at once than a worker begins at once.

use super::support::{Client, Keel, eventually, fakes};

/// Three times as many as are begun without a look at the others.
const CROWD: u64 = 400;

#[test]
fn no_request_of_a_crowd_waits_for_the_answer_to_another() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| config.workers = 1);
    let mut crowd: Vec<Client> = (0..CROWD).map(|_| keel.client()).collect();
    // Half a body each: none is answered before all have come.
    for client in &mut crowd {
        client.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nab");
    }
    eventually("all have arrived", || backends[0].requests() == CROWD);
    assert_eq!(keel.client().get("/").status, 200, "nor does one that comes later");
    for client in &mut crowd {
        client.send("cd");
    }
    for client in &mut crowd {
        assert_eq!(client.answer().text(), "abcd");
    }
    assert_eq!(keel.server.readings().pool.opened, CROWD + 1);
}

#[test]
fn a_client_that_leaves_the_crowd_holds_nobody_up() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| config.workers = 1);
    let mut held: Vec<Client> = (0..CROWD / 2).map(|_| keel.client()).collect();
    for client in &mut held {
        client.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nab");
    }
    eventually("they are being served", || backends[0].requests() == CROWD / 2);
    let mut crowd: Vec<Client> = (0..CROWD).map(|_| keel.client()).collect();
    for (number, client) in crowd.iter_mut().enumerate() {
        client.send(format!("GET /{number} HTTP/1.1\r\nHost: test\r\n\r\n"));
    }
    let stays = |number: usize| !number.is_multiple_of(3);
    let mut number = 0..;
    crowd.retain(|_| number.next().is_some_and(stays));
    for client in &mut crowd {
        assert_eq!(client.answer().status, 200);
    }
    drop(held);
    eventually("none but the crowd is left", || keel.server.connections() == crowd.len());
}
