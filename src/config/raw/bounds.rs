//! The bounds of numbers and times, each in one place: the walker holds values to them, and the shapes tell editors.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::model::{Http2, Portion};

/// Most worker threads.
pub(in crate::config) const WORKERS_MAX: u32 = 1_024;
/// Most client connections that can be asked for.
pub(super) const CONNECTIONS_MAX: u32 = 10_000_000;
/// Addresses of one name.
pub(super) const ADDRESSES_MAX: u32 = 10_000;
pub(super) const MILLISECOND: Duration = Duration::from_millis(1);
/// Shortest time that an average can be taken over.
pub(super) const SECOND: Duration = Duration::from_secs(1);
/// Longest pause before a retry.
pub(super) const MINUTE: Duration = Duration::from_secs(60);
/// By how much clocks may be told to differ.
pub(super) const LEEWAY_MAX: Duration = Duration::from_secs(300);
pub(super) const HOUR: Duration = Duration::from_secs(3600);
pub(in crate::config) const DAY: Duration = Duration::from_secs(24 * 3600);
pub(super) const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
/// Longest time that an answer can be kept for without asking.
pub(in crate::config) const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// How long a node counts as there that says nothing: a majority of etcd needs some two seconds to find another leader.
pub(super) const CLUSTER_LEASE: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(300));
/// A probe every few milliseconds is for tests; less would be an attack.
pub(in crate::config) const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// The shortest time from one sending of all numbers to the next: reading them has its price.
pub(super) const STATSD_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Most probes in a row that `rise` and `fall` can ask for.
pub(in crate::config) const COUNT_MAX: u32 = 1_000;
/// The highest `rate`, in any time, and the largest `burst`.
pub(in crate::config) const RATE_MAX: u32 = 1_000_000;
/// Least and most bytes that answers are kept in.
pub(super) const STORE: (u64, u64) = (1 << 20, 1 << 40);
/// Bounds of the largest body that is kept; an eighth of all at most.
pub(super) const OBJECT: (u64, u64) = (1 << 10, STORE.1 / 8);
/// Least and most bytes that each worker keeps requests in that are over.
pub(super) const RECORDER: (u64, u64) = (256 << 10, 1 << 30);
/// Most streams of HTTP/2 that a client can be allowed to have open at once.
pub(super) const STREAMS_MAX: u32 = 256;
/// Bounds of `http2.window_max`: from the window that each connection begins with.
pub(super) const WINDOW_MAX: (u64, u64) = (Http2::WINDOW as u64, 16 << 20);
/// Bounds of `http2.memory`.
pub(super) const HTTP2_MEMORY: (u64, u64) = (1 << 20, 64 << 30);
/// Most bytes from which on bodies can be compressed.
pub(super) const SHORTEST_MAX: u64 = 1 << 30;
/// Bounds of `bounded_load`, in percent. At 100 every backend would have to have the same load always.
pub(super) const BOUND: (u32, u32) = (101, 1_000);
/// The greatest number that `priority` takes; behind it are the backups.
pub(in crate::config) const PRIORITY_MAX: u32 = Portion::BACKUP as u32 - 1;
/// Fewest bytes of a key: 128 bits, of which nobody finds any by trying.
pub(super) const KEY_MIN: usize = 16;
/// The greatest weight of a target in a `split`.
pub(super) const SHARE_MAX: u32 = 1_000_000;
/// Statuses that can be a failure.
pub(super) const FAILURES: RangeInclusive<u16> = 400..=599;
/// Most requests that one backend can be allowed to have at once, and most that can wait.
pub(super) const IN_FLIGHT_MAX: u32 = 1_000_000;
/// Most attempts of a request.
pub(super) const ATTEMPTS_MAX: u32 = 10;
/// Bounds of `outlier.latency`. Being slower than the others by less is nothing to be left out for.
pub(super) const SLOWER: (u32, u32) = (2, 100);
/// Bounds of `hedging.percentile`.
pub(super) const PERCENTILE: (u32, u32) = (50, 99);
/// Unanswered questions of the kernel that end a connection; it takes no more.
pub(super) const PROBES_MAX: u32 = 127;
