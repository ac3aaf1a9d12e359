//! Messages kept as files: lines of `key: value`, an empty line, then the bytes.
//!
//! In the bytes a line's end in the file means nothing; `\r`, `\n`, `\t`, `\0`, `\\` and `\xNN` are what they
//! look like, and `\{N:text}` is `text` N times. See the README beside the files.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

/// The keys of a request.
pub const REQUEST: &[&str] =
    &["rule", "what", "status", "cause", "backend", "sees", "hides", "body", "trailer", "answers"];
/// The keys of an answer.
pub const ANSWER: &[&str] = &["rule", "what", "method", "ending", "client", "reused"];

/// One file.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// The file's name, for messages.
    pub name: String,
    keys: Vec<(String, String)>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Fixture {
    /// The value of a key that may be missing.
    pub fn find(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> &str {
        self.find(key).unwrap_or_else(|| panic!("{} says nothing of `{key}`", self.name))
    }

    /// The values of a key, unescaped as the bytes are.
    pub fn texts(&self, key: &str) -> impl Iterator<Item = String> {
        self.all(key)
            .map(|value| String::from_utf8(unescape(value.as_bytes(), &self.name)).expect("keys hold text"))
    }

    /// The values of a key that may be there more than once.
    pub fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.keys.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The rules of docs/architecture.md that it is about.
    pub fn rules(&self) -> Vec<u8> {
        self.value("rule").split(',').map(|rule| rule.trim().parse().expect("the number of a rule")).collect()
    }
}

/// Every file in a folder of `fixtures/http`, by name. Fails when there is none, or a key nobody reads.
pub fn all(folder: &str, keys: &[&str]) -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/http").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&root)
        .expect("a folder of fixtures")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    assert!(paths.len() > 10, "saw {} fixtures in {folder}", paths.len());
    paths.iter().map(|path| read(path, keys)).collect()
}

/// Runs `judge` on each and fails once, with the name of every one that failed.
pub fn each(fixtures: &[Fixture], judge: impl Fn(&Fixture)) {
    let failed: Vec<&str> = fixtures
        .iter()
        .filter(|fixture| std::panic::catch_unwind(AssertUnwindSafe(|| judge(fixture))).is_err())
        .map(|fixture| fixture.name.as_str())
        .collect();
    assert!(failed.is_empty(), "{} of {} failed: {failed:#?}", failed.len(), fixtures.len());
}

fn read(path: &Path, known: &[&str]) -> Fixture {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).expect("readable");
    let (front, bytes) = text.split_once("\n\n").unwrap_or_else(|| panic!("{name} has no bytes"));
    let keys: Vec<(String, String)> = front
        .lines()
        .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("{name}: `{line}`")))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    for (key, _) in &keys {
        assert!(known.contains(&key.as_str()), "{name}: nobody reads `{key}`");
    }
    let raw: Vec<u8> = bytes.bytes().filter(|&byte| byte != b'\n').collect();
    Fixture { bytes: unescape(&raw, &name), name, keys }
}

fn unescape(mut raw: &[u8], name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((&byte, rest)) = raw.split_first() {
        raw = rest;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (&kind, rest) = raw.split_first().unwrap_or_else(|| panic!("{name} ends with a backslash"));
        raw = rest;
        match kind {
            b'r' => out.push(b'\r'),
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'0' => out.push(0),
            b'\\' => out.push(b'\\'),
            b'x' => {
                let (digits, rest) = raw.split_at(2);
                let digits = String::from_utf8_lossy(digits);
                out.push(u8::from_str_radix(&digits, 16).expect("two hex digits behind \\x"));
                raw = rest;
            }
            b'{' => {
                let end = raw.iter().position(|&byte| byte == b'}').expect("a } behind \\{");
                let inner = String::from_utf8_lossy(&raw[..end]);
                let (count, text) = inner.split_once(':').expect("a : inside \\{}");
                let text = unescape(text.as_bytes(), name);
                (0..count.parse::<usize>().expect("a number behind \\{"))
                    .for_each(|_| out.extend_from_slice(&text));
                raw = &raw[end + 1..];
            }
            other => panic!("{name}: `\\{}` means nothing", other as char),
        }
    }
    out
}
