use std::path::Path;

use tokio::net::TcpListener;

use super::*;
use crate::config::{self, Flags};
use crate::message::{Record, TraceContext};
use crate::reload::Deployed;
use crate::reload::addresses::Addresses;
use crate::reload::logs::AccessLogs;
use crate::shutdown::Shutdown;
use crate::snapshot::{ConnectionLimits, Snapshots};
use crate::telemetry::access_log::Names;
use crate::telemetry::recorder::{KeptFor, KeptSubject, write_down};

fn reloader() -> Reloader {
    let config = crate::proxy::fixtures::config();
    let (snapshots, shutdown) = (Snapshots::new(), Shutdown::new());
    let places = Addresses::default();
    let in_force = Deployed { config, places, logs: AccessLogs::default(), workers: Vec::new() };
    Reloader::new(snapshots, ConnectionLimits::new(1), 1, shutdown, in_force)
}

fn tracing(port: u16) -> TracingConfig {
    let target = "targets: {web: {protocol: http, listener: 0, backends: [{host: 127.0.0.1, port: 1}]}}";
    let text = format!("tracing: {{otlp: 'http://127.0.0.1:{port}', limit: 3}}\n{target}\n");
    let loaded = config::load_text(&text, "t.yaml", Path::new(""), &Flags::default(), &|_| None);
    loaded.expect("it is right").config.tracing.expect("it is there")
}

fn hand_in(outlet: &TraceOutlet) {
    let trace = Some(TraceContext { trace: 7, parent: 0, span: 9, flags: 1 });
    let subject = KeptSubject { head: None, route: None, names: &Names::default(), config: 1, trace };
    outlet.hand_in(|| write_down(&Record { id: 7, ..Record::default() }, KeptFor::Sampled, &subject));
}

#[test]
fn a_config_that_traces_lets_requests_through_before_its_service_has_heard_of_it() {
    let reloader = reloader();
    let outlet = &reloader.snapshots.observers().traces;
    let admitted = || (0..9).filter(|_| outlet.admits()).count();
    assert_eq!(admitted(), 0);
    reloader.trace_by(Some(tracing(9)));
    assert_eq!(admitted(), 3);
    reloader.trace_by(None);
    assert_eq!(admitted(), 0);
    // Once a second it is what is in force that counts, whether the service has followed or not.
    let source = reloader.snapshots.observers().take_source().expect("nobody has it yet");
    let mut service = TraceService::new((&reloader, None), source, CancellationToken::new());
    reloader.trace_by(Some(tracing(9)));
    assert_eq!(admitted(), 3);
    service.step();
    assert_eq!(admitted(), 3);
}

#[tokio::test]
async fn what_was_traced_by_a_config_that_came_with_the_end_is_sent() {
    let reloader = reloader();
    let collector = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let outlet = Arc::clone(&reloader.snapshots.observers().traces);
    let source = reloader.snapshots.observers().take_source().expect("nobody has it yet");
    let end = CancellationToken::new();
    let mut service = TraceService::new((&reloader, None), source, end.clone());
    reloader.trace_by(Some(tracing(collector.local_addr().expect("it is bound").port())));
    hand_in(&outlet);
    end.cancel();
    let came = async {
        let (connection, _) = collector.accept().await.expect("it comes");
        drop(connection);
    };
    timeout(PATIENCE, async { tokio::join!(service.run(), came) }).await.expect("it is asked");
    // It has hung up.
    assert_eq!(outlet.counts().unsent, 1);
}
