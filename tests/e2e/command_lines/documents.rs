//! The command lines that the documents and `--help` have.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex};

/// The page whose commands `packaging/trial` executes, on a machine of its own.
pub const OF_THE_TRIAL: &str = "docs/install.md";

/// Each command line once, as [`key`] has it, with its text and the places where it stands.
pub type Lines = BTreeMap<String, (String, Vec<String>)>;

/// What is the same however it is broken into lines: without what a comment says at its end.
pub fn key(text: &str) -> String {
    let line = text.replace("\\\n", " ");
    let line =
        if line.contains('\n') || line.starts_with("#!") { &line } else { line.split(" # ").next().unwrap() };
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All of them.
pub fn all() -> &'static Lines {
    static ALL: LazyLock<Lines> = LazyLock::new(find);
    &ALL
}

fn find() -> Lines {
    let mut lines = Lines::new();
    let mut add = |text: &str, place: String| {
        let (_, places) = lines.entry(key(text)).or_insert_with(|| (text.to_owned(), Vec::new()));
        places.push(place);
    };
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for statement in blocks(&text).into_iter().flat_map(|(kind, block)| statements(&kind, &block)) {
            add(&statement, page.display().to_string());
        }
    }
    for command in commands() {
        let help = help(command);
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        for example in examples.take_while(|line| !line.is_empty()) {
            // An instruction of a Dockerfile is no command line.
            assert!(example.len() < 98, "it is broken into two lines: {example}");
            if !example.trim().starts_with("HEALTHCHECK") {
                add(example.trim(), format!("evenkeel {} --help", command.join(" ")));
            }
        }
    }
    lines
}

pub fn pages() -> Vec<PathBuf> {
    let mut pages = vec!["README.md".into(), "CONTRIBUTING.md".into(), "SECURITY.md".into()];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|end| end.to_str()) {
                None if path.is_dir() => folders.push(path),
                Some("md") if path != Path::new(OF_THE_TRIAL) => pages.push(path),
                _ => {}
            }
        }
    }
    pages.sort();
    pages
}

/// The fenced blocks for a shell, with what they are, without the indent of a list.
pub fn blocks(page: &str) -> Vec<(String, String)> {
    let (mut blocks, mut open) = (Vec::new(), None::<(String, String)>);
    for line in page.lines() {
        let inner = line.trim_start();
        match (&mut open, inner.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((kind.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    let is_session = |block: &str| block.starts_with("$ ");
    blocks.retain(|(kind, block)| match kind.as_str() {
        "sh" | "bash" | "shell" | "console" => true,
        _ => is_session(block),
    });
    blocks
}

/// A block in pieces that a shell takes as a whole. A script is one piece. Of a session at a terminal those lines that somebody types.
pub fn statements(kind: &str, block: &str) -> Vec<String> {
    if block.starts_with("#!") {
        return vec![block.to_owned()];
    }
    let typed: Vec<&str> = match kind {
        "console" | "text" => block.lines().filter_map(|line| line.strip_prefix("$ ")).collect(),
        _ => block.lines().collect(),
    };
    let (mut statements, mut whole) = (Vec::new(), String::new());
    for line in typed {
        whole.push_str(line);
        if !line.ends_with('\\') && is_complete(&whole) {
            if !whole.trim().is_empty() {
                statements.push(whole.trim().to_owned());
            }
            whole.clear();
        } else {
            whole.push('\n');
        }
    }
    assert!(whole.trim().is_empty(), "no shell takes this: {whole}");
    statements
}

/// Whether a shell wants no more lines. Most lines stand alone, and need no shell to say so.
fn is_complete(text: &str) -> bool {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || " -_./:=,~".contains(sign);
    let begins_more = ["for ", "if ", "while ", "until ", "case "].iter().any(|word| text.starts_with(word));
    if !begins_more && text.chars().all(is_plain) {
        return true;
    }
    let mut shell =
        Command::new("bash").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let looked = shell.wait_with_output().unwrap();
    looked.status.success() && looked.stderr.is_empty()
}

/// What stands in the prose and in comments of this page as a command of evenkeel: `evenkeel why ID`.
pub fn inline(page: &str) -> Vec<String> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if !is_fenced {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found.retain(|code| code.starts_with("evenkeel ") || code.starts_with("sudo evenkeel "));
    found
}

/// Why no command line of evenkeel looks so: there is no such command, or it has no such flag.
pub fn misfit(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "evenkeel").skip(1).peekable();
    let known = commands();
    let mut command: Vec<String> = Vec::new();
    while let Some(word) =
        words.peek().filter(|word| word.starts_with(|sign: char| sign.is_ascii_lowercase()))
    {
        let longer: Vec<String> = command.iter().cloned().chain([(*word).to_owned()]).collect();
        if !known.contains(&longer) {
            break;
        }
        command = longer;
        words.next();
    }
    let is_file = |word: &str| word.contains(['.', '/']) || word.to_uppercase() == word;
    if command.is_empty() && words.peek().is_some_and(|word| !word.starts_with('-') && !is_file(word)) {
        return Some(format!("there is no command `{}`", words.peek().unwrap()));
    }
    let text = help(&command);
    // What stands behind another program's name, or a pipe, is that one's.
    let own = words.take_while(|word| !matches!(*word, "|" | ";" | "&&"));
    let flags = own.filter(|word| word.starts_with('-') && *word != "-");
    let name =
        |flag: &str| flag.trim_end_matches([',', '…', ')', ';']).split(['=', '[']).next().unwrap().to_owned();
    flags.map(name).find(|flag| !has_flag(&text, flag)).map(|flag| format!("it has no flag `{flag}`"))
}

fn has_flag(help: &str, flag: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|sign: char| sign.is_ascii_alphanumeric() || sign == '-');
    help.match_indices(flag).any(|(at, _)| ends(&help[at + flag.len()..]))
}

fn help(command: &[String]) -> String {
    static ASKED: Mutex<BTreeMap<Vec<String>, String>> = Mutex::new(BTreeMap::new());
    let mut asked = ASKED.lock().unwrap();
    if let Some(text) = asked.get(command) {
        return text.clone();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(command).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    asked.insert(command.to_vec(), text.clone());
    text
}

/// The commands and their commands; the program itself is the one without a word.
fn commands() -> &'static Vec<Vec<String>> {
    static ALL: LazyLock<Vec<Vec<String>>> = LazyLock::new(find_commands);
    &ALL
}

fn find_commands() -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = vec![Vec::new()];
    let mut at = 0;
    while at < found.len() {
        let text = help(&found[at]);
        let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1);
        let named = listed.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
        for name in named.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next()) {
            if name != "help" {
                found.push(found[at].iter().cloned().chain([name.to_owned()]).collect());
            }
        }
        at += 1;
    }
    found
}
