//! What a node knows of its cluster, for who looks at it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::membership::Standing;
use super::rows::{self, DRAINS, DrainRow, NODES, NodeRow};
use crate::store::shared::{Listing, Revision, StoreChanges, StoreRow};
use crate::tick::Tick;

/// All rows that are known, by name. A copy costs what their names cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownRows {
    rows: BTreeMap<Arc<str>, Arc<StoreRow>>,
    revision: Revision,
    /// When they were listed as a whole.
    listed: Revision,
    /// The latest change since then of rows whose names begin so, up to the first `/`.
    touched: BTreeMap<String, Revision>,
}

impl KnownRows {
    /// Those of a listing.
    #[must_use]
    pub fn of(listing: Listing) -> KnownRows {
        let rows = listing.rows.into_iter().map(|row| (row.name.as_str().into(), Arc::new(row))).collect();
        let revision = listing.revision;
        KnownRows { rows, revision, listed: revision, touched: BTreeMap::new() }
    }

    /// The same after these changes.
    pub fn take(&mut self, changes: StoreChanges) {
        self.revision = changes.revision;
        for name in &changes.dropped {
            self.rows.remove(name.as_str());
            self.touch(name);
        }
        changes.put.into_iter().for_each(|row| self.put(row));
    }

    /// One more of them, of which the others are still to be told.
    pub fn put(&mut self, row: StoreRow) {
        self.touch(&row.name);
        self.rows.insert(row.name.as_str().into(), Arc::new(row));
    }

    fn touch(&mut self, name: &str) {
        let area = name.split('/').next().unwrap_or(name);
        let revision = self.revision;
        match self.touched.get_mut(area) {
            Some(at) => *at = revision,
            None => drop(self.touched.insert(area.to_owned(), revision)),
        }
    }

    /// Up to which change rows are as they were whose names begin so, up to the first `/`: where it is the same as before, none of them is another.
    #[must_use]
    pub fn touched(&self, area: &str) -> (Revision, Revision) {
        (self.listed, self.touched.get(area).copied().unwrap_or(0))
    }

    /// Up to which change they are known.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&StoreRow> {
        self.rows.get(name).map(Arc::as_ref)
    }

    /// What one of them says, as it is kept.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.get(name).map(|row| row.value.as_slice())
    }

    /// The revision of the latest change of a row, as a condition has it: 0 if it is not there.
    #[must_use]
    pub fn changed(&self, name: &str) -> Revision {
        self.get(name).map_or(0, |row| row.changed)
    }

    fn from<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<StoreRow>)> {
        self.rows.range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
    }

    /// The names of rows that begin with `prefix`.
    pub fn names<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let from = self.from(prefix).map(|(name, _)| &**name);
        from.take_while(move |name| name.starts_with(prefix))
    }

    /// What the rows say whose names begin with `prefix`, by what is behind it. Rows that this version does not understand are left out.
    pub fn all<'a, T: serde::de::DeserializeOwned>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, T)> {
        let those = self.from(prefix).map_while(move |(name, row)| Some((name.strip_prefix(prefix)?, row)));
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

    /// The node that does `what` for all: one that is to be drained comes after all others, and one that has no file of its own never.
    #[must_use]
    pub fn first_for(&self, what: &str) -> Option<String> {
        self.first_of(what, |_| true)
    }

    /// The same among those that are fit for it, by name.
    #[must_use]
    pub fn first_of(&self, what: &str, is_fit: impl Fn(&str) -> bool) -> Option<String> {
        let mut nodes = self.nodes();
        nodes.retain(|node| is_fit(&node.name));
        first(&nodes, what)
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

/// By an order of the nodes that is another one for each thing: who comes or goes changes no more than it must.
fn first(nodes: &[KnownNode], what: &str) -> Option<String> {
    let place = |node: &KnownNode| {
        let hash = xxh3_64(format!("{}\0{what}", node.name).as_bytes());
        (node.drain.is_some(), Reverse(hash), node.name.clone())
    };
    nodes.iter().filter(|node| node.row.shares).min_by_key(|node| place(node)).map(|node| node.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(names: &[&str]) -> Vec<KnownNode> {
        let row = |name: &str| NodeRow {
            boot: format!("boot-{name}"),
            machine: name.to_owned(),
            version: "1".to_owned(),
            schema: [1, 1],
            shares: true,
            zone: None,
            since_ms: 0,
        };
        names.iter().map(|name| KnownNode { name: (*name).to_owned(), row: row(name), drain: None }).collect()
    }

    #[test]
    fn one_node_is_the_first_and_another_one_when_it_is_gone_or_to_be_drained() {
        let mut all = nodes(&["a", "b", "c"]);
        let one = first(&all, "this").unwrap();
        assert_eq!(first(&all, "this").as_ref(), Some(&one), "it depends on nothing else");
        let others: Vec<KnownNode> = all.iter().filter(|node| node.name != one).cloned().collect();
        let next = first(&others, "this").unwrap();
        assert_ne!(next, one);
        let drained = all.iter_mut().find(|node| node.name == one).unwrap();
        drained.drain = Some(DrainRow { author: "ops".to_owned(), at_ms: 1 });
        assert_eq!(first(&all, "this").as_ref(), Some(&next));
        // Where all are to be drained somebody is all the same.
        all.iter_mut().for_each(|node| node.drain = Some(DrainRow { author: "ops".to_owned(), at_ms: 1 }));
        assert_eq!(first(&all, "this"), Some(one));
        all.iter_mut().for_each(|node| node.row.shares = false);
        assert_eq!(first(&all, "this"), None);
        let spread: std::collections::HashSet<_> =
            (0..50).filter_map(|number| first(&nodes(&["a", "b", "c"]), &format!("{number}"))).collect();
        assert_eq!(spread.len(), 3, "not always the same");
    }

    #[test]
    fn an_area_is_touched_by_what_is_put_and_dropped_in_it_and_by_a_listing() {
        let row = |name: &str, changed| StoreRow { name: name.into(), value: vec![], changed, lease: None };
        let mut rows = KnownRows::of(Listing { rows: vec![row("a/1", 1), row("b/1", 2)], revision: 2 });
        let first = (rows.touched("a"), rows.touched("b"));
        let put = StoreChanges { put: vec![row("a/2", 3)], dropped: vec![], revision: 3 };
        rows.take(put);
        assert!(rows.touched("a") != first.0 && rows.touched("b") == first.1);
        let second = rows.touched("b");
        rows.take(StoreChanges { put: vec![], dropped: vec!["b/1".into()], revision: 4 });
        assert_ne!(rows.touched("b"), second);
        assert_eq!(rows.names("a/").collect::<Vec<_>>(), ["a/1", "a/2"]);
        assert_eq!((rows.names("b/").count(), rows.changed("a/2"), rows.changed("b/1")), (0, 3, 0));
        let again = KnownRows::of(Listing { rows: vec![], revision: 4 });
        assert_ne!(again.touched("a"), rows.touched("a"));
    }
}
