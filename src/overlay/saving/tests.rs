//! Entries are written into files of every style, or it is said what to write where.

mod property;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::config::model::BackendState;
use crate::config::{Flags, Instead, Loaded, Rewritten, SourceText, Unwritten, load_with, rewrite, sources};
use crate::overlay::{Author, Wish, WishList, change, lay, reconcile};

const NOW: u64 = 1_800_000_000_000;

fn env(name: &str) -> Option<String> {
    let known = [("LISTENER", "127.0.0.1:0"), ("HOST", "10.0.0.7"), ("WEIGHT", "3")];
    known.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
}

fn loaded(path: &Path, texts: &Instead) -> Arc<Loaded> {
    let loaded = load_with(path, texts, &Flags::default(), &env);
    Arc::new(loaded.unwrap_or_else(|error| panic!("{}: {error}\n{texts:#?}", path.display())))
}

/// A line such as `weight web/b1 3` or `add web http://a:1 weight=2`.
fn wish(line: &str) -> Wish {
    let words: Vec<&str> = line.split(' ').collect();
    let object = || match words[1].split_once('/') {
        Some((target, backend)) => ObjectName::backend(target, backend),
        None => ObjectName::target(words[1]),
    };
    let state = || BackendState::ALL.iter().find(|(name, _)| *name == words[2]).expect(line).1;
    match words[0] {
        "weight" => Wish::Set(object(), EntryChange::Weight(words[2].parse().expect(line))),
        "state" => Wish::Set(object(), EntryChange::State(state())),
        "max_in_flight" => Wish::Set(object(), EntryChange::MaxInFlight(words[2].parse().ok())),
        "remove" => Wish::Remove(object()),
        "add" => {
            let keys: HashMap<&str, &str> =
                words[3..].iter().filter_map(|word| word.split_once('=')).collect();
            let text = |key: &str| keys.get(key).map(|value| (*value).to_owned());
            let number = |key: &str| keys.get(key).and_then(|value| value.parse().ok());
            let backend = AddedBackend {
                url: words[2].to_owned(),
                weight: number("weight"),
                priority: number("priority"),
                backup: keys.get("backup").map(|value| *value == "true"),
                zone: text("zone"),
                health_path: text("health_path"),
            };
            Wish::Add { target: words[1].to_owned(), name: text("name"), backend }
        }
        other => panic!("{other}"),
    }
}

/// The entries of one wish after the other; one that is declined is none.
fn entries(file: &Arc<Loaded>, wishes: Vec<Wish>, is_strict: bool) -> Vec<OverlayEntry> {
    let mut entries = Vec::new();
    for (number, wish) in wishes.into_iter().enumerate() {
        let ask = WishList { wishes: vec![wish], author: Author::Uid(0), at_ms: NOW, expires_ms: None };
        let aside = lay(file, &entries).aside;
        match change(file, &entries, &[], &aside, number as u64 + 1, &ask) {
            Ok(changed) => entries = changed.entries,
            Err(declined) => assert!(!is_strict, "{ask:?}: {declined}"),
        }
    }
    entries
}

/// What a text is when these lines have gone and come.
fn patched(text: &str, rewritten: &Rewritten) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let gone = rewritten.lines.iter().rev().filter(|line| line.sign == '-');
    for line in gone {
        assert_eq!(
            lines
                .remove(line.line - 1)
                .trim_end_matches(['\r', '\n', '\u{feff}'])
                .trim_start_matches('\u{feff}'),
            line.text
        );
    }
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    for line in rewritten.lines.iter().filter(|line| line.sign == '+') {
        lines.insert(line.line - 1, format!("{}{end}", line.text));
    }
    // The last line ends as the last line did.
    let count = lines.len();
    for line in &mut lines[..count - 1] {
        if !line.ends_with('\n') {
            line.push_str(end);
        }
    }
    let all = lines.concat();
    if text.ends_with('\n') { all } else { all.strip_suffix(end).unwrap_or(&all).to_owned() }
}

/// What becomes of the files when all entries are saved.
fn save(
    path: &Path,
    texts: &Instead,
    file: &Arc<Loaded>,
    entries: &[OverlayEntry],
) -> Result<Vec<(SourceText, Rewritten)>, Vec<Unwritten>> {
    let laid = lay(file, entries);
    let Saving { wanted, saved, left } = saving(&laid, entries);
    assert_eq!(saved.len() + left.len(), entries.len());
    let sources: Vec<SourceText> = if texts.is_empty() {
        sources(&file.sources).expect("they are as they were")
    } else {
        let source = |(path, text): (&PathBuf, &Arc<str>)| SourceText {
            name: path.display().to_string().into(),
            path: path.clone(),
            text: Arc::clone(text),
        };
        texts.iter().map(source).collect()
    };
    let rewritten = rewrite(&file.effective, &sources, &wanted)?;
    let mut texts: Instead =
        sources.iter().map(|source| (source.path.clone(), Arc::clone(&source.text))).collect();
    for one in &rewritten {
        let source = &sources[one.source];
        assert_eq!(patched(&source.text, one), one.text, "only the lines that are told differ");
        texts.insert(source.path.clone(), one.text.as_str().into());
    }
    let again = loaded(path, &texts);
    let left: Vec<OverlayEntry> = left.into_iter().map(|(entry, _)| entry).collect();
    let after = reconcile(&left, &again, NOW);
    assert_eq!(after.entries.len(), left.len(), "what is left goes on: {:?}", after.ended);
    let after = lay(&again, &after.entries);
    assert!(
        is_same(&after.loaded.config, &laid.loaded.config),
        "{:#?}\n{:#?}\n{texts:#?}",
        after.loaded.config.targets,
        laid.loaded.config.targets
    );
    Ok(rewritten.into_iter().map(|one| (sources[one.source].clone(), one)).collect())
}

/// Whether the expected files are to be written anew, to be looked at by somebody.
fn is_written() -> bool {
    std::env::var_os("EVENKEEL_BLESS").is_some()
}

fn held_to(path: &Path, text: &str) {
    if is_written() {
        std::fs::write(path, text).expect("it can be written");
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(text, expected, "{}", path.display());
}

#[test]
fn files_of_every_style_say_it_afterwards_or_it_is_said_what_to_write() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/save");
    let (mut saved, mut refused) = (0, 0);
    for path in std::fs::read_dir(&folder).expect("there").map(|entry| entry.expect("there").path()) {
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let changes = std::fs::read_to_string(path.with_extension("changes")).expect("there");
        let file = loaded(&path, &Instead::new());
        let entries = entries(&file, changes.lines().map(wish).collect(), true);
        assert_eq!(entries.is_empty(), changes.is_empty());
        match save(&path, &Instead::new(), &file, &entries) {
            Ok(all) => {
                assert!(!all.is_empty(), "{}", path.display());
                for (source, rewritten) in all {
                    held_to(&source.path.with_extension("expected"), &rewritten.text);
                }
                saved += 1;
            }
            Err(unwritten) => {
                let told: String = unwritten.iter().map(|one| format!("{one}\n")).collect();
                let told = told.replace(&format!("{}/", folder.display()), "");
                held_to(&path.with_extension("refused"), &told);
                refused += 1;
            }
        }
    }
    assert!(saved >= 10 && refused >= 5, "{saved} {refused}");
}
