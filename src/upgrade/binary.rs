//! Whether a binary may take the place of this one: it is root's or our own, and nobody else can write it.
//!
//! What was looked at is what is run: it stays open, and is run by its descriptor.

use std::fs::{File, Metadata, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::fault::UpgradeFault;

/// A binary that may be run.
#[derive(Debug)]
pub struct TrustedBinary {
    /// Where it was.
    pub path: PathBuf,
    file: File,
}

impl TrustedBinary {
    /// Opens the binary at `path`, which is absolute.
    ///
    /// # Errors
    /// It can't be had, can't be run, or somebody else may write it: why, and what to do about it.
    pub fn open(path: &Path) -> Result<TrustedBinary, UpgradeFault> {
        let fault = |why: String| UpgradeFault::Binary { path: path.to_owned(), why };
        if !path.is_absolute() {
            return Err(fault("the path is not absolute".to_owned()));
        }
        // What is no file, such as a pipe, is not waited for.
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        let file = options.open(path).map_err(|error| fault(error.to_string()))?;
        let facts = file.metadata().map_err(|error| fault(error.to_string()))?;
        judge(&facts, rustix::process::geteuid().as_raw()).map_err(fault)?;
        let mut first = [0; 2];
        if file.read_at(&mut first, 0).is_ok_and(|count| count == 2) && first == *b"#!" {
            return Err(fault("this is a script: name the binary that it runs".to_owned()));
        }
        Ok(TrustedBinary { path: path.to_owned(), file })
    }

    /// Where it is found as long as this is there, whatever becomes of its path.
    #[must_use]
    pub fn runnable(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

fn judge(facts: &Metadata, own: u32) -> Result<(), String> {
    let (mode, owner) = (facts.mode() & 0o7777, facts.uid());
    if !facts.is_file() {
        return Err("this is no file".to_owned());
    }
    if mode & 0o111 == 0 {
        return Err(format!("it can't be run (mode {mode:04o})\n  hint: chmod +x"));
    }
    if owner != own && owner != 0 {
        return Err(format!(
            "it belongs to the user {owner}, who could put anything there\n  hint: have it belong to root, or to the user {own} that this process runs as"
        ));
    }
    if mode & 0o022 != 0 {
        return Err(format!("others than its owner may write it (mode {mode:04o})\n  hint: chmod go-w"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_a_binary_that_nobody_else_can_write_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("evenkeel");
        std::fs::write(&path, "something").unwrap();
        let with = |mode: u32| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            TrustedBinary::open(&path).map_err(|fault| fault.to_string())
        };
        assert!(with(0o755).is_ok() && with(0o500).is_ok());
        assert!(with(0o644).unwrap_err().contains("it can't be run (mode 0644)"));
        assert!(with(0o775).unwrap_err().contains("others than its owner may write it (mode 0775)"));
        assert!(with(0o757).unwrap_err().contains("chmod go-w"));
        let named = |path: &Path| TrustedBinary::open(path).unwrap_err().to_string();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(named(&script).contains("this is a script"));
        assert!(named(folder.path()).ends_with("this is no file"));
        assert!(named(&folder.path().join("none")).contains("No such file"));
        assert!(named(Path::new("evenkeel")).contains("not absolute"));
        let facts = std::fs::metadata(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let foreign = facts.uid() + 1;
        let judged = judge(&std::fs::metadata(&path).unwrap(), foreign);
        assert_eq!(judged.is_ok(), facts.uid() == 0, "{judged:?}");
    }

    #[test]
    fn what_was_looked_at_is_what_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("true");
        // By another process: what is open for writing in this one is open in whatever another test begins at this moment, and can't be run as long.
        let made = std::process::Command::new("install").args(["-m", "755", "/bin/true"]).arg(&path).status();
        assert!(made.unwrap().success());
        let trusted = TrustedBinary::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::copy("/bin/false", &path).unwrap();
        assert!(std::process::Command::new(trusted.runnable()).status().unwrap().success());
    }
}
