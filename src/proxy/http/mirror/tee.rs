//! The body of a request, copied while it is read for its backend.
//!
//! It is written down where the client's bytes are taken from its connection, which happens once for each of them whatever the
//! attempts of the request are. Nobody waits for a copy, and none is asked how far it is.

use super::room::Load;

/// Bytes of a body that are copied at most, with its chunk lines if they pass as they came.
pub const MOST: usize = 64 * 1024;

/// How the copying of a body has ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Teed {
    /// All of it is there.
    Whole(TeedBody),
    /// It is longer than what is copied.
    TooLong,
    /// There was no room for it.
    NoRoom,
    /// It was not read to its end.
    Cut,
}

/// A body that was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeedBody {
    /// Content, or chunks of it.
    pub bytes: Vec<u8>,
    /// Those are chunks, without the last one, which is empty.
    pub is_raw: bool,
    /// Trailer lines.
    pub trailers: Vec<u8>,
}

/// A body that is being copied.
pub struct Tee {
    body: TeedBody,
    load: Load,
    /// Chunks are of no use for it: whoever gets the copy has none.
    needs_content: bool,
    /// `None`: it is over.
    told: Option<Box<dyn FnOnce(Teed, Load)>>,
}

impl Tee {
    /// Nothing yet. `told` is called once, also when this is dropped half-way, and must not look at the client.
    #[must_use]
    pub fn new(load: Load, told: impl FnOnce(Teed, Load) + 'static) -> Tee {
        Tee { body: TeedBody::default(), load, needs_content: false, told: Some(Box::new(told)) }
    }

    /// The same, which takes content alone and no chunks if `needs_content`.
    #[must_use]
    pub fn of_content(mut self, needs_content: bool) -> Tee {
        self.needs_content = needs_content;
        self
    }

    /// Whether the body may pass as it came.
    #[must_use]
    pub fn takes_raw(&self) -> bool {
        !self.needs_content
    }

    /// Whether chunks come instead of content.
    pub fn set_raw(&mut self, is_raw: bool) {
        self.body.is_raw = is_raw;
    }

    /// Copies what comes next. False: it goes no further.
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        if self.body.bytes.len() + bytes.len() > MOST {
            self.end(Teed::TooLong);
        } else if !self.load.grow(bytes.len()) {
            self.end(Teed::NoRoom);
        } else {
            self.body.bytes.extend_from_slice(bytes);
        }
        self.told.is_some()
    }

    /// That was all.
    pub fn finish(mut self, trailers: &[u8]) {
        let mut body = std::mem::take(&mut self.body);
        body.trailers = trailers.to_vec();
        let end = if self.load.grow(body.trailers.len()) { Teed::Whole(body) } else { Teed::NoRoom };
        self.end(end);
    }

    fn end(&mut self, end: Teed) {
        self.body = TeedBody::default();
        if let Some(told) = self.told.take() {
            let nothing = self.load.another();
            told(end, std::mem::replace(&mut self.load, nothing));
        }
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        self.end(Teed::Cut);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::super::room::{BYTES, Room};
    use super::*;

    /// A tee, and what it tells.
    fn tee(room: &Room) -> (Tee, Rc<RefCell<Vec<Teed>>>) {
        let told = Rc::new(RefCell::new(Vec::new()));
        let list = Rc::clone(&told);
        (Tee::new(room.load(), move |end, _load| list.borrow_mut().push(end)), told)
    }

    #[test]
    fn a_body_is_told_once_whole_or_with_why_not() {
        let room = Room::default();
        let (mut whole, told) = tee(&room);
        assert!(whole.take(b"ab") && whole.take(b"") && whole.take(b"c"));
        assert_eq!(room.taken(), 3);
        whole.finish(b"X: y\r\n");
        let body = TeedBody { bytes: b"abc".to_vec(), is_raw: false, trailers: b"X: y\r\n".to_vec() };
        assert_eq!(*told.borrow(), [Teed::Whole(body)]);

        let (mut exact, told) = tee(&room);
        assert!(exact.take(&[0; MOST]) && !exact.take(&[0]) && !exact.take(&[0]));
        drop(exact);
        assert_eq!(*told.borrow(), [Teed::TooLong]);

        let (mut cut, told) = tee(&room);
        assert!(cut.take(b"ab"));
        drop(cut);
        assert_eq!(*told.borrow(), [Teed::Cut]);
        assert_eq!(room.taken(), 0);
    }

    #[test]
    fn what_there_is_no_room_for_is_let_go_of() {
        let room = Room::default();
        let mut others = room.load();
        assert!(others.grow(BYTES - 3));
        let (mut one, told) = tee(&room);
        assert!(one.take(b"abc") && !one.take(b"d"));
        assert_eq!((room.taken(), told.borrow().len()), (BYTES - 3, 1));
        let (mut raw, told) = tee(&room);
        raw.set_raw(true);
        assert!(raw.take(b"0\r\n"));
        raw.finish(b"X: y\r\n");
        assert_eq!(*told.borrow(), [Teed::NoRoom]);
    }
}
