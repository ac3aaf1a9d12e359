//! Which records are logged when not all of them are. A decision about one record: the same record gets the
//! same answer on every worker, in every process.

use crate::config::model::Share;
use crate::message::{Cause, Record};

/// The share of records like this one that is logged; `None`: this one is not.
///
/// Whatever went wrong is logged: a cause, or a status of 500 and above, or one of gRPC that stands for such a one. The others are chosen by their number;
/// so two proxies in a row that agree on it and on the share log the same requests.
pub(super) fn share_of(share: Share, record: &Record) -> Option<Share> {
    if share == Share::ALL || record.cause != Cause::Done || record.meaning() >= 500 {
        return Some(Share::ALL);
    }
    // 32 evenly spread bits as a place among a million.
    let bits = spread(number(record)) >> 32;
    let place = (bits * u64::from(Share::ALL.millionths())) >> 32;
    (place < u64::from(share.millionths())).then_some(share)
}

/// The number of the request or connection. Of a record without one its time, and on a busy listener its port, tell it from others.
fn number(record: &Record) -> u64 {
    if record.id == 0 {
        return record.accepted.0.rotate_left(16) ^ record.client.map_or(0, |client| client.port.into());
    }
    // Both halves count: an id from elsewhere may vary in one of them only.
    let [high, low] = [(record.id >> 64) as u64, record.id as u64];
    high.rotate_left(32) ^ low
}

/// Splits neighbours far apart (the finalizer of SplitMix64); ids from elsewhere may just count up.
fn spread(mut value: u64) -> u64 {
    value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::message::{ClientAddress, RecordKind};
    use crate::tick::Tick;

    fn percent(percent: u32) -> Share {
        Share::from_millionths(percent * 10_000).expect("in range")
    }

    fn numbered(id: u128) -> Record {
        Record { id, status: 200, ..Record::default() }
    }

    /// How many of these are logged at 10 %.
    fn logged(records: impl Iterator<Item = Record>) -> usize {
        records.filter_map(|record| share_of(percent(10), &record)).count()
    }

    #[test]
    fn the_number_decides_and_a_larger_share_takes_what_a_smaller_one_took() {
        for id in 1..2000 {
            let record = numbered(id << 40);
            let taken: Vec<bool> =
                [1, 10, 50, 99].map(|share| share_of(percent(share), &record).is_some()).to_vec();
            assert!(taken.is_sorted(), "{id}: {taken:?}");
            let again = Record { bytes_in: 9, done: Tick(7), ..record };
            assert_eq!(share_of(percent(50), &again).is_some(), taken[2], "{id}");
        }
        assert_eq!(share_of(percent(10), &numbered(1)), None);
        let one = (1..).map(numbered).find_map(|record| share_of(percent(10), &record));
        assert_eq!(one, Some(percent(10)), "it says for how many it stands");
    }

    /// The numbers are fixed, and so are the counts.
    #[test]
    fn ids_of_any_kind_are_thinned_alike() {
        let near = |count: usize| (900..=1100).contains(&count);
        let counts = [
            logged((1..=10_000).map(numbered)),
            logged((1..=10_000).map(|id| numbered(id << 64))),
            logged((1..=10_000).map(|id| numbered(0x0190_0000_0000_7000_8000_0000_0000_0000 + (id << 80)))),
            logged((1..=10_000).map(|time| Record {
                kind: RecordKind::Tcp,
                accepted: Tick(time * 1000),
                ..Record::default()
            })),
            logged((1..=10_000).map(|port| Record {
                kind: RecordKind::Tcp,
                accepted: Tick(5),
                client: Some(ClientAddress::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
                ..Record::default()
            })),
        ];
        assert!(counts.into_iter().all(near), "{counts:?}");
    }

    #[test]
    fn what_went_wrong_is_always_logged_and_stands_for_itself() {
        let smallest = Share::from_millionths(1).expect("in range");
        for id in 1..500 {
            let fine = numbered(id);
            assert_eq!(share_of(Share::ALL, &fine), Some(Share::ALL));
            let broken = Record { cause: Cause::ClientGone, ..fine };
            assert_eq!(share_of(smallest, &broken), Some(Share::ALL));
            assert_eq!(share_of(smallest, &Record { status: 500, ..fine }), Some(Share::ALL));
            assert_eq!(share_of(smallest, &Record { status: 499, ..fine }), None);
        }
    }
}
