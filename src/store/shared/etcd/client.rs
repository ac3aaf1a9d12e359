//! Who of the members is spoken to, and how a question is asked until somebody answers it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};

use super::line::{EtcdLine, EtcdMember};
use super::messages::{KeyValue, RangeRequest, RangeResponse, path};
use super::verdict::{EtcdVerdict, verdict};
use crate::config::model::EtcdConfig;
use crate::store::shared::{LeaseNumber, ListedFrom, Listing, Revision, StoreFault, StoreRow};

/// How long all attempts to get one answer take.
pub(super) const BUDGET: Duration = Duration::from_secs(5);
/// How long the first takes, and the longest.
const ATTEMPT: (Duration, Duration) = (Duration::from_millis(300), Duration::from_millis(2400));
/// Before the next, and after many.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));
/// Rows of one answer.
const PAGE: i64 = 500;
/// How many times as long as the latest answer took the next one may take.
const SLACK: u32 = 4;

/// Whoever asks etcd. Clones share their connection.
#[derive(Clone, Debug)]
pub(super) struct EtcdClient {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    members: Vec<EtcdMember>,
    /// With `/` at its end.
    prefix: String,
    pinned: Mutex<Pinned>,
    /// How often it was another member that is spoken to.
    moved: watch::Sender<u64>,
    /// How long an attempt takes at first, in milliseconds: what answers slowly is not dead.
    patience: AtomicU64,
}

/// Who is spoken to.
#[derive(Debug, Default)]
struct Pinned {
    /// The place of the member.
    at: usize,
    /// How often it was another one.
    times: u64,
    line: Option<EtcdLine>,
}

/// One attempt that has failed.
pub(super) struct Failed {
    why: Status,
    /// At which member; to be given up if it is still that one.
    pub(super) times: Option<u64>,
}

impl EtcdClient {
    /// The one of this config. Nobody is spoken to yet.
    pub(super) fn new(config: &EtcdConfig) -> EtcdClient {
        let prefix = format!("{}/", config.prefix.trim_end_matches('/'));
        let (pinned, moved) = (Mutex::default(), watch::Sender::new(0));
        let patience = AtomicU64::new(0);
        EtcdClient {
            shared: Arc::new(Shared { members: EtcdMember::all(config), prefix, pinned, moved, patience }),
        }
    }

    /// The connection, and how often it was to another member before.
    pub(super) async fn line(&self, patience: Duration) -> Result<(EtcdLine, u64), Failed> {
        let mut pinned = self.shared.pinned.lock().await;
        if let Some(line) = pinned.line.as_ref().filter(|line| !line.is_closed()) {
            return Ok((line.clone(), pinned.times));
        }
        let times = Some(pinned.times);
        let Some(member) = self.shared.members.get(pinned.at) else {
            return Err(Failed { why: Status::unavailable("no endpoint"), times });
        };
        match timeout(patience, member.open()).await {
            Ok(Ok(line)) => {
                pinned.line = Some(line.clone());
                Ok((line, pinned.times))
            }
            Ok(Err(why)) => {
                Err(Failed { why: Status::unavailable(format!("{}: {why}", member.url.authority())), times })
            }
            Err(_) => {
                let why = format!("{} can't be connected to in time", member.url.authority());
                Err(Failed { why: Status::unavailable(why), times })
            }
        }
    }

    /// Goes to the next member, unless somebody else has.
    pub(super) async fn give_up(&self, times: u64) {
        let mut pinned = self.shared.pinned.lock().await;
        if pinned.times == times {
            let at = (pinned.at + 1) % self.shared.members.len().max(1);
            *pinned = Pinned { at, times: times + 1, line: None };
            self.shared.moved.send_replace(times + 1);
        }
    }

    /// How often it was another member that is spoken to, each time that it is.
    pub(super) fn moves(&self) -> watch::Receiver<u64> {
        self.shared.moved.subscribe()
    }

    /// How long an attempt may take at first.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_millis(self.shared.patience.load(Ordering::Relaxed)).clamp(ATTEMPT.0, ATTEMPT.1)
    }

    fn note_patience(&self, patience: Duration) {
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.shared.patience.store(millis, Ordering::Relaxed);
    }

    /// Asks until there is an answer, or none is to be had. Beside it: whether an attempt before may have been heard.
    pub(super) async fn asking<A, F>(
        &self,
        ask: impl Fn(EtcdLine) -> F + Send,
    ) -> Result<(A, bool), StoreFault>
    where
        F: Future<Output = Result<A, Status>> + Send,
    {
        let begun = Instant::now();
        let (mut patience, mut pause) = (self.patience(), PAUSE.0);
        let mut is_doubtful = false;
        loop {
            let asked = Instant::now();
            let failed = match self.line(patience).await {
                Ok((line, times)) => match timeout(patience, ask(line)).await {
                    Ok(Ok(answer)) => {
                        self.note_patience(asked.elapsed() * SLACK);
                        return Ok((answer, is_doubtful));
                    }
                    Ok(Err(why)) => Failed { why, times: Some(times) },
                    Err(_) => {
                        Failed { why: Status::deadline_exceeded("no answer in time"), times: Some(times) }
                    }
                },
                Err(failed) => failed,
            };
            match verdict(&failed.why) {
                EtcdVerdict::Final(fault) => return Err(fault),
                EtcdVerdict::Again { is_unheard, why } => {
                    is_doubtful |= !is_unheard;
                    let is_slow = failed.why.code() == Code::DeadlineExceeded;
                    if is_slow {
                        self.note_patience(patience * 2);
                    }
                    // There is nobody else: its connection tells by itself when it is dead.
                    let is_alone = is_slow && self.shared.members.len() == 1;
                    if let Some(times) = failed.times.filter(|_| !is_alone) {
                        self.give_up(times).await;
                    }
                    if begun.elapsed() + pause >= BUDGET {
                        return Err(StoreFault::Unreachable(why));
                    }
                }
            }
            sleep(pause).await;
            (patience, pause) = ((patience * 2).min(ATTEMPT.1), (pause * 2).min(PAUSE.1));
        }
    }

    pub(super) fn key(&self, name: &str) -> Vec<u8> {
        format!("{}{name}", self.shared.prefix).into_bytes()
    }

    /// `None`: it is not below our prefix, or no text, and so none of ours.
    pub(super) fn name(&self, key: &[u8]) -> Option<String> {
        let name = std::str::from_utf8(key).ok()?.strip_prefix(self.shared.prefix.as_str())?;
        Some(name.to_owned())
    }

    pub(super) fn row(&self, kv: KeyValue) -> Option<StoreRow> {
        let KeyValue { key, mod_revision, value, lease } = kv;
        let lease = (lease != 0).then_some(LeaseNumber(lease));
        Some(StoreRow { name: self.name(&key)?, value, changed: revision(mod_revision), lease })
    }

    /// The first and the last of those that begin with `prefix`, as etcd has it: the last is not one of them.
    pub(super) fn range(&self, prefix: &str) -> (Vec<u8>, Vec<u8>) {
        let key = self.key(prefix);
        let mut end = key.clone();
        // No text has a byte 255, and the prefix is not empty.
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        (key, end)
    }

    /// The rows whose names begin with `prefix`.
    ///
    /// # Errors
    /// It is not known.
    pub(super) async fn list(&self, prefix: &str, from: ListedFrom) -> Result<Listing, StoreFault> {
        let (mut key, range_end) = self.range(prefix);
        let mut listing = Listing::default();
        loop {
            let ask = RangeRequest {
                key: key.clone(),
                range_end: range_end.clone(),
                limit: PAGE,
                // Each page as of the first.
                revision: number(listing.revision),
                serializable: from == ListedFrom::OneMember,
            };
            let asked = self.asking(|line| asking(line, path::RANGE, ask.clone()));
            let (RangeResponse { header, kvs, more }, _) = asked.await?;
            if listing.revision == 0 {
                listing.revision = header.map_or(0, |header| revision(header.revision));
            }
            // It is 1 before the first change: what says nothing of it is no answer, and no empty list either.
            if listing.revision == 0 {
                return Err(StoreFault::Unreachable("an answer without a revision".to_owned()));
            }
            let Some(last) = kvs.last().map(|row| row.key.clone()) else { return Ok(listing) };
            listing.rows.extend(kvs.into_iter().filter_map(|row| self.row(row)));
            if !more {
                return Ok(listing);
            }
            key = [&*last, &[0]].concat();
        }
    }
}

/// One question, on a line of its own.
pub(super) async fn asking<Q, A>(line: EtcdLine, path: &'static str, ask: Q) -> Result<A, Status>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    line.ask(path, ask).await
}

/// A revision as etcd says it.
pub(super) fn revision(number: i64) -> Revision {
    Revision::try_from(number).unwrap_or_default()
}

/// A revision as etcd hears it.
pub(super) fn number(revision: Revision) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}
