//! A pattern of file names: which files there are now, and which folders say so.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use glob::MatchOptions;

/// Most names that are looked at for one pattern.
const NAMES_MAX: usize = 100_000;
/// As in a shell; what begins with a dot is matched by a dot only, so that neither what editors leave behind nor Kubernetes'
/// `..data` is a file of ours.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// A pattern, counted from a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern {
    folder: PathBuf,
    text: String,
}

/// What a pattern stands for now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matches {
    /// Files in the order of their paths, and what leads nowhere.
    pub(super) files: Vec<PathBuf>,
    /// Where another one would be noticed, whether the folder is there or not.
    pub(super) folders: Vec<PathBuf>,
    /// A folder that could not be looked through, and why: what is in it nobody knows.
    pub(super) unread: Option<(PathBuf, String)>,
}

/// As it was written.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Pattern {
    /// Whether a text is a pattern and no plain name.
    pub(super) fn is_one(text: &str) -> bool {
        text.contains(['*', '?', '['])
    }

    /// Reads a pattern that counts from `folder`.
    ///
    /// # Errors
    /// Why it is none, as a predicate.
    pub(super) fn new(folder: &Path, text: &str) -> Result<Pattern, String> {
        for part in text.split('/') {
            if part.contains("**") {
                return Err(
                    "has `**`, which is not supported: name the folders, or write `*` for one".to_owned()
                );
            }
            glob::Pattern::new(part).map_err(|error| format!("is no pattern: {}", error.msg))?;
        }
        Ok(Pattern { folder: folder.to_owned(), text: text.to_owned() })
    }

    /// What it stands for now. Blocks for as long as the file system does.
    pub(super) fn matches(&self) -> Matches {
        let mut parts: Vec<&str> = self.text.split('/').filter(|part| !part.is_empty()).collect();
        let last = parts.pop().unwrap_or_default();
        let start = if self.text.starts_with('/') { Path::new("/") } else { &self.folder };
        let mut here = vec![start.to_owned()];
        let (mut folders, mut budget, mut unread) = (Vec::new(), NAMES_MAX, None);
        let mut look = |folder: &PathBuf, part: &str| match names(folder, part, &mut budget) {
            Ok(found) => found,
            Err(error) => {
                unread.get_or_insert((folder.clone(), error.to_string()));
                Vec::new()
            }
        };
        for part in parts {
            if Pattern::is_one(part) {
                folders.extend(here.iter().cloned());
                here = here.iter().flat_map(|folder| look(folder, part)).collect();
                here.retain(|folder| folder.is_dir());
            } else {
                here.iter_mut().for_each(|folder| folder.push(part));
            }
        }
        let mut files: Vec<PathBuf> = if Pattern::is_one(last) {
            here.iter().flat_map(|folder| look(folder, last)).collect()
        } else {
            // One that nobody may look at is read in vain, which is told.
            let is_absent =
                |error: io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
            let is_there =
                |file: &PathBuf| file.symlink_metadata().map_or_else(|error| !is_absent(error), |_| true);
            here.iter().map(|folder| folder.join(last)).filter(is_there).collect()
        };
        files.retain(|file| !file.is_dir());
        files.sort();
        folders.extend(here);
        Matches { files, folders, unread }
    }
}

/// The entries of a folder that a pattern of one name matches; none where there is no folder.
///
/// # Errors
/// It can't be looked through to its end.
fn names(folder: &Path, pattern: &str, budget: &mut usize) -> io::Result<Vec<PathBuf>> {
    let Ok(pattern) = glob::Pattern::new(pattern) else { return Ok(Vec::new()) };
    // An empty path is the current folder.
    let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = match std::fs::read_dir(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        *budget =
            budget.checked_sub(1).ok_or_else(|| io::Error::other(format!("more than {NAMES_MAX} names")))?;
        if name.to_str().is_some_and(|name| pattern.matches_with(name, OPTIONS)) {
            found.push(folder.join(name));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_come_in_the_order_of_their_paths_and_folders_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["b/conf.d/2.yaml", "b/conf.d/10.yaml", "a/conf.d/1.yaml", "b/conf.d/.1.yaml.swp"] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::create_dir(at("b/conf.d/x.yaml")).unwrap();
        std::fs::write(at("b/conf.d/.hidden.yaml"), "").unwrap();
        symlink("nowhere", at("b/conf.d/z.yaml")).unwrap();
        let of = |text: &str| {
            let found = Pattern::new(folder.path(), text).unwrap().matches();
            let short = |paths: Vec<PathBuf>| -> Vec<String> {
                paths
                    .iter()
                    .map(|path| path.strip_prefix(folder.path()).unwrap().display().to_string())
                    .collect()
            };
            (short(found.files), short(found.folders))
        };
        let all = ["a/conf.d/1.yaml", "b/conf.d/10.yaml", "b/conf.d/2.yaml", "b/conf.d/z.yaml"];
        assert_eq!(
            of("*/conf.d/*.yaml"),
            (all.map(String::from).into(), ["", "a/conf.d", "b/conf.d"].map(String::from).into())
        );
        assert_eq!(of("b/conf.d/[0-9].yaml").0, ["b/conf.d/2.yaml"]);
        assert_eq!(of("?/conf.d/2.yaml").0, ["b/conf.d/2.yaml"]);
        assert_eq!(of("none/*.yaml"), (vec![], vec!["none".to_owned()]));
        assert_eq!(of(&format!("{}/*.yaml", at("a/conf.d").display())).0, ["a/conf.d/1.yaml"]);
    }

    #[test]
    fn a_folder_that_can_t_be_looked_through_is_not_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let of = || Pattern::new(folder.path(), "conf.d/*.yaml").unwrap().matches();
        assert_eq!(of().unread, None, "one that is not there is");
        // Whoever runs this as root may read every folder, but not a file as one.
        std::fs::write(folder.path().join("conf.d"), "").unwrap();
        let (unread, why) = of().unread.unwrap();
        assert_eq!(unread, folder.path().join("conf.d"));
        assert!(why.contains("Not a directory"), "{why}");
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for (text, why) in [("a/**/b.yaml", "`**`"), ("a/[.yaml", "no pattern"), ("**", "`**`")] {
            let said = Pattern::new(Path::new(""), text).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
