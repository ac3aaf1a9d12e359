//! What can be asked, and the answers.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use tokio::time::timeout;

use super::problem_document::{MEDIA_TYPE, ProblemDocument};
use super::wire::{Digest, ProcessFacts};
use crate::config::Loaded;
use crate::reload::running::{Loader, Refusal, ReloadOutcome, RunningConfig};

/// The longest config that is taken, in bytes: as long as a file may be.
pub const TEXT_MAX: usize = 16 * 1024 * 1024;
/// For a request's body.
const BODY_TIME: Duration = Duration::from_secs(30);
/// What a config's text may come as.
const TEXT_TYPES: &[&str] =
    &["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain"];

/// Reads a text as if it stood where the config stands; its name is the one that messages have.
pub type TextLoader = Arc<dyn Fn(&str, &str) -> anyhow::Result<Loaded> + Send + Sync>;

/// Who answers.
#[derive(Clone, Debug)]
pub struct AboutProcess {
    /// The process's name.
    pub name: String,
    /// The absolute path of its config.
    pub config: Option<String>,
}

/// What the API has to do with.
pub struct Api {
    /// Who answers.
    pub about: AboutProcess,
    /// The config in force, and the way to another one.
    pub running: Arc<RunningConfig>,
    /// By which the text of another config is read.
    pub text: TextLoader,
}

/// An answer.
pub type AdminAnswer = Response<Full<Bytes>>;

/// What a path does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    About,
    Plan,
    Reload,
    Digest,
}

/// Everything there is; the test of `GET /api/v1` holds it against the answers.
const ROUTES: &[(&str, &str, Route)] = &[
    ("GET", "/api/v1", Route::About),
    ("POST", "/api/v1/config/plan", Route::Plan),
    ("POST", "/api/v1/config/reload", Route::Reload),
    ("POST", "/api/v1/reload", Route::Reload),
    ("GET", "/api/v1/config/digest", Route::Digest),
];

impl Api {
    /// The answer to a request. Called inside of the control runtime.
    pub async fn answer<B>(&self, request: Request<B>) -> AdminAnswer
    where
        B: Body + Unpin,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.respond(request).await.unwrap_or_else(|problem| {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut answer = json(status, MEDIA_TYPE, &problem);
            if status == StatusCode::METHOD_NOT_ALLOWED
                && let Ok(allowed) = HeaderValue::from_str(&problem.detail.replace(" only", ""))
            {
                answer.headers_mut().insert(ALLOW, allowed);
            }
            answer
        })
    }

    async fn respond<B>(&self, request: Request<B>) -> Result<AdminAnswer, ProblemDocument>
    where
        B: Body + Unpin,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let route = route(request.method(), request.uri().path())?;
        let file = file_of(request.uri().query());
        let text = match route {
            Route::Plan => text_of(request).await?,
            Route::About | Route::Reload | Route::Digest => {
                refuse_body(&request)?;
                None
            }
        };
        Ok(match route {
            Route::About => ok(&self.identity()),
            Route::Digest => ok(&Digest { digest: self.running.reloader.digest() }),
            Route::Plan => ok(&self.running.plan(text.map(|text| self.loader_of(text, file))).await),
            Route::Reload => match self.reload().await {
                Ok(plan) => ok(&*plan),
                Err(refusal) => return Err(ProblemDocument::refused(refusal.problems, refusal.is_conflict)),
            },
        })
    }

    /// A client that goes away does not stop half-way what it has begun.
    async fn reload(&self) -> ReloadOutcome {
        let running = Arc::clone(&self.running);
        let reload = tokio::spawn(async move { running.reload().await });
        reload.await.unwrap_or_else(|failed| Err(Refusal::failed(&failed)))
    }

    fn identity(&self) -> ProcessFacts {
        ProcessFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.about.name.clone(),
            pid: std::process::id(),
            config: self.about.config.clone(),
            routes: ROUTES.iter().map(|(method, path, _)| format!("{method} {path}")).collect(),
        }
    }

    /// Reads `text` in the place of the config.
    fn loader_of(&self, text: String, file: Option<String>) -> Loader {
        let read = Arc::clone(&self.text);
        let name = file.or_else(|| self.about.config.clone()).unwrap_or_else(|| "request".to_owned());
        Arc::new(move || read(&text, &name))
    }
}

fn route(method: &Method, path: &str) -> Result<Route, ProblemDocument> {
    let path = if path.len() > 1 { path.strip_suffix('/').unwrap_or(path) } else { path };
    let of_path: Vec<_> = ROUTES.iter().filter(|(_, known, _)| *known == path).collect();
    if let Some((.., route)) = of_path.iter().find(|(known, ..)| *known == method.as_str()) {
        return Ok(*route);
    }
    if of_path.is_empty() {
        let nearest = ROUTES.iter().max_by(|(_, one, _), (_, other, _)| {
            strsim::jaro_winkler(one, path).total_cmp(&strsim::jaro_winkler(other, path))
        });
        let near = nearest.filter(|(_, known, _)| strsim::jaro_winkler(known, path) > 0.8);
        let near = near.map_or(String::new(), |(_, known, _)| format!("; did you mean {known}?"));
        let detail = format!("there is nothing at this path{near} GET /api/v1 lists everything");
        return Err(ProblemDocument::plain(StatusCode::NOT_FOUND, detail.replace("path GET", "path; GET")));
    }
    let allowed: Vec<&str> = of_path.iter().map(|(method, ..)| *method).collect();
    Err(ProblemDocument::plain(StatusCode::METHOD_NOT_ALLOWED, format!("{} only", allowed.join(", "))))
}

/// The name of a text in messages: `?file=`, percent-decoded.
fn file_of(query: Option<&str>) -> Option<String> {
    let file = query?.split('&').find_map(|pair| pair.strip_prefix("file="))?;
    Some(decoded(file)).filter(|file| !file.is_empty())
}

/// Percent-decodes; what is no escape stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digit = |at: usize| behind.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                rest = &behind[2..];
            }
            (other, ..) => {
                bytes.push(other);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn too_large() -> ProblemDocument {
    ProblemDocument::plain(StatusCode::PAYLOAD_TOO_LARGE, "a config has at most 16MiB")
}

/// The text of a config in a request's body; `None`: there is none.
async fn text_of<B>(request: Request<B>) -> Result<Option<String>, ProblemDocument>
where
    B: Body + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    if body.size_hint().lower() > TEXT_MAX as u64 {
        return Err(too_large());
    }
    let read = timeout(BODY_TIME, Limited::new(body, TEXT_MAX).collect()).await;
    let read = read.map_err(|_| {
        ProblemDocument::plain(StatusCode::REQUEST_TIMEOUT, "the body did not come within 30 seconds")
    })?;
    let bytes = match read {
        Ok(read) => read.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(too_large()),
        Err(error) => {
            return Err(ProblemDocument::plain(StatusCode::BAD_REQUEST, format!("the body: {error}")));
        }
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    if let Some(kind) = head.headers.get(CONTENT_TYPE) {
        let name = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !TEXT_TYPES.contains(&name.to_ascii_lowercase().as_str()) {
            let detail = "a config comes as application/yaml (curl: -H 'Content-Type: application/yaml')";
            return Err(ProblemDocument::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
    }
    let text = String::from_utf8(bytes.into());
    text.map(Some).map_err(|_| ProblemDocument::plain(StatusCode::BAD_REQUEST, "the body is not UTF-8"))
}

fn refuse_body<B: Body>(request: &Request<B>) -> Result<(), ProblemDocument> {
    let is_empty = request.body().is_end_stream() || request.body().size_hint().exact() == Some(0);
    let says_none = request.headers().get(CONTENT_LENGTH).is_some_and(|length| length == "0");
    if is_empty || says_none {
        return Ok(());
    }
    let detail = "this takes no body; a config's text is taken by /api/v1/config/plan";
    Err(ProblemDocument::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

fn ok(of: &impl Serialize) -> AdminAnswer {
    json(StatusCode::OK, "application/json", of)
}

fn json(status: StatusCode, media_type: &'static str, of: &impl Serialize) -> AdminAnswer {
    // None of our types fails: they have texts for keys.
    let mut body = serde_json::to_vec(of).unwrap_or_default();
    body.push(b'\n');
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer.headers_mut().insert("cache-control", HeaderValue::from_static("no-store"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_somewhere_or_is_told_what_was_meant() {
        assert_eq!(route(&Method::POST, "/api/v1/config/plan").expect("known"), Route::Plan);
        assert_eq!(route(&Method::POST, "/api/v1/reload/").expect("known"), Route::Reload);
        let wrong = |method: Method, path: &str| {
            let problem = route(&method, path).expect_err("nothing there");
            (problem.status, problem.detail)
        };
        assert_eq!(wrong(Method::GET, "/api/v1/reload"), (405, "POST only".to_owned()));
        let (status, detail) = wrong(Method::POST, "/api/v1/config/plam");
        assert_eq!(status, 404);
        assert!(detail.contains("did you mean /api/v1/config/plan?"), "{detail}");
        assert_eq!(wrong(Method::GET, "/").1, "there is nothing at this path; GET /api/v1 lists everything");
    }

    #[test]
    fn the_name_of_a_text_is_decoded() {
        assert_eq!(file_of(Some("x=1&file=a%20b%2Fc.yaml")).as_deref(), Some("a b/c.yaml"));
        assert_eq!(file_of(Some("file=100%")).as_deref(), Some("100%"));
        assert_eq!(file_of(Some("file=%zz%ff")).as_deref(), Some("%zz\u{fffd}"));
        assert_eq!((file_of(Some("file=")), file_of(Some("a=b")), file_of(None)), (None, None, None));
    }
}
