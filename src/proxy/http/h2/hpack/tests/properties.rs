//! What holds of any lists, and of any bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::{encode, statics};
use super::model::{Form, Manner, ModelEncoder};
use super::*;

/// What the table of these tests may count at most.
const TABLE: usize = 400;

fn manners() -> impl Strategy<Value = Manner> {
    let form = select(vec![Form::Indexed, Form::Indexed, Form::Kept, Form::Kept, Form::Plain, Form::Never]);
    (form, any::<[bool; 4]>()).prop_map(|(form, [by_name, last, name, value])| Manner {
        form,
        by_name,
        last,
        coded: [name, value],
    })
}

/// Names and values that come again, and some that hold anything.
fn pairs() -> impl Strategy<Value = Pair> {
    let known = || {
        let fixed = statics::LINES.iter().map(pair);
        let own = ["x", "x-longer-name", "X-Bad", "content_length", ":path", "cookie"];
        let own = own.into_iter().map(|name| (name.as_bytes().to_vec(), b"value".to_vec()));
        select(fixed.chain(own).collect::<Vec<_>>())
    };
    prop_oneof![
        4 => known(),
        4 => (known(), "[a-c ]{0,3}").prop_map(|((name, _), value)| (name, value.into_bytes())),
        2 => (known(), vec(any::<u8>(), 0..200)).prop_map(|((name, _), value)| (name, value)),
        1 => (vec(any::<u8>(), 0..20), known()).prop_map(|(name, (_, value))| (name, value)),
        1 => (known(), 0..2 * TABLE).prop_map(|((name, _), length)| (name, vec![b'a'; length])),
    ]
}

/// A block: changes of the table's size, and lines.
type Plan = (Vec<usize>, Vec<(Pair, Manner)>);

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let sizes = prop_oneof![3 => Just(Vec::new()), 1 => vec(0..=TABLE, 1..=2)];
    vec((sizes, vec((pairs(), manners()), 0..12)), 1..12)
}

fn written(encoder: &mut ModelEncoder, (sizes, lines): &Plan) -> Vec<u8> {
    let mut block = Vec::new();
    for &size in sizes {
        encoder.resize(&mut block, size);
    }
    for (pair, manner) in lines {
        encoder.line(&mut block, pair, *manner);
    }
    block
}

/// What a decoder may hold at any time.
fn bound() -> usize {
    size_of::<HpackDecoder>() + 2 * TABLE + 64 + 2048
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn lists_written_in_any_manner_come_back_and_leave_the_same_table(plans in plans()) {
        let (mut encoder, mut decoder) = (ModelEncoder::new(TABLE), HpackDecoder::new(TABLE));
        for plan in &plans {
            let block = written(&mut encoder, plan);
            let lines = decode(&mut decoder, &block, MUCH);
            prop_assert_eq!(lines, Ok(plan.1.iter().map(|(pair, _)| pair.clone()).collect()));
            let table: Vec<Pair> = decoder.table().lines().map(|line| pair(&line)).collect();
            prop_assert_eq!(table, encoder.table.iter().cloned().collect::<Vec<_>>());
            prop_assert_eq!(decoder.table().sizes(), (encoder.size(), encoder.most));
            prop_assert!(decoder.memory() <= bound());
        }
    }

    #[test]
    fn a_limit_is_kept_to_the_byte(plans in plans(), most in 0..3_000_usize) {
        let (mut encoder, mut decoder) = (ModelEncoder::new(TABLE), HpackDecoder::new(TABLE));
        for plan in &plans {
            let block = written(&mut encoder, plan);
            let mut left = most;
            let sizes = plan.1.iter().map(|((name, value), _)| name.len() + value.len() + 32);
            let fit = sizes.map_while(|size| left.checked_sub(size).map(|now| left = now)).count();
            let mut seen = 0;
            let outcome = decoder.decode(&block, most, |_| seen += 1);
            prop_assert_eq!(seen, fit);
            prop_assert_eq!(outcome, if fit < plan.1.len() { Err(HpackError::TooLarge) } else { Ok(()) });
            if outcome.is_err() {
                break;
            }
        }
    }

    #[test]
    fn bytes_that_mean_nothing_do_no_harm(
        plans in plans(),
        noise in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        tail in vec(any::<u8>(), 0..40),
        most in 0..2_000_usize,
    ) {
        let (mut encoder, mut decoder) = (ModelEncoder::new(TABLE), HpackDecoder::new(TABLE));
        for plan in &plans {
            let mut block = [written(&mut encoder, plan), tail.clone()].concat();
            for (place, byte) in noise.iter().filter(|_| !plan.1.is_empty()) {
                let place = place.index(block.len());
                block[place] = *byte;
            }
            let mut total = 0;
            // A connection ends with an error; a decoder survives it all the same.
            let _ = decoder.decode(&block, most, |line| {
                check(line);
                total += line.size();
            });
            prop_assert!(total <= most);
            prop_assert!(decoder.memory() <= bound());
            prop_assert!(decoder.table().sizes().0 <= decoder.table().sizes().1);
        }
    }

    #[test]
    fn what_we_write_is_read_as_it_was_meant(lines in vec(pairs(), 0..20)) {
        let mut block = Vec::new();
        encode::table_size_zero(&mut block);
        for (name, value) in &lines {
            encode::field(&mut block, name, value);
        }
        let lines: Vec<Pair> = lines.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let mut decoder = HpackDecoder::new(4096);
        prop_assert_eq!(decode(&mut decoder, &block, MUCH), Ok(lines));
        prop_assert_eq!(decoder.table().sizes(), (0, 0));
    }
}
