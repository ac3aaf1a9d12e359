//! The chain of decisions about one request, as it is told.

use std::net::IpAddr;

use serde::Serialize;

/// What was decided about a request, step by step, up to what becomes of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chain {
    /// Method and URL.
    pub request: String,
    /// Where the connection comes from.
    pub from: IpAddr,
    /// The client, as trusted proxies tell it.
    pub client: Option<IpAddr>,
    /// The listener that gets it.
    pub listener: String,
    /// Its path; `None`: it did not come so far.
    pub path: Option<PathTaken>,
    /// Nearer routes that don't take it, the nearest first.
    pub not: Vec<PassedOver>,
    /// How many more there are, for other hosts and paths.
    pub not_more: usize,
    /// The route that it belongs to.
    pub route: Option<String>,
    /// What the `access` of the route says, if it has any.
    pub access: Option<Access>,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// A path, and the form in which it is matched and forwarded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathTaken {
    /// As it was sent.
    pub sent: String,
    /// The one form of it; `None`: it is refused.
    pub taken: Option<String>,
}

/// A route that goes before another one, and does not take the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    /// The route.
    pub route: String,
    /// The first of its conditions that does not hold.
    pub why: String,
}

/// What `access` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// The client may have the route.
    LetIn,
    /// It may not.
    Denied,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Verdict {
    /// A backend gets it.
    Forwarded {
        /// Who may get it.
        targets: Vec<Side>,
        /// The path that the backend gets, with the query.
        path: String,
    },
    /// It is answered here.
    Answered {
        /// With this status.
        status: u16,
        /// For this cause, as logs call it.
        cause: Option<&'static str>,
    },
    /// The connection is closed without an answer.
    Dropped,
}

/// A target that a request may go to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Its name.
    pub target: String,
    /// Of how many such requests, in percent.
    pub percent: f64,
}

impl Chain {
    /// It in lines, for people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![row("listener", &self.listener)];
        if self.client != Some(self.from) {
            let client = self.client.map_or_else(|| "nobody knows".to_owned(), |client| client.to_string());
            lines.push(row("client", &client));
        }
        match &self.path {
            Some(PathTaken { sent, taken: Some(taken) }) if sent != taken => {
                lines.push(row("path", &format!("{sent} is taken as {taken}")));
            }
            Some(PathTaken { sent, taken: None }) => lines.push(row("path", &format!("{sent} is refused"))),
            Some(_) | None => {}
        }
        for PassedOver { route, why } in &self.not {
            lines.push(row("not", &format!("`{route}`: {why}")));
        }
        match self.not_more {
            0 => {}
            1 => lines.push(row("not", "and 1 more, for another host or path")),
            more => lines.push(row("not", &format!("and {more} more, for other hosts and paths"))),
        }
        if let Some(route) = &self.route {
            lines.push(row("route", &format!("`{route}`")));
        }
        match self.access {
            Some(Access::LetIn) => lines.push(row("access", "lets the client in")),
            Some(Access::Denied) => lines.push(row("access", "does not let the client in")),
            None => {}
        }
        lines.push(row("so", &format!("it {}", self.verdict)));
        lines
    }
}

fn row(key: &str, value: &str) -> String {
    format!("{key:8} {value}")
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Forwarded { targets, path } => {
                let share = |side: &Side| format!("`{}` ({:.3}%)", side.target, side.percent);
                let shares: Vec<String> = match &targets[..] {
                    [only] => vec![format!("`{}`", only.target)],
                    all => all.iter().map(share).map(|text| trimmed(&text)).collect(),
                };
                write!(f, "goes to {} as {path}", shares.join(" or "))
            }
            Verdict::Answered { status, cause: Some(cause) } => {
                write!(f, "is answered with {status} ({cause})")
            }
            Verdict::Answered { status, cause: None } => write!(f, "is answered with {status}"),
            Verdict::Dropped => f.write_str("gets no answer: its connection is closed"),
        }
    }
}

/// Without zeros behind a decimal point.
fn trimmed(text: &str) -> String {
    let Some((number, unit)) = text.split_once("%)") else { return text.to_owned() };
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number}%){unit}")
}
