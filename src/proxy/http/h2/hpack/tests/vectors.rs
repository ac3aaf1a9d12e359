//! What another encoder writes: `fixtures/hpack`, made by scripts/make_hpack_fixtures.py, which says how to read it.

use super::*;

const CONNECTIONS: &str = include_str!("../../../../../../fixtures/hpack/connections.txt");

/// The bytes of a text with escapes.
fn unescape(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some((before, behind)) = rest.split_once('\\') {
        out.extend_from_slice(before.as_bytes());
        let (kind, behind) = behind.split_at(1);
        rest = behind;
        out.extend(match kind {
            "t" => b"\t".to_vec(),
            "n" => b"\n".to_vec(),
            "r" => b"\r".to_vec(),
            "x" => {
                rest = &behind[2..];
                bytes(&behind[..2])
            }
            _ => b"\\".to_vec(),
        });
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

/// A block, what its encoder's table counts behind it and of how many lines, and what it stands for.
struct Vector {
    block: Vec<u8>,
    table: (usize, usize),
    lines: Vec<Pair>,
}

/// The blocks of each connection.
fn connections() -> Vec<Vec<Vector>> {
    let mut connections: Vec<Vec<Vector>> = Vec::new();
    for line in CONNECTIONS.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["connection", _] => connections.push(Vec::new()),
            ["size", _] => {}
            ["block", digits] => {
                let vector = Vector { block: bytes(digits), table: (0, 0), lines: Vec::new() };
                connections.last_mut().expect("a connection").push(vector);
            }
            ["table", size, count] => {
                let vector = connections.last_mut().and_then(|blocks| blocks.last_mut()).expect("a block");
                vector.table = (size.parse().expect("a number"), count.parse().expect("a number"));
            }
            _ => {
                let at = 1 + line[1..].find(": ").expect("a line");
                let vector = connections.last_mut().and_then(|blocks| blocks.last_mut()).expect("a block");
                vector.lines.push((unescape(&line[..at]), unescape(&line[at + 2..])));
            }
        }
    }
    connections
}

#[test]
fn blocks_of_another_encoder_are_read_as_it_meant_them() {
    let connections = connections();
    assert!(connections.len() >= 8, "{} connections", connections.len());
    let (mut blocks, mut evicted, mut resized) = (0, 0, 0);
    for (number, vectors) in connections.iter().enumerate() {
        let mut decoder = HpackDecoder::new(4096);
        for (at, vector) in vectors.iter().enumerate() {
            let before = decoder.table().lines().count();
            let lines = decode(&mut decoder, &vector.block, MUCH);
            assert_eq!(lines.as_ref(), Ok(&vector.lines), "block {at} of connection {number}");
            let table = (decoder.table().sizes().0, decoder.table().lines().count());
            assert_eq!(table, vector.table, "block {at} of connection {number}");
            blocks += 1;
            evicted += usize::from(table.1 < before);
            resized += usize::from(matches!(vector.block.first(), Some(0x20..=0x3f)));
        }
    }
    assert!(blocks > 200 && evicted > 10 && resized > 20, "{blocks} blocks, {evicted}, {resized}");
}

#[test]
fn what_we_write_of_the_same_lists_is_read_as_they_are() {
    for vector in connections().iter().flatten() {
        let mut block = Vec::new();
        for (name, value) in &vector.lines {
            super::super::encode::field(&mut block, name, value);
        }
        let lowered = |(name, value): &Pair| (name.to_ascii_lowercase(), value.clone());
        let expected: Vec<Pair> = vector.lines.iter().map(lowered).collect();
        assert_eq!(decode(&mut HpackDecoder::new(0), &block, MUCH), Ok(expected));
    }
}
