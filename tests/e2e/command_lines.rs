//! Every command line of README, CONTRIBUTING, SECURITY, `docs/` and `--help` does what the text says.
//!
//! `fixtures/commands/executed` says in which surroundings each of them is executed and what comes of it, `fixtures/commands/not-executed` why
//! nobody executes some. What stands in neither, and what stands there and in no document, is a failure.

mod documents;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use documents::key;
use world::World;

/// One row of `fixtures/commands/executed`.
#[derive(Debug, Default)]
struct Row {
    /// Where it stands there.
    line: usize,
    /// What is executed: as a document has it, or, for what only prepares, as the row has it.
    command: String,
    /// It is not a document's.
    prepares: bool,
    /// How it has to end.
    code: i32,
    /// What it has to say.
    wanted: Vec<String>,
    /// What it must not say.
    unwanted: Vec<String>,
    /// It is run again until it says that.
    again: bool,
    /// It goes on beside those behind it.
    stays: bool,
    /// It is run at a terminal, where this is typed.
    typed: Option<String>,
}

/// The surroundings in their order, each with its rows.
fn rows() -> Vec<(String, Vec<Row>)> {
    let text = std::fs::read_to_string("fixtures/commands/executed").unwrap();
    let mut worlds: Vec<(String, Vec<Row>)> = Vec::new();
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    for (text, line) in lines {
        let (sign, rest) =
            text.split_at_checked(2).unwrap_or_else(|| panic!("line {line}: what is this? {text}"));
        let rest = rest.to_owned();
        if sign == "==" {
            worlds.push((rest.trim().to_owned(), Vec::new()));
            continue;
        }
        let rows = &mut worlds.last_mut().unwrap().1;
        let last = rows.last_mut();
        match sign {
            "$ " => rows.push(Row { command: rest, line, ..Row::default() }),
            "! " => rows.push(Row { command: rest, line, prepares: true, ..Row::default() }),
            "= " => last.unwrap().code = rest.parse().unwrap(),
            "- " => last.unwrap().unwanted.push(rest),
            "| " => last.unwrap().wanted.push(rest),
            "? " => {
                let last = last.unwrap();
                last.again = true;
                last.wanted.push(rest);
            }
            "& " => {
                let last = last.unwrap();
                last.stays = true;
                last.wanted.push(rest);
            }
            "@ " => last.unwrap().typed = Some(rest),
            _ => panic!("line {line}: what is this? {text}"),
        }
    }
    worlds
}

/// The lines that nobody executes.
fn not_executed() -> BTreeSet<String> {
    let text = std::fs::read_to_string("fixtures/commands/not-executed").unwrap();
    let lines: Vec<String> = text.lines().filter_map(|line| line.strip_prefix("$ ")).map(key).collect();
    assert!(lines.len() <= 15, "{} are too many", lines.len());
    lines.into_iter().collect()
}

#[test]
fn every_command_line_is_executed_or_has_a_reason() {
    let (lines, left_out) = (documents::all(), not_executed());
    let worlds = rows();
    let executed: BTreeMap<String, &str> = worlds
        .iter()
        .flat_map(|(world, rows)| rows.iter().map(move |row| (row, world.as_str())))
        .filter(|(row, _)| !row.prepares)
        .map(|(row, world)| (key(&row.command), world))
        .collect();
    let missing: Vec<_> = lines
        .iter()
        .filter(|(line, _)| !executed.contains_key(*line) && !left_out.contains(*line))
        .map(|(line, (_, places))| format!("{line}   ({})", places.join(", ")))
        .collect();
    assert!(missing.is_empty(), "nobody executes these:\n{}", missing.join("\n"));
    let strange: Vec<_> = executed.keys().filter(|line| !lines.contains_key(*line)).collect();
    assert!(strange.is_empty(), "no document has these: {strange:#?}");
    let both: Vec<_> = executed.keys().filter(|line| left_out.contains(*line)).collect();
    assert!(both.is_empty(), "executed, and yet said not to be: {both:#?}");
    // The page of the trial has the rest of those that nobody executes.
    let page = std::fs::read_to_string(documents::OF_THE_TRIAL).unwrap();
    let blocks = documents::blocks(&page);
    let of_the_trial: BTreeSet<String> = blocks
        .iter()
        .flat_map(|(kind, block)| documents::statements(kind, block))
        .map(|statement| key(&statement))
        .collect();
    let gone: Vec<_> =
        left_out.iter().filter(|line| !lines.contains_key(*line) && !of_the_trial.contains(*line)).collect();
    assert!(gone.is_empty(), "not executed, and in no document: {gone:#?}");
    let steps = std::fs::read_to_string("packaging/trial/steps/8-page.sh").unwrap();
    assert!(steps.contains(documents::OF_THE_TRIAL), "nobody executes {}", documents::OF_THE_TRIAL);
    assert!(of_the_trial.len() > 40 && lines.len() > 130, "{} {}", of_the_trial.len(), lines.len());
}

/// Executes the rows of `name` in their order.
fn execute(name: &str) {
    let lines = documents::all();
    let worlds = rows();
    let (_, rows) = worlds.iter().find(|(world, _)| world == name).unwrap_or_else(|| panic!("no {name}"));
    let mut world = World::new(name);
    for row in rows {
        // The document's own text is what is executed.
        let text = match lines.get(&key(&row.command)) {
            Some((text, _)) if !row.prepares => text,
            _ => &row.command,
        };
        world.run(text, row);
    }
}

/// That world is not ours: `scripts/test` executes what stands there, or is it.
#[test]
fn what_scripts_test_executes_stands_in_it() {
    let script = std::fs::read_to_string("scripts/test").unwrap();
    let ci = std::fs::read_to_string(".ci/run").unwrap();
    let worlds = rows();
    let (_, rows) = worlds.iter().find(|(world, _)| world == "scripts/test").unwrap();
    for Row { command, .. } in rows {
        let is_there = script.lines().any(|line| line == command || line.starts_with(&format!("{command} ")));
        assert!(is_there || ci.contains(command.as_str()), "{command}");
    }
}

#[test]
fn what_stands_in_the_prose_as_a_command_of_evenkeel_is_one() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in documents::pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for line in documents::inline(&text) {
            count += 1;
            wrong.extend(documents::misfit(&line).map(|why| format!("{}: `{line}`: {why}", page.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "{count}");
}

macro_rules! worlds {
    ($($test:ident: $world:literal $(if $is_there:path)?;)*) => {
        const WORLDS: &[&str] = &[$($world),*];
        $(
            #[test]
            fn $test() {
                $(if !$is_there() {
                    return;
                })?
                execute($world);
            }
        )*
    };
}

worlds! {
    at_the_first_steps: "first steps";
    in_front_of_the_backends_of_the_readme: "readme";
    of_one_that_runs: "running";
    of_one_with_a_socket_elsewhere: "another socket";
    without_a_process: "alone";
    of_an_upgrade: "upgrade";
    in_a_cluster: "cluster" if super::support::etcd::is_there;
    of_nodes: "nodes" if super::support::etcd::is_there;
}

#[test]
fn every_world_has_a_test() {
    let named: BTreeSet<String> = rows().into_iter().map(|(name, _)| name).collect();
    let tested = WORLDS.iter().copied().chain(["scripts/test"]).map(str::to_owned).collect();
    assert_eq!(named, tested);
}
