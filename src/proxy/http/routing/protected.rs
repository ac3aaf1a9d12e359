//! A request on a route whose clients show who they are.

use crate::message::Cause;
use crate::net::now;
use crate::proxy::http::edge::Edge;
use crate::proxy::http::gate::Asking;
use crate::proxy::http::gate::auth::auth;
use crate::proxy::http::gate::authenticated::AuthRefusal;
use crate::proxy::http::gate::rate::{self, Asker};
use crate::proxy::recording::Recording;
use crate::tick::Tick;

use super::way::Way;
use super::{Routed, onward};

/// What becomes of it once its client was asked.
pub async fn protected<'a, E: Edge>(
    asking: &Asking<'_>,
    edge: &mut E,
    recording: &mut Recording<'a>,
    mut way: Way<'a>,
) -> Routed<'a> {
    // Also if it is cut meanwhile.
    recording.on(way.route);
    let Some(rule) = &way.route.auth else { return Routed::Refuse(Cause::Internal, Some(way)) };
    let begun = if rule.asked.is_some() { now() } else { Tick::ZERO };
    recording.record.asked = begun;
    let asked = auth(asking, rule, edge).await;
    // How long it took is no part of how long a backend may take.
    recording.record.routed = now();
    if begun != Tick::ZERO {
        recording.record.told = recording.record.routed;
    }
    match asked {
        Ok(authenticated) => {
            if let Some(user) = &authenticated.user {
                recording.by(user);
            }
            let (client, user) = (asking.counted(), authenticated.user.as_deref());
            let asker = Asker { head: asking.head, client, user };
            let counted = rate::of_user(way.route, &asker, now(), &asking.ctx.cells.rates);
            way.admit(authenticated);
            match counted {
                Ok(()) => onward(way),
                Err(denial) => Routed::Deny(denial, Some(way)),
            }
        }
        Err(AuthRefusal::Denial(denial)) => Routed::Deny(Box::new(denial), Some(way)),
        Err(AuthRefusal::Answer(answer)) => Routed::Relay(answer, way),
    }
}
