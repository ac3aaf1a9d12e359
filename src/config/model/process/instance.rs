//! What tells this process from others on the same machine: its name, the folder of its state, its admin socket.

use std::path::PathBuf;

/// As written; what holds where nothing is written depends on the machine, so it is not part of a config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// 1 to 64 letters, digits, `.`, `_` and `-`, the first of them a letter or a digit; `None`: a hash of the config's path.
    pub name: Option<String>,
    /// Where state is kept that outlives the process; `None`: the usual place for this name.
    pub state_dir: Option<PathBuf>,
    /// Where it can be asked and told things.
    pub socket: AdminSocket,
}

/// Where the admin socket is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AdminSocket {
    /// In the first of the usual places that will do.
    #[default]
    Usual,
    /// Nowhere.
    Off,
    /// Here, at most [`AdminSocket::PATH_MAX`] bytes.
    At(PathBuf),
}

impl AdminSocket {
    /// The longest path that a unix socket can have on Linux, in bytes.
    pub const PATH_MAX: usize = 107;
}
