//! Files of users: a name, a colon and a hash in each line, as `htpasswd` writes them. Nothing of what is in them is ever repeated.

use std::collections::HashMap;
use std::path::PathBuf;

use argon2::password_hash::phc;

use crate::config::effective::number_of;
use crate::config::files::whole;
use crate::config::model::{PasswordHash, User};
use crate::config::origin::{Place, SourceFile, Written};
use crate::config::report::Report;
use crate::config::token_file;

/// A file larger than this, in MiB, is another file.
const FILE_MAX: u64 = 16;
/// Problems that are told of one file.
const TOLD: usize = 20;
/// Longest name, in bytes.
const NAME_MAX: usize = 255;
/// Highest cost of bcrypt: beyond it one login takes seconds.
const COST_MAX: u32 = 15;
/// Most memory of argon2, in KiB.
const MEMORY_MAX: u32 = 256 * 1024;
/// Most rounds and lanes of it.
const ROUNDS_MAX: u32 = 16;

const EXPECTED: &str = "a file as `htpasswd -B` writes it";
const LINE: &str = "`name:hash`, as `htpasswd -B` writes it";
const CURE: &str =
    "a hash of bcrypt or argon2id: `htpasswd -B FILE NAME` asks for the password and writes one";

/// The users in a file, by name, and a number for its content; `None`: there are faults, which have been reported.
pub(super) fn read(file: &Written<PathBuf>, report: &mut Report) -> Option<(Vec<User>, u64)> {
    let text = match whole::text(&file.value, FILE_MAX, EXPECTED) {
        Ok(text) => text,
        Err(wrong) => {
            report.wrong(&file.spot, "`users_file`", wrong);
            return None;
        }
    };
    let (users, wrong) = parse(&text);
    if wrong.is_empty() {
        return Some((users, number_of([text.as_bytes()])));
    }
    // Which lines it has may be shown, and nothing of what is in them.
    let number = report.add(SourceFile::new(&file.value, &token_file::masked(&text)));
    if let Some(place) = file.spot.place {
        report.bring(number, place);
    }
    let more = wrong.len().saturating_sub(TOLD);
    for (count, one) in wrong.into_iter().take(TOLD).enumerate() {
        let place = Place { file: number, ..Place::new(one.line, 1, one.width) };
        let problem = report.at(place, one.message);
        problem.expected(one.expected);
        if more > 0 && count + 1 == TOLD {
            problem.note(format!("{more} more lines of this file are wrong"));
        }
    }
    None
}

/// What is wrong with a line.
#[derive(Debug)]
struct WrongUser {
    line: u32,
    width: u32,
    message: String,
    expected: &'static str,
}

/// The users in a text, by name, and what is wrong with it.
fn parse(text: &str) -> (Vec<User>, Vec<WrongUser>) {
    let (mut users, mut wrong): (Vec<User>, Vec<WrongUser>) = Default::default();
    let mut names: HashMap<&str, u32> = HashMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = if number == 1 { line.trim_start_matches('\u{feff}') } else { line };
        let written = line.trim_end();
        if written.trim_start().is_empty() || written.starts_with('#') {
            continue;
        }
        let width = u32::try_from(written.chars().count()).unwrap_or(u32::MAX);
        let mut refuse =
            |message: String, expected| wrong.push(WrongUser { line: number, width, message, expected });
        let Some((name, rest)) = written.split_once(':') else {
            refuse("this line has no `:`".to_owned(), LINE);
            continue;
        };
        if name.is_empty() || name.len() > NAME_MAX || name.chars().any(char::is_control) {
            refuse("the name in this line is none".to_owned(), "1 to 255 bytes before the first `:`");
            continue;
        }
        // Some programs keep a comment behind the hash.
        let hash = rest.split(':').next().unwrap_or(rest);
        let hash = match hash_of(hash) {
            Ok(hash) => hash,
            Err((message, expected)) => {
                refuse(message, expected);
                continue;
            }
        };
        if let Some(first) = names.get(name) {
            refuse(format!("the name in this line is that of line {first}"), "one line for each name");
            continue;
        }
        names.insert(name, number);
        users.push(User { name: name.to_owned(), hash });
    }
    if users.is_empty() && wrong.is_empty() {
        let message = "there is no user in this file".to_owned();
        wrong.push(WrongUser { line: 1, width: 1, message, expected: LINE });
    }
    users.sort_by(|one, other| one.name.cmp(&other.name));
    (users, wrong)
}

fn hash_of(text: &str) -> Result<PasswordHash, (String, &'static str)> {
    let is_one_of = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    let named = |what: &str| Err((format!("the password in this line is {what}"), CURE));
    if is_one_of(&["$2y$", "$2b$", "$2a$"]) {
        return bcrypt(text);
    }
    if text.starts_with("$argon2id$") {
        return argon2(text);
    }
    if text.starts_with("$apr1$") {
        return named("a hash of MD5 (`$apr1$`), which is guessed too fast");
    }
    if is_one_of(&["{SHA}", "{SSHA}"]) {
        return named("a hash of SHA-1, which is guessed too fast");
    }
    if is_one_of(&["$argon2i$", "$argon2d$"]) {
        return named("a hash of another kind of argon2 than argon2id");
    }
    if is_one_of(&["$1$", "$5$", "$6$", "$7$", "$y$", "$gy$", "$2x$", "$sha1$"]) {
        return named("a hash of the system's crypt, which is not known here");
    }
    let is_des = text.len() == 13 && text.chars().all(|c| c.is_ascii_alphanumeric() || "./".contains(c));
    if is_des {
        return named("a hash of the old crypt, which looks at 8 characters");
    }
    if text.is_empty() {
        return named("empty");
    }
    named("no hash that is known here; if it is the password itself, everybody who can read this file has it")
}

fn bcrypt(text: &str) -> Result<PasswordHash, (String, &'static str)> {
    const DAMAGED: &str = "the hash of bcrypt in this line is damaged";
    let damaged = || (DAMAGED.to_owned(), "60 characters, as `htpasswd -B` writes them");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./$".contains(c);
    let parts: Vec<&str> = text.split('$').collect();
    let (["", _, cost, rest], 60) = (&parts[..], text.len()) else { return Err(damaged()) };
    let cost: u32 = cost.parse().map_err(|_| damaged())?;
    if rest.len() != 53 || !text.chars().all(is_plain) || cost < 4 {
        return Err(damaged());
    }
    if cost > COST_MAX {
        let message =
            format!("the hash of bcrypt in this line has cost {cost}: one login would take seconds");
        return Err((message, "a cost of 4 to 15: `htpasswd -B -C 10 FILE NAME`"));
    }
    Ok(PasswordHash::Bcrypt(text.into()))
}

fn argon2(text: &str) -> Result<PasswordHash, (String, &'static str)> {
    const BOUNDS: &str = "at most 256 MiB (`m=262144`), `t=16` and `p=16`";
    let damaged = || {
        ("the hash of argon2id in this line is damaged".to_owned(), "`$argon2id$v=19$m=…,t=…,p=…$salt$hash`")
    };
    let hash = phc::PasswordHash::new(text).map_err(|_| damaged())?;
    if hash.salt.is_none() || hash.hash.is_none() {
        return Err(damaged());
    }
    let value = |name: &str| -> Option<u32> {
        let params = text.split('$').find(|part| part.starts_with("m="))?;
        params.split(',').find_map(|param| param.strip_prefix(name)?.parse().ok())
    };
    let (Some(memory), Some(rounds), Some(lanes)) = (value("m="), value("t="), value("p=")) else {
        return Err(damaged());
    };
    if memory > MEMORY_MAX || rounds > ROUNDS_MAX || lanes > ROUNDS_MAX {
        return Err(("the hash of argon2id in this line takes more than one login may".to_owned(), BOUNDS));
    }
    Ok(PasswordHash::Argon2(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BCRYPT: &str = "$2y$10$abcdefghijklmnopqrstuuabcdefghijklmnopqrstuvwxyzABCDE";
    const ARGON: &str =
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

    #[test]
    fn users_are_read_by_name_and_comments_left_out() {
        assert_eq!(BCRYPT.len(), 60);
        let text = format!("\u{feff}# staff\n\nbert:{BCRYPT}\r\nanna:{ARGON}:a comment\näöü@x:{BCRYPT}\n");
        let (users, wrong) = parse(&text);
        assert_eq!(wrong.len(), 0, "{wrong:?}");
        let names: Vec<&str> = users.iter().map(|user| user.name.as_str()).collect();
        assert_eq!(names, ["anna", "bert", "äöü@x"]);
        assert!(users[0].hash.text() == ARGON && users[1].hash.text() == BCRYPT);
    }

    #[test]
    fn what_is_wrong_with_a_line_is_told_with_the_cure_and_without_what_is_in_it() {
        let other = |from: &str, to: &str| BCRYPT.replacen(from, to, 1);
        for (line, told, cure) in [
            ("anna".to_owned(), "no `:`", "name:hash"),
            (format!(":{BCRYPT}"), "the name", "255"),
            (format!("{}:{BCRYPT}", "a".repeat(256)), "the name", "255"),
            ("anna:$apr1$secret$x".to_owned(), "MD5 (`$apr1$`)", "htpasswd -B"),
            ("anna:{SHA}secret=".to_owned(), "SHA-1", "htpasswd -B"),
            ("anna:{SSHA}secret=".to_owned(), "SHA-1", "htpasswd -B"),
            ("anna:$6$secret$x".to_owned(), "the system's crypt", "htpasswd -B"),
            ("anna:secret.secret".to_owned(), "the old crypt", "htpasswd -B"),
            ("anna:secret".to_owned(), "the password itself", "htpasswd -B"),
            ("anna:".to_owned(), "is empty", "htpasswd -B"),
            ("anna:$argon2i$secret".to_owned(), "than argon2id", "htpasswd -B"),
            ("anna:$argon2id$secret".to_owned(), "argon2id in this line is damaged", "$argon2id$v=19$"),
            (format!("anna:{}", ARGON.replace("m=65536", "m=9999999")), "more than one login may", "256 MiB"),
            (format!("anna:{}", ARGON.replace("t=2", "t=99")), "more than one login may", "256 MiB"),
            (format!("anna:{}", other("$10$", "$31$")), "cost 31", "-C 10"),
            (format!("anna:{}", other("$10$", "$03$")), "damaged", "60 characters"),
            (format!("anna:{BCRYPT}x"), "damaged", "60 characters"),
            (format!("anna:{}", other("abc", "a!c")), "damaged", "60 characters"),
            (format!("anna:{BCRYPT}\nanna:{BCRYPT}"), "that of line 1", "each name"),
            ("# nobody\n".to_owned(), "no user in this file", "name:hash"),
        ] {
            let (_, wrong) = parse(&line);
            assert_eq!(wrong.len(), 1, "{line}: {wrong:?}");
            assert!(wrong[0].message.contains(told) && wrong[0].expected.contains(cure), "{line}: {wrong:?}");
            assert!(!format!("{wrong:?}").contains("secret"), "{wrong:?}");
        }
    }
}
