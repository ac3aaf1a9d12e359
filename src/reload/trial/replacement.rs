//! Another text in the place of a config's file: written beside it, made to last, and put there by a rename, so that whoever reads
//! finds one or the other as a whole.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};

/// What the file before is called.
const BEFORE: &str = ".before";
/// What one that is about to take the place is called, with the number of its process behind.
const NEW: &str = ".new-";

/// A text that is on the disk beside the file that it is to replace. Dropped, it is gone.
#[derive(Debug)]
pub struct Replacement {
    /// The file, behind all links.
    file: PathBuf,
    beside: PathBuf,
}

impl Replacement {
    /// Writes `text` beside `file`, with its owner and its rights.
    ///
    /// # Errors
    /// It can't be written there. Nothing is left.
    pub fn prepare(file: &Path, text: &[u8]) -> io::Result<Replacement> {
        let file = fs::canonicalize(file)?;
        let facts = fs::metadata(&file)?;
        let (replacement, mut new) = Replacement::begin(file)?;
        let own = new.metadata()?;
        if (own.uid(), own.gid()) != (facts.uid(), facts.gid()) {
            std::os::unix::fs::fchown(&new, Some(facts.uid()), Some(facts.gid()))?;
        }
        new.set_permissions(fs::Permissions::from_mode(facts.mode() & 0o7777))?;
        new.write_all(text)?;
        new.sync_all()?;
        Ok(replacement)
    }

    /// Writes `text` beside a file that this process alone has, or that is not there yet, for this user alone.
    ///
    /// # Errors
    /// As of [`Replacement::prepare`].
    pub fn prepare_own(file: &Path, text: &[u8]) -> io::Result<Replacement> {
        let (replacement, mut new) = Replacement::begin(file.to_owned())?;
        new.write_all(text)?;
        new.sync_all()?;
        Ok(replacement)
    }

    fn begin(file: PathBuf) -> io::Result<(Replacement, File)> {
        let beside = with(&file, &format!("{NEW}{}", std::process::id()));
        // What a process of the same number has left there is nobody's.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        Ok((Replacement { file, beside }, new))
    }

    /// Puts it into the file's place, and keeps the one before. Gives where that is; `None`: the file says the same already, and what
    /// was kept before stays.
    ///
    /// # Errors
    /// The file is what it was.
    pub fn commit(self) -> io::Result<Option<PathBuf>> {
        if fs::read(&self.file)? == fs::read(&self.beside)? {
            return Ok(None);
        }
        let kept = with(&self.file, BEFORE);
        let link = with(&self.file, &format!("{BEFORE}-{}", std::process::id()));
        let _ = fs::remove_file(&link);
        fs::hard_link(&self.file, &link)?;
        fs::rename(&link, &kept).inspect_err(|_| drop(fs::remove_file(&link)))?;
        self.swap()?;
        Ok(Some(kept))
    }

    /// Puts it into the file's place; the one before is gone.
    ///
    /// # Errors
    /// The file is what it was, or nobody knows what it is after a crash.
    pub fn swap(self) -> io::Result<()> {
        fs::rename(&self.beside, &self.file)?;
        self.file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // After a rename there is none.
        let _ = fs::remove_file(&self.beside);
    }
}

/// Removes what processes that were killed in the middle of a replacement of `file` have left beside it, and gives what that was.
/// Called before this process replaces anything. Whatever may be somebody else's stays: a link, a file of another user, and that of a
/// process that lives.
#[must_use]
pub fn clear_leftovers(file: &Path) -> Vec<PathBuf> {
    let Ok(file) = fs::canonicalize(file) else { return Vec::new() };
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let own = rustix::process::geteuid().as_raw();
    let is_leftover = |path: &PathBuf| {
        let process = path.file_name().and_then(|beside| process_of(name, beside));
        process.is_some_and(is_over)
            && path.symlink_metadata().is_ok_and(|facts| facts.is_file() && facts.uid() == own)
    };
    let mut cleared: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    cleared.retain(|path| is_leftover(path) && fs::remove_file(path).is_ok());
    cleared.sort();
    cleared
}

/// Which process has called a file `beside` while it replaced the one that is called `name`.
fn process_of(name: &OsStr, beside: &OsStr) -> Option<i32> {
    let more = beside.as_bytes().strip_prefix(name.as_bytes())?;
    let digits = more
        .strip_prefix(NEW.as_bytes())
        .or_else(|| more.strip_prefix(BEFORE.as_bytes())?.strip_prefix(b"-"))?;
    let number: i32 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    // Any other way to write a number, such as `+7` or `007`, is not ours.
    (number > 0 && number.to_string().as_bytes() == digits).then_some(number)
}

/// Whether no process has this number, or the only one that has it is this one: in a container each has the same.
fn is_over(process: i32) -> bool {
    let Some(process) = Pid::from_raw(process) else { return false };
    process == getpid() || test_kill_process(process) == Err(Errno::SRCH)
}

/// `file` with more at the end of its name.
fn with(file: &Path, more: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(more);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_file_behind_a_link_is_replaced_with_its_rights_and_the_one_before_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("a.yaml"), folder.path().join("link.yaml"));
        fs::write(&file, "one").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        drop(Replacement::prepare(&link, b"never").expect("prepared"));
        assert_eq!(names(folder.path()), ["a.yaml", "link.yaml"]);
        for (text, before) in [("two", "one"), ("three", "two")] {
            let put =
                || Replacement::prepare(&link, text.as_bytes()).expect("prepared").commit().expect("done");
            let kept = put().expect("it says something else");
            assert_eq!(put(), None, "a second time it takes nothing away");
            assert_eq!(kept, fs::canonicalize(&file).expect("a path").with_file_name("a.yaml.before"));
            let read = |path: &Path| fs::read_to_string(path).expect("text");
            assert_eq!((read(&link), read(&kept)), (text.to_owned(), before.to_owned()));
        }
        assert_eq!(fs::metadata(&file).expect("facts").mode() & 0o7777, 0o640);
        assert!(fs::symlink_metadata(&link).expect("facts").is_symlink());
        assert_eq!(names(folder.path()), ["a.yaml", "a.yaml.before", "link.yaml"]);
    }

    #[test]
    fn a_file_that_is_new_is_there_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("own");
        for text in ["one", "two"] {
            let before = fs::read(&file).ok();
            let replacement = Replacement::prepare_own(&file, text.as_bytes()).expect("prepared");
            assert_eq!(fs::read(&file).ok(), before);
            replacement.swap().expect("done");
            assert_eq!(fs::read(&file).expect("there"), text.as_bytes());
            assert_eq!(fs::metadata(&file).expect("facts").mode() & 0o7777, 0o600);
        }
        assert_eq!(names(folder.path()), ["own"]);
    }

    #[test]
    fn what_killed_processes_left_beside_the_file_is_cleared_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("a.yaml"), folder.path().join("link.yaml"));
        fs::write(&file, "one").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        let gone = child.id();
        child.wait().expect("it has ended");
        let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
        let mut left: Vec<String> = [gone, own]
            .iter()
            .flat_map(|id| [format!("a.yaml.new-{id}"), format!("a.yaml.before-{id}")])
            .collect();
        let stays = [
            format!("a.yaml.new-{parent}"),
            format!("a.yaml.new-{gone}x"),
            format!("a.yaml.new-0{gone}"),
            format!("a.yaml.new-+{gone}"),
            format!("a.yaml.new{gone}"),
            format!("b.yaml.new-{gone}"),
            format!("xa.yaml.new-{gone}"),
            "a.yaml.before".to_owned(),
            "a.yaml.before-".to_owned(),
            "a.yaml.before-0".to_owned(),
            format!("a.yaml.before-{}", u64::MAX),
        ];
        for name in left.iter().chain(&stays) {
            fs::write(folder.path().join(name), name).expect("written");
        }
        std::os::unix::fs::symlink(&file, folder.path().join(format!("link.yaml.new-{gone}")))
            .expect("a link");
        let before = names(folder.path());
        let cleared: Vec<String> = clear_leftovers(&link)
            .iter()
            .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
            .collect();
        left.sort();
        assert_eq!(cleared, left);
        let after = names(folder.path());
        assert!(before.iter().all(|name| left.contains(name) != after.contains(name)), "{after:?}");
        // A link of such a name is nobody's leftover, nor is a folder.
        let odd = |id: u32| folder.path().join(format!("a.yaml.new-{id}"));
        std::os::unix::fs::symlink(&file, odd(gone)).expect("a link");
        fs::create_dir(odd(own)).expect("made");
        assert!(clear_leftovers(&file).is_empty() && fs::read(&file).expect("there") == b"one");
    }

    #[test]
    fn what_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = Replacement::prepare(&folder.path().join("none.yaml"), b"x").expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(names(folder.path()).is_empty());
    }
}
