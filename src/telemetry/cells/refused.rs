//! What was refused for want of room or of a local resource, or cut: where, why, how often. Counted where it happens, so that it
//! costs nothing where it does not.

use super::counter::Counter;
use super::table::Table;
use crate::message::{Cause, ListenerId, TargetId};

/// Where something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusedAt {
    /// A connection, at this listener.
    Listener(ListenerId),
    /// A request or a TCP connection, on the way to this target's backends.
    Target(TargetId),
}

/// Why connections are refused.
const OF_CONNECTIONS: [Cause; 3] = [Cause::AccessDenied, Cause::TooManyConnections, Cause::TooManyFromClient];
/// Our own errors that are no word about backends.
const OF_REQUESTS: [Cause; 4] =
    [Cause::QueueFull, Cause::QueueTimeout, Cause::LocalShortage, Cause::NoLocalPort];

#[derive(Debug, Default)]
struct ListenerRow {
    refused: [Counter; OF_CONNECTIONS.len()],
    cut: Counter,
    dropped_lines: Counter,
}

/// What one worker refused. Its numbers only grow, also when a listener or a target gets the number of another one: who reads them
/// looks at what has been added.
#[derive(Debug, Default)]
pub struct RefusalCells {
    listeners: Table<ListenerRow>,
    targets: Table<[Counter; OF_REQUESTS.len()]>,
}

impl RefusalCells {
    /// Counts a connection that was turned away. Only the owning worker calls this.
    #[cold]
    pub fn turn_away(&self, listener: ListenerId, cause: Cause) {
        if let Some(place) = OF_CONNECTIONS.iter().position(|one| *one == cause) {
            self.listeners.entry(listener.0.into()).refused[place].increment();
        }
    }

    /// Counts a request, or a TCP connection, that came to nothing for this cause if that is a refusal. Only the owning worker
    /// calls this.
    #[cold]
    pub fn refuse(&self, target: TargetId, cause: Cause) {
        if let Some(place) = OF_REQUESTS.iter().position(|one| *one == cause) {
            self.targets.entry(target.0.into())[place].increment();
        }
    }

    /// Counts connections of a listener whose time is up. Only the owning worker calls this.
    #[cold]
    pub fn cut(&self, listener: ListenerId, connections: usize) {
        self.listeners.entry(listener.0.into()).cut.add(connections as u64);
    }

    /// Counts header lines that a route of a listener was to write and that were left out, because their value would have been none:
    /// [`Cause::FieldDropped`]. Only the owning worker calls this.
    #[cold]
    pub fn drop_lines(&self, listener: ListenerId, lines: usize) {
        self.listeners.entry(listener.0.into()).dropped_lines.add(lines as u64);
    }

    /// What was refused so far, and how often.
    pub fn refused(&self) -> impl Iterator<Item = (RefusedAt, Cause, u64)> {
        let connections = self.listeners.iter().flat_map(|(number, row)| {
            let at = RefusedAt::Listener(ListenerId(short(number)));
            OF_CONNECTIONS.iter().zip(&row.refused).map(move |(cause, count)| (at, *cause, count.value()))
        });
        let requests = self.targets.iter().flat_map(|(number, counts)| {
            let at = RefusedAt::Target(TargetId(short(number)));
            OF_REQUESTS.iter().zip(counts).map(move |(cause, count)| (at, *cause, count.value()))
        });
        connections.chain(requests).filter(|(_, _, count)| *count > 0)
    }

    /// How many connections were cut so far, by listener.
    pub fn cuts(&self) -> impl Iterator<Item = (ListenerId, u64)> {
        let all = self.listeners.iter().map(|(number, row)| (ListenerId(short(number)), row.cut.value()));
        all.filter(|(_, count)| *count > 0)
    }
}

impl RefusalCells {
    /// How many header lines were left out so far, by listener.
    pub fn dropped_lines(&self) -> impl Iterator<Item = (ListenerId, u64)> {
        let all = self.listeners.iter();
        let all = all.map(|(number, row)| (ListenerId(short(number)), row.dropped_lines.value()));
        all.filter(|(_, count)| *count > 0)
    }
}

/// A number of a table as that of a listener or a target, which are no greater.
fn short(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_refusal_of_ours_is_not_counted() {
        let cells = RefusalCells::default();
        let (web, app) = (ListenerId(3), TargetId(40));
        cells.turn_away(web, Cause::TooManyFromClient);
        cells.turn_away(web, Cause::AccessDenied);
        cells.turn_away(web, Cause::TooManyConnections);
        cells.turn_away(web, Cause::BadHead);
        for cause in [Cause::QueueFull, Cause::QueueFull, Cause::NoBackend, Cause::TooManyConnections] {
            cells.refuse(app, cause);
        }
        cells.cut(ListenerId(4), 7);
        assert_eq!(
            cells.refused().collect::<Vec<_>>(),
            [
                (RefusedAt::Listener(web), Cause::AccessDenied, 1),
                (RefusedAt::Listener(web), Cause::TooManyConnections, 1),
                (RefusedAt::Listener(web), Cause::TooManyFromClient, 1),
                (RefusedAt::Target(app), Cause::QueueFull, 2),
            ]
        );
        assert_eq!(cells.cuts().collect::<Vec<_>>(), [(ListenerId(4), 7)]);
        cells.drop_lines(web, 2);
        assert_eq!(cells.dropped_lines().collect::<Vec<_>>(), [(web, 2)]);
    }
}
