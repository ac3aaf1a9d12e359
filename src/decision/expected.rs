//! What a test expects against what is decided.

use super::chain::{Chain, Verdict};
use crate::config::model::{Expectation, ExpectedAnswer};

/// What of `expect` is not so, as a sentence goes on behind "expected:"; empty: all is as expected.
pub(super) fn unmet(expect: &Expectation, chain: &Chain) -> Vec<String> {
    let Expectation { targets, route, path, headers: _, answer, location: _ } = expect;
    let mut unmet = Vec::new();
    let (sides, sent) = match &chain.verdict {
        Verdict::Forwarded { targets, path } => (&targets[..], Some(path.as_str())),
        Verdict::Answered { .. } | Verdict::Dropped => (&[][..], None),
    };
    let may = |name: &String| targets.contains(name);
    if !targets.is_empty() && (sides.is_empty() || !sides.iter().all(|side| may(&side.target))) {
        unmet.push(format!("the target `{}`", targets.join("` or `")));
    }
    if let Some(route) = route.as_ref().filter(|route| chain.route.as_ref() != Some(route)) {
        unmet.push(format!("the route `{route}`"));
    }
    if let Some(path) = path {
        let is_whole = path.contains('?');
        let of = |sent: &str| match sent.split_once('?') {
            Some((alone, _)) if !is_whole => alone == path,
            _ => sent == path,
        };
        if !sent.is_some_and(of) {
            unmet.push(format!("the path `{path}`"));
        }
    }
    match (answer, &chain.verdict) {
        (None, _) | (Some(ExpectedAnswer::Drop), Verdict::Dropped) => {}
        (Some(ExpectedAnswer::Status(wanted)), Verdict::Answered { status, .. }) if wanted == status => {}
        (Some(ExpectedAnswer::Drop), _) => unmet.push("no answer".to_owned()),
        (Some(ExpectedAnswer::Status(status)), _) => unmet.push(format!("an answer with {status}")),
    }
    unmet
}
