//! `evenkeel simulate --nodes`: the same backends behind several nodes.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;

use crate::cli::args::simulate::{Format, SimulateOptions};
use crate::cli::output;
use crate::simulate::Spread;
use crate::simulate::nodes::{NodeSharing, NodesReport, NodesWorkload, run as simulate};

const HEADS: [&str; 5] = ["mean ms", "p99 ms", "errors", "collided", "moves"];

/// Runs the case of these flags on so many nodes, and on one that knows everything, and prints what came of it; gives how many requests that were.
pub(super) fn run(options: &SimulateOptions, nodes: u32, requests: u64) -> anyhow::Result<u64> {
    let own = &options.own;
    let rate = own.rate.unwrap_or(1.0);
    let slots = f64::from(own.backends) * f64::from(own.slots);
    let mean = own.service_mean.as_secs_f64();
    let load = rate * mean / slots;
    anyhow::ensure!(
        load > 0.0 && load < 1.0,
        "{rate} requests a second of {mean} s each are {load:.2} of what {} backends with {} slots can do: it has to be above 0 and below 1",
        own.backends,
        own.slots
    );
    let workload = NodesWorkload {
        nodes: nodes as usize,
        backends: own.backends as usize,
        slots: own.slots,
        load,
        heavy: own.heavy.unwrap_or(1.0 / f64::from(nodes)),
        flips: own.flips.unwrap_or_default(),
        service: Spread { mean, shape: own.service_shape },
        bounds: [Duration::ZERO, Duration::MAX],
        span: Duration::from_secs_f64((requests as f64 / rate).min(1e9)),
        sharing: NodeSharing::Nothing,
    };
    let cases = [
        (
            "one_node",
            NodesWorkload { nodes: 1, sharing: NodeSharing::Soft { evens: false }, ..workload.clone() },
        ),
        ("apart", workload.clone()),
        ("owner_soft", NodesWorkload { sharing: NodeSharing::Soft { evens: true }, ..workload.clone() }),
    ];
    let runs: Vec<(&str, NodesReport)> =
        cases.iter().map(|(name, case)| (*name, simulate(case, options.seed))).collect();
    let about = format!(
        "{nodes} nodes, {} backends with {} slots, {rate} requests a second, {:.0} % of one node",
        own.backends,
        own.slots,
        workload.heavy * 100.0
    );
    output::print(&match options.format {
        Format::Table => table(&about, &runs),
        Format::Markdown => markdown(&about, &runs),
        Format::Json => as_json(&runs),
    })?;
    Ok(requests * cases.len() as u64)
}

fn cells(report: &NodesReport) -> [String; 5] {
    let share = |count: u64| format!("{:.1} %", count as f64 * 100.0 / report.requests.max(1) as f64);
    [
        format!("{:.1}", report.mean),
        format!("{:.0}", report.p99),
        share(report.errors),
        share(report.collided),
        report.moves.to_string(),
    ]
}

fn table(about: &str, runs: &[(&str, NodesReport)]) -> String {
    let mut text = format!("{about}\n  {:10}", "");
    for head in HEADS {
        let _ = write!(text, "  {head:>8}");
    }
    for (name, report) in runs {
        let _ = write!(text, "\n  {name:10}");
        for cell in cells(report) {
            let _ = write!(text, "  {cell:>8}");
        }
    }
    text + "\n"
}

fn markdown(about: &str, runs: &[(&str, NodesReport)]) -> String {
    let mut text = format!("{about}:\n\n| | {} |\n|---|---|---|---|---|---|\n", HEADS.join(" | "));
    for (name, report) in runs {
        let _ = writeln!(text, "| `{name}` | {} |", cells(report).join(" | "));
    }
    text
}

fn as_json(runs: &[(&str, NodesReport)]) -> String {
    let of = |(name, report): &(&str, NodesReport)| {
        json!({
            "sharing": name,
            "requests": report.requests,
            "errors": report.errors,
            "mean": report.mean / 1e3,
            "p99": report.p99 / 1e3,
            "collided": report.collided,
            "moves": report.moves,
        })
    };
    format!("{:#}\n", serde_json::Value::Array(runs.iter().map(of).collect()))
}
