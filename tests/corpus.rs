//! Every kept case of the fuzz targets, and every fixture, without a fuzzer.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::path::{Path, PathBuf};

use fuzz_cases::{Check, TARGETS, fixture};

/// The files of a target's corpus, sorted. Fails when there are none.
fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 10, "saw {} files in {}", paths.len(), folder.display());
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Runs one case; says which it was before the panic of the check itself is seen.
fn run(name: &str, check: Check, bytes: &[u8]) {
    let outcome = std::panic::catch_unwind(|| check(bytes));
    assert!(outcome.is_ok(), "{name}: {}", bytes.escape_ascii());
}

fn replay(target: &str) {
    let (_, check) = TARGETS.iter().find(|(name, _)| *name == target).expect("a target");
    for (path, bytes) in corpus(target) {
        run(&path.display().to_string(), *check, &bytes);
    }
}

#[test]
fn request_heads() {
    replay("request_head");
}

#[test]
fn response_heads() {
    replay("response_head");
}

#[test]
fn chunks() {
    replay("chunk");
}

#[test]
fn written_heads() {
    replay("head_writer");
}

#[test]
fn yaml_texts() {
    replay("yaml");
}

#[test]
fn connections_of_http_2() {
    replay("http2");
}

#[test]
fn words_of_agents() {
    replay("agent");
}

#[test]
fn paths_of_the_admin_api() {
    replay("admin_path");
}

#[test]
fn files_of_tokens() {
    replay("token_file");
}

#[test]
fn tokens_and_their_keys() {
    replay("jwt");
}

#[test]
fn frames_of_websockets() {
    replay("websocket");
}

#[test]
fn forms_of_paths() {
    replay("path_form");
}

#[test]
fn routes_and_requests() {
    replay("router");
}

#[test]
fn directives_for_caches() {
    replay("cache_directives");
}

#[test]
fn ranges_of_stored_objects() {
    replay("cache_range");
}

#[test]
fn keys_of_stored_objects() {
    replay("cache_key");
}

#[test]
fn blocks_of_header_lines() {
    replay("hpack");
}

#[test]
fn two_readers_of_one_message() {
    replay("differential");
}

#[test]
fn every_target_has_its_corpus_and_no_folder_is_left_over() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut folders: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    let mut targets: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    targets.sort_unstable();
    assert_eq!(folders, targets);
    for target in targets {
        let source = format!("{}/fuzz/fuzz_targets/{target}.rs", env!("CARGO_MANIFEST_DIR"));
        let source = std::fs::read_to_string(&source).unwrap();
        assert!(source.contains(&format!("fuzz_cases::{target}(")), "{source}");
    }
}

#[test]
fn every_request_of_the_fixtures() {
    for fixture in fixture::all("request", fixture::REQUEST) {
        run(&fixture.name, fuzz_cases::request_head, &fixture.bytes);
        run(&fixture.name, fuzz_cases::differential, &[b"0", &fixture.bytes[..]].concat());
        // Both kinds of headers about the client, trusted and not, with an upgrade and without.
        for choice in [0, 1, 2, 4, 5, 0x40, 0x45] {
            run(&fixture.name, fuzz_cases::head_writer, &[&[choice][..], &fixture.bytes].concat());
        }
    }
}

#[test]
fn every_answer_of_the_fixtures() {
    for fixture in fixture::all("answer", fixture::ANSWER) {
        let choice = if fixture.find("method") == Some("HEAD") { b"2" } else { b"1" };
        run(&fixture.name, fuzz_cases::response_head, &fixture.bytes);
        run(&fixture.name, fuzz_cases::differential, &[choice, &fixture.bytes[..]].concat());
        for choice in [0x20, 0x21, 0x60, 0x61] {
            run(&fixture.name, fuzz_cases::head_writer, &[&[choice][..], &fixture.bytes].concat());
        }
    }
}

#[test]
fn every_body_of_the_fixtures() {
    let messages =
        [fixture::all("request", fixture::REQUEST), fixture::all("answer", fixture::ANSWER)].concat();
    let mut seen = 0;
    for fixture in messages {
        let end = fixture.bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(end) = end.filter(|end| end + 4 < fixture.bytes.len()) else { continue };
        seen += 1;
        run(&fixture.name, fuzz_cases::chunk, &[b"7", &fixture.bytes[end + 4..]].concat());
    }
    assert!(seen > 20, "saw {seen} bodies");
}

#[test]
fn every_config_of_the_fixtures() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/config");
    let mut seen = 0;
    for folder in ["valid", "invalid"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                seen += 1;
                run(&path.display().to_string(), fuzz_cases::yaml, &std::fs::read(&path).unwrap());
            }
        }
    }
    assert!(seen > 20, "saw {seen} configs");
}
