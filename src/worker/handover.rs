//! Handing a fresh connection to another worker.
//!
//! The kernel spreads connections over the workers' sockets by a hash, and nobody can say how long each will counted:
//! what is left after an hour may sit on one core. So a worker that has clearly more open connections than its share
//! gives the next one away, to the worker that has the fewest, before anything was read from it.
//!
//! This is the one place where a worker wakes another for a client. As long as the spread is what chance explains it
//! costs two loads of a counter per accept; counters of other workers are only looked at beyond that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use crate::message::Peer;
use crate::net::socket::Accepted;
use crate::snapshot::Listener;
use crate::telemetry::cells::Cells;

/// Connections that may be on their way to one worker. One that does not take them gets no more.
const ON_THE_WAY: usize = 256;

/// A connection that was accepted and that no worker serves yet.
pub(super) struct NewConnection {
    /// Its socket.
    pub(super) socket: Accepted,
    /// Whose it is.
    pub(super) peer: Peer,
    /// Where it came in, as the worker that accepted it knows that listener: the other one may not yet.
    pub(super) listener: Arc<Listener>,
}

/// One worker's ends: what it is given, and by which it gives.
pub struct Ends {
    pub(super) neighbours: Neighbours,
    pub(super) mailbox: Mailbox,
}

/// Connects the workers that count in `cells`, each with all others.
#[must_use]
pub fn link(cells: &[Arc<Cells>]) -> Vec<Ends> {
    let mut doors = Vec::new();
    let mut mailboxes = Vec::new();
    for cells in cells {
        let (sender, receiver) = mpsc::channel(ON_THE_WAY);
        doors.push(Neighbour { cells: Arc::clone(cells), coming: Arc::default(), sender });
        mailboxes.push(Mailbox { receiver });
    }
    let others = |own: usize| {
        let others = doors.iter().enumerate().filter(|(number, _)| *number != own);
        Neighbours { others: others.map(|(_, other)| other.clone()).collect() }
    };
    let ends = mailboxes.into_iter().enumerate();
    ends.map(|(own, mailbox)| Ends { neighbours: others(own), mailbox }).collect()
}

/// The other workers as one sees them. Each accept loop of a worker holds them, and lets go when it accepts no more.
#[derive(Clone)]
pub(super) struct Neighbours {
    others: Vec<Neighbour>,
}

#[derive(Clone)]
struct Neighbour {
    cells: Arc<Cells>,
    /// Connections that are on their way to it.
    coming: Arc<AtomicUsize>,
    sender: mpsc::Sender<Handed>,
}

impl Neighbour {
    fn load(&self) -> usize {
        let open = usize::try_from(self.cells.connections.open.value()).unwrap_or(0);
        open + self.coming.load(Ordering::Relaxed)
    }
}

/// An connection on its way; counted until it is admitted, or lost with the worker that it went to.
pub(super) struct Handed {
    /// The connection.
    pub(super) connection: NewConnection,
    _coming: Coming,
}

struct Coming(Arc<AtomicUsize>);

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Neighbours {
    /// Gives the connection away if it is better off elsewhere; gives it back if it held. `own`: connections that this
    /// worker has; `total`: those that all have.
    pub(super) fn relieve(
        &self,
        connection: NewConnection,
        own: usize,
        total: usize,
    ) -> Option<NewConnection> {
        let loads = self.others.iter().map(Neighbour::load);
        let Some(other) = choose(own, total, loads).and_then(|place| self.others.get(place)) else {
            return Some(connection);
        };
        other.coming.fetch_add(1, Ordering::Relaxed);
        let handed = Handed { connection, _coming: Coming(Arc::clone(&other.coming)) };
        match other.sender.try_send(handed) {
            Ok(()) => None,
            // It is stuck, or has ended.
            Err(mpsc::error::TrySendError::Full(back) | mpsc::error::TrySendError::Closed(back)) => {
                Some(back.connection)
            }
        }
    }
}

/// What other workers hand to one.
pub(super) struct Mailbox {
    receiver: mpsc::Receiver<Handed>,
}

impl Mailbox {
    /// The next one; `None` once no other worker accepts any more and all were taken.
    pub(super) async fn next(&mut self) -> Option<Handed> {
        self.receiver.recv().await
    }
}

/// Which of the others a worker with `own` of all `total` connections should give the next one to; `None`: it keeps
/// it. Looks at `others` only when it has more than its share.
fn choose(own: usize, total: usize, others: impl ExactSizeIterator<Item = usize>) -> Option<usize> {
    let share = total / (others.len() + 1);
    // What a fair hash leaves by chance: about the square root of the share.
    let chance = 1 + share.isqrt();
    if own <= share + chance {
        return None;
    }
    let (place, least) = others.enumerate().min_by_key(|(_, load)| *load)?;
    (least + chance < own).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::fixtures::{context, here};

    fn choice(own: usize, others: &[usize]) -> Option<usize> {
        choose(own, own + others.iter().sum::<usize>(), others.iter().copied())
    }

    #[test]
    fn a_spread_that_chance_explains_is_left_alone() {
        for (own, others) in
            [(0, &[][..]), (1000, &[]), (0, &[0]), (2, &[0]), (40, &[30]), (0, &[9]), (20, &[16; 3])]
        {
            assert_eq!(choice(own, others), None, "{own} beside {others:?}");
        }
    }

    #[test]
    fn who_has_far_more_than_its_share_gives_to_who_has_least() {
        assert_eq!(choice(5, &[0]), Some(0));
        assert_eq!(choice(60, &[30, 20, 25]), Some(1));
        assert_eq!(choice(3000, &[2000]), Some(0));
        assert_eq!(choice(1000, &[990, 0, 980]), Some(1));
        assert_eq!(
            choose(60, 100, [57, 55].into_iter()),
            None,
            "the counters of others may be ahead of the total"
        );
    }

    #[test]
    fn others_are_not_even_looked_at_in_balance() {
        let others = [31; 3].into_iter().inspect(|_| panic!("looked at"));
        assert_eq!(choose(33, 126, others), None);
    }

    #[test]
    fn however_the_hash_falls_no_worker_gets_far_from_its_share() {
        for workers in [2, 4, 16] {
            let mut loads = vec![0usize; workers];
            for total in 0..2000 {
                // The worst hash there is.
                let others: Vec<usize> = loads[1..].to_vec();
                match choose(loads[0], total, others.into_iter()) {
                    Some(place) => loads[1 + place] += 1,
                    None => loads[0] += 1,
                }
            }
            let share = 2000 / workers;
            let (least, most) = (loads.iter().min(), loads.iter().max());
            assert!(most <= Some(&(share + 2 + share.isqrt())), "{loads:?}");
            assert!(least >= Some(&(share - 2 - share.isqrt())), "{loads:?}");
        }
    }

    fn connection() -> NewConnection {
        let (socket, _far) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
        NewConnection {
            socket: Accepted::Unix(socket),
            peer: Peer { accepted: crate::tick::Tick(7), ..Peer::default() },
            listener: Arc::clone(&*here(&context())),
        }
    }

    #[tokio::test]
    async fn what_was_handed_over_counts_for_the_receiver_until_it_is_taken_and_is_never_lost() {
        let cells = [Arc::new(Cells::default()), Arc::new(Cells::default())];
        let mut ends = link(&cells).into_iter();
        let (first, mut second) = ends.next().zip(ends.next()).expect("two workers");
        let relieve = |own| first.neighbours.relieve(connection(), own, own);
        assert!(relieve(5).is_none() && relieve(5).is_none() && relieve(5).is_none(), "they are taken");
        assert!(relieve(5).is_some(), "three on the way count like three that are there");
        assert_eq!(first.neighbours.others[0].load(), 3);
        let coming = Arc::clone(&first.neighbours.others[0].coming);
        drop(first);
        for left in [2, 1, 0] {
            let handed = second.mailbox.next().await.expect("one of the three");
            assert_eq!(handed.connection.peer.accepted, crate::tick::Tick(7));
            drop(handed);
            assert_eq!(coming.load(Ordering::Relaxed), left);
        }
        assert!(second.mailbox.next().await.is_none(), "nobody is left who could hand over more");
    }

    #[test]
    fn a_worker_that_takes_nothing_gets_no_more() {
        let cells = [Arc::new(Cells::default()), Arc::new(Cells::default())];
        let ends = link(&cells);
        let own = 100 * ON_THE_WAY;
        let kept =
            (0..ON_THE_WAY + 3).filter(|_| ends[0].neighbours.relieve(connection(), own, own).is_some());
        assert_eq!(kept.count(), 3);
        drop(ends);
    }
}
