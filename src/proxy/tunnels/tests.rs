//! Whoever leaves, and in whichever order a tunnel begins and the worker hears of it: it ends in time, and no other.

use std::task::Waker;
use std::time::Duration;

use super::*;
use crate::config::model::{self, BackendAddress, Config, Policy, Protocol, Timeouts};
use crate::proxy::{WorkerCtx, fixtures};
use crate::snapshot::{Snapshot, Snapshots};

const WINDOW: Duration = Duration::from_secs(60);

/// One target with so many backends on a listener.
fn config(names: &[&str]) -> Config {
    let backend = |name: &&str| model::BackendConfig {
        name: (*name).into(),
        address: BackendAddress::Host { host: "127.0.0.1".into(), port: 1 },
        probe_path: None,
        tls: None,
        portion: model::Portion::default(),
        state: model::BackendState::Up,
        state_by: None,
        dialing: Default::default(),
        found: None,
    };
    let target = model::TargetConfig {
        send_proxy: None,
        name: "web".into(),
        protocol: Protocol::Http,
        host: model::HostHeader::Pass,
        balance: Policy::default(),
        sticky: None,
        health: None,
        timeouts: Timeouts::default(),
        drain_timeout: WINDOW,
        resilience: model::Resilience::default(),
        upgrade: Vec::new(),
        upstream: model::UpstreamProtocol::Http,
        backends: names.iter().map(backend).collect(),
        sources: Vec::new(),
    };
    let mut config = fixtures::config();
    config.targets = vec![target];
    config.listeners[0].routes = vec![Arc::new(model::RouteConfig::catch_all("web"))];
    config
}

fn backends(snapshot: &Snapshot) -> Vec<Arc<Backend>> {
    snapshot.targets.iter().flat_map(|target| target.backends.iter().map(Arc::clone)).collect()
}

/// A worker with two backends, of which the first is about to go.
struct Scene {
    ctx: Rc<WorkerCtx>,
    snapshots: Snapshots,
    backends: Vec<Arc<Backend>>,
}

impl Scene {
    fn new() -> Scene {
        let snapshots = Snapshots::new();
        let (snapshot, _) = snapshots.commit(snapshots.prepare(&config(&["a", "b"])));
        Scene { ctx: fixtures::context(), snapshots, backends: backends(&snapshot) }
    }

    /// What workers are to look at.
    fn commit(&self) -> Vec<Arc<Backend>> {
        self.snapshots.commit(self.snapshots.prepare(&config(&["b"]))).1.backends
    }

    fn begin(&self, backend: usize, kind: TunnelKind) -> Tunnel<'_> {
        self.ctx.tunnels.begin(&self.backends[backend], ListenerId(0), kind)
    }
}

fn moment(tunnel: &Tunnel<'_>) -> Option<Tick> {
    tunnel.end.first().map(|farewell| farewell.moment)
}

fn poll(tunnel: &Tunnel<'_>) -> Poll<Leaving> {
    tunnel.poll_leave(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn whenever_a_tunnel_begins_while_its_backend_goes_it_ends_within_the_window() {
    // Before the removal, between it and the worker's look, behind both.
    for place in 0..3 {
        let scene = Scene::new();
        let before = now();
        let mut tunnels = Vec::new();
        let begin = |now: usize, tunnels: &mut Vec<_>| {
            if now == place {
                tunnels.extend([0, 0, 1].map(|backend| scene.begin(backend, TunnelKind::Bytes)));
                assert!(tunnels.iter().all(|tunnel| poll(tunnel).is_pending()), "at {now}");
            }
        };
        begin(0, &mut tunnels);
        let gone = scene.commit();
        assert_eq!(gone.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["a"]);
        begin(1, &mut tunnels);
        scene.ctx.tunnels.look(&gone);
        begin(2, &mut tunnels);
        let end = now().after(WINDOW);
        for tunnel in &tunnels[..2] {
            let moment = moment(tunnel).expect("it has one");
            assert!(moment >= before && moment < end, "at {place}: {moment:?}");
        }
        assert_eq!(moment(&tunnels[2]), None, "the other backend stays");
        scene.ctx.ticker.tick(end);
        let ready: Vec<_> = tunnels.iter().map(|tunnel| poll(tunnel).is_ready()).collect();
        assert_eq!(ready, [true, true, false], "at {place}");
    }
}

#[test]
fn those_that_are_there_are_spread_evenly_and_who_looks_again_changes_no_end() {
    let scene = Scene::new();
    let tunnels: Vec<_> = (0..600).map(|_| scene.begin(0, TunnelKind::Bytes)).collect();
    let gone = scene.commit();
    let departure = gone[0].departure().expect("it leaves");
    assert_eq!(departure.window, WINDOW);
    for _ in 0..3 {
        scene.ctx.tunnels.look(&gone);
        let mut by_second = [0; 60];
        for tunnel in &tunnels {
            let after = moment(tunnel).expect("it has one").since(departure.since);
            by_second[after.as_secs() as usize] += 1;
        }
        assert!(by_second[..58].iter().all(|count| (9..=12).contains(count)), "{by_second:?}");
    }
}

#[test]
fn one_whose_backend_stays_after_all_goes_on() {
    let scene = Scene::new();
    let tunnel = scene.begin(0, TunnelKind::Bytes);
    assert!(poll(&tunnel).is_pending());
    let leaving = Leaving { end: Tick(1), cause: Cause::Drained };
    tunnel.end.backend.set(Some(Farewell { moment: Tick(1), leaving }));
    tunnel.end.set();
    scene.ctx.tunnels.look(&scene.backends);
    assert!(poll(&tunnel).is_pending() && moment(&tunnel).is_none());
    // Its deadline may have been due when the word was taken back.
    tunnel.end.due.set_at(Tick(1));
    assert!(poll(&tunnel).is_pending());
}

#[test]
fn of_a_listener_and_a_backend_that_leave_the_first_counts() {
    let scene = Scene::new();
    let (one, other) = (scene.begin(0, TunnelKind::Bytes), scene.begin(1, TunnelKind::Bytes));
    scene.ctx.tunnels.look(&scene.commit());
    let of_backend = moment(&one).expect("it leaves");
    scene.ctx.tunnels.close(ListenerId(0), Departure { since: now(), window: Duration::from_millis(8) });
    assert!(moment(&one) < Some(of_backend) && moment(&other).is_some());
    let late = scene.begin(1, TunnelKind::Bytes);
    assert!(moment(&late).is_some(), "its request was under way");
    scene.ctx.tunnels.forget(ListenerId(0));
    assert!(moment(&scene.begin(1, TunnelKind::Bytes)).is_none());
}

#[test]
fn at_the_end_of_the_process_those_are_told_that_can_be() {
    let scene = Scene::new();
    let (told, cut) = (scene.begin(0, TunnelKind::WebSocket), scene.begin(0, TunnelKind::Bytes));
    scene.ctx.tunnels.end_all(Departure { since: Tick(5), window: Duration::from_millis(8) });
    let late = scene.begin(0, TunnelKind::WebSocket);
    scene.ctx.ticker.tick(now());
    assert_eq!([&told, &cut, &late].map(|one| poll(one).is_ready()), [true, false, true]);
    let Poll::Ready(leaving) = poll(&told) else { panic!("it is ready") };
    assert_eq!(leaving.cause, Cause::Shutdown);
}

#[test]
fn a_tunnel_that_is_over_is_forgotten() {
    let scene = Scene::new();
    drop((scene.begin(0, TunnelKind::Bytes), scene.begin(1, TunnelKind::Bytes)));
    assert!(scene.ctx.tunnels.listed.borrow().is_empty());
}
