//! Auth beside what else happens to a request: sticky sessions, retries, upgrades, limits by user.

use std::sync::{Mutex, mpsc};

use evenkeel::config::model::Config;
use fake_backend::{Fake, Running};

use super::auth_lab::{Service, Users, request, show};
use super::support::{self, Answer, Keel, recording};

const YES: &str = "HTTP/1.1 200 OK\r\nX-User: anna\r\nContent-Length: 0\r\n\r\n";

/// A listener that asks `sso`, in front of these backends; `keys`: of their target.
fn config(service: &Service, backends: &[&Running], keys: &str) -> Config {
    let all: Vec<String> =
        backends.iter().map(|backend| format!("{{url: 'http://{}'}}", backend.addr())).collect();
    support::load(&format!(
        "workers: 1\n{}listeners:\n  front:\n    bind: 127.0.0.1:0\n    auth: sso\n    routes: [{{target: web}}]\ntargets:\n  \
         web: {{health_check: off{keys}, backends: [{}]}}\n  sso: {{health_check: off, backends: [{{url: 'http://{}'}}]}}\n",
        service.rule(""),
        all.join(", "),
        service.address
    ))
}

/// Values of `Set-Cookie`.
fn cookies(answer: &Answer) -> Vec<&str> {
    answer.head.lines().filter_map(|line| line.strip_prefix("Set-Cookie: ")).collect()
}

#[test]
fn a_client_that_is_let_in_stays_where_its_cookie_says_and_gets_both_cookies() {
    let service = Service::saying(&YES.replace("Content-Length", "Set-Cookie: s=1\r\nContent-Length"));
    let backends = [recording(), recording(), recording()];
    let all: Vec<&Running> = backends.iter().collect();
    let keel = Keel::start(&config(&service, &all, ", sticky: {cookie: lb, key: the same on all of them}"));
    let answer = keel.client().ask(&request("GET", "/", ""));
    let set = cookies(&answer);
    let pin = set.iter().find_map(|line| line.strip_prefix("lb=")?.split(';').next()).unwrap();
    assert!(set.contains(&"s=1") && set.len() == 2, "{set:?}");
    for _ in 0..6 {
        let answer = keel.client().ask(&request("GET", "/", &format!("Cookie: lb={pin}\r\n")));
        assert_eq!((answer.status, cookies(&answer)), (200, vec!["s=1"]));
    }
    let mut counts: Vec<usize> = backends.iter().map(|backend| backend.take_requests().len()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 7]);
    assert_eq!(service.asked().len(), 7);
}

#[test]
fn a_request_that_is_tried_again_is_asked_about_once_and_no_body_goes_before_the_answer() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let service = Service::new(move |_| {
        wait.lock().unwrap().recv().unwrap();
        YES.as_bytes().to_vec()
    });
    let off = Fake::http("off").refusing().start_in_thread().unwrap();
    let on = recording();
    let keel = Keel::start(&config(&service, &[&off, &on], ", retries: {attempts: 3}"));
    for round in 0..4 {
        let mut client = keel.client();
        client.send(request("PUT", "/", "Content-Length: 5\r\n"));
        client.send("hello");
        support::eventually("the service is asked", || service.asked().len() == round + 1);
        assert_eq!(on.requests(), round as u64, "nothing goes out before the answer");
        go.send(()).unwrap();
        assert_eq!(client.answer().status, 200);
    }
    let sent = on.take_requests();
    assert!(sent.len() == 4 && sent.iter().all(|sent| *sent.body == *b"hello"), "{}", sent.len());
    assert!(sent.iter().all(|sent| sent.header("X-User") == ["anna"]));
    let asked = service.asked();
    assert!(asked.len() == 4 && asked.iter().all(|head| !head.contains("Content-Length")), "{asked:?}");
}

#[test]
fn an_upgrade_of_whom_the_service_lets_in_becomes_a_tunnel() {
    let service = Service::saying(&YES.replace("Content-Length", "Set-Cookie: s=1\r\nContent-Length"));
    let backend = recording();
    let keel = Keel::start(&config(&service, &[&backend], ""));
    let mut client = keel.client();
    client.send(request("GET", "/upgrade", "Connection: Upgrade\r\nUpgrade: websocket\r\nX-User: root\r\n"));
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("Upgrade")), (101, Some("websocket")), "{}", answer.head);
    assert_eq!(cookies(&answer), ["s=1"]);
    client.send("ping");
    assert_eq!(client.take(4), b"ping");
    client.send("last").finish_sending();
    assert_eq!(client.rest(), b"last");
    assert_eq!(backend.take_requests().pop().unwrap().header("X-User"), ["anna"]);
    let asked = service.asked();
    assert!(asked.len() == 1 && !asked[0].contains("Upgrade:"), "{asked:?}");
}

#[test]
fn a_limit_by_user_counts_each_name_of_a_file_for_itself() {
    let users = Users::new(&[("anna", "pw"), ("bert", "pw")]);
    let backend = recording();
    let keel = Keel::start(&support::load(&format!(
        "workers: 1\n{}rate_limits: {{each: {{rate: 1/h, burst: 2, by: user}}}}\nlisteners:\n  front:\n    bind: 127.0.0.1:0\n    \
         auth: staff\n    rate_limit: each\n    routes: [{{target: web}}]\ntargets:\n  \
         web: {{health_check: off, backends: [{{url: 'http://{}'}}]}}\n",
        users.rule(),
        backend.addr()
    )));
    let ask =
        |name: &str, password: &str| keel.client().ask(&request("GET", "/", &show(name, password))).status;
    assert_eq!([(); 3].map(|()| ask("anna", "pw")), [200, 200, 429]);
    assert_eq!([(); 3].map(|()| ask("bert", "pw")), [200, 200, 429]);
    // Who is not let in takes nothing from whom it says it is.
    assert_eq!([(); 3].map(|()| ask("anna", "wrong")), [401; 3]);
    assert_eq!(backend.take_requests().len(), 4);
}
