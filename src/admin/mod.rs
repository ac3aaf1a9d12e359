//! The admin API: how a process is asked and told things while it serves. HTTP/1.1 with JSON over a unix socket that only the
//! process's user and root may talk to, and over TCP where that is asked for. It runs on control and shares nothing with traffic.

mod alias_routes;
pub mod api;
pub mod block_routes;
pub mod cache_routes;
pub mod cluster;
pub mod config_routes;
pub mod dashboard;
pub mod dispatch;
pub mod door;
pub mod event_feed;
pub mod event_routes;
pub mod exchange;
mod explain_routes;
pub mod hand_routes;
mod history;
pub mod life_routes;
pub mod listener;
pub mod openapi;
pub mod requests;
pub mod route;
pub mod routes;
pub mod schemas;
mod scrape;
pub mod status;
pub mod status_routes;
pub mod trial_routes;
pub mod upgrading;
pub mod wire;

pub use api::{AboutProcess, Api, TextLoader};
pub use door::tcp::{AdminDoor, Desk};
pub use exchange::caller::Caller;
pub use exchange::problem_document::ProblemDocument;
pub use exchange::question::CONFIG_MAX;
pub use explain_routes::Explanation;
pub use listener::{AdminListener, Unopened};
