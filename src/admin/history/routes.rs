//! `GET /api/v1/history`: the points of some rows.

use hyper::StatusCode;
use serde_json::{Map, Value, json};

use super::book::RowPoints;
use super::point::Point;
use crate::admin::api::Api;
use crate::admin::exchange::answers::ok;
use crate::admin::exchange::problem_document::ProblemDocument;
use crate::admin::exchange::question::Question;
use crate::admin::route::AdminOutcome;
use crate::net::now;

/// As many rows are told of at once.
const ROWS: usize = 200;

/// Of the rows `of`, with a blank between two; all listeners, routes and targets where none is named.
pub(in crate::admin) fn history(api: &Api, asked: &Question) -> AdminOutcome {
    let is_long = match asked.query("step").as_deref() {
        None | Some("1") => false,
        Some("10") => true,
        Some(_) => {
            let detail = "`step` is 1 (five minutes) or 10 (an hour), in seconds";
            return Err(ProblemDocument::plain(StatusCode::BAD_REQUEST, detail));
        }
    };
    let named: Vec<String> = match asked.query("of") {
        Some(of) => of.split_ascii_whitespace().map(str::to_owned).collect(),
        None => api.history.names().into_iter().take(ROWS).collect(),
    };
    if named.len() > ROWS {
        let detail = format!("`of` names {} rows, and {ROWS} is the most", named.len());
        return Err(ProblemDocument::plain(StatusCode::BAD_REQUEST, detail));
    }
    let (rows, age) = api.history.points(named.iter().map(String::as_str), is_long, now());
    let rows: Map<String, Value> = rows.into_iter().map(row).collect();
    let step = if is_long { 10 } else { 1 };
    Ok(ok(&json!({ "step_s": step, "age_ms": age.as_millis(), "rows": rows })))
}

fn row(RowPoints { name, points }: RowPoints) -> (String, Value) {
    let counts = |of: fn(&Point) -> u32| points.iter().map(of).collect::<Vec<u32>>();
    // What is no number is null in JSON.
    let times = |of: fn(&Point) -> f32| points.iter().map(of).collect::<Vec<f32>>();
    let value = json!({
        "requests": counts(|point| point.requests),
        "errors": counts(|point| point.errors),
        "active": counts(|point| point.active),
        "p50_ms": times(|point| point.p50_ms),
        "p99_ms": times(|point| point.p99_ms),
    });
    (name, value)
}
