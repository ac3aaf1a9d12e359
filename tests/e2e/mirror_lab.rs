//! A route whose requests are copied for a shadow.

use std::net::SocketAddr;

use evenkeel::config::model::Config;
use evenkeel::message::Cause;
use evenkeel::telemetry::cells::CopyReading;
use fake_backend::{Fake, Recorded, Running};

use super::support::{self, Client, Keel, eventually};

/// A listener in front of `web`, with this `mirror` to `shadow`, and keys of the targets.
pub fn config(web: SocketAddr, shadow: SocketAddr, mirror: &str, of_web: &str, of_shadow: &str) -> Config {
    let pool = |name: &str, at: SocketAddr, more: &str| {
        format!("  {name}: {{health_check: off, {more} backends: [{{name: b, url: 'http://{at}'}}]}}\n")
    };
    support::load(&format!(
        "workers: 1\nlisteners:\n  front:\n    bind: 127.0.0.1:0\n    routes:\n    - {{name: all, target: web, {mirror}}}\ntargets:\n{}{}",
        pool("web", web, of_web),
        pool("shadow", shadow, of_shadow)
    ))
}

/// The proxy, the one that answers and the one that gets copies. There is one worker.
pub struct Scene {
    pub web: Running,
    pub shadow: Running,
    pub keel: Keel,
}

/// Everything is copied.
pub const ALL: &str = "mirror: {target: shadow}";

impl Scene {
    pub fn new() -> Scene {
        Scene::with(ALL, "", "")
    }

    pub fn with(mirror: &str, of_web: &str, of_shadow: &str) -> Scene {
        let [web, shadow] =
            ["web", "shadow"].map(|name| Fake::http(name).record().start_in_thread().unwrap());
        let keel = Keel::start(&config(web.addr(), shadow.addr(), mirror, of_web, of_shadow));
        Scene { web, shadow, keel }
    }

    pub fn client(&self) -> Client {
        self.keel.client()
    }

    /// What was counted of copies.
    pub fn copies(&self) -> CopyReading {
        copies(&self.keel)
    }

    /// Waits until so many copies have ended, and no more were chosen.
    pub fn ended(&self, count: u64) -> CopyReading {
        eventually("copies end", || self.copies().ended() == count);
        assert_eq!(self.copies().chosen, count, "{:?}", self.copies());
        self.copies()
    }

    /// Waits until so many copies were answered, and takes them.
    pub fn answered(&self, count: u64) -> Vec<Recorded> {
        let copies = self.ended(count);
        assert_eq!(copies.answered(), count, "{copies:?}");
        self.shadow.take_requests()
    }

    /// How many copies ended with this cause.
    pub fn ended_with(&self, cause: Cause) -> u64 {
        self.copies().ended_with(cause)
    }
}

/// What was counted of copies for the second target.
pub fn copies(keel: &Keel) -> CopyReading {
    let id = keel.server.targets()[1].id;
    keel.server.readings().target(id).map(|target| target.copies.clone()).unwrap_or_default()
}
