//! What `plan` said is what then happened: over generated configs, one after the other, with real sockets.
//!
//! What happened is taken from the process and not from the plan's own way of comparing: which addresses can be connected to,
//! which objects are the very same, what is bound. What should differ comes from what was generated.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use evenkeel::reload::bound::Bound;
use evenkeel::reload::fault::Fault;
use evenkeel::reload::plan::{AddressChange, ObjectChange, ObjectKind, Plan, PlanVerdict, PlannedObject};
use evenkeel::server::Server;
use evenkeel::targets::{Backend, Target};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::plan_lab::Lab;

/// One config as it was generated.
#[derive(Clone, Debug, Default)]
struct Written {
    top: BTreeMap<&'static str, String>,
    targets: BTreeMap<&'static str, WrittenTarget>,
}

#[derive(Clone, Debug, Default)]
struct WrittenTarget {
    listener: String,
    listener_keys: BTreeMap<&'static str, String>,
    keys: BTreeMap<&'static str, String>,
    backends: BTreeMap<&'static str, WrittenBackend>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct WrittenBackend {
    port: u16,
    path: &'static str,
    weight: u8,
}

const TARGETS: &[&str] = &["a", "b", "c", "c.d"];
const BACKENDS: &[&str] = &["one", "two", "three"];

struct Chance(StdRng);

impl Chance {
    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.0.random_range(0..of.len())].clone()
    }

    fn odds(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }
}

/// No two of a target may have the same address.
fn backend(name: &str, chance: &mut Chance) -> WrittenBackend {
    let place = u16::try_from(BACKENDS.iter().position(|other| *other == name).unwrap()).unwrap();
    WrittenBackend {
        port: 2 * place + chance.one(&[1, 2]),
        path: chance.one(&["/", "/", "/h"]),
        weight: chance.one(&[1, 1, 2]),
    }
}

fn target(chance: &mut Chance) -> WrittenTarget {
    let mut target = WrittenTarget {
        listener: chance
            .one(&["127.0.0.1:0", "127.0.0.1:0", "unix:a.sock", "unix:b.sock", "unix:c.sock"])
            .into(),
        ..WrittenTarget::default()
    };
    let own = [("limits", ["{body: 1MiB}", "{body: 2MiB}"]), ("x_real_ip", ["true", "false"])];
    for (key, values) in own {
        if chance.odds(30) {
            target.listener_keys.insert(key, chance.one(&values).into());
        }
    }
    let keys = [
        ("balance", ["random", "least_connections"]),
        ("max_in_flight", ["5", "9"]),
        ("timeouts", ["{connect: 1s}", "{connect: 2s}"]),
        ("breaker", ["off", "{failures: 3}"]),
    ];
    for (key, values) in keys {
        if chance.odds(30) {
            target.keys.insert(key, chance.one(&values).into());
        }
    }
    for name in BACKENDS {
        if chance.odds(60) {
            target.backends.insert(name, backend(name, chance));
        }
    }
    if target.backends.is_empty() {
        target.backends.insert("one", backend("one", chance));
    }
    target
}

/// Something like `before`: what is near it is what people do.
fn next(before: &Written, taken: &str, chance: &mut Chance) -> Written {
    let mut next = before.clone();
    for name in TARGETS {
        match (chance.odds(25), next.targets.contains_key(name)) {
            (true, true) if chance.odds(40) => drop(next.targets.remove(name)),
            (true, true) => {
                let fresh = target(chance);
                let old = next.targets.get_mut(name).unwrap();
                match chance.0.random_range(0..4) {
                    0 => old.backends = fresh.backends,
                    1 => old.keys = fresh.keys,
                    2 => old.listener_keys = fresh.listener_keys,
                    _ => old.listener = fresh.listener,
                }
            }
            (true, false) => drop(next.targets.insert(name, target(chance))),
            (false, _) => {}
        }
    }
    if next.targets.is_empty() {
        next.targets.insert("a", target(chance));
    }
    for (key, values) in [("max_connections", ["100", "200"]), ("shutdown_timeout", ["1s", "2s"])] {
        if chance.odds(15) {
            next.top.insert(key, chance.one(&values).into());
        }
    }
    // What is refused: sockets of the same path, too, come by themselves.
    if chance.odds(8) {
        next.top.insert("workers", "2".into());
    }
    if chance.odds(8) {
        next.top.insert("unknown", "1".into());
    }
    if chance.odds(8) {
        next.targets.values_mut().next().unwrap().listener = taken.to_owned();
    }
    next
}

fn yaml(written: &Written) -> String {
    let mut text = String::new();
    let mut top = written.top.clone();
    top.entry("workers").or_insert_with(|| "1".into());
    for (key, value) in top {
        text += &format!("{key}: {value}\n");
    }
    text += "targets:\n";
    for (name, target) in &written.targets {
        text += &format!(
            "  {name}:\n    protocol: http\n    listener: {}\n    health_check: off\n",
            target.listener
        );
        for (key, value) in target.listener_keys.iter().chain(&target.keys) {
            text += &format!("    {key}: {value}\n");
        }
        text += "    backends:\n";
        for (name, WrittenBackend { port, path, weight }) in &target.backends {
            text += &format!(
                "      - {{name: {name}, host: 127.0.0.1, port: {port}, health_path: {path}, weight: {weight}}}\n"
            );
        }
    }
    text
}

/// What there is, as the very objects.
struct Reality {
    bound: BTreeSet<(String, String)>,
    targets: BTreeMap<String, Arc<Target>>,
    backends: BTreeMap<String, Arc<Backend>>,
}

fn reality(server: &Server) -> Reality {
    let bound = server.bound().into_iter().map(|(name, bound)| (name, bound.to_string())).collect();
    let targets: BTreeMap<_, _> =
        server.targets().into_iter().map(|target| (target.name.to_string(), target)).collect();
    let backends = targets.values().flat_map(|target| &target.backends);
    let backends = backends.map(|one| (one.identity.to_string(), Arc::clone(one))).collect();
    Reality { bound, targets, backends }
}

fn can_connect(bound: &Bound) -> bool {
    match bound {
        Bound::Tcp(address) => TcpStream::connect(address).is_ok(),
        Bound::Udp(_) => unreachable!("none is configured"),
        Bound::Unix(path) => UnixStream::connect(path).is_ok(),
    }
}

/// Names of the objects of one kind and change.
fn named(plan: &Plan, kind: ObjectKind, change: ObjectChange) -> BTreeSet<String> {
    let those = plan.objects.iter().filter(|object| object.kind == kind && object.change == change);
    those.map(|object| object.name.clone()).collect()
}

fn keys<T>(of: &BTreeMap<String, T>) -> BTreeSet<String> {
    of.keys().cloned().collect()
}

/// Targets and backends are those that are new, gone or the very same.
fn compare_objects(plan: &Plan, before: &Reality, after: &Reality, text: &str) {
    use ObjectChange::{Added, Removed, Replaced};
    let minus = |one: &BTreeSet<String>, other: &BTreeSet<String>| one - other;
    let (old, new) = (keys(&before.targets), keys(&after.targets));
    for kind in [ObjectKind::Target, ObjectKind::Listener] {
        assert_eq!(named(plan, kind, Added), minus(&new, &old), "{kind:?} {text}");
        assert_eq!(named(plan, kind, Removed), minus(&old, &new), "{kind:?} {text}");
    }
    let (old, new) = (keys(&before.backends), keys(&after.backends));
    assert_eq!(named(plan, ObjectKind::Backend, Added), minus(&new, &old), "{text}");
    assert_eq!(named(plan, ObjectKind::Backend, Removed), minus(&old, &new), "{text}");
    let others =
        old.intersection(&new).filter(|name| !Arc::ptr_eq(&before.backends[*name], &after.backends[*name]));
    assert_eq!(named(plan, ObjectKind::Backend, Replaced), others.cloned().collect(), "{text}");
    for (name, target) in &after.targets {
        let Some(old) = before.targets.get(name) else { continue };
        let is_of_it = |object: &PlannedObject| match object.kind {
            ObjectKind::Target => object.name == *name,
            ObjectKind::Backend => object.name.split('/').next() == Some(name),
            ObjectKind::Process | ObjectKind::Listener => false,
        };
        let is_told = plan.objects.iter().any(is_of_it);
        assert_eq!(Arc::ptr_eq(old, target), !is_told, "{name} {text}");
        assert!(Arc::ptr_eq(&old.state, &target.state), "{name}");
    }
}

/// What was written differently is told, with what it was and what it is, and nothing else is.
fn compare_keys(plan: &Plan, before: &Written, after: &Written, text: &str) {
    let told = |kind: ObjectKind, name: &str| {
        plan.objects.iter().any(|object| {
            object.kind == kind && object.name == name && object.change == ObjectChange::Changed
        })
    };
    let effective = |target: &WrittenTarget| {
        // What is written as the default is no difference.
        let mut keys = target.listener_keys.clone();
        keys.retain(|key, value| (*key, value.as_str()) != ("x_real_ip", "false"));
        keys
    };
    for (name, new) in &after.targets {
        let Some(old) = before.targets.get(name) else { continue };
        let is_listener = effective(old) != effective(new) || old.listener != new.listener;
        assert_eq!(told(ObjectKind::Listener, name), is_listener, "{name} {text}\n{plan:#?}");
        assert_eq!(told(ObjectKind::Target, name), old.keys != new.keys, "{name} {text}\n{plan:#?}");
        for (backend, new) in &new.backends {
            let Some(old) = old.backends.get(backend) else { continue };
            let identity = format!("{name}/{backend}");
            let object = plan.objects.iter().find(|object| object.name == identity);
            assert_eq!(object.is_some(), old != new, "{identity} {text}");
            let weight = object.and_then(|object| object.keys.iter().find(|key| key.key == "weight"));
            let values = weight.map(|key| (key.old.clone().unwrap(), key.new.clone().unwrap()));
            let wanted = (old.weight != new.weight).then(|| (old.weight.to_string(), new.weight.to_string()));
            assert_eq!(values, wanted, "{identity} {text}");
        }
    }
    let top = |written: &Written| written.top.clone();
    assert_eq!(told(ObjectKind::Process, ""), top(before) != top(after), "{text}");
}

fn compare_addresses(plan: &Plan, before: &Reality, lab: &Lab, text: &str) {
    let after = reality(&lab.server).bound;
    let mut expected = before.bound.clone();
    let mut new = Vec::new();
    for planned in &plan.addresses {
        let pair = |listener: &str| (listener.to_owned(), planned.address.clone());
        match &planned.change {
            AddressChange::Closed => assert!(expected.remove(&pair(&planned.listener)), "{planned:?} {text}"),
            AddressChange::Moved { from } => {
                assert!(expected.remove(&pair(from)), "{planned:?} {text}");
                expected.insert(pair(&planned.listener));
            }
            AddressChange::Bound => new.push(pair(&planned.listener)),
        }
    }
    let mut found: Vec<_> = after.difference(&expected).cloned().collect();
    assert!(expected.is_subset(&after), "{expected:?} {after:?} {text}");
    // The system has chosen the port.
    for (_, address) in &mut found {
        if let Some((ip, _)) = address.rsplit_once(':').filter(|_| !address.starts_with("unix:")) {
            *address = format!("{ip}:0");
        }
    }
    found.sort();
    new.sort();
    assert_eq!(found, new, "{text}");
    assert!(lab.server.bound().iter().all(|(_, bound)| can_connect(bound)), "{text}");
}

/// Without the numbers of connections: those that were only tried are accepted, and end, at any time.
fn lasting(objects: &[PlannedObject]) -> Vec<PlannedObject> {
    objects.iter().map(|object| PlannedObject { connections: 0, ..object.clone() }).collect()
}

/// Without who has a port: a child of these tests that has just begun counts as well, for a moment.
fn lasting_of(problems: &[Fault]) -> BTreeSet<&str> {
    problems.iter().map(|one| one.text.split("\n  held by").next().unwrap_or_default()).collect()
}

#[test]
fn what_a_plan_says_is_what_then_happens() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let (mut refused, mut taken_over, mut unchanged) = (0, 0, 0);
    for seed in 0..4 {
        let mut chance = Chance(StdRng::seed_from_u64(seed));
        let mut written = Written::default();
        written.targets.insert("a", WrittenTarget { listener: "127.0.0.1:0".into(), ..target(&mut chance) });
        let lab = Lab::start(&yaml(&written));
        for _ in 0..40 {
            let next = next(&written, &taken, &mut chance);
            let text = yaml(&next);
            let (digest, before) = (lab.digest(), reality(&lab.server));
            let plan = lab.plan(&text);
            assert_eq!(lab.digest(), digest, "a plan changes nothing: {text}");
            let outcome = lab.reload(&text);
            let after = reality(&lab.server);
            match outcome {
                Err(refusal) => {
                    refused += 1;
                    assert_eq!(plan.verdict, PlanVerdict::Refused, "{text}");
                    assert!(
                        lasting_of(&refusal.problems).is_subset(&lasting_of(&plan.problems)),
                        "{refusal:#?} {plan:#?}"
                    );
                    assert_eq!(lab.digest(), digest, "{text}");
                }
                Ok(done) => {
                    assert_ne!(plan.verdict, PlanVerdict::Refused, "{text}\n{:#?}", plan.problems);
                    assert_eq!(lasting(&done.objects), lasting(&plan.objects), "{text}");
                    assert_eq!(done.addresses, plan.addresses, "{text}");
                    compare_objects(&plan, &before, &after, &text);
                    compare_keys(&plan, &written, &next, &text);
                    compare_addresses(&plan, &before, &lab, &text);
                    taken_over += u32::from(plan.verdict == PlanVerdict::Taken);
                    unchanged += u32::from(plan.verdict == PlanVerdict::Unchanged);
                    written = next;
                }
            }
        }
    }
    assert!(refused > 20 && taken_over > 60 && unchanged > 5, "{refused} {taken_over} {unchanged}");
}
