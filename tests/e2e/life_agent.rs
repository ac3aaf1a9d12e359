//! Agents: backends that say themselves how much they can take.

use std::net::IpAddr;
use std::time::Duration;

use evenkeel::config::model::{HealthCheck, Sticky};
use evenkeel::targets::{Health, Source};
use fake_backend::{Fake, Running};

use super::life_lab::{probe, status, until};
use super::support::agent::Agents;
use super::support::{Client, Keel, backend, config, events, eventually, quick_health};

/// Two backends on addresses of their own, with agents, in front of them a server that asks often.
struct Scene {
    agents: Agents,
    _backends: Vec<Running>,
    keel: Keel,
    at: [IpAddr; 2],
}

impl Scene {
    fn new() -> Scene {
        let agents = Agents::start();
        let backends: Vec<Running> = [1, 2]
            .map(|number| Fake::http(format!("fake-{number}")).bind(format!("127.0.0.{number}:0")))
            .map(|fake| fake.start_in_thread().unwrap())
            .into();
        let addresses: Vec<_> = backends.iter().map(Running::addr).collect();
        let mut config = config(evenkeel::config::model::Protocol::Http, &addresses);
        probe(&mut config, HealthCheck { agent: Some(agents.port()), ..quick_health() });
        let target = &mut config.targets[0];
        target.sticky =
            Some(Sticky { cookie: "stay".into(), key: b"a key".as_slice().into(), is_fleeting: false });
        target.backends.iter_mut().for_each(|backend| backend.portion.weight = 4);
        let keel = Keel::start(&config);
        until(&keel, 0, Health::Up);
        until(&keel, 1, Health::Up);
        let at = [1, 2].map(|number| IpAddr::from([127, 0, 0, number]));
        Scene { agents, _backends: backends, keel, at }
    }

    /// How many of `count` requests of new clients come to each backend.
    fn shares(&self, count: usize) -> [usize; 2] {
        let mut client = self.keel.client();
        let mut shares = [0, 0];
        for _ in 0..count {
            let text = client.get("/").text();
            let number =
                ["Hello from fake-1", "Hello from fake-2"].iter().position(|greeting| *greeting == text);
            shares[number.expect("one of the two")] += 1;
        }
        shares
    }

    /// The cookie of a client of the backend with this number, counted from 1.
    fn cookie_of(&self, number: usize) -> String {
        let wanted = format!("Hello from fake-{number}");
        let mut client = self.keel.client();
        let answer = (0..20)
            .map(|_| client.get("/"))
            .find(|answer| answer.text() == wanted)
            .expect("it gets its share");
        answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }

    fn ask_with(&self, cookie: &str) -> String {
        let mut client: Client = self.keel.client();
        client.ask(&format!("GET / HTTP/1.1\r\nHost: test\r\nCookie: {cookie}\r\n\r\n")).text()
    }
}

#[test]
fn a_percentage_is_a_share_of_the_weight_and_holds_until_another_one_is_said() {
    let scene = Scene::new();
    assert_eq!(scene.shares(8), [4, 4]);
    scene.agents.say(scene.at[0], "up 25%\n");
    // It is said right before it holds.
    eventually("it is heard", || scene.shares(10) == [2, 8]);
    assert_eq!(status(&scene.keel, 0).share, 25);
    // An agent that says nothing, or nonsense, changes nothing.
    for line in ["", "\n", "load 0.7\n", "up"] {
        scene.agents.say(scene.at[0], line);
        scene.agents.until_heard(scene.at[0]);
        assert_eq!(scene.shares(10), [2, 8], "{line:?}");
    }
    scene.agents.say(scene.at[0], "200%\r\n");
    eventually("it is heard", || scene.shares(12) == [8, 4]);
    assert_eq!(status(&scene.keel, 0).share, 200);
    scene.agents.say(scene.at[0], "0%");
    let drained = until(&scene.keel, 0, Health::Draining);
    assert_eq!((drained.source, &*drained.reason), (Source::Agent, "the agent says 0%"));
    assert_eq!(scene.shares(8), [0, 8]);
    scene.agents.say(scene.at[0], "100%");
    until(&scene.keel, 0, Health::Up);
    // It is said to be up right before it is among those that are picked from.
    eventually("it has its share again", || scene.shares(8) == [4, 4]);
}

#[test]
fn a_drained_backend_keeps_its_clients_and_ready_ends_it() {
    let scene = Scene::new();
    let cookie = scene.cookie_of(1);
    scene.agents.say(scene.at[0], "drain\n");
    until(&scene.keel, 0, Health::Draining);
    assert_eq!(scene.shares(6), [0, 6]);
    assert_eq!(scene.ask_with(&cookie), "Hello from fake-1");
    scene.agents.say(scene.at[0], "maint\n");
    let down = until(&scene.keel, 0, Health::Down);
    assert_eq!((down.source, &*down.reason), (Source::Agent, "the agent says maint"));
    assert_eq!(scene.ask_with(&cookie), "Hello from fake-2");
    // What it does not speak of stays.
    scene.agents.say(scene.at[0], "up 100%\n");
    scene.agents.until_heard(scene.at[0]);
    assert_eq!(status(&scene.keel, 0).health, Health::Down);
    scene.agents.say(scene.at[0], "ready\n");
    until(&scene.keel, 0, Health::Up);
    assert_eq!(scene.shares(6), [3, 3]);
}

#[test]
fn an_agent_takes_its_backend_out_with_a_reason_although_the_probe_is_content() {
    events::listen();
    let scene = Scene::new();
    scene.agents.say(scene.at[1], "down#disk is full\n");
    let down = until(&scene.keel, 1, Health::Down);
    assert_eq!((down.source, &*down.reason), (Source::Agent, "the agent says down: disk is full"));
    assert_eq!(scene.shares(4), [4, 0]);
    let name = &status(&scene.keel, 1).name;
    let line = format!("backend web/{name} is down: the agent says down: disk is full");
    eventually("it is logged", || events::with(&line).len() == 1);
    // Its probe has nothing against it, and its agent is the only one who can take that back.
    scene.agents.say(scene.at[1], "ready 100%");
    scene.agents.until_heard(scene.at[1]);
    assert_eq!(status(&scene.keel, 1).health, Health::Down);
    scene.agents.say(scene.at[1], "up");
    until(&scene.keel, 1, Health::Up);
    assert_eq!(scene.shares(4), [2, 2]);
}

#[test]
fn an_agent_that_is_not_there_changes_nothing_and_is_told_once() {
    events::listen();
    let fake = Fake::http("fake-1").start_in_thread().unwrap();
    let mut config = config(evenkeel::config::model::Protocol::Http, &[]);
    let mut only = backend(fake.addr());
    only.name = "agentless".into();
    config.targets[0].backends.push(only);
    // A port that nobody else can get and that refuses: bound, not listening.
    let closed = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    closed.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let port = closed.local_addr().unwrap().as_socket().unwrap().port();
    let health = HealthCheck { agent: Some(port), interval: Duration::from_millis(20), ..quick_health() };
    probe(&mut config, health);
    let keel = Keel::start(&config);
    until(&keel, 0, Health::Up);
    let line = "the agent of backend web/agentless tells nothing new, its words stand: connection refused";
    eventually("it is logged", || !events::with(line).is_empty());
    let before = fake.probes();
    eventually("some time has passed", || fake.probes() >= before + 10);
    assert_eq!(events::with(line).len(), 1, "once");
    assert_eq!(keel.client().get("/").status, 200);
    assert_eq!((status(&keel, 0).health, status(&keel, 0).share), (Health::Up, 100));
}

/// Who has a cookie stays; a login alone can be made again elsewhere.
#[test]
fn a_drained_backend_gives_up_connections_that_carry_an_identity() {
    let scene = Scene::new();
    let mut alice = scene.keel.client();
    let mut ask = |line: &str| alice.ask(&format!("GET /login HTTP/1.1\r\nHost: test\r\n{line}\r\n"));
    let first = ask("Authorization: Negotiate alice\r\n");
    assert_eq!((first.text(), ask("").text()), ("hello alice".to_owned(), "hello alice".to_owned()));
    let nth = usize::from(first.header("x-backend") == Some("fake-2"));
    scene.agents.say(scene.at[nth], "drain\n");
    until(&scene.keel, nth, Health::Draining);
    assert_eq!(ask("").status, 401);
}
