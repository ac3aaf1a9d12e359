//! Config files as data: those in `fixtures/config/valid` load, those in `fixtures/config/invalid` give exactly
//! the text that lies beside them (`EVENKEEL_BLESS=1` writes it anew), and the documentation knows every key.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use evenkeel::config::{self, Flags, Origin};

/// Fixtures see this environment and no other.
fn env(name: &str) -> Option<String> {
    (name == "EVENKEEL_FIXTURE_WORD").then(|| "everywhere".to_owned())
}

/// The YAML files of a folder in the order of their names; relative, so that messages are the same everywhere.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of fixtures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no fixtures in {folder}");
    files
}

fn load(path: &Path) -> Result<config::Loaded, config::Problems> {
    config::load(Some(path), &Flags::default(), &env)
}

#[test]
fn valid_files_load() {
    for path in files("fixtures/config/valid") {
        if let Err(problems) = load(&path) {
            panic!("{problems}");
        }
    }
}

#[test]
fn invalid_files_give_the_text_beside_them() {
    let bless = std::env::var_os("EVENKEEL_BLESS").is_some();
    let files = files("fixtures/config/invalid");
    assert!(files.len() >= 90, "only {} wrong configs", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let text = match load(&path) {
            Ok(_) => panic!("{} loads", path.display()),
            Err(problems) => format!("{problems}\n"),
        };
        let expected = path.with_extension("txt");
        if bless {
            fs::write(&expected, &text).expect("writing the expected text");
        }
        if fs::read_to_string(&expected).ok().as_deref() != Some(text.as_str()) {
            wrong.push(format!("{} is not what was printed:\n{text}", expected.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How often there is which problem. An edit moves lines, so their numbers are left out.
fn counted(problems: &config::Problems) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for problem in problems.list() {
        *counts.entry(key(problem)).or_insert(0) += 1;
    }
    counts
}

fn key(problem: &config::Problem) -> String {
    let parts = problem.message.split("line ");
    parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit())).collect()
}

#[test]
fn a_hint_that_is_followed_to_the_letter_leads_to_no_other_problem() {
    let (mut hints, mut cured) = (0, 0);
    for path in files("fixtures/config/invalid") {
        let Err(problems) = load(&path) else { panic!("{} loads", path.display()) };
        let before = counted(&problems);
        // What stands in another file is for the text of that one.
        let is_here = |problem: &&config::Problem| problem.file.as_deref() == path.to_str();
        for problem in problems.list().iter().filter(is_here).filter(|problem| problem.hint.is_some()) {
            let text = fs::read_to_string(&path).expect("a hint is about a text");
            let mended =
                problem.mended(&text).unwrap_or_else(|| panic!("nobody can follow this:\n{problem}"));
            hints += 1;
            let name = path.display().to_string();
            let folder = path.parent().expect("a folder");
            let Err(left) = config::load_text(&mended, &name, folder, &Flags::default(), &env) else {
                cured += 1;
                continue;
            };
            let after = counted(&left);
            let same = |counts: &HashMap<String, usize>| counts.get(&key(problem)).copied().unwrap_or(0);
            assert!(same(&after) < same(&before), "it is still there:\n{problem}\n\n{mended}\n{left}");
            // What stands behind a fault of the syntax nobody has read before.
            let is_first_of_more = problems.list().len() == 1;
            for (message, count) in &after {
                let old = before.get(message).copied().unwrap_or(0);
                assert!(
                    is_first_of_more || *count <= old,
                    "{message} is new:\n{problem}\n\n{mended}\n{left}"
                );
            }
            assert!(
                !is_first_of_more,
                "the only problem is gone, and the file still does not load:\n{problem}\n\n{mended}\n{left}"
            );
        }
    }
    assert!(hints > 150 && cured > 50, "{hints} hints, {cured} of them cure a file");
}

#[test]
fn twelve_faults_give_twelve_problems_in_order() {
    let problems = load(Path::new("fixtures/config/invalid/twelve_faults.yaml")).expect_err("it is faulty");
    let places: Vec<_> = problems.list().iter().map(|problem| problem.place.expect("a place")).collect();
    assert_eq!(places.len(), 12, "{problems}");
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn the_published_gruglb_example_loads_unchanged() {
    let loaded = load(Path::new("fixtures/gruglb/example-config.yaml")).expect("it loads");
    let names: Vec<_> = loaded.config.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["tcpServersA", "webServersA"]);
    let web = &loaded.config.targets[1];
    assert_eq!(web.backends[1].probe_path.as_deref(), Some("/health"));
    assert_eq!(web.health.as_ref().map(|health| health.interval.as_secs()), Some(2));
}

/// The rows of the tables of keys in `docs/configuration.md`: key, default.
fn documented() -> Vec<(String, String)> {
    let text = fs::read_to_string("docs/configuration.md").expect("docs/configuration.md");
    text.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let key = cells.next()?.trim_end_matches('`').to_owned();
            Some((key, cells.next()?.to_owned()))
        })
        .collect()
}

#[test]
fn the_documentation_has_every_key_and_no_other() {
    let keys = config::keys();
    assert!(keys.len() > 40, "only {} keys", keys.len());
    let documented: Vec<String> = documented().into_iter().map(|(key, _)| key).collect();
    for key in &keys {
        assert_eq!(
            documented.iter().filter(|row| *row == key).count(),
            1,
            "`{key}` in docs/configuration.md"
        );
    }
    for key in &documented {
        assert!(keys.contains(key), "docs/configuration.md has `{key}`, which does not exist");
    }
}

#[test]
fn documented_defaults_are_the_defaults() {
    // With a path to ask for, so that everything about asking is in force.
    let text = "targets: {x: {protocol: http, listener: 1, backends: [{host: a, port: 1, health_path: /h}]}}";
    let loaded = config::load_text(text, "text", Path::new("."), &Flags::default(), &env).expect("it loads");
    let rows = documented();
    let mut compared = 0;
    for row in loaded.effective.iter().filter(|row| row.origin == Origin::Default) {
        let key = row.path.replace("targets.x.", "targets.<name>.").replace("[0]", "[]");
        let Some((_, default)) = rows.iter().find(|(documented, _)| *documented == key) else { continue };
        // A default in words (one per core) is not in backquotes.
        let Some(default) = default.strip_prefix('`') else { continue };
        assert_eq!(default.trim_end_matches('`'), row.value, "the default of `{key}`");
        compared += 1;
    }
    assert!(compared > 20, "only {compared} defaults were compared");
}

#[test]
fn documented_defaults_are_those_that_editors_show() {
    let rows = documented();
    for (key, default) in config::defaults() {
        let (_, documented) = rows.iter().find(|(row, _)| *row == key).expect("every key has a row");
        match default {
            Some(default) => assert_eq!(*documented, format!("`{default}`"), "the default of `{key}`"),
            // A default in words, or none.
            None => assert!(!documented.starts_with('`'), "`{key}` has the default {documented}"),
        }
    }
}

#[test]
fn the_example_loads_and_shows_every_key() {
    let path = Path::new("example-config.yaml");
    if let Err(problems) = load(path) {
        panic!("{problems}");
    }
    let text = fs::read_to_string(path).expect("example-config.yaml");
    for key in config::keys() {
        let word = key.rsplit('.').next().expect("a last part");
        let shown = text.lines().any(|line| {
            let line = line.trim_start_matches([' ', '#', '-', '{']);
            line.starts_with(&format!("{word}:")) || line.contains(&format!(" {word}:"))
        });
        assert!(shown, "example-config.yaml does not show `{key}`");
    }
}
