//! One worker's things without a worker: what drives the pipeline by itself.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use evenkeel::config::model::Config;
use evenkeel::message::{ClientAddress, Head, ListenerId, Peer};
use evenkeel::net::now;
use evenkeel::proxy::http::after::After;
use evenkeel::proxy::http::exchange::{IncomingRequest, Space, exchange};
use evenkeel::proxy::http::memory::MemoryEdge;
use evenkeel::proxy::http::request_body::RequestBody;
use evenkeel::proxy::pool::Pool;
use evenkeel::proxy::{Here, WorkerCtx};
use evenkeel::server::Options;
use evenkeel::snapshot::Snapshot;
use evenkeel::targets::Target;
use evenkeel::telemetry::cells::Cells;

use super::PATIENCE;

/// Runs `work` with the things of a worker, on a runtime like a worker's.
pub fn run<F: Future<Output = ()>>(config: &Config, work: impl FnOnce(Rc<WorkerCtx>) -> F) {
    let options = tokio::runtime::LocalOptions::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(options).unwrap();
    let snapshot = Snapshot::of(config);
    runtime.block_on(async {
        let pool = Pool::new(Arc::default());
        let ctx =
            WorkerCtx::new(snapshot, pool, Arc::new(Cells::default()), None, Options::default().raw_relay, 0);
        let ticker = Rc::clone(&ctx.ticker);
        tokio::task::spawn_local(async move { ticker.run().await });
        tokio::time::timeout(PATIENCE + Duration::from_secs(10), work(ctx)).await.unwrap();
    });
}

/// Its only listener.
pub fn here(ctx: &WorkerCtx) -> Here {
    ctx.here(ListenerId(0)).unwrap()
}

/// Its only target.
pub fn target(ctx: &WorkerCtx) -> Arc<Target> {
    Arc::clone(here(ctx).targets()[0])
}

/// One request through the pipeline, without a wire on the client's side.
pub async fn ask(ctx: &Rc<WorkerCtx>, head: &Head, body: RequestBody) -> (After, MemoryEdge) {
    let mut edge = MemoryEdge::default();
    let peer = Peer { client: Some(ClientAddress::new([192, 0, 2, 7].into(), 1234)), ..Peer::default() };
    let listener = &*here(ctx);
    let incoming =
        IncomingRequest { ctx, listener, head, peer: &peer, told: None, started: now(), head_read: now() };
    let after = exchange(&incoming, &mut edge, &body, &mut Space::default()).await;
    (after, edge)
}
