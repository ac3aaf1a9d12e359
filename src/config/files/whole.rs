//! Files that a config names and that are read whole.

use std::io::Read as _;
use std::path::Path;

use crate::config::error::{Wrong, quoted};

/// The bytes of a file of at most `most` MiB; `expected`: what it should be. Only what is a file is read, so that nothing waits for a
/// pipe.
pub(in crate::config) fn bytes(file: &Path, most: u64, expected: &str) -> Result<Vec<u8>, Wrong> {
    let name = quoted(&file.display().to_string());
    let wrong = |why: &str| Wrong::new(format!("is {name}, which {why}"), expected);
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            wrong("does not exist").note("a relative path counts from the folder of the config file")
        }
        std::io::ErrorKind::PermissionDenied => {
            wrong("this user may not read").note("let the user that runs evenkeel read it")
        }
        // The system's kinds are an open list, and its own text says the rest.
        _ => wrong(&format!("can't be read: {error}")),
    };
    let facts = std::fs::metadata(file).map_err(unreadable)?;
    if !facts.is_file() {
        return Err(wrong("is no file"));
    }
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    opened.take(most * 1024 * 1024 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > most * 1024 * 1024 {
        return Err(wrong(&format!("is larger than {most}MiB")));
    }
    Ok(bytes)
}

/// The same as a text.
pub(in crate::config) fn text(file: &Path, most: u64, expected: &str) -> Result<String, Wrong> {
    String::from_utf8(bytes(file, most, expected)?).map_err(|_| {
        let name = quoted(&file.display().to_string());
        Wrong::new(format!("is {name}, which is not UTF-8"), expected)
    })
}
