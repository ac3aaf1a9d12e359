//! Which answers are compressed.

use crate::compress::{Coder, CompressRules, Compression, negotiated, recode, vary};
use crate::config::model::cache::CompressPolicy;
use crate::message::{Framing, Head};
use crate::net::FreeList;
use crate::proxy::http::answer_body::AnswerBody;

use super::CompressedBody;

/// Compresses an answer, if its client accepts that and it is worth it: its head is changed then.
#[must_use]
pub fn compressed(
    policy: &CompressPolicy,
    request: &Head,
    answer: &mut Head,
    body: AnswerBody,
    buffers: &FreeList,
) -> AnswerBody {
    let rules = CompressRules {
        codings: policy.codings.iter().map(|(coding, _)| *coding).collect(),
        at_least: policy.at_least,
        with_cookies: policy.cookies,
    };
    if answer.status == 304 {
        not_modified(request, answer);
        return body;
    }
    let length = match body.framing() {
        Framing::Length(length) => Some(length),
        Framing::None => {
            answer.named("content-length").and_then(|length| std::str::from_utf8(length).ok()?.parse().ok())
        }
        Framing::Chunked | Framing::UntilClose => None,
    };
    let Ok(compression) = Compression::of(request, answer, length, &rules) else { return body };
    vary(answer);
    let Some(coding) = negotiated(request, &rules.codings) else { return body };
    let level = policy.codings.iter().find(|(other, _)| *other == coding).map(|(_, level)| *level);
    // Where there is no memory for it the answer goes as it is.
    let Ok(coder) = Coder::new(coding, level.unwrap_or(coding.usual_level())) else { return body };
    recode(answer, coding);
    answer.remove(|name| name.eq_ignore_ascii_case(b"transfer-encoding"));
    if body.framing() == Framing::None {
        // The answer to HEAD: it says what the one to GET would say.
        return body;
    }
    let body = CompressedBody::new(body, coder, compression.flushes_each, buffers);
    AnswerBody::Compressed(Box::new(body))
}

/// Makes a 304 say what the 200 would say, whose body is coded for some (RFC 9110 §15.4.5): a client that has it by its weak tag hears of
/// that one.
fn not_modified(request: &Head, answer: &mut Head) {
    vary(answer);
    let Some(tag) = answer.named("etag").filter(|tag| tag.starts_with(b"\"")) else { return };
    let weak = [b"W/", tag].concat();
    let asked = request.named("if-none-match").unwrap_or_default();
    if memchr::memmem::find(asked, &weak).is_some() {
        answer.remove(|name| name.eq_ignore_ascii_case(b"etag"));
        answer.push(b"ETag", &weak);
    }
}
