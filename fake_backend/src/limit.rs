//! The limit on open descriptors, for callers that start thousands of fakes in one process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open descriptors of this process to the hard one and says how many may now be open.
pub fn raise_descriptor_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Without the raise the old limit stays, and that is what is then told.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    // `None` is no limit at all.
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
