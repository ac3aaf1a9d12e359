//! Who a client is, where its route wants to know.

use crate::access::jwt::told_claims;
use crate::config::model::AuthKind;
use crate::message::Cause;
use crate::net::now;
use crate::net::wall::wall_start;
use crate::proxy::http::edge::Edge;
use crate::snapshot::RouteAuth;

use super::asking::Asking;
use super::authenticated::{AuthRefusal, Authenticated};
use super::denial::Denial;
use super::token::token;
use super::{basic, forward};

/// Finds out who the client of a request is. Nothing of its body is read meanwhile.
///
/// # Errors
/// It is not let in.
pub async fn auth<E: Edge>(
    asking: &Asking<'_>,
    rule: &RouteAuth,
    edge: &mut E,
) -> Result<Authenticated, AuthRefusal> {
    match (&rule.config.kind, &rule.asked) {
        (AuthKind::Basic(config), _) => {
            let from = (asking.head, asking.counted());
            basic::basic(config, &rule.passwords, from, edge).await.map_err(AuthRefusal::Denial)
        }
        (AuthKind::Jwt(config), _) => {
            let keys = (config.keys.as_deref(), rule.keys.as_deref());
            let moment = now();
            // Nanoseconds since 1970 at tick zero, and those since.
            let seconds = (wall_start() + moment.0) / 1_000_000_000;
            let claims =
                token(asking.head, &config.rules, keys, &asking.ctx.verified_tokens, (moment, seconds));
            let claims = claims.map_err(AuthRefusal::Denial)?;
            let told = told_claims(&claims, &config.rules.claims_to_headers);
            if told.dropped > 0 {
                asking.ctx.cells.refusals.drop_lines(asking.listener.id, told.dropped);
            }
            let user = claims.user();
            Ok(Authenticated {
                user: (!user.is_empty()).then(|| user.to_owned()),
                lines: told.lines.into_iter().map(|(name, value)| (name, value.into_bytes())).collect(),
                cookies: Vec::new(),
            })
        }
        (AuthKind::Forward(config), Some(asked)) => forward::ask(asking, config, asked, edge).await,
        // No config is accepted with one that is not there.
        (AuthKind::Forward(_), None) => {
            Err(AuthRefusal::Denial(Denial::new(Cause::AuthUnavailable, Vec::new())))
        }
    }
}
