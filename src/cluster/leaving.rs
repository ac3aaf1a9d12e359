//! What a node still says that has left, of what it has under way.

use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::node::ClusterNode;
use super::rows::Farewell;
use crate::store::shared::{ClusterStore as _, LeaseNumber, RowChange, Transaction};

/// How often that is looked at.
const TICK: Duration = Duration::from_millis(250);
/// How long the store may take for one of them.
const PATIENCE: Duration = Duration::from_secs(1);

impl ClusterNode {
    /// Once this node leaves, these words stay in the row `AREA/NODE/BOOT-PROCESS`, while there are any: of processes that come into the place of one another
    /// several may leave.
    pub fn at_last(&self, area: &'static str, words: Farewell) {
        let name = format!("{area}/{}/{}-{}", self.view().node, self.boot(), std::process::id());
        *self.last_words.lock().unwrap_or_else(PoisonError::into_inner) = Some((name, words));
    }

    /// Says them for the first time; gives the lease that they have. Called before its own is given back, so that nobody misses anything.
    pub(super) async fn begin_last_words(&self) -> Option<LeaseNumber> {
        let (name, words) = self.last_words()?;
        let value = (words.0)()?;
        let lease = timeout(PATIENCE, self.store.grant(self.lease)).await.ok()?.ok()?;
        self.say_last(name, value, lease).await;
        Some(lease)
    }

    /// Goes on until there is nothing left to say.
    pub(super) async fn end_last_words(&self, lease: LeaseNumber) {
        let Some((name, words)) = self.last_words() else { return };
        while let Some(value) = (words.0)() {
            sleep(TICK).await;
            let _ = timeout(PATIENCE, self.store.keep_alive(lease)).await;
            self.say_last(name.clone(), value, lease).await;
        }
        let _ = timeout(PATIENCE, self.store.revoke(lease)).await;
    }

    fn last_words(&self) -> Option<(String, Farewell)> {
        self.last_words.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is not heard now is said again in a moment.
    async fn say_last(&self, name: String, value: Vec<u8>, lease: LeaseNumber) {
        let change = RowChange::Put { name, value, lease: Some(lease) };
        let said = self.store.commit(Transaction { conditions: Vec::new(), changes: vec![change] });
        let _ = timeout(PATIENCE, said).await;
    }
}
