//! What is stored of answers.

use std::sync::Arc;

use super::api::Api;
use super::exchange::answers::ok;
use super::exchange::question::Question;
use super::route::AdminOutcome;
use super::wire::PurgeReport;
use crate::cache::store::{PurgeKind, PurgeOf};
use crate::cache::{url_key, url_prefix};
use crate::route::path_form;

/// What is said of a URL that is none.
const URL: &str = "a URL with its host, such as `https://shop.example/a?b=1`";

/// `POST`: takes answers out of the store, or declares them stale.
pub(super) fn purge(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let mut fields = asked.fields()?;
    let [url, prefix, tag] = ["url", "prefix", "tag"];
    let values = [fields.text(url)?, fields.text(prefix)?, fields.text(tag)?];
    let all = fields.switch("all")?.unwrap_or(false);
    let soft = fields.switch("soft")?.unwrap_or(false);
    let kind = if soft { PurgeKind::Soft } else { PurgeKind::Hard };
    let one = "one of `url`, `prefix`, `tag` and `all`, and no second one";
    let snapshot = api.running.reloader.snapshots.current();
    let Some(snapshot) = snapshot else { return Err(fields.wrong("all", "a config in force")) };
    let (of, objects) = match (values, all) {
        ([Some(text), None, None], false) => {
            let Some((is_https, authority, path)) = parts(&text) else { return Err(fields.wrong(url, URL)) };
            let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
            // As requests for it are stored, whatever way it is written in.
            let taken = path_form::form(path.as_bytes(), &crate::config::model::Normalize::default());
            let path = taken.map_or_else(|_| path.as_bytes().to_vec(), |path| path.into_owned());
            let path = [&path, query.as_bytes()].concat();
            let mut objects = 0;
            for rule in &snapshot.cache_queries {
                objects +=
                    snapshot.store.purge_url(&url_key(is_https, authority.as_bytes(), &path, rule), kind);
            }
            (format!("url {text}"), Some(objects))
        }
        ([None, Some(text), None], false) => {
            let Some((is_https, authority, path)) = parts(&text) else {
                return Err(fields.wrong(prefix, URL));
            };
            let begin = url_prefix(is_https, authority.as_bytes(), path.as_bytes());
            snapshot.store.purge(PurgeOf::Prefix(begin.into()), kind);
            (format!("prefix {text}"), None)
        }
        ([None, None, Some(text)], false) if !text.is_empty() => {
            snapshot.store.purge(PurgeOf::Tag(text.as_bytes().into()), kind);
            (format!("tag {text}"), None)
        }
        ([None, None, None], true) => {
            snapshot.store.purge(PurgeOf::All, kind);
            ("all".to_owned(), None)
        }
        _ => return Err(fields.wrong("all", one)),
    };
    fields.end()?;
    Ok(ok(&PurgeReport { of, soft, objects }))
}

/// Whether a URL is one of https, its authority, and its path with the query.
fn parts(url: &str) -> Option<(bool, &str, &str)> {
    let (is_https, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return None,
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let is_text = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if authority.is_empty() || authority.contains('@') || !is_text(url) || path.contains('#') {
        return None;
    }
    Some((is_https, authority, if path.starts_with('/') { path } else { "/" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme_and_a_host() {
        assert_eq!(parts("https://a.example/b?c"), Some((true, "a.example", "/b?c")));
        assert_eq!(parts("http://a:8080"), Some((false, "a:8080", "/")));
        for wrong in
            ["", "/b", "a.example/b", "ftp://a/", "https://", "https://u@a/", "https://a/#b", "https://a/ b"]
        {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
