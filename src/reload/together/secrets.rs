//! Keys of session tickets that all nodes have: a client that comes back to another node resumes its session there.
//!
//! The row says three secrets, of which every node makes the same keys ([`TicketRoots`]); it is sealed with the cluster's key. Whoever finds it too old moves it on,
//! under the condition that nobody else has. A node that is detached keeps what it knows.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::sharing::Together;
use crate::cluster::membership::Standing;
use crate::cluster::view::ClusterView;
use crate::events;
use crate::reload::begun::now_ms;
use crate::reload::running::RunningConfig;
use crate::store::shared::{Revision, RowChange, RowCondition, Transaction};
use crate::tls::{ROTATION, TicketRoots};

const ROW: &str = "key/tickets";
/// How often it is looked whether the keys are too old.
const LOOK: Duration = Duration::from_secs(60);

/// `key/tickets`, before it is sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TicketRow {
    roots: [[u8; 32]; 3],
    at_ms: u64,
}

/// What decides about the keys: the row, and whether this node is one of them.
fn facts(view: &ClusterView) -> (Revision, bool) {
    (view.rows.changed(ROW), view.standing == Standing::Member)
}

impl RunningConfig {
    /// Has the keys of session tickets that all nodes have, until the process drains.
    pub async fn follow_tickets(&self) {
        let Some(together) = &self.together else { return };
        if !together.node.seals() {
            events::secrets_unshared();
            return;
        }
        let (mut views, mut taken, mut unread) = (together.node.views(), None, None);
        loop {
            let view = views.borrow_and_update().clone();
            self.share_tickets(together, &view, &mut taken, &mut unread).await;
            // Other rows change several times a second, and this one is sealed.
            let before = facts(&view);
            tokio::select! {
                changed = views.wait_for(|view| facts(view) != before) => if changed.is_err() { return },
                () = sleep(LOOK) => {}
            }
        }
    }

    /// `taken`: what the keys are made of; `unread`: the change of the row that could not be read.
    async fn share_tickets(
        &self,
        together: &Together,
        view: &ClusterView,
        taken: &mut Option<[[u8; 32]; 3]>,
        unread: &mut Option<Revision>,
    ) {
        let changed = view.rows.changed(ROW);
        let row: Option<TicketRow> = match together.node.unpacked(&view.rows, ROW) {
            Some(Ok(row)) => Some(row),
            Some(Err(fault)) => {
                // With another key it is somebody else's to move on.
                if unread.replace(changed) != Some(changed) {
                    events::secret_unread(ROW, &fault.to_string());
                }
                return;
            }
            None => None,
        };
        if let Some(row) = &row
            && taken.replace(row.roots) != Some(row.roots)
        {
            self.reloader.snapshots.tickets().share(TicketRoots(row.roots));
        }
        let now = now_ms();
        let lasts = u64::try_from(ROTATION.as_millis()).unwrap_or(u64::MAX);
        let next = match row {
            None => TicketRow {
                roots: [TicketRoots::fresh(), TicketRoots::fresh(), TicketRoots::fresh()],
                at_ms: now,
            },
            // Or of a clock that was far ahead.
            Some(TicketRow { roots: [_, current, next], at_ms }) if now.abs_diff(at_ms) >= lasts => {
                TicketRow { roots: [current, next, TicketRoots::fresh()], at_ms: now }
            }
            Some(_) => return,
        };
        if view.standing != Standing::Member {
            return;
        }
        let conditions = vec![RowCondition { name: ROW.to_owned(), changed }];
        let changes = vec![RowChange::put(ROW, together.node.packed_over(&view.rows, ROW, &next))];
        // If another was first, what it has written is on its way; if nobody can be told, there is a next time.
        let _ = together.node.commit(Transaction { conditions, changes }).await;
    }
}
