//! One attempt to fetch keys: one GET, and the body of a 200.

use std::time::Duration;

use http::{Method, StatusCode, header};
use http_body_util::Full;
use tokio::time::timeout;

use crate::config::model::jwt::{KeySet, KeysUrl};
use crate::outgoing::{AnswerReading, OtherSide, refusal};
use crate::tls::Roots;

/// An attempt that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// The place where keys are fetched that the config means. `roots`: whom the system trusts.
#[must_use]
pub(super) fn source(config: KeysUrl, roots: &Roots) -> OtherSide {
    OtherSide::new(config.url, config.authorities, roots)
}

/// Fetches what is at `source`: at most [`KeySet::SIZE`] bytes.
///
/// # Errors
/// Why nothing came of it, in a few words.
pub(super) async fn fetch(source: &OtherSide) -> Result<Vec<u8>, String> {
    let patient = timeout(PATIENCE, get(source)).await;
    patient.unwrap_or_else(|_| Err(format!("timeout after {}", humantime::format_duration(PATIENCE))))
}

async fn get(source: &OtherSide) -> Result<Vec<u8>, String> {
    let request =
        source.request(Method::GET).header(header::ACCEPT, "application/json").body(Full::default());
    let answer = source.ask(request, AnswerReading::Body(KeySet::SIZE)).await?;
    match answer.status() {
        StatusCode::OK => Ok(answer.into_body().to_vec()),
        status => Err(refusal(status.as_u16())),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::config::model::HttpUrl;

    /// What comes of a server that answers so and closes; and the request that it got.
    async fn asked(answer: String) -> (Result<Vec<u8>, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let url =
            HttpUrl { is_tls: false, host: "127.0.0.1".to_owned(), port, path: "/keys?a".into(), user: None };
        let place = source(KeysUrl { url, authorities: None }, &Roots::default());
        let served = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.expect("a byte"));
            }
            // Who has read enough leaves.
            let _ = stream.write_all(answer.as_bytes()).await;
            String::from_utf8(head).expect("ascii")
        };
        let (outcome, head) = tokio::join!(fetch(&place), served);
        (outcome, head)
    }

    #[tokio::test]
    async fn the_body_of_a_200_is_what_was_fetched_and_nothing_else_is() {
        let (body, head) = asked("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_owned()).await;
        assert_eq!(body, Ok(b"{}".to_vec()));
        assert!(head.starts_with("GET /keys?a HTTP/1.1\r\nhost: 127.0.0.1:"), "{head}");
        let (body, _) = asked("HTTP/1.1 200 OK\r\n\r\n{\"keys\": []}".to_owned()).await;
        assert_eq!(body, Ok(b"{\"keys\": []}".to_vec()), "up to the end of the connection");
        for (answer, why) in [
            (
                "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
                "not followed",
            ),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}", "404"),
            ("HTTP/1.1 204 No Content\r\n\r\n", "204"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "it broke off within its answer"),
            ("no HTTP\r\n\r\n", "it does not speak HTTP"),
            ("", "it closed without an answer"),
        ] {
            let (outcome, _) = asked(answer.to_owned()).await;
            let told = outcome.expect_err(answer);
            assert!(told.contains(why) && !told.is_empty(), "{answer}: {told}");
        }
        let long = " ".repeat(KeySet::SIZE + 1);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{long}", long.len());
        let (outcome, _) = asked(answer).await;
        assert_eq!(outcome, Err("its answer has more than 256 KiB".to_owned()));
        let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(64 * 1024));
        let (outcome, _) = asked(head).await;
        assert_eq!(outcome, Err("the head of its answer has more than 16 KiB".to_owned()));
    }

    #[tokio::test]
    async fn nobody_who_listens_is_told() {
        // It is bound, so that nobody else gets it.
        let silent = tokio::net::TcpSocket::new_v4().expect("a socket");
        silent.bind(([127, 0, 0, 1], 0).into()).expect("a port");
        let port = silent.local_addr().expect("an address").port();
        let (host, path) = ("127.0.0.1".to_owned(), "/".into());
        let url = HttpUrl { is_tls: false, host, port, path, user: None };
        let told = fetch(&source(KeysUrl { url, authorities: None }, &Roots::default()))
            .await
            .expect_err("nobody is there");
        assert!(told.contains("refused"), "{told}");
    }
}
