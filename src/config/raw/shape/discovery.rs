//! The keys of backends that are found, and of who is asked for them.

use std::time::Duration;

use crate::config::model::discovery::AddressFamily;
use crate::config::raw::bounds::{ADDRESSES_MAX, COUNT_MAX, DAY, INTERVAL_MIN, MILLISECOND, MINUTE};
use crate::config::raw::kind::Kind::{Choice, OneOrItems, Time, Whole, Word};
use crate::config::raw::kind::{FILE, HOST, Key, SERVER, Shape, key, names};

/// `dns` of a backend.
pub(super) const FOUND_BY_NAME: Key = key(
    "dns",
    Word(HOST),
    "A name: each of its addresses is a backend, at `port`. DNS is asked again and again.",
);
/// `srv` of one.
pub(super) const FOUND_BY_SERVICE: Key = key(
    "srv",
    Word(HOST),
    "A service such as `_http._tcp.app.internal`: its SRV records say where backends are, and how much each gets.",
);
/// `file` of one.
pub(super) const FOUND_IN_FILE: Key = key("file", Word(FILE), "A file with a list of more backends.");
/// `family` of one.
pub(super) const FAMILY: Key =
    key("family", Choice(|| names(AddressFamily::ALL)), "Which addresses of a `dns` or `srv` are backends.")
        .or("any");

/// `resolver`.
pub(in crate::config::raw) const RESOLVER: Shape = Shape {
    title: "in `resolver`",
    path: "resolver.",
    needs: &[],
    keys: &[
        key(
            "servers",
            OneOrItems(&Word(SERVER)),
            "Who is asked: addresses, or `address:port`; by default those of `/etc/resolv.conf`, which is watched.",
        ),
        key("timeout", Time(MILLISECOND, MINUTE), "How long a server may take for one question.").or("2s"),
        key("attempts", Whole(1, COUNT_MAX), "How often a question is asked before it has failed.").or("2"),
        key("ttl_min", Time(INTERVAL_MIN, DAY), "Answers hold at least for so long, whatever their TTL.")
            .or("1s"),
        key("ttl_max", Time(INTERVAL_MIN, DAY), "They hold at most for so long.").or("5m"),
        key(
            "hold",
            Time(Duration::ZERO, DAY),
            "An address that answers lack stays for so long at least, and for three times their TTL.",
        )
        .or("30s"),
        key(
            "addresses",
            Whole(1, ADDRESSES_MAX),
            "The most addresses that one name has; others are left out.",
        )
        .or("1000"),
    ],
};
