//! `evenkeel why`: what became of requests that are over.

use std::io::Write as _;
use std::process::ExitCode;

use hyper::{Method, StatusCode};

use super::ask::AdminQuestion;
use super::{Heard, complain, lost, tell, understood, why_text};
use crate::admin::exchange::percent::encoded;
use crate::admin::requests::report::{RequestList, RequestStory};
use crate::cli::args::why::WhyOptions;
use crate::cli::output;

/// How many are listed where nobody says.
const COUNT: u16 = 20;

/// Prints a list, or the story of one.
pub(in crate::cli) fn run(options: &WhyOptions) -> anyhow::Result<ExitCode> {
    if let Some(id) = &options.id {
        return one(options, id);
    }
    let count = if options.last { 1 } else { options.count.unwrap_or(COUNT) };
    let heard = match ask(options, format!("/api/v1/requests?last={count}{}", filters(options))) {
        Ok(heard) => heard,
        Err(error) => return lost(&format!("{error:#}")),
    };
    if heard.status != StatusCode::OK {
        return complain(&heard, options.json);
    }
    let list: RequestList = understood(&heard)?;
    match list.requests.first() {
        Some(latest) if options.last => one(options, &latest.id),
        Some(_) => {
            print(options, &heard, || why_text::list(&list))?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            if options.json && !options.last {
                print(options, &heard, String::new)?;
            }
            let _ = writeln!(std::io::stderr(), "nothing that fits is kept");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn one(options: &WhyOptions, id: &str) -> anyhow::Result<ExitCode> {
    let id = encoded(id).replace('/', "%2F");
    let heard = match ask(options, format!("/api/v1/requests/{id}")) {
        Ok(heard) => heard,
        Err(error) => return lost(&format!("{error:#}")),
    };
    match heard.status {
        StatusCode::OK => {
            let story: RequestStory = understood(&heard)?;
            print(options, &heard, || why_text::story(&story))?;
            Ok(ExitCode::SUCCESS)
        }
        // It was asked for as it should be; it is not there.
        StatusCode::NOT_FOUND => complain(&heard, options.json).map(|_| ExitCode::FAILURE),
        _ => complain(&heard, options.json),
    }
}

fn ask(options: &WhyOptions, path: String) -> anyhow::Result<Heard> {
    tell(&options.process, AdminQuestion { method: Method::GET, path, body: Vec::new() })
}

fn filters(options: &WhyOptions) -> String {
    let mut filters = String::new();
    for (name, value) in [("cause", &options.cause), ("target", &options.target)] {
        if let Some(value) = value {
            filters += &format!("&{name}={}", encoded(value).replace('/', "%2F"));
        }
    }
    for (name, is_asked) in [("slow", options.slow), ("sampled", options.sampled)] {
        if is_asked {
            filters += &format!("&{name}=true");
        }
    }
    filters
}

fn print(options: &WhyOptions, heard: &Heard, text: impl FnOnce() -> String) -> anyhow::Result<()> {
    output::print(&if options.json { heard.json() } else { text() })
}
