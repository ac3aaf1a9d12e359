//! Which node prefers which backends of targets with `owner: soft`.

use hyper::StatusCode;
use serde::{Deserialize, Serialize};

use crate::admin::api::Api;
use crate::admin::exchange::answers::ok;
use crate::admin::exchange::problem_document::ProblemDocument;
use crate::admin::exchange::question::Question;
use crate::admin::hand_routes::author;
use crate::admin::route::AdminOutcome;
use crate::reload::together::handing::{OwnedBackend, OwnerFault, TargetOwners};
use crate::store::shared::StoreFault;

/// `GET /api/v1/cluster/owners`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnersReport {
    /// Targets with `owner: soft`.
    pub targets: Vec<TargetOwnersReport>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetOwnersReport {
    /// Its name.
    pub target: String,
    /// All nodes.
    pub nodes: Vec<NodeOwnsReport>,
    /// Its backends.
    pub backends: Vec<OwnedReport>,
}

/// How many backends a node prefers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeOwnsReport {
    /// Its name.
    pub node: String,
    /// So many.
    pub backends: usize,
}

/// Who prefers a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedReport {
    /// The backend's name in its target.
    pub backend: String,
    /// The node; `None`: all do.
    pub node: Option<String>,
    /// Somebody has moved it there by hand, so nobody else moves it.
    pub by_hand: bool,
    /// Requests of this node on it.
    pub active: u32,
    /// Requests of others, as far as this node was told.
    pub elsewhere: u32,
}

impl OwnersReport {
    fn of(all: Vec<TargetOwners>) -> OwnersReport {
        let of_target = |of: TargetOwners| TargetOwnersReport {
            target: of.target.to_string(),
            nodes: of.nodes.into_iter().map(|(node, backends)| NodeOwnsReport { node, backends }).collect(),
            backends: of.backends.into_iter().map(OwnedReport::of).collect(),
        };
        OwnersReport { targets: all.into_iter().map(of_target).collect() }
    }
}

impl OwnedReport {
    fn of(backend: OwnedBackend) -> OwnedReport {
        let OwnedBackend { name, node, is_held, in_flight, elsewhere } = backend;
        OwnedReport { backend: name, node, by_hand: is_held, active: in_flight, elsewhere }
    }
}

/// `GET` of them.
pub(in crate::admin) fn owners(api: &Api) -> AdminOutcome {
    api.running.owners().map(|all| ok(&OwnersReport::of(all))).map_err(|fault| problem(&fault))
}

/// `POST` of a backend's: it moves to a node, and stays there.
pub(in crate::admin) async fn hand(api: &Api, asked: &Question) -> AdminOutcome {
    let mut fields = asked.fields()?;
    let node = fields.text("node")?;
    let needs = "`node` says which node is to prefer it";
    let node = node.ok_or_else(|| ProblemDocument::plain(StatusCode::BAD_REQUEST, needs))?;
    fields.end()?;
    change(api, asked, Some(&node)).await
}

/// `DELETE` of a backend's: it moves as nodes have need of it.
pub(in crate::admin) async fn release(api: &Api, asked: &Question) -> AdminOutcome {
    change(api, asked, None).await
}

async fn change(api: &Api, asked: &Question, node: Option<&str>) -> AdminOutcome {
    let (target, backend) = (asked.parameter("target"), asked.parameter("backend"));
    let moved = api.running.move_owner(target, backend, node, &author(asked)?.to_string()).await;
    moved.map(|backend| ok(&OwnedReport::of(backend))).map_err(|fault| problem(&fault))
}

fn problem(fault: &OwnerFault) -> ProblemDocument {
    let status = match fault {
        OwnerFault::Alone | OwnerFault::Unknown(_) => StatusCode::NOT_FOUND,
        OwnerFault::NotShared(_) | OwnerFault::Crowded => StatusCode::CONFLICT,
        OwnerFault::Untold(StoreFault::Full(_)) => StatusCode::INSUFFICIENT_STORAGE,
        OwnerFault::Untold(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    ProblemDocument::plain(status, fault.to_string())
}
