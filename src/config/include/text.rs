//! A file of a config as text, or why it gives none.

use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::error::Problem;
use crate::config::origin::{Place, SourceFile};
use crate::config::report::Report;
use crate::config::snippet::lines;

/// Texts that count instead of what is in these files.
pub type Instead = HashMap<PathBuf, Arc<str>>;

/// More than this, in one file or in all of one config together, is a mistake, for example a log given as `--config`. A config of
/// 10,000 backends has some 2 MiB.
pub(in crate::config) const FILE_MAX: u64 = 16 * 1024 * 1024;

/// Why a file gives no text.
pub(in crate::config) enum Unreadable {
    Io(std::io::Error),
    Folder,
    NoFile,
    TooLarge,
    /// Somebody is about to write it, or could not.
    Empty,
    NotUtf8 {
        bytes: Vec<u8>,
        valid: usize,
    },
}

/// Reads a file of at most `longest` bytes.
pub(in crate::config) fn read(path: &Path, longest: u64) -> Result<String, Unreadable> {
    let facts = std::fs::metadata(path).map_err(Unreadable::Io)?;
    if facts.is_dir() {
        return Err(Unreadable::Folder);
    }
    // A device has no end, and a pipe may have nobody who writes. What a shell has opened for us, as for `<(…)`, somebody writes.
    if !facts.is_file() && !["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder)) {
        return Err(Unreadable::NoFile);
    }
    if facts.len() > longest {
        return Err(Unreadable::TooLarge);
    }
    text(std::fs::File::open(path).map_err(Unreadable::Io)?, longest)
}

/// What there is to read, of at most `longest` bytes: a file may grow while it is read, and a pipe has no length.
pub(in crate::config) fn text(source: impl Read, longest: u64) -> Result<String, Unreadable> {
    let mut bytes = Vec::new();
    source.take(longest + 1).read_to_end(&mut bytes).map_err(Unreadable::Io)?;
    if bytes.len() as u64 > longest {
        return Err(Unreadable::TooLarge);
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        Unreadable::NotUtf8 { bytes: error.into_bytes(), valid }
    })
}

impl Unreadable {
    /// Reports that the file at `path` can't be read. `included`: where it is included, and as what; else it is the config itself.
    pub(in crate::config) fn tell(self, path: &Path, included: Option<(Place, &str)>, report: &mut Report) {
        match self {
            Unreadable::Io(error) if error.kind() == ErrorKind::NotFound => {
                let problem = say(report, included, "this config file", "does not exist");
                if let Some(other) = beside(path) {
                    problem.note(format!("there is `{}`", other.display()));
                } else if included.is_some() {
                    problem.note("a relative path counts from the folder of the file that it is written in");
                }
            }
            Unreadable::Io(error) => {
                say(report, included, "this config file", &format!("can't be read: {error}"));
            }
            Unreadable::Folder => {
                let problem = say(report, included, "this", "is a folder").expected("a config file");
                if included.is_some() {
                    problem.note("`*.yaml` behind it stands for all such files in it");
                }
                let inside = ["evenkeel.yaml", "evenkeel.yml"].map(|file| path.join(file));
                if let Some(file) = inside.iter().find(|file| file.is_file()) {
                    problem.note(format!("there is `{}`", file.display()));
                }
            }
            Unreadable::NoFile => {
                say(report, included, "this", "is no file but a device, a pipe or a socket")
                    .expected("a config file")
                    .note("what a program writes is read from standard input: `program | evenkeel -`");
            }
            Unreadable::TooLarge => {
                let (own, together) =
                    ("is larger than 16MiB", "is larger than 16MiB, or all files together are");
                say(report, included, "this file", if included.is_some() { together } else { own })
                    .expected("a config file");
            }
            Unreadable::Empty => {
                say(report, included, "this file", "is empty")
                    .note("one that is to say nothing has a comment in it, or is not included");
            }
            Unreadable::NotUtf8 { bytes, .. }
                if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") =>
            {
                say(report, included, "this file", "is UTF-16, as some editors of Windows write it")
                    .expected("a file in UTF-8")
                    .note("save it as UTF-8, or convert it: `iconv -f UTF-16 -t UTF-8 old.yaml > new.yaml`");
            }
            Unreadable::NotUtf8 { bytes, valid } => {
                let before = String::from_utf8_lossy(&bytes[..valid]);
                let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
                let line = small(lines(&before).count());
                let column = small(lines(&before).last().unwrap_or_default().chars().count() + 1);
                let text = String::from_utf8_lossy(&bytes);
                let file = report.add(SourceFile::new(path, &text));
                if let Some((place, _)) = included {
                    report.bring(file, place);
                }
                report
                    .at(Place { file, line, column, width: 1 }, "this byte is not part of a UTF-8 text")
                    .expected("a file in UTF-8")
                    .note("save it as UTF-8, or convert it: `iconv -f LATIN1 -t UTF-8 old.yaml > new.yaml`");
            }
        }
    }
}

/// A problem of the config itself, or of what it includes.
fn say<'r>(
    report: &'r mut Report,
    included: Option<(Place, &str)>,
    own: &str,
    predicate: &str,
) -> &'r mut Problem {
    match included {
        None => report.whole(format!("{own} {predicate}")),
        Some((place, subject)) => report.at(place, format!("{subject} {predicate}")),
    }
}

/// A file beside one that does not exist which is probably meant.
fn beside(path: &Path) -> Option<PathBuf> {
    let other = match path.extension().and_then(|extension| extension.to_str()) {
        Some("yaml") => path.with_extension("yml"),
        Some("yml") => path.with_extension("yaml"),
        _ => path.with_added_extension("yaml"),
    };
    other.is_file().then_some(other)
}
