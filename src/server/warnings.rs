//! What is told of a config and of the machine before anything is served.

use crate::config::model::Config;
use crate::events;
use crate::net::socket;

/// All of it.
pub(super) fn tell(config: &Config) {
    small_backlog();
    config.unverified().for_each(events::upstream_unverified);
    config.fleeting().for_each(events::sticky_key_made);
}

fn small_backlog() {
    let read = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
    if let Some(most) = read.ok().and_then(|text| text.trim().parse::<i32>().ok())
        && most < socket::BACKLOG
    {
        events::backlog_capped(most, socket::BACKLOG);
    }
}
