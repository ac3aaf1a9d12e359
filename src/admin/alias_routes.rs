//! GoLoadBalance's own paths: what its scripts ask for, done by the operations that there are. It knows one pool of servers, so
//! where there are several targets the query names one.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::StatusCode;

use super::api::Api;
use super::exchange::answers::ok;
use super::exchange::json_fields::JsonFields;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::hand_routes::change;
use super::route::AdminOutcome;
use super::status::assembly::spoken;
use super::status_routes::{clipped, no_target};
use crate::config::NamedBackend;
use crate::overlay::{AddedBackend, ObjectName, Wish};
use crate::targets::{Backend, Health, Target};

/// `GET /goloadbalance`: whether each server gets traffic, by its address.
pub(super) fn servers(api: &Api, asked: &Question) -> AdminOutcome {
    let target = one_target(api, asked)?;
    let alive = |backend: &Arc<Backend>| (backend.address.to_string(), backend.health() == Health::Up);
    Ok(ok(&target.backends.iter().map(alive).collect::<BTreeMap<String, bool>>()))
}

/// `POST /goloadbalance/add_server`.
pub(super) async fn add_server(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let url = host(asked)?;
    let target = one_target(api, asked)?.name.to_string();
    let backend = AddedBackend { url, ..AddedBackend::default() };
    let wishes = vec![Wish::Add { target, name: None, backend }];
    change(api, asked, wishes, Default::default(), None).await.map(|done| ok(&done)).map_err(named_host)
}

/// `POST /goloadbalance/remove_server`.
pub(super) async fn remove_server(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let url = host(asked)?;
    let target = one_target(api, asked)?;
    let wanted =
        NamedBackend::of(&url).map_err(|why| ProblemDocument::at("/host", &format!("`host` {why}")))?;
    let identity = wanted.address.identity();
    let at_it = target.backends.iter().find(|backend| backend.address.identity() == identity);
    let missing = |more: &str| {
        let detail = format!("the target {} has no server `{}`{more}", target.name, clipped(&url));
        ProblemDocument::plain(StatusCode::NOT_FOUND, detail)
    };
    let Some(backend) = at_it else { return Err(missing("")) };
    let (protocol, tls) = (target.config.protocol, backend.tls.is_some());
    if wanted.protocol.is_some_and(|own| own != protocol) || wanted.tls.is_some_and(|own| own != tls) {
        return Err(missing(&format!("; it has `{}://{}`", spoken(protocol, tls), backend.address)));
    }
    let wishes = vec![Wish::Remove(ObjectName::backend(&target.name, &backend.name))];
    change(api, asked, wishes, Default::default(), None).await.map(|done| ok(&done))
}

/// `{"host": "http://127.0.0.1:8005"}`. GoLoadBalance reads names of fields in any case.
fn host(asked: &Question) -> Result<String, ProblemDocument> {
    let mut fields: JsonFields = asked.fields()?;
    let written = match fields.text("host")? {
        None => fields.text("Host")?,
        written => written,
    };
    let missing = fields.wrong("host", "a URL such as `http://127.0.0.1:8005`");
    fields.end()?;
    written.ok_or(missing)
}

/// The only target, or the one that the query names.
fn one_target(api: &Api, asked: &Question) -> Result<Arc<Target>, ProblemDocument> {
    let Some(snapshot) = api.running.reloader.snapshots.current() else {
        let detail = "no config is in force yet";
        return Err(ProblemDocument::plain(StatusCode::SERVICE_UNAVAILABLE, detail));
    };
    if let Some(name) = asked.query("target") {
        let found = snapshot.targets.iter().find(|target| *target.name == *name);
        return found.cloned().ok_or_else(|| no_target(&snapshot, &name));
    }
    if let [only] = snapshot.targets.as_slice() {
        return Ok(Arc::clone(only));
    }
    const SHOWN: usize = 20;
    let names: Vec<&str> = snapshot.targets.iter().take(SHOWN).map(|target| &*target.name).collect();
    let more = if snapshot.targets.len() > SHOWN { ", …" } else { "" };
    let names = names.join(", ");
    let detail = format!("there are several targets: {names}{more}; `?target=NAME` says which is meant");
    Err(ProblemDocument::plain(StatusCode::CONFLICT, detail))
}

/// What is wrong with the URL stands in `host` here.
fn named_host(problem: ProblemDocument) -> ProblemDocument {
    if problem.pointer.as_deref() != Some("/url") {
        return problem;
    }
    let detail = problem.detail.replace("/url: `url`", "/host: `host`");
    ProblemDocument { pointer: Some("/host".into()), detail, ..problem }
}
