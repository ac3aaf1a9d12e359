//! What looks on while requests are served, and outlives configs: what is slow, what is kept of requests that are over, where traces go.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::Receiver;

use super::Snapshot;
use crate::config::model::Config;
use crate::telemetry::recorder::{FlightRecorder, SlowMarks};
use crate::telemetry::statsd::{TimingOutlet, TimingPen};
use crate::telemetry::traces::{EndedRequest, TraceOutlet, Tracer};

/// All of it.
#[derive(Debug)]
pub struct Observers {
    /// How long requests may take without being slow.
    pub slow: Arc<SlowMarks>,
    /// Where requests that are traced are handed over when they are over.
    pub traces: Arc<TraceOutlet>,
    /// Where times of single requests are handed over.
    pub timings: Arc<TimingOutlet>,
    source: Mutex<Option<Receiver<EndedRequest>>>,
}

impl Default for Observers {
    fn default() -> Observers {
        let (outlet, source) = TraceOutlet::new(RandomState::new().hash_one("traces"));
        Observers {
            slow: Arc::default(),
            traces: Arc::new(outlet),
            timings: Arc::default(),
            source: Mutex::new(Some(source)),
        }
    }
}

impl Observers {
    /// Where traced requests come out; `None`: somebody has it.
    #[must_use]
    pub fn take_source(&self) -> Option<Receiver<EndedRequest>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Where each worker keeps requests under `config`. What one has kept before stays.
    pub(super) fn recorders(&self, config: &Config, before: Option<&Snapshot>) -> Vec<FlightRecorder> {
        let Some(settings) = &config.recorder else { return Vec::new() };
        let before = |worker: usize| before?.recorders.get(worker);
        let recorder = |worker| match before(worker) {
            Some(before) => before.under(settings),
            None => FlightRecorder::new(settings, &self.slow),
        };
        (0..config.workers).map(recorder).collect()
    }

    /// Whose times workers hand in under `config`.
    pub(super) fn timings(&self, config: &Config) -> Option<TimingPen> {
        let share = config.metrics.statsd.as_ref()?.timings?;
        Some(TimingPen::new(share, &self.timings))
    }

    /// What workers trace under `config`.
    pub(super) fn tracer(&self, config: &Config) -> Option<Tracer> {
        config.tracing.as_ref().map(|tracing| Tracer::new(tracing.sample, &self.traces))
    }
}
