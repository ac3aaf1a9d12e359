//! An HTTP/2 connection from its first byte to its close: the one task that reads and writes its socket.
//!
//! In each turn it reads what there is, handles the frames, and writes the one output buffer once. Streams run in tasks of their own and
//! wake it when they have appended something.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::yield_now;

use super::stream;
use crate::config::model::Http2;
use crate::message::Cause;
use crate::net::{Deadline, now};
use crate::proxy::Here;
use crate::proxy::client_timer::ClientWait;
use crate::proxy::http::client::Client;
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::debts;
use crate::proxy::http::h2::draft::HeadLimits;
use crate::proxy::http::h2::engine::to_client::{Misshapen, ToClient};
use crate::proxy::http::h2::engine::{Engine, EngineLimits, Http2Fault};
use crate::proxy::http::h2::session::Http2Session;
use crate::proxy::http::parting::discard_input;
use crate::proxy::recording::Recording;

/// Reads of one turn, and bytes after which there is none more in it: others have their turns too.
const READS: usize = 4;
const TURN: usize = 32 * 1024;
/// How long after the first GOAWAY the second one comes, if the client does not answer before.
const FAREWELL: Duration = Duration::from_secs(1);

/// Streams of an ended connection that are woken in one turn.
const WOKEN: usize = 8;

/// Cuts the streams of a connection whose task ends before them.
struct CutStreams<'a>(&'a Http2Session);

impl CutStreams<'_> {
    /// The same, some of them after others.
    async fn cut(&self) {
        self.0.engine().close(GONE);
        while self.0.engine().wake_cut(WOKEN) {
            yield_now().await;
        }
    }
}

impl Drop for CutStreams<'_> {
    fn drop(&mut self) {
        self.0.engine().close(GONE);
        let _ = self.0.engine().wake_cut(usize::MAX);
    }
}

/// The client is gone.
const GONE: Http2Fault = Http2Fault { code: ErrorCode::CANCEL, why: "the connection has ended" };
/// It says nothing.
const SILENT: Http2Fault = Http2Fault { code: ErrorCode::NO_ERROR, why: "nothing was asked for long" };
/// It does not answer our SETTINGS.
const DEAF: Http2Fault =
    Http2Fault { code: ErrorCode::SETTINGS_TIMEOUT, why: "SETTINGS were not answered in time" };
/// It has begun something and does not end it.
const SLOW: Http2Fault =
    Http2Fault { code: ErrorCode::ENHANCE_YOUR_CALM, why: "a head was not complete in time" };

/// How a connection has ended.
enum End {
    /// All was said: it is closed without resetting that away.
    Told,
    /// Nobody is there.
    Gone,
}

/// Serves a connection to its end. What the client holds is the beginning of what it says.
pub async fn serve(client: Rc<Client>) {
    let here = client.take_here();
    // A reload may have turned it off meanwhile: who has begun is served.
    let http2 = here.config.http2.unwrap_or_default();
    let limits = {
        let limits = &here.config.limits;
        let head = HeadLimits { size: limits.head_size, lines: limits.headers };
        let (streams, window, memory) = (http2.max_streams, Http2::WINDOW, http2.memory);
        EngineLimits { streams, window, window_max: http2.window_max, memory, head }
    };
    let ctx = Rc::clone(&client.ctx);
    let address = client.peer.client.map(|client| client.ip);
    let owed = address.map_or(0, |address| ctx.http2.debts.borrow().of(address, now()));
    let began = now();
    let engine = Engine::server(limits, &ctx.http2, began, owed);
    let session = Http2Session::new(client, engine);
    session.client.stream().limit_unsent();
    let farewell = ctx.ticker.deadline();
    if let Some(age) = http2.max_age {
        // Up to a tenth earlier, so that those that came together don't come back together.
        let part = (ctx.chance.bits() % 1024) as u32;
        farewell.set(age - age / 10 * part / 1024);
    }
    let end = {
        let streams = CutStreams(&session);
        let (turn, early) = (ctx.turns(), ctx.ticker.deadline());
        let mut waits =
            Waits { wait: ClientWait::Nothing, has_ended: false, farewell: &farewell, early, here, turn };
        let end = poll_fn(|cx| poll(&session, &mut waits, cx)).await;
        streams.cut().await;
        end
    };
    if let Some(address) = address {
        // What it has begun with is noted already.
        let more = session.engine().owes().saturating_sub(debts::remaining(owed, began, now()));
        ctx.http2.debts.borrow_mut().note(address, more, now());
    }
    record_fault(&session);
    match end {
        End::Told => discard_input(&session.client).await,
        End::Gone => session.client.stream().reset_on_close(),
    }
}

/// Leaves a record of a connection that was closed for what its client has done.
fn record_fault(session: &Http2Session) {
    let Some(fault) = session.engine().fault() else { return };
    let cause = match fault.code {
        ErrorCode::NO_ERROR | ErrorCode::CANCEL => return,
        _ if fault == SLOW || fault == DEAF => Cause::HeadTimeout,
        ErrorCode::ENHANCE_YOUR_CALM => Cause::Http2Flood,
        _ => Cause::BadFrame,
    };
    let client = &session.client;
    let mut record = client.peer.record();
    record.id = client.ctx.request_id();
    Recording::new(&client.ctx, None, &mut record).settle(cause);
}

/// What the connection is waited for.
struct Waits<'a> {
    wait: ClientWait,
    /// It has sent its last byte.
    has_ended: bool,
    /// When it is told to end, or the second time.
    farewell: &'a Deadline,
    /// When a stream is reset that was answered early.
    early: Deadline,
    /// The listener as it was when the connection began.
    here: Here,
    /// The worker's turn of configs in which that was compared with the one in force.
    turn: u32,
}

impl Waits<'_> {
    /// Whether the listener has become another one, so that what was agreed on with the client no longer holds.
    fn is_outdated(&mut self, client: &Client) -> bool {
        let turn = client.ctx.turns();
        if std::mem::replace(&mut self.turn, turn) == turn {
            return false;
        }
        let now = client.take_here();
        self.here.config.http2 != now.config.http2 || self.here.config.tls != now.config.tls
    }
}

/// One turn.
fn poll(session: &Rc<Http2Session>, waits: &mut Waits<'_>, cx: &mut Context<'_>) -> Poll<End> {
    let client = &session.client;
    session.bell.look(cx);
    read(session, waits, cx);
    serve_opened(session);
    if session.write(cx).is_err() {
        return Poll::Ready(End::Gone);
    }
    let mut engine = session.engine();
    engine.end_turn();
    let is_told = engine.output().is_empty();
    if engine.fault() == Some(GONE) {
        return Poll::Ready(End::Gone);
    }
    let is_served = waits.has_ended && engine.tasks() == 0;
    if is_told && (engine.fault().is_some() || engine.is_finished() || is_served) {
        return Poll::Ready(End::Told);
    }
    // Also when the last word is all that is not taken.
    if !is_told && poll_stalled(client, cx).is_ready() {
        return Poll::Ready(End::Gone);
    }
    let is_due = waits.farewell.poll(cx).is_ready();
    if is_due && engine.is_warned() {
        waits.farewell.clear();
        engine.leave();
    } else if engine.is_open() && (is_due || client.is_leaving() || waits.is_outdated(client)) {
        engine.warn();
        waits.farewell.set(FAREWELL);
    }
    if engine.is_early() {
        poll_early(&mut engine, &waits.early, cx);
    }
    let is_late = poll_patience(client, &mut engine, waits, cx);
    let has_more = !engine.output().is_empty() && is_told;
    let has_sleepers = engine.fault().is_some() && engine.wake_cut(WOKEN);
    drop(engine);
    if is_late || has_more || has_sleepers {
        // There is something new to be said, or somebody to be told.
        cx.waker().wake_by_ref();
    }
    Poll::Pending
}

/// Reads what there is.
fn read(session: &Http2Session, waits: &mut Waits<'_>, cx: &mut Context<'_>) {
    let client = &session.client;
    // What was read before HTTP/2 was known to be spoken.
    take_in(session);
    let mut took = 0;
    for _ in 0..READS {
        if waits.has_ended || took >= TURN || !session.engine().is_reading() {
            break;
        }
        match client.poll_fill(cx) {
            Poll::Ready(Ok(count @ 1..)) => {
                took += count;
                take_in(session);
            }
            // It may have finished sending and read on.
            Poll::Ready(Ok(0)) => waits.has_ended = true,
            Poll::Ready(Err(_)) => return session.engine().close(GONE),
            Poll::Pending => return,
        }
    }
    if !waits.has_ended && session.engine().is_reading() {
        cx.waker().wake_by_ref();
    }
}

fn take_in(session: &Http2Session) {
    session.client.with_held(|held| {
        let Some(buffer) = held else { return };
        let used = session.engine().receive(buffer.data(), now());
        buffer.consume(used);
        if buffer.is_empty() {
            *held = None;
        }
    });
}

/// Gives each stream that has come a task.
fn serve_opened(session: &Rc<Http2Session>) {
    let opened = session.engine().take_opened();
    let has_cut = session.engine().take_cut();
    for &id in &opened {
        stream::begin(session, id, has_cut);
    }
    session.engine().return_opened(opened);
    let misshapen = session.engine().take_misshapen();
    for Misshapen { request, cause } in misshapen {
        stream::record_unserved(&session.client, request, cause);
    }
}

/// Resets streams that were answered early, when they are due.
#[cold]
fn poll_early(engine: &mut Engine<ToClient>, deadline: &Deadline, cx: &mut Context<'_>) {
    while let Some(left) = engine.reset_early(now()) {
        deadline.set(left);
        if deadline.poll(cx).is_pending() {
            return;
        }
    }
    deadline.clear();
}

/// Ready when the client has taken nothing of what waits for it for too long.
fn poll_stalled(client: &Client, cx: &mut Context<'_>) -> Poll<()> {
    client.writing.set_if_clear(client.timeouts().idle);
    client.writing.poll(cx)
}

/// What the client may take its time over, and no longer. True: it was too slow, and the engine has said so.
fn poll_patience(
    client: &Client,
    engine: &mut Engine<ToClient>,
    waits: &mut Waits<'_>,
    cx: &mut Context<'_>,
) -> bool {
    let (wait, patience, fault) = if waits.has_ended {
        (ClientWait::Presence, client.timeouts().half_closed.unwrap_or(Duration::MAX), GONE)
    } else if engine.is_amidst() {
        let fault = if engine.is_owed_an_answer() && engine.is_greeted() { DEAF } else { SLOW };
        (ClientWait::Head, client.timeouts().head, fault)
    } else if engine.tasks() == 0 {
        (ClientWait::Request, client.timeouts().keep_alive, SILENT)
    } else {
        (ClientWait::Nothing, Duration::MAX, SILENT)
    };
    if std::mem::replace(&mut waits.wait, wait) != wait {
        client.timer().end();
        if wait != ClientWait::Nothing {
            client.timer().begin(wait, patience);
        }
    }
    if engine.fault().is_none() && client.timer().poll(wait, cx).is_ready() {
        if waits.has_ended {
            engine.close(GONE);
        } else {
            engine.fail(fault);
        }
        return true;
    }
    false
}
