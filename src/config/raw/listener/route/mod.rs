//! The written form of a route.

mod action;
pub(in crate::config::raw) mod cache;
pub(in crate::config::raw) mod compress;
pub(in crate::config::raw) mod headers;
pub(in crate::config::raw) mod matches;
mod mirror;
mod own;
pub(in crate::config::raw) mod rewrite;
mod texts;

use crate::config::error::{Wrong, quoted};
use crate::config::model::route::{PathPattern, Redirect, Rewrite, RouteMatch};
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::bounds::COUNT_MAX;
use crate::config::raw::costs::{self, RawLimits, RawTimeouts};
use crate::config::raw::gate::access::{self, RawAccess};
use crate::config::raw::gate::auth;
use crate::config::raw::gate::rate;
use crate::config::raw::reader::{Reader, Section};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::words::name;
use crate::config::yaml::{Entry, Node};
pub(in crate::config) use action::{RawRespond, RawSplit};
pub(in crate::config) use cache::RawCache;
pub(in crate::config) use compress::RawCompress;
pub(in crate::config) use headers::{RawEdits, RawHeaders};
pub(in crate::config) use mirror::RawMirror;
pub(in crate::config) use own::RawOwn;

/// One route.
#[derive(Debug)]
pub(in crate::config) struct RawRoute {
    pub(in crate::config) spot: Spot,
    pub(in crate::config) name: Option<Written<String>>,
    pub(in crate::config) order: Option<Written<u32>>,
    pub(in crate::config) matches: Field<RouteMatch>,
    /// Where the keys of its `match` stand.
    pub(in crate::config) match_keys: Vec<(&'static str, Spot)>,
    pub(in crate::config) passthrough: Field<bool>,
    pub(in crate::config) access: Field<Vec<RawAccess>>,
    /// `None` inside: `off`.
    pub(in crate::config) auth: Field<Option<String>>,
    pub(in crate::config) rate_limit: Field<Vec<Written<String>>>,
    pub(in crate::config) rewrite: Field<Rewrite>,
    pub(in crate::config) headers: Field<RawHeaders>,
    pub(in crate::config) timeouts: RawTimeouts,
    pub(in crate::config) limits: RawLimits,
    pub(in crate::config) own: RawOwn,
    pub(in crate::config) target: Field<String>,
    pub(in crate::config) split: Field<RawSplit>,
    /// Where it says to send clients, and the status as it is written.
    pub(in crate::config) redirect: Field<(Redirect, Option<Written<u32>>)>,
    pub(in crate::config) respond: Field<RawRespond>,
    /// `None` inside: `off`.
    pub(in crate::config) mirror: Field<Option<RawMirror>>,
    /// `None` inside: `off`.
    pub(in crate::config) cache: Field<Option<RawCache>>,
    /// `None` inside: `off`.
    pub(in crate::config) compress: Field<Option<RawCompress>>,
    /// Where keys stand that mean something to HTTP only.
    pub(in crate::config) http_only: Vec<(&'static str, Spot)>,
    /// Where keys stand that mean something only where requests go to a target.
    pub(in crate::config) forward_only: Vec<(&'static str, Spot)>,
}

impl RawRoute {
    /// The targets that it names, copies too.
    pub(in crate::config) fn targets(&self) -> impl Iterator<Item = &Written<String>> {
        let one = match &self.target {
            Field::Given(target) => Some(target),
            Field::Absent | Field::Faulty => None,
        };
        let several = match &self.split {
            Field::Given(split) => &*split.value.targets,
            Field::Absent | Field::Faulty => &[],
        };
        let mirror = match &self.mirror {
            Field::Given(mirror) => mirror.value.as_ref().map(|mirror| &mirror.target),
            Field::Absent | Field::Faulty => None,
        };
        one.into_iter().chain(several.iter().map(|(target, _)| target)).chain(mirror)
    }

    /// What it takes is not decrypted, or may well be meant not to be.
    pub(in crate::config) fn is_passthrough(&self) -> bool {
        match &self.passthrough {
            Field::Given(written) => written.value,
            Field::Faulty => true,
            Field::Absent => false,
        }
    }

    /// It does not say what becomes of its requests.
    pub(in crate::config) fn is_idle(&self) -> bool {
        matches!(
            (&self.target, &self.split, &self.redirect, &self.respond),
            (Field::Absent, Field::Absent, Field::Absent, Field::Absent)
        )
    }
}

/// What a route does with its requests: one of these keys stands in it.
const ACTIONS: [&str; 4] = ["target", "split", "redirect", "respond"];

/// Walks one of `routes`.
pub(in crate::config::raw) fn walk(node: &Node, reader: &mut Reader<'_>) -> Option<RawRoute> {
    let spot = reader.spot_of(node);
    let section = reader.section("a route", node, &shape::ROUTE)?;
    let mut match_keys = Vec::new();
    let matches = field(&section, "match", |entry| {
        let place = reader.key_spot(entry);
        Field::read(matches::walk(entry, &mut match_keys, reader).map(|matches| Written::new(matches, place)))
    });
    let passthrough = field(&section, "passthrough", |entry| Field::read(reader.switch(entry)));
    let groups = groups(&matches);
    let target =
        field(&section, "target", |entry| Field::read(reader.word(entry, "the name of a target", name)));
    let split = field(&section, "split", |entry| Field::read(action::split(entry, reader)));
    let redirect = field(&section, "redirect", |entry| {
        let read = action::redirect(entry, groups, reader);
        Field::read(read.map(|(to, status)| Written::new((to.value, status), to.spot)))
    });
    let respond = field(&section, "respond", |entry| Field::read(action::respond(entry, groups, reader)));
    refuse_two_actions(&section, reader);
    let order = section.find("order").and_then(|entry| reader.whole(entry, 0..=COUNT_MAX));
    let name = section.find("name").and_then(|entry| reader.word(entry, NAME_FORM, route_name));
    let access = field(&section, "access", |entry| access::walk(entry, &shape::ACCESS, reader));
    let auth = field(&section, "auth", |entry| auth::uses(entry, reader));
    let rate_limit = field(&section, "rate_limit", |entry| rate::walk(entry, reader));
    let rewrite =
        field(&section, "rewrite", |entry| rewrite::walk(entry, &shape::ROUTE_REWRITE, groups, reader));
    let headers =
        field(&section, "headers", |entry| headers::walk(entry, shape::ROUTE_HEADERS, groups, reader));
    let mirror = field(&section, "mirror", |entry| Field::read(mirror::walk(entry, reader)));
    let cache = field(&section, "cache", |entry| cache::walk(entry, &shape::ROUTE_CACHE, reader));
    let compress = field(&section, "compress", |entry| {
        compress::walk(entry, [&shape::ROUTE_COMPRESS, &shape::ROUTE_CODINGS], reader)
    });
    let own = own::walk(&section, reader);
    let (mut http_only, mut forward_only) = (Vec::new(), Vec::new());
    for key in shape::ROUTE.names().filter(|key| !matches!(*key, "name" | "target")) {
        http_only.extend(section.find(key).map(|entry| (key, reader.key_spot(entry))));
    }
    for key in ["rewrite", "mirror", "cache", "compress", "retries", "hash_key", "upgrade"] {
        forward_only.extend(section.find(key).map(|entry| (key, reader.key_spot(entry))));
    }
    // Whether they are for HTTP only is said of the whole.
    let mut inside = Vec::new();
    let timeouts = section.find("timeouts");
    let timeouts =
        timeouts.and_then(|entry| costs::timeouts(entry, &shape::ROUTE_TIMEOUTS, reader, &mut inside));
    let limits = section.find("limits");
    let limits = limits.and_then(|entry| costs::limits(entry, &shape::ROUTE_LIMITS, reader, &mut inside));
    Some(RawRoute {
        spot,
        name,
        order,
        matches,
        match_keys,
        passthrough,
        access,
        auth,
        rate_limit,
        rewrite,
        headers,
        timeouts: timeouts.unwrap_or_default(),
        limits: limits.unwrap_or_default(),
        own,
        target,
        split,
        redirect,
        respond,
        mirror,
        cache,
        compress,
        http_only,
        forward_only,
    })
}

/// What a key says.
fn field<T>(section: &Section<'_>, key: &'static str, read: impl FnOnce(&Entry) -> Field<T>) -> Field<T> {
    match section.find(key) {
        Some(entry) => read(entry),
        None if section.is_misspelt(key) => Field::Faulty,
        None => Field::Absent,
    }
}

/// How many groups there are for texts; of an expression that has been refused, as many as there can be.
fn groups(matches: &Field<RouteMatch>) -> Option<usize> {
    match matches {
        Field::Given(Written { value: RouteMatch { path: PathPattern::Regex(regex), .. }, .. }) => {
            Some(regex.captures_len() - 1)
        }
        Field::Given(_) | Field::Absent => None,
        Field::Faulty => Some(9),
    }
}

fn refuse_two_actions(section: &Section<'_>, reader: &mut Reader<'_>) {
    let mut all: Vec<&Entry> = ACTIONS.into_iter().filter_map(|key| section.find(key)).collect();
    all.sort_by_key(|entry| entry.key_place);
    let [first, others @ ..] = all.as_slice() else { return };
    for other in others {
        let message = format!("`{}` and `{}` exclude each other", first.key, other.key);
        let problem = reader.report.at(other.key_place, message);
        problem.note(match (&*first.key, &*other.key) {
            ("target", "split") | ("split", "target") => {
                "a target that is to have a share stands in `split: {targets: …}`"
            }
            _ => "keep one of them; what differs belongs into another route",
        });
    }
}

const NAME_FORM: &str = "a name such as `shop`";

/// Default names have slashes, so others may have them too.
pub(in crate::config::raw) fn route_name(text: &str) -> Result<String, Wrong> {
    if text.is_empty()
        || text.chars().count() > 200
        || text.chars().any(|c| c.is_whitespace() || c.is_control())
    {
        return Err(Wrong::new(
            format!("is {}", quoted(text)),
            "a name without blanks, of at most 200 characters",
        ));
    }
    Ok(text.to_owned())
}
