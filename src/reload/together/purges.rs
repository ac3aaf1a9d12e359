//! What is purged on all nodes, as rows: which of them this node has not done yet.
//!
//! Invariants:
//!
//! 1. A purge is a row under the next number; rows are there for all numbers between `forgotten` and `next`. Both stand in `META`, which is changed with each
//!    of them, under the condition that it is what it was.
//! 2. What this node has not done is what lies behind `done`. Its cache is as old as its process, so a process begins with none done: what was purged before it
//!    costs nothing to purge again.
//! 3. What others have purged is done while `PurgeBook` is locked; its own purge a node marks as done before it does it, and what it has marked stays so until a row
//!    says it. Otherwise it could find its own among what is due, and do it once more when who wanted it has his answer: what was stored since would be gone.
//! 4. What can't be known is taken for more, never for less: a number whose row is forgotten or not understood is a purge of everything.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::cache::store::{PurgeKind, PurgeOf};
use crate::cache::{url_key, url_prefix};
use crate::cluster::rows;
use crate::cluster::view::KnownRows;
use crate::config::model::Normalize;
use crate::route::path_form;
use crate::snapshot::Snapshot;
use crate::store::shared::{Revision, RowChange, RowCondition, Transaction};

/// The row that is changed with each of the others.
const META: &str = "purge/meta";
/// So many are remembered: who was away for more of them purges all.
const REMEMBERED: u64 = 256;

/// What is to be purged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "of", content = "text")]
pub enum PurgeScope {
    /// This URL, with scheme and host.
    Url(String),
    /// All URLs that begin so.
    Prefix(String),
    /// All with this tag.
    Tag(String),
    /// All.
    All,
}

/// What somebody wants purged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeWish {
    /// What.
    #[serde(flatten)]
    pub scope: PurgeScope,
    /// It is stale then, instead of gone.
    #[serde(default)]
    pub soft: bool,
}

/// `purge/meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PurgeMetaRow {
    next: u64,
    forgotten: u64,
}

/// `purge/entry/NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PurgeRow {
    #[serde(flatten)]
    wish: PurgeWish,
    author: String,
    at_ms: u64,
}

fn entry(number: u64) -> String {
    format!("purge/entry/{number:010}")
}

impl PurgeScope {
    /// As it is told: `url https://a.example/`.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            PurgeScope::Url(text) => format!("url {text}"),
            PurgeScope::Prefix(text) => format!("prefix {text}"),
            PurgeScope::Tag(text) => format!("tag {text}"),
            PurgeScope::All => "all".to_owned(),
        }
    }
}

impl PurgeWish {
    /// Does it on this node. Says how many stored answers it was about, where they are counted; `Err`: it names no URL.
    pub(super) fn fulfil(&self, snapshot: &Snapshot) -> Result<Option<usize>, NoUrl> {
        let kind = if self.soft { PurgeKind::Soft } else { PurgeKind::Hard };
        match &self.scope {
            PurgeScope::Url(text) => {
                let (is_https, authority, path) = parts(text).ok_or(NoUrl)?;
                let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
                // As requests for it are stored, whatever way it is written in.
                let taken = path_form::form(path.as_bytes(), &Normalize::default());
                let path = taken.map_or_else(|_| path.as_bytes().to_vec(), |path| path.into_owned());
                let path = [&path, query.as_bytes()].concat();
                let key = |rule| url_key(is_https, authority.as_bytes(), &path, rule);
                let of_rule = |rule| snapshot.store.purge_url(&key(rule), kind);
                return Ok(Some(snapshot.cache_queries.iter().map(of_rule).sum()));
            }
            PurgeScope::Prefix(text) => {
                let (is_https, authority, path) = parts(text).ok_or(NoUrl)?;
                let begin = url_prefix(is_https, authority.as_bytes(), path.as_bytes());
                snapshot.store.purge(PurgeOf::Prefix(begin.into()), kind);
            }
            PurgeScope::Tag(text) => snapshot.store.purge(PurgeOf::Tag(text.as_bytes().into()), kind),
            PurgeScope::All => snapshot.store.purge(PurgeOf::All, kind),
        }
        Ok(None)
    }

    /// Whether it says what it is about.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        match &self.scope {
            PurgeScope::Url(text) | PurgeScope::Prefix(text) => parts(text).is_some(),
            PurgeScope::Tag(text) => !text.is_empty(),
            PurgeScope::All => true,
        }
    }
}

/// A text is no URL with its host.
#[derive(Debug)]
pub(super) struct NoUrl;

/// Whether a URL is one of https, its authority, and its path with the query.
fn parts(url: &str) -> Option<(bool, &str, &str)> {
    let (is_https, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return None,
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let is_text = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if authority.is_empty() || authority.contains('@') || !is_text(url) || path.contains('#') {
        return None;
    }
    Some((is_https, authority, if path.starts_with('/') { path } else { "/" }))
}

/// What of all purges is done here.
#[derive(Debug, Default)]
pub(super) struct PurgesDone {
    /// All up to this number.
    up_to: u64,
    /// And these behind it, which are this node's own.
    own: BTreeSet<u64>,
    /// How often the store had gone back then.
    rewinds: u32,
    /// The change of `META` that could not be read.
    unread: Revision,
}

impl PurgesDone {
    /// What is to be done by these rows, and counts as done.
    pub(super) fn due(&mut self, known: &KnownRows, rewinds: u32) -> Vec<PurgeWish> {
        let everything = || PurgeWish { scope: PurgeScope::All, soft: false };
        let meta = match meta(known) {
            Ok(meta) => meta,
            // Of a later version, or damaged: once for each that it says.
            Err(changed) => {
                let is_news = std::mem::replace(&mut self.unread, changed) != changed;
                return if is_news { vec![everything()] } else { Vec::new() };
            }
        };
        let last = meta.map_or(0, |meta| meta.next.saturating_sub(1));
        if rewinds != self.rewinds || last < self.up_to {
            // The numbers are others now, and some may be lost that this node never had.
            *self = PurgesDone { up_to: last, rewinds, ..PurgesDone::default() };
            return vec![everything()];
        }
        let Some(meta) = meta else { return Vec::new() };
        let wish = |number| {
            let row = known.get(&entry(number)).and_then(|row| rows::read::<PurgeRow>(&row.value));
            row.map_or_else(everything, |row| row.wish)
        };
        let is_lost = meta.forgotten > self.up_to || last - self.up_to > REMEMBERED * 2;
        let behind = self.up_to + 1..=last;
        self.up_to = last;
        // What this node has just written may not be among these rows yet.
        let later = self.own.split_off(&(last + 1));
        let own = std::mem::replace(&mut self.own, later);
        if is_lost {
            return vec![everything()];
        }
        behind.filter(|number| !own.contains(number)).map(wish).collect()
    }

    /// This node has done its own purge of this number.
    pub(super) fn has_done(&mut self, number: u64) {
        if number > self.up_to {
            self.own.insert(number);
        }
    }
}

/// The same, for all who look at it.
#[derive(Debug, Default)]
pub(super) struct PurgeBook(Mutex<PurgesDone>);

impl PurgeBook {
    /// Does what is due by these rows.
    pub(super) fn follow(&self, known: &KnownRows, rewinds: u32, fulfil: impl FnMut(PurgeWish)) {
        let mut done = self.lock();
        done.due(known, rewinds).into_iter().for_each(fulfil);
    }

    /// Does this node's own purge of this number.
    pub(super) fn own<T>(&self, number: u64, fulfil: impl FnOnce() -> T) -> T {
        // Where it is being done among what is due, this waits for that.
        self.lock().has_done(number);
        fulfil()
    }

    fn lock(&self) -> MutexGuard<'_, PurgesDone> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What META says; `Err`: nothing that this version understands, since this change.
fn meta(known: &KnownRows) -> Result<Option<PurgeMetaRow>, Revision> {
    let Some(row) = known.get(META) else { return Ok(None) };
    rows::read::<PurgeMetaRow>(&row.value).map(Some).ok_or(row.changed)
}

/// What writes this wish on top of these rows, and its number; `None`: there is something that this version does not understand.
pub(super) fn writing(
    known: &KnownRows,
    wish: &PurgeWish,
    author: String,
    at_ms: u64,
) -> Option<(Transaction, u64)> {
    let meta = meta(known).ok()?.unwrap_or(PurgeMetaRow { next: 1, forgotten: 0 });
    let (number, forgotten) = (meta.next.max(1), meta.forgotten);
    let row = PurgeRow { wish: wish.clone(), author, at_ms };
    let mut changes = vec![RowChange::put(entry(number), rows::write(&row))];
    let oldest = number.saturating_sub(REMEMBERED);
    let dropped = forgotten.saturating_add(1)..=oldest;
    changes.extend(dropped.take(REMEMBERED as usize / 4).map(|number| RowChange::drop(entry(number))));
    let meta = PurgeMetaRow { next: number.checked_add(1)?, forgotten: forgotten.max(oldest) };
    changes.push(RowChange::put(META, rows::write_over(&meta, known.value(META))));
    let conditions = vec![RowCondition { name: META.to_owned(), changed: known.changed(META) }];
    Some((Transaction { conditions, changes }, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::shared::StoreRow;

    fn commit(known: &mut KnownRows, transaction: Transaction, at: Revision) {
        for change in transaction.changes {
            match change {
                RowChange::Put { name, value, lease } => {
                    known.put(StoreRow { name, value, changed: at, lease })
                }
                RowChange::Drop { .. } => {}
            }
        }
    }

    fn tag(number: u64) -> PurgeWish {
        PurgeWish { scope: PurgeScope::Tag(number.to_string()), soft: number.is_multiple_of(2) }
    }

    fn all() -> PurgeWish {
        PurgeWish { scope: PurgeScope::All, soft: false }
    }

    #[test]
    fn each_purge_is_due_once_on_every_node_and_who_missed_too_many_purges_all() {
        let mut known = KnownRows::default();
        let (mut own, mut other, mut late) =
            (PurgesDone::default(), PurgesDone::default(), PurgesDone::default());
        assert_eq!(late.due(&known, 0), []);
        for number in 1..=REMEMBERED + 3 {
            let (transaction, given) = writing(&known, &tag(number), "me".into(), 1).unwrap();
            assert_eq!(given, number);
            commit(&mut known, transaction, number);
            own.has_done(number);
            assert_eq!(own.due(&known, 0), []);
            assert_eq!(other.due(&known, 0), [tag(number)]);
            assert_eq!(other.due(&known, 0), []);
            if number == 5 {
                assert_eq!(late.due(&known, 0), (1..=5).map(tag).collect::<Vec<_>>());
            }
        }
        // Of 258 more it can know 253: those up to the third are forgotten, and it has had them.
        assert_eq!(late.due(&known, 0).len() as u64, REMEMBERED + 3 - 5);
        assert_eq!(PurgesDone::default().due(&known, 0), [all()]);
    }

    #[test]
    fn rows_that_are_older_than_an_own_purge_do_not_make_it_due_again() {
        let (mut known, mut done) = (KnownRows::default(), PurgesDone::default());
        let (transaction, number) = writing(&known, &tag(1), "me".into(), 1).unwrap();
        done.has_done(number);
        assert_eq!(done.due(&known, 0), [], "there is no row of it yet");
        commit(&mut known, transaction, 1);
        assert_eq!(done.due(&known, 0), []);
        let (transaction, number) = writing(&known, &tag(2), "me".into(), 1).unwrap();
        done.has_done(number);
        assert_eq!(done.due(&known, 0), []);
        commit(&mut known, transaction, 2);
        assert_eq!(done.due(&known, 0), []);
    }

    /// It was: who had the rows before the purge was marked did it again, after who wanted it had his answer.
    #[test]
    fn a_purge_that_is_being_done_is_not_due_to_who_has_its_row_already() {
        let (book, mut known) = (PurgeBook::default(), KnownRows::default());
        let (transaction, number) = writing(&known, &tag(1), "me".into(), 1).unwrap();
        commit(&mut known, transaction, 1);
        let count = |known: &KnownRows| {
            let mut count = 0;
            book.follow(known, 0, |_| count += 1);
            count
        };
        let began = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let follower = scope.spawn(|| {
                began.wait();
                count(&known)
            });
            book.own(number, || {
                began.wait();
                // It has the time that it would need.
                (0..10_000).for_each(|_| std::thread::yield_now());
            });
            assert_eq!(follower.join().unwrap(), 0);
        });
        let (transaction, number) = writing(&known, &tag(2), "me".into(), 1).unwrap();
        commit(&mut known, transaction, 2);
        // The other way round it is done twice, both times before the answer.
        assert_eq!(count(&known), 1);
        book.own(number, || ());
        assert_eq!(count(&known), 0);
    }

    #[test]
    fn what_is_not_understood_is_all_and_numbers_that_begin_anew_are_others() {
        let mut known = KnownRows::default();
        let mut done = PurgesDone::default();
        for number in 1..=3 {
            let (transaction, _) = writing(&known, &tag(number), "me".into(), 1).unwrap();
            commit(&mut known, transaction, number);
        }
        known.put(StoreRow {
            name: entry(2),
            value: br#"{"of":"colour"}"#.to_vec(),
            changed: 9,
            lease: None,
        });
        assert_eq!(done.due(&known, 0), [tag(1), all(), tag(3)]);
        assert_eq!(
            done.due(&known, 1),
            [all()],
            "the store has gone back, and what it has lost nobody knows"
        );
        let mut again = KnownRows::default();
        let (transaction, _) = writing(&again, &tag(7), "me".into(), 1).unwrap();
        commit(&mut again, transaction, 1);
        assert_eq!(done.due(&again, 1), [all()], "there are fewer than were done");
        assert_eq!(done.due(&again, 1), []);
        assert_eq!(done.due(&KnownRows::default(), 1), [all()]);
        // Nothing that stands there is too much.
        let say = |known: &mut KnownRows, value: &str, changed| {
            known.put(StoreRow { name: META.into(), value: value.into(), changed, lease: None });
        };
        for (changed, value) in
            [r#"{"next":0,"forgotten":0}"#, r#"{"next":18446744073709551615,"forgotten":0}"#, "?"]
                .iter()
                .zip(20..)
        {
            say(&mut again, changed, value);
            assert!(done.due(&again, 1).len() <= 1, "{changed}");
            let _ = writing(&again, &tag(1), "me".into(), 1);
        }
        assert_eq!(done.due(&again, 1), [], "once for what can't be read");
    }

    #[test]
    fn a_url_has_a_scheme_and_a_host() {
        assert_eq!(parts("https://a.example/b?c"), Some((true, "a.example", "/b?c")));
        assert_eq!(parts("http://a:8080"), Some((false, "a:8080", "/")));
        for wrong in
            ["", "/b", "a.example/b", "ftp://a/", "https://", "https://u@a/", "https://a/#b", "https://a/ b"]
        {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
