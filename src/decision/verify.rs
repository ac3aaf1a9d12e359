//! The `tests` of a config.

use super::decide::decide;
use super::expected::unmet;
use crate::config::model::RoutingTest;
use crate::config::{FailedTest, Loaded, Problems};
use crate::snapshot::Snapshots;

/// The same config, if all of its tests pass.
///
/// # Errors
/// Those that fail, each with its place, what was expected, what would happen, and why.
pub fn verify(loaded: Loaded) -> Result<Loaded, Problems> {
    if loaded.config.tests.is_empty() {
        return Ok(loaded);
    }
    let draft = Snapshots::new().prepare(&loaded.config);
    let listeners = &draft.snapshot().listeners;
    let failed = |(number, test): (usize, &RoutingTest)| {
        let RoutingTest { request, expect } = test;
        let fails = |instead: String, expected: Vec<String>, chain: Vec<String>| {
            Some(FailedTest { number, instead, expected: expected.join(", "), chain })
        };
        match decide(listeners, request) {
            Ok(chain) => {
                let (expected, more) = unmet(expect, &chain);
                let more: String = more.iter().map(|one| format!(", {one}")).collect();
                let route = chain.route.as_ref().map(|route| format!(", by the route `{route}`"));
                let instead = format!("{request} {}{more}{}", chain.verdict, route.unwrap_or_default());
                if expected.is_empty() { None } else { fails(instead, expected, chain.lines()) }
            }
            Err(nobody) => {
                fails(nobody.to_string(), vec!["one listener that gets it".to_owned()], Vec::new())
            }
        }
    };
    let failed: Vec<FailedTest> = loaded.config.tests.iter().enumerate().filter_map(failed).collect();
    if failed.is_empty() { Ok(loaded) } else { Err(loaded.failing(failed)) }
}
