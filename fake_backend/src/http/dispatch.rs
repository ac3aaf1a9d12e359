//! Which answer a request gets: its head is read, and the behaviour of the moment and its path decide.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::answer::Answer;
use super::body::Body;
use super::path::{self, Wish};
use super::request::Request;
use super::turn::{Next, Turn};
use super::{fault, upgrade};
use crate::behaviour::{Ending, Fault};
use crate::control;
use crate::gate::Gate;
use crate::state::State;
use crate::wire::Wire;

/// Bytes read at a time for a head.
const READ: usize = 4 * 1024;

/// Takes one turn.
pub(crate) async fn take(wire: &mut Wire, state: &Arc<State>, gate: &Weak<Gate>) -> Next {
    let taken = async {
        let Some(request) = read_head(wire).await? else { return Ok(Next::End(Ending::Close)) };
        wire.consume(request.head.len());
        let is_control = state.control && request.path == control::PATH;
        let health = !is_control && state.is_health(&request.path);
        let spared = is_control || (health && state.behaviour().spares_health);
        let behaviour = if spared { Arc::default() } else { state.take_behaviour() };
        let recorder = state.recorder.as_ref().filter(|_| !is_control);
        let recorded = recorder.map(|recorder| recorder.begin(&request.head, wire.number, wire.tls.clone()));
        // Counted last: who waits for the counter finds the record, and what he has this one do then is for the next request.
        if !is_control {
            state.count(|counters| if health { &counters.probes } else { &counters.requests });
        }
        let body = Body::new(request.framing);
        let mut turn = Turn { wire: &mut *wire, state, request, behaviour, body, recorded, health };
        if is_control {
            turn.read_body().await?;
            let (status, text) = control::answer(&turn.request.method, &turn.request.query, gate);
            return turn.send(&Answer::text(status, text)).await;
        }
        let next = run(&mut turn).await?;
        if !health {
            state.count(|counters| &counters.answers);
        }
        Ok(next)
    };
    let error: io::Error = match taken.await {
        Ok(next) => return next,
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::InvalidData {
        state.count(|counters| &counters.aborted);
        return Next::End(Ending::Close);
    }
    state.count(|counters| &counters.malformed);
    let answer = Answer::text(400, error.to_string());
    let bytes = answer.head(&state.id, "Connection: close\r\n") + &error.to_string();
    // A peer that sent such a thing may be gone already.
    let _ = wire.send(bytes.as_bytes()).await;
    Next::End(Ending::Close)
}

/// The next head; `None` when the peer ends between two requests. A wrong head is `InvalidData`.
async fn read_head(wire: &mut Wire) -> io::Result<Option<Request>> {
    loop {
        let parsed = Request::parse(wire.pending());
        if let Some(request) = parsed.map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))? {
            return Ok(Some(request));
        }
        let between = wire.pending().is_empty();
        match wire.fill(READ).await {
            Ok(0) | Err(_) if between => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Obeys the behaviour of the moment, and answers what the path asks for.
async fn run(turn: &mut Turn<'_>) -> io::Result<Next> {
    if turn.behaviour.fault == Some(Fault::Hang) {
        return turn.hang().await;
    }
    if turn.health && turn.behaviour.status == 200 && turn.behaviour.fault.is_none() {
        turn.read_body().await?;
        turn.wait(Duration::ZERO).await;
        let (status, text) = if turn.state.healthy() { (200, "healthy") } else { (503, "unhealthy") };
        return turn.send(&Answer::text(status, text)).await;
    }
    let behaviour = turn.behaviour.clone();
    let wish = path::wish(&turn.request, &turn.state.id);
    let wish = if behaviour.status == 200 { wish } else { Wish::Greeting };
    let wire_fault = behaviour.fault.as_ref().filter(|fault| !fault.is_mid_body());
    if let Some(fault) = wire_fault {
        turn.read_body().await?;
        turn.wait(Duration::ZERO).await;
        return fault::misbehave(turn, fault).await;
    }
    if behaviour.answers_early && !turn.body.is_complete() {
        let answer = turn.answer_to(wish);
        turn.wait(answer.delay).await;
        let next = turn.send(&answer).await?;
        if next == Next::Again {
            turn.read_body().await?;
        }
        return Ok(next);
    }
    match wish {
        Wish::Upgrade { frames } => {
            turn.wait(Duration::ZERO).await;
            upgrade::switch(turn, frames).await
        }
        Wish::Echo if behaviour.fault.is_none() => {
            turn.wait(Duration::ZERO).await;
            turn.echo().await
        }
        Wish::Greeting | Wish::Answer(_) | Wish::Echo | Wish::Count | Wish::Login => {
            turn.read_body().await?;
            let answer = turn.answer_to(wish);
            turn.wait(answer.delay).await;
            turn.send(&answer).await
        }
    }
}
