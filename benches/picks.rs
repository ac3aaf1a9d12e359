//! What a pick and its release cost, for every algorithm and size: `cargo bench --bench picks [ALGORITHM]…`.
//!
//! Each backend gets a number of leases drawn at random first. Then every operation picks a backend, notes an answer, and
//! ends a lease drawn from all there are, so that picks and releases are interleaved and loads stay uneven. With two
//! threads both do that on one target at the same time, each with its own leases.
//!
//! A mean is that of the best of several rounds, in which 64 operations are timed together. For p50 and p99 each is timed
//! by itself, and what reading the clock twice takes (the median of many readings) is taken off. The lease that will end is
//! fetched outside of the time: a request that ends has just used it. The allocator is the one that ships.

use std::io::Write as _;
use std::sync::{Arc, Barrier};

use evenkeel::config::model::{
    self, BackendAddress, Balance, HealthCheck, Policy, Portion, Protocol, Resilience, Timeouts,
};
use evenkeel::net::now;
use evenkeel::targets::{Ask, Chance, Heard, Lease, Pick, Registry, Target, Tried};
use evenkeel::tick::Tick;

/// Backends of a target.
const SIZES: [u16; 4] = [2, 10, 1_000, 10_000];
/// Rounds of which the best counts.
const ROUNDS: usize = 7;
/// Operations of a round, for each thread.
const OPERATIONS: usize = 64 * 1_600;
/// Operations that are timed together.
const BATCH: usize = 64;
/// Most leases that a backend has at the start.
const LEASES: usize = 7;
/// How much a pick may grow from 10 to 10,000 backends.
const GROWTH: f64 = 2.0;
/// The size for the check of `least_connections`, and what its p99 may be, in nanoseconds.
const CHECKED: (u16, u64) = (2_500, 1_000);

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let clock = clock_cost();
    let mut short = Vec::new();
    say(
        "| algorithm | threads | 2: mean | p50 | p99 | 10: mean | p50 | p99 | 1,000: mean | p50 | p99 | 10,000: mean | p50 | p99 | 10,000 ÷ 10 |",
    );
    say("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for &(name, algorithm) in Balance::ALL {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        for threads in [1, 2] {
            let figures = SIZES.map(|size| measure(algorithm, size, threads, clock));
            let cells: Vec<String> = figures
                .iter()
                .map(|figure| format!("{:.0} | {} | {}", figure.mean, figure.middle, figure.late))
                .collect();
            let growth = figures[3].mean / figures[1].mean;
            say(&format!("| `{name}` | {threads} | {} | {growth:.2} |", cells.join(" | ")));
            if growth >= GROWTH {
                short.push(format!(
                    "`{name}`, {threads} threads: {growth:.2} times as much, less than {GROWTH} is asked"
                ));
            }
        }
    }
    if wanted.is_empty() || wanted.iter().any(|wanted| wanted == "least_connections") {
        let (size, most) = CHECKED;
        let (figure, picks) = check(size, clock);
        say(&format!(
            "\n`least_connections`, {size} backends, one thread: mean {:.0} ns, p50 {} ns, p99 {} ns; each of {picks} picks \
             was a minimum.",
            figure.mean, figure.middle, figure.late
        ));
        if figure.late > most {
            short.push(format!(
                "`least_connections`, {size} backends: p99 {} ns, {most} are asked",
                figure.late
            ));
        }
    }
    say(&format!("\nNanoseconds. Reading the clock twice took {clock} ns, which are taken off p50 and p99."));
    for line in &short {
        say(&format!("SHORT: {line}"));
    }
}

fn say(line: &str) {
    // Whoever has closed our output does not want to read on.
    _ = writeln!(std::io::stdout(), "{line}");
}

/// What operations took, in nanoseconds.
struct Figure {
    mean: f64,
    middle: u64,
    late: u64,
}

/// A thread's share of what is under way.
struct Side {
    leases: Vec<Lease>,
    chance: Chance,
    moment: Tick,
}

impl Side {
    /// Up to so many leases on each backend, in any order.
    fn new(target: &Target, seed: u64) -> Side {
        let chance = Chance::seeded(seed);
        let tried = Tried::new();
        let moment = now();
        let mut leases = Vec::new();
        for backend in &target.backends {
            for _ in 0..chance.below(LEASES + 1) {
                let ask = Ask { pin: Some(backend), ..Ask::new(&tried, &chance, moment) };
                leases.extend(lease(target, &ask));
            }
        }
        let ask = Ask::new(&tried, &chance, moment);
        leases.extend(lease(target, &ask));
        for end in (1..leases.len()).rev() {
            leases.swap(end, chance.below(end + 1));
        }
        Side { leases, chance, moment }
    }

    /// Any lease, out of all.
    fn draw(&mut self) -> Lease {
        let place = self.chance.below(self.leases.len());
        self.leases.swap_remove(place)
    }

    /// Picks, notes an answer and ends another.
    fn step(&mut self, target: &Target, ending: Lease) -> Lease {
        self.moment.0 += 1_000;
        let tried = Tried::new();
        let ask = Ask { key: Some(self.chance.bits()), ..Ask::new(&tried, &self.chance, self.moment) };
        let picked = lease(target, &ask).expect("all backends are up");
        picked.note_answer(Heard::GOOD, Tick(self.moment.0 + 500));
        drop(ending);
        picked
    }

    /// What so many operations take, in nanoseconds.
    fn round(&mut self, target: &Target) -> u64 {
        let mut took = 0;
        let (mut ending, mut picked) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        for _ in 0..OPERATIONS / BATCH {
            let most = BATCH.min(self.leases.len());
            ending.extend((0..most).map(|_| self.draw()));
            let begun = now();
            picked.extend(ending.drain(..).map(|lease| self.step(target, lease)));
            took += (now().0 - begun.0) * BATCH as u64 / most as u64;
            self.leases.append(&mut picked);
        }
        took
    }
}

fn lease(target: &Target, ask: &Ask<'_>) -> Option<Lease> {
    match target.pick(ask) {
        Pick::Lease(lease) => Some(lease),
        Pick::Unknown | Pick::Full | Pick::None(_) => None,
    }
}

fn target(algorithm: Balance, size: u16) -> Arc<Target> {
    let backend = |number: u16| model::BackendConfig {
        name: format!("b{number}"),
        address: BackendAddress::Host { host: "127.0.0.1".into(), port: 1 + number },
        probe_path: None,
        tls: None,
        portion: Portion::default(),
        state: model::BackendState::Up,
        state_by: None,
        dialing: Default::default(),
        found: None,
    };
    let config = model::TargetConfig {
        send_proxy: None,
        name: "web".into(),
        protocol: Protocol::Http,
        host: model::HostHeader::Pass,
        balance: Policy::from(algorithm),
        sticky: None,
        health: None::<HealthCheck>,
        timeouts: Timeouts::default(),
        drain_timeout: model::TargetConfig::DRAIN_TIMEOUT,
        resilience: Resilience::default(),
        upgrade: Vec::new(),
        upstream: model::UpstreamProtocol::Http,
        backends: (0..size).map(backend).collect(),
        sources: Vec::new(),
    };
    Registry::new().apply(&[config]).remove(0)
}

fn measure(algorithm: Balance, size: u16, threads: u64, clock: u64) -> Figure {
    let target = target(algorithm, size);
    let start = Barrier::new(threads as usize);
    let run = |seed| {
        let mut side = Side::new(&target, seed);
        let mut best = u64::MAX;
        for _ in 0..ROUNDS {
            start.wait();
            best = best.min(side.round(&target));
        }
        start.wait();
        (best, times(&target, &mut side, |_, _| {}))
    };
    let both: Vec<(u64, Vec<u64>)> = std::thread::scope(|scope| {
        let runs: Vec<_> = (1..=threads).map(|seed| scope.spawn(move || run(seed))).collect();
        runs.into_iter().map(|run| run.join().expect("no panic")).collect()
    });
    let best = both.iter().map(|(best, _)| *best).max().expect("one thread at least");
    figure(best, both.into_iter().flat_map(|(_, times)| times).collect(), clock)
}

/// What each of many operations took, with reading the clock twice. `seen` hears of each, outside of its time: the backend
/// that was picked, and then the one whose lease ended.
fn times(target: &Target, side: &mut Side, mut seen: impl FnMut(usize, usize)) -> Vec<u64> {
    let mut times = Vec::with_capacity(OPERATIONS);
    for _ in 0..OPERATIONS {
        let ending = side.draw();
        let ended = ending.backend().id;
        let begun = now();
        let picked = side.step(target, ending);
        times.push(now().0 - begun.0);
        seen(picked.backend().id.0 as usize, ended.0 as usize);
        side.leases.push(picked);
    }
    times
}

fn figure(best: u64, mut times: Vec<u64>, clock: u64) -> Figure {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].saturating_sub(clock);
    Figure { mean: best as f64 / OPERATIONS as f64, middle: at(50), late: at(99) }
}

/// What reading the clock twice takes: the median.
fn clock_cost() -> u64 {
    let mut costs: Vec<u64> = (0..100_001)
        .map(|_| {
            let begun = now();
            now().0 - begun.0
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}

/// Times picks of `least_connections` one by one and holds each to the counts: how many there are of each load tells the
/// least without a scan, which would warm the caches.
fn check(size: u16, clock: u64) -> (Figure, usize) {
    let target = target(Balance::LeastConnections, size);
    let mut side = Side::new(&target, 7);
    let mut loads: Vec<usize> = target.backends.iter().map(|backend| backend.in_flight() as usize).collect();
    let mut at_load = vec![0_usize; side.leases.len() + 2];
    loads.iter().for_each(|&load| at_load[load] += 1);
    let mut picks = 0;
    let times = times(&target, &mut side, |picked, ended| {
        let least = at_load.iter().position(|&count| count > 0).expect("there are backends");
        assert_eq!(loads[picked], least, "not a minimum");
        at_load[least] -= 1;
        at_load[least + 1] += 1;
        loads[picked] += 1;
        at_load[loads[ended]] -= 1;
        loads[ended] -= 1;
        at_load[loads[ended]] += 1;
        picks += 1;
    });
    let whole = times.iter().sum::<u64>().saturating_sub(clock * times.len() as u64);
    (figure(whole, times, clock), picks)
}
