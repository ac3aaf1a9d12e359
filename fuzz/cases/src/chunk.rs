//! Chunks may come in any pieces, and go on as they came or decoded: it is the same body.

use evenkeel::proxy::http::h1::chunk::{Chunks, Malformed};

/// What a chunked body was read as.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    /// What may go on.
    out: Vec<u8>,
    done: bool,
    trailers: Vec<u8>,
    content: u64,
    /// Bytes of the input that belong to the body, as far as is known.
    consumed: usize,
}

/// Any bytes as a chunked body. The first chooses the pieces they come in.
pub fn chunk(bytes: &[u8]) {
    let Some((&seed, input)) = bytes.split_first() else { return };
    let decoded = read(input, false, |left| left);
    let raw = read(input, true, |left| left);
    assert_eq!(decoded.is_ok(), raw.is_ok(), "decoded {decoded:?}, raw {raw:?}");
    for (raw, whole) in [(false, &decoded), (true, &raw)] {
        assert_eq!(&read(input, raw, |_| 1), whole, "byte by byte, raw: {raw}");
        let mut random = u64::from(seed) | 1;
        let piece = |left: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let most = if random >> 63 == 0 { 3 } else { 40 };
            1 + (random >> 33) as usize % most.min(left)
        };
        assert_eq!(&read(input, raw, piece), whole, "in pieces, raw: {raw}");
    }
    let (Ok(decoded), Ok(raw)) = (decoded, raw) else { return };
    assert_eq!(decoded.out.len() as u64, decoded.content);
    assert_eq!(
        (decoded.done, decoded.consumed, &decoded.trailers, decoded.content),
        (raw.done, raw.consumed, &raw.trailers, raw.content)
    );
    assert!(decoded.consumed <= input.len());
    if decoded.done {
        // What goes on raw, with an end of our own behind it, is the same body.
        let mut forwarded = raw.out;
        forwarded.extend_from_slice(b"0\r\n");
        forwarded.extend_from_slice(&raw.trailers);
        forwarded.extend_from_slice(b"\r\n");
        let length = forwarded.len();
        let again = read(&forwarded, false, |left| left).expect("what goes on is well-formed");
        assert_eq!(again, Read { consumed: length, ..decoded });
    }
}

/// Reads `input` in pieces as long as `piece` says, given what is left; never 0.
fn read(input: &[u8], raw: bool, mut piece: impl FnMut(usize) -> usize) -> Result<Read, Malformed> {
    let mut chunks = Chunks::default();
    let (mut held, mut out) = (Vec::new(), Vec::new());
    let (mut fed, mut consumed) = (0, 0);
    while fed < input.len() && !chunks.is_done() {
        let next = piece(input.len() - fed);
        held.extend_from_slice(&input[fed..fed + next]);
        fed += next;
        let found = chunks.scan(&mut held, raw)?;
        assert!(found.start <= found.end && found.end <= found.consumed && found.consumed <= held.len());
        out.extend_from_slice(&held[found.start..found.end]);
        held.drain(..found.consumed);
        consumed += found.consumed;
    }
    let (done, trailers, content) = (chunks.is_done(), chunks.trailers().to_vec(), chunks.content);
    Ok(Read { out, done, trailers, content, consumed })
}
