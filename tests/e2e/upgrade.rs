//! Another binary in the place of the process, while it serves.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::Command;

use fake_backend::{Behaviour, Fake, TcpMode};
use serde_json::{Value, json};

use super::support::process::{Process, ask, whole};
use super::support::{Client, PATIENCE, eventually, fakes};
use super::upgrade_kills::{child_of, stands};
use super::upgrade_lab::{Crowd, Heirs, config, ended, identity, metrics_address, refused, signal};

#[test]
fn upgrades_under_load_lose_no_request_and_the_process_before_ends() {
    let backends = fakes(2);
    let mut process = Process::start(&config(&backends, "metrics: {listener: '127.0.0.1:0'}"), 1);
    let (address, socket, mut heirs) = (process.address("web"), process.socket(), Heirs::default());
    let crowd = Crowd::start(address);
    crowd.go_on(200);
    for generation in 2..=5 {
        let answer = heirs.upgrade(&socket, &json!({}));
        assert_eq!(answer["generation"], generation, "{answer}");
        let said: Vec<&String> = answer.as_object().unwrap().keys().collect();
        assert_eq!(said, ["draining", "generation", "process", "version"], "as the OpenAPI document has it");
        crowd.go_on(200);
        eventually("the one before ends", || ended(&process) == heirs.0.len());
    }
    crowd.end();
    eventually("the first one has ended", || process.has_ended());
    let said = process.said();
    assert_eq!(identity(&socket), heirs.0.last().copied());
    let takes = said.iter().filter(|line| line.contains("in the place of process"));
    assert_eq!(takes.count(), 4, "{said:#?}");
    assert!(!said.iter().any(|line| line.contains("WARN")), "{said:#?}");
}

#[test]
fn what_can_not_take_over_changes_nothing() {
    let backends = fakes(1);
    let text = config(&backends, "");
    let process = Process::start(&text, 1);
    let crowd = Crowd::start(process.address("web"));
    let folder = process.folder();
    let script = |name: &str, mode: u32| {
        let path = folder.join(name);
        // By another process: what is open for writing in this one is open in whatever another test begins at this moment, and can't be run as long.
        let made =
            Command::new("install").args(["-m", &format!("{mode:o}"), "/bin/true"]).arg(&path).status();
        assert!(made.unwrap().success());
        path
    };
    let with = |binary: &Path| refused(&process, &json!({"binary": binary}));
    assert!(with(&folder.join("none")).contains("No such file"));
    assert!(with(folder).contains("this is no file"));
    assert!(with(&script("open", 0o777)).contains("others than its owner may write it"));
    assert!(with(&script("data", 0o644)).contains("it can't be run"));
    std::fs::write(folder.join("words"), "no program at all").unwrap();
    std::fs::set_permissions(folder.join("words"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(with(&folder.join("words")).contains("it can't be run"));
    std::fs::write(folder.join("script"), "#!/bin/sh\nexec evenkeel").unwrap();
    std::fs::set_permissions(folder.join("script"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(with(&folder.join("script")).contains("script"));
    let ended = with(&script("true", 0o755));
    assert!(ended.contains("has ended before it was ready (exit status: 0)"), "{ended}");
    assert!(with(Path::new("evenkeel")).contains("not absolute"));
    // The file is wrong by now, and the address of another process.
    std::fs::write(folder.join("evenkeel.yaml"), "targets: {web: {protocol: htp}}").unwrap();
    let why = refused(&process, &json!({}));
    assert!(why.contains("nothing has changed: the new process can't: ") && why.contains("htp"), "{why}");
    let told = String::from_utf8(process.command(&["upgrade"]).stderr).unwrap();
    assert!(told.contains("\n  hint: did you mean `http`?\n"), "line by line: {told}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let more = format!(
        "listeners: {{other: {{bind: '{}', protocol: http, routes: [{{target: web}}]}}}}",
        taken.local_addr().unwrap()
    );
    std::fs::write(folder.join("evenkeel.yaml"), whole(&format!("{text}\n{more}"))).unwrap();
    let why = refused(&process, &json!({}));
    assert!(why.contains("can't bind"), "{why}");
    let with_config = |text: &str| {
        std::fs::write(folder.join("evenkeel.yaml"), whole(text)).unwrap();
        refused(&process, &json!({}))
    };
    let away = with_config(&text.replace("listener: '127.0.0.1:0'", "listener: '192.0.2.1:0'"));
    assert!(away.contains("192.0.2.1"), "{away}");
    let secure = "protocol: https, tls: {cert_file: none.pem, cert_key: none.pem}";
    let unread = with_config(&text.replace("protocol: http", secure));
    assert!(unread.contains("none.pem"), "{unread}");
    let tested =
        with_config(&format!("{text}\ntests: [{{request: {{host: a}}, expect: {{target: other}}}}]"));
    assert!(tested.contains("other"), "{tested}");
    let (status, _) = process.ask("POST /api/v1/upgrade", br#"{"binary": 7}"#);
    assert!([400, 422].contains(&status), "{status}");
    // It serves, and can be changed.
    assert_eq!(identity(&process.socket()), Some(process.id()));
    let told = process.reload(&text);
    assert!(told.contains("reload"), "{told}");
    crowd.go_on(100);
    crowd.end();
}

#[test]
fn everything_that_somebody_may_connect_to_goes_on_with_other_workers() {
    let echo = Fake::udp("udp").behave(Behaviour::tcp(TcpMode::GreetAndEcho)).start_in_thread().unwrap();
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let unix = folder.path().join("web.sock");
    let of = |workers: usize| {
        let more = format!(
            "metrics: {{listener: '127.0.0.1:0'}}\nlisteners: {{local: {{bind: 'unix:{}', protocol: http, routes: [{{target: web}}]}}}}",
            unix.display()
        );
        let udp = format!(
            "dns: {{protocol: udp, listener: '127.0.0.1:0', backends: [{{url: 'udp://{}'}}]}}, web:",
            echo.addr()
        );
        config(&backends, &more).replace("web:", &udp).replace("workers: 2", &format!("workers: {workers}"))
    };
    let process = Process::start(&of(2), 3);
    let (socket, mut heirs) = (process.socket(), Heirs::default());
    let (web, dns, metrics) = (process.address("web"), process.address("dns"), metrics_address(&process));
    let works = |what: &str| {
        assert_eq!(Client::connect(web).get("/").status, 200, "{what}");
        let mut local = Client::over(UnixStream::connect(&unix).unwrap());
        assert_eq!(local.get("/").status, 200, "{what}");
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.send_to(b"ping", dns).unwrap();
        let mut answer = [0; 100];
        let length = client.recv(&mut answer).unwrap();
        assert!(answer[..length].ends_with(b"ping"), "{what}");
        let mut scrape = TcpStream::connect(metrics).unwrap();
        scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        scrape.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{what}: {text}");
    };
    works("before");
    for workers in [4, 1, 3] {
        let text = whole(&of(workers));
        std::fs::write(process.folder().join("evenkeel.yaml"), text).unwrap();
        heirs.upgrade(&socket, &json!({}));
        eventually("the old one accepts no more", || ended(&process) == heirs.0.len());
        (0..10).for_each(|_| works(&format!("{workers} workers")));
        // And another config can take its place in turn.
        let (status, answer) = ask(&socket, "POST /api/v1/reload", b"");
        assert_eq!(status, 200, "{answer}");
    }
    assert!(unix.exists() && socket.exists());
}

#[test]
fn what_is_changed_by_hand_goes_on_and_no_more_than_three_drain() {
    let backends = fakes(2);
    let patient = config(&backends, "").replace("shutdown_timeout: 20s", "shutdown_timeout: 1h");
    let process = Process::start(&patient, 1);
    let (address, socket, mut heirs) = (process.address("web"), process.socket(), Heirs::default());
    let backend = backends[0].addr();
    let path = format!("PATCH /api/v1/targets/web/backends/{backend}");
    assert_eq!(ask(&socket, &path, br#"{"state": "drain"}"#).0, 200);
    backends[1].behave(Behaviour::default().latency(std::time::Duration::from_secs(60)).sparing_health());
    let mut held = Vec::new();
    for number in 1..=3 {
        // Each generation has a request under way that does not end.
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let wanted = number as u64;
        eventually("it is under way", || backends[1].requests() >= wanted);
        held.push(client);
        let answer = heirs.upgrade(&socket, &json!({}));
        assert_eq!(answer["draining"].as_array().unwrap().len(), number, "{answer}");
        let (_, overlay) = ask(&socket, "GET /api/v1/overlay", b"");
        assert_eq!(overlay["entries"].as_array().unwrap().len(), 1, "{overlay}");
    }
    let (status, answer) = ask(&socket, "POST /api/v1/upgrade", b"{}");
    let detail = answer["detail"].as_str().unwrap();
    assert!(status == 409 && detail.contains("3 processes of earlier upgrades still drain"), "{answer}");
    assert!(detail.contains(&format!("process {}, for ", process.id())), "{answer}");
    heirs.upgrade(&socket, &json!({"force": true}));
    let mut rest = Vec::new();
    held[0].set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = held[0].read_to_end(&mut rest);
    let mut process = process;
    eventually("the oldest one has ended", || process.has_ended());
    eventually("it says why", || {
        process.said().iter().any(|line| line.contains("another upgrade wants room"))
    });
}

/// Found under a systemd: whoever stops the service tells all of its processes, and the one before took that for a second signal.
#[test]
fn one_that_drains_for_its_successor_cuts_nothing_at_the_first_signal() {
    let backends = fakes(1);
    let mut process = Process::start(&config(&backends, ""), 1);
    let mut heirs = Heirs::default();
    backends[0].behave(Behaviour::default().latency(std::time::Duration::from_secs(1)).sparing_health());
    let mut client = TcpStream::connect(process.address("web")).unwrap();
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    eventually("it is under way", || backends[0].requests() >= 1);
    heirs.upgrade(&process.socket(), &json!({}));
    process.terminate();
    heirs.terminate();
    let mut answer = String::new();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?} {:#?}", process.said());
    eventually("it has ended", || process.has_ended());
    assert!(!process.said().iter().any(|line| line.contains("cutting")), "{:#?}", process.said());
}

/// A process that stands still until it is let go on: where it has what it inherits, and does not serve yet.
fn hold(process: &Process, heirs: &mut Heirs) -> (u32, std::thread::JoinHandle<(u16, Value)>) {
    let socket = process.socket();
    let asking = std::thread::spawn(move || ask(&socket, "POST /api/v1/upgrade", b"{}"));
    let child = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", process.id())).unwrap();
        let children =
            tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok());
        children.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).next()
    };
    let mut found = None;
    eventually("a new process begins", || {
        found = child();
        // It is one of its own from when it is run: before that the other one waits for it.
        let environment = found.as_ref().map(|child| std::fs::read(format!("/proc/{child}/environ")));
        let environment = environment.and_then(Result::ok).unwrap_or_default();
        environment.windows(17).any(|part| part == b"EVENKEEL_UPGRADE=")
    });
    let heir: u32 = found.unwrap().parse().unwrap();
    signal(heir, rustix::process::Signal::STOP);
    heirs.0.push(heir);
    (heir, asking)
}

/// Found by an attack: the one before made the sockets deaf that both have, and the new one went on with them.
#[test]
fn a_process_that_is_told_to_end_while_it_hands_over_leaves_nobody_behind() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(&config(&backends, ""))).unwrap();
    let mut process = Process::start_with(folder, 1, &[("EVENKEEL_UPGRADE_STOP", Path::new("new:taken"))]);
    let (address, socket, mut heirs) = (process.address("web"), process.socket(), Heirs::default());
    let asking = std::thread::spawn(move || ask(&socket, "POST /api/v1/upgrade", b"{}"));
    let mut found = None;
    eventually("the new one has what it inherits, and stands still", || {
        found = child_of(process.id());
        found.is_some_and(stands)
    });
    let heir = found.unwrap();
    heirs.0.push(heir);
    process.terminate();
    let (status, answer) = asking.join().unwrap();
    assert_eq!(status, 409, "{answer}");
    eventually("it has ended", || process.has_ended());
    eventually("and so has the new one", || !Path::new(&format!("/proc/{heir}")).exists());
    heirs.0.clear();
    assert!(TcpStream::connect(address).is_err(), "nobody has the port");
}

/// Found by an attack: a change that waited for its turn was written into a journal that the new process had read already.
#[test]
fn a_change_that_waits_meanwhile_is_refused_and_the_journal_stays_whole() {
    let backends = fakes(1);
    let process = Process::start(&config(&backends, ""), 1);
    let (socket, mut heirs) = (process.socket(), Heirs::default());
    let path = format!("PATCH /api/v1/targets/web/backends/{}", backends[0].addr());
    let (heir, asking) = hold(&process, &mut heirs);
    let waiting = std::thread::spawn({
        let (socket, path) = (socket.clone(), path.clone());
        move || ask(&socket, &path, br#"{"weight": 9}"#)
    });
    // It is on its way, or not yet: either is fine.
    signal(heir, rustix::process::Signal::CONT);
    let (status, answer) = asking.join().unwrap();
    assert_eq!(status, 200, "{answer}");
    let (waited, said) = waiting.join().unwrap();
    eventually("the new one answers", || identity(&socket) == Some(heir));
    let entries =
        |socket: &Path| ask(socket, "GET /api/v1/overlay", b"").1["entries"].as_array().unwrap().len();
    assert_eq!(entries(&socket), usize::from(waited == 200), "{waited} {said}");
    assert_eq!(ask(&socket, &path, br#"{"weight": 7}"#).0, 200);
    heirs.upgrade(&socket, &json!({}));
    assert_eq!(entries(&socket), 1);
    let said = process.said();
    assert!(!said.iter().any(|line| line.contains("damaged") || line.contains("left out")), "{said:#?}");
}

/// Found by an attack: a new process that was refused had ended an entry that its edited file says itself.
#[test]
fn an_upgrade_that_fails_has_written_nothing() {
    let backends = fakes(1);
    let text = config(&backends, "");
    let process = Process::start(&text, 1);
    let path = format!("PATCH /api/v1/targets/web/backends/{}", backends[0].addr());
    assert_eq!(process.ask(&path, br#"{"weight": 5}"#).0, 200);
    let journal = || {
        let mut found = Vec::new();
        let mut folders = vec![process.folder().join("state")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false if entry.file_name() == "overlay.journal" => {
                        found = std::fs::read(entry.path()).unwrap()
                    }
                    false => {}
                }
            }
        }
        found
    };
    let before = journal();
    assert!(!before.is_empty());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let more = format!(
        "listeners: {{other: {{bind: '{}', protocol: http, routes: [{{target: web}}]}}}}",
        taken.local_addr().unwrap()
    );
    let edited = config(&backends, &more).replace("'}]", "', weight: 5}]");
    std::fs::write(process.folder().join("evenkeel.yaml"), whole(&edited)).unwrap();
    let why = refused(&process, &json!({}));
    assert!(why.contains("can't bind"), "{why}");
    assert_eq!(journal(), before);
    // Nor is anybody cut for one that comes to nothing.
    let why = refused(&process, &json!({"binary": "/nowhere", "force": true}));
    assert!(why.contains("nothing has changed"), "{why}");
}

/// Found by an attack: sockets that the edited file does not have any more kept their files for ever.
#[test]
fn files_of_sockets_that_nobody_has_any_more_are_gone() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let unix = folder.path().join("web.sock");
    let more = format!(
        "listeners: {{local: {{bind: 'unix:{}', protocol: http, routes: [{{target: web}}]}}}}",
        unix.display()
    );
    let process = Process::start(&config(&backends, &more), 2);
    let (socket, mut heirs) = (process.socket(), Heirs::default());
    let other = folder.path().join("admin.sock");
    let edited = config(&backends, &format!("admin: {{socket: '{}'}}", other.display()));
    std::fs::write(process.folder().join("evenkeel.yaml"), whole(&edited)).unwrap();
    let (status, answer) = ask(&socket, "POST /api/v1/upgrade", b"{}");
    assert_eq!(status, 200, "{answer}");
    heirs.0.push(answer["process"].as_u64().unwrap() as u32);
    eventually("it answers at its own place", || {
        other.exists() && identity(&other) == heirs.0.first().copied()
    });
    eventually("the others are gone", || !unix.exists() && !socket.exists());
}

#[test]
fn a_supervisor_is_told_when_it_serves_and_which_process_does() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let told = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    told.set_read_timeout(Some(PATIENCE)).unwrap();
    let hear = || {
        let mut said = [0; 200];
        let length = told.recv(&mut said).unwrap();
        String::from_utf8(said[..length].to_vec()).unwrap()
    };
    let place = folder.path().join("notify");
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(&config(&backends, ""))).unwrap();
    let process = Process::start_with(folder, 1, &[("NOTIFY_SOCKET", &place)]);
    assert_eq!(hear(), "READY=1\n");
    let (socket, mut heirs) = (process.socket(), Heirs::default());
    let answer = heirs.upgrade(&socket, &json!({}));
    // The new one says that it serves as soon as it is alone.
    assert_eq!(hear(), format!("MAINPID={}\n", answer["process"]));
    assert_eq!(hear(), "READY=1\n");
}
