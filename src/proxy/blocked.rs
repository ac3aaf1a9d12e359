//! Clients that are kept out at run time, as one worker knows them.
//!
//! Control makes one table for all workers, which is never changed, and sends it to each of them with an order to cut. Nothing here is
//! shared between threads: who is asked about costs one look at a cell while nobody is blocked.
//!
//! Invariants:
//!
//! 1. A worker takes the table and cuts in one turn of its event loop, in this order, and no task runs between the two.
//! 2. A connection is asked about in the very turn in which it becomes a listed task (`worker::admission`), a request of a trusted proxy
//!    in the very turn in which it is listed here. So whatever an order finds neither listed nor refused is asked later, by the new table:
//!    connections that the kernel still has, that are on their way from another worker, and requests whose head is not complete.
//! 3. Orders reach a worker in the order in which their tables were made, so the last table is the one in force.
//! 4. A task that is cut is known as such until it is gone: its record says `blocked`.
//!
//! An order without anything to cut (`keep`) leaves what is under way; the next request on the same connection is asked again.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use slab::Slab;
use tokio::task::{Id, try_id};

use crate::access::{NetworkVerdict, Networks};
use crate::message::Cause;

/// Who is kept out by one worker.
#[derive(Default)]
pub struct BlockedClients {
    /// Somebody is.
    any: Cell<bool>,
    table: RefCell<Arc<Networks>>,
    /// For whom trusted proxies have sent what is under way, and by which task it is served.
    proxied: RefCell<Slab<(IpAddr, Id)>>,
    /// Tasks that were told to end.
    cut: RefCell<HashSet<Id>>,
}

/// A request that a trusted proxy has sent for somebody, while it is under way.
pub struct ProxiedRequest<'a> {
    of: &'a BlockedClients,
    key: usize,
}

impl Drop for ProxiedRequest<'_> {
    fn drop(&mut self) {
        self.of.proxied.borrow_mut().try_remove(self.key);
    }
}

impl BlockedClients {
    /// From now on these are kept out.
    pub fn replace(&self, table: Arc<Networks>) {
        self.any.set(!table.is_empty());
        self.table.replace(table);
    }

    /// Why a client is not let in; `None`: it is. One without an address, over a unix socket, always is.
    #[must_use]
    #[inline(always)]
    pub fn refusal(&self, client: Option<IpAddr>) -> Option<Cause> {
        if self.any.get() { self.look(client) } else { None }
    }

    #[inline(never)]
    fn look(&self, client: Option<IpAddr>) -> Option<Cause> {
        (self.table.borrow().verdict(client?) == Some(NetworkVerdict::Deny)).then_some(Cause::Blocked)
    }

    /// Lists a request that the running task serves for `client`; `None`: no task runs.
    #[must_use]
    pub fn list(&self, client: IpAddr) -> Option<ProxiedRequest<'_>> {
        let key = self.proxied.borrow_mut().insert((client, try_id()?));
        Some(ProxiedRequest { of: self, key })
    }

    /// The tasks that serve a request for a client in `networks`.
    #[must_use]
    pub fn tasks_for(&self, networks: &Networks) -> HashSet<Id> {
        let proxied = self.proxied.borrow();
        let is_in = |client: IpAddr| networks.verdict(client) == Some(NetworkVerdict::Deny);
        proxied.iter().filter(|(_, (client, _))| is_in(*client)).map(|(_, (_, task))| *task).collect()
    }

    /// These tasks were told to end.
    pub fn note_cut(&self, tasks: impl IntoIterator<Item = Id>) {
        self.cut.borrow_mut().extend(tasks);
    }

    /// Whether a task was told to end, and is not gone.
    #[must_use]
    pub fn has_cut(&self, task: Id) -> bool {
        self.cut.borrow().contains(&task)
    }

    /// Forgets of those the ones that are gone.
    pub fn forget_cut(&self, is_there: impl Fn(&Id) -> bool) {
        self.cut.borrow_mut().retain(|task| is_there(task));
    }

    /// Whether the task that runs, or is dropped, was told to end.
    #[must_use]
    pub fn cuts_this(&self) -> bool {
        let cut = self.cut.borrow();
        !cut.is_empty() && try_id().is_some_and(|task| cut.contains(&task))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(all: &[&str]) -> Arc<Networks> {
        let all: Vec<_> = all.iter().map(|text| text.parse().expect("a network")).collect();
        Arc::new(Networks::new(&[], &all))
    }

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn who_is_in_the_table_is_refused_and_nobody_else() {
        let clients = BlockedClients::default();
        assert_eq!(clients.refusal(ip("192.0.2.7")), None);
        clients.replace(networks(&["192.0.2.0/24", "2001:db8::/32"]));
        for (address, refusal) in [
            ("192.0.2.7", Some(Cause::Blocked)),
            ("::ffff:192.0.2.7", Some(Cause::Blocked)),
            ("2001:db8::1", Some(Cause::Blocked)),
            ("192.0.3.7", None),
        ] {
            assert_eq!(clients.refusal(ip(address)), refusal, "{address}");
        }
        assert_eq!(clients.refusal(None), None, "a unix socket has no address");
        clients.replace(networks(&[]));
        assert_eq!(clients.refusal(ip("192.0.2.7")), None);
    }

    #[tokio::test]
    async fn a_request_for_another_is_listed_with_its_task_until_it_is_dropped() {
        let clients = BlockedClients::default();
        let client = ip("192.0.2.7").expect("one");
        assert!(clients.list(client).is_none(), "nobody can be told to end here");
        let local = tokio::task::LocalSet::new();
        let clients = std::rc::Rc::new(clients);
        let of_task = std::rc::Rc::clone(&clients);
        local
            .run_until(async move {
                let task = tokio::task::spawn_local(async move {
                    let listed = of_task.list(client);
                    tokio::task::yield_now().await;
                    let cut = of_task.cuts_this();
                    drop(listed);
                    (cut, of_task.tasks_for(&networks(&["192.0.2.0/24"])).len())
                });
                let id = task.id();
                tokio::task::yield_now().await;
                assert_eq!(clients.tasks_for(&networks(&["192.0.2.0/24"])), HashSet::from([id]));
                assert!(clients.tasks_for(&networks(&["10.0.0.0/8"])).is_empty());
                clients.note_cut([id]);
                assert!(!clients.cuts_this(), "it is another one");
                assert_eq!(task.await.expect("it ends"), (true, 0));
                clients.forget_cut(|_| false);
                assert!(clients.cut.borrow().is_empty());
            })
            .await;
    }
}
