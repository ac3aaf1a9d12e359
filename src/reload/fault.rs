//! Why a config would not be taken, or was not: one thing at its place, in the words of `check`.

use serde::{Deserialize, Serialize};

use crate::config::{Problem, Problems};

/// One thing for which a config is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The config file, as it was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// In characters, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// All of it as `check` prints it, with the line of the file.
    pub text: String,
}

impl Fault {
    /// Whatever keeps a config from being read.
    #[must_use]
    pub fn unread(error: &anyhow::Error) -> Vec<Fault> {
        match error.downcast_ref::<Problems>() {
            Some(problems) => problems.list().iter().map(Fault::from).collect(),
            None => {
                let text = format!("{error:#}");
                vec![Fault { message: text.clone(), text, ..Fault::default() }]
            }
        }
    }

    /// Its first line, with its place in front.
    #[must_use]
    pub fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

impl From<&Problem> for Fault {
    fn from(problem: &Problem) -> Fault {
        let place = problem.place;
        Fault {
            file: problem.file.as_deref().map(str::to_owned),
            line: place.map(|place| place.line as usize),
            column: place.map(|place| place.column as usize),
            message: problem.message.clone(),
            expected: problem.expected.clone(),
            hint: problem.hint.clone(),
            note: problem.note.clone(),
            text: problem.to_string(),
        }
    }
}

/// Why the config that was read is not in force. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// All that is wrong, never empty.
    pub problems: Vec<Fault>,
    /// The config is right, and can't be put into force in this process at this moment.
    pub is_conflict: bool,
}

impl Refusal {
    /// Of what can't be now, whatever the config says.
    #[must_use]
    pub fn now(text: String) -> Refusal {
        Refusal {
            problems: vec![Fault { message: text.clone(), text, ..Fault::default() }],
            is_conflict: true,
        }
    }

    /// Of a reload that did not come to its end, which is a bug.
    #[must_use]
    pub fn failed(error: &dyn std::error::Error) -> Refusal {
        Refusal::now(format!("the reload failed: {error}"))
    }

    /// The first problem in one line, with its place in front.
    #[must_use]
    pub fn first(&self) -> String {
        let Some(first) = self.problems.first() else { return String::new() };
        if self.is_conflict {
            return first.text.lines().map(str::trim).collect::<Vec<_>>().join("; ");
        }
        first.first_line().to_owned()
    }
}
