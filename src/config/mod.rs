//! Configuration: from YAML and flags to the accepted form.
//!
//! The way of a value: `include` (files, each through `yaml`: text → nodes with places, and `variables`: `${NAME}`) → `raw` (nodes → typed values
//! as written) → `validate` (flags, defaults, cross-checks) → [`model`]. Every step pushes what is wrong into one
//! report and goes on, so that one run shows every problem. [`schema()`] tells editors beforehand. Called by `cli`
//! and later by `reload`; imports nothing of ours.

mod addition;
mod advice;
mod certificate;
mod edit;
mod effective;
mod error;
mod files;
mod flags;
mod found;
mod hidden;
mod include;
pub mod model;
mod origin;
mod pattern;
mod raw;
mod report;
mod save;
mod schema;
mod shared;
mod slips;
mod snippet;
mod strangers;
mod test_place;
mod token_file;
mod units;
mod validate;
mod variables;
mod yaml;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

pub use addition::{Addition, AdditionFault, NamedBackend, NewBackend};
pub use certificate::{identity_in, identity_of};
pub use effective::{Effective, backend_numbers};
pub use error::{Problem, Problems};
pub use files::fence::{Fence, NamedPaths, PathUse};
pub use files::{FileRole, Files};
pub use flags::Flags;
pub use found::{FoundAddress, LeftOut, WithFound};
pub use include::Instead;
pub use origin::{Origin, Place};
pub use save::{
    ChangedLine, Rewritten, SourceStamp, SourceText, Unwritten, Wanted, WantedChange, WantedValue,
};
pub use save::{rewrite, sources};
pub use schema::schema;
pub use shared::{
    InlineSecret, NODE_KEYS, SharedPart, SharedText, Uncut, is_of_node, load_shared, shared_part, shared_rows,
};
pub use test_place::{FailedTest, TestPlace};
pub use token_file::token_file_faults;
pub use validate::BackendRules;

use effective::EffectiveRows;
use include::FILE_MAX;
use model::Config;
use model::tls::ExpiredList;
use origin::SourceFile;
use raw::Raw;
use report::Report;

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
    /// Every file, folder and socket that its keys name.
    pub named: NamedPaths,
    /// What each target's keys say about backends, for those that are added later: in the order of the targets.
    pub backend_rules: Arc<[BackendRules]>,
    /// The config file and those that it includes, in the order in which they were read.
    pub sources: Arc<[SourceStamp]>,
    /// Where its `tests` stand, in their order. Whether they pass is another question.
    pub test_places: Arc<[TestPlace]>,
    /// The same without what was found; `None`: nothing of it was.
    pub unfound: Option<Arc<Loaded>>,
}

impl Loaded {
    /// It as a config that is refused because these of its tests fail.
    #[must_use]
    pub fn failing(&self, failed: Vec<FailedTest>) -> Problems {
        test_place::problems(&self.test_places, failed, &self.files)
    }

    /// Which name gets which certificate on each listener with TLS, line by line; `all`: of however many.
    #[must_use]
    pub fn certificate_lines(&self, now: SystemTime, all: bool) -> Vec<String> {
        certificate::shown::lines(&self.config, now, all)
    }

    /// All that `check` warns of, one line each.
    #[must_use]
    pub fn all_warnings(&self, now: SystemTime) -> Vec<String> {
        let expiring = self.config.expiring(now).into_iter().map(|(owner, identity, _)| {
            let (file, days) = (identity.file.display(), identity.days_left(now));
            format!("the certificate {file} of {owner} expires in {days} days")
        });
        let unverified = self
            .config
            .unverified()
            .map(|target| format!("the backends of {target} are not verified (`upstream_tls.insecure`)"));
        let fleeting = self.config.fleeting().map(|target| {
            format!(
                "the sticky cookies of {target} last until the restart and hold on this node only (no `sticky.key`)"
            )
        });
        let overdue = self.config.overdue_lists(now).into_iter().map(|(owner, list, expired)| {
            let (file, issuer) = (list.file.display(), &list.issuer);
            let so = match expired {
                ExpiredList::Keep => "what it says still holds",
                ExpiredList::Refuse => "no client certificate of its issuer is taken",
            };
            format!(
                "the revocation list {file} of {issuer}, which {owner} asks, should have been renewed: {so}"
            )
        });
        let doubtful = self.config.doubtful_chains().map(|(owner, identity, doubt)| {
            format!("the certificate {} of {owner} {doubt}", identity.file.display())
        });
        expiring
            .chain(overdue)
            .chain(doubtful)
            .chain(unverified)
            .chain(fleeting)
            .chain(self.warnings.iter().cloned())
            .collect()
    }
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
        let mut report = Report::about("", "");
        if flags.backends.is_empty() {
            report.command_line("neither a config file nor backends are given").expected(
                "`--config file.yaml`, or `--backends http://127.0.0.1:8001,http://127.0.0.1:8002`",
            );
            return Err(report.finish());
        }
        return accept(Raw::default(), flags, report);
    };
    let mut files = Files::default();
    files.add(path, FileRole::Config);
    match include::read(path, FILE_MAX) {
        Ok(text) => load_source(SourceFile::new(path, &text), files, None, flags, env),
        Err(fault) => {
            let mut report = Report::about(&path.display().to_string(), "");
            report.files = files;
            fault.tell(path, None, &mut report);
            Err(report.finish())
        }
    }
}

/// What is in a file.
///
/// # Errors
/// It can't be read, in the words of every other problem with a config.
pub fn text_of(path: &Path) -> Result<String, Problems> {
    include::read(path, FILE_MAX).map_err(|fault| {
        let mut report = Report::about(&path.display().to_string(), "");
        fault.tell(path, None, &mut report);
        report.finish()
    })
}

/// Loads a file as if these texts were in it and in those that it includes; what has none is read.
///
/// # Errors
/// Every problem that was found, in the order of the file.
pub fn load_with(
    path: &Path,
    texts: &Instead,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, Problems> {
    let Some(text) = texts.get(path) else { return load(Some(path), flags, env) };
    load_once(SourceFile::new(path, text), texts, (Files::default(), None), flags, env)
}

/// Loads what `source` gives, called `name`. Relative paths count from where the process runs.
///
/// # Errors
/// Every problem that was found, in the order of the text.
pub fn load_from(
    source: impl Read,
    name: &str,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, Problems> {
    match include::text(source, FILE_MAX) {
        Ok(text) => load_text(&text, name, Path::new(""), flags, env),
        Err(fault) => {
            let mut report = Report::about(name, "");
            fault.tell(Path::new(name), None, &mut report);
            Err(report.finish())
        }
    }
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
    let file = Path::new(name).file_name().map_or_else(|| folder.join(name), |file| folder.join(file));
    load_instead(text, name, &file, flags, env)
}

/// Loads a text as if it were what is in `file`; messages call it `name`.
///
/// # Errors
/// Every problem that was found, in the order of the text.
pub fn load_instead(
    text: &str,
    name: &str,
    file: &Path,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, Problems> {
    let source = SourceFile { name: name.into(), ..SourceFile::new(file, text) };
    load_source(source, Files::default(), None, flags, env)
}

/// Loads a text that came from afar, as if it were what is in `file`, or where the process runs. It may name what `fence` lets it
/// name, and is told nothing of files and of the environment.
///
/// # Errors
/// Every problem that was found, in the order of the text.
pub fn load_fenced(
    text: &str,
    name: &str,
    file: Option<&Path>,
    flags: &Flags,
    fence: &Fence,
) -> Result<Loaded, Problems> {
    let source = SourceFile { name: name.into(), ..SourceFile::new(file.unwrap_or(Path::new("")), text) };
    load_source(source, Files::default(), Some(fence), flags, &|_| None)
}

/// Loads a file and what it includes; `files`: what has been read for that.
fn load_source(
    main: SourceFile,
    files: Files,
    fence: Option<&Fence>,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, Problems> {
    let load =
        |main: SourceFile, instead: &Instead| load_once(main, instead, (files.clone(), fence), flags, env);
    load(main, &Instead::new()).map_err(|problems| {
        let (files, sources) = (problems.files.clone(), problems.sources.clone());
        let texts: HashMap<PathBuf, Arc<str>> =
            sources.iter().skip(1).map(|source| (source.path.clone(), Arc::clone(&source.text))).collect();
        // The same with another text in one of the files.
        let with = |file: usize, text: &str| {
            let (mut main, mut instead) = (sources.first()?.clone(), texts.clone());
            match sources.get(file)? {
                _ if file == 0 => main.text = text.into(),
                source => drop(instead.insert(source.path.clone(), text.into())),
            }
            load(main, &instead).err()
        };
        Problems { files, ..advice::give(problems, &with) }
    })
}

/// What a file says of the process that serves it, as far as that can be read: whatever else is wrong with the file does not
/// matter here.
#[must_use]
pub fn instance_in(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> model::Instance {
    let Ok(text) = include::read(path, FILE_MAX) else { return model::Instance::default() };
    let mut report = Report::new(vec![SourceFile::new(path, &text)]);
    let Some(gathered) = include::gather(&mut report, 0, &Instead::new(), env) else {
        return model::Instance::default();
    };
    let raw = raw::walk(&gathered.roots, gathered.included, &mut raw::Reader::new(&mut report));
    validate::instance(&raw.instance, &mut report, &mut EffectiveRows::default())
}

/// The same without a look at what the hints would lead to.
fn load_once(
    main: SourceFile,
    instead: &Instead,
    (files, fence): (Files, Option<&Fence>),
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, Problems> {
    let mut report = Report::behind(fence, vec![main]);
    report.files = files;
    let Some(gathered) = include::gather(&mut report, 0, instead, env) else {
        return Err(report.finish());
    };
    let (roots, has_included) = (gathered.roots, !gathered.included.is_empty());
    let raw = raw::walk(&roots, gathered.included, &mut raw::Reader::new(&mut report));
    // A listener may redirect and answer all that it gets.
    if !raw.has_targets && !raw.has_listeners && gathered.is_whole && flags.backends.is_empty() {
        let message = match roots.first() {
            Some(root) if root.is_null() => "this file is empty",
            _ if has_included => "neither this file nor one that it includes has `targets`",
            _ => "this file has no `targets`",
        };
        report.whole(message).expected(strangers::SMALLEST);
    }
    if report.is_breached() {
        return Err(report.finish());
    }
    accept(raw, flags, report)
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

fn accept(mut raw: Raw, flags: &Flags, mut report: Report) -> Result<Loaded, Problems> {
    validate::flags::merge(&mut raw, flags, &mut report);
    let mut rows = EffectiveRows::default();
    let (config, backend_rules) = validate::accept(&raw, &mut report, &mut rows);
    if report.is_empty() {
        let sources = report.sources().iter().map(SourceStamp::of).collect();
        let test_places = TestPlace::all(raw.tests.iter().map(|test| &test.spot), &report).into();
        let (warnings, files, named) = report.into_accepted();
        let effective = rows.into_list();
        let unfound = None;
        Ok(Loaded { config, effective, warnings, files, named, backend_rules, sources, test_places, unfound })
    } else {
        Err(report.finish())
    }
}
