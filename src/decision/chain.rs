//! The chain of decisions about one request, as it is told.

use std::net::IpAddr;

use serde::Serialize;

use crate::message::Cause;
use crate::proxy::http::routing::found::AddressDenied;

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
    /// What the `access` of the listener and of the route say, if there is any.
    pub access: Option<Access>,
    /// Why it is kept out at run time: `the client 192.0.2.7 is in 192.0.2.0/24 (by hand, …), over in 1h`; `None`: it is not, or nobody
    /// has asked.
    pub blocked: Option<String>,
    /// The list that does not let the client in: `` `bad` of the listener ``.
    pub denied_by: Option<String>,
    /// How its client has to show who it is before anything else is done, if it has to.
    pub auth: Option<String>,
    /// The name of that rule.
    #[serde(skip)]
    pub auth_rule: Option<String>,
    /// The rate limits that it counts in, each with who counts together.
    pub rate_limits: Vec<String>,
    /// Its key in the cache of its route, and what that has to do with it.
    pub cache: Option<String>,
    /// Who gets a copy, and of how many.
    pub copies: Option<String>,
    /// What becomes of it.
    pub verdict: Destiny,
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
    /// The client may come in, and have the route.
    LetIn,
    /// It may not.
    Denied,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Destiny {
    /// A backend gets it.
    Forwarded {
        /// Who may get it: one, or several where chance decides.
        targets: Vec<Side>,
    },
    /// It is answered here.
    Answered {
        /// With this status.
        status: u16,
        /// For this cause, as logs call it.
        cause: Option<&'static str>,
        /// Its `Location`.
        location: Option<String>,
        /// Lines that the route adds to the answer.
        lines: Vec<HeaderPair>,
    },
    /// Its connection goes to this target as it is, and nobody here sees the request.
    PassedThrough {
        /// The target's name.
        target: String,
    },
    /// The connection is closed without an answer.
    Dropped,
}

/// A target that a request may go to, and what its backend gets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Its name.
    pub target: String,
    /// Of how many such requests, in percent.
    pub percent: f64,
    /// Path and query that the backend gets.
    pub path: String,
    /// The header lines that the route changes.
    pub edits: Vec<HeaderChange>,
    /// Lines that the route adds to the answer.
    pub answer_lines: Vec<HeaderPair>,
    /// The backend that its sticky cookie names.
    pub pin: Option<String>,
    /// All header lines that the backend gets.
    #[serde(skip)]
    pub lines: Vec<HeaderPair>,
    /// What its backend is chosen by, where the target hashes.
    #[serde(skip)]
    pub key: Option<u64>,
}

/// A header line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeaderPair {
    /// Its name, as it is written.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The lines of one name, before a route has changed them and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeaderChange {
    /// The name, as it is written.
    pub name: String,
    /// The values before.
    pub before: Vec<String>,
    /// The values after.
    pub after: Vec<String>,
}

impl Chain {
    /// The end of a request that has no route, because a list of the listener does not let its client in.
    pub(super) fn turned_away(&mut self, denied: AddressDenied<'_>) -> Destiny {
        self.deny(denied);
        let cause = Some(Cause::AccessDenied.token());
        let told = |status| Destiny::Answered { status, cause, location: None, lines: Vec::new() };
        denied.rule.list.status.map_or(Destiny::Dropped, told)
    }

    /// Notes which list does not let the client in.
    pub(super) fn deny(&mut self, denied: AddressDenied<'_>) {
        let owner = if denied.is_of_listener { "listener" } else { "route" };
        let list = match &denied.rule.list.name {
            Some(name) => format!("`{name}`"),
            None => "a list".to_owned(),
        };
        self.access = Some(Access::Denied);
        self.denied_by = Some(format!("{list} of the {owner}"));
    }

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
        if let Some(blocked) = &self.blocked {
            lines.push(row("blocked", blocked));
        }
        if let Some(route) = &self.route {
            lines.push(row("route", &format!("`{route}`")));
        }
        match self.access {
            Some(Access::LetIn) => lines.push(row("access", "lets the client in")),
            Some(Access::Denied) => {
                let by = self.denied_by.as_ref().map_or_else(String::new, |list| format!(": {list}"));
                lines.push(row("access", &format!("does not let the client in{by}")));
            }
            None => {}
        }
        for limit in &self.rate_limits {
            lines.push(row("counts", &format!("in {limit}")));
        }
        if let Some(auth) = &self.auth {
            lines.push(row("auth", auth));
        }
        if let Some(cache) = &self.cache {
            lines.push(row("cache", cache));
        }
        self.verdict.tell(&mut lines);
        if let Some(mirror) = &self.copies {
            lines.push(row("copies", mirror));
        }
        lines.push(row("so", &format!("it {}", self.verdict)));
        lines
    }
}

impl Destiny {
    /// What is changed on the way.
    fn tell(&self, lines: &mut Vec<String>) {
        let answer = |added: &[HeaderPair], lines: &mut Vec<String>| {
            lines.extend(
                added
                    .iter()
                    .map(|HeaderPair { name, value }| row("answer", &format!("gets {name}: {value}"))),
            );
        };
        match self {
            Destiny::Forwarded { targets } => {
                let mut told: Vec<String> = Vec::new();
                for side in targets {
                    let mut of_side = Vec::new();
                    of_side.extend(side.edits.iter().map(|change| row("header", &change.to_string())));
                    answer(&side.answer_lines, &mut of_side);
                    of_side.retain(|line| !told.contains(line));
                    told.extend(of_side);
                }
                lines.extend(told);
            }
            Destiny::Answered { lines: added, .. } => answer(added, lines),
            Destiny::PassedThrough { .. } | Destiny::Dropped => {}
        }
    }
}

impl std::fmt::Display for HeaderChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let HeaderChange { name, before, after } = self;
        match (before.is_empty(), after.is_empty()) {
            (true, _) => write!(f, "{name}: {} comes", after.join(", ")),
            (false, true) => write!(f, "{name}: {} goes", before.join(", ")),
            (false, false) => write!(f, "{name}: {} becomes {}", before.join(", "), after.join(", ")),
        }
    }
}

fn row(key: &str, value: &str) -> String {
    format!("{key:8} {value}")
}

impl std::fmt::Display for Destiny {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Destiny::Forwarded { targets } => {
                let is_one = targets.len() == 1;
                let same =
                    targets.first().is_some_and(|first| targets.iter().all(|one| one.path == first.path));
                for (place, side) in targets.iter().enumerate() {
                    let Side { target, percent, path, .. } = side;
                    f.write_str(if place == 0 { "goes to " } else { " or " })?;
                    write!(f, "`{target}`")?;
                    if !is_one {
                        write!(f, " ({}%)", (percent * 1000.0).round() / 1000.0)?;
                    }
                    if !same || place + 1 == targets.len() {
                        write!(f, " as {path}")?;
                    }
                }
                Ok(())
            }
            Destiny::Answered { status, cause, location, .. } => {
                write!(f, "is answered with {status}")?;
                if let Some(cause) = cause {
                    write!(f, " ({cause})")?;
                }
                location.as_ref().map_or(Ok(()), |location| write!(f, ", to {location}"))
            }
            Destiny::PassedThrough { target } => {
                write!(f, "goes to `{target}` undecrypted: its whole connection is passed through")
            }
            Destiny::Dropped => f.write_str("gets no answer: its connection is closed"),
        }
    }
}
