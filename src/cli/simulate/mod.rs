//! `evenkeel simulate`: what each algorithm does to a workload.

mod algorithm_run;
mod nodes;
mod text;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;

use super::args::simulate::{Format, OwnCase, SimulateOptions};
use super::output;
use crate::config::model::{Balance, Policy, Resilience, TargetConfig};
use crate::config::{self, Flags};
use crate::net;
use crate::simulate::{self, Arrivals, Class, Clients, Conduct, Fake, Phase, Spread, Workload};
use algorithm_run::AlgorithmRun;

/// Requests of each run where somebody asked for something: enough for figures to three digits.
const MANY: u64 = 200_000;
/// The same where nobody did: all workloads under all algorithms take a few seconds.
const FEW: u64 = 5_000;

/// Runs what was asked for and prints its figures.
pub(super) fn run(options: &SimulateOptions) -> anyhow::Result<ExitCode> {
    if let Some(nodes) = options.own.nodes {
        let begun = net::now();
        let count = nodes::run(options, nodes, options.requests.unwrap_or(MANY))?;
        tell_pace(count, net::now().since(begun));
        return Ok(ExitCode::SUCCESS);
    }
    let own = options.own.rate.is_some() || options.own.clients.is_some();
    let (policy, workloads) = if own {
        let target = target(&options.own)?;
        let workload = own_case(&options.own, target.as_ref());
        (target.map(|target| target.balance), vec![workload])
    } else {
        let named =
            |workload: &Workload| options.workload.is_empty() || options.workload.contains(&workload.name);
        (None, Workload::stock().into_iter().filter(named).collect())
    };
    let requests = options.requests.unwrap_or(if own || !options.workload.is_empty() { MANY } else { FEW });
    let guard = |workload: Workload| if options.no_resilience { workload.unguarded() } else { workload };
    let algorithms: Vec<Balance> = match (&options.algorithm[..], &policy) {
        ([], Some(policy)) => vec![policy.algorithm],
        ([], None) => Balance::ALL.iter().map(|(_, balance)| *balance).collect(),
        (some, _) => some.to_vec(),
    };
    let policy = policy.unwrap_or_default();
    let begun = net::now();
    let mut sections = Vec::new();
    for workload in workloads.into_iter().map(guard) {
        let runs = algorithms.iter().map(|&algorithm| {
            let policy = Policy { algorithm, ..policy.clone() };
            let report = simulate::run(&workload, &policy, requests, options.seed);
            AlgorithmRun { algorithm: name(algorithm), report }
        });
        let runs: Vec<AlgorithmRun> = runs.collect();
        if options.format == Format::Table {
            // Each as soon as it is there.
            output::print(&text::table(&workload, &runs))?;
        }
        sections.push((workload, runs));
    }
    match options.format {
        Format::Table => {}
        Format::Markdown => output::print(&text::markdown(&sections))?,
        Format::Json => output::print(&text::json(&sections))?,
    }
    let count = sections.iter().map(|(_, runs)| runs.len() as u64).sum::<u64>() * requests;
    tell_pace(count, net::now().since(begun));
    Ok(ExitCode::SUCCESS)
}

/// Says how fast it went, apart from the figures.
fn tell_pace(requests: u64, took: Duration) {
    let pace = requests as f64 / took.as_secs_f64().max(1e-9);
    let seconds = took.as_secs_f64();
    let _ =
        writeln!(std::io::stderr(), "{requests} requests simulated in {seconds:.1} s: {pace:.0} a second");
}

fn name(algorithm: Balance) -> &'static str {
    Balance::ALL.iter().find(|(_, balance)| *balance == algorithm).map_or("", |(name, _)| name)
}

/// The target of `--config` that is asked for.
fn target(own: &OwnCase) -> anyhow::Result<Option<TargetConfig>> {
    let Some(file) = &own.config else { return Ok(None) };
    let env = |name: &str| std::env::var(name).ok();
    let mut targets = config::load(Some(file), &Flags::default(), &env)?.config.targets;
    let names = || targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>().join(", ");
    let place = match &own.target {
        None if targets.len() == 1 => 0,
        None => anyhow::bail!("{} has several targets; --target takes one of: {}", file.display(), names()),
        Some(name) => targets
            .iter()
            .position(|target| target.name == *name)
            .with_context(|| format!("{} has no target `{name}`, but {}", file.display(), names()))?,
    };
    Ok(Some(targets.swap_remove(place)))
}

/// The workload that flags and a target of the config amount to.
fn own_case(own: &OwnCase, target: Option<&TargetConfig>) -> Workload {
    let mut backends: Vec<Fake> = match target {
        Some(target) => {
            let portions = target.backends.iter().map(|backend| &backend.portion);
            portions.map(|portion| Fake { portion: portion.clone(), ..Fake::new(own.slots) }).collect()
        }
        None if own.weights.is_empty() => vec![Fake::new(own.slots); own.backends as usize],
        None => own.weights.iter().map(|&weight| Fake::new(own.slots).weighing(weight)).collect(),
    };
    if let (Some(factor), Some(first)) = (own.slow, backends.first_mut()) {
        first.phases = vec![Phase { from: Duration::ZERO, conduct: Conduct::Slow(factor) }];
    }
    let arrivals = match (own.clients, own.rate) {
        (Some(clients), _) => Arrivals::Closed { clients, think: own.think.unwrap_or_default() },
        (None, rate) => Arrivals::Open { rate: rate.unwrap_or(1.0), burst: None },
    };
    let mean = own.service_mean.as_secs_f64();
    let about = format!("{} with {} slots, {}", count(backends.len()), own.slots, told(&arrivals));
    Workload {
        arrivals,
        classes: vec![Class { share: 1.0, service: Spread { mean, shape: own.service_shape } }],
        size: Spread { mean: 0.0, shape: 1.0 },
        clients: Clients { count: own.keys, skew: own.key_skew },
        slow_start: target.map_or(Duration::ZERO, |target| target.balance.slow_start),
        resilience: target.map_or_else(Resilience::default, |target| target.resilience.clone()),
        ..Workload::new("own", &about, backends, 1.0)
    }
}

fn count(backends: usize) -> String {
    if backends == 1 { "1 backend".to_owned() } else { format!("{backends} backends") }
}

fn told(arrivals: &Arrivals) -> String {
    match arrivals {
        Arrivals::Open { rate, .. } => format!("{rate} requests a second"),
        Arrivals::Closed { clients, .. } => format!("{clients} clients"),
    }
}
