//! Who has the keys of a listener: an entry of `listeners`, or a target in the short form, which is both.

use super::show::name_of;
use crate::config::edit::Fix;
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::Protocol;
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::{
    RawLimits, RawListener, RawListenerConfig, RawListenerKeys, RawRoute, RawTarget, RawTimeouts, RawTls,
    Spoken,
};
use crate::config::report::Report;

/// Whoever has the keys of a listener.
#[derive(Clone, Copy)]
pub(super) struct KeyOwner<'r> {
    /// `target` or `listener`, as it is told.
    kind: &'static str,
    /// Of which it is one: `targets` or `listeners`.
    group: &'static str,
    pub(super) name: &'r Written<String>,
    pub(super) protocol: &'r Field<Spoken>,
    pub(super) binds: &'r Field<Vec<Written<RawListener>>>,
    /// Under which key those stand.
    pub(super) bind_key: &'static str,
    pub(super) tls: &'r Field<RawTls>,
    pub(super) own: &'r RawListenerKeys,
    pub(super) timeouts: &'r RawTimeouts,
    pub(super) limits: &'r RawLimits,
    /// Where keys stand that mean something to HTTP only.
    pub(super) http_only: &'r [(&'static str, Spot)],
    /// All of its routes pass TLS on as it comes, and so nothing is decrypted.
    pub(super) passes_all: bool,
    /// It is a target too.
    pub(super) is_target: bool,
}

impl<'r> KeyOwner<'r> {
    /// A target in the short form.
    pub(super) fn target(raw: &'r RawTarget) -> KeyOwner<'r> {
        KeyOwner {
            kind: "target",
            group: "targets",
            name: &raw.name,
            protocol: &raw.protocol,
            binds: &raw.listener,
            bind_key: "listener",
            tls: &raw.tls,
            own: &raw.own,
            timeouts: &raw.timeouts,
            limits: &raw.limits,
            http_only: &raw.http_only,
            passes_all: false,
            is_target: true,
        }
    }

    /// An entry of `listeners`.
    pub(super) fn listener(raw: &'r RawListenerConfig) -> KeyOwner<'r> {
        KeyOwner {
            kind: "listener",
            group: "listeners",
            name: &raw.name,
            protocol: &raw.protocol,
            binds: &raw.bind,
            bind_key: "bind",
            tls: &raw.tls,
            own: &raw.own,
            timeouts: &raw.timeouts,
            limits: &raw.limits,
            http_only: &raw.http_only,
            passes_all: !raw.routes.is_empty() && raw.routes.iter().all(RawRoute::is_passthrough),
            is_target: false,
        }
    }

    /// `target` or `listener`.
    pub(super) fn kind(&self) -> &'static str {
        self.kind
    }

    /// As a sentence has it: "the target `web`".
    pub(super) fn told(&self) -> String {
        format!("the {} {}", self.kind, quoted(&self.name.value))
    }

    /// The path of one of its keys: `listeners.public.tls`.
    pub(super) fn path(&self, key: &str) -> String {
        format!("{}.{}.{key}", self.group, self.name.value)
    }

    /// What clients speak; `None`: there is a fault, which has been reported.
    pub(super) fn spoken(&self, default: Spoken, rows: &mut EffectiveRows) -> Option<Spoken> {
        let written = match self.protocol {
            Field::Given(written) => Some(written),
            Field::Absent => None,
            Field::Faulty => return None,
        };
        let show = |spoken: &Spoken| name_of(Spoken::ALL, *spoken).to_owned();
        Some(rows.settle(self.path("protocol"), written, default, show))
    }

    /// The same of an entry of `listeners`, without noting it.
    pub(super) fn spoken_or_http(&self) -> Option<Spoken> {
        match self.protocol {
            Field::Given(written) => Some(written.value),
            Field::Absent => Some(Spoken::HTTP),
            Field::Faulty => None,
        }
    }

    /// Balancers in front tell on it whose connections they pass on, which has to be within `timeouts.head`.
    pub(super) fn hears_senders(&self) -> bool {
        matches!(self.own.proxy_protocol, Field::Given(Written { value: Some(_), .. }))
    }

    /// What is spoken where that is not HTTP, as it is told.
    pub(super) fn spoken_name(&self) -> &'static str {
        match self.protocol {
            Field::Given(written) => written.value.protocol.as_str(),
            Field::Absent | Field::Faulty => Protocol::Tcp.as_str(),
        }
    }

    /// A key without effect is a misunderstanding, so it is refused.
    pub(super) fn refuse_http_keys(&self, report: &mut Report) {
        for (key, spot) in self.http_only {
            if *key == "head" && self.hears_senders() {
                continue;
            }
            if self.passes_all {
                let message = format!(
                    "`{key}` has no effect: all routes of {} pass TLS through, so it sees no requests",
                    self.told()
                );
                report.spot(spot, message).note("remove it");
                continue;
            }
            let message =
                format!("`{key}` belongs to HTTP, but {} speaks {}", self.told(), self.spoken_name());
            let problem = report.spot(spot, message);
            match (spot.place, *key) {
                (Some(_), "adaptive") => {
                    problem.hint("write `off`, or set `protocol: http`", Fix::Value("off".to_owned()))
                }
                (Some(place), _) => problem.hint("remove it, or set `protocol: http`", Fix::Remove(place)),
                (None, _) => problem,
            };
        }
    }
}
