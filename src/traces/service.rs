//! Makes spans of what workers hand over, and sends them. One batch is under way at a time.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, header};
use http_body_util::Full;
use hyper::body::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::batch::{Collected, FULL, MOST, SpanBatch, SpanSender};
use super::line::BatchLine;
use super::news::CollectorNews;
use super::spans::spans;
use crate::config::model::TracingConfig;
use crate::events;
use crate::net::now;
use crate::net::wall::wall_start;
use crate::outgoing::{AnswerReading, OtherSide, refusal};
use crate::reload::Reloader;
use crate::telemetry::recorder::read_back;
use crate::telemetry::traces::{EndedRequest, TraceOutlet};
use crate::tick::Tick;
use crate::tls::Roots;

/// An attempt that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often what was collected is sent, and how often more may be handed over.
const STEP: Duration = Duration::from_secs(1);
/// Requests that are made spans of at a time.
const AT_A_TIME: usize = 64;
/// The most bytes of an answer that are read.
const ANSWER_MAX: usize = 64 * 1024;
/// How it is told that it has.
const REFUSES: &str = "it refused";
/// The most characters that are told of why it has refused spans.
const REASON_MAX: usize = 200;

/// What became of an attempt.
type Attempted = Result<Refusal, Failure>;

/// What a collector that has taken a batch has refused of it for good (OTLP's partial success).
#[derive(Debug, Default)]
struct Refusal {
    spans: u64,
    reason: String,
}

/// A batch was not taken.
#[derive(Debug)]
struct Failure {
    reason: String,
    /// It is of use to send it again.
    is_passing: bool,
    /// How long the collector wants to be left alone.
    pause: Option<Duration>,
}

impl Failure {
    fn passing(reason: String) -> Failure {
        Failure { reason, is_passing: true, pause: None }
    }
}

/// An attempt under way.
type Attempt = Pin<Box<dyn Future<Output = Attempted> + Send>>;

/// Where traces are sent.
#[derive(Debug)]
struct Collector {
    place: OtherSide,
    config: TracingConfig,
    sender: SpanSender,
}

/// What it all needs.
pub(super) struct TraceService {
    config: watch::Receiver<Option<TracingConfig>>,
    node: Option<String>,
    outlet: Arc<TraceOutlet>,
    source: Receiver<EndedRequest>,
    end: CancellationToken,
    collector: Option<Arc<Collector>>,
    collected: Collected,
    line: BatchLine,
    attempt: Option<Attempt>,
    news: CollectorNews,
}

impl TraceService {
    /// Of the process of `reloader`, which is called `node`, for what comes out of `source`, until `end`.
    #[must_use]
    pub(super) fn new(
        (reloader, node): (&Reloader, Option<String>),
        source: Receiver<EndedRequest>,
        end: CancellationToken,
    ) -> TraceService {
        let mut service = TraceService {
            config: reloader.tracing.subscribe(),
            node,
            outlet: Arc::clone(&reloader.snapshots.observers().traces),
            source,
            end,
            collector: None,
            collected: Collected::default(),
            line: BatchLine::default(),
            attempt: None,
            news: CollectorNews::default(),
        };
        service.follow();
        service.refill();
        service
    }

    /// Goes on until it is told to end, and sends what is left then.
    pub(super) async fn run(&mut self) {
        let mut steps = interval(STEP);
        steps.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (mut came, end) = (Vec::with_capacity(AT_A_TIME), self.end.clone());
        loop {
            self.begin();
            let due = self.due();
            tokio::select! {
                biased;
                () = end.cancelled() => break,
                Ok(()) = self.config.changed() => self.follow(),
                outcome = under_way(&mut self.attempt) => self.settle(outcome),
                _ = steps.tick() => self.step(),
                () = wait_until(due) => {}
                count = self.source.recv_many(&mut came, AT_A_TIME) => {
                    if count == 0 {
                        // Those who hand over are gone.
                        break;
                    }
                    self.take(&mut came);
                }
            }
        }
        self.rest().await;
    }

    /// What is left is sent, once.
    async fn rest(&mut self) {
        // What came last came by a config that may be as young.
        if self.config.has_changed().unwrap_or(true) {
            self.follow();
        }
        let mut came = Vec::new();
        while let Ok(one) = self.source.try_recv() {
            came.push(one);
        }
        self.take(&mut came);
        self.pack();
        while self.line.next().is_some() {
            self.line_up();
            let outcome = under_way(&mut self.attempt).await;
            let has_failed = outcome.is_err();
            self.settle(outcome);
            if has_failed {
                break;
            }
        }
        let left = self.line.clear();
        self.give_up(left);
    }

    /// When the next attempt is due; `None`: none is.
    fn due(&self) -> Option<Tick> {
        if self.attempt.is_some() { None } else { self.line.next().map(|(_, due)| due) }
    }

    /// Begins the next attempt if it is due.
    fn begin(&mut self) {
        if self.due().is_some_and(|due| due <= now()) {
            self.line_up();
        }
    }

    fn line_up(&mut self) {
        let (Some(collector), Some((batch, _)), None) = (&self.collector, self.line.next(), &self.attempt)
        else {
            return;
        };
        let (collector, body) = (Arc::clone(collector), batch.body.clone());
        self.attempt = Some(Box::pin(async move {
            match timeout(PATIENCE, collector.send(body)).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    let patience = humantime::format_duration(PATIENCE);
                    Err(Failure::passing(format!("timeout after {patience}")))
                }
            }
        }));
    }

    /// Once a second.
    fn step(&mut self) {
        self.refill();
        self.pack_if(1);
        // What is under way is the first, and stays until that has ended.
        if self.attempt.is_none() {
            let late = self.line.expire(now());
            self.give_up(late);
        }
    }

    fn refill(&self) {
        // Held so long: nobody puts another one in force in between.
        let config = self.config.borrow();
        self.outlet.refill(config.as_ref());
    }

    /// Makes spans of requests.
    fn take(&mut self, came: &mut Vec<EndedRequest>) {
        let wall = wall_start();
        for one in came.drain(..) {
            if self.collector.is_none() {
                self.outlet.note_unsent(1);
                continue;
            }
            let Some(kept) = read_back(&one) else { continue };
            self.collected.add(&spans(&kept, wall));
            self.pack_if(FULL);
        }
    }

    /// The same once so many spans were collected. While others wait it is one batch that grows: a collector that takes its time gets fewer
    /// and larger ones.
    fn pack_if(&mut self, enough: usize) {
        let enough = if self.line.next().is_some() { MOST } else { enough };
        if self.collected.len() >= enough {
            self.pack();
        }
    }

    /// Lets what was collected wait to be sent.
    fn pack(&mut self) {
        let Some(collector) = &self.collector else {
            return self.outlet.note_unsent(self.collected.clear());
        };
        let Some(batch) = self.collected.batch(&collector.sender) else { return };
        let dropped = self.line.push(batch, now(), self.attempt.is_some());
        if !dropped.is_empty() {
            self.fails("it takes them slower than they come");
        }
        self.give_up(dropped);
    }

    fn settle(&mut self, outcome: Attempted) {
        self.attempt = None;
        let Some(collector) = &self.collector else { return };
        match outcome {
            Ok(Refusal { spans: refused, reason }) => {
                let Some(batch) = self.line.settle() else { return };
                let refused = refused.min(batch.spans);
                if refused > 0 {
                    let all = batch.spans;
                    let said = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                    self.fails(&format!("{REFUSES} {refused} of {all} spans{said}"));
                } else if let Some(after) = self.news.works(now()) {
                    events::traces_work(&collector.config.otlp, after);
                }
                self.outlet.note_sent(batch.spans - refused);
                self.outlet.note_refused(refused);
                self.pack_if(FULL);
            }
            Err(Failure { reason, is_passing, pause }) => {
                self.fails(&reason);
                if is_passing {
                    return self.line.fail(now(), pause, rand::random());
                }
                let refused = self.line.settle();
                self.give_up(refused.into_iter().collect());
            }
        }
    }

    /// Says so, if that is news.
    fn fails(&mut self, reason: &str) {
        // How many they were, and its own words, differ each time.
        let kind = if reason.starts_with(REFUSES) { REFUSES } else { reason };
        let Some(collector) = &self.collector else { return };
        if self.news.fails(kind, now()) {
            events::traces_fail(&collector.config.otlp, reason);
        }
    }

    fn give_up(&self, batches: Vec<SpanBatch>) {
        self.outlet.note_unsent(batches.iter().map(|batch| batch.traces).sum());
    }

    /// Sends to the collector of the config in force. What waits for another one goes there as well.
    fn follow(&mut self) {
        let config = self.config.borrow_and_update().clone();
        let is_same = |config: &TracingConfig| {
            self.collector.as_ref().is_some_and(|before| before.config.is_sent_like(config))
        };
        if !config.as_ref().is_some_and(is_same) {
            // What it says is about somebody else.
            self.attempt = None;
            self.news = CollectorNews::default();
            self.line.restart();
        }
        self.collector = config.map(|config| {
            let place = OtherSide::new(config.otlp.clone(), config.authorities.clone(), &Roots::default());
            let sender = SpanSender { service: config.service_name.clone(), node: self.node.clone() };
            Arc::new(Collector { place, config, sender })
        });
        if self.collector.is_none() {
            let left = self.line.clear();
            self.give_up(left);
            self.outlet.note_unsent(self.collected.clear());
        }
    }
}

impl Collector {
    /// Sends a batch (OTLP 1.x, "OTLP/HTTP").
    async fn send(&self, body: Bytes) -> Attempted {
        let answer = self.place.ask(self.request(body), AnswerReading::BodyIfAny(ANSWER_MAX)).await;
        let answer = answer.map_err(Failure::passing)?;
        let status = answer.status().as_u16();
        if (200..300).contains(&status) {
            // An answer that says nothing has refused nothing.
            let said = ExportTraceServiceResponse::decode(&**answer.body()).unwrap_or_default();
            let Some(part) = said.partial_success else { return Ok(Refusal::default()) };
            let spans = u64::try_from(part.rejected_spans).unwrap_or(0);
            return Ok(Refusal { spans, reason: part.error_message.chars().take(REASON_MAX).collect() });
        }
        let pause = answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        Err(Failure {
            reason: refusal(status),
            is_passing: matches!(status, 429 | 502 | 503 | 504),
            pause: pause.and_then(|value| value.trim().parse().ok()).map(Duration::from_secs),
        })
    }

    fn request(&self, body: Bytes) -> http::Result<Request<Full<Bytes>>> {
        let mut request = self
            .place
            .request(Method::POST)
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .header(header::CONTENT_ENCODING, "gzip");
        for (name, value) in self.config.headers.iter() {
            request = request.header(name, value);
        }
        request.body(Full::new(body))
    }
}

/// The outcome of an attempt, once it is there.
async fn under_way(attempt: &mut Option<Attempt>) -> Attempted {
    match attempt {
        Some(attempt) => attempt.await,
        None => pending().await,
    }
}

async fn wait_until(due: Option<Tick>) {
    match due {
        Some(due) => sleep(due.since(now())).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
