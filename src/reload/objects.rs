//! Which objects another config adds, takes away and changes: by comparing two snapshots, with the keys that differ beside.
//!
//! The snapshots decide what has changed, since they are what serves; keys say where that is written. What a file that is named
//! says, a certificate for one, changes an object without a key.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::difference::Differing;
use super::plan::{ObjectChange, ObjectKind, PlannedKey, PlannedObject, PlannedPlace};
use crate::config::Origin;
use crate::config::model::{BackendConfig, TargetConfig};
use crate::snapshot::{Listener, Snapshot};
use crate::targets::{Backend, Health, Target};

/// The objects that differ: the process first, then those of `after` in the order of the config, then those that are gone.
#[must_use]
pub fn objects(before: &Snapshot, after: &Snapshot, differing: &[Differing]) -> Vec<PlannedObject> {
    let names = targets_by_name(before).into_keys().chain(targets_by_name(after).into_keys());
    let mut keys = Keys::sort(differing, &names.collect());
    let mut objects = Vec::new();
    if !keys.process.is_empty() {
        let process = std::mem::take(&mut keys.process);
        objects.push(object(ObjectKind::Process, "", ObjectChange::Changed, process));
    }
    let old_targets = targets_by_name(before);
    for listener in &after.listeners {
        let name = listener.config.name.as_str();
        objects.extend(changed_listener(before.listener_named(name), listener, &mut keys));
        // The short form: a target of the same name, if it has one.
        if let Some(target) = after.targets.iter().find(|target| *target.name == *name) {
            objects.extend(changed_target(old_targets.get(name).copied(), target, &mut keys));
        }
    }
    let has_listener = |target: &&Arc<Target>| after.listener_named(&target.name).is_some();
    for target in after.targets.iter().filter(|target| !has_listener(target)) {
        objects.extend(changed_target(old_targets.get(&*target.name).copied(), target, &mut keys));
    }
    let stays: HashSet<&str> = after.targets.iter().map(|target| &*target.name).collect();
    for listener in before.listeners.iter().filter(|one| after.listener_named(&one.config.name).is_none()) {
        objects.push(gone_listener(listener, &mut keys));
    }
    for target in before.targets.iter().filter(|target| !stays.contains(&*target.name)) {
        let own = keys.take_target(&target.name);
        let mut gone = object(ObjectKind::Target, &target.name, ObjectChange::Removed, own);
        gone.place = gone.place.or_else(|| keys.places.get(&*target.name).cloned());
        objects.push(gone);
        objects.extend(target.backends.iter().map(|backend| gone_backend(target, backend, &mut keys)));
    }
    objects
}

fn targets_by_name(snapshot: &Snapshot) -> HashMap<&str, &Arc<Target>> {
    snapshot.targets.iter().map(|target| (&*target.name, target)).collect()
}

fn changed_listener(
    before: Option<&Arc<Listener>>,
    now: &Listener,
    keys: &mut Keys,
) -> Option<PlannedObject> {
    let name = now.config.name.as_str();
    let change = match before {
        None => ObjectChange::Added,
        Some(before) if !Arc::ptr_eq(&before.state, &now.state) => ObjectChange::Replaced,
        Some(before) if before.config != now.config => ObjectChange::Changed,
        Some(_) => return None,
    };
    let mut changed = object(ObjectKind::Listener, name, change, keys.take_listener(name));
    if change == ObjectChange::Replaced {
        changed.connections = before.map_or(0, |before| before.state.counts.taken() as u64);
    }
    Some(changed)
}

fn gone_listener(listener: &Listener, keys: &mut Keys) -> PlannedObject {
    let name = listener.config.name.as_str();
    let mut gone = object(ObjectKind::Listener, name, ObjectChange::Removed, keys.take_listener(name));
    gone.connections = listener.state.counts.taken() as u64;
    gone
}

/// The target, if it is new or does something differently, and its backends.
fn changed_target(before: Option<&Arc<Target>>, now: &Target, keys: &mut Keys) -> Vec<PlannedObject> {
    let mut objects = Vec::new();
    let own = keys.take_target(&now.name);
    let is_same =
        |before: &Target| without_backends(&before.config) == without_backends(&now.config) && own.is_empty();
    match before {
        None => {
            let mut added = object(ObjectKind::Target, &now.name, ObjectChange::Added, own);
            added.place = added.place.or_else(|| keys.places.get(&*now.name).cloned());
            objects.push(added);
        }
        Some(before) if !is_same(before) || is_reordered(&before.config, &now.config) => {
            let mut changed = object(ObjectKind::Target, &now.name, ObjectChange::Changed, own);
            if is_reordered(&before.config, &now.config) {
                changed.keys.push(order_of_backends(&before.config, &now.config));
            }
            objects.push(changed);
        }
        Some(_) => {}
    }
    let old = before.map(|before| before.backends.iter().zip(&before.config.backends));
    let old: HashMap<&str, (&Arc<Backend>, &BackendConfig)> =
        old.into_iter().flatten().map(|(backend, config)| (&*backend.name, (backend, config))).collect();
    for (backend, config) in now.backends.iter().zip(&now.config.backends) {
        let identity = &*backend.identity;
        let change = match old.get(&*backend.name) {
            None => ObjectChange::Added,
            Some((before, _)) if !Arc::ptr_eq(before, backend) => ObjectChange::Replaced,
            Some((_, before)) if *before != config => ObjectChange::Changed,
            Some(_) => continue,
        };
        let mut changed = object(ObjectKind::Backend, identity, change, keys.take_backend(identity));
        match (change, old.get(&*backend.name)) {
            (ObjectChange::Replaced, Some((before, _))) => leave(&mut changed, before),
            (ObjectChange::Changed, Some((before, portion))) => {
                let was_picked = portion.portion.weight > 0 && gets_traffic(before);
                changed.loses_traffic = was_picked && config.portion.weight == 0;
            }
            _ => {}
        }
        objects.push(changed);
    }
    if let Some(before) = before {
        let stays: HashSet<&str> = now.backends.iter().map(|backend| &*backend.name).collect();
        let gone = before.backends.iter().filter(|backend| !stays.contains(&*backend.name));
        objects.extend(gone.map(|backend| gone_backend(before, backend, keys)));
    }
    objects
}

fn gone_backend(target: &Target, backend: &Backend, keys: &mut Keys) -> PlannedObject {
    let identity = &*backend.identity;
    debug_assert!(identity.starts_with(&*target.name));
    let mut gone = object(ObjectKind::Backend, identity, ObjectChange::Removed, keys.take_backend(identity));
    leave(&mut gone, backend);
    gone
}

/// What the end of a backend means for who uses it.
fn leave(object: &mut PlannedObject, backend: &Backend) {
    object.loses_traffic = gets_traffic(backend);
    object.under_way = u64::from(backend.in_flight());
    object.idle_connections = u64::from(backend.idle_connections.load(Ordering::Relaxed));
}

fn gets_traffic(backend: &Backend) -> bool {
    matches!(backend.health(), Health::Up)
}

fn without_backends(config: &TargetConfig) -> TargetConfig {
    TargetConfig { backends: Vec::new(), ..config.clone() }
}

/// Backends that are in both stand in another order.
fn is_reordered(before: &TargetConfig, now: &TargetConfig) -> bool {
    let names = |config: &TargetConfig| -> Vec<String> {
        config.backends.iter().map(|backend| backend.name.clone()).collect()
    };
    let (before, now) = (names(before), names(now));
    let (old, new): (HashSet<&String>, HashSet<&String>) = (before.iter().collect(), now.iter().collect());
    let stays = |name: &&String| old.contains(*name) && new.contains(*name);
    !before.iter().filter(stays).eq(now.iter().filter(stays))
}

fn order_of_backends(before: &TargetConfig, now: &TargetConfig) -> PlannedKey {
    const SHOWN: usize = 10;
    let names = |config: &TargetConfig| {
        let shown: Vec<&str> =
            config.backends.iter().take(SHOWN).map(|backend| backend.name.as_str()).collect();
        let more = if config.backends.len() > SHOWN { ", …" } else { "" };
        Some(format!("[{}{more}]", shown.join(", ")))
    };
    PlannedKey { key: "backends".to_owned(), old: names(before), new: names(now), place: None }
}

fn object(kind: ObjectKind, name: &str, change: ObjectChange, keys: Vec<PlannedKey>) -> PlannedObject {
    let mut keys = keys;
    let written = |key: &PlannedKey| key.place.clone().filter(PlannedPlace::is_written);
    let place = keys.iter().find_map(written);
    if matches!(change, ObjectChange::Added | ObjectChange::Removed) {
        // Its defaults tell nothing.
        keys.retain(|key| written(key).is_some());
    }
    PlannedObject {
        kind,
        name: name.to_owned(),
        change,
        place,
        keys,
        loses_traffic: false,
        under_way: 0,
        idle_connections: 0,
        connections: 0,
    }
}

/// Keys that differ, by whose they are.
#[derive(Default)]
struct Keys {
    process: Vec<PlannedKey>,
    listeners: HashMap<String, Vec<PlannedKey>>,
    targets: HashMap<String, Vec<PlannedKey>>,
    /// By `target/name`.
    backends: HashMap<String, Vec<PlannedKey>>,
    /// Where targets are written, or were.
    places: HashMap<String, PlannedPlace>,
}

impl Keys {
    fn sort(differing: &[Differing], targets: &HashSet<&str>) -> Keys {
        let mut keys = Keys::default();
        for one in differing {
            let key = |key: &str| PlannedKey {
                key: key.to_owned(),
                old: one.before.clone(),
                new: one.after.clone(),
                place: Some(PlannedPlace::of(&one.origin)),
            };
            match split(&one.path, targets) {
                None => keys.process.push(key(&one.path)),
                Some((target, rest)) => {
                    let place = PlannedPlace::of(&one.origin);
                    if place.is_written() && in_backend(rest).is_none() {
                        keys.places.entry(target.to_owned()).or_insert(place);
                    }
                    match in_backend(rest) {
                        Some((backend, rest)) => {
                            let identity = format!("{target}/{backend}");
                            keys.backends.entry(identity).or_default().push(key(rest));
                        }
                        None if is_of_listener(rest) => {
                            keys.listeners.entry(target.to_owned()).or_default().push(key(rest));
                        }
                        None => keys.targets.entry(target.to_owned()).or_default().push(key(rest)),
                    }
                }
            }
        }
        keys
    }

    fn take_listener(&mut self, name: &str) -> Vec<PlannedKey> {
        self.listeners.remove(name).unwrap_or_default()
    }

    fn take_target(&mut self, name: &str) -> Vec<PlannedKey> {
        // What its listener has not taken.
        let rest = self.listeners.remove(name).unwrap_or_default();
        [rest, self.targets.remove(name).unwrap_or_default()].concat()
    }

    fn take_backend(&mut self, identity: &str) -> Vec<PlannedKey> {
        self.backends.remove(identity).unwrap_or_default()
    }
}

/// The target that a path belongs to, and the key inside. A name may have dots in it.
fn split<'a>(path: &'a str, targets: &HashSet<&str>) -> Option<(&'a str, &'a str)> {
    let inside = path.strip_prefix("targets.")?;
    let mut dots = inside.match_indices('.').map(|(at, _)| (&inside[..at], &inside[at + 1..]));
    dots.rfind(|(name, _)| targets.contains(name))
}

/// The backend that a key belongs to, and the key inside.
fn in_backend(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix("backends[")?.rsplit_once("].")
}

/// Whether a key of a target says something about its listener. Of those that say something about both the listener is told.
fn is_of_listener(key: &str) -> bool {
    const OWN: &[&str] =
        &["listener", "protocol", "tls", "http2", "limits", "forwarded", "x_real_ip", "cache", "compress"];
    const TIMEOUTS: &[&str] =
        &["timeouts.tls", "timeouts.head", "timeouts.keep_alive", "timeouts.idle", "timeouts.half_closed"];
    let first = key.split(['.', '[']).next().unwrap_or(key);
    OWN.contains(&first) || TIMEOUTS.contains(&key)
}

impl PlannedPlace {
    /// A default is written nowhere.
    fn is_written(&self) -> bool {
        self.file.is_some() || self.text.starts_with('-') || self.text.starts_with(Origin::BY_HAND)
    }

    /// Of whoever said it.
    #[must_use]
    pub fn of(origin: &Origin) -> PlannedPlace {
        let text = origin.to_string();
        match origin {
            Origin::File { file, line } | Origin::Environment { file, line, .. } => {
                PlannedPlace { text, file: Some(file.to_string()), line: Some(*line) }
            }
            Origin::Flag(_) | Origin::Hand { .. } | Origin::Default => {
                PlannedPlace { text, file: None, line: None }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_belongs_to_the_target_with_the_longest_name_that_fits() {
        let targets = HashSet::from(["a", "a.b", "c"]);
        assert_eq!(split("targets.a.balance", &targets), Some(("a", "balance")));
        assert_eq!(split("targets.a.b.balance", &targets), Some(("a.b", "balance")));
        assert_eq!(split("targets.a.health_check.path", &targets), Some(("a", "health_check.path")));
        assert_eq!(split("targets.d.balance", &targets), None);
        assert_eq!(split("workers", &targets), None);
        assert_eq!(in_backend("backends[127.0.0.1:80].weight"), Some(("127.0.0.1:80", "weight")));
        assert_eq!(in_backend("backends[[::1]:80].weight"), Some(("[::1]:80", "weight")));
        assert_eq!(in_backend("balance"), None);
    }

    #[test]
    fn keys_of_listeners_are_those_of_the_table_of_owners() {
        for key in [
            "listener",
            "listener[1]",
            "tls.cert_file",
            "tls.alpn",
            "http2",
            "http2.max_age",
            "limits.body",
            "timeouts.head",
            "protocol",
            "cache",
            "cache.ttl",
            "compress.codings",
        ] {
            assert!(is_of_listener(key), "{key}");
        }
        for key in
            ["balance", "timeouts.connect", "upstream_tls.ca_file", "health_check.path", "host", "tlsx"]
        {
            assert!(!is_of_listener(key), "{key}");
        }
    }
}
