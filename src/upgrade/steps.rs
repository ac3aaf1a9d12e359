//! The steps of an upgrade, at each of which either process may be killed: builds for tests can have one stand still there.

/// The variable that says where: one of the names that [`pass`] is called with. Only builds with debug assertions look at it.
pub const STOP: &str = "EVENKEEL_UPGRADE_STOP";

/// A process passes a step: `old:` or `new:`, and what it has just done.
pub fn pass(step: &'static str) {
    if cfg!(debug_assertions) && std::env::var(STOP).is_ok_and(|wanted| wanted == step) {
        // Whoever wants that lets it go on, or kills it. To this thread: one that is for the process may reach another first, and this one goes on meanwhile.
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGSTOP);
    }
}
