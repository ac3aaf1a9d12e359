//! rustls without buffers of its own: records go in and out through the caller's.
//!
//! rustls' other kind of connection keeps 4 KiB for records that may come, for as long as it lives, and reads through them.

use std::io::IoSlice;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic};
use rustls::{CommonState, Error};

use super::scratch::Outgoing;

/// Content of one record, at most (RFC 8446 §5.1).
pub(super) const RECORD: usize = 16 * 1024;

/// Content that is encrypted at once, at most: a full relay buffer with a head before it.
const MOST: usize = 5 * RECORD;

/// One side of a session.
pub(in crate::net) enum Session {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// The same for both sides.
macro_rules! each {
    ($session:expr, $one:ident => $body:expr) => {
        match $session {
            Session::Server($one) => $body,
            Session::Client($one) => $body,
        }
    };
}

/// What is to be said when nothing else is to be done.
enum Say<'a> {
    Nothing,
    /// These parts, by way of the space for gathering.
    Content(&'a [IoSlice<'a>], &'a mut Vec<u8>),
    /// close_notify.
    End,
}

/// Where things go.
struct Flow<'a> {
    content: &'a mut dyn FnMut(&[u8]),
    out: &'a mut Outgoing,
}

/// What came of records.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Bytes that are not needed any more.
    pub(super) used: usize,
    /// The peer has said that it is done.
    pub(super) ended: bool,
    /// Bytes of content that were encrypted.
    said: usize,
}

impl Session {
    /// What both sides know.
    pub(super) fn common(&self) -> &CommonState {
        each!(self, one => one)
    }

    /// Takes records in. What they hold goes to `content`, in order; what answers them to `out`.
    ///
    /// Bytes that were not used begin the next call, whatever that is. Behind the peer's end nothing is used.
    ///
    /// # Errors
    /// The peer broke the protocol. The alert that says so is in `out`, and no call may follow.
    pub(super) fn take_in(
        &mut self,
        records: &mut [u8],
        out: &mut Outgoing,
        mut content: impl FnMut(&[u8]),
    ) -> Result<Taken, Error> {
        let mut taken = Taken::default();
        let mut flow = Flow { content: &mut content, out };
        match self.drive(records, &mut flow, Say::Nothing, &mut taken) {
            Ok(()) => Ok(taken),
            Err(error) => {
                self.last_words(&mut records[taken.used..], &mut flow);
                Err(error)
            }
        }
    }

    /// Encrypts what `parts` begin with and says how much that is; 0: there is nothing to say it with. `held` is what was not
    /// used so far.
    ///
    /// # Errors
    /// No record can be made with these keys any more.
    pub(super) fn say(
        &mut self,
        held: &mut [u8],
        parts: &[IoSlice<'_>],
        gathered: &mut Vec<u8>,
        out: &mut Outgoing,
    ) -> Result<usize, Error> {
        let mut taken = Taken::default();
        let mut flow = Flow { content: &mut |_| {}, out };
        self.drive(held, &mut flow, Say::Content(parts, gathered), &mut taken)?;
        Ok(taken.said)
    }

    /// Says close_notify, if the session stands. `held` is what was not used so far.
    pub(super) fn end(&mut self, held: &mut [u8], out: &mut Outgoing) {
        let mut flow = Flow { content: &mut |_| {}, out };
        // Whoever can't say it has nothing more to say.
        let _ = self.drive(held, &mut flow, Say::End, &mut Taken::default());
    }

    fn drive(
        &mut self,
        records: &mut [u8],
        flow: &mut Flow<'_>,
        say: Say<'_>,
        taken: &mut Taken,
    ) -> Result<(), Error> {
        let mut say = Some(say);
        while each!(self, one => step(one.process_tls_records(&mut records[taken.used..]), flow, &mut say, taken))?
        {
        }
        Ok(())
    }

    /// Takes out the alert that says what was wrong.
    fn last_words(&mut self, records: &mut [u8], flow: &mut Flow<'_>) {
        while self.common().wants_write() {
            let step = each!(self, one => {
                step(one.process_tls_records(records), flow, &mut None, &mut Taken::default())
            });
            if !matches!(step, Ok(true)) {
                return;
            }
        }
    }
}

/// Does what comes next. `Ok(false)`: nothing does.
fn step<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    flow: &mut Flow<'_>,
    say: &mut Option<Say<'_>>,
    taken: &mut Taken,
) -> Result<bool, Error> {
    taken.used += status.discard;
    match status.state? {
        ConnectionState::ReadTraffic(mut traffic) => {
            while let Some(record) = traffic.next_record() {
                let record = record?;
                taken.used += record.discard;
                // RFC 8446 §5.1 and RFC 5246 §6.2.1; not every kind of record is held to it by rustls.
                if record.payload.len() > RECORD {
                    return Err(Error::PeerSentOversizedRecord);
                }
                (flow.content)(record.payload);
            }
        }
        ConnectionState::EncodeTlsData(mut message) => {
            let mut encoded = message.encode(flow.out.room(0));
            if let Err(EncodeError::InsufficientSize(short)) = &encoded {
                encoded = message.encode(flow.out.room(short.required_size));
            }
            flow.out.written(encoded.unwrap_or(0));
        }
        ConnectionState::TransmitTlsData(message) => message.done(),
        ConnectionState::PeerClosed => taken.ended = true,
        ConnectionState::WriteTraffic(mut traffic) => {
            match say.take() {
                Some(Say::Content(parts, gathered)) => {
                    taken.said = encrypt(&mut traffic, parts, gathered, flow.out)?;
                }
                Some(Say::End) => write(flow.out, |room| traffic.queue_close_notify(room))?,
                Some(Say::Nothing) | None => {}
            }
            return Ok(false);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Encrypts what `parts` begin with, in as few records as can be: one is gathered from several parts rather than cut short.
fn encrypt<Data>(
    traffic: &mut WriteTraffic<'_, Data>,
    parts: &[IoSlice<'_>],
    gathered: &mut Vec<u8>,
    out: &mut Outgoing,
) -> Result<usize, Error> {
    let (mut said, mut room) = (0, MOST);
    gathered.clear();
    for (nth, part) in parts.iter().enumerate() {
        let last = nth + 1 == parts.len();
        let mut part = &part[..part.len().min(room)];
        room -= part.len();
        if !gathered.is_empty() {
            let (joins, rest) = part.split_at(part.len().min(RECORD - gathered.len()));
            gathered.extend_from_slice(joins);
            part = rest;
            if gathered.len() == RECORD || last {
                said += gathered.len();
                write(out, |room| traffic.encrypt(gathered, room))?;
                gathered.clear();
            }
        }
        let whole = if last { part.len() } else { part.len() - part.len() % RECORD };
        let (direct, joins) = part.split_at(whole);
        if !direct.is_empty() {
            said += direct.len();
            write(out, |room| traffic.encrypt(direct, room))?;
        }
        gathered.extend_from_slice(joins);
    }
    Ok(said)
}

/// Writes records, also when there is not enough space at first.
fn write(
    out: &mut Outgoing,
    mut records: impl FnMut(&mut [u8]) -> Result<usize, EncryptError>,
) -> Result<(), Error> {
    let mut count = records(out.room(0));
    if let Err(EncryptError::InsufficientSize(short)) = &count {
        count = records(out.room(short.required_size));
    }
    out.written(count.map_err(|_| Error::EncryptError)?);
    Ok(())
}
