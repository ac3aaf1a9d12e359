//! What backends, leases and whoever waits hold of one another.
//!
//! A backend holds the board of its target, the board the backends and those who wait for one, a lease and a waiter their
//! backend. So these types stand in one file, below the files that say what each of them does: `backend`, and
//! `queueing::{board, board_state, lease}`. Nobody else touches their fields.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use tokio::sync::{Notify, oneshot};

use crate::config::model::tls::UpstreamTls;
use crate::config::model::{BackendAddress, Dialing};
use crate::message::BackendId;
use crate::slots::HeldSlot;
use crate::targets::picking::balance::rank::Rank;
use crate::targets::picking::tried::Tried;
use crate::targets::queueing::board_rules::BoardRules;
use crate::targets::queueing::queue::Queue;
use crate::targets::queueing::seat::SeatWord;
use crate::targets::queueing::watch::Watch;
use crate::targets::resilience::answers::Answers;
use crate::targets::resilience::attempt_counts::AttemptCounts;
use crate::targets::resilience::breaker::Breaker;
use crate::targets::resilience::ejection::Ejection;
use crate::targets::resilience::trial::{Told, Trial};
use crate::targets::resilience::trouble::Trouble;
use crate::targets::state::decide::{Decision, Inputs};
use crate::targets::state::departure::DepartureWord;
use crate::targets::state::endpoint::Endpoint;
use crate::targets::state::health::last_probe::LastProbe;
use crate::targets::state::health::threshold::Threshold;
use crate::targets::state::padded::Padded;
use crate::targets::state::tally::TargetTally;
use crate::tick::Tick;
use crate::tls::Upstream;

/// One address inside a target.
///
/// What a pick and the end of its lease touch comes first, so that together with the two counts of the `Arc` around it it
/// is one cache line. With thousands of backends the lines of one have left the caches by its next turn, and with several
/// workers each line that one of them writes has to come from there. An alignment would put the counts into a line of
/// their own.
#[derive(Debug)]
#[repr(C)]
pub struct Backend {
    pub(in crate::targets) in_flight: AtomicU32,
    pub(in crate::targets) generation: AtomicU32,
    pub(in crate::targets) ejection: Ejection,
    pub(in crate::targets) breaker: Breaker,
    /// Where leases of its target report.
    pub(in crate::targets) board: Arc<Board>,
    pub(in crate::targets) seat: SeatWord,
    /// Its number as long as it lives, which is that of its slot.
    pub id: BackendId,
    pub(in crate::targets) health: AtomicU8,
    /// Errors one after the other, as far as they can be counted here.
    pub(in crate::targets) errors: AtomicU8,
    /// Nanoseconds; see [`Backend::idle_proven`].
    pub(in crate::targets) idle_proven: AtomicU64,
    pub(in crate::targets) answers: Answers,
    pub(in crate::targets) attempt_counts: AttemptCounts,
    /// Its name inside the target, as in the config.
    pub name: Arc<str>,
    /// `target/name`: the same on every node with the same config.
    pub identity: Arc<str>,
    /// Where it is, as written.
    pub address: BackendAddress,
    /// The same as a Host.
    pub authority: Arc<str>,
    /// TLS towards it; `None`: plain.
    pub tls: Option<Upstream>,
    /// What `tls` was made of.
    pub(in crate::targets) tls_settings: Option<Arc<UpstreamTls>>,
    /// How connections to it are made.
    pub dialing: Arc<Dialing>,
    pub(in crate::targets) endpoints: ArcSwap<Arc<[Endpoint]>>,
    pub(in crate::targets) detail: Mutex<Detail>,
    pub(in crate::targets) trouble: Trouble,
    pub(in crate::targets) departure: DepartureWord,
    /// What of `in_flight` is other nodes'.
    pub(in crate::targets) elsewhere: AtomicU32,
    /// This node prefers it.
    pub(in crate::targets) own: AtomicBool,
    /// No config has it any more.
    pub(in crate::targets) gone: AtomicBool,
    /// Idle connections to it in the pools of all workers: their shared credit. Only the pools write it, far from what picks
    /// read.
    pub idle_connections: AtomicU32,
    /// Keeps its number from being given to another.
    pub(in crate::targets) _slot: HeldSlot,
}

/// What the health of a backend rests on.
///
/// The words of breaker and ejection turn under this lock only (but for the beginning of a trial), together with their reasons in
/// `inputs`. Nobody takes another lock while it is held.
#[derive(Debug)]
pub(in crate::targets) struct Detail {
    pub(in crate::targets) inputs: Inputs,
    pub(in crate::targets) threshold: Threshold,
    /// Which check is in force, counted from 0: what another one has found out says nothing any more.
    pub(in crate::targets) check: u32,
    pub(in crate::targets) decision: Decision,
    /// Since when it is in force; zero: not yet.
    pub(in crate::targets) added: Tick,
    /// `None`: there was none.
    pub(in crate::targets) last_probe: Option<LastProbe>,
}

/// The right to use a backend for one attempt: counted in flight until it is dropped.
///
/// [`Lease::finish`] says what came of it; dropping it without is [`Outcome::Neutral`](crate::targets::Outcome::Neutral).
#[derive(Debug)]
#[must_use = "a dropped lease no longer counts as in flight"]
pub struct Lease {
    pub(in crate::targets) backend: Arc<Backend>,
    pub(in crate::targets) picked: Tick,
    pub(in crate::targets) trial: Cell<Trial>,
    /// The board's total has it.
    pub(in crate::targets) counted: bool,
    /// What the head of the answer said, in few bytes: a lease is handed on several times.
    pub(in crate::targets) told: Cell<Told>,
}

/// Somebody in the queue.
#[derive(Debug)]
pub(in crate::targets) struct Waiter {
    pub(in crate::targets) grant: oneshot::Sender<Lease>,
    /// It came for this backend alone, and has not been anywhere yet.
    pub(in crate::targets) pin: Option<Arc<Backend>>,
    /// Where it has been.
    pub(in crate::targets) tried: Tried,
}

/// What leases of one target change together.
#[derive(Debug, Default)]
pub(in crate::targets) struct Board {
    pub(in crate::targets) wants: AtomicU8,
    pub(in crate::targets) panics: AtomicBool,
    /// The locked state's, for those who don't hold it.
    pub(in crate::targets) limit: AtomicU32,
    /// Requests that go first to backends that other nodes prefer. Whoever sets it says how many; picks count it down; and one more or less is nothing.
    pub(in crate::targets) spills: AtomicU32,
    /// How many in the queue would take any backend.
    pub(in crate::targets) waiting: AtomicU32,
    /// The live set is another one, or somebody waits and it is another matter who is left out, and until when.
    pub(in crate::targets) changed: Notify,
    /// Leases that were counted, see [`Wants::Total`].
    pub(in crate::targets) total: Padded<AtomicU64>,
    pub(in crate::targets) rules: ArcSwap<BoardRules>,
    pub(in crate::targets) locked: Mutex<BoardState>,
    /// Somebody's state has turned: control has something to tell.
    pub(in crate::targets) turned: Notify,
    /// How often what has turned.
    pub(in crate::targets) tally: TargetTally,
}

/// What stands behind the mutex.
#[derive(Debug, Default)]
pub(in crate::targets) struct BoardState {
    /// The live set that the seats belong to.
    pub(in crate::targets) generation: u64,
    pub(in crate::targets) rows: Vec<Row>,
    /// Who waits for a backend with room.
    pub(in crate::targets) queue: Queue<Waiter>,
    /// Leases that one backend may have; 0: any.
    pub(in crate::targets) limit: u32,
    /// Members that are there for everybody, whatever their state.
    pub(in crate::targets) members: usize,
    /// Ejections of outliers are set aside.
    pub(in crate::targets) panics: bool,
    /// Since when they are, or are not.
    pub(in crate::targets) panicked: Tick,
    pub(in crate::targets) outliers: usize,
    pub(in crate::targets) out: usize,
    /// Who is served next of several that would do, one after the other.
    pub(in crate::targets) turn: usize,
    /// Something has changed by which somebody in the queue may be served.
    pub(in crate::targets) stirred: bool,
    /// Something has changed that those in the queue have to know: who is out, and until when.
    pub(in crate::targets) news: bool,
    /// Who is served when the lock is let go.
    pub(in crate::targets) grants: Vec<(Waiter, Lease)>,
}

/// One tier of the live set.
#[derive(Debug)]
pub(in crate::targets) struct Row {
    pub(in crate::targets) watch: Arc<Watch>,
    /// By load, where the algorithm wants that.
    pub(in crate::targets) rank: Option<Rank>,
    /// Ends of ejections, the next first. An entry may be out of date: the backend's own word counts.
    pub(in crate::targets) ends: BinaryHeap<Reverse<(Tick, u32)>>,
    /// Those of the tier.
    pub(in crate::targets) backends: Arc<[Arc<Backend>]>,
    pub(in crate::targets) marks: Vec<Exclusion>,
}

/// What keeps a backend out of the choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::targets) struct Exclusion {
    /// Until then by its words; zero: nothing does.
    pub(in crate::targets) until: Tick,
    pub(in crate::targets) outlier: bool,
    pub(in crate::targets) slow: bool,
    pub(in crate::targets) full: bool,
    pub(in crate::targets) out: bool,
    /// It is out only for being full.
    pub(in crate::targets) only_full: bool,
}
