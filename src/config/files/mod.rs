//! Which files a config was read from and which it names, each as it was right before it was read.
//!
//! Who watches them compares with that, so that nothing is missed between a reading and the watch. Called by `config`, `reload`
//! and `watch`.

pub(super) mod fence;
pub(super) mod whole;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::config::pattern::{Matches, Pattern};

/// What a file is to a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// The config is written in it.
    Config,
    /// A key names it: a certificate, a key, a list.
    Named,
}

/// What tells one content of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileState {
    /// There is none, or nobody may look.
    Absent,
    /// Neither is it a file: a folder, or a pipe that is read once.
    Other,
    /// A file, behind all links.
    File {
        /// Device and inode.
        identity: (u64, u64),
        /// In bytes.
        size: u64,
        /// Seconds since 1970, and nanoseconds.
        modified: (i64, i64),
        /// Mode, user and group: a file that nobody could read may be readable now.
        access: (u32, u32, u32),
    },
    /// Of a pattern: a number for the paths of the files that it stands for, or for why nobody knows them all.
    Names(u64),
}

impl FileState {
    /// How it is now.
    fn of(path: &Path) -> FileState {
        match std::fs::metadata(path) {
            Ok(facts) if facts.is_file() => FileState::File {
                identity: (facts.dev(), facts.ino()),
                size: facts.size(),
                modified: (facts.mtime(), facts.mtime_nsec()),
                access: (facts.mode(), facts.uid(), facts.gid()),
            },
            Ok(_) => FileState::Other,
            Err(_) => FileState::Absent,
        }
    }
}

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Looked {
    File(PathBuf),
    Pattern(Pattern),
}

impl Looked {
    fn state(&self) -> FileState {
        match self {
            Looked::File(path) => FileState::of(path),
            Looked::Pattern(pattern) => of_names(&pattern.matches()),
        }
    }
}

fn of_names(found: &Matches) -> FileState {
    let mut hasher = DefaultHasher::new();
    // A folder that is new among those that are looked through has to be watched before anything is in it.
    (&found.files, &found.folders, &found.unread).hash(&mut hasher);
    FileState::Names(hasher.finish())
}

/// Files, and patterns of their names, each with the state that it was in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    all: BTreeMap<Looked, (FileRole, FileState)>,
}

impl Files {
    /// Adds a file as it is now, unless it is there.
    pub fn add(&mut self, path: &Path, role: FileRole) {
        let file = Looked::File(path.to_owned());
        self.all.entry(file).or_insert_with(|| (role, FileState::of(path)));
    }

    /// Adds a pattern of files that are this to a config; gives what it stands for now.
    pub(super) fn add_pattern(&mut self, pattern: Pattern, role: FileRole) -> Matches {
        let found = pattern.matches();
        self.all.insert(Looked::Pattern(pattern), (role, of_names(&found)));
        found
    }

    /// Adds those of others that are not there.
    pub fn add_all(&mut self, others: &Files) {
        for (looked, state) in &others.all {
            self.all.entry(looked.clone()).or_insert(*state);
        }
    }

    /// The same files as they are now. Blocks for as long as the file system does.
    #[must_use]
    pub fn again(&self) -> Files {
        let look = |(looked, (role, _)): (&Looked, &(FileRole, FileState))| {
            (looked.clone(), (*role, looked.state()))
        };
        Files { all: self.all.iter().map(look).collect() }
    }

    /// Only those that keys name.
    #[must_use]
    pub fn named(&self) -> Files {
        let named = self.all.iter().filter(|(_, (role, _))| *role == FileRole::Named);
        Files { all: named.map(|(looked, state)| (looked.clone(), *state)).collect() }
    }

    /// Only those in which the config is written.
    #[must_use]
    pub fn written(&self) -> Files {
        let written = self.all.iter().filter(|(_, (role, _))| *role == FileRole::Config);
        Files { all: written.map(|(looked, state)| (looked.clone(), *state)).collect() }
    }

    /// All but this one.
    #[must_use]
    pub fn without(mut self, path: Option<&Path>) -> Files {
        if let Some(path) = path {
            self.all.remove(&Looked::File(path.to_owned()));
        }
        self
    }

    /// The first of these that is another one in `later`, or is not there.
    #[must_use]
    pub fn first_that_differs(&self, later: &Files) -> Option<String> {
        let differs =
            |(looked, state): &(&Looked, &(FileRole, FileState))| later.all.get(looked) != Some(*state);
        self.all.iter().find(differs).map(|(looked, _)| match looked {
            Looked::File(path) => path.display().to_string(),
            Looked::Pattern(pattern) => pattern.to_string(),
        })
    }

    /// Their paths, as they were written.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.all.keys().filter_map(|looked| match looked {
            Looked::File(path) => Some(path.as_path()),
            Looked::Pattern(_) => None,
        })
    }

    /// The folders in which another file would be one that a pattern stands for. Not all of them need be there. Blocks for as
    /// long as the file system does.
    #[must_use]
    pub fn searched(&self) -> Vec<PathBuf> {
        let patterns = self.all.keys().filter_map(|looked| match looked {
            Looked::File(_) => None,
            Looked::Pattern(pattern) => Some(pattern),
        });
        patterns.flat_map(|pattern| pattern.matches().folders).collect()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn whatever_may_change_what_is_read_changes_the_state_and_looking_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("one"), "1").unwrap();
        std::fs::write(at("two"), "2").unwrap();
        symlink("one", at("link")).unwrap();
        let mut files = Files::default();
        files.add(&at("link"), FileRole::Named);
        files.add(&at("none"), FileRole::Config);
        let mut last = files.again();
        assert_eq!(last, files);
        std::fs::read(at("link")).unwrap();
        assert_eq!(files.again(), files);
        let mut differs = |what: &str| {
            let now = files.again();
            assert_ne!(now, last, "{what}");
            last = now;
        };
        std::fs::write(at("one"), "12").unwrap();
        differs("written in place");
        std::fs::rename(at("two"), at("one")).unwrap();
        differs("another one in its place");
        std::fs::write(at("three"), "1").unwrap();
        symlink("three", at("other")).unwrap();
        std::fs::rename(at("other"), at("link")).unwrap();
        differs("the link leads elsewhere");
        std::fs::set_permissions(at("three"), Permissions::from_mode(0o600)).unwrap();
        std::fs::set_permissions(at("three"), Permissions::from_mode(0o640)).unwrap();
        differs("others may read it");
        std::fs::create_dir(at("none")).unwrap();
        differs("a folder");
        std::fs::remove_file(at("three")).unwrap();
        differs("gone");
    }

    #[test]
    fn a_pattern_has_another_state_when_it_stands_for_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut files = Files::default();
        let pattern = Pattern::new(folder.path(), "conf.d/*.yaml").unwrap();
        assert_eq!(files.add_pattern(pattern, FileRole::Config).files, [""; 0].map(PathBuf::from));
        assert_eq!(files.searched(), [at("conf.d")]);
        std::fs::create_dir(at("conf.d")).unwrap();
        std::fs::write(at("conf.d/a.txt"), "").unwrap();
        assert_eq!(files.again(), files);
        std::fs::write(at("conf.d/a.yaml"), "").unwrap();
        assert_ne!(files.again(), files);
        std::fs::remove_file(at("conf.d/a.yaml")).unwrap();
        assert_eq!(files.again(), files);
    }

    /// Else nobody would watch it when a file comes into it a moment later, and that would be seen ten seconds late.
    #[test]
    fn a_pattern_has_another_state_when_there_is_another_folder_to_look_through() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::default();
        let pattern = Pattern::new(folder.path(), "*/tls.crt").unwrap();
        assert!(files.add_pattern(pattern, FileRole::Named).files.is_empty());
        std::fs::create_dir(folder.path().join("new.example")).unwrap();
        assert_ne!(files.again(), files);
    }

    #[test]
    fn those_that_keys_name_can_be_told_and_the_first_to_name_one_counts() {
        let (mut one, mut other) = (Files::default(), Files::default());
        one.add(Path::new("a.yaml"), FileRole::Config);
        one.add(Path::new("a.pem"), FileRole::Named);
        one.add(Path::new("a.yaml"), FileRole::Named);
        other.add(Path::new("b.pem"), FileRole::Named);
        one.add_all(&other);
        assert_eq!(one.paths().count(), 3);
        assert!(one.named().paths().eq(["a.pem", "b.pem"].map(Path::new)));
    }
}
