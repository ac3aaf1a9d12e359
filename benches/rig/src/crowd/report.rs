//! What a crowd has seen.

use std::time::{Duration, Instant};

use super::work::Kind;

/// Answers that take longer are counted as slow.
const SLOW: Duration = Duration::from_millis(100);
/// Losses that are described; more are only counted.
const MOST_TOLD: usize = 20;

/// One kind of request.
#[derive(Default)]
struct Counts {
    begun: u64,
    failed: u64,
    times: Vec<Duration>,
}

/// What was begun, what came of it, and how long that took.
pub(super) struct Report {
    begun: Instant,
    /// From when on what is due is timed.
    counts_from: Instant,
    kinds: [Counts; Kind::ALL.len()],
    messages: Counts,
    /// Messages that had not come back a second later.
    late: u64,
    websockets_lost: u64,
    tunnels_lost: u64,
    /// Kept connections that the peer ended, having said so.
    announced: u64,
    /// And without a word.
    unannounced: u64,
    told: Vec<String>,
}

impl Report {
    pub(super) fn new(begun: Instant) -> Report {
        Report {
            begun,
            counts_from: begun,
            kinds: Kind::ALL.map(|_| Counts::default()),
            messages: Counts::default(),
            late: 0,
            websockets_lost: 0,
            tunnels_lost: 0,
            announced: 0,
            unannounced: 0,
            told: Vec::new(),
        }
    }

    /// Forgets how long things took so far; they are timed that are due from `counts_from` on.
    pub(super) fn begin(&mut self, begun: Instant, counts_from: Instant) {
        (self.begun, self.counts_from) = (begun, counts_from);
        self.messages.times.clear();
    }

    fn kind(&mut self, kind: Kind) -> &mut Counts {
        &mut self.kinds[kind as usize]
    }

    /// Counts a request; tells how many there were before.
    pub(super) fn begun(&mut self, kind: Kind) -> u64 {
        let begun = &mut self.kind(kind).begun;
        *begun += 1;
        *begun - 1
    }

    pub(super) fn answered(&mut self, kind: Kind, due: Instant, time: Instant) {
        if due >= self.counts_from {
            self.kind(kind).times.push(time.saturating_duration_since(due));
        }
    }

    pub(super) fn failed(&mut self, kind: Kind, reason: &anyhow::Error) {
        self.kind(kind).failed += 1;
        self.tell(kind.name(), reason);
    }

    pub(super) fn message(&mut self) {
        self.messages.begun += 1;
    }

    pub(super) fn echoed(&mut self, due: Instant, time: Instant) {
        if due >= self.counts_from {
            self.messages.times.push(time.saturating_duration_since(due));
        }
    }

    pub(super) fn late(&mut self) {
        self.late += 1;
    }

    pub(super) fn lose(&mut self, websocket: bool, reason: &anyhow::Error) {
        let (lost, name) = match websocket {
            true => (&mut self.websockets_lost, "websocket"),
            false => (&mut self.tunnels_lost, "tunnel"),
        };
        *lost += 1;
        self.tell(name, reason);
    }

    pub(super) fn lost(&self) -> u64 {
        self.websockets_lost + self.tunnels_lost
    }

    pub(super) fn announced(&mut self) {
        self.announced += 1;
    }

    pub(super) fn unannounced(&mut self, reason: &anyhow::Error) {
        self.unannounced += 1;
        self.tell("kept connection", reason);
    }

    fn tell(&mut self, what: &str, reason: &anyhow::Error) {
        if self.told.len() < MOST_TOLD {
            let at = crate::clock::now().saturating_duration_since(self.begun).as_secs_f64();
            let reason = format!("{reason:#}").replace('\\', "/").replace('"', "'");
            self.told.push(format!("{at:.3} s: {what}: {reason}"));
        }
    }

    /// One line of JSON. Times of `all` and `small` are those of several kinds together.
    pub(super) fn text(&mut self) -> String {
        let merged = |kinds: &[Counts], wanted: fn(Kind) -> bool| {
            let mut all = Counts::default();
            for (counts, _) in kinds.iter().zip(Kind::ALL).filter(|(_, kind)| wanted(*kind)) {
                all.begun += counts.begun;
                all.failed += counts.failed;
                all.times.extend(&counts.times);
            }
            all
        };
        let mut groups = vec![
            ("all", merged(&self.kinds, |_| true)),
            ("small", merged(&self.kinds, Kind::is_small)),
            ("messages", std::mem::take(&mut self.messages)),
        ];
        groups.extend(Kind::ALL.iter().map(|kind| kind.name()).zip(std::mem::take(&mut self.kinds)));
        let groups: Vec<String> =
            groups.iter_mut().map(|(name, counts)| format!("\"{name}\":{}", counts.text())).collect();
        let told: Vec<String> = self.told.iter().map(|one| format!("\"{one}\"")).collect();
        format!(
            "{{{},\"late\":{},\"websockets_lost\":{},\"tunnels_lost\":{},\"announced\":{},\"unannounced\":{},\"told\":[{}]}}",
            groups.join(","),
            self.late,
            self.websockets_lost,
            self.tunnels_lost,
            self.announced,
            self.unannounced,
            told.join(","),
        )
    }
}

impl Counts {
    fn text(&mut self) -> String {
        self.times.sort_unstable();
        let part = |share: f64| {
            let rank = (self.times.len() as f64 * share).ceil() as usize;
            self.times.get(rank.saturating_sub(1)).map_or(0, Duration::as_micros)
        };
        let slow = self.times.iter().filter(|time| **time > SLOW).count();
        format!(
            "{{\"begun\":{},\"failed\":{},\"timed\":{},\"p50_us\":{},\"p99_us\":{},\"max_us\":{},\"slow\":{slow}}}",
            self.begun,
            self.failed,
            self.times.len(),
            part(0.5),
            part(0.99),
            part(1.0),
        )
    }
}
