//! The processes that this one acts as one with. Without a `cluster` there are no samples.

use std::sync::Arc;

use super::family::Family;
use super::sources::{ClusterGauges, ScrapeSources};
use crate::config::model::OwnerMode;
use crate::targets::Target;
use crate::telemetry::exposition::{Labels, SampleSink};

pub(super) const FAMILIES: &[Family] = &[
    Family::gauge(
        "evenkeel_cluster_member",
        &[],
        "1 while this process is one of its cluster.",
        |sources, _, out| count(sources, out, |of| of.is_member.into()),
    ),
    Family::gauge(
        "evenkeel_cluster_detached",
        &[],
        "1 while nobody answers: it serves on with what it knows.",
        |sources, _, out| count(sources, out, |of| of.is_detached.into()),
    ),
    Family::gauge(
        "evenkeel_cluster_nodes",
        &[],
        "Nodes that are there, as far as this one knows, with itself.",
        |sources, _, out| count(sources, out, |of| of.nodes as u64),
    ),
    Family::gauge(
        "evenkeel_cluster_lease_remaining_seconds",
        &[],
        "Until this process takes itself for gone, if nobody hears of it.",
        |sources, _, out| {
            if let Some(of) = &sources.control.cluster {
                out.number(&Labels::default(), of.lease_left);
            }
            None
        },
    ),
    Family::gauge(
        "evenkeel_cluster_revision",
        &[],
        "The revision of the cluster's config that is in force here; 0: this node's own file is.",
        |sources, _, out| count(sources, out, |of| of.revision),
    ),
    Family::gauge(
        "evenkeel_cluster_revision_current",
        &[],
        "The revision that the store names; 0: none. Where it stays above the one in force this node can't take it.",
        |sources, _, out| count(sources, out, |of| of.current),
    ),
    Family::gauge(
        "evenkeel_cluster_limit_part",
        &["limit"],
        "Which part of a limit for all this node gives out, 0 to 1.",
        |sources, _, out| {
            if sources.control.cluster.is_some() {
                for (limit, state) in
                    sources.snapshot.rates.by_name().into_iter().filter(|(limit, _)| limit.is_for_all())
                {
                    out.number(&Labels::of(&[("limit", &limit.name)]), state.part());
                }
            }
            None
        },
    ),
    Family::gauge(
        "evenkeel_cluster_probed_backends",
        &[],
        "Backends that this node probes for all.",
        |sources, _, out| count(sources, out, |of| of.probed as u64),
    ),
    Family::gauge(
        "evenkeel_cluster_owned_backends",
        &["target"],
        "Backends of a target with `owner: soft` that this node prefers.",
        |sources, _, out| {
            if sources.control.cluster.is_some() {
                let is_soft = |target: &&Arc<Target>| target.config.balance.owner == OwnerMode::Soft;
                for target in sources.snapshot.targets.iter().filter(is_soft) {
                    let own = target.backends.iter().filter(|backend| backend.is_own()).count();
                    out.count(&Labels::of(&[("target", &target.name)]), own as u64);
                }
            }
            None
        },
    ),
    Family::counter(
        "evenkeel_cluster_owner_moves_total",
        &[],
        "Backends with `owner: soft` that this node has moved to where requests come; one of the nodes does that for all.",
        |sources, _, out| count(sources, out, |of| of.moves),
    ),
];

fn count(
    sources: &ScrapeSources,
    out: &mut dyn SampleSink,
    value: impl Fn(&ClusterGauges) -> u64,
) -> Option<usize> {
    if let Some(of) = &sources.control.cluster {
        out.count(&Labels::default(), value(of));
    }
    None
}
