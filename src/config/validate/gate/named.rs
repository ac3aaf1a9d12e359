//! Rules by the names that they have at the top level.

use std::collections::HashMap;

use crate::config::error::quoted;
use crate::config::origin::Written;
use crate::config::raw::{RawNamed, RuleKind};
use crate::config::report::Report;

/// The accepted rules of one key at the top level.
#[derive(Debug)]
pub(in crate::config::validate) struct NamedRules<'r, T> {
    kind: RuleKind,
    /// `None`: there is a fault in it, which has been reported.
    rules: HashMap<&'r str, Option<T>>,
}

impl<'r, T> NamedRules<'r, T> {
    /// Makes each with `accept`, which gives `None` after it reported a fault.
    pub(in crate::config::validate) fn accept<R>(
        kind: RuleKind,
        raw: &'r [RawNamed<R>],
        mut accept: impl FnMut(&'r Written<String>, &'r R) -> Option<T>,
    ) -> Self {
        let one = |named: &'r RawNamed<R>| {
            let rule = named.rule.as_ref().and_then(|rule| accept(&named.name, rule));
            (named.name.value.as_str(), rule)
        };
        NamedRules { kind, rules: raw.iter().map(one).collect() }
    }

    /// All of them, in the order of the files.
    pub(in crate::config::validate) fn in_order<R>(mut self, raw: &[RawNamed<R>]) -> Vec<T> {
        raw.iter().filter_map(|named| self.rules.remove(named.name.value.as_str())?).collect()
    }

    /// All of them, in no order.
    pub(in crate::config::validate) fn all(&self) -> impl Iterator<Item = &T> {
        self.rules.values().flatten()
    }

    /// The rule that somebody names; `None` after a fault was reported, here or in the rule itself.
    pub(in crate::config::validate) fn find(
        &self,
        name: &Written<String>,
        report: &mut Report,
    ) -> Option<&T> {
        if let Some(rule) = self.rules.get(name.value.as_str()) {
            return rule.as_ref();
        }
        let message = format!("there is no {} {}", self.kind.one, quoted(&name.value));
        let problem = report.spot(&name.spot, message);
        let near = self.rules.keys().map(|known| (strsim::levenshtein(known, &name.value), *known)).min();
        match near.filter(|(distance, _)| *distance <= 2) {
            Some((_, near)) => problem.note(format!("did you mean {}?", quoted(near))),
            None => problem.note(format!("its name stands under `{}` at the top level", self.kind.key)),
        };
        None
    }
}
