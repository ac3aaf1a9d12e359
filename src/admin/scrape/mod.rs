//! `/metrics`: what is known is taken where nobody waits, and sent piece by piece.

mod body;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::StatusCode;
use hyper::header::ACCEPT;

use self::body::ScrapeBody;
use super::api::Api;
use super::exchange::answers::{InPieces, stream};
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::life_routes;
use super::route::AdminOutcome;
use crate::cluster::membership::{Standing, deadline};
use crate::cluster::node::ClusterNode;
use crate::cluster::revision::current;
use crate::events;
use crate::metrics::{ClusterGauges, ControlState, Moment, Scrape, ScrapeSources, SystemUse};
use crate::net::now;
use crate::telemetry::exposition::TextForm;

/// All metrics, in the form that the client likes best.
pub(super) async fn metrics(api: Arc<Api>, asked: Question) -> AdminOutcome {
    let lines = asked.headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let form = TextForm::wanted(&lines.collect::<Vec<_>>().join(","));
    let gather = tokio::task::spawn_blocking(move || api.counts.taken(|| sources(&api)));
    let taken = gather.await.map_err(|failed| {
        let detail = format!("this failed, which is a bug: {failed}");
        ProblemDocument::plain(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    let Some((sources, before, told)) = taken else {
        let detail = "another process has taken over, and tells of this one's requests too: ask again";
        return Err(ProblemDocument::plain(StatusCode::SERVICE_UNAVAILABLE, detail));
    };
    let Some(sources) = sources else {
        return Err(ProblemDocument::plain(StatusCode::SERVICE_UNAVAILABLE, "no config is in force yet"));
    };
    let mut answer = stream(form.media_type(), ScrapeBody::new(Scrape::new(sources, before, form), told));
    answer.extensions_mut().insert(InPieces);
    Ok(answer)
}

/// How often it is begun anew because another config came meanwhile.
const TRIES: usize = 4;

impl Api {
    /// What a scrape would be written from; `None`: nothing is in force yet. It takes a while: it is called where nobody waits.
    #[must_use]
    pub fn scrape_sources(&self) -> Option<ScrapeSources> {
        sources(self)
    }
}

/// What is to be written; `None`: nothing is in force yet.
fn sources(api: &Api) -> Option<ScrapeSources> {
    let mut taken = ScrapeSources::new(moment(api)?);
    for _ in 1..TRIES {
        // What is counted under another config may be counted for somebody whom this one does not know.
        if taken.config_number() == api.running.reloader.snapshots.current()?.number {
            break;
        }
        taken = ScrapeSources::new(moment(api)?);
    }
    Some(taken)
}

/// All that there is now; `None`: nothing is in force yet.
fn moment(api: &Api) -> Option<Moment> {
    let (running, reloader) = (&api.running, &api.running.reloader);
    // Before those that are gone from it: who has left meanwhile is in both.
    let snapshot = reloader.snapshots.current()?;
    let leaving = reloader.snapshots.leaving();
    let by_hand = running.by_hand();
    let admin = reloader.admin.borrow().clone();
    let identities = admin.iter().filter_map(|admin| admin.tls.as_ref()).flat_map(|tls| &tls.identities);
    let control = ControlState {
        snapshots: reloader.snapshots.alive(),
        records_lost: reloader.records_lost(),
        connections: (reloader.limits.taken(), reloader.limits.limit()),
        webhooks: reloader.webhook_board.counts(),
        names: running.discovery().view(),
        traces: reloader.snapshots.observers().traces.counts(),
        statsd: reloader.statsd_board.counts(),
        timings_dropped: reloader.snapshots.observers().timings.dropped(),
        events: api.events.kinds().collect(),
        events_lost: events::lost_so_far(),
        by_hand: (by_hand.entries.len(), by_hand.aside.len()),
        blocked: running.blocked().len(),
        cluster: api.cluster.as_deref().map(|node| gauges(api, node)),
        on_trial: running.trial().is_some(),
        is_ready: life_routes::reasons(api).is_empty(),
        unix: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        uptime: now().since(api.rates.begun()),
        admin_certificates: identities
            .map(|identity| (identity.file.display().to_string(), [identity.begins, identity.expires]))
            .collect(),
    };
    Some(Moment { snapshot, leaving, cells: reloader.cells.clone(), control, system: SystemUse::read() })
}

/// How this process stands to its cluster.
fn gauges(api: &Api, node: &ClusterNode) -> ClusterGauges {
    let (view, running) = (node.view(), &api.running);
    let left = view.kept.map_or(Duration::ZERO, |kept| deadline(kept, node.lease()).since(now()));
    ClusterGauges {
        is_member: view.standing == Standing::Member,
        is_detached: matches!(view.standing, Standing::Detached(_)),
        nodes: view.nodes().len(),
        lease_left: left.as_secs_f64(),
        revision: running.revision().map_or(0, |row| row.number),
        current: current(&view.rows).unwrap_or(0),
        probed: running.reloader.probe_desk.own(),
        moves: running.owner_moves().unwrap_or(0),
    }
}
