//! Which folders to watch, so that whatever a path leads to is noticed: its own, and that of each link on the way.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// A chain of more links is a ring (Linux says ELOOP).
const LINKS_MAX: usize = 40;

/// Folders, and whether that is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Folders {
    /// Without a link in their paths.
    pub(super) all: BTreeSet<PathBuf>,
    /// The first that is not there: nobody would notice what is made in it.
    pub(super) missing: Option<PathBuf>,
    /// The same of those in which there need be nothing.
    pub(super) is_search_missing: bool,
}

impl Folders {
    /// Those of all `paths`, and `searched`. Blocks for as long as the file system does.
    #[must_use]
    pub(super) fn of<'p>(paths: impl IntoIterator<Item = &'p Path>, searched: &[PathBuf]) -> Folders {
        let mut folders = Folders::default();
        for folder in searched {
            folders.add(&folder.join("any"));
        }
        folders.is_search_missing = folders.missing.take().is_some();
        paths.into_iter().for_each(|path| folders.add(path));
        folders
    }

    /// Walks to the end of `path`, link by link.
    fn add(&mut self, path: &Path) {
        // Without a current folder nothing relative can be found anyway.
        let Ok(path) = std::path::absolute(path) else { return };
        let mut ahead = steps(&path);
        let (mut here, mut links) = (PathBuf::from("/"), 0);
        while let Some(step) = ahead.pop_front() {
            if step == ".." {
                here.pop();
                continue;
            }
            let next = here.join(&step);
            if let Ok(leads_to) = std::fs::read_link(&next) {
                links += 1;
                if links > LINKS_MAX {
                    return;
                }
                self.all.insert(here.clone());
                if leads_to.is_absolute() {
                    here = PathBuf::from("/");
                }
                let rest = std::mem::take(&mut ahead);
                ahead = steps(&leads_to);
                ahead.extend(rest);
            } else if ahead.is_empty() {
                self.all.insert(here.clone());
            } else if next.is_dir() {
                here = next;
            } else {
                self.all.insert(here);
                self.missing.get_or_insert(next);
                return;
            }
        }
    }
}

/// The names on the way, `..` included.
fn steps(path: &Path) -> VecDeque<OsString> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(step).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_link_on_the_way_has_its_folder_watched() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for inner in ["etc", "volume/..2026_1", "store/a"] {
            std::fs::create_dir_all(at(inner)).unwrap();
        }
        std::fs::write(at("volume/..2026_1/tls.crt"), "").unwrap();
        // As Kubernetes does it.
        symlink("..2026_1", at("volume/..data")).unwrap();
        symlink("..data/tls.crt", at("volume/tls.crt")).unwrap();
        symlink("../volume", at("etc/tls")).unwrap();
        symlink(at("store/a/b.pem"), at("etc/b.pem")).unwrap();
        let of = |path: PathBuf| Folders::of([path.as_path()], &[]);
        let set = |names: &[&str]| names.iter().map(|name| at(name)).collect::<BTreeSet<_>>();
        let found = of(at("etc/tls/tls.crt"));
        let all = set(&["etc", "volume", "volume/..2026_1"]);
        assert_eq!(found, Folders { all, ..Folders::default() });
        // Where a link leads to nothing, what is made there is noticed.
        assert_eq!(of(at("etc/b.pem")).all, set(&["etc", "store/a"]));
        let none = of(at("etc/none/c.pem"));
        assert_eq!((none.all, none.missing), (set(&["etc"]), Some(at("etc/none"))));
        let none = Folders::of([], &[at("etc/none"), at("store")]);
        assert_eq!((none.all, none.missing), (set(&["etc", "store"]), None));
        assert!(none.is_search_missing);
        assert_eq!(of(at("etc/../store/a/x")).all, set(&["store/a"]));
    }

    #[test]
    fn a_ring_of_links_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        assert_eq!(Folders::of([root.join("a").as_path()], &[]).all, BTreeSet::from([root]));
    }
}
