//! Each interval: what became of the last datagrams, what is to be told now, and sending it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use super::round::SentRound;
use super::socket::{StatsdSocket, WhyUnsent};
use crate::config::model::{StatsdAddress, StatsdConfig};
use crate::events;
use crate::metrics::{CountedOwners, FamilyWalk, HEIRS, ScrapeSources};
use crate::reload::Reloader;
use crate::telemetry::statsd::{StatsdDatagram, StatsdDatagrams, StatsdLedger, StatsdReading};

/// Datagrams that go out without a pause. The usual receive buffer has room for some ninety.
const BURST: usize = 32;
/// The pause behind them, in which the receiver reads.
const PAUSE: Duration = Duration::from_millis(2);
/// How often in one round room is waited for, a pause each.
const WAITS: usize = 50;
/// How long there must have been no fault until it works again: one that takes every other datagram is not told of each second.
const GOOD_FOR: Duration = Duration::from_secs(2);
/// Requests whose times are sent in one round at most.
const TIMINGS_MAX: usize = 8192;
/// How often is asked what became of what was sent.
const STEP: Duration = Duration::from_millis(500);

/// What a scrape would be written from; `None`: nothing is in force.
pub type ScrapeSource = Arc<dyn Fn() -> Option<ScrapeSources> + Send + Sync>;

/// What sends.
pub(super) struct StatsdService {
    reloader: Arc<Reloader>,
    source: ScrapeSource,
    ledger: StatsdLedger,
    /// Whose numbers the ledger has.
    owners: CountedOwners,
    /// The next reading is taken for told: it was counted while nobody was sent anything.
    skips: bool,
    round: SentRound,
    failing: Option<Failing>,
}

/// Since when datagrams do not arrive.
struct Failing {
    to: StatsdAddress,
    since: Instant,
    latest: Instant,
}

impl StatsdService {
    /// One that has sent nothing yet. `counts_from_zero`: the first that is sent has all that was counted since the process began.
    pub(super) fn new(
        reloader: &Arc<Reloader>,
        source: &ScrapeSource,
        counts_from_zero: bool,
    ) -> StatsdService {
        StatsdService {
            reloader: Arc::clone(reloader),
            source: Arc::clone(source),
            ledger: StatsdLedger::new(HEIRS),
            owners: CountedOwners::default(),
            skips: !counts_from_zero,
            round: SentRound::default(),
            failing: None,
        }
    }

    /// Sends by the config in force until it is told that there will be no more: then a `last` time.
    pub(super) async fn run(mut self, last: CancellationToken) {
        let mut configs = self.reloader.statsd.subscribe();
        while !last.is_cancelled() {
            let config = configs.borrow_and_update().clone();
            if let Some(config) = config {
                self.send_by(&config, &mut configs, &last).await;
                continue;
            }
            // What is counted from now on nobody is told.
            (self.skips, self.failing) = (true, None);
            tokio::select! {
                () = last.cancelled() => return,
                changed = configs.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Sends by this config until there is another one, or the `last` time.
    async fn send_by(
        &mut self,
        config: &StatsdConfig,
        configs: &mut watch::Receiver<Option<StatsdConfig>>,
        last: &CancellationToken,
    ) {
        if self.failing.as_ref().is_some_and(|failing| failing.to != config.to) {
            self.failing = None;
        }
        let mut socket = StatsdSocket::new(&config.to);
        if self.skips {
            self.skip().await;
        }
        self.look_up(&mut socket, last).await;
        let (mut turns, mut steps) = (every(config.interval), every(STEP.min(config.interval)));
        loop {
            tokio::select! {
                biased;
                () = last.cancelled() => {
                    self.turn(config, &mut socket, last).await;
                    return;
                }
                changed = configs.changed() => {
                    self.confirm(&socket, config);
                    if changed.is_err() {
                        last.cancelled().await;
                    }
                    return;
                }
                _ = turns.tick() => {
                    self.turn(config, &mut socket, last).await;
                    // Who is not there has a moment to let it be known.
                    steps.reset();
                }
                _ = steps.tick() => self.confirm(&socket, config),
            }
        }
    }

    /// Sends all that there is to be told.
    async fn turn(&mut self, config: &StatsdConfig, socket: &mut StatsdSocket, last: &CancellationToken) {
        self.confirm(socket, config);
        self.look_up(socket, last).await;
        if self.skips {
            // It could not be done when it was to be.
            return self.skip().await;
        }
        let mut datagrams = StatsdDatagrams::new(config.format, socket.limit());
        if let Some(reading) = self.read().await {
            self.ledger.settle(&reading);
            datagrams.add(&reading, &self.ledger);
        }
        // Also those that were drawn under the config before.
        datagrams.add_timings(&self.reloader.snapshots.observers().timings.take(TIMINGS_MAX));
        self.send(datagrams.finish(), socket, config).await;
    }

    /// Finds out where the socket leads. The end waits for no name, and has the address that is known.
    async fn look_up(&self, socket: &mut StatsdSocket, last: &CancellationToken) {
        tokio::select! {
            biased;
            () = socket.look_up(self.failing.is_some()) => {}
            () = last.cancelled() => {}
        }
    }

    /// Takes all that was counted so far for told.
    async fn skip(&mut self) {
        if let Some(reading) = self.read().await {
            self.ledger.skip(reading);
            self.skips = false;
            // What was left when it was switched off is too old.
            drop(self.reloader.snapshots.observers().timings.take(TIMINGS_MAX));
        }
    }

    /// All samples there are. `None`: nothing is in force.
    async fn read(&mut self) -> Option<StatsdReading> {
        let source = Arc::clone(&self.source);
        // The panic of a source has been told.
        let sources = spawn_blocking(move || source()).await.ok().flatten()?;
        let owners = CountedOwners::of(&sources);
        owners.renewed(&self.owners).for_each(|(label, name)| self.ledger.renew(label, name));
        self.owners = owners;
        let (mut families, mut reading) = (FamilyWalk::new(sources), StatsdReading::default());
        while families.go_on(&mut reading) {
            reading.rest();
            yield_now().await;
        }
        Some(reading)
    }

    async fn send(&mut self, datagrams: Vec<StatsdDatagram>, socket: &StatsdSocket, config: &StatsdConfig) {
        let (all, mut waits) = (datagrams.len(), WAITS);
        for (number, datagram) in datagrams.into_iter().enumerate() {
            if number > 0 && number % BURST == 0 {
                sleep(PAUSE).await;
            }
            let mut sent = socket.send(datagram.text.as_bytes());
            while matches!(sent, Err(WhyUnsent::Full)) && waits > 0 {
                waits -= 1;
                sleep(PAUSE).await;
                sent = socket.send(datagram.text.as_bytes());
            }
            match sent {
                Ok(()) => self.round.add(datagram),
                Err(WhyUnsent::Full) => self.fails(1, "it does not read fast enough", config),
                Err(WhyUnsent::Unfit(reason)) => self.fails(1, &reason, config),
                Err(WhyUnsent::Gone(reason)) => {
                    let before = if socket.is_udp() { std::mem::take(&mut self.round).datagrams } else { 0 };
                    self.fails(before + all - number, &reason, config);
                    return;
                }
            }
        }
    }

    /// Takes what was sent for told, unless somebody says that it did not arrive.
    fn confirm(&mut self, socket: &StatsdSocket, config: &StatsdConfig) {
        let late = socket.late_fault();
        let round = std::mem::take(&mut self.round);
        if let Some(reason) = late {
            self.fails(round.datagrams, &reason, config);
            return;
        }
        if round.datagrams == 0 {
            return;
        }
        self.reloader.statsd_board.sent(round.datagrams);
        round.settle(&mut self.ledger);
        if let Some(failing) = self.failing.take_if(|failing| failing.latest.elapsed() >= GOOD_FOR) {
            events::statsd_works(&config.to.to_string(), failing.since.elapsed());
        }
    }

    /// So many datagrams did not arrive.
    fn fails(&mut self, datagrams: usize, reason: &str, config: &StatsdConfig) {
        self.reloader.statsd_board.dropped(datagrams);
        let now = Instant::now();
        if let Some(failing) = &mut self.failing {
            failing.latest = now;
            return;
        }
        self.failing = Some(Failing { to: config.to.clone(), since: now, latest: now });
        events::statsd_fails(&config.to.to_string(), reason);
    }
}

/// The first time after one of these times.
fn every(time: Duration) -> Interval {
    let mut turns = interval_at(Instant::now() + time, time);
    turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
    turns
}
