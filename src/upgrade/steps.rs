//! The steps of an upgrade, at each of which either process may be killed: builds for tests can have one stand still there.

/// The variable that says where: one of the names that [`pass`] is called with. Only builds with debug assertions look at it.
pub const STOP: &str = "EVENKEEL_UPGRADE_STOP";

/// A process passes a step: `old:` or `new:`, and what it has just done.
pub fn pass(step: &'static str) {
    if cfg!(debug_assertions) && std::env::var(STOP).is_ok_and(|wanted| wanted == step) {
        // Whoever wants that lets it go on, or kills it.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
    }
}
