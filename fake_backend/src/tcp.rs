//! What a TCP fake does with a connection, from greeting to last byte. Called by `door` for each connection.

use std::io;

use crate::behaviour::{Behaviour, Ending, Fault, TcpMode};
use crate::state::State;
use crate::wire::Wire;

/// Bytes read at a time.
const READ: usize = 16 * 1024;

/// Serves the connection and says how it ends.
pub(crate) async fn serve(wire: &mut Wire, state: &State) -> Ending {
    let behaviour = state.take_behaviour();
    state.count(|counters| &counters.requests);
    match converse(wire, state, &behaviour).await {
        Ok(ending) => {
            state.count(|counters| &counters.answers);
            ending
        }
        Err(_) => {
            state.count(|counters| &counters.aborted);
            Ending::Close
        }
    }
}

async fn converse(wire: &mut Wire, state: &State, behaviour: &Behaviour) -> io::Result<Ending> {
    match behaviour.fault {
        Some(Fault::CloseOnAccept) => return Ok(Ending::Close),
        Some(Fault::ResetOnAccept) => return Ok(Ending::Reset),
        Some(Fault::HangUnread) => {
            wire.stall().await;
            return Ok(Ending::Close);
        }
        Some(Fault::Hang) => {
            wire.drain().await?;
            return Ok(Ending::Close);
        }
        // The others are about HTTP, or about a source's body.
        Some(_) | None => {}
    }
    if let Some(latency) = state.draw_latency(behaviour.latency) {
        tokio::time::sleep(latency).await;
    }
    let greeting = format!("Hello from {}", state.id).into_bytes();
    match behaviour.tcp {
        TcpMode::Greet => wire.send(&greeting).await?,
        TcpMode::GreetAndEcho => {
            wire.send(&greeting).await?;
            echo(wire).await?;
        }
        TcpMode::Echo => echo(wire).await?,
        TcpMode::Sink => {
            wire.drain().await?;
        }
        TcpMode::GreetAtEnd => {
            wire.drain().await?;
            wire.send(&greeting).await?;
        }
        TcpMode::Source(length) => {
            let (length, ending) = match behaviour.fault {
                Some(Fault::CloseMidBody) => (length / 2, Ending::Close),
                Some(Fault::ResetMidBody) => (length / 2, Ending::Reset),
                Some(_) | None => (length, Ending::Close),
            };
            wire.send_pattern(0, length, behaviour.pace, false).await?;
            return Ok(ending);
        }
    }
    Ok(Ending::Close)
}

/// Sends back what comes until the client's FIN.
pub(crate) async fn echo(wire: &mut Wire) -> io::Result<()> {
    loop {
        if wire.pending().is_empty() && wire.fill(READ).await? == 0 {
            return Ok(());
        }
        let bytes = wire.pending().to_vec();
        wire.consume(bytes.len());
        wire.send(&bytes).await?;
    }
}
