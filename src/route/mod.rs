//! Which requests on a listener go to which target.
//!
//! `proxy` asks once per request (HTTP) or connection (TCP). Every route is a catch-all today, so the
//! first one wins; rules on host, path and headers come with the routing feature and change only this file.

use crate::config::model;

/// The routes of one listener, ready to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    target: usize,
}

impl Router {
    /// Builds the router of `listener`.
    ///
    /// An accepted listener has at least one route; one without any gets the first target, so that a
    /// hand-built model in a test need not care.
    #[must_use]
    pub fn new(listener: &model::ListenerConfig) -> Router {
        Router { target: listener.routes.first().map_or(0, |route| route.target) }
    }

    /// The target's place in the list that the routes name.
    #[must_use]
    pub fn find(&self) -> usize {
        self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::{ClientTimeouts, Forwarded, Limits, ListenerConfig, Protocol, Route};

    #[test]
    fn the_first_route_wins() {
        let mut listener = ListenerConfig {
            name: "web".into(),
            protocol: Protocol::Http,
            tls: None,
            binds: Vec::new(),
            routes: vec![Route { target: 3 }, Route { target: 1 }],
            limits: Limits::default(),
            client_timeouts: ClientTimeouts::default(),
            forwarded: Forwarded::default(),
            x_real_ip: false,
        };
        assert_eq!(Router::new(&listener).find(), 3);
        listener.routes.clear();
        assert_eq!(Router::new(&listener).find(), 0);
    }
}
