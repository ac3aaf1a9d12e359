//! Where a line is written: what is left of a buffer that is initialised already.
//!
//! Each writer takes the room, fills its front and gives back the rest; `None` says that there was too little.
//! Nobody counts beforehand how long a line gets: [`Batch::append`] writes it again where there is more room. So
//! text of known length is one comparison and a few plain stores.

/// What is left of a buffer.
pub(super) type LineSpace<'a> = &'a mut [u8];

/// What is left after something was written; `None`: it did not fit.
pub(super) type Left<'a> = Option<LineSpace<'a>>;

/// The first room of a batch; more than the size at which it is handed over, so that few batches ever grow.
pub(super) const FIRST_ROOM: usize = 40 * 1024;

/// Writes `text`.
#[inline(always)]
pub(super) fn put<'a>(room: LineSpace<'a>, text: &[u8]) -> Left<'a> {
    let (here, rest) = room.split_at_mut_checked(text.len())?;
    here.copy_from_slice(text);
    Some(rest)
}

/// Writes one of two texts.
#[inline(always)]
pub(super) fn put_either<'a>(room: LineSpace<'a>, first: bool, texts: [&[u8]; 2]) -> Left<'a> {
    if first { put(room, texts[0]) } else { put(room, texts[1]) }
}

/// Writes the first `length` bytes of `text`, which costs less than copying a number of bytes that is not known
/// in advance. Asks for room for all of `text`.
#[inline(always)]
pub(super) fn put_front<'a, const N: usize>(room: LineSpace<'a>, text: &[u8; N], length: usize) -> Left<'a> {
    *room.first_chunk_mut()? = *text;
    room.get_mut(length..)
}

/// Whole lines of one worker.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// All of it is initialised; what lies behind `used` means nothing.
    bytes: Vec<u8>,
    used: usize,
}

impl Batch {
    /// An empty one with the first room.
    pub(super) fn with_room() -> Batch {
        Batch { bytes: vec![0; FIRST_ROOM], used: 0 }
    }

    /// Appends what `write` writes, which is asked again as long as there is too little room for it.
    #[inline]
    pub(super) fn append(&mut self, mut write: impl for<'a> FnMut(LineSpace<'a>) -> Left<'a>) {
        loop {
            let all = self.bytes.len();
            if let Some(left) = self.bytes.get_mut(self.used..).and_then(&mut write) {
                self.used = all - left.len();
                return;
            }
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let more = (self.bytes.len() / 2 * 3).max(FIRST_ROOM);
        self.bytes.resize(more, 0);
    }

    /// The lines.
    pub(super) fn lines(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// How long the lines are.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// Whether there is no line.
    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Memory that it holds.
    pub(super) fn room(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets the lines and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.used = 0;
    }
}

/// What `write` writes, as text.
#[cfg(test)]
pub(super) fn text_of(write: impl for<'a> FnMut(LineSpace<'a>) -> Left<'a>) -> String {
    let mut batch = Batch::default();
    batch.append(write);
    String::from_utf8(batch.lines().to_vec()).expect("always UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_does_not_fit_is_written_again_in_more_room() {
        let mut batch = Batch::with_room();
        let long = vec![b'x'; FIRST_ROOM / 3];
        for _ in 0..4 {
            batch.append(|room| put(put(room, &long)?, b"\n"));
        }
        assert_eq!(batch.len(), 4 * (long.len() + 1));
        assert!(batch.lines().split(|&byte| byte == b'\n').take(4).all(|line| line == long));
        batch.append(|room| put(room, &vec![b'y'; 10 * FIRST_ROOM]));
        assert!(batch.lines()[4 * (long.len() + 1)..].iter().all(|&byte| byte == b'y'));
        assert_eq!(batch.len(), 4 * (long.len() + 1) + 10 * FIRST_ROOM);
        batch.clear();
        assert!(batch.is_empty() && batch.room() > 10 * FIRST_ROOM);
    }

    #[test]
    fn a_writer_takes_no_more_than_there_is() {
        let mut bytes = [b'.'; 6];
        assert!(put(&mut bytes, b"1234567").is_none());
        assert!(put_front(&mut bytes, b"1234567", 2).is_none(), "all of the text needs room");
        assert_eq!(put_front(&mut bytes, b"1234", 2).map(|left| left.len()), Some(4));
        assert_eq!(put_either(&mut bytes[2..], false, [b"yes", b"no"]).map(|left| left.len()), Some(2));
        assert_eq!(&bytes, b"12no..");
    }
}
