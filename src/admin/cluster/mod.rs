//! What is told of the cluster, and what its nodes are told.

pub mod owners;
pub mod report;

use std::sync::Arc;

use hyper::StatusCode;

use super::api::Api;
use super::exchange::answers::ok;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::hand_routes::author;
use super::route::AdminOutcome;
use crate::cluster::membership::Standing;
use crate::cluster::node::ClusterNode;
use crate::cluster::rows::{self, DrainRow};
use crate::net::now;
use crate::reload::begun::now_ms;
use crate::store::shared::{Committed, Revision, RowChange, RowCondition, StoreFault, Transaction};
use report::{ClusterReport, NodeReport};

/// How often a change is tried again that others come before.
const TRIES: usize = 5;

fn node(api: &Api) -> Result<&Arc<ClusterNode>, ProblemDocument> {
    let alone = "this process stands alone: its config has no `cluster`";
    api.cluster.as_ref().ok_or_else(|| ProblemDocument::plain(StatusCode::NOT_FOUND, alone))
}

/// `GET` of it.
pub(super) fn cluster(api: &Api) -> AdminOutcome {
    let node = node(api)?;
    let in_force = api.running.revision();
    Ok(ok(&ClusterReport::of(node, &node.view(), in_force.as_deref(), now())))
}

/// Has a node drained (`is_wanted`), or not any more.
pub(super) async fn drain(api: &Api, asked: &Question, is_wanted: bool) -> AdminOutcome {
    let cluster = node(api)?;
    let (name, author) = (asked.parameter("node"), author(asked)?);
    let row = rows::drain(name);
    for _ in 0..TRIES {
        let view = cluster.view();
        if view.standing != Standing::Member {
            let why = view.standing.reason().unwrap_or("it has not joined yet");
            return Err(problem(&StoreFault::Apart(format!("{}: {why}", view.standing.as_str()))));
        }
        let (nodes, changed) = (view.nodes(), view.rows.changed(&row));
        let node = nodes.iter().find(|node| node.name == name);
        // One that is away may be let come back as it was.
        let Some(node) = node else {
            if !is_wanted && changed > 0 {
                commit(cluster, &row, changed, RowChange::drop(&row)).await?;
                return Ok(ok(&NodeReport::away(name)));
            }
            let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
            let why = format!("there is no node `{name}`; there are: {}", names.join(", "));
            return Err(ProblemDocument::plain(StatusCode::NOT_FOUND, why));
        };
        let wish = DrainRow { author: author.to_string(), at_ms: now_ms() };
        let change = match is_wanted {
            true => RowChange::put(&row, rows::write_over(&wish, view.rows.value(&row))),
            false => RowChange::drop(&row),
        };
        // Also where that is how it is known to be: what is known may be old.
        if commit(cluster, &row, changed, change).await? {
            let report = NodeReport::of(node, &view);
            return Ok(ok(&NodeReport { drained_by: is_wanted.then_some(wish.author), ..report }));
        }
        cluster.learned(view.rows.revision() + 1).await;
    }
    let why = "others change the same again and again; nothing has changed";
    Err(ProblemDocument::plain(StatusCode::CONFLICT, why))
}

/// Whether it is done; if not, another change came before.
async fn commit(
    cluster: &ClusterNode,
    row: &str,
    changed: Revision,
    change: RowChange,
) -> Result<bool, ProblemDocument> {
    let conditions = vec![RowCondition { name: row.to_owned(), changed }];
    let done = cluster.commit(Transaction { conditions, changes: vec![change] }).await;
    match done.map_err(|fault| problem(&fault))? {
        Committed::Done(revision) => {
            cluster.learned(revision).await;
            Ok(true)
        }
        Committed::Conflict => Ok(false),
    }
}

fn problem(fault: &StoreFault) -> ProblemDocument {
    let status = match fault {
        StoreFault::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    ProblemDocument::plain(
        status,
        format!("it is not known to be done, because the cluster can't be told: {fault}"),
    )
}
