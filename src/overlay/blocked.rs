//! Networks that are kept out: what somebody wants → what is blocked after it, or why not. No file says anything of it.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::entry::{Author, LaterFields};
use super::rough::rough;
use crate::access::Networks;
use crate::config::Origin;

/// The most that may be blocked at once. Whoever has more has a list, and a file for it.
pub const BLOCKED_MAX: usize = 10_000;

/// One network that is kept out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedEntry {
    /// Greater than that of everything that was blocked before, by this process and by those before it.
    pub id: u64,
    /// Whom. v4 addresses mapped into v6 are v4, and nothing stands behind the prefix.
    #[serde(serialize_with = "write_network", deserialize_with = "read_network")]
    pub network: IpNet,
    /// What they had under way was left alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// Who said so.
    pub author: Author,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// When they are let in again, in milliseconds since 1970; `None`: when somebody says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// What a later version says of it beside that: it is kept as it is.
    #[serde(flatten)]
    pub more: LaterFields,
}

/// As events tell of it: `192.0.2.0/24 (by hand, uid 0, 2026-11-23T09:12:01Z)`.
impl fmt::Display for BlockedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = Origin::Hand { who: self.author.to_string().into(), at_ms: self.at_ms };
        write!(f, "{} ({by})", self.network)
    }
}

/// What is blocked, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedReport {
    /// As it is kept.
    #[serde(flatten)]
    pub entry: BlockedEntry,
    /// Milliseconds until it is over by itself; absent: it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_in_ms: Option<u64>,
}

impl BlockedReport {
    /// As `entry` is at `now_ms`.
    #[must_use]
    pub fn of(entry: &BlockedEntry, now_ms: u64) -> BlockedReport {
        let ends_in_ms = entry.expires_ms.map(|end| end.saturating_sub(now_ms));
        BlockedReport { entry: entry.clone(), ends_in_ms }
    }

    /// Who, by whom, and until when: `192.0.2.0/24 (by hand, uid 0, 2026-11-23T09:12:01Z), over in 1h`.
    #[must_use]
    pub fn words(&self) -> String {
        let kept = if self.entry.keep { ", what was under way was left" } else { "" };
        let over = self.ends_in_ms.map_or(String::new(), |end| format!(", over in {}", rough(end)));
        format!("{}{kept}{over}", self.entry)
    }
}

/// One line: `! blocked 192.0.2.0/24 (by hand, uid 0, 2026-11-23T09:12:01Z), over in 1h`.
impl fmt::Display for BlockedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "! blocked {}", self.words())
    }
}

/// Somebody is to be kept out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockWish {
    /// Whom.
    pub network: IpNet,
    /// What they have under way is left alone.
    pub keep: bool,
    /// By whom.
    pub author: Author,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Until when, in milliseconds since 1970; `None`: until somebody says otherwise.
    pub expires_ms: Option<u64>,
}

/// Why nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockDeclined {
    /// It is not blocked; what is, near to it.
    Missing(String),
    /// There are [`BLOCKED_MAX`] already.
    Full,
}

impl fmt::Display for BlockDeclined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockDeclined::Missing(why) => f.write_str(why),
            BlockDeclined::Full => write!(
                f,
                "{BLOCKED_MAX} networks are blocked, as many as can be; a longer list is one of `access_lists`"
            ),
        }
    }
}

/// Reads an address or a network: `192.0.2.7`, `192.0.2.0/24`, `2001:db8::/32`. A v4 address mapped into v6 is v4.
///
/// # Errors
/// It is neither, or an address inside a network: what would be right.
pub fn network_of(text: &str) -> Result<IpNet, String> {
    let network = match text.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => text.parse::<IpNet>().map_err(|_| {
            "an address such as `192.0.2.7` or `2001:db8::7`, or a network such as `192.0.2.0/24`".to_owned()
        })?,
    };
    if network.trunc() != network {
        return Err(format!(
            "`{}` for the network or `{}` for the one address",
            network.trunc(),
            network.addr()
        ));
    }
    Ok(match network {
        IpNet::V6(v6) => match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96)) {
            (Some(v4), Some(prefix)) => Ipv4Net::new(v4, prefix).map_or(network, IpNet::V4),
            _ => network,
        },
        IpNet::V4(_) => network,
    })
}

/// What is blocked after `wish`, and the new one, which has the id `next_id`. It takes the place of one of the same network.
///
/// # Errors
/// There are too many.
pub fn block(
    blocked: &[BlockedEntry],
    wish: &BlockWish,
    next_id: u64,
) -> Result<(Vec<BlockedEntry>, BlockedEntry), BlockDeclined> {
    let BlockWish { network, keep, author, at_ms, expires_ms } = wish.clone();
    let mut left: Vec<BlockedEntry> =
        blocked.iter().filter(|entry| entry.network != network).cloned().collect();
    if left.len() >= BLOCKED_MAX {
        return Err(BlockDeclined::Full);
    }
    let entry =
        BlockedEntry { id: next_id, network, keep, author, at_ms, expires_ms, more: LaterFields::new() };
    left.push(entry.clone());
    Ok((left, entry))
}

/// What is blocked without `network`, and what that was.
///
/// # Errors
/// It is not blocked as such.
pub fn unblock(
    blocked: &[BlockedEntry],
    network: IpNet,
) -> Result<(Vec<BlockedEntry>, BlockedEntry), BlockDeclined> {
    match blocked.iter().position(|entry| entry.network == network) {
        Some(place) => {
            let mut left = blocked.to_vec();
            let entry = left.remove(place);
            Ok((left, entry))
        }
        None => Err(BlockDeclined::Missing(format!("{network} is not blocked{}", nearest(blocked, network)))),
    }
}

/// What of what is blocked has to do with `network`.
fn nearest(blocked: &[BlockedEntry], network: IpNet) -> String {
    /// As many are named.
    const FEW: usize = 5;
    let named = |entries: &[&BlockedEntry]| {
        let mut text =
            entries.iter().take(FEW).map(|entry| entry.network.to_string()).collect::<Vec<_>>().join(", ");
        if let Some(more) = entries.len().checked_sub(FEW).filter(|more| *more > 0) {
            text += &format!(" and {more} more");
        }
        text
    };
    let around: Vec<&BlockedEntry> =
        blocked.iter().filter(|entry| entry.network.contains(&network)).collect();
    if !around.is_empty() {
        return format!("; it is inside of {}, which is", named(&around));
    }
    let inside: Vec<&BlockedEntry> =
        blocked.iter().filter(|entry| network.contains(&entry.network)).collect();
    if !inside.is_empty() {
        return format!("; inside of it {} is", named(&inside));
    }
    match blocked {
        [] => "; nothing is".to_owned(),
        few if few.len() <= FEW => format!("; what is: {}", named(&few.iter().collect::<Vec<_>>())),
        many => format!("; {} others are", many.len()),
    }
}

/// What is left of `blocked` at `now_ms`, and what is over.
#[must_use]
pub fn blocked_until_now(blocked: &[BlockedEntry], now_ms: u64) -> (Vec<BlockedEntry>, Vec<BlockedEntry>) {
    blocked.iter().cloned().partition(|entry| entry.expires_ms.is_none_or(|end| end > now_ms))
}

/// When the next one is over, in milliseconds since 1970.
#[must_use]
pub fn next_let_in(blocked: &[BlockedEntry]) -> Option<u64> {
    blocked.iter().filter_map(|entry| entry.expires_ms).min()
}

/// By which it is told who is kept out.
#[must_use]
pub fn networks(blocked: &[BlockedEntry]) -> Networks {
    // Each once, in a form that does not hang on when it was blocked.
    let all: BTreeSet<IpNet> = blocked.iter().map(|entry| entry.network).collect();
    Networks::new(&[], &all.into_iter().collect::<Vec<_>>())
}

fn write_network<S: Serializer>(network: &IpNet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(network)
}

fn read_network<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IpNet, D::Error> {
    let text = String::deserialize(deserializer)?;
    network_of(&text).map_err(|expected| de::Error::custom(format!("no network: {expected}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(network: &str, expires_ms: Option<u64>) -> BlockWish {
        let network = network_of(network).expect("a network");
        BlockWish { network, keep: false, author: Author::Uid(0), at_ms: 1, expires_ms }
    }

    fn shown(blocked: &[BlockedEntry]) -> Vec<String> {
        blocked.iter().map(|entry| format!("{} {}", entry.id, entry.network)).collect()
    }

    fn blocked(all: &[&str]) -> Vec<BlockedEntry> {
        let mut entries = Vec::new();
        for (id, network) in (1..).zip(all) {
            entries = block(&entries, &wish(network, None), id).expect("there is room").0;
        }
        entries
    }

    #[test]
    fn a_network_is_read_in_one_form() {
        for (text, read) in [
            ("192.0.2.7", "192.0.2.7/32"),
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("2001:db8::7", "2001:db8::7/128"),
            ("::ffff:192.0.2.7", "192.0.2.7/32"),
            ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(network_of(text).map(|network| network.to_string()), Ok(read.to_owned()), "{text}");
        }
        assert_eq!(
            network_of("192.0.2.7/24"),
            Err("`192.0.2.0/24` for the network or `192.0.2.7` for the one address".to_owned())
        );
        for text in ["", "a", "192.0.2.0/33", "192.0.2", "1.2.3.4/", "::1%eth0", "192.0.2.7:80"] {
            assert!(network_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_network_is_blocked_once_and_the_last_word_holds() {
        let twice = blocked(&["192.0.2.0/24", "10.0.0.1", "192.0.2.0/24"]);
        assert_eq!(shown(&twice), ["2 10.0.0.1/32", "3 192.0.2.0/24"]);
        let (left, gone) = unblock(&twice, network_of("10.0.0.1").unwrap()).expect("it is blocked");
        assert_eq!((shown(&left), gone.id), (vec!["3 192.0.2.0/24".to_owned()], 2));
    }

    #[test]
    fn what_is_not_blocked_is_told_what_is() {
        let told = |all: &[&str], network: &str| {
            let declined = unblock(&blocked(all), network_of(network).unwrap()).expect_err("it is not");
            declined.to_string()
        };
        assert_eq!(told(&[], "192.0.2.7"), "192.0.2.7/32 is not blocked; nothing is");
        assert_eq!(
            told(&["192.0.2.0/24"], "192.0.2.7"),
            "192.0.2.7/32 is not blocked; it is inside of 192.0.2.0/24, which is"
        );
        assert_eq!(
            told(&["192.0.2.7", "192.0.2.9"], "192.0.2.0/24"),
            "192.0.2.0/24 is not blocked; inside of it 192.0.2.7/32, 192.0.2.9/32 is"
        );
        assert_eq!(told(&["10.0.0.1"], "192.0.2.7"), "192.0.2.7/32 is not blocked; what is: 10.0.0.1/32");
        let many: Vec<String> = (1..=6).map(|number| format!("10.0.0.{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(told(&many, "192.0.2.7"), "192.0.2.7/32 is not blocked; 6 others are");
    }

    #[test]
    fn what_is_over_is_let_in_again() {
        let (mut all, _) = block(&[], &wish("10.0.0.1", Some(5)), 1).unwrap();
        all = block(&all, &wish("10.0.0.2", Some(9)), 2).unwrap().0;
        all = block(&all, &wish("10.0.0.3", None), 3).unwrap().0;
        assert_eq!(next_let_in(&all), Some(5));
        let (left, over) = blocked_until_now(&all, 5);
        assert_eq!((left.len(), over.len(), next_let_in(&left)), (2, 1, Some(9)));
        assert_eq!(next_let_in(&blocked_until_now(&left, 100).0), None);
    }

    #[test]
    fn there_are_only_so_many() {
        let one = blocked(&["10.0.0.1"]).remove(0);
        let entry = |number: u32| BlockedEntry {
            id: u64::from(number) + 1,
            network: IpNet::from(IpAddr::from(number.to_be_bytes())),
            ..one.clone()
        };
        let full: Vec<BlockedEntry> = (0..10_000).map(entry).collect();
        assert_eq!(block(&full, &wish("192.0.2.7", None), 20_000), Err(BlockDeclined::Full));
        assert!(block(&full, &wish("0.0.0.7", None), 20_000).is_ok(), "it takes the place of another");
    }

    #[test]
    fn an_entry_is_the_same_when_it_comes_back_from_json() {
        let (_, plain) = block(&[], &wish("2001:db8::/32", None), 7).unwrap();
        let other = BlockedEntry { keep: true, expires_ms: Some(9), ..plain.clone() };
        for entry in [plain, other] {
            let json = serde_json::to_string(&entry).expect("JSON");
            assert_eq!(serde_json::from_str::<BlockedEntry>(&json).expect(&json), entry, "{json}");
        }
        let wrong = r#"{"id":1,"network":"10.0.0.1/8","author":"uid 0","at_ms":1}"#;
        assert!(serde_json::from_str::<BlockedEntry>(wrong).is_err());
    }
}
