//! How an authority is asked: over connections of ours, to nobody but whom its directory names.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use tokio::time::timeout;

use crate::config::model::HttpUrl;
use crate::config::model::tls::Authorities;
use crate::outgoing::{AnswerReading, OtherSide};
use crate::tls::Roots;

/// One request and its answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest answer: a chain, or the list of what an authority supports.
const ANSWER: usize = 256 * 1024;

tokio::task_local! {
    /// What is overheard in this order: those that are under way at the same time share a client.
    pub(super) static HEARD: Arc<Overheard>;
}

/// What an authority has said beside its answers.
#[derive(Debug, Default)]
pub(super) struct Overheard {
    /// Until when it does not want to be asked (RFC 9110 §10.2.3), as the latest answer that was no success has said.
    rest: Mutex<Option<SystemTime>>,
    /// Something was sent that it may have acted on.
    has_posted: AtomicBool,
}

impl Overheard {
    /// Takes that.
    pub(super) fn take_rest(&self) -> Option<SystemTime> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether anything was sent since the last call that it may have acted on.
    pub(super) fn take_posted(&self) -> bool {
        self.has_posted.swap(false, Ordering::Relaxed)
    }

    fn set_rest(&self, until: Option<SystemTime>) {
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

/// Asks.
pub(super) struct AcmeClient {
    authorities: Option<Authorities>,
    /// Plain text is spoken on this machine only, and where the directory is plain, too.
    is_plain: bool,
    sides: Mutex<Sides>,
}

/// Whom it has spoken to.
#[derive(Default)]
struct Sides {
    roots: Roots,
    /// By scheme, host and port.
    known: HashMap<(bool, String, u16), OtherSide>,
}

impl AcmeClient {
    pub(super) fn new(directory: &HttpUrl, authorities: Option<Authorities>) -> AcmeClient {
        AcmeClient { authorities, is_plain: !directory.is_tls, sides: Mutex::default() }
    }

    fn side(&self, uri: &http::Uri) -> Result<OtherSide, String> {
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if self.is_plain => false,
            _ => return Err("the authority names a place that is no https".to_owned()),
        };
        let host = uri.host().ok_or("the authority names a place without a host")?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut sides = self.sides.lock().unwrap_or_else(PoisonError::into_inner);
        let Sides { roots, known } = &mut *sides;
        let side = known.entry((is_tls, host.clone(), port)).or_insert_with(|| {
            let url = HttpUrl { is_tls, host, port, path: "/".into(), user: None };
            OtherSide::new(url, self.authorities.clone(), roots)
        });
        Ok(side.at(path))
    }
}

impl HttpClient for AcmeClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let side = self.side(request.uri());
        // Whoever asks when to renew something hears nothing else.
        let overheard = HEARD.try_with(Arc::clone).unwrap_or_default();
        Box::pin(async move {
            let told = |why: String| Error::Other(why.into());
            let side = side.map_err(told)?;
            let (head, body) = request.into_parts();
            let Ok(body) = body.collect().await;
            let mut asked = side.request(head.method.clone());
            if let Some(kind) = head.headers.get(header::CONTENT_TYPE) {
                asked = asked.header(header::CONTENT_TYPE, kind);
            }
            let reading =
                if head.method == Method::HEAD { AnswerReading::Head } else { AnswerReading::Body(ANSWER) };
            let asked = asked.body(Full::new(body.to_bytes()));
            if head.method == Method::POST {
                overheard.has_posted.store(true, Ordering::Relaxed);
            }
            let answer = timeout(PATIENCE, side.ask(asked, reading)).await;
            let late = || format!("timeout after {}", humantime::format_duration(PATIENCE));
            let answer = answer.map_err(|_| told(late()))?.map_err(told)?;
            if !answer.status().is_success() {
                overheard.set_rest(rest(&answer));
            }
            let mut answer = answer;
            if let Some(again) = answer.headers_mut().get_mut(header::RETRY_AFTER)
                && !again.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok()).is_some_and(is_sane)
                && httpdate::parse_http_date(again.to_str().unwrap_or_default()).is_err()
            {
                // Whoever adds it to the time of day would come to no time at all.
                *again = HeaderValue::from_static("604800");
            }
            Ok(BytesResponse::from(answer.map(Full::new)))
        })
    }
}

/// Whether seconds are a time that one may wait for.
fn is_sane(seconds: u64) -> bool {
    seconds <= 7 * 24 * 3_600
}

/// Until when whoever has answered does not want to be asked.
fn rest(answer: &Response<Bytes>) -> Option<SystemTime> {
    let value = answer.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    match value.parse::<u64>() {
        Ok(seconds) => SystemTime::now().checked_add(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(value).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_may_say_when_it_wants_to_be_asked_again_in_both_forms() {
        let answer = |value: &str| {
            let answer = Response::builder().status(429).header(header::RETRY_AFTER, value);
            rest(&answer.body(Bytes::new()).expect("an answer"))
        };
        let soon = answer(" 120 ").expect("a time");
        let left = soon.duration_since(SystemTime::now()).expect("in the future");
        assert!((100..=120).contains(&left.as_secs()), "{left:?}");
        assert!(answer("Fri, 31 Dec 2100 23:59:59 GMT").is_some());
        for value in ["", "soon", "-1"] {
            assert_eq!(answer(value), None, "{value}");
        }
    }

    #[test]
    fn nobody_is_asked_in_plain_text_unless_the_directory_is() {
        let url = |is_tls| HttpUrl { is_tls, host: "a".into(), port: 1, path: "/".into(), user: None };
        let side = |is_tls: bool, uri: &str| {
            let asking = AcmeClient::new(&url(is_tls), None);
            asking.side(&uri.parse().expect("a URI")).is_ok()
        };
        assert!(
            side(true, "https://a/b") && side(false, "http://127.0.0.1:1/b") && side(false, "https://a/")
        );
        assert!(!side(true, "http://a/b") && !side(false, "ftp://a/b") && !side(true, "/b"));
    }
}
