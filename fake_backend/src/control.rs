//! Control by request: `POST /_fake?status=500&times=3` to a fake that allows it. A pure word-by-word
//! translation; `http::turn` finds the path, `setting` knows the keys.

use std::sync::Weak;

use crate::behaviour::Behaviour;
use crate::gate::Gate;

/// The one path that controls. It is looked at only where control is allowed.
pub(crate) const PATH: &str = "/_fake";

/// Obeys a control request and says what to answer: a status and a text.
pub(crate) fn answer(method: &str, query: &str, gate: &Weak<Gate>) -> (u16, String) {
    let Some(gate) = gate.upgrade() else { return (503, "this fake is gone\n".to_owned()) };
    let state = &gate.state;
    match method {
        "GET" => {
            let stats = state.stats();
            let text = format!(
                "id={}\nhealthy={}\nconnections={}\nopen={}\nrequests={}\nprobes={}\nanswers={}\nmost={}\naborted={}\nmalformed={}\nbytes_in={}\nbytes_out={}\nhandshakes={}\nresumed={}\nfailed_handshakes={}\nbusy_us={}\n",
                state.id,
                state.healthy(),
                stats.connections,
                stats.open,
                stats.requests,
                stats.probes,
                stats.answers,
                stats.most,
                stats.aborted,
                stats.malformed,
                stats.bytes_in,
                stats.bytes_out,
                stats.handshakes,
                stats.resumed,
                stats.failed_handshakes,
                state.work.total().as_micros()
            );
            (200, text)
        }
        "POST" => match obey(query, &gate) {
            Ok(()) => (200, "ok\n".to_owned()),
            Err(reason) => (400, reason + "\n"),
        },
        _ => (405, "GET tells the counters, POST ?key=value& changes the behaviour\n".to_owned()),
    }
}

/// Applies all pairs or, when one is wrong, none.
fn obey(query: &str, gate: &Gate) -> Result<(), String> {
    let state = &gate.state;
    let mut behaviour: Behaviour = state.lasting().as_ref().clone();
    let mut changed = false;
    let (mut health, mut cut, mut stop) = (None, false, false);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match (key, value) {
            ("reset", _) => {
                behaviour = Behaviour::default();
                changed = true;
            }
            ("health", "up") => health = Some(true),
            ("health", "down") => health = Some(false),
            ("health", _) => return Err(format!("{pair}: up or down is expected")),
            ("close-idle", _) => cut = true,
            ("refuse", _) => stop = true,
            _ => {
                behaviour.set(key, value).map_err(|error| error.to_string())?;
                changed = true;
            }
        }
    }
    if changed {
        state.behave(behaviour);
    }
    if let Some(healthy) = health {
        state.set_healthy(healthy);
    }
    if cut {
        state.cut_idle();
    }
    if stop {
        gate.stop_accepting();
    }
    Ok(())
}
