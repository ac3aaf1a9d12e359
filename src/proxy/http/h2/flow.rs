//! Windows: how much either side may send (RFC 9113 §5.2, §6.9).
//!
//! Invariants. What the peer may still send (`left`), what lies here unread, and what was read and not yet announced (`owed`)
//! come to `size` at any time, for each stream and for the connection. So what lies here is never more than `size`.

use super::frame::LARGEST_WINDOW;

/// The peer has sent more than it may, or allows more than there can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun;

/// How much we may send. It falls below zero when the peer makes its windows smaller (RFC 9113 §6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow(i64);

impl SendWindow {
    /// One of this size.
    #[must_use]
    pub fn new(size: u32) -> SendWindow {
        SendWindow(i64::from(size))
    }

    /// Bytes that may be sent.
    #[inline]
    #[must_use]
    pub fn room(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// So many were sent.
    #[inline]
    pub fn take(&mut self, count: usize) {
        self.0 -= count as i64;
    }

    /// The peer allows more, or, where `change` is negative, less.
    ///
    /// # Errors
    /// More than there can be.
    pub fn change(&mut self, change: i64) -> Result<(), Overrun> {
        self.0 += change;
        if self.0 > i64::from(LARGEST_WINDOW) { Err(Overrun) } else { Ok(()) }
    }
}

/// How much the peer may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    size: u32,
    left: u32,
    owed: u32,
}

impl ReceiveWindow {
    /// One of this size, which the peer knows of.
    #[must_use]
    pub fn new(size: u32) -> ReceiveWindow {
        ReceiveWindow { size, left: size, owed: 0 }
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Bytes that the peer may still send.
    #[must_use]
    pub fn left(&self) -> u32 {
        self.left
    }

    /// The peer has sent so many bytes.
    ///
    /// # Errors
    /// It may not send that many.
    pub fn take(&mut self, count: u32) -> Result<(), Overrun> {
        self.left = self.left.checked_sub(count).ok_or(Overrun)?;
        Ok(())
    }

    /// So many bytes are no longer here. Gives what the peer is to be told of, once that is worth a frame.
    #[must_use]
    pub fn give(&mut self, count: u32) -> Option<u32> {
        self.owed += count;
        (self.owed > 0 && self.owed >= self.size / 2).then(|| self.announce())
    }

    /// Makes it larger, by what the caller then tells the peer together with all that is owed.
    #[must_use]
    pub fn grow(&mut self, size: u32) -> u32 {
        self.owed += size.saturating_sub(self.size);
        self.size = self.size.max(size);
        self.announce()
    }

    /// Bytes that lie here.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.size - self.left - self.owed
    }

    fn announce(&mut self) -> u32 {
        self.left += self.owed;
        std::mem::take(&mut self.owed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_window_falls_below_zero_and_comes_back() {
        let mut window = SendWindow::new(10);
        window.take(8);
        assert_eq!((window.room(), window.change(-5), window.room()), (2, Ok(()), 0));
        assert_eq!((window.change(4), window.room()), (Ok(()), 1));
        assert_eq!(window.change(i64::from(LARGEST_WINDOW)), Err(Overrun));
    }

    #[test]
    fn what_was_taken_is_announced_by_halves() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!((window.take(60), window.held()), (Ok(()), 60));
        assert_eq!((window.give(49), window.held()), (None, 11));
        assert_eq!((window.give(1), window.held()), (Some(50), 10));
        assert_eq!(window.take(91), Err(Overrun), "90 are left");
        assert_eq!(window.take(90), Ok(()));
        assert_eq!((window.held(), window.take(1)), (100, Err(Overrun)));
        assert_eq!(window.give(0), None, "nothing is no frame");
    }

    #[test]
    fn a_window_that_grows_announces_what_is_owed_too() {
        let mut window = ReceiveWindow::new(100);
        window.take(30).expect("there is room");
        assert_eq!(window.give(30), None);
        assert_eq!(window.left(), 70);
        assert_eq!(window.grow(200), 130);
        assert_eq!((window.size(), window.held(), window.take(200)), (200, 0, Ok(())));
    }
}
