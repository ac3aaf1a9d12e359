//! Where the config says what has decided.

use crate::config::{Effective, Origin};
use crate::message::Cause;
use crate::reload::plan::PlannedPlace;
use crate::telemetry::recorder::KeptRequest;

use super::report::DecidingKey;
use super::verdict::deciding;

/// Keys of one kind that are told at most.
const MOST: usize = 3;

/// Of `rows`, which are in force, those that had a say in what became of a request: its route or listener, its target, and what
/// its cause and those of its attempts go by.
pub(super) fn places(rows: &[Effective], kept: &KeptRequest) -> Vec<DecidingKey> {
    let listener = format!("listeners.{}", kept.listener);
    let route = format!("{listener}.routes.{}", kept.route);
    let short = format!("targets.{}", kept.listener);
    let target = format!("targets.{}", kept.target);
    let mut found: Vec<&Effective> = Vec::new();
    let first = |owner: &str| rows.iter().find(|row| is_written(row) && rest(&row.path, owner).is_some());
    let way = if kept.route.is_empty() { None } else { first(&route) };
    // In the short form a target is a listener of its name.
    let came_in = || first(&listener).or_else(|| first(&format!("{short}.listener")));
    found.extend(way.or_else(came_in));
    if !kept.target.is_empty() {
        found.extend(rows.iter().find(|row| is_written(row) && row.path == format!("{route}.target")));
        found.extend(rows.iter().find(|row| is_written(row) && is_of_target_alone(row, &target)));
    }
    let attempts = kept.record.kept_attempts().iter().map(|attempt| attempt.outcome);
    let mut causes: Vec<Cause> = attempts.chain([kept.record.cause]).collect();
    causes.dedup();
    for key in causes.into_iter().flat_map(deciding) {
        // The nearest wins.
        let owners = [&route, &listener, &short, &target];
        let of = |owner: &String| {
            let path = format!("{owner}.{key}");
            rows.iter().filter(|row| rest(&row.path, &path).is_some()).take(MOST).collect::<Vec<_>>()
        };
        let all = owners.map(of);
        let written = all.iter().find(|rows| rows.iter().any(|row| is_written(row)));
        found.extend(written.or_else(|| all.iter().find(|rows| !rows.is_empty())).into_iter().flatten());
    }
    let mut keys: Vec<DecidingKey> = Vec::new();
    for row in found {
        if !keys.iter().any(|known| known.key == row.path) {
            let (key, value) = (row.path.clone(), row.value.clone());
            keys.push(DecidingKey { key, value, place: PlannedPlace::of(&row.origin) });
        }
    }
    keys
}

fn is_written(row: &Effective) -> bool {
    row.origin != Origin::Default
}

/// What stands behind `owner` in a path, if that is whose it is: nothing, or what a dot or a bracket begins.
fn rest<'p>(path: &'p str, owner: &str) -> Option<&'p str> {
    path.strip_prefix(owner).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Whether a row says something about a target, and not about the listener of its short form.
fn is_of_target_alone(row: &Effective, target: &str) -> bool {
    rest(&row.path, target).is_some_and(|rest| !rest.starts_with(".listener"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{BackendId, Record};
    use crate::tick::Tick;

    fn row(path: &str, line: usize) -> Effective {
        let origin = match line {
            0 => Origin::Default,
            line => Origin::File { file: "a.yaml".into(), line },
        };
        Effective { path: path.into(), value: "v".into(), origin, content: None }
    }

    fn told(rows: &[Effective], kept: &KeptRequest) -> Vec<String> {
        let keys = places(rows, kept);
        keys.into_iter().map(|one| format!("{} {}", one.key, one.place.text)).collect()
    }

    #[test]
    fn the_nearest_place_that_somebody_wrote_is_told() {
        let rows = [
            row("targets.web.protocol", 2),
            row("targets.web.timeouts.connect", 4),
            row("targets.web.timeouts.total", 0),
            row("targets.web.retries.attempts", 0),
            row("listeners.public.bind", 7),
            row("listeners.public.routes.shop.match", 9),
            row("listeners.public.routes.shop.target", 10),
            row("listeners.public.routes.shop.timeouts.total", 11),
            row("listeners.public.routes.shop2.match", 12),
        ];
        let of = |cause: Cause, route: &str| KeptRequest {
            record: Record { cause, ..Record::default() },
            listener: "public".into(),
            route: route.into(),
            target: "web".into(),
            ..KeptRequest::default()
        };
        assert_eq!(
            told(&rows, &of(Cause::TotalTimeout, "shop")),
            [
                "listeners.public.routes.shop.match a.yaml:9",
                "listeners.public.routes.shop.target a.yaml:10",
                "targets.web.protocol a.yaml:2",
                "listeners.public.routes.shop.timeouts.total a.yaml:11",
            ]
        );
        let mut kept = of(Cause::ConnectFailed, "");
        kept.record.attempt(BackendId(0), Tick(1)).outcome = Cause::ConnectTimeout;
        assert_eq!(
            told(&rows, &kept),
            [
                "listeners.public.bind a.yaml:7",
                "targets.web.protocol a.yaml:2",
                "targets.web.timeouts.connect a.yaml:4",
                "targets.web.retries.attempts default",
            ]
        );
    }

    #[test]
    fn a_listener_in_the_short_form_is_where_it_is_written() {
        let rows = [row("targets.web.listener", 3), row("targets.web.balance", 5), row("targets.webs.x", 6)];
        let kept = KeptRequest { listener: "web".into(), target: "web".into(), ..KeptRequest::default() };
        assert_eq!(told(&rows, &kept), ["targets.web.listener a.yaml:3", "targets.web.balance a.yaml:5"]);
    }
}
