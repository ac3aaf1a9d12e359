//! Another text in the place of a config's file: written beside it, made to last, and put there by a rename, so that whoever reads
//! finds one or the other as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// What the file before is called.
const BEFORE: &str = ".before";

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
        let beside = with(&file, &format!(".new-{}", std::process::id()));
        // What a process of the same number has left there is nobody's.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let replacement = Replacement { file, beside };
        let mut new =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&replacement.beside)?;
        let own = new.metadata()?;
        if (own.uid(), own.gid()) != (facts.uid(), facts.gid()) {
            std::os::unix::fs::fchown(&new, Some(facts.uid()), Some(facts.gid()))?;
        }
        new.set_permissions(fs::Permissions::from_mode(facts.mode() & 0o7777))?;
        new.write_all(text)?;
        new.sync_all()?;
        Ok(replacement)
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
    fn what_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = Replacement::prepare(&folder.path().join("none.yaml"), b"x").expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(names(folder.path()).is_empty());
    }
}
