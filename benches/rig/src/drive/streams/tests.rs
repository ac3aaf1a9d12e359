use super::*;

const FIRST: &[u8] = b"what is to be kept";
const NEXT: &[u8] = b"what was kept";

/// A connection that has asked `count` times.
fn asked(count: usize) -> Streams {
    let mut streams = Streams::begin();
    streams.ask(&Blocks { first: FIRST.to_vec(), next: NEXT.to_vec() }, count);
    streams
}

/// Type, flags, stream and payload of a frame.
type Sent<'a> = (u8, u8, u32, &'a [u8]);

fn frames(frames: &[Sent<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, flags, stream, payload) in frames {
        write(&mut bytes, *kind, *flags, *stream, payload);
    }
    bytes
}

/// Takes frames that answer with five bytes. Returns how many answers end with them.
fn take(streams: &mut Streams, bytes: &[u8]) -> Result<usize> {
    let mut count = 0;
    let taken = streams.take_all(bytes, 5, &mut || count += 1)?;
    assert_eq!(taken, bytes.len());
    Ok(count)
}

#[test]
fn a_wave_is_one_piece_and_the_first_begins_the_connection() {
    let mut streams = asked(2);
    let begun = [
        PREFACE,
        b"\0\0\x0c\x04\0\0\0\0\0\0\x02\0\0\0\0\0\x04\x01\0\0\0",
        b"\0\0\x04\x08\0\0\0\0\0\0\xff\0\x01",
        b"\0\0\x12\x01\x05\0\0\0\x01what is to be kept\0\0\x0d\x01\x05\0\0\0\x03what was kept",
    ];
    assert_eq!(streams.output, begun.concat());
    streams.output.clear();
    streams.ask(&Blocks { first: FIRST.to_vec(), next: NEXT.to_vec() }, 1);
    assert_eq!(streams.output, b"\0\0\x0d\x01\x05\0\0\0\x05what was kept");
}

#[test]
fn answers_end_where_they_do_in_whatever_pieces_they_come() {
    let whole = frames(&[
        (SETTINGS, 0, 0, b"\0\x03\0\0\0\x80"),
        (HEADERS, END_HEADERS, 3, b"\x20\x88more"),
        (PING, 0, 0, b"whatever"),
        (DATA, PADDED, 3, b"\x03hel..."),
        (HEADERS, END_HEADERS | PADDED | PRIORITY, 1, b"\x01.....\x88."),
        (DATA, END_STREAM, 3, b"lo"),
        (DATA, 0, 1, b"hello"),
        (0xfa, 1, 0, b"nobody knows it"),
        (HEADERS, END_HEADERS | END_STREAM, 1, b"trailers"),
        (SETTINGS, ACK, 0, b""),
    ]);
    let said = frames(&[(SETTINGS, ACK, 0, b""), (PING, ACK, 0, b"whatever")]);
    for size in 1..=whole.len() {
        let mut streams = asked(2);
        streams.output.clear();
        let (mut at, mut ended) = (0, 0);
        for end in (size..whole.len()).step_by(size).chain([whole.len()]) {
            at += streams.take_all(&whole[at..end], 5, &mut || ended += 1).unwrap();
        }
        assert_eq!((at, ended, streams.open), (whole.len(), 2, 0), "pieces of {size}");
        assert_eq!(streams.output, said, "pieces of {size}");
    }
}

#[test]
fn anything_but_the_answer_is_an_error() {
    let head: Sent<'_> = (HEADERS, END_HEADERS, 1, b"\x88");
    let whole: Sent<'_> = (DATA, END_STREAM, 1, b"hello");
    assert_eq!(take(&mut asked(1), &frames(&[head, whole])).unwrap(), 1);
    let cases: [(&[Sent<'_>], &str); 12] = [
        (&[(HEADERS, END_HEADERS, 1, b"\x8d")], r"answered \x8d"),
        (&[(HEADERS, 0, 1, b"\x88")], "a head in several frames"),
        (&[head, (DATA, END_STREAM, 1, b"hell")], "4 bytes of content, not 5"),
        (&[head, (DATA, 0, 1, b"hello"), whole], "10 bytes of content, not 5"),
        (&[(HEADERS, END_HEADERS | END_STREAM, 1, b"\x88")], "0 bytes of content, not 5"),
        (&[head, (DATA, PADDED, 1, b"\x06hello")], "more padding than payload"),
        (&[whole], "content before a head"),
        (&[head, whole, whole], "nothing was to come on stream 1"),
        (&[(HEADERS, END_HEADERS, 2, b"\x88")], "nothing was to come on stream 2"),
        (&[(RST_STREAM, 0, 1, b"\0\0\0\x07")], "stream 1 was reset with code 7"),
        (&[(GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\x0bcalm")], "the connection is ended with code 11: calm"),
        (&[(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\x02\x82")], "a frame of type 5"),
    ];
    for (sent, told) in cases {
        assert_eq!(take(&mut asked(1), &frames(sent)).unwrap_err().to_string(), told);
    }
}

#[test]
fn windows_are_opened_again_when_half_is_taken_and_of_what_has_ended_only_the_connection_s() {
    let mut streams = asked(1);
    streams.output.clear();
    take(&mut streams, &frames(&[(HEADERS, END_HEADERS, 1, b"\x88")])).unwrap();
    let piece = [0; MOST_PAYLOAD];
    let pieces = WINDOW as usize / 2 / MOST_PAYLOAD;
    for _ in 1..pieces {
        take(&mut streams, &frames(&[(DATA, 0, 1, &piece)])).unwrap();
    }
    assert!(streams.output.is_empty());
    let half = (WINDOW / 2).to_be_bytes();
    take(&mut streams, &frames(&[(DATA, 0, 1, &piece)])).unwrap();
    assert_eq!(streams.output, frames(&[(WINDOW_UPDATE, 0, 1, &half), (WINDOW_UPDATE, 0, 0, &half)]));
    streams.output.clear();
    for count in 1..=pieces {
        let flags = if count == pieces { END_STREAM } else { 0 };
        let taken = streams.take_all(&frames(&[(DATA, flags, 1, &piece)]), u64::from(WINDOW), &mut || ());
        assert!(taken.is_ok());
    }
    assert_eq!(streams.output, frames(&[(WINDOW_UPDATE, 0, 0, &half)]));
}
