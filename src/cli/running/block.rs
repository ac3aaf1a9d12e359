//! `evenkeel block`, `unblock` and `purge`.

use std::process::ExitCode;

use hyper::Method;
use serde::de::DeserializeOwned;
use serde_json::{Map, json};

use super::ask::AdminQuestion;
use super::hand::with_scope;
use super::{complain, lost, tell, understood};
use crate::admin::exchange::percent::encoded;
use crate::admin::wire::{BlockAnswer, PurgeReport};
use crate::cli::args::hand::{BlockOptions, PurgeOptions, UnblockOptions};
use crate::cli::args::running::AskOptions;
use crate::cli::output;
use crate::overlay::BlockedReport;

const ENTRIES: &str = "/api/v1/access/blocked/entries";

pub(in crate::cli) fn block(options: &BlockOptions) -> anyhow::Result<ExitCode> {
    let BlockOptions { network, keep, force, hand } = options;
    let mut body = Map::from_iter([("network".to_owned(), json!(network.to_string()))]);
    for (name, is_wanted) in [("keep", keep), ("force", force)] {
        if *is_wanted {
            body.insert(name.to_owned(), json!(true));
        }
    }
    let body = with_scope(body, (hand.lasts, hand.local));
    let question = AdminQuestion { method: Method::POST, path: ENTRIES.to_owned(), body };
    change(&hand.asking, question, shown)
}

pub(in crate::cli) fn unblock(options: &UnblockOptions) -> anyhow::Result<ExitCode> {
    let local = if options.local { "?local=true" } else { "" };
    let path = format!("{ENTRIES}/{}{local}", encoded(&options.network.to_string()));
    let question = AdminQuestion { method: Method::DELETE, path, body: Vec::new() };
    let shown = |report: &BlockedReport| format!("unblocked {}\n", report.entry);
    change(&options.asking, question, shown)
}

pub(in crate::cli) fn purge(options: &PurgeOptions) -> anyhow::Result<ExitCode> {
    let PurgeOptions { url, prefix, tag, all, soft, local, asking } = options;
    let mut body = Map::new();
    for (name, value) in [("url", url), ("prefix", prefix), ("tag", tag)] {
        if let Some(value) = value {
            body.insert(name.to_owned(), json!(value));
        }
    }
    for (name, is_wanted) in [("all", all), ("soft", soft), ("local", local)] {
        if *is_wanted {
            body.insert(name.to_owned(), json!(true));
        }
    }
    let body = serde_json::Value::Object(body).to_string().into_bytes();
    let question = AdminQuestion { method: Method::POST, path: "/api/v1/cache/purge".to_owned(), body };
    change(asking, question, |PurgeReport { of, soft, objects }: &PurgeReport| {
        let what = if *soft { "stale now" } else { "purged" };
        let count = match objects {
            None => String::new(),
            Some(1) => " (1 answer)".to_owned(),
            Some(count) => format!(" ({count} answers)"),
        };
        format!("{what}: {of}{count}\n")
    })
}

/// Asks for a change and prints what has changed.
fn change<T: DeserializeOwned>(
    asking: &AskOptions,
    question: AdminQuestion,
    shown: impl FnOnce(&T) -> String,
) -> anyhow::Result<ExitCode> {
    let heard = match tell(&asking.process, question) {
        Ok(heard) => heard,
        Err(error) => return lost(&format!("{error:#}")),
    };
    if !heard.status.is_success() {
        complain(&heard, asking.json)?;
        // Whoever answered was the one that was meant: it is no matter of the command line.
        return Ok(ExitCode::FAILURE);
    }
    let text = if asking.json { heard.json() } else { shown(&understood(&heard)?) };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn shown(answer: &BlockAnswer) -> String {
    let BlockAnswer { report, cut } = answer;
    let also = match cut {
        0 => String::new(),
        1 => "; 1 connection cut".to_owned(),
        many => format!("; {many} connections cut"),
    };
    format!("{report}{also}\n")
}
