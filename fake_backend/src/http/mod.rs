//! The HTTP side: a small HTTP/1.1 server of its own, because it has to misbehave byte by byte. `door` calls
//! [`serve`] for each connection; a `turn` is one request and its answer.

mod answer;
mod body;
mod dispatch;
mod fault;
mod login;
mod path;
mod request;
mod turn;
mod upgrade;

use std::sync::{Arc, Weak};

use turn::Next;

use crate::behaviour::{Ending, Fault};
use crate::gate::Gate;
use crate::state::State;
use crate::wire::{Silence, Wire};

/// Serves one request after the other and says how the connection ends.
pub(crate) async fn serve(wire: &mut Wire, state: &Arc<State>, gate: &Weak<Gate>) -> Ending {
    if let Some(ending) = greet_badly(state) {
        return ending;
    }
    let mut first = true;
    loop {
        if wire.pending().is_empty() {
            match wire.rest(first).await {
                Ok(Silence::Broken) => {}
                Ok(Silence::Over) | Err(_) => return Ending::Close,
            }
        }
        if state.behaviour().fault == Some(Fault::HangUnread) {
            state.take_behaviour();
            wire.stall().await;
            return Ending::Close;
        }
        first = false;
        // Boxed, so that an idle connection does not carry the room of a whole turn.
        match Box::pin(dispatch::take(wire, state, gate)).await {
            Next::Again => {}
            Next::End(ending) => return ending,
        }
    }
}

/// The faults that show before a byte is read.
fn greet_badly(state: &State) -> Option<Ending> {
    let ending = match state.behaviour().fault {
        Some(Fault::CloseOnAccept) => Ending::Close,
        Some(Fault::ResetOnAccept) => Ending::Reset,
        Some(_) | None => return None,
    };
    state.take_behaviour();
    Some(ending)
}
