//! What a UDP fake does with each datagram. Started by `door`, ended by its gate.

use std::sync::Arc;

use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

use crate::behaviour::{Fault, TcpMode};
use crate::state::State;

/// Longer than any datagram.
const LONGEST: usize = 65_536;
/// The longest that goes out.
const MOST: u64 = 65_507;

/// Answers until `shut`: then the socket is closed, and the machine says that nobody is there.
pub(crate) async fn serve(socket: Arc<UdpSocket>, state: Arc<State>, shut: CancellationToken) {
    let mut space = vec![0; LONGEST];
    loop {
        let received = tokio::select! {
            biased;
            () = shut.cancelled() => return,
            received = socket.recv_from(&mut space) => received,
        };
        // Whoever was answered may have gone: the next receive tells so.
        let Ok((length, client)) = received else { continue };
        state.count(|counters| &counters.requests);
        state.add(|counters| &counters.bytes_in, length as u64);
        let behaviour = state.take_behaviour();
        if behaviour.fault.as_ref().is_some_and(is_silence) {
            continue;
        }
        let Some(answer) = answer(behaviour.tcp, &state.id, &space[..length]) else { continue };
        let send = {
            let (socket, state) = (Arc::clone(&socket), Arc::clone(&state));
            async move {
                if let Ok(count) = socket.send_to(&answer, client).await {
                    state.add(|counters| &counters.bytes_out, count as u64);
                    state.count(|counters| &counters.answers);
                }
            }
        };
        match state.draw_latency(behaviour.latency) {
            None => send.await,
            Some(latency) => {
                let shut = shut.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(latency).await;
                    shut.run_until_cancelled(send).await;
                });
            }
        }
    }
}

fn is_silence(fault: &Fault) -> bool {
    matches!(fault, Fault::CloseOnAccept | Fault::ResetOnAccept | Fault::Hang | Fault::HangUnread)
}

/// What a datagram is answered with.
fn answer(mode: TcpMode, id: &str, datagram: &[u8]) -> Option<Vec<u8>> {
    let greeting = || format!("Hello from {id}").into_bytes();
    match mode {
        TcpMode::Greet | TcpMode::GreetAtEnd => Some(greeting()),
        TcpMode::GreetAndEcho => Some([&greeting(), &b": "[..], datagram].concat()),
        TcpMode::Echo => Some(datagram.to_vec()),
        TcpMode::Sink => None,
        TcpMode::Source(length) => Some(vec![b'x'; usize::try_from(length.min(MOST)).unwrap_or_default()]),
    }
}
