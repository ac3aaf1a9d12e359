//! What a test expects against what is decided.

use super::chain::{Access, Chain, Destiny, Side};
use crate::config::model::route::{FieldMatch, FieldTest};
use crate::config::model::routing_test::ExpectedAuth;
use crate::config::model::{Expectation, ExpectedAnswer};
use crate::route::condition::passes;

/// What of `expect` is not so, as a sentence goes on behind "expected:", and what is so instead where the verdict does not say it.
pub(super) fn unmet(expect: &Expectation, chain: &Chain) -> (Vec<String>, Vec<String>) {
    let Expectation { targets, route, path, headers, answer, location, auth } = expect;
    let (mut unmet, mut instead) = (Vec::new(), Vec::new());
    let sides = match &chain.verdict {
        Destiny::Forwarded { targets } => &targets[..],
        Destiny::Answered { .. } | Destiny::PassedThrough { .. } | Destiny::Dropped => &[],
    };
    let passed = match &chain.verdict {
        Destiny::PassedThrough { target } => targets.contains(target),
        _ => false,
    };
    let all = |is_so: &dyn Fn(&Side) -> bool| !sides.is_empty() && sides.iter().all(is_so);
    if !targets.is_empty() && !passed && !all(&|side| targets.contains(&side.target)) {
        unmet.push(format!("the target `{}`", targets.join("` or `")));
    }
    if let Some(route) = route.as_ref().filter(|route| chain.route.as_ref() != Some(route)) {
        unmet.push(format!("the route `{route}`"));
    }
    if let Some(path) = path.as_ref().filter(|path| !all(&|side| is_path(path, &side.path))) {
        unmet.push(format!("the path `{path}`"));
    }
    for field in headers {
        let holds = |side: &Side| passes(field, values(side, &field.name).map(str::as_bytes));
        if !all(&holds) {
            unmet.push(header(field));
            instead.extend(sides.iter().find(|side| !holds(side)).map(|side| {
                let found: Vec<&str> = values(side, &field.name).collect();
                match found[..] {
                    [] => format!("without a header `{}`", field.name),
                    _ => format!("with `{}: {}`", field.name, found.join(", ")),
                }
            }));
        }
    }
    match (answer, &chain.verdict) {
        (None, _) | (Some(ExpectedAnswer::Drop), Destiny::Dropped) => {}
        (Some(ExpectedAnswer::Status(wanted)), Destiny::Answered { status, .. }) if wanted == status => {}
        (Some(ExpectedAnswer::Drop), _) => unmet.push("no answer".to_owned()),
        (Some(ExpectedAnswer::Status(status)), _) => unmet.push(format!("an answer with {status}")),
    }
    if let Some(auth) = auth {
        // Who is refused before is asked nothing.
        let is_there = chain.route.is_some() && !matches!(chain.access, Some(Access::Denied));
        let is_so = match auth {
            ExpectedAuth::Rule(name) => chain.auth_rule.as_ref() == Some(name),
            ExpectedAuth::Off => is_there && chain.auth_rule.is_none(),
        };
        if !is_so {
            unmet.push(match auth {
                ExpectedAuth::Rule(name) => format!("auth by `{name}`"),
                ExpectedAuth::Off => "no auth on its route".to_owned(),
            });
            instead.push(match &chain.auth_rule {
                Some(name) => format!("with auth by `{name}`"),
                None => "without auth".to_owned(),
            });
        }
    }
    match (location, &chain.verdict) {
        (None, _) => {}
        (Some(wanted), Destiny::Answered { location: Some(location), .. }) if wanted == location => {}
        (Some(wanted), _) => unmet.push(format!("the `Location` `{wanted}`")),
    }
    (unmet, instead)
}

/// Whether a backend gets this path; without a `?` in it the query does not count.
fn is_path(wanted: &str, sent: &str) -> bool {
    match sent.split_once('?') {
        Some((alone, _)) if !wanted.contains('?') => alone == wanted,
        _ => sent == wanted,
    }
}

fn values<'s>(side: &'s Side, name: &str) -> impl Iterator<Item = &'s str> {
    let lines = side.lines.iter().filter(move |line| line.name.eq_ignore_ascii_case(name));
    lines.map(|line| line.value.as_str())
}

fn header(field: &FieldMatch) -> String {
    let name = &field.name;
    match &field.test {
        FieldTest::Is(values) => format!("the header `{name}: {}`", values.join("` or `")),
        FieldTest::Present(true) => format!("a header `{name}`"),
        FieldTest::Present(false) => format!("no header `{name}`"),
        FieldTest::Regex(regex) => format!("a header `{name}` that fits `{}`", regex.as_str()),
    }
}
