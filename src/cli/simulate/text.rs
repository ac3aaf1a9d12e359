//! The figures of runs as text.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;

use super::algorithm_run::AlgorithmRun;
use crate::simulate::{SimulationReport, Workload};

/// A terminal's width.
const COLUMNS: usize = 80;
/// The columns, in order.
const HEADS: [&str; 6] = ["mean ms", "p50 ms", "p99 ms", "max ms", "errors", "imbalance"];

fn cells(report: &SimulationReport) -> [String; 6] {
    let times = [report.mean, report.p50, report.p99, report.max].map(millis);
    let [mean, p50, p99, max] = times;
    [mean, p50, p99, max, per_cent(report.error_share()), format!("{:.2}", report.imbalance)]
}

/// To three digits, as far as there are any.
fn millis(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    let digits = if millis < 9.995 { 2 } else { usize::from(millis < 99.95) };
    format!("{millis:.digits$}")
}

fn per_cent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        small if small < 0.1 => "< 0.1 %".to_owned(),
        share => format!("{share:.1} %"),
    }
}

/// One workload for a terminal.
pub(super) fn table(workload: &Workload, runs: &[AlgorithmRun]) -> String {
    let names = runs.iter().map(|run| run.algorithm.len()).max().unwrap_or(0);
    let mut text = format!("{}\n  {:names$}", folded(&format!("{}: {}", workload.name, workload.about)), "");
    let widths = HEADS.map(|head| head.len().max(7));
    for (head, width) in HEADS.iter().zip(widths) {
        let _ = write!(text, "  {head:>width$}");
    }
    for run in runs {
        let _ = write!(text, "\n  {:names$}", run.algorithm);
        for (cell, width) in cells(&run.report).iter().zip(widths) {
            let _ = write!(text, "  {cell:>width$}");
        }
    }
    text + "\n\n"
}

/// A sentence in lines that fit.
fn folded(sentence: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in sentence.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > COLUMNS {
            text.push_str("\n  ");
            column = 2;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text
}

/// All of them for a document: an overview, then each.
pub(super) fn markdown(sections: &[(Workload, Vec<AlgorithmRun>)]) -> String {
    let mut text = String::new();
    if let [(_, first), _, ..] = sections {
        let heads: Vec<String> = first.iter().map(|run| format!("`{}`", run.algorithm)).collect();
        let _ = writeln!(text, "| p99 in ms, errors | {} |", heads.join(" | "));
        let _ = writeln!(text, "|---|{}", "--:|".repeat(heads.len()));
        for (workload, runs) in sections {
            let cell = |run: &AlgorithmRun| match run.report.errors {
                0 => millis(run.report.p99),
                _ => format!("{}, {}", millis(run.report.p99), per_cent(run.report.error_share())),
            };
            let cells: Vec<String> = runs.iter().map(cell).collect();
            let _ = writeln!(text, "| [`{0}`](#{0}) | {1} |", workload.name, cells.join(" | "));
        }
    }
    for (workload, runs) in sections {
        let Workload { name, about, .. } = workload;
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}#### {name}\n\n{}.\n", capitalised(about));
        let _ = writeln!(text, "| algorithm | {} |\n|---|{}", HEADS.join(" | "), "--:|".repeat(HEADS.len()));
        for run in runs {
            let _ = writeln!(text, "| `{}` | {} |", run.algorithm, cells(&run.report).join(" | "));
        }
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// All of them for a program.
pub(super) fn json(sections: &[(Workload, Vec<AlgorithmRun>)]) -> String {
    let runs = sections.iter().flat_map(|(workload, runs)| runs.iter().map(move |run| (workload, run)));
    let objects = runs.map(|(workload, run)| {
        let report = &run.report;
        let seconds = |time: Duration| time.as_secs_f64();
        json!({
            "workload": workload.name,
            "algorithm": run.algorithm,
            "requests": report.requests,
            "errors": report.errors,
            "ejected": report.ejected,
            "mean": seconds(report.mean),
            "p50": seconds(report.p50),
            "p99": seconds(report.p99),
            "max": seconds(report.max),
            "imbalance": report.imbalance,
            "shares": report.shares,
            "span": seconds(report.span),
        })
    });
    format!("{:#}\n", serde_json::Value::Array(objects.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_shares_do_not_hide_errors() {
        let shown = [1_234, 9_994_999, 9_995_001, 12_345_678, 99_949_999, 99_950_001, 1_234_567_890];
        let shown = shown.map(|nanos| millis(Duration::from_nanos(nanos)));
        assert_eq!(shown, ["0.00", "9.99", "10.0", "12.3", "99.9", "100", "1235"]);
        assert_eq!([0.0, 0.000_001, 0.333_33, 1.0].map(per_cent), ["0 %", "< 0.1 %", "33.3 %", "100.0 %"]);
    }
}
