//! One number for all that a config has brought about: whoever compares two of them knows whether anything has changed.

use std::fmt::Write as _;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::Reloader;

impl Reloader {
    /// A hash over the state of the process: which objects there are (also whether they are the very same), their numbers,
    /// policies and limits, health with since when, breakers, ejections, bound addresses. Verdicts change by themselves;
    /// requests, connections and time do not change it. It says nothing about another process.
    #[must_use]
    pub fn digest(&self) -> String {
        format!("{:032x}", xxh3_128(self.state_text().as_bytes()))
    }

    /// What is hashed. It has what configs have, secrets included.
    fn state_text(&self) -> String {
        let mut text = String::new();
        let mut line = |of: std::fmt::Arguments<'_>| {
            let _ = writeln!(text, "{of}");
        };
        let state = self.state();
        let config = &state.deployed.config;
        line(format_args!("connections {} workers {}", self.limits.limit(), state.deployed.workers.len()));
        line(format_args!("{:?} {:?}", config.instance, config.access_log));
        line(format_args!("{:?}", config.admin));
        line(format_args!("{:?} {:?}", config.log_level, config.log_format));
        line(format_args!("{:?} {:?}", config.shutdown_delay, config.shutdown_timeout));
        line(format_args!("{:?} {:?} {:?}", config.trusted_proxies, config.cache_store, config.recorder));
        line(format_args!("{:?}", config.tracing));
        for place in state.deployed.places.all() {
            line(format_args!(
                "address {:?} {} {:?} {}",
                place.id, place.listener, place.bind, place.address
            ));
        }
        drop(state);
        let Some(snapshot) = self.snapshots.current() else { return text };
        line(format_args!("snapshot {}", snapshot.number));
        for listener in &snapshot.listeners {
            let (state, config) = (Arc::as_ptr(&listener.state), &listener.config);
            line(format_args!(
                "listener {} {:?} {:p} {state:p}",
                config.name,
                listener.id,
                Arc::as_ptr(listener)
            ));
            line(format_args!(
                "{:?} {:?} {:?}",
                listener.state.counts.limits(),
                config.limits,
                config.client_timeouts
            ));
        }
        for target in &snapshot.targets {
            line(format_args!("target {} {:?} {:p}", target.name, target.id, Arc::as_ptr(target)));
            line(format_args!("{:?}", target.config));
            for (backend, status) in target.backends.iter().zip(target.status()) {
                line(format_args!(
                    "backend {} {:?} {:p}",
                    backend.identity,
                    backend.id,
                    Arc::as_ptr(backend)
                ));
                line(format_args!("{:?} {:?} {:?}", status.health, status.source, status.since));
                line(format_args!("{:?} {:?} {}", status.circuit, status.ejected_until, status.share));
                line(format_args!("{}", backend.generation()));
            }
        }
        text
    }
}
