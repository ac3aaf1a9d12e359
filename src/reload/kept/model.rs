//! What docs/operations.md says of changes by hand, once more, in as few words as it takes. It shares nothing with the code.

/// A backend: name, port, weight, state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ModelServer(pub(super) String, pub(super) u16, pub(super) u16, pub(super) String);

/// What the file says of the target: its backends (`None`: it does not have the target), and its limit.
pub(super) type File = (Option<Vec<ModelServer>>, String);

/// `added`, `removed`, `state`, `weight` or `limit`.
pub(super) type ModelKind = &'static str;

/// A change by hand. `name` is that of a backend; `value` is as a file has it, of one that is added its weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ModelChange {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) until: Option<u64>,
    pub(super) port: u16,
    pub(super) gone: Option<u64>,
    pub(super) id: u64,
    pub(super) base: String,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) file: File,
    pub(super) changes: Vec<(ModelKind, ModelChange)>,
    pub(super) last: u64,
}

const WEEK: u64 = 7 * 24 * 3600 * 1000;

impl Model {
    /// The backend that lies below changes of its fields: of the file, or as it was added.
    fn server(&self, name: &str) -> Option<ModelServer> {
        let of_file = self.file.0.as_ref()?.iter().find(|server| server.0 == name).cloned();
        let is_it =
            |(kind, one): &&(ModelKind, ModelChange)| (*kind, one.gone, &*one.name) == ("added", None, name);
        of_file.or_else(|| self.changes.iter().find(is_it).map(|(_, one)| added(one)))
    }

    /// What a change of this kind would be in the place of, and where that is; `None`: there is no such object.
    fn below(&self, name: &str, kind: ModelKind) -> Option<(String, u16)> {
        let server = if kind == "limit" { None } else { Some(self.server(name)?) };
        Some(match (kind, server) {
            ("weight", Some(server)) => (server.2.to_string(), server.1),
            ("state", Some(server)) => (server.3, server.1),
            (_, Some(server)) => (format!("{server:?}"), server.1),
            (_, None) => (self.file.0.as_ref().map(|_| self.file.1.clone())?, 0),
        })
    }

    /// The file is read, or time has passed.
    pub(super) fn read(&mut self, file: File, now: u64) {
        let (old, mut over) = (std::mem::take(&mut self.changes), Vec::new());
        self.file = file;
        for first in [true, false] {
            for (kind, one) in old.iter().filter(|(kind, _)| (*kind == "added") == first) {
                match self.judge(kind, one, &over, now) {
                    Some(kept) => self.changes.push((*kind, kept)),
                    None if first => over.push(one.name.clone()),
                    None => {}
                }
            }
        }
        self.changes.sort_by_key(|(_, one)| one.id);
    }

    fn judge(&self, kind: ModelKind, one: &ModelChange, over: &[String], now: u64) -> Option<ModelChange> {
        let is_there = |server: &ModelServer| server.0 == one.name || server.1 == one.port;
        let is_in_file = kind == "added" && self.file.0.iter().flatten().any(is_there);
        if is_in_file || one.until.is_some_and(|until| until <= now) {
            return None;
        }
        let below = match kind {
            "added" => self.file.0.as_ref().map(|_| (one.base.clone(), one.port)),
            kind => self.below(&one.name, kind),
        };
        match below {
            Some((base, port)) => {
                let is_elsewhere = one.gone.is_some() && one.port != port;
                (one.base == base && !is_elsewhere).then(|| ModelChange { gone: None, port, ..one.clone() })
            }
            None if over.contains(&one.name) => None,
            None => {
                let since = one.gone.unwrap_or(now);
                (now < since + WEEK).then(|| ModelChange { gone: Some(since), ..one.clone() })
            }
        }
    }

    /// What is in force, backends by name, and the changes that are set aside.
    pub(super) fn force(&self) -> (Option<Vec<ModelServer>>, String, Vec<u64>) {
        let Some(mut servers) = self.file.0.clone() else { return (None, String::new(), Vec::new()) };
        let (mut limit, mut aside) = (self.file.1.clone(), Vec::new());
        let live = || self.changes.iter().filter(|(_, one)| one.gone.is_none());
        servers.extend(live().filter(|(kind, _)| *kind == "added").map(|(_, one)| added(one)));
        for round in 0..3 {
            for (kind, one) in live() {
                let at = servers.iter().position(|server| server.0 == one.name).unwrap_or(0);
                let others = servers.iter().any(|server| server.0 != one.name && server.2 > 0);
                match (round, *kind, &*one.value) {
                    (0, "limit", value) => value.clone_into(&mut limit),
                    (0, "state", value) => value.clone_into(&mut servers[at].3),
                    (0, "weight", value) if value != "0" => servers[at].2 = value.parse().unwrap(),
                    (1, "removed", _) if others => drop(servers.remove(at)),
                    (2, "weight", "0") if others => servers[at].2 = 0,
                    (1, "removed", _) | (2, "weight", "0") => aside.push(one.id),
                    _ => {}
                }
            }
        }
        servers.sort();
        (Some(servers), limit, aside)
    }

    fn has(&self, kind: ModelKind, name: &str, gone: bool) -> bool {
        self.changes.iter().any(|(of, one)| *of == kind && one.name == name && one.gone.is_some() == gone)
    }

    /// Somebody asks for a change; one that `takes_back` has no value. Says whether it is done.
    pub(super) fn ask(&mut self, kind: ModelKind, wish: &ModelChange, takes_back: bool) -> bool {
        let (name, before) = (wish.name.clone(), self.clone());
        let hidden = self.has("removed", &name, false);
        let is_held = self.has(kind, &name, true) || self.has(kind, &name, false);
        let is_left = ["added", "removed", "state", "weight"].into_iter().any(|of| self.has(of, &name, true));
        let mut below = self.below(&name, kind);
        match kind {
            "added" => {
                let twin = self.file.0.iter().flatten().find(|server| server.1 == wish.port);
                // One that was removed is back as the file has it.
                let is_back = twin.is_some_and(|twin| hidden && twin.0 == name && wish.value == "1");
                let mut added = self.changes.iter().filter(|(of, one)| *of == "added" && one.gone.is_none());
                let is_taken = self.server(&name).is_some() || added.any(|(_, one)| one.port == wish.port);
                if self.file.0.is_none() || ((is_taken || twin.is_some()) && !is_back) {
                    return false;
                }
                below = (!is_back).then(|| (String::new(), wish.port));
                self.changes.retain(|(_, one)| one.name != name || (one.gone.is_none() && !is_back));
            }
            _ if takes_back && is_held => self.changes.retain(|(of, one)| one.name != name || *of != kind),
            _ if (below.is_none() || hidden) && !(kind == "removed" && is_left) => return false,
            _ => self.changes.retain(|(of, one)| one.name != name || (kind != "removed" && *of != kind)),
        }
        let is_none = kind == "removed" && !self.file.0.iter().flatten().any(|server| server.0 == name);
        if let Some((base, port)) = below.filter(|(base, _)| !takes_back && !is_none && *base != wish.value) {
            self.last += 1;
            self.changes.push((kind, ModelChange { id: self.last, base, port, gone: None, ..wish.clone() }));
        }
        let is_fine = self.force().2.iter().all(|id| before.force().2.contains(id));
        if !is_fine {
            *self = before;
        }
        is_fine
    }
}

fn added(one: &ModelChange) -> ModelServer {
    ModelServer(one.name.clone(), one.port, one.value.parse().unwrap(), "up".to_owned())
}
