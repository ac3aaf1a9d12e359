//! Changes by hand as docs/operations.md has them: by a reader of nothing else, and kept at what the text says. It shares nothing with the code.
use std::collections::BTreeSet;
/// A backend as the file or a change has it: name, port (its address), weight, state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ModelServer(pub(super) String, pub(super) u16, pub(super) u16, pub(super) String);
/// What the file says of the target: its backends (`None`: it does not have the target), and its limit.
pub(super) type File = (Option<Vec<ModelServer>>, String);
/// What somebody asks for; without a value a field is to be as in the file. What is added has a name, a port, a weight.
#[derive(Clone, Debug)]
pub(super) enum ModelWish {
    State(String, Option<String>),
    Weight(String, Option<u16>),
    Limit(Option<String>),
    Add(Option<String>, u16, Option<u16>),
    Remove(String),
}
/// Number; field (state, weight, limit, added, removed, by its first letter); the backend (what was added, else
/// name and port as last seen); value; what the file said; until when; when it is dropped if it is gone.
pub(super) type ModelEntry = (u64, char, ModelServer, String, String, Option<u64>, Option<u64>);
/// The file as it was last read, the entries as they were made, the last number, and what only a text on trial has ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Model(File, pub(super) Vec<ModelEntry>, u64, pub(super) Vec<ModelEntry>);
impl Model {
    /// The file is read: at a start, by a reload, at the end of a trial.
    pub(super) fn read(&mut self, file: File, now: u64) {
        self.1.append(&mut self.3);
        self.1.sort_by_key(|e| e.0);
        self.take(file, now);
    }
    /// A text is read on trial.
    pub(super) fn apply(&mut self, text: File, now: u64) {
        self.pass(now);
        let mut ended = self.1.clone();
        self.take(text, now);
        ended.retain(|e| !self.1.iter().any(|left| left.0 == e.0));
        self.3.append(&mut ended);
    }
    pub(super) fn pass(&mut self, now: u64) {
        self.take(self.0.clone(), now);
    }
    fn take(&mut self, file: File, now: u64) {
        let over = |e: &&ModelEntry| [e.5, e.6].iter().flatten().any(|t| *t <= now);
        for e in self.1.clone().iter().filter(over) {
            self.end(|o| o.0 == e.0 || e.1 == 'a' && o.2.0 == e.2.0);
        }
        self.0 = file;
        for added in [false, true] {
            let was = self.clone();
            self.1.retain_mut(|e| match was.says(e.1, &e.2) {
                _ if (e.1 == 'a') != added => true,
                None => *e.6.get_or_insert(now + 7 * 86_400_000) > now,
                Some((port, text)) => {
                    let moved = std::mem::replace(&mut e.2.1, port) != port;
                    !(e.6.take().is_some() && moved) && text == e.4
                }
            });
        }
    }
    pub(super) fn change(&mut self, wishes: &[ModelWish], until: Option<u64>, now: u64) -> bool {
        self.pass(now);
        let (mut new, aside) = (self.clone(), self.laid().1);
        let done = wishes.iter().all(|w| new.wish(w, until));
        let fine = done && new.laid().1.is_subset(&aside);
        fine.then(|| *self = new).is_some()
    }
    pub(super) fn in_force(&self) -> (Option<Vec<ModelServer>>, String) {
        let all: BTreeSet<_> = self.laid().0.into_iter().collect();
        let limit = self.of('l').next().map_or(&self.0.1, |e| &e.3).clone();
        (self.0.0.as_ref().map(|_| all.into_iter().collect()), limit)
    }
    /// Ends entries, and tells whether there were any.
    fn end(&mut self, which: impl Fn(&ModelEntry) -> bool) -> bool {
        self.1.extract_if(.., |e| which(e)).count() > 0
    }
    /// The entries of a field in the order in which they were made, without what is gone from the file.
    fn of(&self, field: char) -> impl Iterator<Item = &ModelEntry> {
        self.1.iter().filter(move |e| e.1 == field && e.6.is_none())
    }
    /// The backends of the file and those that are added.
    fn all(&self) -> Vec<ModelServer> {
        self.0.0.iter().flatten().chain(self.of('a').map(|e| &e.2)).cloned().collect()
    }
    /// What the file, or else the adding, says of this field of this backend, after its port.
    fn says(&self, field: char, of: &ModelServer) -> Option<(u16, String)> {
        let file = self.0.0.as_ref()?;
        let raw = file.iter().find(|f| f.0 == of.0);
        let added = self.1.iter().find(|e| e.1 == 'a' && e.2.0 == of.0).map(|e| &e.2);
        let renamed = raw.is_none() && added.is_some_and(|a| file.iter().any(|f| f.1 == a.1));
        let one = raw.or(added);
        Some(match field {
            'l' => (0, self.0.1.clone()),
            'r' => (raw?.1, format!("{:?}", raw?)),
            's' if !renamed => (one?.1, one?.3.clone()),
            'w' if !renamed => (one?.1, one?.2.to_string()),
            'a' if !renamed && raw.is_none() => (of.1, String::new()),
            _ => (0, "over: the file has it".into()),
        })
    }
    /// What is in force, and the entries that are set aside.
    pub(super) fn laid(&self) -> (Vec<ModelServer>, BTreeSet<u64>) {
        let (mut all, mut aside, mut order) = (self.all(), BTreeSet::new(), self.1.clone());
        order.sort_by_key(|e| if (e.1, &*e.3) == ('w', "0") { 2 } else { u8::from(e.1 == 'r') });
        for e in order.into_iter().filter(|e| e.6.is_none()) {
            let mut next = all.clone();
            next.retain(|s| e.1 != 'r' || s.0 != e.2.0);
            for s in next.iter_mut().filter(|s| s.0 == e.2.0) {
                s.2 = if e.1 == 'w' { e.3.parse().unwrap_or(0) } else { s.2 };
                s.3 = if e.1 == 's' { e.3.clone() } else { s.3.clone() };
            }
            let left = next.iter().any(|s| s.2 > 0);
            aside.extend((!left).then_some(e.0));
            all = if left { next } else { all };
        }
        (all, aside)
    }
    fn wish(&mut self, wish: &ModelWish, until: Option<u64>) -> bool {
        use ModelWish::*;
        let one = |n: &str, port, weight| ModelServer(n.into(), port, weight, "up".into());
        let removed: BTreeSet<_> = self.of('r').map(|e| e.2.0.clone()).collect();
        let (field, mut of, value) = match wish {
            State(n, v) => ('s', one(n, 0, 0), v.clone()),
            Weight(n, v) => ('w', one(n, 0, 0), v.map(|w| w.to_string())),
            Limit(v) => ('l', one("", 0, 0), v.clone()),
            Remove(n) => ('r', one(n, 0, 0), Some("-".into())),
            Add(n, port, weight) => {
                let new = one(&n.clone().unwrap_or(format!("h:{port}")), *port, weight.unwrap_or(1));
                let mut twins = self.all().into_iter().filter(|s| s.0 == new.0 || s.1 == new.1);
                if let Some(s) = twins.next() {
                    let same = s.1 == *port && n.as_ref().is_none_or(|n| *n == s.0) && removed.contains(&s.0);
                    return same && (*weight, until) == (None, None) && self.end(|e| e.2.0 == s.0);
                }
                // What is gone, of this name or at this address, is dropped.
                self.end(|e| e.6.is_some() && (e.2.0 == new.0 || e.2.1 == new.1));
                ('a', new, Some("added".into()))
            }
        };
        let new_place = |e: &ModelEntry| field == 'a' && e.2.1 == of.1;
        self.3.retain(|e| !new_place(e) && (e.2.0 != of.0 || field != e.1 && !"ar".contains(field)));
        let out = removed.contains(&of.0);
        let there = !out && self.says(if field == 'r' { 's' } else { field }, &of).is_some();
        let had = self.end(|e| e.2.0 == of.0 && (e.1 == field || field == 'r'));
        let Some(value) = value else { return had || there };
        if let Some((port, base)) = self.says(field, &of) {
            (of.1, self.2) = (port, self.2 + 1);
            let new = (self.2, field, of, value, base, until, None);
            self.1.extend((new.3 != new.4).then_some(new));
        }
        there || had && field == 'r' && !out
    }
}
