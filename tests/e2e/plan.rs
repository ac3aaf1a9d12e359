//! What a reload would do, told without doing it.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use evenkeel::reload::plan::{ObjectChange, ObjectKind, Plan, PlanVerdict};
use evenkeel::reload::running::{Loader, RunningConfig};
use fake_backend::Authority;

use super::life_lab::connect;
use super::plan_lab::{Lab, read};
use super::support::{accept, eventually, fakes};

/// Kind, name and change of each object.
fn objects(plan: &Plan) -> Vec<(ObjectKind, &str, ObjectChange)> {
    plan.objects.iter().map(|object| (object.kind, object.name.as_str(), object.change)).collect()
}

const BEFORE: &str = "workers: 1
targets:
  web:
    protocol: http
    listener: 127.0.0.1:0
    health_check: off
    timeouts: {connect: 2s}
    backends:
      - {name: one, host: 127.0.0.1, port: 1}
      - {name: two, host: 127.0.0.1, port: 2}
  old: {listener: 127.0.0.1:0, health_check: off, backends: [{host: 127.0.0.1, port: 3}]}
";

const AFTER: &str = "workers: 1
max_connections: 77
targets:
  web:
    protocol: http
    listener: 127.0.0.1:0
    health_check: off
    balance: random
    timeouts: {connect: 3s}
    limits: {body: 1MiB}
    backends:
      - {name: two, host: 127.0.0.1, port: 2, weight: 3}
      - {name: three, host: 127.0.0.1, port: 4}
  new: {listener: 127.0.0.2:0, health_check: off, backends: [{host: a, port: 3}, {host: a, port: 4}]}
";

#[test]
fn a_plan_names_each_object_with_its_keys_and_lines_and_changes_nothing() {
    use ObjectChange::{Added, Changed, Removed};
    let lab = Lab::start(BEFORE);
    let (digest, bound) = (lab.digest(), lab.server.bound());
    let plan = lab.plan(AFTER);
    assert_eq!(plan.verdict, PlanVerdict::Taken);
    assert_eq!(
        objects(&plan),
        [
            (ObjectKind::Process, "", Changed),
            (ObjectKind::Listener, "web", Changed),
            (ObjectKind::Target, "web", Changed),
            (ObjectKind::Backend, "web/two", Changed),
            (ObjectKind::Backend, "web/three", Added),
            (ObjectKind::Backend, "web/one", Removed),
            (ObjectKind::Listener, "new", Added),
            (ObjectKind::Target, "new", Added),
            (ObjectKind::Backend, "new/a:3", Added),
            (ObjectKind::Backend, "new/a:4", Added),
            (ObjectKind::Listener, "old", Removed),
            (ObjectKind::Target, "old", Removed),
            (ObjectKind::Backend, "old/127.0.0.1:3", Removed),
        ]
    );
    let old = lab.server.bound().iter().find(|(name, _)| name == "old").unwrap().1.to_string();
    assert_eq!(
        plan.lines(),
        [
            "~ max_connections: (file descriptor limit - 200) / 2 -> 77 (evenkeel.yaml:2)".to_owned(),
            "~ listener web limits.body: off -> 1MiB (evenkeel.yaml:10)".to_owned(),
            "~ target web balance: round_robin -> random (evenkeel.yaml:8)".to_owned(),
            "~ target web timeouts.connect: 2s -> 3s (evenkeel.yaml:9)".to_owned(),
            "~ backend web/two weight: 1 -> 3 (evenkeel.yaml:12)".to_owned(),
            "+ backend web/three (evenkeel.yaml:13)".to_owned(),
            "- backend web/one (evenkeel.yaml:9)".to_owned(),
            "+ target new: 2 backends (evenkeel.yaml:14)".to_owned(),
            "- target old: 1 backend (evenkeel.yaml:11)".to_owned(),
            "+ address 127.0.0.2:0, listener new".to_owned(),
            format!("- address {old}, listener old"),
        ]
    );
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan, "it says the same to whoever asks");
    assert_eq!((lab.digest(), lab.server.bound()), (digest, bound));
    let done = lab.reload(AFTER).unwrap();
    assert_eq!((&done.objects, done.verdict), (&plan.objects, PlanVerdict::Taken));
    assert_eq!(lab.plan(AFTER), Plan::default(), "nothing would change");
    assert_eq!(*lab.reload(AFTER).unwrap(), Plan::default());
}

#[test]
fn a_backend_with_another_address_is_another_one_and_what_it_serves_is_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let of = |more: &str, port: u16| {
        format!(
            "workers: 1\ntargets:\n  t:\n    listener: 127.0.0.1:0\n    health_check: off\n    \
             backends: [{{name: a, host: 127.0.0.1, port: {port}}}{more}]\n"
        )
    };
    let port = listener.local_addr().unwrap().port();
    let lab = Lab::start(&of("", port));
    let address = lab.server.bound()[0].1.to_string().parse().unwrap();
    let (_client, _backend) = (connect(address), accept(&listener));
    eventually("the tunnel is counted", || lab.server.targets()[0].backends[0].in_flight() == 1);
    let plan = lab.plan(&of("", 1));
    let gone = &plan.objects[0];
    assert_eq!((gone.name.as_str(), gone.change), ("t/a", ObjectChange::Replaced));
    assert_eq!((gone.under_way, gone.loses_traffic, plan.objects.len()), (1, true, 1));
    assert_eq!(
        plan.lines()[0],
        "~ backend t/a: another one takes its place, 1 under way finish (evenkeel.yaml:6)"
    );
    assert!(
        plan.lines()[1].starts_with(&format!("~ backend t/a address: 127.0.0.1:{port} -> 127.0.0.1:1 ("))
    );
    // With nothing but a number of another kind it stays.
    let plan =
        lab.plan(&of(", {name: b, host: 127.0.0.1, port: 1}", port).replace("name: a", "name: a, weight: 0"));
    let a = plan.objects.iter().find(|object| object.name == "t/a").unwrap();
    assert_eq!((a.change, a.loses_traffic, a.under_way), (ObjectChange::Changed, true, 0));
    assert!(plan.lines()[0].contains("weight: 1 -> 0") && plan.lines()[0].ends_with("loses its traffic"));
    let removed = lab.plan(&of("", port).replace("  t:", "  u:"));
    let listener =
        removed.objects.iter().find(|object| object.kind == ObjectKind::Listener && object.name == "t");
    assert_eq!(listener.unwrap().connections, 1);
    let counts = removed.counts();
    assert!(counts.ends_with("1 under way finish, 1 connections finish"), "no two for one tunnel: {counts}");
    assert_eq!(removed.addresses.len(), 1, "the address goes over: {:?}", removed.addresses);
    assert!(removed.lines().iter().any(|line| line.contains("goes over from listener t to u")));
}

#[test]
fn a_plan_that_would_be_refused_says_everything_that_refuses_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let lab = Lab::start(BEFORE);
    let (digest, taken) = (lab.digest(), taken.local_addr().unwrap());
    let text = format!("name: other\n{AFTER}")
        .replace("workers: 1", "workers: 2")
        .replace("127.0.0.2:0", &format!("\"{taken}\""));
    let plan = lab.plan(&text);
    assert_eq!(plan.verdict, PlanVerdict::Refused);
    let said: Vec<&str> = plan.problems.iter().map(|problem| problem.first_line()).collect();
    assert_eq!(said[0], "evenkeel.yaml:1: `name` differs from what is in force; this needs a restart");
    assert_eq!(said[1], "evenkeel.yaml:2: `workers` differs from what is in force; this needs a restart");
    assert!(
        said[2].starts_with(&format!("evenkeel.yaml:15: listener new: can't bind {taken}: ")),
        "{said:?}"
    );
    assert_eq!((plan.problems[2].line, said.len()), (Some(15), 3));
    assert!(!plan.objects.is_empty(), "what it is about is told all the same");
    let wrong = lab.plan("workers: x\ntargetz: {}\n");
    assert_eq!((wrong.verdict, wrong.problems.len(), wrong.objects.len()), (PlanVerdict::Refused, 2, 0));
    assert_eq!((wrong.problems[0].line, wrong.problems[0].column), (Some(1), Some(10)));
    assert_eq!(lab.digest(), digest);
    assert_eq!(lab.reload("workers: x\ntargetz: {}\n").unwrap_err().problems, wrong.problems);
    assert_eq!(lab.digest(), digest);
}

#[test]
fn a_hundred_plans_leave_no_trace_also_not_in_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start_in(folder, BEFORE);
    let stale = lab.folder().join("stale.sock");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    let digest = lab.digest();
    for turn in 0..100 {
        let more = format!(
            "  more-{turn}:\n    listener: unix:new.sock\n    health_check: off\n    backends: [{{host: a, port: 1}}]\n"
        );
        let stale = "  stale:\n    listener: unix:stale.sock\n    backends: [{host: a, port: 1}]\n";
        let plan = lab.plan(&format!("{AFTER}{more}{stale}"));
        assert_eq!((plan.verdict, plan.problems), (PlanVerdict::Taken, Vec::new()));
        assert_eq!(lab.server.reloader().snapshots.alive(), 1);
    }
    assert!(!lab.folder().join("new.sock").exists() && stale.exists(), "sockets are as they were");
    assert_eq!(lab.digest(), digest);
    lab.reload(AFTER).unwrap();
    let mut numbers: Vec<u32> =
        lab.server.targets().iter().flat_map(|target| target.backends.iter().map(|one| one.id.0)).collect();
    numbers.sort_unstable();
    // Four backends; three were there, of whom one stays. Nobody has a number that plans have used up.
    assert!(numbers.last().is_some_and(|most| *most < 6), "{numbers:?}");
    assert!(lab.server.targets().iter().all(|target| target.id.0 < 3));
}

#[test]
fn a_certificate_with_other_contents_changes_its_listener_and_no_secret_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let issue = |name: &str| {
        let issued = Authority::new("plan").issue(["localhost"]);
        std::fs::write(folder.path().join(name), format!("{}{}", issued.cert_pem, issued.key_pem)).unwrap();
    };
    issue("a.pem");
    issue("b.pem");
    let of = |key: &str| {
        format!(
            "workers: 1\ntargets:\n  web:\n    protocol: https\n    listener: 127.0.0.1:0\n    health_check: off\n    \
             tls: {{cert_file: a.pem}}\n    sticky: {{key: {key}}}\n    backends: [{{host: 127.0.0.1, port: 1}}]\n"
        )
    };
    let before = of("the-first-secret-of-all");
    let (a, b) = (folder.path().join("a.pem"), folder.path().join("b.pem"));
    let lab = Lab::start_in(folder, &before);
    std::fs::rename(b, a).unwrap();
    let plan = lab.plan(&before);
    assert_eq!(objects(&plan), [(ObjectKind::Listener, "web", ObjectChange::Changed)]);
    let plan = lab.plan(&of("the-second-secret-of-all"));
    assert_eq!(plan.verdict, PlanVerdict::Taken);
    let told = plan.lines().into_iter().find(|line| line.contains("sticky.key")).unwrap();
    assert!(told.starts_with("~ target web sticky.key: (hidden) has changed (evenkeel.yaml:"), "{told}");
    let text = serde_json::to_string(&plan).unwrap() + &plan.lines().join("\n");
    assert!(!text.contains("secret-of-all"), "{text}");
}

#[test]
fn nobody_connects_to_an_address_that_is_only_tried_out() {
    let lab = Lab::start(BEFORE);
    let reserved = super::support::port::Reserved::new();
    let free = std::net::SocketAddr::from(([127, 0, 0, 1], reserved.number()));
    let text = AFTER.replace("127.0.0.2:0", &format!("\"{free}\""));
    let ended = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (ends, hits) = (
        Arc::clone(&ended),
        std::thread::spawn({
            let ended = Arc::clone(&ended);
            move || {
                let mut hits = 0;
                while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                    // A socket may meet itself on the way to a port of its own range.
                    let met = TcpStream::connect(free).is_ok_and(|one| one.local_addr().unwrap() != free);
                    hits += u32::from(met);
                }
                hits
            }
        }),
    );
    for _ in 0..50 {
        lab.plan(&text);
    }
    ends.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(hits.join().unwrap(), 0);
}

#[test]
fn a_listener_that_would_speak_otherwise_is_another_one_at_the_same_address() {
    let backends = fakes(1);
    let of = |protocol: &str| {
        format!(
            "workers: 1\ntargets:\n  t:\n    protocol: {protocol}\n    listener: 127.0.0.1:0\n    health_check: off\n    \
             backends: [{{host: 127.0.0.1, port: {}}}]\n",
            backends[0].port()
        )
    };
    let lab = Lab::start(&of("tcp"));
    let bound = lab.server.bound();
    let plan = lab.plan(&of("http"));
    assert_eq!(
        (plan.objects[0].kind, plan.objects[0].change),
        (ObjectKind::Listener, ObjectChange::Replaced)
    );
    assert!(plan.addresses.is_empty());
    lab.reload(&of("http")).unwrap();
    assert_eq!(lab.server.bound(), bound);
}

#[test]
fn a_plan_warns_of_all_that_check_warns_of() {
    let lab = Lab::start(BEFORE);
    assert_eq!(lab.plan(BEFORE).warnings, [""; 0]);
    let open = "targets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    sticky: {}\n    \
                upstream_tls: {insecure: true}\n    backends: [{host: 127.0.0.1, port: 1}]\nworkers: 1\n";
    let warnings = lab.plan(open).warnings;
    assert!(warnings.iter().any(|warning| warning.contains("of web are not verified")), "{warnings:?}");
    assert!(warnings.iter().any(|warning| warning.contains("sticky cookies of web")), "{warnings:?}");
    assert_eq!(lab.reload(open).unwrap().warnings, warnings);
}

/// A certificate or a config that changes later would be loaded by nobody.
#[test]
fn a_reading_that_panics_leaves_the_files_watched() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), "0123456789abcdef").unwrap();
    let text = "workers: 1\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    \
                sticky: {key_file: key}\n    backends: [{host: 127.0.0.1, port: 1}]\n";
    let loaded = read(text, folder.path()).unwrap();
    let lab = Lab::start_in(folder, text);
    let panics: Loader = Arc::new(|| panic!("this panic is wanted"));
    let running = RunningConfig::new(
        lab.server.reloader(),
        panics,
        Arc::new(|_, _| ()),
        evenkeel::reload::begun::Begun::bare(loaded),
    );
    let files = running.files();
    assert_eq!(files.borrow().paths().count(), 1);
    lab.server.control().unwrap().block_on(running.reload()).unwrap_err();
    assert_eq!(files.borrow().paths().count(), 1);
}

#[test]
fn what_is_cached_and_compressed_is_told_of_the_listener_and_the_store_of_the_process() {
    let of = |store: &str, keys: &str| {
        format!(
            "workers: 1\ncache_store: {{memory: {store}}}\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    \
             health_check: off\n    {keys}\n    backends: [{{host: 127.0.0.1, port: 1}}]\n"
        )
    };
    let lab = Lab::start(&of("64MiB", "cache: {ttl: 10s}"));
    let (digest, after) = (lab.digest(), of("128MiB", "cache: {ttl: 20s}\n    compress: gzip"));
    let plan = lab.plan(&after);
    assert_eq!(
        objects(&plan),
        [
            (ObjectKind::Process, "", ObjectChange::Changed),
            (ObjectKind::Listener, "web", ObjectChange::Changed),
        ]
    );
    assert_eq!(
        plan.lines(),
        [
            "~ cache_store.memory: 64MiB -> 128MiB (evenkeel.yaml:2)",
            "~ cache_store.object: 8MiB -> 16MiB (default)",
            "~ listener web cache.ttl: 10s -> 20s (evenkeel.yaml:8)",
            "~ listener web compress.codings: [gzip] is new (evenkeel.yaml:9)",
            "~ listener web compress.at_least: 1KiB is new (default)",
            "~ listener web compress.cookies: false is new (default)",
        ]
    );
    lab.reload(&after).unwrap();
    assert_ne!(lab.digest(), digest);
    assert_eq!(lab.plan(&after), Plan::default(), "nothing would change");
    // The store alone is a change too.
    assert_eq!(objects(&lab.plan(&after.replace("128MiB", "256MiB"))).len(), 1);
}
