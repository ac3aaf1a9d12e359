//! What a config that came over the network may name of this machine's files, and how little is said about them.
//!
//! Whoever sends it can't look at the machine. So it names what the config in force names under the same kind of key; and beside that
//! certificates and files to include that lie below the config's folder, links followed, and are no secret. All else is
//! refused before anything of it is opened, and in the same words as a file that is not there, or can't be used. Files that are written
//! (logs, sockets, state) are never new ones. The same holds for what included files name, since who may have a log written may
//! have written them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

use crate::config::error::Problem;
use crate::config::origin::Place;

/// What a config names a file, a folder or a socket for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathUse {
    /// To be a part of it; a pattern stands for itself.
    Include,
    /// Certificates, which anybody may see.
    Certificates,
    /// The key of one.
    PrivateKey,
    /// To look through for certificates and their keys.
    CertificateFolder,
    /// Who may come to the admin API.
    Tokens,
    /// The key of sticky cookies.
    StickyKey,
    /// The key of what nodes share and nobody else may read.
    ClusterKey,
    /// The key that webhooks are signed with.
    SigningKey,
    /// Header lines that let us in elsewhere.
    SentHeaders,
    /// Users and hashes of their passwords.
    Users,
    /// Public keys that vouch for tokens.
    PublicKeys,
    /// Networks that may come in, or may not.
    Networks,
    /// More backends.
    Backends,
    /// To be the body of an answer.
    Body,
    /// To be run.
    Program,
    /// To write a log.
    Log,
    /// To keep what outlives the process.
    State,
    /// To listen at.
    Socket,
    /// To connect to, as a backend. Not one that this process listens at: over its own admin socket traffic would have every right.
    BackendSocket,
    /// To send numbers to.
    StatsdSocket,
    /// To be asked at.
    AdminSocket,
}

impl PathUse {
    /// What is in it is nobody's business.
    const fn is_secret(self) -> bool {
        match self {
            PathUse::PrivateKey
            | PathUse::CertificateFolder
            | PathUse::Tokens
            | PathUse::StickyKey
            | PathUse::ClusterKey
            | PathUse::SigningKey
            | PathUse::SentHeaders
            | PathUse::Users
            | PathUse::Program => true,
            PathUse::Include
            | PathUse::Certificates
            | PathUse::Networks
            | PathUse::Backends
            | PathUse::PublicKeys
            | PathUse::Body
            | PathUse::Log
            | PathUse::State
            | PathUse::Socket
            | PathUse::BackendSocket
            | PathUse::StatsdSocket
            | PathUse::AdminSocket => false,
        }
    }

    /// One that the config in force does not name may be named.
    const fn may_be_new(self) -> bool {
        match self {
            PathUse::Include
            | PathUse::Certificates
            | PathUse::Networks
            | PathUse::Backends
            | PathUse::PublicKeys => true,
            // Whoever names a body reads it: anything below the folder would be open to all.
            PathUse::Body
            | PathUse::PrivateKey
            | PathUse::CertificateFolder
            | PathUse::Tokens
            | PathUse::StickyKey
            | PathUse::ClusterKey
            | PathUse::SigningKey
            | PathUse::SentHeaders
            | PathUse::Users
            | PathUse::Program
            | PathUse::Log
            | PathUse::State
            | PathUse::Socket
            | PathUse::BackendSocket
            | PathUse::StatsdSocket
            | PathUse::AdminSocket => false,
        }
    }
}

/// All that a config names.
pub type NamedPaths = BTreeSet<(PathUse, PathBuf)>;

/// What a config from elsewhere may name.
#[derive(Clone, Debug)]
pub struct Fence {
    folder: Option<PathBuf>,
    in_force: NamedPaths,
    from: FenceSide,
}

/// Where a config comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum FenceSide {
    /// Somebody sends it who is told nothing of this machine.
    Afar,
    /// The nodes of a cluster share it, whose operators may know what each of them says.
    Cluster,
}

impl Fence {
    /// Around what the config in force names and the folder of the file `config`.
    #[must_use]
    pub fn around(in_force: NamedPaths, config: Option<&Path>) -> Fence {
        let folder = config.and_then(Path::parent).map(Path::to_owned);
        Fence { folder, in_force, from: FenceSide::Afar }
    }

    /// Around the folder of the node's own file: for what the nodes of a cluster share.
    pub(in crate::config) fn below(own: &Path) -> Fence {
        let folder = own.parent().map(Path::to_owned);
        Fence { folder, in_force: NamedPaths::new(), from: FenceSide::Cluster }
    }

    /// Whether it may be named for this. Looks at no file outside of the folder, but where a link leads.
    fn admits(&self, path: &Path, using: PathUse, is_pattern: bool) -> bool {
        if self.from == FenceSide::Cluster {
            return using != PathUse::Program && self.leads_inside(path);
        }
        if self.in_force.contains(&(using, path.to_owned())) {
            return true;
        }
        using.may_be_new() && !is_pattern && self.lies_inside(path)
    }

    /// Whether a path is below the folder, be there something or not; where there is, links are followed.
    fn leads_inside(&self, path: &Path) -> bool {
        let folder = self
            .folder
            .as_deref()
            .map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        let Some(folder) = folder.and_then(|folder| folder.canonicalize().ok()) else { return false };
        let Ok(whole) = std::path::absolute(path) else { return false };
        if whole.components().any(|part| part == Component::ParentDir) {
            return false;
        }
        // Of a file to come, or of a pattern, what is there of its folder says where it will be.
        let there = whole.ancestors().find_map(|part| part.canonicalize().ok());
        there.is_some_and(|there| there.starts_with(&folder))
    }

    fn lies_inside(&self, path: &Path) -> bool {
        let is_plain = !path.components().any(|part| part == Component::ParentDir);
        let (Some(folder), Ok(whole)) = (&self.folder, std::path::absolute(path)) else { return false };
        let Ok(inside) = std::path::absolute(folder) else { return false };
        if !is_plain || !whole.starts_with(inside) {
            return false;
        }
        let (Ok(folder), Ok(path)) = (folder.canonicalize(), path.canonicalize()) else { return false };
        let secrets = self.in_force.iter().filter(|(using, _)| using.is_secret());
        let mut secrets = secrets.filter_map(|(_, secret)| secret.canonicalize().ok());
        // Whatever lies in a folder of certificates may be a key.
        path.starts_with(folder) && path.is_file() && !secrets.any(|secret| path.starts_with(secret))
    }
}

/// A fence, and what was found at it.
#[derive(Debug)]
pub(in crate::config) struct Guard {
    fence: Fence,
    /// Where files are named: nothing is told of what is wrong with them.
    places: Vec<Place>,
    /// Where in the text itself each other file comes from.
    brought: HashMap<u16, Place>,
    /// Something is named that may not be.
    pub(in crate::config) is_breached: bool,
    /// From this file on they are the node's own, which may name what they like.
    pub(in crate::config) trusted: u16,
}

/// All that is said of a file.
const UNUSABLE: &str = "this is a file that can't be used here";
const NOTE: &str = "a config from afar names files that the config in force names in the same place, and certificates and \
                    includes below its folder; more is told on the machine itself: `evenkeel check FILE`";

impl Guard {
    pub(in crate::config) fn new(fence: Fence) -> Guard {
        Guard { fence, places: Vec::new(), brought: HashMap::new(), is_breached: false, trusted: u16::MAX }
    }

    /// Whether what is named at `place` may be.
    pub(in crate::config) fn admits(
        &mut self,
        path: &Path,
        using: PathUse,
        is_pattern: bool,
        place: Option<Place>,
    ) -> bool {
        if place.is_some_and(|place| place.file >= self.trusted) {
            return true;
        }
        self.places.extend(place);
        let is_fine = self.fence.admits(path, using, is_pattern);
        self.is_breached |= !is_fine;
        is_fine
    }

    /// The file of this number is a part of the config because of what stands at `place`.
    pub(in crate::config) fn bring(&mut self, file: u16, place: Place) {
        let origin = self.origin(place);
        self.brought.insert(file, origin);
    }

    /// The place in the text itself that something is because of.
    fn origin(&self, place: Place) -> Place {
        self.brought.get(&place.file).copied().unwrap_or(place)
    }

    /// What is said of something that may not be named.
    pub(in crate::config) fn words(&self, path: &Path, using: PathUse) -> String {
        match self.fence.from {
            // In the words of every other problem with a file.
            FenceSide::Afar => String::new(),
            FenceSide::Cluster if using == PathUse::Program => {
                "this names a program, which what is shared may not".to_owned()
            }
            FenceSide::Cluster => {
                format!("`{}` is not below the folder of this node's own file", path.display())
            }
        }
    }

    /// Nothing is told of this machine.
    pub(in crate::config) fn is_discreet(&self) -> bool {
        self.fence.from == FenceSide::Afar
    }

    /// What is left of a problem that is about a file.
    pub(in crate::config) fn mask(&self, problem: &mut Problem) {
        if !self.is_discreet() {
            return;
        }
        let Some(place) = problem.place else { return };
        if place.file == 0 && !self.places.contains(&place) {
            return;
        }
        let origin = Some(self.origin(place)).filter(|place| place.file == 0);
        *problem = Problem {
            file: problem.file.take().filter(|_| origin.is_some()),
            place: origin,
            message: UNUSABLE.to_owned(),
            expected: None,
            hint: None,
            note: Some(NOTE.to_owned()),
            fix: None,
            is_syntax: false,
            snippet: None,
        };
    }
}
