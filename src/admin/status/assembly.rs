//! From what is known at one moment to what is said about it. Nothing is read here: [`Sources`] has it all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::access::{access_lists, rate_limits};
use super::rates::Rates;
use super::report::{
    BackendReport, CacheReport, CertificateReport, ConnectionReport, CopyReport, InputReport, LatencyReport,
    ListenerReport, NameReport, NameTroubleReport, OrderReport, ProbeReport, ProcessReport, StatusReport,
    TargetReport, TrafficReport, UpstreamReport, WebhookReport,
};
use super::wall::WallTime;
use crate::config::model::discovery::DnsQuestion;
use crate::config::model::tls::{Identity, UnknownSni};
use crate::config::model::{Balance, OwnerMode, Protocol};
use crate::snapshot::{Listener, Snapshot};
use crate::targets::{Backend, BackendStatus, InputStatus, LastProbe, Target};
use crate::telemetry::cells::{CoarseReading, CopyReading, Distribution, Readings, StatusClass, Traffic};
use crate::telemetry::names::NameView;
use crate::telemetry::webhooks::WebhookCounts;
use crate::tick::{Tick, nanos};
use crate::tls::{LiveCertificate, OrderNews, ServedCertificate};

/// All that is known at one moment.
pub struct Sources {
    /// The moment.
    pub now: Tick,
    /// How moments are told.
    pub wall: WallTime,
    /// The config in force.
    pub snapshot: Arc<Snapshot>,
    /// What all workers have counted.
    pub readings: Readings,
    /// The same and what was counted a while ago.
    pub rates: Rates,
    /// How it goes with webhooks.
    pub webhooks: Arc<[WebhookCounts]>,
    /// How it stands with names whose addresses are backends.
    pub names: Vec<NameView>,
}

/// A point in time, as milliseconds since 1970, and how long ago that is.
struct Moment {
    at_ms: u64,
    age: Duration,
}

impl Moment {
    fn age_ms(&self) -> u64 {
        whole_millis(self.age)
    }
}

impl Sources {
    /// Everything. `bound`: names of listeners with their addresses; `open` and `limit`: client connections.
    #[must_use]
    pub fn status(
        &self,
        process: ProcessReport,
        bound: &[(String, String)],
        (open, limit): (usize, usize),
    ) -> StatusReport {
        let Readings { connections, pool, retries, .. } = &self.readings;
        let (accepted, refused) = (connections.accepted, connections.refused);
        let causes = self.readings.errors().map(|(cause, count)| (cause.token().to_owned(), count));
        StatusReport {
            process,
            connections: ConnectionReport { open, limit, accepted, refused },
            upstream: UpstreamReport { opened: pool.opened, reused: pool.reused, retries: *retries },
            causes: causes.collect(),
            listeners: self.snapshot.listeners.iter().map(|one| self.listener(one, bound)).collect(),
            targets: self.snapshot.targets.iter().map(|target| self.report(target)).collect(),
            cache: self.cache(),
            webhooks: self.webhooks.iter().map(webhook).collect(),
            rate_limits: rate_limits(&self.snapshot, &self.readings),
            access_lists: access_lists(&self.snapshot),
        }
    }

    fn cache(&self) -> CacheReport {
        let reading = &self.readings.cache;
        CacheReport {
            bytes: self.snapshot.store.bytes(),
            memory: self.snapshot.store.memory(),
            compressed: reading.compressed,
            requests: reading.kinds().map(|(kind, count)| (kind.to_owned(), count)).collect(),
            reasons: reading.reasons().map(|(why, count)| (why.to_owned(), count)).collect(),
        }
    }

    /// The target of this name; `None`: there is none.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<TargetReport> {
        Some(self.report(self.find(name)?))
    }

    /// A backend of a target; `None`: there is none.
    #[must_use]
    pub fn backend(&self, target: &str, name: &str) -> Option<BackendReport> {
        let target = self.find(target)?;
        let place = target.backends.iter().position(|backend| &*backend.name == name)?;
        self.backends(target).into_iter().nth(place)
    }

    /// When the process began, as milliseconds since 1970, and how many ago that is.
    #[must_use]
    pub fn begun(&self, begun: Tick) -> (u64, u64) {
        let begun = self.moment(begun);
        (begun.at_ms, begun.age_ms())
    }

    fn find(&self, name: &str) -> Option<&Arc<Target>> {
        self.snapshot.targets.iter().find(|target| &*target.name == name)
    }

    fn moment(&self, at: Tick) -> Moment {
        let age = self.now.since(at);
        Moment { at_ms: self.wall.ms(at), age }
    }

    fn listener(&self, listener: &Arc<Listener>, bound: &[(String, String)]) -> ListenerReport {
        let config = &listener.config;
        let addresses = bound.iter().filter(|(name, _)| *name == config.name);
        let (limit, per_client) = listener.state.counts.limits();
        let since = self.moment(listener.state.since());
        let certificates = certificates(listener, self.wall.ms(self.now));
        ListenerReport {
            name: config.name.clone(),
            state: "listening".to_owned(),
            reason: "its addresses are bound".to_owned(),
            since_ms: since.at_ms,
            age_ms: since.age_ms(),
            protocol: spoken(config.protocol, config.is_secured()).to_owned(),
            addresses: addresses.map(|(_, address)| address.clone()).collect(),
            targets: listener.targets().iter().map(|target| target.name.to_string()).collect(),
            connections: listener.state.counts.taken(),
            connections_limit: Some(limit).filter(|limit| *limit != usize::MAX),
            connections_per_client: Some(per_client).filter(|limit| *limit != u32::MAX),
            traffic: self.readings.listener(listener.id).map(traffic).unwrap_or_default(),
            rate: self.rates.of(since.age, |totals| totals.listener(listener.id)),
            certificates,
        }
    }

    fn report(&self, target: &Arc<Target>) -> TargetReport {
        let overview = target.overview(self.now);
        let backends = self.backends(target);
        let oldest = target.status().iter().map(|backend| backend.added).min().unwrap_or_default();
        let since = self.moment(overview.since.max(oldest));
        let reading = self.readings.target(target.id);
        let mut reason = format!("{} of {} backends get requests", overview.left, overview.of);
        if target.backends.is_empty() {
            "no address is known of its names".clone_into(&mut reason);
        }
        if overview.panics {
            reason += "; so few are left that outliers get some again";
        }
        if overview.stand_ins > 0 {
            reason += &format!("; the {} before them stand in", overview.stand_ins);
        }
        let algorithm = target.config.balance.algorithm;
        TargetReport {
            name: target.name.to_string(),
            state: overview.level.to_owned(),
            reason,
            since_ms: since.at_ms,
            age_ms: since.age_ms(),
            protocol: spoken(target.config.protocol, false).to_owned(),
            balance: Balance::ALL
                .iter()
                .find(|(_, one)| *one == algorithm)
                .map_or("", |(name, _)| name)
                .to_owned(),
            left: overview.left,
            of: overview.of,
            active: backends.iter().map(|backend| u64::from(backend.active)).sum(),
            waiting: target.waiting(),
            max_in_flight: target.limit(),
            scale: target.scale_signal().word().map(str::to_owned),
            panics: overview.panics,
            stand_ins: overview.stand_ins,
            traffic: reading.map(|reading| traffic(&reading.traffic)).unwrap_or_default(),
            rate: self.rates.of(self.now.since(oldest), |totals| totals.target(target.id)),
            first_byte: reading.and_then(|reading| latency(&reading.stages.first_byte)),
            copies: reading.and_then(|reading| copies(&reading.copies)),
            names: self.names(target),
            backends,
        }
    }

    fn names(&self, target: &Arc<Target>) -> Vec<NameReport> {
        let sources = target.config.sources.iter();
        let known = sources.filter_map(|source| {
            Some((source, self.names.iter().find(|name| name.question == source.asks.canonical())?))
        });
        known.map(|(source, name)| named(&source.asks, name, self.wall.ms(self.now))).collect()
    }

    fn backends(&self, target: &Arc<Target>) -> Vec<BackendReport> {
        let parts = target.overview(self.now).parts;
        let each = target.backends.iter().zip(target.status()).zip(&target.config.backends).zip(parts);
        each.map(|(((backend, status), config), part)| {
            let (portion, id) = (&config.portion, backend.id);
            let since = self.moment(status.since);
            let reading = self.readings.backend(id);
            BackendReport {
                target: target.name.to_string(),
                name: backend.name.to_string(),
                address: backend.address.to_string(),
                tls: backend.tls.is_some(),
                state: status.health.as_str().to_owned(),
                source: status.source.as_str().to_owned(),
                reason: status.reason.to_string(),
                since_ms: since.at_ms,
                age_ms: since.age_ms(),
                inputs: self.inputs(&status),
                weight: portion.weight,
                agent_share: status.share,
                share: (part * 1000.0).round() / 10.0,
                priority: portion.priority,
                zone: portion.zone.as_ref().map(ToString::to_string),
                active: status.in_flight,
                elsewhere: backend.elsewhere(),
                is_own: (target.config.balance.owner == OwnerMode::Soft).then(|| backend.is_own()),
                idle_connections: idle(backend),
                traffic: reading.map(|reading| traffic(&reading.traffic)).unwrap_or_default(),
                attempts: reading.map_or(0, |reading| reading.attempts),
                failures: reading.map_or(0, |reading| reading.failures),
                rate: self.rates.of(self.now.since(status.added), |totals| totals.backend(id)),
                first_byte: reading.and_then(|reading| coarse(&reading.first_byte)),
                last_probe: status.last_probe.as_ref().map(|probe| self.probe(probe)),
            }
        })
        .collect()
    }

    fn inputs(&self, status: &BackendStatus) -> Vec<InputReport> {
        let report = |input: &InputStatus| {
            let since = self.moment(input.since);
            InputReport {
                source: input.source.as_str().to_owned(),
                says: input.says.to_string(),
                reason: input.reason.to_string(),
                since_ms: since.at_ms,
                age_ms: since.age_ms(),
            }
        };
        status.inputs.iter().map(report).collect()
    }

    fn probe(&self, probe: &LastProbe) -> ProbeReport {
        let at = self.moment(probe.at);
        ProbeReport {
            at_ms: at.at_ms,
            age_ms: at.age_ms(),
            result: if probe.fault.is_none() { "good" } else { "bad" }.to_owned(),
            reason: probe.fault.as_ref().map(ToString::to_string),
            took_ms: millis(probe.took),
        }
    }
}

fn webhook(of: &WebhookCounts) -> WebhookReport {
    let (last_error, last_error_ms) = of.last_error.clone().unzip();
    WebhookReport {
        url: of.url.clone(),
        events: of.events.iter().map(ToString::to_string).collect(),
        waiting: of.waiting,
        delivered: of.delivered,
        failed: of.failed,
        dropped: of.dropped,
        last_error,
        last_error_ms,
    }
}

fn idle(backend: &Backend) -> u32 {
    backend.idle_connections.load(std::sync::atomic::Ordering::Relaxed)
}

/// What a listener shows to its clients at this time, in milliseconds since 1970.
fn certificates(listener: &Listener, now_ms: u64) -> Vec<CertificateReport> {
    let now = UNIX_EPOCH + Duration::from_millis(now_ms);
    let has_default = listener.config.tls.as_ref().is_some_and(|tls| tls.unknown_sni == UnknownSni::Default);
    let all = listener.certificates().iter().map(|one| (one.identity(), one)).enumerate();
    let report = |(place, (identity, one)): (usize, (Arc<Identity>, &ServedCertificate))| CertificateReport {
        names: identity.names.clone(),
        file: identity.file.display().to_string(),
        begins_ms: identity.begins.saturating_mul(1000),
        expires_ms: identity.expires.saturating_mul(1000),
        days_left: identity.days_left(now),
        key: identity.facts.key.clone(),
        chain: identity.facts.chain.clone(),
        stapled_until_ms: identity.staple.as_ref().map(|staple| staple.until.saturating_mul(1000)),
        is_default: place == 0 && has_default,
        order: match one {
            ServedCertificate::Read(_) => None,
            ServedCertificate::Live(live) => Some(order(live, listener)),
        },
    };
    all.map(report).collect()
}

/// How it goes with a certificate that is ordered.
fn order(live: &LiveCertificate, listener: &Listener) -> OrderReport {
    let OrderNews { is_busy, next, by, failures, last_error, .. } = live.news();
    // How names are proven may have changed since the first config that has ordered it.
    let ordered = listener.config.tls.iter().flat_map(|tls| &tls.ordered);
    let ordered = ordered.into_iter().find(|order| order.is_like(live.order())).unwrap_or(live.order());
    let since = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default();
    OrderReport {
        state: if live.shown().is_issued { "issued" } else { "self_signed" }.to_owned(),
        challenge: ordered.challenge.name().to_owned(),
        is_busy,
        next_ms: next.map(|next| whole_millis(since(next))),
        by,
        failures,
        last_error,
    }
}

pub(in crate::admin) fn spoken(protocol: Protocol, is_tls: bool) -> &'static str {
    match (protocol, is_tls) {
        (Protocol::Http, false) => "http",
        (Protocol::Http, true) => "https",
        (Protocol::Tcp, false) => "tcp",
        (Protocol::Tcp, true) => "tls",
        (Protocol::Udp, _) => "udp",
    }
}

fn traffic(of: &Traffic) -> TrafficReport {
    let classes = StatusClass::ALL.iter().map(|class| (class.name().to_owned(), of.with(*class)));
    let by_class: BTreeMap<String, u64> = classes.filter(|(_, count)| *count > 0).collect();
    TrafficReport { requests: of.requests(), by_class, bytes_in: of.bytes_in, bytes_out: of.bytes_out }
}

fn copies(of: &CopyReading) -> Option<CopyReport> {
    let by_cause = of.failed().map(|(cause, count)| (cause.to_owned(), count)).collect();
    (of.chosen > 0).then(|| CopyReport { chosen: of.chosen, answered: of.answered(), by_cause })
}

fn latency(of: &Distribution) -> Option<LatencyReport> {
    Some(LatencyReport { p50_ms: millis(of.quantile(0.5)?), p99_ms: millis(of.quantile(0.99)?) })
}

fn coarse(of: &CoarseReading) -> Option<LatencyReport> {
    Some(LatencyReport { p50_ms: millis(of.percentile(50)?), p99_ms: millis(of.percentile(99)?) })
}

fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// With three digits behind the point.
#[expect(clippy::cast_precision_loss, reason = "microseconds for people")]
fn millis(span: Duration) -> f64 {
    (nanos(span) / 1_000) as f64 / 1_000.0
}

fn named(asks: &DnsQuestion, name: &NameView, now_ms: u64) -> NameReport {
    let age = |at_ms: u64| now_ms.saturating_sub(at_ms);
    let addresses = &name.addresses;
    NameReport {
        name: asks.to_string(),
        asked_as: name.question.kind.as_str().to_owned(),
        addresses: addresses.iter().map(|one| one.address.clone()).collect(),
        lacked: addresses.iter().filter(|one| one.absent.is_some()).map(|one| one.address.clone()).collect(),
        left_out: name.beyond,
        ttl_ms: name.ttl.map(whole_millis),
        answered_ms: name.answered_ms,
        answered_age_ms: name.answered_ms.map(age),
        trouble: name.trouble.as_ref().map(|(reason, since_ms)| NameTroubleReport {
            reason: reason.clone(),
            since_ms: *since_ms,
            age_ms: age(*since_ms),
        }),
        asked_by: name.asked_by.as_deref().map(str::to_owned),
    }
}
