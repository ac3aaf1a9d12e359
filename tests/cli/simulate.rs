//! `evenkeel simulate`.

use std::process::Stdio;

use serde_json::Value;

use super::{evenkeel, outcome};

/// The runs of a simulation, which must succeed.
#[track_caller]
fn runs(args: &[&str]) -> Vec<Value> {
    let args = [&["simulate", "--format", "json", "--requests", "2000"], args].concat();
    let (code, stdout, stderr) = outcome(&args);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains(" requests simulated in "), "{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn the_same_seed_prints_the_same_figures() {
    let args = ["simulate", "--workload", "even", "--algorithm", "random", "--requests", "2000"];
    let run = |seed| outcome(&[&args[..], &["--seed", seed]].concat()).1;
    let once = run("7");
    assert!(once.starts_with("even: 5 backends"), "{once}");
    assert_eq!(once, run("7"));
    assert_ne!(once, run("8"));
}

#[test]
fn its_tables_were_wider_than_a_terminal() {
    let (_, text, _) = outcome(&["simulate", "--requests", "200"]);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(text.lines().count() > 100 && widest <= 80, "{widest} columns:\n{text}");
    assert!(text.contains("least_connections") && text.contains("imbalance"), "{text}");
}

#[test]
fn every_pair_of_a_workload_and_an_algorithm_that_was_asked_for_is_run() {
    let args = ["--workload", "even", "--workload", "failing_fast", "--algorithm", "round_robin"];
    let runs = runs(&[&args[..], &["--algorithm", "p2c", "--no-resilience"]].concat());
    let pairs: Vec<(&str, &str)> = runs
        .iter()
        .map(|run| (run["workload"].as_str().unwrap(), run["algorithm"].as_str().unwrap()))
        .collect();
    let [even, failing] = ["even", "failing_fast"];
    let [turns, two] = ["round_robin", "power_of_two"];
    assert_eq!(pairs, [(even, turns), (even, two), (failing, turns), (failing, two)]);
    assert!((666..=667).contains(&runs[2]["errors"].as_u64().unwrap()), "{}", runs[2]);
    for run in &runs {
        assert_eq!(run["requests"], 2_000);
        assert!(
            run["p50"].as_f64() < run["p99"].as_f64() && run["p99"].as_f64() <= run["max"].as_f64(),
            "{run}"
        );
        assert!(run["imbalance"].as_f64().unwrap() >= 1.0, "{run}");
    }
}

#[test]
fn a_case_of_ones_own_has_the_backends_and_the_load_of_its_flags() {
    let runs = runs(&["--rate", "100", "--backends", "4", "--slow", "3", "--service-mean", "30ms"]);
    assert_eq!(runs.len(), 9, "all algorithms");
    let turns = &runs[0];
    assert_eq!((&turns["workload"], &turns["algorithm"]), (&"own".into(), &"round_robin".into()));
    assert_eq!(turns["shares"], serde_json::json!([500, 500, 500, 500]));
    // 2,000 requests at 100 a second, give or take chance.
    assert!((17.0..23.0).contains(&turns["span"].as_f64().unwrap()), "{turns}");
    // Nobody waits: the mean is that of the service, 3 × 30 ms and three times 30 ms.
    assert!((0.042..0.048).contains(&turns["mean"].as_f64().unwrap()), "{turns}");
}

#[test]
fn clients_that_think_come_back_after_that() {
    let args = ["--clients", "10", "--think", "90ms", "--service-mean", "10ms", "--algorithm", "random"];
    let runs = runs(&args);
    // 10 clients with a turn of 100 ms: 100 requests a second.
    assert!((18.0..22.0).contains(&runs[0]["span"].as_f64().unwrap()), "{}", runs[0]);
}

#[test]
fn a_config_lends_its_target() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evenkeel.yaml");
    let target =
        "protocol: http, listener: 0, backends: [{host: 10.0.0.1, port: 1}, {host: 10.0.0.2, port: 1}]";
    std::fs::write(&file, format!("targets: {{web: {{{target}}}, api: {{{target}}}}}")).unwrap();
    let file = file.to_str().unwrap();
    let args = ["--rate", "100", "--config", file, "--target", "api"];
    let runs = runs(&args);
    assert_eq!(runs.len(), 1, "the algorithm of the target");
    assert_eq!(
        (&runs[0]["algorithm"], &runs[0]["shares"]),
        (&"round_robin".into(), &serde_json::json!([1000, 1000]))
    );
    for (target, said) in
        [(&[][..], "several targets; --target takes one of: "), (&["--target", "x"], "no target `x`")]
    {
        let (code, _, stderr) = outcome(&[&["simulate"], &args[..4], target].concat());
        assert!(code == Some(1) && stderr.contains(said) && stderr.contains("web"), "{stderr}");
    }
}

#[test]
fn without_a_word_every_workload_runs_a_little() {
    let (code, stdout, stderr) = outcome(&["simulate", "--algorithm", "round_robin"]);
    assert_eq!(code, Some(0), "{stderr}");
    let workloads = stdout.lines().filter(|line| line.starts_with("  round_robin")).count();
    assert!(workloads > 5, "{stdout}");
    let all = format!("{} requests simulated", workloads * 5_000);
    assert!(stderr.contains(&all), "{stderr}");
}

#[test]
fn markdown_has_an_overview_only_of_several_workloads() {
    let args = ["simulate", "--format", "markdown", "--requests", "500", "--algorithm", "round_robin"];
    let run = |more: &[&str]| outcome(&[&args[..], more].concat()).1;
    let one = run(&["--workload", "even"]);
    assert!(one.starts_with("#### even\n\n5 backends"), "{one}");
    assert!(one.contains("\n| `round_robin` | "), "{one}");
    let two = run(&["--workload", "even", "--workload", "one_slow"]);
    assert!(
        two.starts_with("| p99 in ms, errors | `round_robin` |\n|---|--:|\n| [`even`](#even) | "),
        "{two}"
    );
    assert!(two.ends_with(" |\n") && two.contains("\n\n#### one_slow\n"), "{two}");
}

#[test]
fn a_wrong_command_line_says_what_would_be_right() {
    for (args, said) in [
        (&["--workload", "evn"][..], "a similar value exists: 'even'"),
        (&["--algorithm", "rr"], "round_robin, least_connections"),
        (&["--slots", "3"], "--rate <PER_SECOND>|--clients <COUNT>"),
        (&["--rate", "3", "--clients", "3"], "cannot be used with"),
        (&["--rate", "0"], "a number above 0"),
        (&["--rate", "nan"], "a number above 0"),
        (&["--rate", "3", "--service-shape", "0"], "from 0.1 to 100"),
        (&["--rate", "3", "--service-mean", "20"], "a time is written as 20ms or 1s"),
        (&["--rate", "3", "--workload", "even"], "cannot be used with"),
        (&["--rate", "3", "--weights", "1,2", "--backends", "2"], "cannot be used with"),
        (&["--requests", "0"], "--requests"),
    ] {
        let (code, stdout, stderr) = outcome(&[&["simulate"], args].concat());
        assert!(code == Some(2) && stdout.is_empty() && stderr.contains(said), "{args:?}: {stderr}");
    }
}

#[test]
fn figures_that_could_not_be_written_are_a_failure() {
    for format in ["table", "markdown", "json"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let args = ["simulate", "--workload", "even", "--requests", "100", "--format", format];
        let output = evenkeel(&args).stdin(Stdio::null()).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("can't write to standard output"), "{said}");
    }
}

#[test]
fn several_nodes_are_shown_beside_one_that_knows_everything() {
    let args = ["simulate", "--rate", "270", "--backends", "100", "--slots", "1", "--service-mean", "260ms"];
    let more = ["--service-shape", "0.46", "--nodes", "5", "--heavy", "0.4", "--requests", "20000"];
    let (code, text, _) = outcome(&[&args[..], &more, &["--format", "json"]].concat());
    assert_eq!(code, Some(0), "{text}");
    let runs: Value = serde_json::from_str(&text).unwrap();
    let mean = |name: &str| {
        let run = runs.as_array().unwrap().iter().find(|run| run["sharing"] == name).unwrap();
        run["mean"].as_f64().unwrap()
    };
    assert!(mean("one_node") < mean("owner_soft") && mean("owner_soft") * 1.5 < mean("apart"), "{text}");
    let (_, table, _) = outcome(&[&args[..], &more].concat());
    assert!(
        table.starts_with("5 nodes, 100 backends with 1 slots, 270 requests a second, 40 % of one node\n"),
        "{table}"
    );
    let (code, _, stderr) = outcome(&[
        "simulate",
        "--rate",
        "500",
        "--backends",
        "100",
        "--slots",
        "1",
        "--service-mean",
        "260ms",
        "--nodes",
        "5",
    ]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("it has to be above 0 and below 1"), "{stderr}");
}
