use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::config::{self, Flags};
use crate::events::BackendChange;
use crate::reload::Deployed;
use crate::reload::addresses::Addresses;
use crate::reload::logs::AccessLogs;
use crate::shutdown::Shutdown;
use crate::snapshot::{ConnectionLimits, Snapshots};

const CONFIG: &str = "webhooks: [{url: 'http://127.0.0.1:9/hush', events: [backend_down, backend_up]}]
targets: {web: {protocol: http, listener: 0, health_check: off, backends: [{name: b0, host: 127.0.0.1, port: 1}, {name: b1, host: 127.0.0.1, port: 2}]}}
";

/// What holds while a test runs: where events go, and what the service needs.
struct Lab {
    history: Arc<EventHistory>,
    reloader: Arc<Reloader>,
    drain: CancellationToken,
    _told: tracing::subscriber::DefaultGuard,
}

impl Lab {
    fn new() -> Lab {
        let history = EventHistory::new();
        let subscriber = tracing_subscriber::registry().with(history.layer());
        let told = tracing::subscriber::set_default(subscriber);
        let loaded = config::load_text(CONFIG, "t.yaml", Path::new(""), &Flags::default(), &|_| None);
        let config = loaded.expect("it is right").config;
        let (snapshots, shutdown) = (Snapshots::new(), Shutdown::new());
        let _ = snapshots.commit(snapshots.prepare(&config));
        let places = Addresses::default();
        let in_force = Deployed { config, places, logs: AccessLogs::default(), workers: Vec::new() };
        let reloader = Reloader::new(snapshots, ConnectionLimits::new(1), 1, shutdown.clone(), in_force);
        Lab { history, reloader: Arc::new(reloader), drain: shutdown.drain.clone(), _told: told }
    }

    fn service(&self, post: Post, told: LastTold) -> WebhookService {
        let kept = KeptMessages { told, ..KeptMessages::default() };
        let mut service =
            WebhookService::new("edge-1", &self.reloader, (&self.history, 0), &self.drain, (None, kept));
        service.post = post;
        service
    }

    fn tell(&self, backend: &str, to: &str) {
        events::backend_changed(&BackendChange {
            target: "web",
            backend,
            from: "unknown",
            to,
            source: "probe",
            reason: "connection refused",
            after: None,
            left: 1,
            of: 2,
        });
    }

    /// Goes on until so many messages were taken, and gives what has come of it.
    async fn run(
        &self,
        service: &mut WebhookService,
        taken: u64,
    ) -> Arc<[crate::telemetry::webhooks::WebhookCounts]> {
        let all_taken = async {
            while self.reloader.webhook_board.counts().iter().all(|counts| counts.delivered < taken) {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = service.run() => {}
            done = timeout(Duration::from_secs(20), all_taken) => done.expect("in time"),
        }
        self.reloader.webhook_board.counts()
    }
}

#[tokio::test]
async fn a_panic_of_one_attempt_is_a_failure_like_any_other() {
    static HAS_PANICKED: AtomicBool = AtomicBool::new(false);
    static TAKEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let lab = Lab::new();
    let mut service = lab.service(
        |_, message, _, _| {
            Box::pin(async move {
                assert!(HAS_PANICKED.swap(true, Ordering::Relaxed), "for the first time");
                TAKEN.lock().expect("no panic under it").push(message.event.clone());
                Ok(())
            })
        },
        LastTold::default(),
    );
    lab.tell("b0", "down");
    lab.tell("b0", "down");
    lab.tell("b0", "up");
    let counts = lab.run(&mut service, 2).await;
    assert_eq!(*TAKEN.lock().expect("no panic"), ["backend_down", "backend_up"]);
    let error = counts[0].last_error.as_ref().map(|(reason, _)| reason.as_str());
    assert_eq!((counts[0].failed, counts[0].waiting), (1, 0));
    assert!(error.is_some_and(|error| error.contains("panicked")), "{error:?}");
}

#[tokio::test]
async fn what_was_missed_is_told_and_found_by_comparing() {
    static TAKEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let lab = Lab::new();
    lab.reloader.probe();
    let is_up = || {
        lab.reloader.snapshots.current().is_some_and(|snapshot| {
            snapshot.targets[0].backends.iter().all(|backend| backend.health() == Health::Up)
        })
    };
    let all_up = async {
        while !is_up() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), all_up).await.expect("there are no checks");
    let mut told = LastTold::default();
    // Both are up by now, and nobody was told of the first.
    told.set("web/b0", true);
    told.set("web/gone", true);
    lab.tell("b0", "up");
    (0..5_000).for_each(|_| events::no_log_file());
    lab.tell("b1", "down");
    let mut service = lab.service(
        |_, message, _, _| {
            Box::pin(async move {
                let said = format!("{} {}", message.event, message.object.as_deref().unwrap_or_default());
                TAKEN.lock().expect("no panic under it").push(said);
                Ok(())
            })
        },
        told,
    );
    lab.run(&mut service, 2).await;
    let mut taken = TAKEN.lock().expect("no panic").clone();
    taken.sort();
    assert_eq!(taken, ["backend_down web/b1", "backend_up web/b0"]);
    let after = lab.history.after(0, usize::MAX);
    assert!(after.events.iter().any(|event| event.kind.name() == "webhooks_missed"));
    assert_eq!(service.told.down().collect::<Vec<_>>(), ["web/b1"]);
}

#[tokio::test]
async fn what_the_process_before_has_left_is_sent_and_told_to_whom_it_is_due() {
    static TAKEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let lab = Lab::new();
    let receiver = lab.reloader.webhooks.borrow()[0].url.identity();
    let message = |number: u64, time_ms| {
        let message = super::super::message::example(number, "web/b0");
        Arc::new(WebhookMessage { time_ms, ..message })
    };
    let to = |receiver: &str| vec![receiver.to_owned()];
    let waiting = [
        (3, (to(&receiver), message(3, now_ms()))),
        (4, (to("another"), message(4, now_ms()))),
        (5, (to(&receiver), message(5, 1))),
    ];
    let kept = KeptMessages { waiting: waiting.into(), told: LastTold::default() };
    let (history, drain) = (&lab.history, &lab.drain);
    let mut service = WebhookService::new("edge-1", &lab.reloader, (history, 0), drain, (None, kept));
    service.post = |_, message, _, _| {
        Box::pin(async move {
            TAKEN.lock().expect("no panic under it").push(message.id.clone());
            Ok(())
        })
    };
    assert_eq!(service.next_number, 6);
    let counts = lab.run(&mut service, 1).await;
    assert_eq!((counts[0].delivered, counts[0].dropped, counts[0].waiting), (1, 1, 0));
    assert_eq!(*TAKEN.lock().expect("no panic"), ["1-3"]);
    let said: Vec<String> = lab.history.after(0, 99).events.iter().map(|event| event.text.clone()).collect();
    assert!(
        said.iter().any(|text| text.contains("of an earlier config: 1 messages were dropped")),
        "{said:?}"
    );
    assert!(said.iter().any(|text| text.contains("not taken within 15m")), "{said:?}");
}

#[tokio::test]
async fn a_reload_is_told_to_those_whom_it_brings() {
    let lab = Lab::new();
    let mut service = lab.service(|_, _, _, _| Box::pin(async { Ok(()) }), LastTold::default());
    // Both before the service looks again: it reads what was told first.
    lab.reloader.webhooks.send_modify(|webhooks| webhooks[0].events = vec![WebhookEvent::Reload]);
    events::reloaded(&[]);
    let counts = lab.run(&mut service, 1).await;
    assert_eq!((counts[0].delivered, &counts[0].events[..]), (1, &["reload"][..]));
}
