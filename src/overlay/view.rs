//! What a config says of the objects that entries are about.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::entry::{EntryField, ObjectName, OverlayEntry};
use crate::config::model::{BackendConfig, Portion, TargetConfig};
use crate::config::{BackendRules, Loaded};

/// The targets of a config that have entries, by name.
pub(super) struct FileView<'a> {
    targets: HashMap<&'a str, TargetView<'a>>,
}

/// One target of a config.
pub(super) struct TargetView<'a> {
    config: &'a TargetConfig,
    rules: &'a BackendRules,
    by_name: HashMap<&'a str, &'a BackendConfig>,
    /// Made when somebody asks for it.
    by_address: OnceCell<HashMap<String, &'a str>>,
}

impl<'a> FileView<'a> {
    /// Of those targets that `entries` are about, and of `more`.
    pub(super) fn of(file: &'a Loaded, entries: &[OverlayEntry], more: &[&str]) -> FileView<'a> {
        let mut wanted: HashSet<&str> = entries.iter().map(|entry| entry.object.target.as_str()).collect();
        wanted.extend(more);
        let targets = file.config.targets.iter().zip(file.backend_rules.iter());
        let targets = targets.filter(|(config, _)| wanted.contains(config.name.as_str()));
        let view = |(config, rules): (&'a TargetConfig, &'a BackendRules)| {
            let by_name = config.backends.iter().map(|backend| (backend.name.as_str(), backend)).collect();
            (config.name.as_str(), TargetView { config, rules, by_name, by_address: OnceCell::new() })
        };
        FileView { targets: targets.map(view).collect() }
    }

    pub(super) fn target(&self, name: &str) -> Option<&TargetView<'a>> {
        self.targets.get(name)
    }

    pub(super) fn backend(&self, object: &ObjectName) -> Option<&'a BackendConfig> {
        self.target(&object.target)?.by_name.get(object.backend.as_deref()?).copied()
    }

    /// Whether the file has the object.
    pub(super) fn has(&self, object: &ObjectName) -> bool {
        match object.backend {
            Some(_) => self.backend(object).is_some(),
            None => self.target(&object.target).is_some(),
        }
    }

    /// What the file says of a field, in its own form; `None`: it has no such object.
    pub(super) fn value(&self, object: &ObjectName, field: EntryField) -> Option<String> {
        let target = self.target(&object.target)?;
        if field == EntryField::MaxInFlight {
            return Some(in_flight(target.config));
        }
        let backend = self.backend(object)?;
        Some(match field {
            EntryField::State => backend.state.as_str().to_owned(),
            EntryField::Weight => backend.portion.weight.to_string(),
            EntryField::Removed => whole(target.rules, backend),
            EntryField::MaxInFlight | EntryField::Added => return None,
        })
    }
}

impl<'a> TargetView<'a> {
    pub(super) fn rules(&self) -> &'a BackendRules {
        self.rules
    }

    /// The name of the backend at this address, if there is one.
    pub(super) fn name_at(&self, identity: &str) -> Option<&str> {
        let make = || {
            let all = self.config.backends.iter();
            all.map(|backend| (backend.address.identity(), backend.name.as_str())).collect()
        };
        self.by_address.get_or_init(make).get(identity).copied()
    }

    pub(super) fn backends(&self) -> &'a [BackendConfig] {
        &self.config.backends
    }
}

/// `max_in_flight` of a target as its file has it.
pub(super) fn in_flight(target: &TargetConfig) -> String {
    match (target.resilience.adaptive, target.resilience.max_in_flight) {
        (true, _) => "adaptive".to_owned(),
        (false, Some(number)) => number.to_string(),
        (false, None) => "off".to_owned(),
    }
}

/// All that a file says of one backend; the defaults go without saying.
fn whole(rules: &BackendRules, backend: &BackendConfig) -> String {
    let mut text = backend.address.identity();
    let mut add = |key: &str, value: &dyn std::fmt::Display| {
        let _ = write!(text, ", {key} {value}");
    };
    let Portion { weight, priority, zone } = &backend.portion;
    if backend.tls.is_some() {
        add("over", &"TLS");
    }
    if *weight != 1 {
        add("weight", weight);
    }
    match *priority {
        0 => {}
        Portion::BACKUP => add("backup", &true),
        priority => add("priority", &priority),
    }
    if let Some(zone) = zone {
        add("zone", zone);
    }
    if let Some(path) = rules.own_probe_path(backend) {
        add("health_path", &path);
    }
    if backend.state != crate::config::model::BackendState::Up {
        add("state", &backend.state.as_str());
    }
    text
}
