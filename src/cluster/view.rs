//! What a node knows of its cluster, for who looks at it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::membership::Standing;
use super::rows::{self, DRAINS, DrainRow, NODES, NodeRow};
use crate::store::shared::{Listing, Revision, StoreChanges, StoreRow};
use crate::tick::Tick;

/// All rows that are known, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownRows {
    rows: BTreeMap<String, StoreRow>,
    revision: Revision,
}

impl KnownRows {
    /// Those of a listing.
    #[must_use]
    pub fn of(listing: Listing) -> KnownRows {
        let rows = listing.rows.into_iter().map(|row| (row.name.clone(), row)).collect();
        KnownRows { rows, revision: listing.revision }
    }

    /// The same after these changes.
    pub fn take(&mut self, changes: StoreChanges) {
        for name in &changes.dropped {
            self.rows.remove(name);
        }
        self.rows.extend(changes.put.into_iter().map(|row| (row.name.clone(), row)));
        self.revision = changes.revision;
    }

    /// One more of them, of which the others are still to be told.
    pub fn put(&mut self, row: StoreRow) {
        self.rows.insert(row.name.clone(), row);
    }

    /// Up to which change they are known.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&StoreRow> {
        self.rows.get(name)
    }

    /// The revision of the latest change of a row, as a condition has it: 0 if it is not there.
    #[must_use]
    pub fn changed(&self, name: &str) -> Revision {
        self.get(name).map_or(0, |row| row.changed)
    }

    /// The names of rows that begin with `prefix`.
    pub fn names<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let from = self.rows.range(prefix.to_owned()..);
        from.map(|(name, _)| name.as_str()).take_while(move |name| name.starts_with(prefix))
    }

    /// What the rows say whose names begin with `prefix`, by what is behind it. Rows that this version does not understand are left out.
    pub fn all<'a, T: serde::de::DeserializeOwned>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, T)> {
        let from = self.rows.range(prefix.to_owned()..);
        let those = from.map_while(move |(name, row)| Some((name.strip_prefix(prefix)?, row)));
        those.filter_map(|(name, row)| Some((name, rows::read(&row.value)?)))
    }
}

/// One of the nodes that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownNode {
    /// What it is called.
    pub name: String,
    /// What it says of itself.
    pub row: NodeRow,
    /// Who wants it drained.
    pub drain: Option<DrainRow>,
}

/// What a node knows of its cluster.
#[derive(Clone, Debug)]
pub struct ClusterView {
    /// What the cluster is called.
    pub cluster: Arc<str>,
    /// What this node is called.
    pub node: Arc<str>,
    /// What this start of it is known by.
    pub boot: Arc<str>,
    /// How it stands to the others.
    pub standing: Standing,
    /// Since when.
    pub since: Tick,
    /// When its lease was kept alive last; `None`: it has none.
    pub kept: Option<Tick>,
    /// What is shared, as it was known last.
    pub rows: Arc<KnownRows>,
    /// How often the store has gone back to what it was before: what was known up to then says nothing of it.
    pub rewinds: u32,
}

impl ClusterView {
    /// All nodes that are there, by name.
    #[must_use]
    pub fn nodes(&self) -> Vec<KnownNode> {
        let node = |(name, row): (&str, NodeRow)| {
            let drain = self.rows.get(&rows::drain(name)).and_then(|row| rows::read(&row.value));
            KnownNode { name: name.to_owned(), row, drain }
        };
        self.rows.all(NODES).map(node).collect()
    }

    /// Whether the row of this name is this process's: another one may have the name.
    #[must_use]
    pub fn is_own(&self, name: &str, boot: &str) -> bool {
        name == &*self.node && boot == &*self.boot
    }

    /// Who wants this node drained.
    #[must_use]
    pub fn drain(&self) -> Option<DrainRow> {
        let own = self.rows.get(&rows::node(&self.node));
        let own = own.and_then(|row| rows::read::<NodeRow>(&row.value));
        if own.is_some_and(|row| row.boot != *self.boot) {
            return None;
        }
        let row = self.rows.get(&format!("{DRAINS}{}", self.node))?;
        rows::read(&row.value)
    }
}
