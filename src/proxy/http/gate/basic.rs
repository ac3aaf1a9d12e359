//! Names and passwords in the `Authorization` of a request (RFC 7617).

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use crate::access::passwords::{Acquaintance, Credentials, Crowded, Passwords};
use crate::config::model::BasicAuth;
use crate::message::{Cause, Head, HeaderField};
use crate::proxy::http::edge::Edge;

use super::authenticated::Authenticated;
use super::denial::Denial;

/// Some clients leave out what fills the last group.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Who a request says its client is, compared with what is known.
///
/// # Errors
/// It is not let in.
pub(super) async fn basic<E: Edge>(
    basic: &BasicAuth,
    passwords: &Arc<Passwords>,
    (head, client): (&Head, Option<IpAddr>),
    edge: &mut E,
) -> Result<Authenticated, Denial> {
    let deny = |cause| denial(cause, &basic.realm);
    let sent = credentials(head).map_err(deny)?;
    let Some((name, password)) = split(&sent) else { return Err(deny(Cause::AuthMalformed)) };
    let login = match passwords.meet(basic, &Credentials { name, password }) {
        Acquaintance::Known => return Ok(known(name)),
        Acquaintance::Unknown(login) => login,
    };
    let told = passwords.compare(client, login).map_err(|Crowded| deny(Cause::AuthBusy))?;
    let mut told = pin!(told);
    let outcome = poll_fn(|cx| match told.as_mut().poll(cx) {
        Poll::Ready(outcome) => Poll::Ready(outcome.map_err(|_| Cause::Internal)),
        Poll::Pending => edge.poll_gone(cx).map(Err),
    });
    match outcome.await {
        Ok(true) => Ok(known(name)),
        Ok(false) => Err(deny(Cause::AuthFailed)),
        Err(cause) => Err(deny(cause)),
    }
}

fn known(name: &[u8]) -> Authenticated {
    Authenticated { user: Some(String::from_utf8_lossy(name).into_owned()), ..Authenticated::default() }
}

/// What stands behind `Basic`, decoded.
fn credentials(head: &Head) -> Result<Vec<u8>, Cause> {
    let sent = head.value(HeaderField::Authorization).ok_or(Cause::AuthRequired)?;
    if head.repeats(HeaderField::Authorization) {
        return Err(Cause::AuthMalformed);
    }
    let (scheme, rest) = sent.split_at(sent.iter().position(|&byte| byte == b' ').unwrap_or(sent.len()));
    if !scheme.eq_ignore_ascii_case(b"basic") {
        // A token, say, is meant for others.
        return Err(Cause::AuthRequired);
    }
    BASE64.decode(rest.trim_ascii()).map_err(|_| Cause::AuthMalformed)
}

/// Name and password. A control byte stands in neither (RFC 7617 §2).
fn split(sent: &[u8]) -> Option<(&[u8], &[u8])> {
    if sent.iter().any(|byte| byte.is_ascii_control()) {
        return None;
    }
    let colon = memchr::memchr(b':', sent)?;
    Some((&sent[..colon], &sent[colon + 1..]))
}

fn denial(cause: Cause, realm: &str) -> Denial {
    let lines = match cause.status() {
        // A realm that is accepted has neither quotes nor backslashes.
        401 => vec![("WWW-Authenticate", format!("Basic realm=\"{realm}\", charset=\"UTF-8\""))],
        _ => Vec::new(),
    };
    Denial::new(cause, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(values: &[&str]) -> Result<String, Cause> {
        let mut head = Head::request("GET", "/", "h");
        values.iter().for_each(|value| head.push(b"Authorization", value.as_bytes()));
        let decoded = credentials(&head)?;
        let (name, password) = split(&decoded).ok_or(Cause::AuthMalformed)?;
        Ok(format!("{}|{}", String::from_utf8_lossy(name), String::from_utf8_lossy(password)))
    }

    #[test]
    fn a_name_and_a_password_are_read_and_everything_else_is_told_apart() {
        for (value, expected) in [
            ("Basic YW5uYTpwdw==", Ok("anna|pw")),
            ("bASIC  YW5uYTpwdw", Ok("anna|pw")),
            ("Basic YW5uYTpwOnc=", Ok("anna|p:w")),
            ("Basic Og==", Ok("|")),
            ("Basic w6Q6w7w=", Ok("ä|ü")),
            ("Basic", Err(Cause::AuthMalformed)),
            ("Basic ", Err(Cause::AuthMalformed)),
            ("Basic YW5uYQ==", Err(Cause::AuthMalformed)),
            ("Basic YW5uYTpwdw==, Basic YW5uYTpwdw==", Err(Cause::AuthMalformed)),
            ("Basic YW5u YTpwdw==", Err(Cause::AuthMalformed)),
            ("Basic YToA", Err(Cause::AuthMalformed)),
            ("Basic !", Err(Cause::AuthMalformed)),
            ("Bearer YW5uYTpwdw==", Err(Cause::AuthRequired)),
            ("", Err(Cause::AuthRequired)),
        ] {
            assert_eq!(sent(&[value]).as_deref(), expected.as_deref(), "{value}");
        }
        assert_eq!(sent(&[]), Err(Cause::AuthRequired));
        assert_eq!(sent(&["Basic YW5uYTpwdw==", "Basic YW5uYTpwdw=="]), Err(Cause::AuthMalformed));
    }

    #[test]
    fn only_a_401_asks_again() {
        let asks = |cause| denial(cause, "Staff").lines;
        let line = ("WWW-Authenticate", "Basic realm=\"Staff\", charset=\"UTF-8\"".to_owned());
        assert_eq!(asks(Cause::AuthFailed), [line]);
        assert!(asks(Cause::AuthBusy).is_empty() && asks(Cause::Internal).is_empty());
    }
}
