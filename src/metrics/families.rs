//! All families, in the order in which they are written.

use super::family::Family;
use super::{cached, clients, cluster, control, datagrams, gates, names, process, times, upstream};

/// Every family there is.
pub fn all() -> impl Iterator<Item = &'static Family> {
    let groups = [
        clients::FAMILIES,
        datagrams::FAMILIES,
        times::FAMILIES,
        upstream::FAMILIES,
        cached::FAMILIES,
        gates::FAMILIES,
        control::FAMILIES,
        cluster::FAMILIES,
        names::FAMILIES,
        process::FAMILIES,
    ];
    groups.into_iter().flatten()
}
