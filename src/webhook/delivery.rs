//! One attempt: one POST to the receiver, and what the answer's status says. No body of an answer is read.

use std::time::Duration;

use http::{Method, Request, header};
use http_body_util::Full;
use hyper::body::Bytes;
use tokio::time::timeout;

use super::message::WebhookMessage;
use super::signature::{SIGNATURE, signature};
use crate::config::model::Webhook;
use crate::outgoing::{AnswerReading, OtherSide, refusal};
use crate::tls::Roots;

/// An attempt that takes longer has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Somebody who is told, and how to reach them.
#[derive(Debug)]
pub(super) struct Receiver {
    /// What the config says.
    pub(super) webhook: Webhook,
    place: OtherSide,
}

impl Receiver {
    /// The one that the config means. `roots`: whom the system trusts.
    #[must_use]
    pub(super) fn new(webhook: Webhook, roots: &Roots) -> Receiver {
        let place = OtherSide::new(webhook.url.clone(), None, roots);
        Receiver { webhook, place }
    }

    /// Sends a message; `Err`: it was not taken, and why. `states`: how all backends are at `at_ms`, in milliseconds since 1970.
    ///
    /// # Errors
    /// In a few words, with nothing of the URL.
    pub(super) async fn send(
        &self,
        message: &WebhookMessage,
        states: &str,
        at_ms: u64,
    ) -> Result<(), String> {
        let asking = self.place.ask(self.request(message, states, at_ms), AnswerReading::Head);
        match timeout(PATIENCE, asking).await {
            Ok(answer) => judge(answer?.status().as_u16()),
            Err(_) => Err(format!("timeout after {}", humantime::format_duration(PATIENCE))),
        }
    }

    fn request(
        &self,
        message: &WebhookMessage,
        states: &str,
        at_ms: u64,
    ) -> http::Result<Request<Full<Bytes>>> {
        let body = message.body(states, at_ms);
        let mut request = self
            .place
            .request(Method::POST)
            .header(header::CONTENT_TYPE, "application/json")
            .header("evenkeel-event", &message.event)
            .header("evenkeel-id", &message.id);
        if let Some(secret) = &self.webhook.secret {
            request = request.header(SIGNATURE, signature(secret, at_ms / 1000, &body));
        }
        request.body(Full::new(body.into()))
    }
}

fn judge(status: u16) -> Result<(), String> {
    if (200..300).contains(&status) { Ok(()) } else { Err(refusal(status)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_status_from_200_to_299_takes_a_message() {
        for (code, taken) in [(200, true), (204, true), (299, true), (302, false), (404, false), (503, false)]
        {
            assert_eq!(judge(code).is_ok(), taken, "{code}");
        }
        assert!(judge(302).expect_err("no").contains("not followed"));
    }
}
