//! Who a client is, where its route wants to know.

use crate::config::model::AuthKind;
use crate::message::Cause;
use crate::proxy::http::edge::Edge;
use crate::snapshot::RouteAuth;

use super::asking::Asking;
use super::authenticated::{AuthRefusal, Authenticated};
use super::denial::Denial;
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
        (AuthKind::Forward(config), Some(asked)) => forward::ask(asking, config, asked, edge).await,
        // No config is accepted with one that is not there.
        (AuthKind::Forward(_), None) => {
            Err(AuthRefusal::Denial(Denial::new(Cause::AuthUnavailable, Vec::new())))
        }
    }
}
