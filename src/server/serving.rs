//! What a server does beside serving clients: it answers to operators, tells of itself, and is one of several.

use std::io;
use std::sync::Arc;

use super::Server;
use super::elders::SharedCounts;
use super::membership::MembershipEnd;
use super::watchdog;
use crate::acme::{self, OrderDesk};
use crate::admin::{AdminDoor, AdminListener, Api};
use crate::cluster::node::ClusterNode;
use crate::events;
use crate::lasting::again;
use crate::net::supervisor;
use crate::shutdown::Shutdown;
use crate::statsd;
use crate::webhook::{SharedHooks, WebhookStore, WebhookThread};

impl Server {
    /// Answers at the admin socket until the process drains.
    pub fn serve_admin(&mut self, listener: Arc<AdminListener>, api: Arc<Api>) {
        let Some(control) = &self.control else { return };
        events::admin_socket(listener.path(), &api.about.name);
        let drain = self.shutdown.drain.clone();
        self.admin = Some(Arc::clone(&listener));
        control.spawn(again("the admin socket", async move || listener.serve(&api, &drain).await));
    }

    /// Counts with the processes before this one and after it.
    pub fn count_together(&mut self, counts: Arc<SharedCounts>, api: &Arc<Api>) {
        let Some(control) = &self.control else { return };
        let source = Arc::clone(api);
        if let Some(snapshot) = self.reloader.snapshots.current() {
            counts.purge_in(Arc::clone(&snapshot.store));
        }
        counts.count_by(Box::new(move || source.scrape_sources()));
        self.counts = Some(Arc::clone(&counts));
        control.spawn(again("those who drain", async move || Arc::clone(&counts).keep_listening().await));
    }

    /// Has whoever supervises the process know that it works, and when it ends.
    pub fn tell_supervisor(&self) {
        let Some(control) = &self.control else { return };
        watchdog::feed(control, self.cells.clone(), self.shutdown.drain.clone());
        let Shutdown { leaving, drain, succeeded, .. } = self.shutdown.clone();
        control.spawn(async move {
            tokio::select! {
                () = leaving.cancelled() => {}
                () = drain.cancelled() => {}
            }
            // Another process goes on where there is one.
            if !succeeded.is_cancelled() {
                // Who can't be told sees it end.
                let _ = supervisor::tell("STOPPING=1\n");
            }
        });
    }

    /// Counts for the rates that the API tells of.
    pub fn count_rates(&self, api: Arc<Api>) {
        let Some(control) = &self.control else { return };
        let counting = async move || {
            tokio::join!(api.keep_counting(), api.keep_telling_nodes());
        };
        control.spawn(again("counting for rates", counting));
    }

    /// Sends numbers to statsd, where a config says so, until the workers have ended.
    pub fn send_statsd(&mut self, api: Arc<Api>) {
        let Some(control) = &self.control else { return };
        let source = Arc::new(move || api.scrape_sources());
        self.statsd = Some(statsd::start(control.handle(), &self.reloader, source));
    }

    /// Gives metrics over TCP until the process drains.
    pub fn serve_metrics(&mut self, door: Arc<AdminDoor>, api: Arc<Api>) {
        let Some(control) = &self.control else { return };
        door.addresses().iter().for_each(|address| events::metrics_listener(*address));
        let drain = self.shutdown.drain.clone();
        self.metrics = Some(Arc::clone(&door));
        control.spawn(again("the metrics listener", async move || door.serve(&api, &drain).await));
    }

    /// Answers over TCP until the process drains.
    pub fn serve_admin_over_tcp(&mut self, door: Arc<AdminDoor>, api: Arc<Api>) {
        let Some(control) = &self.control else { return };
        let has_tokens = self.reloader.admin.borrow().as_ref().is_some_and(|access| access.tokens.is_some());
        door.addresses().iter().for_each(|address| events::admin_listener(*address, has_tokens));
        let drain = self.shutdown.drain.clone();
        self.door = Some(Arc::clone(&door));
        control.spawn(again("the admin listener", async move || door.serve(&api, &drain).await));
    }

    /// Tells webhooks of events, in the name of `node` and with the other nodes of `cluster`, until the process drains.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn tell_webhooks(
        &mut self,
        node: &str,
        cluster: Option<&Arc<ClusterNode>>,
        store: impl FnOnce() -> WebhookStore + Send + 'static,
        has_rest: bool,
    ) -> io::Result<()> {
        let (drain, control) = (&self.shutdown.drain, self.control.as_ref());
        let shared =
            cluster.zip(control).map(|(node, control)| SharedHooks::new(node, control.handle().clone()));
        self.webhooks = WebhookThread::start(node, &self.reloader, shared, store, has_rest, drain)?;
        Ok(())
    }

    /// Is one of a cluster until the process drains.
    pub fn join(&mut self, node: &Arc<ClusterNode>) {
        let Some(control) = &self.control else { return };
        self.membership = Some(MembershipEnd::start(control, node, &self.shutdown.drain));
    }

    /// Has certificates ordered that configs want, with the other nodes if it is one of several, until the process drains; inside `Err`: they can't be, and
    /// why.
    pub fn order_certificates(&self, desk: Result<OrderDesk, String>, node: Option<&Arc<ClusterNode>>) {
        let Some(control) = &self.control else { return };
        let (reloader, desk) = (Arc::clone(&self.reloader), Arc::new(desk.map(Arc::new)));
        let (drain, node) = (self.shutdown.drain.clone(), node.cloned());
        let orders =
            again("ordering certificates", async move || acme::keep(&reloader, &desk, node.as_ref()).await);
        // With it goes the desk, and its hold on the folder of state: a successor can have that.
        control.spawn(async move { drain.run_until_cancelled_owned(orders).await });
    }
}
