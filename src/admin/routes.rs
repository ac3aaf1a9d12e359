//! Everything that can be asked: a line for each, and a function in the file of its subject.

use std::sync::Arc;

use hyper::StatusCode;

use super::alias_routes;
use super::api::Api;
use super::block_routes;
use super::cache_routes;
use super::cluster::{self, owners};
use super::config_routes;
use super::dashboard;
use super::event_routes;
use super::exchange::answers;
use super::exchange::percent;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::{BodyKind, Question};
use super::explain_routes;
use super::hand_routes;
use super::history::history;
use super::life_routes;
use super::openapi;
use super::requests::routes as request_routes;
use super::route::{AdminOutcome, AdminRoute};
use super::schemas;
use super::scrape;
use super::status_routes;
use super::trial_routes;
use super::upgrading::routes as upgrade_routes;
use super::wire::{ProcessFacts, RouteFacts};
use crate::config::model::Scope::{Configure, Open, Operate, Read};

/// All of it, in the order in which it is listed.
pub const ROUTES: &[AdminRoute] = &[
    AdminRoute::read("/healthz", "Says that the process is alive.", |_, _| {
        Box::pin(async { life_routes::alive() })
    })
    .open()
    .giving("Liveness"),
    AdminRoute::read(
        "/readyz",
        "Says whether the process is to get traffic; 503 and why, if not.",
        |api, _| Box::pin(async move { life_routes::ready(&api) }),
    )
    .open()
    .giving("Readiness"),
    AdminRoute::read(
        "/metrics",
        "All metrics, as Prometheus or OpenMetrics text by Accept.",
        |api, asked| Box::pin(scrape::metrics(api, asked)),
    )
    .giving(schemas::TEXT),
    AdminRoute::read("/api/v1", "Says who answers, and what can be asked.", |api, asked| {
        Box::pin(async move { about(&api, &asked) })
    })
    .giving("Process"),
    AdminRoute::read("/api/v1/openapi.json", "The same as an OpenAPI 3.1 document.", |_, _| {
        Box::pin(async { Ok(answers::ok(&openapi::document(ROUTES))) })
    })
    .giving("Document"),
    AdminRoute::change(
        "POST",
        "/api/v1/config/plan",
        Configure,
        "Says what a reload would do now, or what this config would.",
        |api, asked| Box::pin(config_routes::plan(api, asked)),
    )
    .taking(BodyKind::Config)
    .with(&["file"])
    .changing_nothing()
    .giving("Plan"),
    AdminRoute::change(
        "POST",
        "/api/v1/config/reload",
        Configure,
        "Reads the config again and puts it into force.",
        |api, _| Box::pin(config_routes::reload(api)),
    )
    .giving("Plan"),
    AdminRoute::change("POST", "/api/v1/reload", Configure, "The same.", |api, _| {
        Box::pin(config_routes::reload(api))
    })
    .giving("Plan"),
    AdminRoute::change(
        "POST",
        "/api/v1/config/apply",
        Configure,
        "Puts this config into force, and into the place of the file; with confirm on trial for so long.",
        |api, asked| Box::pin(trial_routes::apply(api, asked)),
    )
    .taking(BodyKind::Config)
    .with(&["confirm", "file"])
    .giving("ApplyReport"),
    AdminRoute::change(
        "POST",
        "/api/v1/config/confirm",
        Configure,
        "Puts the config on trial into the place of the file.",
        |api, asked| Box::pin(trial_routes::confirm(api, asked)),
    )
    .giving("Confirmed"),
    AdminRoute::change(
        "POST",
        "/api/v1/config/rollback",
        Configure,
        "Takes the config on trial back.",
        |api, asked| Box::pin(trial_routes::rollback(api, asked)),
    )
    .giving("Plan"),
    AdminRoute::change(
        "POST",
        "/api/v1/upgrade",
        Configure,
        "Puts another process, of this binary, into the place of this one, which drains then.",
        |api, asked| Box::pin(async move { upgrade_routes::upgrade(&api, &asked).await }),
    )
    .taking_json("Upgrade")
    .giving("UpgradeReport"),
    AdminRoute::read(
        "/api/v1/config/digest",
        "A hash over the running state: as long as it is the same, nothing has changed.",
        |api, _| Box::pin(async move { config_routes::digest(&api) }),
    )
    .giving("Digest"),
    AdminRoute::read("/", "The dashboard: a page for browsers.", |_, asked| {
        Box::pin(async move { dashboard::page(&asked) })
    })
    .open()
    .giving(schemas::PAGE),
    AdminRoute::read(
        "/api/v1/stream",
        "What the dashboard shows; with `Accept: text/event-stream` what changes each second. nodes=on: the other nodes of the cluster say what they have to do.",
        |api, asked| Box::pin(dashboard::look(api, asked)),
    )
    .with(&["nodes"])
    .giving("Board"),
    AdminRoute::read(
        "/api/v1/history",
        "What came second by second of late, of the rows `of` (with a blank between two); step=10 for an hour.",
        |api, asked| Box::pin(async move { history(&api, &asked) }),
    )
    .with(&["of", "step"])
    .giving("History"),
    AdminRoute::read("/api/v1/session", "Says who asks, and what it may.", |api, asked| {
        Box::pin(async move { dashboard::session(&api, &asked) })
    })
    .open()
    .giving("Session"),
    AdminRoute::change(
        "POST",
        "/api/v1/session",
        Open,
        "Logs a browser in with a token, by a cookie that is good for twelve hours.",
        |api, asked| Box::pin(async move { dashboard::log_in(&api, &asked) }),
    )
    .taking_json("Login")
    .changing_nothing()
    .giving("Session"),
    AdminRoute::change("DELETE", "/api/v1/session", Open, "Logs it out.", |api, asked| {
        Box::pin(async move { dashboard::log_out(&api, &asked) })
    })
    .changing_nothing()
    .giving("Session"),
    AdminRoute::read("/api/v1/status", "The state of every listener, target and backend.", |api, _| {
        Box::pin(async move { status_routes::status(&api) })
    })
    .giving("Status"),
    AdminRoute::change(
        "POST",
        "/api/v1/explain",
        Read,
        "Says what would become of a request, and why; nothing is sent.",
        |api, asked| Box::pin(async move { explain_routes::explain(&api, &asked) }),
    )
    .taking_json("Sample")
    .changing_nothing()
    .giving("Explanation"),
    AdminRoute::read("/api/v1/targets/{target}", "The state of a target and its backends.", |api, asked| {
        Box::pin(async move { status_routes::target(&api, &asked) })
    })
    .giving("Target"),
    AdminRoute::read(
        "/api/v1/targets/{target}/backends/{backend}",
        "The state of a backend.",
        |api, asked| Box::pin(async move { status_routes::backend(&api, &asked) }),
    )
    .giving("Backend"),
    AdminRoute::change(
        "PATCH",
        "/api/v1/targets/{target}",
        Operate,
        "Sets max_in_flight by hand; null takes that back.",
        |api, asked| Box::pin(async move { hand_routes::set_target(&api, &asked).await }),
    )
    .taking_json("TargetChange")
    .giving("Change"),
    AdminRoute::change(
        "PATCH",
        "/api/v1/targets/{target}/backends/{backend}",
        Operate,
        "Sets state or weight by hand; null takes that back.",
        |api, asked| Box::pin(async move { hand_routes::set_backend(&api, &asked).await }),
    )
    .taking_json("BackendChange")
    .giving("Change"),
    AdminRoute::change(
        "POST",
        "/api/v1/targets/{target}/backends",
        Configure,
        "Adds a backend by hand.",
        |api, asked| Box::pin(async move { hand_routes::add(&api, &asked).await }),
    )
    .taking_json("Addition")
    .giving("Change"),
    AdminRoute::change(
        "DELETE",
        "/api/v1/targets/{target}/backends/{backend}",
        Configure,
        "Removes a backend by hand; what is under way finishes, tunnels within drain.",
        |api, asked| Box::pin(async move { hand_routes::remove(&api, &asked).await }),
    )
    .with(&["drain", "for", "local"])
    .giving("Change"),
    AdminRoute::read(
        "/api/v1/overlay",
        "All that is changed by hand, beside what the file says.",
        |api, _| Box::pin(async move { hand_routes::overlay(&api) }),
    )
    .giving("Overlay"),
    AdminRoute::change(
        "POST",
        "/api/v1/overlay/save",
        Configure,
        "Writes what is changed by hand into the config's files.",
        |api, asked| Box::pin(async move { hand_routes::save(&api, &asked).await }),
    )
    .giving("SaveReport"),
    AdminRoute::read("/api/v1/access/blocked/entries", "All networks that are kept out.", |api, _| {
        Box::pin(async move { block_routes::blocked(&api) })
    })
    .giving("Blocked"),
    AdminRoute::change(
        "POST",
        "/api/v1/access/blocked/entries",
        Operate,
        "Keeps a network out, and cuts what it has under way.",
        |api, asked| Box::pin(async move { block_routes::block(&api, &asked).await }),
    )
    .taking_json("Block")
    .giving("BlockAnswer"),
    AdminRoute::change(
        "DELETE",
        "/api/v1/access/blocked/entries/{network}",
        Operate,
        "Lets a network in again.",
        |api, asked| Box::pin(async move { block_routes::unblock(&api, &asked).await }),
    )
    .with(&["local"])
    .giving("BlockedEntry"),
    AdminRoute::change(
        "POST",
        "/api/v1/cache/purge",
        Operate,
        "Takes answers out of the store, or declares them stale.",
        |api, asked| Box::pin(async move { cache_routes::purge(&api, &asked).await }),
    )
    .taking_json("Purge")
    .giving("PurgeReport"),
    AdminRoute::read("/api/v1/cluster", "The nodes that this process acts as one with.", |api, _| {
        Box::pin(async move { cluster::cluster(&api) })
    })
    .giving("Cluster"),
    AdminRoute::change(
        "POST",
        "/api/v1/cluster/nodes/{node}/drain",
        Operate,
        "Has a node take no new traffic.",
        |api, asked| Box::pin(async move { cluster::drain(&api, &asked, true).await }),
    )
    .giving("Node"),
    AdminRoute::change(
        "DELETE",
        "/api/v1/cluster/nodes/{node}/drain",
        Operate,
        "Has it take some again.",
        |api, asked| Box::pin(async move { cluster::drain(&api, &asked, false).await }),
    )
    .giving("Node"),
    AdminRoute::read("/api/v1/cluster/owners", "Which node prefers which backends (`owner: soft`).", |api, _| {
        Box::pin(async move { owners::owners(&api) })
    })
    .giving("Owners"),
    AdminRoute::change(
        "POST",
        "/api/v1/targets/{target}/backends/{backend}/owner",
        Operate,
        "Has a node prefer a backend that nodes share, until somebody says otherwise.",
        |api, asked| Box::pin(async move { owners::hand(&api, &asked).await }),
    )
    .taking_json("OwnerChange")
    .giving("Owned"),
    AdminRoute::change(
        "DELETE",
        "/api/v1/targets/{target}/backends/{backend}/owner",
        Operate,
        "Has it move as nodes have need of it again.",
        |api, asked| Box::pin(async move { owners::release(&api, &asked).await }),
    )
    .giving("Owned"),
    AdminRoute::read(
        "/api/v1/events",
        "The latest events; with Accept: text/event-stream a stream of those to come.",
        |api, asked| Box::pin(async move { event_routes::events(&api, &asked) }),
    )
    .with(&["after", "kind", "limit"])
    .giving("Events"),
    AdminRoute::read(
        "/api/v1/requests",
        "Requests that are over and failed, were tried again or were slow, the latest first.",
        |api, asked| Box::pin(async move { request_routes::list(&api, &asked).await }),
    )
    .with(&["cause", "target", "slow", "sampled", "last"])
    .giving("Requests"),
    AdminRoute::read(
        "/api/v1/requests/{id}",
        "What became of a request that is over, step by step, and why.",
        |api, asked| Box::pin(async move { request_routes::one(&api, &asked).await }),
    )
    .giving("Story"),
    AdminRoute::read(
        "/goloadbalance",
        "Says of each server whether it gets traffic, as GoLoadBalance does.",
        |api, asked| Box::pin(async move { alias_routes::servers(&api, &asked) }),
    )
    .with(&["target"])
    .giving("Servers"),
    AdminRoute::change(
        "POST",
        "/goloadbalance/add_server",
        Configure,
        "Adds a backend by hand, as GoLoadBalance does.",
        |api, asked| Box::pin(async move { alias_routes::add_server(&api, &asked).await }),
    )
    .taking_json("Host")
    .with(&["target"])
    .giving("Change"),
    AdminRoute::change(
        "POST",
        "/goloadbalance/remove_server",
        Configure,
        "Removes a backend by hand, as GoLoadBalance does.",
        |api, asked| Box::pin(async move { alias_routes::remove_server(&api, &asked).await }),
    )
    .taking_json("Host")
    .with(&["target"])
    .giving("Change"),
];

fn facts(route: &AdminRoute) -> RouteFacts {
    RouteFacts {
        method: route.method.to_owned(),
        path: route.path.to_owned(),
        scope: route.scope.name().to_owned(),
        does: route.does.to_owned(),
    }
}

/// Who answers, and what it can be asked.
fn about(api: &Arc<Api>, _asked: &Question) -> AdminOutcome {
    Ok(answers::ok(&ProcessFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: api.about.name.clone(),
        pid: std::process::id(),
        config: api.about.config.clone(),
        routes: ROUTES.iter().map(facts).collect(),
    }))
}

/// Where a path leads.
#[derive(Debug)]
pub enum Led {
    /// To this, with the values of what stands in braces.
    To(&'static AdminRoute, Vec<(&'static str, String)>),
    /// There, but not with this method: those with which it does.
    NotSo(Vec<&'static str>),
    /// Nowhere.
    Nowhere(ProblemDocument),
}

/// What is asked by this method and path.
#[must_use]
pub fn lead(method: &str, path: &str) -> Led {
    let path = if path.len() > 1 { path.strip_suffix('/').unwrap_or(path) } else { path };
    // What HEAD asks for is the head of what GET gives.
    let method = if method == "HEAD" { "GET" } else { method };
    let mut allowed = Vec::new();
    for route in ROUTES {
        match route.values(path) {
            Some(values) if route.method == method => return Led::To(route, values),
            Some(_) => allowed.push(route.method),
            None => {}
        }
    }
    if allowed.is_empty() {
        return Led::Nowhere(nowhere(path));
    }
    if allowed.contains(&"GET") {
        allowed.push("HEAD");
    }
    Led::NotSo(allowed)
}

fn nowhere(path: &str) -> ProblemDocument {
    if path.split('/').any(|segment| percent::strict(segment).is_none()) {
        let detail = "this path is not encoded as it should be: behind each `%` stand two hexadecimal digits, of UTF-8; `/` in a name is `%2F`";
        return ProblemDocument::plain(StatusCode::BAD_REQUEST, detail);
    }
    /// What is longer is like nothing that there is.
    const COMPARED: usize = 256;
    let likeness = |known: &String| strsim::jaro_winkler(known, path);
    let candidates = ROUTES.iter().filter(|_| path.len() <= COMPARED).map(|route| route.like(path));
    let nearest = candidates.max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    let meant = nearest.filter(|known| likeness(known) > 0.8);
    let meant = meant.map_or(String::new(), |known| format!("; did you mean {known}?"));
    let detail = match meant.as_str() {
        "" => "there is nothing at this path; GET /api/v1 lists everything".to_owned(),
        meant => format!("there is nothing at this path{meant} GET /api/v1 lists everything"),
    };
    ProblemDocument::plain(StatusCode::NOT_FOUND, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_somewhere_or_is_told_what_was_meant() {
        let led = |method: &str, path: &str| match lead(method, path) {
            Led::To(route, _) => route.path.to_owned(),
            Led::NotSo(allowed) => allowed.join(", "),
            Led::Nowhere(problem) => format!("{} {}", problem.status, problem.detail),
        };
        assert_eq!(led("POST", "/api/v1/config/plan"), "/api/v1/config/plan");
        assert_eq!(led("POST", "/api/v1/reload/"), "/api/v1/reload");
        assert_eq!(led("HEAD", "/api/v1"), "/api/v1");
        assert_eq!(
            (led("GET", "/api/v1/reload"), led("OPTIONS", "/api/v1")),
            ("POST".into(), "GET, HEAD".into())
        );
        let meant = led("POST", "/api/v1/config/plam");
        assert!(meant.starts_with("404 ") && meant.contains("did you mean /api/v1/config/plan?"), "{meant}");
        assert_eq!(led("GET", "/qq"), "404 there is nothing at this path; GET /api/v1 lists everything");
        assert_eq!(led("GET", "/"), "/");
        assert!(led("GET", &format!("/api/v1/{}", "config/".repeat(40))).ends_with("lists everything"));
    }

    #[test]
    fn a_segment_in_braces_takes_one_segment_of_any_kind() {
        let route = AdminRoute::read("/a/{t}/b/{x}", "", ROUTES[0].handler);
        assert_eq!(route.parameters().collect::<Vec<_>>(), ["t", "x"]);
        let values = |path: &str| {
            route.values(path).map(|all| all.into_iter().map(|(_, value)| value).collect::<Vec<_>>())
        };
        assert_eq!(values("/a/web/b/10.0.0.1:80").expect("it is"), ["web", "10.0.0.1:80"]);
        assert_eq!(values("/a/web/b/unix:%2Frun%2Fa.sock").expect("it is"), ["web", "unix:/run/a.sock"]);
        assert_eq!(values("/a/%2E%2E/b/%7Bx%7D").expect("it is"), ["..", "{x}"]);
        for other in
            ["/a/web/b", "/a//b/x", "/a/web/b/", "/a/web/c/x", "/a/web/b/x/y", "/a/%/b/x", "/a/%ff/b/x"]
        {
            assert_eq!(values(other), None, "{other}");
        }
        assert_eq!(route.like("/a/web/d/x"), "/a/web/b/x");
        assert_eq!(route.like("/a"), "/a/{t}/b/{x}");
    }

    #[test]
    fn no_two_lines_mean_the_same_request() {
        for (place, route) in ROUTES.iter().enumerate() {
            assert!(!route.does.is_empty() && route.does.ends_with('.'), "{}", route.path);
            assert!(
                route.method != "GET" || !route.changes,
                "{}: what is looked at stays as it is",
                route.path
            );
            let like = route.like("");
            let clash = ROUTES[..place].iter().find(|one| {
                one.method == route.method
                    && (one.values(&like).is_some() || route.values(&one.like("")).is_some())
            });
            assert!(clash.is_none(), "{} is {}", route.path, clash.map_or("", |one| one.path));
        }
    }
}
