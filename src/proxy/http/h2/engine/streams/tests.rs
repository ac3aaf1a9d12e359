use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The invariants that stand above.
fn check(streams: &Streams<u32>, expected: &BTreeMap<u32, u32>) {
    assert_eq!(streams.len(), expected.len());
    assert_eq!(streams.is_empty(), expected.is_empty());
    assert_eq!(streams.numbers.len(), streams.streams.len());
    assert!(streams.numbers.is_empty() || streams.numbers.len().is_power_of_two());
    assert!(streams.count * 4 <= streams.numbers.len() * 3, "a quarter is free");
    for (place, (number, stream)) in streams.numbers.iter().zip(&streams.streams).enumerate() {
        assert_eq!(*number == FREE, stream.is_none());
        let steps = place.wrapping_sub(streams.home(*number)) & (streams.numbers.len() - 1);
        assert!(*number == FREE || steps <= streams.farthest);
    }
    let all: BTreeMap<u32, u32> =
        streams.ids().map(|id| (id, *streams.get(id).expect("it is there"))).collect();
    assert_eq!(all, *expected);
    let mut values: Vec<u32> = streams.values().copied().collect();
    values.sort_unstable();
    let mut wanted: Vec<u32> = expected.values().copied().collect();
    wanted.sort_unstable();
    assert_eq!(values, wanted);
}

#[test]
fn of_no_streams_none_is_found_and_none_has_the_number_of_the_connection() {
    let mut streams: Streams<u32> = Streams::default();
    for id in [0, 1, 2, u32::MAX] {
        assert_eq!(streams.get(id), None);
        streams.remove(id);
        assert_eq!(streams.get_mut(id), None);
    }
    streams.insert(1, 10);
    assert_eq!(streams.get(0), None);
    assert_eq!(streams.get_mut(0), None);
    streams.remove(0);
    assert_eq!((streams.len(), streams.get(1)), (1, Some(&10)));
    streams.remove(1);
    assert_eq!((streams.len(), streams.get(1)), (0, None));
    assert_eq!(streams.numbers.len(), FEW, "its places stay");
}

#[test]
fn numbers_one_after_the_other_stand_where_they_ask_to() {
    let mut streams = Streams::default();
    for id in (1..2_001).step_by(2) {
        streams.insert(id, id);
        if id > 64 {
            assert_eq!(streams.get(id - 64), Some(&(id - 64)));
            streams.remove(id - 64);
        }
        assert_eq!(streams.farthest, 0, "{id}");
    }
    assert_eq!(streams.numbers.len(), 64, "32 at a time");
}

#[test]
fn a_peer_that_leaves_numbers_out_is_served_too() {
    let ids: Vec<u32> = (0..256).map(|number| 1 + (number << 20)).collect();
    let mut streams = Streams::default();
    ids.iter().for_each(|&id| streams.insert(id, id));
    assert_eq!(streams.numbers.len(), 512, "it takes no more room");
    for &id in ids.iter().rev() {
        assert_eq!(streams.get(id), Some(&id));
        streams.remove(id);
        assert_eq!(streams.get(id), None);
    }
    assert!(streams.is_empty());
    assert_eq!((streams.farthest, streams.places()), (0, 0), "whoever comes behind them has nothing of it");
}

proptest! {
    /// Few numbers, of which many ask for the same places, also the last ones: so the table wraps and grows.
    #[test]
    fn what_a_map_would_have_is_there(steps in prop::collection::vec((0_u32..4, 0_u32..16, 0_u32..3), 0..200)) {
        let (mut streams, mut expected) = (Streams::default(), BTreeMap::new());
        for (kind, low, high) in steps {
            let id = 1 + 2 * (low | high << 6);
            match kind {
                0 | 1 if !expected.contains_key(&id) => {
                    streams.insert(id, id * 10);
                    expected.insert(id, id * 10);
                }
                2 => {
                    streams.values_mut().for_each(|value| *value += 1);
                    expected.values_mut().for_each(|value| *value += 1);
                }
                _ => {
                    streams.remove(id);
                    expected.remove(&id);
                }
            }
            prop_assert_eq!(streams.get_mut(id).copied(), expected.get(&id).copied());
            check(&streams, &expected);
        }
    }
}
