//! A case of h2spec, and how many of them are run.

use std::thread::ScopedJoinHandle;

use super::expect::{Miss, Outcome};
use super::peer::{Door, Peer};

/// What is sent on a fresh connection, and what may come of it.
pub struct H2Case {
    /// As h2spec names it: the suite, the section, and its number therein.
    pub id: &'static str,
    pub about: &'static str,
    /// It begins without a handshake.
    is_bare: bool,
    run: fn(&mut Peer) -> Outcome,
}

/// A case that begins behind the handshake.
pub const fn case(id: &'static str, about: &'static str, run: fn(&mut Peer) -> Outcome) -> H2Case {
    H2Case { id, about, is_bare: false, run }
}

/// A case that begins with the first octet.
pub const fn bare(id: &'static str, about: &'static str, run: fn(&mut Peer) -> Outcome) -> H2Case {
    H2Case { id, about, is_bare: true, run }
}

impl H2Case {
    /// Runs it; what is wrong, in words.
    fn failure(&self, door: &Door) -> Option<String> {
        let name = format!("{} {}", self.id, self.about);
        let mut peer = match Peer::connect(door) {
            Ok(peer) => peer,
            Err(error) => return Some(format!("{name}\n    no connection: {error}")),
        };
        let ready = if self.is_bare { Ok(()) } else { peer.shake() };
        let miss: Miss = ready.and_then(|()| (self.run)(&mut peer)).err()?;
        Some(format!("{name}\n    {miss}\n    what came: {}", peer.log.join("; ")))
    }
}

/// Runs them side by side, each on a connection of its own, and gives all failures.
pub fn failures<'a>(cases: &'a [H2Case], door: &Door) -> Vec<String> {
    std::thread::scope(|scope| {
        let begin = |case: &'a H2Case| (case.id, scope.spawn(move || case.failure(door)));
        let running: Vec<_> = cases.iter().map(begin).collect();
        let end = |(id, running): (_, ScopedJoinHandle<'_, Option<String>>)| {
            running.join().unwrap_or_else(|_| Some(format!("{id} has panicked; see above")))
        };
        running.into_iter().filter_map(end).collect()
    })
}
