//! `evenkeel cluster`: the processes that act as one.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::Method;

use super::ask::AdminQuestion;
use super::{answered, lost};
use crate::admin::cluster::owners::{OwnedReport, OwnersReport, TargetOwnersReport};
use crate::admin::cluster::report::{ClusterReport, NodeReport, RevisionReport};
use crate::admin::exchange::percent::encoded;
use crate::cli::args::cluster::{ClusterCommand, MoveOptions, NodeOptions, OwnersOptions};
use crate::cli::args::running::AskOptions;

const PATH: &str = "/api/v1/cluster";

pub(in crate::cli) fn run(command: &ClusterCommand) -> anyhow::Result<ExitCode> {
    match command {
        ClusterCommand::Status(asking) => status(asking),
        ClusterCommand::Nodes(asking) => nodes(asking),
        ClusterCommand::Drain(options) => drain(options, Method::POST),
        ClusterCommand::Ready(options) => drain(options, Method::DELETE),
        ClusterCommand::Owners(options) => owners(options),
        ClusterCommand::Move(options) => hand(options),
    }
}

fn owners(options: &OwnersOptions) -> anyhow::Result<ExitCode> {
    let shown = |report: &OwnersReport| match &options.target {
        None => report.targets.iter().map(counts).collect(),
        Some(name) => {
            let target = report.targets.iter().find(|target| target.target == *name);
            target.map_or_else(String::new, |target| target.backends.iter().map(owned_line).collect())
        }
    };
    let asked = answered(&options.asking, question(Method::GET, format!("{PATH}/owners")), shown)?;
    match (asked, &options.target) {
        (Ok(report), Some(name)) if !report.targets.iter().any(|target| target.target == *name) => {
            lost(&format!("there is no target `{name}` with `owner: soft`"))
        }
        (Ok(report), None) if report.targets.is_empty() => lost("no target has `owner: soft`"),
        (Ok(_), _) => Ok(ExitCode::SUCCESS),
        (Err(code), _) => Ok(code),
    }
}

fn hand(options: &MoveOptions) -> anyhow::Result<ExitCode> {
    let Some((target, backend)) = options.backend.split_once('/') else {
        anyhow::bail!("a backend is said as `target/backend`, not `{}`", options.backend);
    };
    let path = format!("/api/v1/targets/{}/backends/{}/owner", encoded(target), encoded(backend));
    let question = match &options.node {
        Some(node) => {
            let body = serde_json::to_vec(&serde_json::json!({ "node": node }))?;
            AdminQuestion { method: Method::POST, path, body }
        }
        None => question(Method::DELETE, path),
    };
    let asked = answered(&options.asking, question, owned_line)?;
    Ok(asked.map_or_else(|code| code, |_| ExitCode::SUCCESS))
}

/// `rails: lb-1 34, lb-2 33, lb-3 33 of 100`.
fn counts(of: &TargetOwnersReport) -> String {
    let each = of.nodes.iter().map(|node| format!("{} {}", node.node, node.backends));
    let held = of.backends.iter().filter(|backend| backend.by_hand).count();
    let held = if held > 0 { format!(", {held} by hand") } else { String::new() };
    match of.backends.iter().any(|backend| backend.node.is_some()) {
        true => {
            let (target, each) = (&of.target, each.collect::<Vec<_>>().join(", "));
            format!("{target}: {each} of {}{held}\n", of.backends.len())
        }
        false => format!("{}: too few backends for so many nodes, all prefer all\n", of.target),
    }
}

/// `b7  lb-2  1 here, 0 elsewhere  (by hand)`.
fn owned_line(of: &OwnedReport) -> String {
    let OwnedReport { backend, node, by_hand, active, elsewhere } = of;
    let node = node.as_deref().unwrap_or("all");
    let held = if *by_hand { "  (by hand)" } else { "" };
    format!("{backend}  {node}  {active} here, {elsewhere} elsewhere{held}\n")
}

fn question(method: Method, path: String) -> AdminQuestion {
    AdminQuestion { method, path, body: Vec::new() }
}

fn status(asking: &AskOptions) -> anyhow::Result<ExitCode> {
    let asked = answered(asking, question(Method::GET, PATH.to_owned()), status_text)?;
    Ok(match asked {
        Ok(ClusterReport { standing, .. }) if standing == "member" => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(code) => code,
    })
}

fn nodes(asking: &AskOptions) -> anyhow::Result<ExitCode> {
    let shown = |report: &ClusterReport| {
        report.nodes.iter().map(|node| format!("{}\n", line(node, SystemTime::now()))).collect()
    };
    let asked = answered(asking, question(Method::GET, PATH.to_owned()), shown)?;
    match asked {
        Ok(report) if report.nodes.is_empty() => {
            let reason = report.reason.map_or_else(String::new, |why| format!(": {why}"));
            lost(&format!("this node has not heard of any: it is {}{reason}", report.standing))
        }
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(code) => Ok(code),
    }
}

fn drain(options: &NodeOptions, method: Method) -> anyhow::Result<ExitCode> {
    let path = format!("{PATH}/nodes/{}/drain", encoded(&options.node));
    let shown = |node: &NodeReport| format!("{}\n", line(node, SystemTime::now()));
    let asked = answered(&options.asking, question(method, path), shown)?;
    Ok(asked.map_or_else(|code| code, |_| ExitCode::SUCCESS))
}

fn status_text(report: &ClusterReport) -> String {
    let ClusterReport {
        cluster,
        node,
        store,
        standing,
        reason,
        store_refuses,
        for_ms,
        revision,
        config,
        kept_ms,
        nodes,
        ..
    } = report;
    let span = |ms: &u64| humantime::format_duration(Duration::from_secs(ms / 1000)).to_string();
    let reason = reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let refuses =
        store_refuses.as_ref().map_or_else(String::new, |why| format!("the store takes no changes: {why}\n"));
    let kept = kept_ms.as_ref().map_or_else(|| "never".to_owned(), |ms| format!("{} ago", span(ms)));
    let config = match config {
        None => "config: this node's own file".to_owned(),
        Some(RevisionReport { revision, author, node, current, .. }) => {
            let other = current.filter(|current| current != revision);
            let other = other.map_or_else(String::new, |other| format!("; the cluster has {other}"));
            format!("config: revision {revision}, by {author} on {node}{other}")
        }
    };
    format!(
        "cluster {cluster}, kept by {store}\nnode {node}: {standing} for {}{reason}\nlease kept alive {kept}, {} known, change {revision}\n{refuses}{config}\n",
        span(for_ms),
        match nodes.len() {
            1 => "1 node".to_owned(),
            count => format!("{count} nodes"),
        },
    )
}

/// `lb-1  evenkeel 0.1.0  up 3m  (this one)`.
fn line(node: &NodeReport, now: SystemTime) -> String {
    let NodeReport { name, own, version, since_ms, zone, drained_by, .. } = node;
    if version.is_empty() {
        return format!("{name}  away");
    }
    let since = UNIX_EPOCH + Duration::from_millis(*since_ms);
    let up = now.duration_since(since).unwrap_or_default();
    let up = humantime::format_duration(Duration::from_secs(up.as_secs()));
    let mut text = format!("{name}  evenkeel {version}  up {up}");
    if let Some(zone) = zone {
        text += &format!("  zone {zone}");
    }
    if let Some(who) = drained_by {
        text += &format!("  drained by {who}");
    }
    if *own {
        text += "  (this one)";
    }
    text
}
