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
