//! What would become of a request: asked of the config in force, and of the backends as they are.

use std::net::IpAddr;

use serde::Serialize;
use serde_json::Value;

use hyper::StatusCode;

use super::api::Api;
use super::exchange::answers::ok;
use super::exchange::json_fields::JsonFields;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::route::AdminOutcome;
use crate::config::model::{Balance, SampleRequest};
use crate::decision::{Chain, Destiny, Side, decide_with};
use crate::net::now;
use crate::reload::blocking::is_in;
use crate::snapshot::Snapshot;
use crate::targets::{Ask, Chance, Prospect, Tried};

/// What was decided, and who would get the request.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// The chain of decisions.
    pub chain: Chain,
    /// The backends of the targets that may get it; empty: it was not asked of a process that runs.
    pub candidates: Vec<Candidacy>,
    /// All of it in lines, for people.
    pub lines: Vec<String>,
}

/// The backends of a target, as the request would find them.
#[derive(Debug, Serialize)]
pub struct Candidacy {
    /// The target.
    pub target: String,
    /// How it chooses.
    pub balance: String,
    /// The one that would be picked; `None`: whose turn it is then, or chance.
    pub pick: Option<String>,
    /// In the order of the config.
    pub backends: Vec<CandidateReport>,
}

/// One of them.
#[derive(Debug, Serialize)]
pub struct CandidateReport {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: &'static str,
    /// It may be picked at this moment.
    pub ready: bool,
    /// Among those that are asked first (0), next (1) and so on; `None`: it gets no request of a new client.
    pub tier: Option<usize>,
    /// Its weight.
    pub weight: u16,
    /// Requests that it has.
    pub load: u32,
    /// How busy it would be with one more, for each unit of its weight; what algorithms that go by load compare.
    pub score: Option<f64>,
}

impl Explanation {
    /// What a config alone says.
    #[must_use]
    pub fn of(chain: Chain) -> Explanation {
        let mut lines = vec![chain.request.clone()];
        lines.extend(chain.lines().iter().map(|line| format!("  {line}")));
        Explanation { chain, candidates: Vec::new(), lines }
    }

    /// The same, and that a file does not know whom a process keeps out.
    #[must_use]
    pub fn of_file(chain: Chain) -> Explanation {
        let mut explained = Explanation::of(chain);
        explained.lines.push(format!(
            "  {:8} not known here: whom `evenkeel block` keeps out, a process knows",
            "blocked"
        ));
        explained
    }

    /// The same with the backends of a process that runs.
    fn among(chain: Chain, snapshot: &Snapshot) -> Explanation {
        let mut explained = Explanation::of(chain);
        let Destiny::Forwarded { targets } = &explained.chain.verdict else { return explained };
        explained.candidates = targets.iter().filter_map(|side| candidacy(side, snapshot)).collect();
        for Candidacy { target, balance, pick, backends } in &explained.candidates {
            for backend in backends {
                let CandidateReport { name, state, ready, weight, load, score, .. } = backend;
                let ready = if *ready { "" } else { ", not to be picked now" };
                let score = score.map_or(String::new(), |score| format!(", score {score:.2}"));
                let line = format!("`{target}/{name}` {state}{ready}: weight {weight}, load {load}{score}");
                explained.lines.push(format!("  {:8} {line}", "backend"));
            }
            let pick = match pick {
                Some(pick) => format!("`{target}/{pick}` ({balance})"),
                None => format!("one of `{target}`, as {balance} has it then"),
            };
            explained.lines.push(format!("  {:8} {pick}", "pick"));
        }
        explained
    }
}

fn candidacy(side: &Side, snapshot: &Snapshot) -> Option<Candidacy> {
    let target = snapshot.targets.iter().find(|target| *target.name == *side.target)?;
    let pin = target.backends.iter().find(|backend| side.pin.as_deref() == Some(&*backend.name));
    let (tried, chance) = (Tried::default(), Chance::seeded(0));
    let (prospects, pick) = target.peek(&Ask { key: side.key, pin, ..Ask::new(&tried, &chance, now()) });
    let report = |prospect: Prospect| CandidateReport {
        name: prospect.name.to_string(),
        state: prospect.state,
        ready: prospect.is_ready,
        tier: prospect.tier,
        weight: prospect.weight,
        load: prospect.in_flight,
        score: prospect.score,
    };
    Some(Candidacy {
        target: side.target.clone(),
        balance: name_of(target.config.balance.algorithm).to_owned(),
        pick: pick.map(|name| name.to_string()),
        backends: prospects.into_iter().map(report).collect(),
    })
}

fn name_of(algorithm: Balance) -> &'static str {
    Balance::ALL.iter().find(|(_, one)| *one == algorithm).map_or("", |(name, _)| name)
}

/// `POST /api/v1/explain`.
pub(super) fn explain(api: &Api, asked: &Question) -> AdminOutcome {
    let request = sample(asked.fields()?)?;
    let Some(snapshot) = api.running.reloader.snapshots.current() else {
        return Err(ProblemDocument::plain(StatusCode::SERVICE_UNAVAILABLE, "no config is in force yet"));
    };
    let all = api.running.blocked_reports();
    let blocked = |address: IpAddr| {
        let those = all.iter().filter(|one| is_in(address, one.entry.network));
        // Who is in several is out until the last of them is over.
        let last = those.max_by_key(|one| one.entry.expires_ms.unwrap_or(u64::MAX))?;
        Some(last.words())
    };
    match decide_with(&snapshot.listeners, &request, &blocked) {
        Ok(chain) => Ok(ok(&Explanation::among(chain, &snapshot))),
        Err(nobody) => Err(ProblemDocument::plain(StatusCode::UNPROCESSABLE_ENTITY, nobody.to_string())),
    }
}

fn sample(mut fields: JsonFields) -> Result<SampleRequest, ProblemDocument> {
    let method = fields.text("method")?.unwrap_or_else(|| "GET".to_owned());
    let url =
        fields.text("url")?.ok_or_else(|| fields.wrong("url", "a URL such as https://shop.example/"))?;
    let listener = fields.text("listener")?;
    let from = fields.text("from")?;
    let headers = fields.take("headers");
    let mut request =
        SampleRequest::new(&method, &url).map_err(|why| fields.wrong("url", &format!("no URL {why}")))?;
    request.listener = listener;
    if let Some(from) = from {
        request.from = from.parse().map_err(|_| fields.wrong("from", "an IP address"))?;
    }
    let wrong = || fields.wrong("headers", "a list of texts such as `X-Beta: yes`");
    match headers {
        None => {}
        Some(Value::Array(lines)) => {
            for line in lines {
                let line = line.as_str().ok_or_else(wrong)?;
                request.add_line(line).map_err(|why| fields.wrong("headers", why))?;
            }
        }
        Some(_) => return Err(wrong()),
    }
    fields.end()?;
    Ok(request)
}
