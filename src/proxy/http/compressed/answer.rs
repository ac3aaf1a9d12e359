//! Which answers are compressed.

use std::rc::Rc;

use crate::cache::store::Object;
use crate::compress::{Coder, Compression, WhyPlain, negotiated, recode, vary};
use crate::config::model::cache::{Coding, CompressPolicy};
use crate::message::{Framing, Head};
use crate::proxy::WorkerCtx;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::h1::digits::push_number;

use super::CompressedBody;
use super::kept::form;

/// Compresses an answer, if its client accepts that and it is worth it: its head is changed then.
#[must_use]
pub fn compressed(
    ctx: &Rc<WorkerCtx>,
    policy: &CompressPolicy,
    request: &Head,
    answer: &mut Head,
    body: AnswerBody,
) -> AnswerBody {
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
    let compression = match Compression::of(request, answer, length, policy) {
        Ok(compression) => compression,
        Err(why) => {
            if why == WhyPlain::Part {
                // RFC 9110 §15.3.7: what the whole would say.
                vary(answer);
            }
            return body;
        }
    };
    vary(answer);
    let Some((coding, level)) = negotiated(request, &policy.codings) else { return body };
    let is_told_only = body.framing() == Framing::None;
    if let AnswerBody::Stored(stored) = &body
        && let Some(object) = stored.object()
    {
        if is_told_only {
            tell(answer, object, coding);
            return body;
        }
        if let Some(form) = form(ctx, object, coding, level) {
            recode(answer, coding);
            return AnswerBody::Stored(form);
        }
    }
    // Where there is no memory for it the answer goes as it is.
    let Ok(coder) = Coder::new(coding, level) else { return body };
    recode(answer, coding);
    answer.remove(|name| name.eq_ignore_ascii_case(b"transfer-encoding"));
    if is_told_only {
        // The answer to HEAD: it says what the one to GET would say.
        return body;
    }
    let body = CompressedBody::new(body, coder, compression.flushes_each, &ctx.buffers);
    AnswerBody::Compressed(Box::new(body))
}

/// The answer to HEAD about what is stored: the length of its compressed body is known only once somebody has got that.
fn tell(answer: &mut Head, object: &Object, coding: Coding) {
    recode(answer, coding);
    if let Some(form) = object.kept_form(coding) {
        answer.push_with(b"Content-Length", |out| push_number(out, form.length()));
    }
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
