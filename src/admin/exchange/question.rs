//! What is asked, with its body at hand.

use std::fmt::Display;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body, Bytes};
use hyper::header::{CONTENT_TYPE, EXPECT, HeaderMap};
use tokio::time::timeout;

use super::caller::Caller;
use super::json_fields::JsonFields;
use super::percent;
use super::problem_document::ProblemDocument;

/// The longest body of a change, in bytes.
const CHANGE_MAX: usize = 1024 * 1024;
/// The longest config that is taken, in bytes: as long as a file may be.
pub const CONFIG_MAX: usize = 16 * 1024 * 1024;
/// Of a body that nobody wants, in bytes.
const DISCARD_MAX: usize = 1024 * 1024;
/// The same in time.
const DISCARD_TIME: Duration = Duration::from_secs(2);
/// For a request's body.
const BODY_TIME: Duration = Duration::from_secs(30);
/// What a config's text may come as.
const CONFIG_TYPES: &[&str] =
    &["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain"];

/// What the body of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// There is none.
    None,
    /// A JSON object of at most 1 MiB.
    Json,
    /// The text of a config, at most 16 MiB, or nothing.
    Config,
}

/// A request whose path, rights and body have been judged.
#[derive(Clone, Debug)]
pub struct Question {
    /// Who asks.
    pub caller: Caller,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body, whole.
    pub body: Bytes,
    /// Values of what stands in braces in the route's path, decoded, in its order.
    parameters: Vec<(&'static str, String)>,
    query: String,
}

impl Question {
    /// Of a request in parts.
    #[must_use]
    pub fn new(
        caller: Caller,
        parts: &http::request::Parts,
        parameters: Vec<(&'static str, String)>,
        body: Bytes,
    ) -> Question {
        let query = parts.uri.query().unwrap_or_default().to_owned();
        Question { caller, headers: parts.headers.clone(), body, parameters, query }
    }

    /// What stands in the path for `{name}`; empty where the route has no such place.
    #[must_use]
    pub fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// The parameter `name` of the query, decoded; `None`: absent or empty.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<String> {
        pairs(&self.query).find(|(known, _)| *known == name).map(|(_, value)| value).filter(|v| !v.is_empty())
    }

    /// The parameter `name` of the query, a time such as `30s`, `5m` or `30`, which is seconds; `None`: absent.
    ///
    /// # Errors
    /// It is none, or longer than `most`.
    pub fn span(&self, name: &str, most: Duration) -> Result<Option<Duration>, ProblemDocument> {
        self.query(name).map(|text| span(name, &text, most)).transpose()
    }

    /// The fields of a JSON body.
    ///
    /// # Errors
    /// It is no JSON object.
    pub fn fields(&self) -> Result<JsonFields, ProblemDocument> {
        JsonFields::of(&self.body)
    }

    /// The body as text; `None`: it is empty.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn text(&self) -> Result<Option<String>, ProblemDocument> {
        if self.body.is_empty() {
            return Ok(None);
        }
        let text = String::from_utf8(self.body.to_vec());
        text.map(Some).map_err(|_| ProblemDocument::plain(StatusCode::BAD_REQUEST, "the body is not UTF-8"))
    }
}

/// A parameter such as `30s`, `5m` or `30`, which is seconds.
fn span(name: &str, text: &str, most: Duration) -> Result<Duration, ProblemDocument> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    let read = seconds.or_else(|| humantime::parse_duration(text).ok()).filter(|span| *span <= most);
    read.ok_or_else(|| {
        let most = humantime::format_duration(most);
        let detail = format!("`{name}` is a time such as `30s` or `5m`, at most {most}");
        ProblemDocument::plain(StatusCode::BAD_REQUEST, detail)
    })
}

/// Names and decoded values of a query.
fn pairs(query: &str) -> impl Iterator<Item = (&str, String)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name, percent::lenient(value))
    })
}

/// Refuses a query with a parameter that is not `known`, stands twice or has no value: one that is overlooked, such as a misspelt
/// `confirm` or one whose value a script did not have, changes what is done.
///
/// # Errors
/// There is one.
pub fn judge_query(query: Option<&str>, known: &[&str]) -> Result<(), ProblemDocument> {
    let mut seen = Vec::new();
    for (name, value) in pairs(query.unwrap_or_default()) {
        // What somebody sends may be long.
        let shown: String = name.chars().take(40).collect();
        let detail = if !known.contains(&name) {
            let all = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!("`{shown}` is no parameter of this path; it has {all}")
        } else if seen.contains(&name) {
            format!("`{shown}` stands there twice")
        } else if value.is_empty() {
            format!("`{shown}` has no value")
        } else {
            seen.push(name);
            continue;
        };
        return Err(ProblemDocument::plain(StatusCode::BAD_REQUEST, detail));
    }
    Ok(())
}

/// Reads a body that is to be of this `kind`.
///
/// # Errors
/// It is not, or too long, or does not come.
pub async fn body_of<B>(headers: &HeaderMap, body: &mut B, kind: BodyKind) -> Result<Bytes, ProblemDocument>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
    let (most, expected) = match kind {
        BodyKind::None => (0, "this takes no body"),
        BodyKind::Json => (CHANGE_MAX, "a change has at most 1MiB"),
        BodyKind::Config => (CONFIG_MAX, "a config has at most 16MiB"),
    };
    let too_large = || match kind {
        BodyKind::None => ProblemDocument::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, expected),
        BodyKind::Json | BodyKind::Config => ProblemDocument::plain(StatusCode::PAYLOAD_TOO_LARGE, expected),
    };
    let is_empty = body.is_end_stream() || body.size_hint().exact() == Some(0);
    if is_empty {
        return Ok(Bytes::new());
    }
    judge_type(headers, kind)?;
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let read = async {
        while let Some(frame) = body.frame().await {
            let broken =
                |error| ProblemDocument::plain(StatusCode::BAD_REQUEST, format!("the body: {error}"));
            // What is no data is trailers, which say nothing here.
            let data = frame.map_err(broken)?.into_data().unwrap_or_default();
            if data.len() > most.saturating_sub(bytes.len()) {
                return Err(too_large());
            }
            bytes.extend_from_slice(&data);
        }
        Ok(())
    };
    let late =
        |_| ProblemDocument::plain(StatusCode::REQUEST_TIMEOUT, "the body did not come within 30 seconds");
    timeout(BODY_TIME, read).await.map_err(late)??;
    Ok(bytes.into())
}

/// Reads what is left of a body that nobody wants, for a while: closing on unread bytes would reset the answer away.
pub async fn discard<B: Body<Data = Bytes> + Unpin>(headers: &HeaderMap, body: &mut B) {
    if headers.contains_key(EXPECT) {
        return;
    }
    let read = async {
        let mut left = DISCARD_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let read = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(read) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = timeout(DISCARD_TIME, read).await;
}

fn judge_type(headers: &HeaderMap, kind: BodyKind) -> Result<(), ProblemDocument> {
    let Some(written) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let name = written.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let name = name.to_ascii_lowercase();
    let (is_right, expected) = match kind {
        BodyKind::None => return Ok(()),
        BodyKind::Json => (
            name == "application/json",
            "a change comes as application/json (curl: -H 'Content-Type: application/json')",
        ),
        BodyKind::Config => (
            CONFIG_TYPES.contains(&name.as_str()),
            "a config comes as application/yaml (curl: -H 'Content-Type: application/yaml')",
        ),
    };
    if is_right {
        return Ok(());
    }
    Err(ProblemDocument::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_known_and_decoded() {
        let of = |query: &str| {
            let (parts, ()) =
                http::Request::builder().uri(format!("/?{query}")).body(()).expect("a request").into_parts();
            Question::new(Caller::user(0), &parts, vec![("t", "a/b".to_owned())], Bytes::new())
        };
        assert_eq!(of("x=1&file=a%20b%2Fc.yaml").query("file").as_deref(), Some("a b/c.yaml"));
        assert_eq!((of("file=").query("file"), of("a=b").query("file")), (None, None));
        assert_eq!((of("").parameter("t"), of("").parameter("u")), ("a/b", ""));
        assert!(
            judge_query(Some("file=1&&now=2"), &["file", "now"]).is_ok() && judge_query(None, &[]).is_ok()
        );
        let problem = judge_query(Some("conifrm=1"), &["confirm", "file"]).expect_err("unknown");
        assert_eq!(problem.detail, "`conifrm` is no parameter of this path; it has confirm, file");
        assert_eq!(problem.status, 400);
        for (query, detail) in
            [("confirm=", "`confirm` has no value"), ("file=1&file=2", "`file` stands there twice")]
        {
            let problem = judge_query(Some(query), &["confirm", "file"]).expect_err(query);
            assert_eq!((problem.status, problem.detail.as_str()), (400, detail));
        }
    }

    #[test]
    fn a_body_is_what_it_should_be_or_refused_by_its_status() {
        use http_body_util::Full;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let read = |media_type: &'static str, length: usize, kind: BodyKind| {
            let mut headers = HeaderMap::new();
            if !media_type.is_empty() {
                headers.insert(CONTENT_TYPE, media_type.parse().expect("a value"));
            }
            let mut body = Full::new(Bytes::from(vec![b'x'; length]));
            let read = runtime.block_on(body_of(&headers, &mut body, kind));
            read.map(|bytes| bytes.len()).map_err(|problem| problem.status)
        };
        assert_eq!(read("application/json; charset=utf-8", CHANGE_MAX, BodyKind::Json), Ok(CHANGE_MAX));
        assert_eq!(read("", CHANGE_MAX + 1, BodyKind::Json), Err(413));
        assert_eq!(read("application/x-www-form-urlencoded", 1, BodyKind::Json), Err(415));
        assert_eq!(read("text/plain", 0, BodyKind::Json), Ok(0));
        assert_eq!(read("Application/YAML", CHANGE_MAX + 1, BodyKind::Config), Ok(CHANGE_MAX + 1));
        assert_eq!(read("", CONFIG_MAX + 1, BodyKind::Config), Err(413));
        assert_eq!(read("application/json", 1, BodyKind::Config), Err(415));
        assert_eq!((read("", 0, BodyKind::None), read("", 1, BodyKind::None)), (Ok(0), Err(415)));
    }

    #[test]
    fn a_span_is_a_number_of_seconds_or_has_a_unit() {
        let read = |text| span("drain", text, Duration::from_secs(86400)).map_err(|problem| problem.status);
        assert_eq!(read("30"), Ok(Duration::from_secs(30)));
        assert_eq!(read("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(
            (read("0s"), read("-1"), read("2days"), read("soon")),
            (Ok(Duration::ZERO), Err(400), Err(400), Err(400))
        );
    }
}
