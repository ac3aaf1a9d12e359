//! Clients whose flows were answered and have made way for others: who comes back goes where it was, and is let in before strangers are.

use std::collections::{HashMap, VecDeque};

use crate::message::BackendId;

use super::flows::FlowClient;

/// So many are remembered; the oldest are forgotten.
const REMEMBERED: usize = 16_384;

/// Those of one socket. Invariant: each client of `places` stands in `order` at least once, and nobody else does but those who have come back
/// since.
#[derive(Debug, Default)]
pub struct ReturningClients {
    places: HashMap<FlowClient, BackendId>,
    order: VecDeque<FlowClient>,
}

impl ReturningClients {
    /// Remembers where a client was.
    pub fn remember(&mut self, client: FlowClient, backend: BackendId) {
        if self.places.insert(client, backend).is_none() {
            self.order.push_back(client);
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.places.remove(&oldest);
            }
        }
    }

    /// Whether a client was here.
    #[must_use]
    pub fn knows(&self, client: &FlowClient) -> bool {
        !self.places.is_empty() && self.places.contains_key(client)
    }

    /// Where a client was that has come now; it is forgotten.
    pub fn take(&mut self, client: &FlowClient) -> Option<BackendId> {
        if self.places.is_empty() { None } else { self.places.remove(client) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn client(number: u32) -> FlowClient {
        let [a, b, c, d] = number.to_be_bytes();
        FlowClient { address: SocketAddr::from(([10, a, b, c], 1000 + u16::from(d))), to: None }
    }

    #[test]
    fn who_was_here_is_known_once_and_not_for_ever() {
        let mut clients = ReturningClients::default();
        clients.remember(client(0), BackendId(7));
        clients.remember(client(0), BackendId(8));
        assert_eq!(clients.take(&client(0)), Some(BackendId(8)));
        assert_eq!(clients.take(&client(0)), None);
        for number in 0..40_000 {
            clients.remember(client(number), BackendId(1));
        }
        assert_eq!(clients.take(&client(0)), None, "that was long ago");
        assert_eq!(clients.take(&client(39_999)), Some(BackendId(1)));
        assert!(clients.places.len() <= REMEMBERED && clients.order.len() <= REMEMBERED);
    }
}
