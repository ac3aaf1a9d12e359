//! What is changed by hand: a backend's state and weight, a target's `max_in_flight`, backends that are added and removed.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};

use super::api::Api;
use super::exchange::answers::{json, ok};
use super::exchange::json_fields::JsonFields;
use super::exchange::percent;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::route::AdminOutcome;
use super::wire::{ChangeReport, LASTS_MAX};
use crate::config::model::{BackendAddress, BackendConfig, BackendState, Portion};
use crate::config::{AdditionFault, Loaded, NamedBackend, Unwritten};
use crate::overlay::{
    AddedBackend, Author, Declined, EntryChange, EntryField, EntryReport, ObjectName, OverlayReport, Wish,
    report,
};
use crate::reload::begun::{ByHand, now_ms};
use crate::reload::by_hand::{HandAsk, HandFault};
use crate::reload::fault::Fault;
use crate::reload::kept::StoreReach;
use crate::reload::save::SaveFault;

/// The longest time that tunnels may be given.
const DRAIN_MAX: Duration = Duration::from_secs(24 * 3600);
/// The most that `max_in_flight` takes, as in a file.
const IN_FLIGHT_MAX: u64 = 1_000_000;

/// `GET /api/v1/overlay`.
pub(super) fn overlay(api: &Api) -> AdminOutcome {
    let entries = overlay_entries(api);
    let refused = api.running.by_hand().fault.clone();
    Ok(ok(&OverlayReport { entries, blocked: api.running.blocked_reports(), refused }))
}

/// All that is changed by hand.
pub(super) fn overlay_entries(api: &Api) -> Vec<EntryReport> {
    let ByHand { file, entries, aside, .. } = &*api.running.by_hand();
    report(file, entries, aside, now_ms())
}

/// `POST /api/v1/overlay/save`.
pub(super) async fn save(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    match api.running.save(&author(asked)?).await {
        Ok(report) => Ok(ok(&report)),
        Err(fault) => Err(unsaved(fault)),
    }
}

fn unsaved(fault: SaveFault) -> ProblemDocument {
    let conflict = |detail: String| ProblemDocument::plain(StatusCode::CONFLICT, detail);
    match fault {
        SaveFault::NoFile => conflict("this process has no config file that could be written".to_owned()),
        SaveFault::OfCluster(number) => conflict(format!(
            "what is in force is revision {number} of the cluster's config, and no file of this node: write it there, and `evenkeel apply` it"
        )),
        SaveFault::Edited(file) => {
            conflict(format!("{file} is not what was read last; have it read (`evenkeel reload`), then save"))
        }
        SaveFault::Unequal(why) => conflict(format!(
            "nothing is written, because the file would then say something else than what is in force: {why}"
        )),
        SaveFault::ByHand(list) => {
            let problems: Vec<Fault> = list.iter().map(to_be_written).collect();
            let detail = problems.first().map(|fault| fault.first_line().to_owned()).unwrap_or_default();
            let kind = NOT_WRITTEN.to_owned();
            let title = "Somebody has to write it, nothing has changed".to_owned();
            ProblemDocument { kind, title, problems, ..conflict(detail) }
        }
        SaveFault::OnTrial(refusal) => ProblemDocument::refused(refusal.problems, refusal.is_conflict),
        SaveFault::Unkept(unkept) => problem(HandFault::Unkept(unkept)),
    }
}

/// What somebody has to write, and where.
fn to_be_written(of: &Unwritten) -> Fault {
    Fault {
        file: of.file.as_deref().map(str::to_owned),
        line: of.line,
        message: of.why.clone(),
        hint: Some([std::slice::from_ref(&of.instead), &of.lines].concat().join("\n")),
        text: of.to_string(),
        ..Fault::default()
    }
}

/// `PATCH` of a target.
pub(super) async fn set_target(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let object = ObjectName::target(asked.parameter("target"));
    let mut fields = asked.fields()?;
    let mut wishes = Vec::new();
    if fields.is_null("max_in_flight") {
        wishes.push(Wish::Clear(object, EntryField::MaxInFlight));
    } else if let Some(limit) = in_flight(&mut fields)? {
        wishes.push(Wish::Set(object, EntryChange::MaxInFlight(limit)));
    }
    let lasts = scope(&mut fields)?;
    fields.end()?;
    change(api, asked, wishes, lasts, None).await.map(|done| ok(&done))
}

/// A number, or `"off"`.
fn in_flight(fields: &mut JsonFields) -> Result<Option<Option<u32>>, ProblemDocument> {
    const NAME: &str = "max_in_flight";
    let wrong = fields.wrong(NAME, &format!("a whole number from 1 to {IN_FLIGHT_MAX}, or `off`"));
    match fields.take(NAME) {
        None => Ok(None),
        Some(value) if value == "off" => Ok(Some(None)),
        Some(value) => {
            let number = value.as_u64().filter(|number| (1..=IN_FLIGHT_MAX).contains(number));
            number.and_then(|number| u32::try_from(number).ok()).map(|number| Some(Some(number))).ok_or(wrong)
        }
    }
}

/// `PATCH` of a backend.
pub(super) async fn set_backend(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let object = ObjectName::backend(asked.parameter("target"), asked.parameter("backend"));
    let mut fields = asked.fields()?;
    let mut wishes = Vec::new();
    if fields.is_null("state") {
        wishes.push(Wish::Clear(object.clone(), EntryField::State));
    } else if let Some(state) = fields.choice("state", BackendState::ALL)? {
        wishes.push(Wish::Set(object.clone(), EntryChange::State(state)));
    }
    if fields.is_null("weight") {
        wishes.push(Wish::Clear(object, EntryField::Weight));
    } else if let Some(weight) = fields.whole("weight", 0..=u64::from(Portion::WEIGHT_MAX))? {
        let weight = u16::try_from(weight).unwrap_or(Portion::WEIGHT_MAX);
        wishes.push(Wish::Set(object, EntryChange::Weight(weight)));
    }
    let lasts = scope(&mut fields)?;
    fields.end()?;
    change(api, asked, wishes, lasts, None).await.map(|done| ok(&done))
}

/// `POST` of a backend.
pub(super) async fn add(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let mut fields = asked.fields()?;
    let Some(url) = fields.text("url")? else {
        return Err(fields.wrong("url", "a URL such as `http://127.0.0.1:8001`"));
    };
    let number = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
    let name = fields.text("name")?;
    let backend = AddedBackend {
        url,
        weight: number(fields.whole("weight", 0..=u64::from(Portion::WEIGHT_MAX))?),
        priority: number(fields.whole("priority", 0..=u64::from(Portion::BACKUP) - 1)?),
        backup: fields.switch("backup")?,
        zone: fields.text("zone")?,
        health_path: fields.text("health_path")?,
    };
    let lasts = scope(&mut fields)?;
    fields.end()?;
    let target = asked.parameter("target").to_owned();
    let done = change(api, asked, vec![Wish::Add { target, name, backend }], lasts, None).await?;
    let mut answer = json(StatusCode::CREATED, &done);
    if let Some((target, backend)) = done.objects.first().and_then(|object| object.split_once('/')) {
        let path =
            format!("/api/v1/targets/{}/backends/{}", percent::encoded(target), percent::encoded(backend));
        if let Ok(place) = HeaderValue::from_str(&path) {
            answer.headers_mut().insert(LOCATION, place);
        }
    }
    Ok(answer)
}

/// `DELETE` of a backend.
pub(super) async fn remove(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let object = ObjectName::backend(asked.parameter("target"), asked.parameter("backend"));
    let drain = asked.span("drain", DRAIN_MAX)?;
    let longest = Duration::from_secs(LASTS_MAX);
    let lasts = (asked.span("for", longest)?, asked_reach(asked)?);
    change(api, asked, vec![Wish::Remove(object)], lasts, drain).await.map(|done| ok(&done))
}

/// `for`: seconds after which the change is over; `local`: whether it is for this node alone.
pub(super) fn scope(fields: &mut JsonFields) -> Result<(Option<Duration>, StoreReach), ProblemDocument> {
    let lasts = fields.whole("for", 1..=LASTS_MAX)?.map(Duration::from_secs);
    Ok((lasts, reach(fields.switch("local")?.unwrap_or(false))))
}

/// The same where there is no body.
pub(super) fn asked_reach(asked: &Question) -> Result<StoreReach, ProblemDocument> {
    match asked.query("local").as_deref() {
        None | Some("false") => Ok(StoreReach::All),
        Some("true") => Ok(StoreReach::Own),
        Some(_) => Err(ProblemDocument::plain(StatusCode::BAD_REQUEST, "`local` is `true` or `false`")),
    }
}

fn reach(is_local: bool) -> StoreReach {
    if is_local { StoreReach::Own } else { StoreReach::All }
}

/// Why a node that is one of several changes nothing for itself alone.
pub(super) fn shared() -> ProblemDocument {
    let detail = "this node is one of its cluster: a change is for all of them; `local` (`--local`) is for one that is detached";
    ProblemDocument::plain(StatusCode::CONFLICT, detail)
}

/// Who makes a change.
pub(super) fn author(asked: &Question) -> Result<Author, ProblemDocument> {
    let unknown = |()| ProblemDocument::plain(StatusCode::FORBIDDEN, "a change by hand has an author");
    asked.caller.who.parse().map_err(unknown)
}

/// Has these wishes done, or none of them.
pub(super) async fn change(
    api: &Api,
    asked: &Question,
    wishes: Vec<Wish>,
    (lasts, reach): (Option<Duration>, StoreReach),
    drain: Option<Duration>,
) -> Result<ChangeReport, ProblemDocument> {
    if wishes.is_empty() {
        return Err(ProblemDocument::at("", "at least one field to be changed"));
    }
    let author = author(asked)?;
    if !asked.caller.is_local
        && wishes.iter().any(|wish| adds_strange_socket(wish, &api.running.by_hand().file))
    {
        let detail = "over TCP a backend at a unix socket is added only if the config in force names that socket in this target; \
                      `evenkeel add` on the machine itself adds any";
        return Err(ProblemDocument::plain(StatusCode::FORBIDDEN, detail));
    }
    let done = api.running.change(HandAsk { wishes, author, lasts, drain, reach }).await.map_err(problem)?;
    let ByHand { file, entries, aside, .. } = &*api.running.by_hand();
    let all = report(file, entries, aside, now_ms());
    let entries = all.into_iter().filter(|line| done.objects.contains(&line.entry.object)).collect();
    let objects = done.objects.iter().map(ToString::to_string).collect();
    Ok(ChangeReport { objects, plan: done.plan, entries })
}

/// Whether it leads to a unix socket that `file` does not name in the same target. What listens there trusts whoever may open it, a
/// container engine for example, and this process may.
fn adds_strange_socket(wish: &Wish, file: &Loaded) -> bool {
    let Wish::Add { target, backend, .. } = wish else { return false };
    let Ok(NamedBackend { address: BackendAddress::Unix(path), .. }) = NamedBackend::of(&backend.url) else {
        return false;
    };
    let is_named = |named: &BackendConfig| matches!(&named.address, BackendAddress::Unix(at) if *at == path);
    let found = file.config.targets.iter().find(|one| *one.name == **target);
    found.is_some_and(|target| !target.backends.iter().any(is_named))
}

fn problem(fault: HandFault) -> ProblemDocument {
    match fault {
        HandFault::Declined(Declined::Missing(why)) => ProblemDocument::plain(StatusCode::NOT_FOUND, why),
        HandFault::Declined(Declined::Duplicate(why) | Declined::Conflict(why)) => {
            ProblemDocument::plain(StatusCode::CONFLICT, why)
        }
        HandFault::Declined(Declined::Unfit(faults)) => unfit(&faults),
        HandFault::Refused(refusal) => ProblemDocument::refused(refusal.problems, refusal.is_conflict),
        HandFault::Unkept(unkept) => ProblemDocument::unkept(
            unkept.is_full,
            &format!("nothing has changed, because it can't be kept: {}", unkept.reason),
        ),
        HandFault::Shared => shared(),
    }
}

/// The type of a problem with what can't be written by spans.
const NOT_WRITTEN: &str = "urn:evenkeel:problem:not-written";

/// Each fault with its place; the first is the one that is told.
fn unfit(faults: &[AdditionFault]) -> ProblemDocument {
    let first = faults.first();
    let pointer = first.map_or_else(String::new, |fault| format!("/{}", fault.key));
    let message = first.map_or("it does not fit", |fault| fault.problem.message.as_str());
    let problems = faults.iter().map(|fault| {
        let of = Fault::from(&fault.problem);
        let mut text = of.message.clone();
        for (what, more) in [("expected", &of.expected), ("hint", &of.hint), ("note", &of.note)] {
            if let Some(more) = more {
                text += &format!("\n  {what}: {more}");
            }
        }
        Fault { file: None, text, ..of }
    });
    ProblemDocument { problems: problems.collect(), ..ProblemDocument::at(&pointer, message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reload::kept::Unkept;

    #[test]
    fn what_can_t_be_kept_is_told_apart() {
        let of = |is_full| {
            let problem = problem(HandFault::Unkept(Unkept { is_full, ..Unkept::because("why") }));
            (problem.status, problem.detail)
        };
        let detail = "nothing has changed, because it can't be kept: why".to_owned();
        assert_eq!((of(true), of(false)), ((507, detail.clone()), (503, detail)));
    }
}
