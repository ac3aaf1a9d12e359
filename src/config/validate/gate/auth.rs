//! Who clients are: files of users read, names followed.

use std::collections::HashMap;
use std::sync::Arc;

use super::jwt::jwt;
use super::named::NamedRules;
use super::users_file;
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::{Auth, AuthKind, BasicAuth, ForwardAuth, Protocol, TargetConfig};
use crate::config::origin::{Field, Written};
use crate::config::raw::{AUTH, RawAuth, RawBasicAuth, RawForwardAuth, RawNamed};
use crate::config::report::Report;
use crate::config::units::show_duration;

/// The rules at the top level.
pub(in crate::config::validate) type AuthRules<'r> = NamedRules<'r, Arc<Auth>>;

/// What users are asked for where nobody says.
const REALM: &str = "Restricted";

/// Makes those at the top level.
pub(in crate::config::validate) fn rules<'r>(
    raw: &'r [RawNamed<RawAuth>],
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> AuthRules<'r> {
    NamedRules::accept(AUTH, raw, |name, raw| {
        if matches!(&*name.value.to_ascii_lowercase(), "off" | "no" | "false") {
            let message = format!("the name {} is taken: `auth: off` asks nobody", quoted(&name.value));
            report.spot(&name.spot, message).note("give this rule another name");
            return None;
        }
        let path = format!("{}.{}", AUTH.key, name.value);
        let kind = match raw {
            RawAuth::Basic(raw) => AuthKind::Basic(basic(raw, &path, report, rows)?),
            RawAuth::Jwt(raw) => AuthKind::Jwt(jwt(raw, &path, report, rows)?),
            RawAuth::Forward(raw) => AuthKind::Forward(forward(raw, &path, rows)),
        };
        Some(Arc::new(Auth { name: name.value.clone(), kind }))
    })
}

fn basic(raw: &RawBasicAuth, path: &str, report: &mut Report, rows: &mut EffectiveRows) -> Option<BasicAuth> {
    let realm =
        rows.settle(format!("{path}.basic.realm"), raw.realm.as_ref(), REALM.to_owned(), Clone::clone);
    let file = &raw.users_file;
    let (users, content) = users_file::read(file, report)?;
    let origin = file.spot.origin.clone();
    rows.note_file(format!("{path}.basic.users_file"), &file.value, origin, Some(content));
    Some(BasicAuth { realm, users: users.into() })
}

fn forward(raw: &RawForwardAuth, path: &str, rows: &mut EffectiveRows) -> ForwardAuth {
    let RawForwardAuth { target, copy_headers, timeout, .. } = raw;
    rows.note(format!("{path}.forward.target"), target.value.clone(), target.spot.origin.clone());
    let asked = rows.settle(format!("{path}.forward.path"), raw.path.as_ref(), "/".to_owned(), Clone::clone);
    let names = |names: &Vec<String>| format!("[{}]", names.join(", "));
    ForwardAuth {
        target: target.value.as_str().into(),
        path: asked,
        copy_headers: rows.settle(
            format!("{path}.forward.copy_headers"),
            copy_headers.as_ref(),
            Vec::new(),
            names,
        ),
        timeout: rows.settle(
            format!("{path}.forward.timeout"),
            timeout.as_ref(),
            ForwardAuth::TIMEOUT,
            |time| show_duration(*time),
        ),
    }
}

/// The targets that rules ask.
pub(in crate::config::validate) fn asked(
    raw: &[RawNamed<RawAuth>],
) -> impl Iterator<Item = &Written<String>> {
    raw.iter().filter_map(|named| match &named.rule {
        Some(RawAuth::Forward(forward)) => Some(&forward.target),
        Some(RawAuth::Basic(_) | RawAuth::Jwt(_)) | None => None,
    })
}

/// Reports each rule that asks a target which is not there, or speaks no HTTP.
pub(in crate::config::validate) fn refuse_targets(
    raw: &[RawNamed<RawAuth>],
    targets: &[TargetConfig],
    report: &mut Report,
) {
    let known: HashMap<&str, Protocol> =
        targets.iter().map(|target| (target.name.as_str(), target.protocol)).collect();
    for target in asked(raw) {
        let name = quoted(&target.value);
        match known.get(target.value.as_str()) {
            Some(Protocol::Http) => {}
            Some(spoken @ (Protocol::Tcp | Protocol::Udp)) => {
                let message = format!(
                    "the target {name} speaks {}, so it can't be asked who may come in",
                    spoken.as_str()
                );
                report.spot(&target.spot, message).expected("a target that speaks http");
            }
            None => {
                let problem = report.spot(&target.spot, format!("there is no target {name}"));
                problem.note("its name stands under `targets`");
            }
        }
    }
}

/// What `auth` at `path` says: the rule, or none; `of_all`: what holds where it says nothing.
pub(in crate::config::validate) fn accept(
    raw: &Field<Option<String>>,
    path: &str,
    of_all: Option<&Arc<Auth>>,
    rules: &AuthRules<'_>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Arc<Auth>> {
    let Field::Given(written) = raw else { return of_all.map(Arc::clone) };
    let Some(name) = &written.value else {
        rows.note(format!("{path}.auth"), "off", written.spot.origin.clone());
        return None;
    };
    let rule = rules.find(&Written::new(name.clone(), written.spot.clone()), report)?;
    rows.note(format!("{path}.auth"), name.clone(), written.spot.origin.clone());
    Some(Arc::clone(rule))
}

/// Names of the lines by which backends are told who a client is, each once.
pub(in crate::config::validate) fn told<'c>(rules: impl Iterator<Item = &'c Arc<Auth>>) -> Arc<[String]> {
    let mut names: Vec<String> = Vec::new();
    for name in rules.flat_map(|rule| rule.told()) {
        if !names.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            names.push(name.to_owned());
        }
    }
    // Rules come in no order, and equal configs have to be equal.
    names.sort_unstable();
    names.into()
}
