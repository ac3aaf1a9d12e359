//! Sticky sessions: a client stays where its cookie says, and is told when that changes.

use std::time::Duration;

use evenkeel::config::model::{Config, Sticky};
use evenkeel::message::{Cause, Head};
use evenkeel::proxy::http::request_body::RequestBody;
use evenkeel::targets::Health;
use fake_backend::{Behaviour, Ending, Fake, Fault, Running};

use super::life_lab::{assert_own, probe, probe_quickly, until, until_refused};
use super::support::tls::Secure;
use super::support::worker;
use super::support::{self, Answer, Keel, eventually, fakes, quick_health, recording};

const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n";
const ATTRIBUTES: &str = "; Path=/; HttpOnly; SameSite=Lax";

/// Gives the target a cookie called `evenkeel`.
fn stick(config: &mut Config) {
    stick_with(config, b"the same on all nodes");
}

fn stick_with(config: &mut Config, key: &[u8]) {
    let key = key.into();
    config.targets[0].sticky = Some(Sticky { cookie: "evenkeel".into(), key, is_fleeting: false });
}

fn all(backends: &[Running]) -> Vec<&Running> {
    backends.iter().collect()
}

/// In front of these backends with a cookie.
fn sticky(backends: &[Running]) -> Keel {
    Keel::with(&all(backends), stick)
}

/// `GET /` on a connection of its own, with this Cookie line; empty: none.
fn ask(keel: &Keel, cookie: &str) -> Answer {
    let line = if cookie.is_empty() { String::new() } else { format!("Cookie: {cookie}\r\n") };
    let answer = keel.client().ask(&format!("{GET}{line}\r\n"));
    assert!(!answer.cut && answer.status != 0, "{}", answer.head);
    answer
}

/// All values of header lines called `name`.
fn lines<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    let pairs = answer.head.lines().skip(1).filter_map(|line| line.split_once(": "));
    pairs.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

/// The only cookie that the answer sets, as `name=value`; `None`: it sets none.
fn cookie(answer: &Answer) -> Option<String> {
    let set = lines(answer, "set-cookie");
    assert!(set.len() < 2, "{}", answer.head);
    set.first().map(|line| line.split(';').next().unwrap().to_owned())
}

/// A cookie that names the backend that greets with this number.
fn cookie_of(keel: &Keel, number: usize) -> String {
    let greeting = format!("Hello from fake-{number}");
    let answers = (0..50).map(|_| ask(keel, ""));
    let mut wanted = answers.filter(|answer| answer.text() == greeting);
    cookie(&wanted.next().expect("one of its turns")).expect("a cookie")
}

/// Asserts that `answer` comes from this backend and changes nothing about the client's cookie.
#[track_caller]
fn assert_stays(answer: &Answer, number: usize) {
    assert_eq!((answer.status, answer.text()), (200, format!("Hello from fake-{number}")));
    assert_eq!((cookie(answer), lines(answer, "cache-control")), (None, vec![]), "{}", answer.head);
}

#[test]
fn a_client_stays_on_its_backend_over_connections_and_workers() {
    let backends = fakes(3);
    let keel = sticky(&backends);
    for number in 1..=3 {
        let cookie = cookie_of(&keel, number);
        for _ in 0..20 {
            assert_stays(&ask(&keel, &cookie), number);
        }
        let mut client = keel.client();
        for _ in 0..5 {
            assert_stays(&client.ask(&format!("{GET}Cookie: {cookie}\r\n\r\n")), number);
        }
    }
    // Whoever has none goes on in turn.
    let mut seen: Vec<String> = (0..3).map(|_| ask(&keel, "").text()).collect();
    seen.sort();
    assert_eq!(seen, ["Hello from fake-1", "Hello from fake-2", "Hello from fake-3"]);
}

#[test]
fn the_attributes_are_these_and_secure_comes_with_tls() {
    let backends = fakes(1);
    let keel = sticky(&backends);
    let answer = keel.client().get("/");
    let cookie = cookie(&answer).unwrap();
    let (name, value) = cookie.split_once('=').unwrap();
    assert_eq!((name, value.len()), ("evenkeel", 22));
    assert!(value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{value}");
    assert_eq!(lines(&answer, "set-cookie"), [format!("{cookie}{ATTRIBUTES}")]);
    assert_eq!(lines(&answer, "cache-control"), ["private"]);

    let secure = Secure::with(evenkeel::config::model::Protocol::Http, &all(&backends), "", stick);
    let mut client = secure.client();
    let answer = client.get("/");
    assert_eq!(lines(&answer, "set-cookie"), [format!("{cookie}{ATTRIBUTES}; Secure")]);
    assert_stays(&client.ask(&format!("{GET}Cookie: {cookie}\r\n\r\n")), 1);
}

#[test]
fn another_node_with_the_key_agrees_and_one_with_another_key_does_not() {
    let backends = fakes(3);
    let keel = sticky(&backends);
    let cookies: Vec<String> = (1..=3).map(|number| cookie_of(&keel, number)).collect();
    // Its config has them in another order.
    let other = Keel::with(&all(&backends), |config| {
        stick(config);
        config.targets[0].backends.reverse();
    });
    let stranger = Keel::with(&all(&backends), |config| stick_with(config, b"another key"));
    for (number, known) in (1..).zip(&cookies) {
        assert_stays(&ask(&other, known), number);
        let fresh = cookie(&ask(&stranger, known)).expect("its own cookie");
        assert!(!cookies.contains(&fresh), "{fresh}");
    }
    drop(keel);
    let next = sticky(&backends);
    assert_stays(&ask(&next, &cookies[1]), 2);
}

#[test]
fn an_unknown_or_altered_value_is_served_and_gets_a_new_cookie() {
    let backends = fakes(2);
    let keel = sticky(&backends);
    let good = cookie_of(&keel, 2);
    let (shorter, last) = good.split_at(good.len() - 1);
    // The last character holds two bits that mean something and four that must be zero.
    let altered = format!("{shorter}{}", if last == "A" { "B" } else { "A" });
    for bad in [
        altered.as_str(),
        shorter,
        "evenkeel=",
        "evenkeel",
        &format!("{good}x"),
        "evenkeel=fake-2",
        "Evenkeel=x",
    ] {
        for _ in 0..2 {
            let answer = ask(&keel, bad);
            assert_eq!(answer.status, 200, "{bad}");
            let fresh = cookie(&answer).expect(bad);
            assert_eq!(ask(&keel, &fresh).text(), answer.text(), "{bad}");
        }
    }
    let other_name = good.replace("evenkeel", "EVENKEEL");
    assert!(cookie(&ask(&keel, &other_name)).is_some());
}

#[test]
fn the_cookie_is_found_among_others_quoted_and_on_several_lines() {
    let backends = fakes(2);
    let keel = sticky(&backends);
    for number in [1, 2] {
        let good = cookie_of(&keel, number);
        let quoted = good.replace('=', "=\"") + "\"";
        for line in [
            format!("a=b; {good}; c=d"),
            format!("a=\"b\";{good}"),
            quoted,
            format!("evenkeel=old; {good}"),
            format!("x=y\r\nCookie: evenkeel=no\r\ncookie: z; {good}"),
            format!("evenkeel; ;;=; evenkeel=; {good}"),
        ] {
            assert_stays(&ask(&keel, &line), number);
        }
    }
}

#[test]
fn a_great_cookie_header_is_no_problem() {
    let backends = fakes(2);
    let keel = sticky(&backends);
    let good = cookie_of(&keel, 2);
    let value = good.split_once('=').unwrap().1;
    let wrong = format!("evenkeel={}; ", value.replace(char::is_alphanumeric, "a"));
    for (filler, is_one) in [
        ("evenkeel=; ", true),
        ("evenkeel", false),
        (";", false),
        ("=", false),
        ("\"; ", false),
        (&wrong, true),
    ] {
        // Of cookies of that name the first 16 are looked at, of others any number.
        let line = filler.repeat(if is_one { 15 } else { 30 * 1024 / filler.len() });
        assert_stays(&ask(&keel, &format!("{line}; {good}")), 2);
        let answer = ask(&keel, &filler.repeat(30 * 1024 / filler.len()));
        assert!(answer.status == 200 && cookie(&answer).is_some(), "{filler}: {}", answer.head);
    }
    let long = format!("evenkeel={}", "x".repeat(30 * 1024));
    assert!(cookie(&ask(&keel, &long)).is_some());
    assert_eq!(keel.server.readings().panics, 0);
}

#[test]
fn a_client_whose_backend_is_down_is_pinned_anew_and_stays_there() {
    let backends = fakes(2);
    let keel = Keel::with(&all(&backends), |config| {
        stick(config);
        probe_quickly(config);
    });
    until(&keel, 0, Health::Up);
    until(&keel, 1, Health::Up);
    let old = cookie_of(&keel, 1);
    backends[0].set_healthy(false);
    until(&keel, 0, Health::Down);
    let answer = ask(&keel, &old);
    assert_eq!(answer.text(), "Hello from fake-2");
    let new = cookie(&answer).expect("told in that very answer");
    assert_ne!(new, old);
    backends[0].set_healthy(true);
    until(&keel, 0, Health::Up);
    for _ in 0..5 {
        assert_stays(&ask(&keel, &new), 2);
        assert_stays(&ask(&keel, &old), 1);
    }
}

#[test]
fn a_refused_connect_costs_the_client_its_pin_and_nothing_else() {
    let backends = fakes(2);
    let keel = sticky(&backends);
    let old = cookie_of(&keel, 1);
    backends[0].stop_accepting();
    eventually("it has closed", || {
        backends[0].close_idle();
        backends[0].open_connections() == 0
    });
    until_refused(backends[0].addr());
    let answer = ask(&keel, &old);
    assert_eq!((answer.status, answer.text()), (200, "Hello from fake-2".into()));
    let new = cookie(&answer).expect("the one that served");
    assert!(keel.server.readings().retries <= 1);
    // Ejected by now: not even tried.
    assert_eq!(cookie(&ask(&keel, &old)), Some(new.clone()));
    backends[0].restart().unwrap();
    for _ in 0..5 {
        assert_stays(&ask(&keel, &new), 2);
    }
}

#[test]
fn right_after_a_start_a_client_waits_for_the_verdict_on_its_own_backend() {
    let backends = fakes(2);
    let old = cookie_of(&sticky(&backends), 1);
    let slow = Behaviour::default().latency(Duration::from_millis(300));
    backends[0].behave(slow);
    let keel = Keel::with(&all(&backends), |config| {
        stick(config);
        probe(
            config,
            evenkeel::config::model::HealthCheck { timeout: support::PATIENCE / 2, ..quick_health() },
        );
    });
    until(&keel, 1, Health::Up);
    assert_stays(&ask(&keel, &old), 1);
}

#[test]
fn answers_of_every_shape_carry_it() {
    let backends = fakes(1);
    let keel = sticky(&backends);
    let own = cookie_of(&keel, 1);
    for path in [
        "/status/204",
        "/status/304",
        "/status/404",
        "/status/500",
        "/bytes/100000",
        "/chunked/100000",
        "/chunked/9?trailer=1",
    ] {
        let mut client = keel.client();
        let answer = client.get(path);
        assert_eq!(cookie(&answer), Some(own.clone()), "{path}: {}", answer.head);
        assert!(!answer.cut);
        let plain = client.ask(&format!("GET {path} HTTP/1.1\r\nHost: test\r\nCookie: {own}\r\n\r\n"));
        assert_eq!((cookie(&plain), plain.status, plain.body), (None, answer.status, answer.body), "{path}");
    }
    let mut client = keel.client();
    let answer = client.send("HEAD /bytes/9 HTTP/1.1\r\nHost: test\r\n\r\n").answer_to_head();
    assert_eq!((cookie(&answer), answer.header("content-length")), (Some(own.clone()), Some("9")));
    assert_eq!(client.get("/bytes/9").body.len(), 9);
    let answer = client.get("/close/9");
    assert_eq!((cookie(&answer), answer.body.len(), answer.cut), (Some(own.clone()), 9, false));
    let answer = keel.client().ask("GET /chunked/9 HTTP/1.0\r\n\r\n");
    assert_eq!((cookie(&answer), answer.body.len()), (Some(own.clone()), 9));
    for bare in ["HTTP/1.1 200\r\n\r\nok", "HTTP/1.0 200 Fine\r\n\r\nok"] {
        raw(&backends[0], bare, Ending::Close);
        let answer = keel.client().get("/");
        assert_eq!((cookie(&answer), answer.text()), (Some(own.clone()), "ok".into()), "{bare}");
    }
}

fn raw(backend: &Running, answer: &str, ending: Ending) {
    backend.behave(Behaviour::fault(Fault::Raw { bytes: answer.as_bytes().to_vec(), ending }).times(1));
}

#[test]
fn a_switch_of_protocols_carries_it_and_interim_answers_do_not() {
    let backends = fakes(2);
    let keel = sticky(&backends);
    let upgrade = "GET /upgrade HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
    let mut client = keel.client();
    let answer = client.send(format!("{upgrade}\r\n")).answer();
    let own = cookie(&answer).expect("a cookie");
    assert_eq!((answer.status, lines(&answer, "cache-control")), (101, vec![]), "{}", answer.head);
    assert_eq!(client.send("ping").take(4), b"ping");
    let pinned = ask(&keel, &own);
    assert_eq!((pinned.status, cookie(&pinned)), (200, None));
    for _ in 0..3 {
        let before: Vec<u64> = backends.iter().map(Running::requests).collect();
        let answer = keel.client().send(format!("{upgrade}Cookie: {own}\r\n\r\n")).answer();
        assert_eq!((answer.status, cookie(&answer)), (101, None), "{}", answer.head);
        let grown = backends.iter().zip(before).find(|(backend, before)| backend.requests() > *before);
        assert_eq!(format!("Hello from {}", grown.unwrap().0.id()), pinned.text());
    }
    let mut client = keel.client();
    let hints = client.get("/early-hints");
    assert_eq!((hints.status, lines(&hints, "set-cookie")), (103, vec![]));
    assert!(cookie(&client.answer()).is_some());
}

#[test]
fn a_backends_own_cookie_of_that_name_is_left_alone_and_so_are_its_others() {
    let backends = fakes(1);
    let keel = sticky(&backends);
    let answer = |fields: &str| {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok");
        raw(&backends[0], &text, Ending::Serve);
        ask(&keel, "")
    };
    for own in ["evenkeel=theirs; Path=/app", "evenkeel =; Max-Age=0", "evenkeel=\"a=b\""] {
        let answer = answer(&format!("Set-Cookie: a=b\r\nset-cookie: {own}\r\nSet-Cookie: c=d; Secure\r\n"));
        assert_eq!(lines(&answer, "set-cookie"), ["a=b", own, "c=d; Secure"]);
        assert_eq!(lines(&answer, "cache-control"), Vec::<&str>::new());
    }
    for other in ["evenkeel", "Evenkeel=x", "evenkeel2=x", "x=evenkeel=y", "a=b; evenkeel=c"] {
        let answer = answer(&format!("Set-Cookie: {other}\r\n"));
        let set = lines(&answer, "set-cookie");
        assert_eq!((set.len(), set[0]), (2, other));
        assert!(set[1].starts_with("evenkeel=") && set[1].ends_with(ATTRIBUTES), "{}", set[1]);
    }
}

#[test]
fn what_a_backend_says_about_caches_is_left_alone() {
    let backends = fakes(1);
    let keel = sticky(&backends);
    raw(
        &backends[0],
        "HTTP/1.1 200 OK\r\ncache-control: public, max-age=60\r\nContent-Length: 2\r\n\r\nok",
        Ending::Serve,
    );
    let answer = ask(&keel, "");
    assert_eq!(lines(&answer, "cache-control"), ["public, max-age=60"]);
    assert!(cookie(&answer).is_some());
}

#[test]
fn our_own_answers_pin_nobody() {
    let backends = [Fake::http("fake-1").refusing().start_in_thread().unwrap()];
    let keel = sticky(&backends);
    let answer = ask(&keel, "");
    assert_own(&answer, Cause::ConnectFailed);
    assert_eq!(cookie(&answer), None);
    assert_eq!(cookie(&keel.client().ask("BAD\r\n\r\n")), None);

    let backends = fakes(1);
    let keel = sticky(&backends);
    backends[0].behave(Behaviour::fault(Fault::Garbage));
    let answer = ask(&keel, "");
    assert_own(&answer, Cause::BadAnswer);
    assert_eq!(cookie(&answer), None);
}

#[test]
fn a_target_without_it_sets_nothing_and_reads_nothing() {
    let backends = fakes(2);
    let good = cookie_of(&sticky(&backends), 1);
    let keel = Keel::http(&all(&backends));
    let answers: Vec<Answer> = (0..4).map(|_| ask(&keel, &good)).collect();
    assert_eq!(answers.iter().filter(|answer| answer.text() == "Hello from fake-1").count(), 2);
    assert!(answers.iter().all(|answer| cookie(answer).is_none()));
}

#[test]
fn the_backend_sees_the_cookie_as_the_client_sent_it() {
    let backend = recording();
    let keel = Keel::with(&[&backend], stick);
    ask(&keel, "a=b; evenkeel=whatever; c=d");
    let seen = backend.take_requests().pop().unwrap();
    assert_eq!(seen.header("cookie"), ["a=b; evenkeel=whatever; c=d"]);
}

#[test]
fn the_edge_without_a_wire_carries_it_too() {
    let backend = recording();
    let mut config = support::config(evenkeel::config::model::Protocol::Http, &[backend.addr()]);
    stick(&mut config);
    worker::run(&config, async |ctx| {
        let mut head = Head::request("GET", "/", "test");
        let (_, edge) = worker::ask(&ctx, &head, RequestBody::Empty).await;
        let set = edge.fields.iter().find(|(name, _)| name == "Set-Cookie");
        let (value, attributes) = set.unwrap().1.split_once("; ").unwrap();
        assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Lax");
        head.push(b"cookie", value.as_bytes());
        let (_, edge) = worker::ask(&ctx, &head, RequestBody::Empty).await;
        assert!(edge.status == 200 && edge.fields.iter().all(|(name, _)| name != "Set-Cookie"));
    });
}

#[test]
fn a_backend_without_weight_serves_those_it_has_and_nobody_new() {
    let backends = fakes(3);
    let kept = cookie_of(&sticky(&backends), 1);
    let keel = Keel::with(&all(&backends), |config| {
        stick(config);
        config.targets[0].backends[0].portion.weight = 0;
    });
    for _ in 0..10 {
        assert_stays(&ask(&keel, &kept), 1);
        assert_ne!(ask(&keel, "").text(), "Hello from fake-1");
    }
    backends[0].stop_accepting();
    eventually("it has closed", || {
        backends[0].close_idle();
        backends[0].open_connections() == 0
    });
    until_refused(backends[0].addr());
    let answer = ask(&keel, &kept);
    assert!(answer.status == 200 && cookie(&answer).is_some_and(|new| new != kept), "{}", answer.head);
}

#[test]
fn a_pinned_client_is_served_from_another_tier_or_zone_while_that_backend_is_up() {
    let backends = fakes(3);
    let kept: Vec<String> = (1..=3).map(|number| cookie_of(&sticky(&backends), number)).collect();
    let keel = Keel::with(&all(&backends), |config| {
        stick(config);
        let target = &mut config.targets[0];
        target.balance.zone = Some("here".into());
        for (backend, zone) in target.backends.iter_mut().zip(["here", "there", "here"]) {
            backend.portion.zone = Some(zone.into());
        }
        target.backends[2].portion.priority = evenkeel::config::model::Portion::BACKUP;
    });
    for _ in 0..3 {
        for (number, kept) in (1..).zip(&kept) {
            assert_stays(&ask(&keel, kept), number);
        }
        assert_eq!(ask(&keel, "").text(), "Hello from fake-1");
    }
}

#[test]
fn one_who_waits_for_its_own_backend_sends_nobody_else_to_the_queue() {
    let backends = fakes(3);
    let keel = Keel::with(&all(&backends), |config| {
        stick(config);
        // There is room in the queue for that one alone: who has to wait as well is refused.
        (config.targets[0].resilience.max_in_flight, config.targets[0].resilience.queue) = (Some(1), 1);
        config.targets[0].timeouts.queue = Duration::from_secs(60);
    });
    let own = cookie_of(&keel, 1);
    let served = backends[0].requests();
    backends[0].behave(Behaviour::hang().times(1));
    let asking = || {
        let mut client = keel.client();
        client.send(format!("{GET}Cookie: {own}\r\n\r\n"));
        client
    };
    let held = asking();
    eventually("it is served", || backends[0].requests() == served + 1);
    let mut pinned = asking();
    let waiting = || keel.server.targets()[0].waiting();
    eventually("it waits", || waiting() == 1);
    for _ in 0..20 {
        let text = ask(&keel, "").text();
        assert!(["Hello from fake-2", "Hello from fake-3"].contains(&&*text), "{text}");
    }
    assert_eq!((waiting(), backends[0].requests()), (1, served + 1));
    drop(held);
    assert_stays(&pinned.answer(), 1);
}
