//! What people type who know other programs, as what they mean here: a word such as `run` or `-t`, an option before its
//! command, a file without `--config`. What has no equal here is answered with the next step, in one line.
//!
//! Works on words alone, before they are parsed; called by `main`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Words for serving.
const SERVE: &[&str] = &["run", "start", "serve", "server", "up"];
/// Words for `check`.
const CHECK: &[&str] =
    &["validate", "test", "configtest", "verify", "lint", "check-config", "config", "-t", "-T"];
const RELOAD: &str = "`evenkeel reload` has the process that runs read its config again, and `evenkeel plan` says what that would change";
const SIGNALS: &str = "`evenkeel reload` reads the config again; signals are sent with `kill`: -TERM ends it, -USR1 reopens the access log";
const STOP: &str = "SIGTERM ends it cleanly: `kill PID`, or `systemctl stop evenkeel`";
const FOREGROUND: &str =
    "it stays in the foreground; a service manager keeps it in the background: `systemctl start evenkeel`";
/// Options for the file.
const FILE: &[&str] = &["-f", "--conf", "-conf", "-config", "--file", "--config-file", "--configfile"];
/// Options for `check`.
const CHECK_OPTIONS: &[&str] =
    &["--check", "--validate", "--test", "--configtest", "--config-test", "--check-config", "--dry-run"];
/// Options that other programs have, and what to do here.
const ELSEWHERE_OPTIONS: &[(&str, &str)] = &[
    ("-s", SIGNALS),
    ("--signal", SIGNALS),
    ("-sf", RELOAD),
    ("-st", RELOAD),
    ("--reload", RELOAD),
    ("--stop", STOP),
    ("-D", FOREGROUND),
    ("-d", FOREGROUND),
    ("-db", FOREGROUND),
    ("-g", FOREGROUND),
    ("--daemon", FOREGROUND),
    ("--daemonize", FOREGROUND),
    ("--detach", FOREGROUND),
    ("--background", FOREGROUND),
    ("--foreground", FOREGROUND),
    ("-p", "write `--port PORT`"),
    ("-l", "write `--port PORT`, and `--address ADDRESS` for more than this machine"),
    ("--listen", "write `--port PORT`, and `--address ADDRESS` for more than this machine"),
    ("--bind", "write `--port PORT`, and `--address ADDRESS` for more than this machine"),
    ("--host", "write `--address ADDRESS`, and `--port PORT`"),
    ("--debug", "write `--log-level debug`"),
    ("--verbose", "write `--log-level debug`"),
    ("-vv", "write `--log-level debug`"),
    ("--quiet", "write `--log-level error`"),
    ("-q", "write `--log-level error`"),
];
/// Commands that other programs have, and what to do here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("restart", "a service manager restarts it, for example `systemctl restart evenkeel`"),
    ("stop", STOP),
    ("quit", STOP),
    ("shutdown", STOP),
    ("show", "`evenkeel status` shows every listener, target and backend of the process that runs"),
    ("info", "`evenkeel status` shows every listener, target and backend of the process that runs"),
    ("stats", "`evenkeel status` shows every listener, target and backend of the process that runs"),
    ("logs", "events go to standard error, `access_log` to a file: `journalctl -u evenkeel`"),
    ("init", "`evenkeel demo` shows it at work; the smallest file is in `evenkeel check --help`"),
    ("example", "`evenkeel demo` shows it at work; the smallest file is in `evenkeel check --help`"),
];

/// What to say to somebody who typed nothing that can be done.
const NOTHING: &str = "evenkeel is a load balancer for HTTP and TCP, and needs a file or backends:\n  \
     evenkeel demo                  try it now, with backends inside this process\n  \
     evenkeel FILE                  serve what a config file says\n  \
     evenkeel --backends URL,URL    serve two servers without a file\n  \
     evenkeel --help                everything else";

/// Files that are taken when none is named.
pub(super) const USUAL: [&str; 2] = ["evenkeel.yaml", "evenkeel.yml"];

/// What was typed, as it is meant; or what to say instead. `exists` answers for files and folders.
pub(super) fn understood(
    typed: Vec<OsString>,
    commands: &[&str],
    exists: &dyn Fn(&Path) -> bool,
) -> Result<Vec<OsString>, String> {
    let mut words = typed;
    for word in words.iter_mut().skip(1) {
        let meant = match word.to_str() {
            Some("-v" | "-version") => "--version",
            Some("-help" | "-?" | "/?" | "/h") => "--help",
            _ => continue,
        };
        *word = meant.into();
    }
    attach_truth(&mut words);
    let is_foreign = |word: &OsString| ELSEWHERE_OPTIONS.iter().any(|(other, _)| word == other);
    let has_options = |(at, pair): (usize, &[OsString])| {
        let [before, word] = pair else { return false };
        let is_command = word.to_str().is_some_and(|word| word != "check" && commands.contains(&word));
        // What comes first is the command, also where a file has its name. A word behind a foreign option is meant as its value:
        // `-s reload`.
        is_command && (at == 0 || !exists(Path::new(word)) && !is_foreign(before))
    };
    if !words.windows(2).enumerate().any(has_options) {
        words = options(words)?;
    }
    let Some(at) = first_word(&words) else { return settled(words, exists) };
    let word = words[at].to_string_lossy().into_owned();
    if commands.contains(&word.as_str()) || word == "help" {
        let command = words.remove(at);
        words.insert(1, command);
        // It is what the command does anyway.
        words.retain(|word| word != "-t");
        return Ok(words);
    }
    if word == "version" {
        words[at] = "--version".into();
        return Ok(words);
    }
    if exists(Path::new(&word)) {
        return Ok(words);
    }
    if SERVE.contains(&word.as_str()) {
        words.remove(at);
        return settled(words, exists);
    }
    if CHECK.contains(&word.as_str()) {
        words.remove(at);
        words.insert(1, "check".into());
        return Ok(words);
    }
    if let Some((_, next)) = ELSEWHERE.iter().find(|(other, _)| *other == word) {
        return Err(format!("evenkeel has no command `{word}`; {next}"));
    }
    if word.contains(['.', '/']) || word == "-" {
        return Ok(words);
    }
    let near = commands
        .iter()
        .map(|command| (strsim::damerau_levenshtein(&word.to_lowercase(), command), *command))
        .filter(|(slips, command)| *slips <= (command.len() / 3).max(1))
        .min();
    Err(match near {
        Some((_, command)) => {
            format!("`{word}` is no command and no file; did you mean `evenkeel {command}`?")
        }
        None => format!("`{word}` is no command and no file; `evenkeel --help` lists the commands"),
    })
}

/// Options of other programs as ours: those for the file, and those for `check`, which become its word.
fn options(words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let mut meant = Vec::with_capacity(words.len() + 1);
    let mut rest = words.into_iter().peekable();
    meant.extend(rest.next());
    while let Some(word) = rest.next() {
        let Some(text) = word.to_str() else {
            meant.push(word);
            continue;
        };
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        if text == "--" {
            meant.push(word);
            meant.extend(rest);
            break;
        }
        if FILE.contains(&name) {
            meant.push("-c".into());
            meant.extend(value.map(OsString::from));
        } else if CHECK_OPTIONS.contains(&text)
            || (text == "-c" && rest.peek().is_some_and(|next| next == "-f"))
        {
            meant.push("-t".into());
        } else if text == "-tc" {
            meant.extend(["-t".into(), "-c".into()]);
        } else if let Some((_, next)) = ELSEWHERE_OPTIONS.iter().find(|(other, _)| *other == name) {
            return Err(format!("evenkeel has no option `{name}`; {next}"));
        } else {
            meant.push(word);
        }
    }
    Ok(meant)
}

/// Nothing at all is no command, unless there is a file of the usual name.
fn settled(words: Vec<OsString>, exists: &dyn Fn(&Path) -> bool) -> Result<Vec<OsString>, String> {
    if words.len() > 1 || USUAL.iter().any(|name| exists(Path::new(name))) {
        return Ok(words);
    }
    Err(NOTHING.to_owned())
}

/// The first word that is neither an option nor the value of one.
fn first_word(words: &[OsString]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        if text == "-t" || text == "-T" || !text.starts_with('-') || text == "-" {
            return Some(at);
        }
        if text == "--" {
            return None;
        }
        at += if has_value(&text, words.get(at + 1)) { 2 } else { 1 };
    }
    None
}

/// `--cache-enabled true` as one word: without a value it is one too, and what comes next may be a file.
fn attach_truth(words: &mut Vec<OsString>) {
    const TRUTHS: &[&str] = &["true", "false", "on", "off", "yes", "no", "1", "0"];
    let is_truth = |word: &OsString| word.to_str().is_some_and(|word| TRUTHS.contains(&word));
    let found = words.windows(2).position(|pair| pair[0] == "--cache-enabled" && is_truth(&pair[1]));
    if let Some(at) = found {
        let value = words.remove(at + 1);
        words[at].push("=");
        words[at].push(value);
    }
}

/// Whether the next word belongs to this option.
fn has_value(option: &str, next: Option<&OsString>) -> bool {
    let is_attached = option.contains('=') || (!option.starts_with("--") && option.len() > 2);
    let is_alone =
        ["--help", "-h", "--version", "-V", "--all", "--json", "--cache-enabled"].contains(&option);
    next.is_some() && !is_attached && !is_alone && next.map(OsString::as_os_str) != Some(OsStr::new("-t"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(typed: &str, files: &[&str]) -> Result<String, String> {
        let words = std::iter::once("evenkeel").chain(typed.split_whitespace()).map(OsString::from).collect();
        let exists = |path: &Path| files.iter().any(|file| Path::new(file) == path);
        let understood = understood(words, &["check", "demo", "simulate", "plan", "log"], &exists)?;
        Ok(understood[1..].iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn habits_become_what_they_mean() {
        for (typed, as_if) in [
            ("f.yaml", "f.yaml"),
            ("check f.yaml", "check f.yaml"),
            ("-c f.yaml check", "check -c f.yaml"),
            ("--config=f.yaml check --all", "check --config=f.yaml --all"),
            ("--workers 3 -c f.yaml check", "check --workers 3 -c f.yaml"),
            ("--json plan f.yaml", "plan --json f.yaml"),
            ("run f.yaml", "f.yaml"),
            ("start -c f.yaml", "-c f.yaml"),
            ("validate f.yaml", "check f.yaml"),
            ("-t -c f.yaml", "check -c f.yaml"),
            ("-c f.yaml -t", "check -c f.yaml"),
            ("--cache-enabled f.yaml", "--cache-enabled f.yaml"),
            ("--cache-enabled false f.yaml", "--cache-enabled=false f.yaml"),
            ("--cache-enabled on check f.yaml", "check --cache-enabled=on f.yaml"),
            ("-f f.yaml", "-c f.yaml"),
            ("--conf=f.yaml", "-c f.yaml"),
            ("--file f.yaml check", "check -c f.yaml"),
            ("-tc f.yaml", "check -c f.yaml"),
            ("-c -f f.yaml", "check -c f.yaml"),
            ("--check f.yaml", "check f.yaml"),
            ("--dry-run -c f.yaml", "check -c f.yaml"),
            ("check --dry-run f.yaml", "check f.yaml"),
            ("simulate --format json", "simulate --format json"),
            ("version", "--version"),
            ("-v", "--version"),
            ("help check", "help check"),
            ("-c - check", "check -c -"),
            ("-", "-"),
            ("no.yaml", "no.yaml"),
            ("--port 80 --backends http://a", "--port 80 --backends http://a"),
        ] {
            assert_eq!(meant(typed, &["f.yaml"]), Ok(as_if.to_owned()), "{typed}");
        }
        // A file that is called like a word is a file.
        assert_eq!(meant("run", &["run"]), Ok("run".to_owned()));
        assert_eq!(meant("", &["evenkeel.yaml"]), Ok(String::new()));
        assert_eq!(meant("start", &["evenkeel.yml"]), Ok(String::new()));
    }

    #[test]
    fn a_command_that_comes_first_keeps_its_options_beside_a_file_of_its_name() {
        for typed in ["log -f", "log -f --json", "plan -p 80", "plan"] {
            assert_eq!(meant(typed, &["log", "plan"]), Ok(typed.to_owned()), "{typed}");
        }
        // Behind an option it is the file, and `check` has habits of its own.
        assert_eq!(meant("-f log", &["log"]), Ok("-c log".to_owned()));
        assert_eq!(meant("-c log", &["log"]), Ok("-c log".to_owned()));
        assert_eq!(meant("check -f log", &["check", "log"]), Ok("check -c log".to_owned()));
    }

    #[test]
    fn what_has_no_equal_names_the_next_step() {
        for (typed, said) in [
            ("", "evenkeel demo"),
            ("start", "evenkeel demo"),
            ("-s reload", "`evenkeel reload`"),
            ("-f f.yaml -sf 17", "`evenkeel reload`"),
            ("-f f.yaml -D", "foreground"),
            ("-p 80 --backends http://a", "--port PORT"),
            ("f.yaml --debug", "--log-level debug"),
            ("f.yaml --listen=80", "--address ADDRESS"),
            ("info", "`evenkeel status`"),
            ("stop", "kill PID"),
            ("chekc f.yaml", "did you mean `evenkeel check`?"),
            ("Demo", "did you mean `evenkeel demo`?"),
            ("frobnicate", "`evenkeel --help`"),
        ] {
            let line = meant(typed, &["f.yaml"]).expect_err(typed);
            assert!(line.contains(said), "{typed}: {line}");
        }
    }
}
