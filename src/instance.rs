//! Which process this is beside others on the same machine, and where it is found: its name, the folder of its state, its
//! admin socket.
//!
//! The server and the commands that talk to it ask here, so that both come to the same places.

use std::ffi::OsString;
use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::config::model::{AdminSocket, Instance};

/// Where services have their sockets and their state when nobody tells.
const SYSTEM: [&str; 2] = ["/run/evenkeel", "/var/lib/evenkeel"];

/// The folders that the environment names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsualFolders {
    /// `$RUNTIME_DIRECTORY`: systemd has made it for this service.
    service_runtime: Option<PathBuf>,
    /// `$STATE_DIRECTORY`: the same, and it outlives the service.
    service_state: Option<PathBuf>,
    /// `$XDG_RUNTIME_DIR`.
    user_runtime: Option<PathBuf>,
    /// `$XDG_STATE_HOME`, or `.local/state` at home.
    user_state: Option<PathBuf>,
    /// `$TMPDIR`, or `/tmp`.
    temporary: PathBuf,
}

impl UsualFolders {
    /// What `env` says.
    #[must_use]
    pub fn of(env: &dyn Fn(&str) -> Option<OsString>) -> UsualFolders {
        // A relative one is to be ignored, says the XDG specification.
        let folder = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        // systemd may name several, with colons between them.
        let first = |name: &str| {
            let listed = env(name)?;
            let bytes = listed.as_bytes().split(|byte| *byte == b':').next()?;
            Some(PathBuf::from(std::ffi::OsStr::from_bytes(bytes))).filter(|path| path.is_absolute())
        };
        UsualFolders {
            service_runtime: first("RUNTIME_DIRECTORY"),
            service_state: first("STATE_DIRECTORY"),
            user_runtime: folder("XDG_RUNTIME_DIR"),
            user_state: folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state"))),
            temporary: folder("TMPDIR").unwrap_or_else(|| "/tmp".into()),
        }
    }

    /// What this process's environment says.
    #[must_use]
    pub fn here() -> UsualFolders {
        UsualFolders::of(&|name| std::env::var_os(name))
    }

    /// Every path at which the admin socket of some process may be by default, as far as there is a file.
    #[must_use]
    pub fn sockets(&self) -> Vec<PathBuf> {
        let [run, state] = SYSTEM.map(Path::new);
        let user_runtime = self.user_runtime.as_ref().map(|folder| folder.join("evenkeel"));
        let runtimes = [self.service_runtime.clone(), user_runtime, Some(run.to_owned())];
        let is_socket = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "sock");
        let mut found: Vec<PathBuf> = runtimes.iter().flatten().flat_map(|folder| entries(folder)).collect();
        found.retain(is_socket);
        let user_states = self.user_state.iter().flat_map(|folder| entries(&folder.join("evenkeel")));
        let is_private = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.as_bytes().starts_with(PRIVATE.as_bytes()))
        };
        let privates = entries(&self.temporary).into_iter().filter(is_private);
        let states = self.service_state.clone().into_iter().chain([state.to_owned()]);
        let states = states.chain(user_states).chain(privates).map(|folder| folder.join("admin.sock"));
        // What is a link may lead nowhere, which who tries it finds out.
        found.extend(states.filter(|path| path.symlink_metadata().is_ok()));
        found.sort();
        found.dedup();
        found
    }

    /// Takes away a link of [`UsualFolders::lead_to`] at which nobody answered: what was killed could not. Anything else stays: what
    /// is no such link, is not this user's, or lies where others may write.
    pub fn forget(&self, link: &Path) {
        let Some(folder) = link.parent().filter(|folder| folder.parent() == Some(&self.temporary)) else {
            return;
        };
        let own = rustix::process::geteuid().as_raw();
        let is_private = |name: &std::ffi::OsStr| name.as_bytes().starts_with(PRIVATE.as_bytes());
        let is_folder = |facts: &Metadata| facts.is_dir() && facts.uid() == own && facts.mode() & 0o077 == 0;
        let is_link = |facts: &Metadata| facts.is_symlink() && facts.uid() == own;
        if folder.file_name().is_some_and(is_private)
            && folder.symlink_metadata().is_ok_and(|facts| is_folder(&facts))
            && link.symlink_metadata().is_ok_and(|facts| is_link(&facts))
            && std::fs::remove_file(link).is_ok()
        {
            // Unless there is more in it.
            let _ = std::fs::remove_dir(folder);
        }
    }

    /// Leaves a link to `socket` where commands look, unless they look there anyway. It goes with what is given; `None`: there is
    /// no need of one, or no place for it.
    #[must_use]
    pub fn lead_to(&self, socket: &Path) -> Option<StateFolder> {
        if self.sockets().iter().any(|known| known == socket) {
            return None;
        }
        let folder = StateFolder::private(&self.temporary);
        make_private(&folder.path).ok()?;
        symlink(socket, folder.path.join("admin.sock")).ok()?;
        Some(folder)
    }
}

/// What stands in a folder; nothing where it can't be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Name, folder of the state and admin socket of one process.
#[derive(Debug)]
pub struct Whereabouts {
    /// Its name.
    pub name: String,
    /// Its config's file; `None`: it has none.
    pub config: Option<PathBuf>,
    /// Where its state is.
    pub state: StateFolder,
    /// Where its socket may be.
    pub socket: SocketPlace,
}

/// Where an admin socket may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketPlace {
    /// Nowhere.
    Off,
    /// At this path and no other.
    Chosen(PathBuf),
    /// At the first of these that will do.
    Usual(Vec<PathBuf>),
}

impl SocketPlace {
    /// The paths in the order in which they are tried.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        match self {
            SocketPlace::Off => &[],
            SocketPlace::Chosen(path) => std::slice::from_ref(path),
            SocketPlace::Usual(paths) => paths,
        }
    }
}

impl Whereabouts {
    /// Those of the process that serves what is written as `instance` in the file `config`; without a file those of this very
    /// process.
    #[must_use]
    pub fn of(instance: &Instance, config: Option<&Path>, folders: &UsualFolders) -> Whereabouts {
        Whereabouts::after(None, instance, config, folders)
    }

    /// The same of one that takes the place of a process with this name and folder of state, where neither is written nor follows from the config's path.
    #[must_use]
    pub fn after(
        before: Option<(&str, &Path)>,
        instance: &Instance,
        config: Option<&Path>,
        folders: &UsualFolders,
    ) -> Whereabouts {
        let config = config.map(absolute);
        let old_name = before.filter(|_| config.is_none()).map(|(name, _)| name.to_owned());
        let name = instance.name.clone().or(old_name).unwrap_or_else(|| usual_name(config.as_deref()));
        let private = || match before {
            Some((_, state)) if StateFolder::may_be_private(state, &folders.temporary) => {
                StateFolder { path: state.to_owned(), is_private: true, is_own: false }
            }
            _ => StateFolder::private(&folders.temporary),
        };
        let state = match (&instance.state_dir, &config, &folders.user_state) {
            (Some(written), ..) => StateFolder::lasting(absolute(written)),
            (None, Some(_), user) => match (&folders.service_state, user) {
                (Some(service), _) => StateFolder::lasting(service.clone()),
                (None, Some(user)) => StateFolder::lasting(user.join("evenkeel").join(&name)),
                (None, None) => private(),
            },
            (None, None, _) => private(),
        };
        let socket = match &instance.socket {
            AdminSocket::Off => SocketPlace::Off,
            AdminSocket::At(path) => SocketPlace::Chosen(absolute(path)),
            AdminSocket::Usual => {
                let file = format!("{name}.sock");
                let service = folders.service_runtime.as_ref().map(|folder| folder.join(&file));
                let user = folders.user_runtime.as_ref().map(|folder| folder.join("evenkeel").join(&file));
                let beside = state.path.join("admin.sock");
                let fits = |path: &PathBuf| path.as_os_str().len() <= AdminSocket::PATH_MAX;
                let all = service.or(user).into_iter().chain([beside]);
                SocketPlace::Usual(all.filter(fits).collect())
            }
        };
        Whereabouts { name, config, state, socket }
    }
}

/// A path without `.` and `..` that says the same from everywhere. Links are not followed: the file that a link leads to may
/// be another one tomorrow.
#[must_use]
pub fn absolute(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut plain = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// A hash of the config's absolute path; without a file a name that no other process has.
fn usual_name(config: Option<&Path>) -> String {
    match config {
        Some(path) => format!("{:012x}", xxh3_64(path.as_os_str().as_bytes()) >> 16),
        None => format!("process-{}", std::process::id()),
    }
}

/// Make folders that only this user may look into.
///
/// # Errors
/// What the system reports.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// What the name of a private folder begins with.
const PRIVATE: &str = "evenkeel-";

/// The folder of what outlives the process. It is made when something is to be kept there.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    /// It goes with the process.
    is_private: bool,
    /// No other process has it.
    is_own: bool,
}

impl StateFolder {
    fn lasting(path: PathBuf) -> StateFolder {
        StateFolder { path, is_private: false, is_own: true }
    }

    fn private(temporary: &Path) -> StateFolder {
        let chance: u32 = rand::random();
        let path = temporary.join(format!("{PRIVATE}{}-{chance:08x}", std::process::id()));
        StateFolder { path, is_private: true, is_own: true }
    }

    fn may_be_private(path: &Path, temporary: &Path) -> bool {
        let is_named = |name: &std::ffi::OsStr| name.as_bytes().starts_with(PRIVATE.as_bytes());
        path.parent() == Some(temporary) && path.file_name().is_some_and(is_named)
    }

    /// It is this process's own from now on.
    pub fn claim(&mut self) {
        self.is_own = true;
    }

    /// Leaves it where it is: another process has it from now on.
    pub fn leave(&mut self) {
        self.is_own = false;
    }

    /// Whether it goes with the process.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.is_private
    }

    /// Where it is, or will be.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        if self.is_private && self.is_own {
            // Nobody may ever have wanted it.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(set: &[(&str, &str)]) -> UsualFolders {
        UsualFolders::of(&|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    fn of(written: &Instance, file: Option<&str>, set: &[(&str, &str)]) -> Whereabouts {
        Whereabouts::of(written, file.map(Path::new), &folders(set))
    }

    fn paths(of: &Whereabouts) -> Vec<String> {
        of.socket.paths().iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn a_name_is_a_hash_of_the_path_and_does_not_change_with_where_one_stands() {
        let name = |file: &str| of(&Instance::default(), Some(file), &[]).name;
        assert_eq!(name("/etc/evenkeel/evenkeel.yaml"), name("/etc/./x/../evenkeel/evenkeel.yaml"));
        assert_ne!(name("/etc/evenkeel/evenkeel.yaml"), name("/etc/evenkeel/other.yaml"));
        assert_eq!(name("/etc/evenkeel/evenkeel.yaml").len(), 12);
        let here = std::env::current_dir().expect("a folder").join("a.yaml");
        assert_eq!(name("a.yaml"), name(here.to_str().expect("UTF-8")));
        let written = Instance { name: Some("edge-1".into()), ..Instance::default() };
        assert_eq!(of(&written, Some("/a.yaml"), &[]).name, "edge-1");
    }

    #[test]
    fn the_places_are_those_of_the_contract_one_after_the_other() {
        let written = Instance { name: Some("n".into()), ..Instance::default() };
        let at = |set: &[(&str, &str)]| {
            let of = of(&written, Some("/a.yaml"), set);
            (of.state.path().display().to_string(), paths(&of))
        };
        let both = |state: &str, sockets: &[&str]| {
            (state.to_owned(), sockets.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>())
        };
        let home = ("HOME", "/home/a");
        let at_home = "/home/a/.local/state/evenkeel/n";
        assert_eq!(at(&[home]), both(at_home, &["/home/a/.local/state/evenkeel/n/admin.sock"]));
        assert_eq!(
            at(&[home, ("XDG_STATE_HOME", "/s"), ("XDG_RUNTIME_DIR", "/r")]),
            both("/s/evenkeel/n", &["/r/evenkeel/n.sock", "/s/evenkeel/n/admin.sock"])
        );
        assert_eq!(
            at(&[home, ("STATE_DIRECTORY", "/var/lib/e:/b"), ("RUNTIME_DIRECTORY", "/run/e")]),
            both("/var/lib/e", &["/run/e/n.sock", "/var/lib/e/admin.sock"])
        );
        assert_eq!(at(&[home, ("XDG_RUNTIME_DIR", "relative")]).1.len(), 1, "it is ignored");
        let long = format!("/{}", "x".repeat(120));
        assert_eq!(
            at(&[home, ("XDG_RUNTIME_DIR", &long)]).1,
            both("", &["/home/a/.local/state/evenkeel/n/admin.sock"]).1
        );
        assert_eq!(at(&[("HOME", &long)]).1, Vec::<String>::new());
    }

    #[test]
    fn what_is_written_holds() {
        let written = Instance {
            state_dir: Some("/state".into()),
            socket: AdminSocket::At("/a.sock".into()),
            ..Instance::default()
        };
        let set = [("HOME", "/home/a"), ("STATE_DIRECTORY", "/s"), ("RUNTIME_DIRECTORY", "/r")];
        let found = of(&written, Some("/a.yaml"), &set);
        assert_eq!(
            (found.state.path(), &found.socket),
            (Path::new("/state"), &SocketPlace::Chosen("/a.sock".into()))
        );
        let off = Instance { socket: AdminSocket::Off, ..Instance::default() };
        assert_eq!(of(&off, None, &set).socket.paths(), [] as [PathBuf; 0]);
    }

    #[test]
    fn without_a_file_the_state_is_in_a_private_folder_that_goes_with_the_process() {
        let temporary = tempfile::tempdir().expect("a folder");
        let set = [("HOME", "/home/a"), ("TMPDIR", temporary.path().to_str().expect("UTF-8"))];
        let found = of(&Instance::default(), None, &set);
        let folder = found.state.path().to_owned();
        assert_eq!(folder.parent(), Some(temporary.path()));
        assert!(!folder.exists(), "nobody wants it yet");
        make_private(&folder).expect("made");
        std::fs::write(folder.join("admin.sock"), "").expect("written");
        assert_eq!(folders(&set).sockets().iter().filter(|path| path.starts_with(&folder)).count(), 1);
        drop(found);
        assert!(!folder.exists());
    }

    #[test]
    fn only_a_link_of_ours_is_forgotten() {
        let place = tempfile::tempdir().expect("a folder");
        let folders = folders(&[("TMPDIR", place.path().to_str().expect("UTF-8"))]);
        let way = folders.lead_to(Path::new("/nonexistent/a.sock")).expect("a link");
        let link = way.path().join("admin.sock");
        assert!(folders.sockets().contains(&link), "somebody has to find out");
        folders.forget(&link);
        assert!(!way.path().exists());
        let keeps = |name: &str, mode: u32, is_link: bool, more: bool| {
            let folder = place.path().join(name);
            make_private(&folder).expect("made");
            let file = folder.join("admin.sock");
            if is_link {
                symlink("/nonexistent", &file).expect("a link");
            } else {
                std::fs::write(&file, "").expect("written");
            }
            if more {
                std::fs::write(folder.join("overlay.journal"), "").expect("written");
            }
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&folder, mode).expect("set");
            folders.forget(&file);
            (folder.exists(), file.symlink_metadata().is_ok())
        };
        assert_eq!(keeps("evenkeel-1-a", 0o700, true, false), (false, false));
        assert_eq!(keeps("evenkeel-1-b", 0o700, true, true), (true, false), "with more in it");
        assert_eq!(keeps("evenkeel-1-c", 0o700, false, false), (true, true), "no link");
        assert_eq!(keeps("evenkeel-1-d", 0o755, true, false), (true, true), "others may look");
        assert_eq!(keeps("other-1", 0o700, true, false), (true, true), "another name");
        let deeper = place.path().join("x/evenkeel-1-e");
        make_private(&deeper).expect("made");
        symlink("/nonexistent", deeper.join("admin.sock")).expect("a link");
        folders.forget(&deeper.join("admin.sock"));
        assert!(deeper.exists(), "another folder");
    }

    /// The only process that runs was another one.
    #[test]
    fn a_socket_at_a_place_of_its_own_was_not_found() {
        let place = tempfile::tempdir().expect("a folder");
        let (temporary, other) = (place.path().join("tmp"), place.path().join("other.sock"));
        std::fs::create_dir(&temporary).expect("made");
        std::fs::write(&other, "").expect("written");
        let folders = folders(&[("TMPDIR", temporary.to_str().expect("UTF-8"))]);
        let known = folders.sockets();
        let way = folders.lead_to(&other).expect("a link");
        let found: Vec<PathBuf> =
            folders.sockets().into_iter().filter(|path| !known.contains(path)).collect();
        assert_eq!(found, [way.path().join("admin.sock")]);
        assert_eq!(std::fs::read_link(&found[0]).expect("a link"), other);
        assert!(folders.lead_to(&found[0]).is_none(), "it is known");
        drop(way);
        assert_eq!(folders.sockets(), known);
    }
}
