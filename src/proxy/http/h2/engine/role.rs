//! In what the two ends of a connection differ. All else is the same for both.

use crate::message::Cause;
use crate::tick::Tick;

use super::{Engine, Outcome};
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::stream::Cut;

/// One of the two ends: [`Serving`](super::serving::Serving) or [`Asking`](super::asking::Asking).
pub trait Role: Sized {
    /// What comes on a stream in front of a body.
    type Arrived: Default;

    /// It opens the streams, and what comes are answers.
    const ASKS: bool;
    /// The peer has gone, or wants no more of a stream.
    const GONE: Cause;
    /// What a stream is reset with whose task lets go of it before its end.
    const ABANDONED: ErrorCode;
    /// A frame came that has no place there.
    const BAD_FRAME: Cause;
    /// A head is none.
    const BAD_HEAD: Cause;
    /// A body is not as long as its head says.
    const BAD_LENGTH: Cause;

    /// A head came whose stream is above all others. `times`: when it began, and when it was whole.
    ///
    /// # Errors
    /// It breaks the connection.
    fn open(engine: &mut Engine<Self>, id: u32, ends: bool, block: &[u8], times: (Tick, Tick)) -> Outcome;

    /// Whether the next head is no trailer section, and no body may come before it.
    fn is_head_due(arrived: &Self::Arrived) -> bool;

    /// Such a head came.
    ///
    /// # Errors
    /// See [`Role::open`].
    fn head(engine: &mut Engine<Self>, id: u32, ends: bool, block: &[u8], now: Tick) -> Outcome;

    /// The peer has reset a stream, which was opened at some time.
    ///
    /// # Errors
    /// See [`Role::open`].
    fn reset(engine: &mut Engine<Self>, id: u32, cut: Cut, now: Tick) -> Outcome;

    /// The peer ends the connection, and has done nothing for streams above `last`.
    ///
    /// # Errors
    /// See [`Role::open`].
    fn go_away(engine: &mut Engine<Self>, last: u32, now: Tick) -> Outcome;

    /// A PING was answered. True: it was one of ours.
    fn pong(engine: &mut Engine<Self>, payload: [u8; 8]) -> bool;

    /// The peer says something that is for one of the two alone.
    ///
    /// # Errors
    /// See [`Role::open`].
    fn setting(engine: &mut Engine<Self>, name: u16, value: u32) -> Outcome;
}
