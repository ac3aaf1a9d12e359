//! Purges, on this node and on all.

use super::purges::{PurgeWish, writing};
use super::sharing::Together;
use crate::reload::begun::now_ms;
use crate::reload::running::RunningConfig;
use crate::store::shared::{Committed, StoreFault};

/// How often a purge is written again before which others come with theirs.
const TRIES: usize = 20;

/// Why nothing was purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeFault {
    /// It does not say what of.
    Unsound,
    /// No config is in force.
    NoConfig,
    /// The other nodes can't be told.
    Untold(String),
}

impl RunningConfig {
    /// Purges something on all nodes; with `is_local` on this one alone. Says how many stored answers of this one it was about, where they are counted.
    ///
    /// # Errors
    /// Nothing was purged.
    pub async fn purge(
        &self,
        wish: &PurgeWish,
        author: &str,
        is_local: bool,
    ) -> Result<Option<usize>, PurgeFault> {
        if !wish.is_sound() {
            return Err(PurgeFault::Unsound);
        }
        let together = self.together.as_ref().filter(|_| !is_local);
        let number = match together {
            Some(together) => Some(tell(together, wish, author).await?),
            None => None,
        };
        let snapshot = self.reloader.snapshots.current().ok_or(PurgeFault::NoConfig)?;
        let fulfil = || wish.fulfil(&snapshot).map_err(|_| PurgeFault::Unsound);
        match (together, number) {
            (Some(together), Some(number)) => together.purges.own(number, fulfil),
            _ => fulfil(),
        }
    }

    /// Purges what other nodes have purged, until the process drains.
    pub async fn follow_purges(&self) {
        let Some(together) = &self.together else { return };
        let mut views = together.node.views();
        loop {
            let view = views.borrow_and_update().clone();
            let snapshot = self.reloader.snapshots.current();
            together.purges.follow(&view.rows, view.rewinds, |wish| {
                // What is no URL to this version is none that it has stored.
                let _ = snapshot.as_ref().map(|snapshot| wish.fulfil(snapshot));
            });
            if views.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Writes a purge for all nodes; gives its number.
async fn tell(together: &Together, wish: &PurgeWish, author: &str) -> Result<u64, PurgeFault> {
    let node = &together.node;
    for _ in 0..TRIES {
        let view = node.view();
        let Some((transaction, number)) = writing(&view.rows, wish, author.to_owned(), now_ms()) else {
            return Err(PurgeFault::Untold("its purges are written by a later version".to_owned()));
        };
        match node.commit(transaction).await {
            Ok(Committed::Done(_)) => return Ok(number),
            Ok(Committed::Conflict) => node.learned(view.rows.revision() + 1).await,
            Err(fault) => return Err(untold(&fault)),
        }
    }
    Err(PurgeFault::Untold("others purge at the same moment again and again".to_owned()))
}

fn untold(fault: &StoreFault) -> PurgeFault {
    PurgeFault::Untold(fault.to_string())
}
