//! A watch that outlives its connection: it goes on with another member, behind the last revision that was told.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::client::{EtcdClient, number, revision};
use super::line::EtcdLine;
use super::messages::{EtcdEvent, WatchCreateRequest, WatchRequest, WatchResponse, path};
use super::verdict::{EtcdVerdict, compacted, is_of_users, verdict};
use crate::store::shared::{ListedFrom, Revision, StoreChanges, StoreFault};

/// Whom it tells.
type Teller = mpsc::Sender<Result<StoreChanges, StoreFault>>;

/// How long a member has to begin.
const BEGIN: Duration = Duration::from_secs(2);
/// For how long it may fail at once before that is told.
const SILENT: Duration = Duration::from_secs(8);
/// Before the next attempt, and after many.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// How one connection has ended.
enum Ended {
    /// Another one may go on.
    Again,
    /// Nobody listens.
    Unheard,
    /// Nobody can go on.
    Over(StoreFault),
}

/// Tells of changes until nobody listens any more, or there is no way to go on.
pub(super) async fn tell(store: EtcdClient, prefix: String, mut after: Revision, teller: Teller) {
    let (mut pause, mut failing) = (PAUSE.0, None);
    loop {
        let before = after;
        let begun = Instant::now();
        let ended = tokio::select! {
            ended = once(&store, &prefix, &mut after, &teller) => ended,
            () = teller.closed() => return,
        };
        match ended {
            Ended::Unheard => return,
            Ended::Over(fault) => return drop(teller.send(Err(fault)).await),
            Ended::Again => {}
        }
        // One that ends at once again and again tells nothing, and whoever listens is to know that.
        let since = *failing.get_or_insert(begun);
        if begun.elapsed() > SILENT || after > before {
            failing = None;
        } else if since.elapsed() > SILENT {
            let why = "no member tells what changes".to_owned();
            return drop(teller.send(Err(StoreFault::Unreachable(why))).await);
        }
        pause = if after > before { PAUSE.0 } else { (pause * 2).min(PAUSE.1) };
        sleep(pause).await;
    }
}

/// The same over one connection.
async fn once(store: &EtcdClient, prefix: &str, after: &mut Revision, teller: &Teller) -> Ended {
    let (line, times) = match store.line(store.patience()).await {
        Ok(line) => line,
        Err(failed) => {
            if let Some(times) = failed.times {
                store.give_up(times).await;
            }
            return Ended::Again;
        }
    };
    let mut moves = store.moves();
    let status = match begin(store, &line, prefix, *after).await {
        Ok((mut answers, asks)) => {
            let status = loop {
                let told = tokio::select! {
                    told = answers.message() => told,
                    // Whoever does not answer questions any more is not listened to either.
                    () = moved(&mut moves, times) => return Ended::Again,
                };
                match told {
                    Ok(Some(answer)) => {
                        if let Some(ended) = take(store, answer, after, teller).await {
                            return ended;
                        }
                    }
                    Ok(None) => break Status::unavailable("the member has ended it"),
                    Err(status) => break status,
                }
            };
            drop(asks);
            status
        }
        Err(status) => status,
    };
    // More has changed than fits into one answer.
    if status.message().contains("message length too large") {
        return Ended::Over(compacted(*after));
    }
    store.give_up(times).await;
    match verdict(&status) {
        EtcdVerdict::Final(StoreFault::Compacted(_)) => Ended::Over(compacted(*after)),
        EtcdVerdict::Final(fault @ StoreFault::Refused(_)) => Ended::Over(fault),
        EtcdVerdict::Final(_) | EtcdVerdict::Again { .. } => Ended::Again,
    }
}

/// Ends when another member is spoken to than it was then.
async fn moved(moves: &mut watch::Receiver<u64>, times: u64) {
    // Whoever sends lives as long as this.
    let _ = moves.wait_for(|now| *now != times).await;
}

type Begun = (Streaming<WatchResponse>, mpsc::Sender<WatchRequest>);

async fn begin(store: &EtcdClient, line: &EtcdLine, prefix: &str, after: Revision) -> Result<Begun, Status> {
    let (key, range_end) = store.range(prefix);
    let start_revision = number(after.saturating_add(1));
    let create = WatchCreateRequest { key, range_end, start_revision, progress_notify: true };
    let (asks, asked) = mpsc::channel(1);
    let _ = asks.send(WatchRequest { create: Some(create) }).await;
    let begun = line.talk(path::WATCH, ReceiverStream::new(asked), true);
    let answers = timeout(BEGIN, begun).await;
    let answers = answers.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")))?;
    Ok((answers, asks))
}

/// Tells what one answer says. `Some`: it is the last.
async fn take(
    store: &EtcdClient,
    answer: WatchResponse,
    after: &mut Revision,
    teller: &Teller,
) -> Option<Ended> {
    let WatchResponse { header, created, canceled, compact_revision, cancel_reason, events } = answer;
    let now = header.map_or(0, |header| revision(header.revision));
    if compact_revision > 0 {
        return Some(Ended::Over(compacted(revision(compact_revision))));
    }
    if canceled {
        let is_refusal = cancel_reason.contains("permission") || is_of_users(&cancel_reason);
        return Some(if is_refusal { Ended::Over(StoreFault::Refused(cancel_reason)) } else { Ended::Again });
    }
    if created {
        return if now < *after { rewound(store, *after).await } else { None };
    }
    let changes = changes(store, events, now);
    // Whoever has told it all before this begins says less than we know.
    if changes.revision <= *after {
        return None;
    }
    *after = changes.revision;
    let is_news = !changes.put.is_empty() || !changes.dropped.is_empty();
    if is_news && teller.send(Ok(changes)).await.is_err() { Some(Ended::Unheard) } else { None }
}

/// A member knows less than was told: it lags behind the others, or all of them are others.
async fn rewound(store: &EtcdClient, after: Revision) -> Option<Ended> {
    match store.list("none of ours", ListedFrom::Majority).await {
        Ok(listing) if listing.revision < after => Some(Ended::Over(StoreFault::Rewound(listing.revision))),
        Ok(_) => None,
        Err(StoreFault::Refused(why)) => Some(Ended::Over(StoreFault::Refused(why))),
        Err(_) => Some(Ended::Again),
    }
}

/// What events say, as one. Where there are none, all up to the head's revision was told.
fn changes(store: &EtcdClient, events: Vec<EtcdEvent>, now: Revision) -> StoreChanges {
    let mut all = StoreChanges::default();
    if events.is_empty() {
        all.revision = now;
    }
    for EtcdEvent { kind, kv } in events {
        let Some(kv) = kv else { continue };
        let mut one =
            StoreChanges { revision: all.revision.max(revision(kv.mod_revision)), ..StoreChanges::default() };
        if kind == 0 {
            one.put.extend(store.row(kv));
        } else {
            one.dropped.extend(store.name(&kv.key));
        }
        all.add(one);
    }
    all
}
