//! Processes that act as one: who is there, and what they share.
//!
//! What they share are rows of a [`ClusterStore`](crate::store::shared::ClusterStore). Nothing on the way of a request waits for it: a node holds
//! what it knows, and what it knows stays when nobody tells it anything any more. `rows` and `membership` decide, without a clock or a socket; `node` speaks
//! with the store.

pub mod heir;
mod leaving;
pub mod membership;
pub mod node;
pub mod packed;
pub mod proposing;
mod refusing;
pub mod revision;
pub mod rows;
pub mod view;
