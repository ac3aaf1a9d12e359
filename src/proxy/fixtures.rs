//! What tests of this row and the one above share.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::config::model::Instance;
use crate::config::model::ScaleConfig;
use crate::config::model::{
    ClientTimeouts, Config, EventFormat, Forwarded, Limits, ListenerConfig, LogLevel, MetricsConfig,
    Normalize, Protocol, WatchMode,
};
use crate::message::ListenerId;
use crate::proxy::pool::Pool;
use crate::proxy::{Here, WorkerCtx};
use crate::snapshot::Snapshot;

/// One HTTP listener that leads nowhere.
pub(crate) fn config() -> Config {
    Config {
        acme: Default::default(),
        cluster: None,
        resolver: Default::default(),
        instance: Instance::default(),
        admin: None,
        metrics: MetricsConfig::default(),
        webhooks: Vec::new(),
        scale: ScaleConfig::default(),
        access_lists: Vec::new(),
        rate_limits: Vec::new(),
        listeners: vec![ListenerConfig {
            proxy_protocol: None,
            name: "web".into(),
            protocol: Protocol::Http,
            tls: None,
            http2: None,
            binds: Vec::new(),
            access: Vec::new(),
            auth: None,
            told: [].into(),
            rate_limits: Vec::new(),
            routes: Vec::new(),
            normalize: Normalize::default(),
            default_host: None,
            limits: Limits::default(),
            client_timeouts: ClientTimeouts::default(),
            forwarded: Forwarded::default(),
            x_real_ip: false,
        }],
        targets: Vec::new(),
        watch: WatchMode::default(),
        workers: 1,
        max_connections: None,
        shutdown_delay: Duration::ZERO,
        shutdown_timeout: Duration::ZERO,
        access_log: None,
        log_level: LogLevel::Info,
        log_format: EventFormat::Text,
        trusted_proxies: Vec::new(),
        cache_store: Default::default(),
        recorder: Some(Default::default()),
        tracing: None,
        tests: Vec::new(),
    }
}

/// A worker's things with that.
pub(crate) fn context() -> Rc<WorkerCtx> {
    WorkerCtx::new(Snapshot::of(&config()), Pool::new(Arc::default()), Arc::default(), None, true, 0)
}

/// Its listener.
pub(crate) fn here(ctx: &WorkerCtx) -> Here {
    ctx.here(ListenerId(0)).expect("there is one")
}
