//! What can be done to a backend: what is asked before, and what is sent then.

use hyper::Method;
use serde_json::{Map, Value, json};

use super::frames::Known;
use super::rows::BackendSeen;
use crate::admin::ProblemDocument;
use crate::admin::wire::ChangeReport;
use crate::cli::args::hand::BackendWord;
use crate::cli::running::ask::AdminQuestion;
use crate::cli::running::hand::{path, with_scope};

/// The highest weight.
pub(super) const WEIGHT_MAX: u64 = 256;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandAct {
    Drain,
    Ready,
    Down,
    /// `None`: what the file says.
    Weight(Option<u64>),
}

/// What is done, and to which backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProposedChange {
    pub(super) target: String,
    pub(super) backend: String,
    pub(super) act: HandAct,
}

impl ProposedChange {
    /// What it will do, in numbers.
    pub(super) fn question(&self, known: &Known) -> String {
        let ProposedChange { target, backend, act } = self;
        let name = format!("{target}/{backend}");
        let Some(row) = known.backend(target, backend).map(|backend| &backend.row) else {
            return format!("{name} is not there any more");
        };
        let (left, of) = self.left(known);
        let rest = match left {
            0 => format!("NO backend of {target} is left"),
            _ => format!("{left} of {of} backends left"),
        };
        let under_way = match row.active {
            0 => "nothing is under way on it".to_owned(),
            1 => "1 request under way will finish".to_owned(),
            many => format!("{many} requests under way will finish"),
        };
        match act {
            HandAct::Drain => {
                format!("drains {name}: {rest}, {under_way}; clients whose cookie names it stay")
            }
            HandAct::Down => format!("takes {name} down: {rest}, {under_way}; its tunnels end"),
            HandAct::Ready => ready(&name, row, known.age_ms(row.since_ms)),
            HandAct::Weight(None) => format!("weighs {name} as the file says; now it is {}", row.weight),
            HandAct::Weight(Some(weight)) => {
                let (before, after) = self.shares(known, row, *weight);
                format!(
                    "weighs {name}: {} -> {weight}, so of new clients' requests it gets about {after}% instead of {before}%",
                    row.weight
                )
            }
        }
    }

    /// The same as a command. `words`: those that name the process.
    pub(super) fn command(&self, words: &str) -> String {
        let name = quoted(&format!("{}/{}", self.target, self.backend));
        match self.act {
            HandAct::Drain => format!("evenkeel drain {name}{words}"),
            HandAct::Ready => format!("evenkeel ready {name}{words}"),
            HandAct::Down => format!("evenkeel down {name}{words}"),
            HandAct::Weight(Some(weight)) => format!("evenkeel weight {name} {weight}{words}"),
            HandAct::Weight(None) => format!("evenkeel weight {name} file{words}"),
        }
    }

    /// What is sent.
    pub(super) fn asked(&self) -> AdminQuestion {
        let (field, value) = match self.act {
            HandAct::Drain => ("state", json!("drain")),
            HandAct::Down => ("state", json!("down")),
            HandAct::Ready => ("state", Value::Null),
            HandAct::Weight(weight) => ("weight", json!(weight)),
        };
        let word = BackendWord { target: self.target.clone(), backend: self.backend.clone() };
        let body = with_scope(Map::from_iter([(field.to_owned(), value)]), (None, false));
        AdminQuestion { method: Method::PATCH, path: path(&word), body }
    }

    /// How many backends of the target get requests when this one does not, and how many there are.
    fn left(&self, known: &Known) -> (usize, usize) {
        let all = || known.targets.get(&self.target).into_iter().flat_map(|target| &target.backends);
        // Who has no weight gets none in any case.
        let weighed = || all().filter(|(_, one)| one.row.weight > 0);
        let others = weighed().filter(|(name, other)| **name != self.backend && other.row.state == "up");
        (others.count(), weighed().count())
    }

    /// The parts of the requests that it gets now, and with this weight.
    fn shares(&self, known: &Known, row: &BackendSeen, weight: u64) -> (u64, u64) {
        let all = known.targets.get(&self.target).into_iter().flat_map(|target| &target.backends);
        let others: Vec<&BackendSeen> = all
            .filter(|(name, other)| **name != self.backend && other.row.state == "up" && other.row.weight > 0)
            .map(|(_, other)| &other.row)
            .collect();
        let is_behind = others.iter().any(|other| other.priority < row.priority);
        let others: u64 = others
            .iter()
            .filter(|other| other.priority == row.priority)
            .map(|other| other.weight.min(WEIGHT_MAX))
            .sum();
        let part = |own: u64| match own {
            _ if row.state != "up" || own == 0 || is_behind => 0,
            own => (200 * own + own + others) / (2 * (own + others)),
        };
        (part(row.weight.min(WEIGHT_MAX)), part(weight))
    }
}

fn ready(name: &str, row: &BackendSeen, age_ms: u64) -> String {
    let span = crate::cli::running::status_text::span(age_ms);
    if row.source == "operator" {
        return format!(
            "takes back that {name} is {} ({}, for {span}): it gets requests again if nothing else keeps it out",
            row.state, row.reason
        );
    }
    let by = if row.source.is_empty() { String::new() } else { format!(" by its {}", row.source) };
    format!("takes back what is set of {name} by hand; it is {}{by}, and that stays", row.state)
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "_-./:@%+=,".contains(sign);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What has come of it, in one line.
pub(super) fn outcome(is_done: bool, body: &[u8]) -> String {
    if !is_done {
        let detail = serde_json::from_slice(body).map(|problem: ProblemDocument| problem.detail);
        return format!("refused: {}", detail.unwrap_or_else(|_| "nobody says why".to_owned()));
    }
    match serde_json::from_slice::<ChangeReport>(body) {
        Ok(report) if report.plan.lines().is_empty() => {
            format!("nothing differs for {}", report.objects.join(", "))
        }
        Ok(report) => format!("done: {}", report.plan.lines().join("; ")),
        Err(_) => "done".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::ToldRows;
    use super::*;

    fn known() -> Known {
        let mut known = Known::default();
        let told = json!({"at_ms": 60_000, "rows": {
            "backend/web/b1": {"state": "up", "weight": 1, "active": 40},
            "backend/web/b2": {"state": "up", "weight": 1, "active": 1},
            "backend/web/b3": {"state": "draining", "source": "operator", "reason": "for a test", "weight": 2, "since_ms": 1},
            "backend/lone/it's": {"state": "up", "weight": 7},
            "backend/lone/idle": {"state": "up", "weight": 0},
            "backend/lone/spare": {"state": "down", "weight": 1, "priority": 255},
            "backend/tiers/first": {"state": "up", "weight": 1},
            "backend/tiers/second": {"state": "up", "weight": 1, "priority": 1},
        }});
        known.take(ToldRows::of("whole", &told.to_string()).expect("a frame"));
        known
    }

    fn change(target: &str, backend: &str, act: HandAct) -> ProposedChange {
        ProposedChange { target: target.into(), backend: backend.into(), act }
    }

    #[test]
    fn a_question_says_in_numbers_what_will_happen() {
        let asked = |target: &str, backend: &str, act| change(target, backend, act).question(&known());
        assert_eq!(
            asked("web", "b1", HandAct::Drain),
            "drains web/b1: 1 of 3 backends left, 40 requests under way will finish; clients whose cookie names it stay"
        );
        assert!(
            asked("web", "b2", HandAct::Down)
                .contains("1 of 3 backends left, 1 request under way will finish")
        );
        assert!(
            asked("lone", "it's", HandAct::Drain)
                .contains("NO backend of lone is left, nothing is under way on it")
        );
        assert_eq!(
            asked("web", "b3", HandAct::Ready),
            "takes back that web/b3 is draining (for a test, for 59s): it gets requests again if nothing else keeps it out"
        );
        assert!(asked("web", "b1", HandAct::Ready).contains("it is up, and that stays"));
        assert_eq!(
            asked("web", "b1", HandAct::Weight(Some(3))),
            "weighs web/b1: 1 -> 3, so of new clients' requests it gets about 75% instead of 50%"
        );
        assert!(asked("web", "b1", HandAct::Weight(Some(0))).contains("about 0% instead of 50%"));
        let behind = asked("tiers", "second", HandAct::Weight(Some(9)));
        assert!(behind.contains("about 0% instead of 0%"), "who stands behind others gets none: {behind}");
        assert!(asked("web", "b3", HandAct::Weight(None)).contains("as the file says; now it is 2"));
        assert_eq!(asked("web", "b9", HandAct::Drain), "web/b9 is not there any more");
    }

    #[test]
    fn the_command_is_what_one_would_type() {
        let typed = |target: &str, backend: &str, act| change(target, backend, act).command(" --socket /s");
        assert_eq!(typed("web", "b1", HandAct::Drain), "evenkeel drain web/b1 --socket /s");
        assert_eq!(typed("web", "[::1]:80", HandAct::Ready), "evenkeel ready 'web/[::1]:80' --socket /s");
        assert_eq!(typed("lone", "it's", HandAct::Down), r"evenkeel down 'lone/it'\''s' --socket /s");
        assert_eq!(typed("web", "b1", HandAct::Weight(Some(3))), "evenkeel weight web/b1 3 --socket /s");
        assert_eq!(typed("web", "b1", HandAct::Weight(None)), "evenkeel weight web/b1 file --socket /s");
    }

    #[test]
    fn what_is_sent_is_what_the_command_sends() {
        let sent = |act| {
            let AdminQuestion { path, body, .. } = change("web", "unix:/a", act).asked();
            format!("{path} {}", String::from_utf8(body).expect("text"))
        };
        let path = "/api/v1/targets/web/backends/unix%3A%2Fa";
        assert_eq!(sent(HandAct::Drain), format!(r#"{path} {{"state":"drain"}}"#));
        assert_eq!(sent(HandAct::Down), format!(r#"{path} {{"state":"down"}}"#));
        assert_eq!(sent(HandAct::Ready), format!(r#"{path} {{"state":null}}"#));
        assert_eq!(sent(HandAct::Weight(Some(9))), format!(r#"{path} {{"weight":9}}"#));
        assert_eq!(sent(HandAct::Weight(None)), format!(r#"{path} {{"weight":null}}"#));
    }
}
