//! Configuration: from YAML and flags to the accepted form.
//!
//! The way of a value: `yaml` (text → nodes with places) → `variables` (`${NAME}`) → `raw` (nodes → typed values
//! as written) → `validate` (flags, defaults, cross-checks) → [`model`]. Every step pushes what is wrong into one
//! report and goes on, so that one run shows every problem. [`schema()`] tells editors beforehand. Called by `cli`
//! and later by `reload`; imports nothing of ours.

mod advice;
mod certificate;
mod edit;
mod effective;
mod error;
mod files;
mod flags;
mod hidden;
pub mod model;
mod origin;
mod raw;
mod schema;
mod slips;
mod strangers;
mod units;
mod validate;
mod variables;
mod yaml;

#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::path::Path;

pub use certificate::identity_of;
pub use effective::Effective;
pub use error::{Problem, Problems};
pub use files::{FileRole, Files};
pub use flags::Flags;
pub use origin::{Origin, Place};
pub use schema::schema;

use effective::EffectiveRows;
use error::Report;
use model::Config;
use raw::Raw;

/// A config file larger than this is a mistake, for example a log given as `--config`. One of 10,000 backends is some 2 MiB.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// An accepted configuration and where each of its values came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The accepted form.
    pub config: Config,
    /// Every value in force, in the order of the documentation.
    pub effective: Vec<Effective>,
    /// What is right and yet may not be what somebody wants: keys that wait for another one. Each begins with its place.
    pub warnings: Vec<String>,
    /// What it was read from and which files it names, each as it was right before it was read.
    pub files: Files,
}

/// Loads a file, or the flags alone when `path` is `None`. `env` answers for the environment.
///
/// # Errors
/// Every problem that was found, in the order of the file.
pub fn load(
    path: Option<&Path>,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, Problems> {
    let Some(path) = path else {
        let mut report = Report::new("");
        if flags.backends.is_empty() {
            report.command_line("neither a config file nor backends are given").expected(
                "`--config file.yaml`, or `--backends http://127.0.0.1:8001,http://127.0.0.1:8002`",
            );
            return Err(report.finish(""));
        }
        return accept(Raw::default(), flags, report, "");
    };
    let name = path.display().to_string();
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut files = Files::default();
    files.add(path, FileRole::Config);
    let loaded = match read(path) {
        Ok(text) => load_text(&text, &name, folder, flags, env),
        Err(fault) => Err(fault.report(&name)),
    };
    loaded
        .map(|mut loaded| {
            loaded.files.add_all(&files);
            loaded
        })
        .map_err(|mut problems| {
            problems.files_mut().add_all(&files);
            problems
        })
}

/// Loads a text as if it were the file `name` in `folder`.
///
/// # Errors
/// Every problem that was found, in the order of the text.
pub fn load_text(
    text: &str,
    name: &str,
    folder: &Path,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, Problems> {
    let load = |text: &str| load_once(text, name, folder, flags, env);
    load(text).map_err(|problems| {
        let files = problems.files().clone();
        let mut problems = advice::give(problems, text, name, &|text| load(text).err());
        *problems.files_mut() = files;
        problems
    })
}

/// The same without a look at what the hints would lead to.
fn load_once(
    text: &str,
    name: &str,
    folder: &Path,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, Problems> {
    let mut report = Report::new(name);
    let Some(mut root) = yaml::read(text, &mut report) else {
        return Err(report.finish(text));
    };
    variables::substitute(&mut root, env, &mut report);
    let raw = raw::walk(&root, &mut raw::Reader::new(&mut report, folder));
    if !raw.has_targets && flags.backends.is_empty() {
        let message = if root.is_null() { "this file is empty" } else { "this file has no `targets`" };
        report.whole(message).expected(strangers::SMALLEST);
    }
    accept(raw, flags, report, text)
}

/// Every key a file may have, as a path such as `targets.<name>.timeouts.connect`, in the order of the
/// documentation.
#[must_use]
pub fn keys() -> Vec<String> {
    let shape = |shape: &raw::Shape| -> Vec<String> {
        shape.keys().iter().map(|key| format!("{}{}", shape.path(), key.name)).collect()
    };
    raw::SHAPES.iter().flat_map(shape).collect()
}

/// Every key with its default as it would be written; `None` where there is none, or it depends on something else.
#[must_use]
pub fn defaults() -> Vec<(String, Option<&'static str>)> {
    let keys = raw::SHAPES.iter().flat_map(|shape| shape.keys());
    self::keys().into_iter().zip(keys.map(|key| key.default)).collect()
}

fn accept(mut raw: Raw, flags: &Flags, mut report: Report, text: &str) -> Result<Loaded, Problems> {
    validate::flags::merge(&mut raw, flags, &mut report);
    let mut rows = EffectiveRows::default();
    let config = validate::accept(&raw, &mut report, &mut rows);
    if report.is_empty() {
        let (warnings, files) = report.into_accepted();
        Ok(Loaded { config, effective: rows.into_list(), warnings, files })
    } else {
        Err(report.finish(text))
    }
}

/// A file beside one that does not exist which is probably meant.
fn beside(path: &Path) -> Option<std::path::PathBuf> {
    let other = match path.extension().and_then(|extension| extension.to_str()) {
        Some("yaml") => path.with_extension("yml"),
        Some("yml") => path.with_extension("yaml"),
        _ => path.with_added_extension("yaml"),
    };
    other.is_file().then_some(other)
}

/// Why a file gives no text.
enum Unreadable {
    Io(std::io::Error),
    Folder,
    TooLarge,
    NotUtf8 { bytes: Vec<u8>, valid: usize },
}

fn read(path: &Path) -> Result<String, Unreadable> {
    let facts = std::fs::metadata(path).map_err(Unreadable::Io)?;
    if facts.is_dir() {
        return Err(Unreadable::Folder);
    }
    if facts.len() > FILE_MAX {
        return Err(Unreadable::TooLarge);
    }
    let bytes = std::fs::read(path).map_err(Unreadable::Io)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        Unreadable::NotUtf8 { bytes: error.into_bytes(), valid }
    })
}

impl Unreadable {
    fn report(self, name: &str) -> Problems {
        let mut report = Report::new(name);
        match self {
            Unreadable::Io(error) if error.kind() == ErrorKind::NotFound => {
                let problem = report.whole("this config file does not exist");
                if let Some(other) = beside(Path::new(name)) {
                    problem.note(format!("there is `{}`", other.display()));
                }
            }
            Unreadable::Io(error) => {
                report.whole(format!("this config file can't be read: {error}"));
            }
            Unreadable::Folder => {
                let problem = report.whole("this is a folder").expected("a config file");
                let inside = ["evenkeel.yaml", "evenkeel.yml"].map(|file| Path::new(name).join(file));
                if let Some(file) = inside.iter().find(|file| file.is_file()) {
                    problem.note(format!("there is `{}`", file.display()));
                }
            }
            Unreadable::TooLarge => {
                report.whole("this file is larger than 16MiB").expected("a config file");
            }
            Unreadable::NotUtf8 { bytes, .. }
                if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") =>
            {
                report
                    .whole("this file is UTF-16, as some editors of Windows write it")
                    .expected("a file in UTF-8")
                    .note("save it as UTF-8, or convert it: `iconv -f UTF-16 -t UTF-8 old.yaml > new.yaml`");
            }
            Unreadable::NotUtf8 { bytes, valid } => {
                let before = String::from_utf8_lossy(&bytes[..valid]);
                let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
                let line = small(error::lines(&before).count());
                let column = small(error::lines(&before).last().unwrap_or_default().chars().count() + 1);
                report
                    .at(Place { line, column, width: 1 }, "this byte is not part of a UTF-8 text")
                    .expected("a file in UTF-8")
                    .note("save it as UTF-8, or convert it: `iconv -f LATIN1 -t UTF-8 old.yaml > new.yaml`");
                return report.finish(&String::from_utf8_lossy(&bytes));
            }
        }
        report.finish("")
    }
}
