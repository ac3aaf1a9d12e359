//! The page: one document with its style and its script, which are the only ones that a browser takes from here.

use std::io::Write as _;
use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};

use crate::admin::exchange::question::Question;
use crate::admin::route::AdminOutcome;

const DOCUMENT: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/style.css");
/// What says something stands before what asks for it.
const SCRIPTS: [&str; 16] = [
    include_str!("page/script/numbers.js"),
    include_str!("page/script/rows.js"),
    include_str!("page/script/parts.js"),
    include_str!("page/script/verdict.js"),
    include_str!("page/script/vitals.js"),
    include_str!("page/script/map.js"),
    include_str!("page/script/nodes.js"),
    include_str!("page/script/tables.js"),
    include_str!("page/script/charts.js"),
    include_str!("page/script/detail.js"),
    include_str!("page/script/actions.js"),
    include_str!("page/script/forms.js"),
    include_str!("page/script/panels.js"),
    include_str!("page/script/requests.js"),
    include_str!("page/script/entry.js"),
    include_str!("page/script/main.js"),
];

/// All of them as one that leaves nothing behind in the page.
fn script() -> String {
    format!("'use strict';\n(() => {{\n{}}})();\n", SCRIPTS.concat())
}

/// What is sent.
struct Page {
    plain: Bytes,
    gzip: Bytes,
    policy: HeaderValue,
    /// Of the page as it is, and packed.
    tags: [HeaderValue; 2],
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let script = script();
    let document = DOCUMENT.replacen("/*style*/", STYLE, 1).replacen("/*script*/", &script, 1);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    // Memory takes everything.
    let gzip = gzip.write_all(document.as_bytes()).and_then(|()| gzip.finish()).unwrap_or_default();
    let policy = HeaderValue::try_from(policy(&script));
    let name = digest(&SHA256, document.as_bytes())
        .as_ref()
        .iter()
        .take(8)
        .fold(0, |name, byte| name << 8 | u64::from(*byte));
    let tags = ["", "-gzip"].map(|form| HeaderValue::try_from(format!("\"{name:016x}{form}\"")));
    Page {
        tags: tags.map(|tag| tag.unwrap_or(HeaderValue::from_static("\"\""))),
        plain: document.into(),
        gzip: gzip.into(),
        policy: policy.unwrap_or(HeaderValue::from_static("default-src 'none'")),
    }
});

/// Content Security Policy Level 3: this style, this script, requests to whoever the page came from; nothing else, and no text that
/// becomes markup.
fn policy(script: &str) -> String {
    let hash = |text: &str| STANDARD.encode(digest(&SHA256, text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(script),
        hash(STYLE)
    )
}

/// The page. It says nothing about this process: whoever may not look gets no more than that.
pub(in crate::admin) fn page(asked: &Question) -> AdminOutcome {
    let page = &*PAGE;
    let mut accepts = asked.headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let is_packed = accepts.any(|line| line.split(',').any(|one| one.trim() == "gzip"));
    let tag = &page.tags[usize::from(is_packed)];
    let mut known = asked.headers.get_all(IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
    let is_known =
        tag.to_str().is_ok_and(|tag| known.any(|line| line.split(',').any(|one| one.trim() == tag)));
    let body = match (is_known, is_packed) {
        (true, _) => Bytes::new(),
        (false, true) => page.gzip.clone(),
        (false, false) => page.plain.clone(),
    };
    let mut answer = Response::new(Full::from(body).boxed_unsync());
    *answer.status_mut() = if is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let fixed: [(HeaderName, &'static str); 5] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-cache"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (VARY, "accept-encoding"),
    ];
    for (name, value) in fixed {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if is_packed && !is_known {
        answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    answer.headers_mut().insert(CONTENT_SECURITY_POLICY, page.policy.clone());
    answer.headers_mut().insert(ETAG, tag.clone());
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_holds_its_style_and_its_script_once() {
        let text = std::str::from_utf8(&PAGE.plain).expect("text");
        assert!(PAGE.gzip.len() <= 100 * 1024, "{} bytes", PAGE.gzip.len());
        assert_eq!((text.matches("<script>").count(), text.matches("<style>").count()), (1, 1));
        assert!(
            text.contains(&format!("<style>{STYLE}</style>"))
                && text.contains(&format!("<script>{}</script>", script()))
        );
        assert!(!script().contains("</script") && !STYLE.contains("</style"));
    }

    #[test]
    fn nothing_of_the_page_comes_from_elsewhere_or_makes_markup_of_texts() {
        for word in [
            "http:",
            "https:",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            " style=\"",
        ] {
            assert!(!PAGE.plain.windows(word.len()).any(|part| part == word.as_bytes()), "{word}");
        }
        assert!(PAGE.policy.to_str().expect("text").contains("require-trusted-types-for 'script'"));
    }
}
