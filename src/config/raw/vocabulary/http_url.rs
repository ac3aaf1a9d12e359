//! URLs of places outside, such as receivers of webhooks: whoever knows one whole may speak to it, so nothing that is said here repeats it.

use std::sync::Arc;

use crate::config::error::Wrong;
use crate::config::model::EtcdConfig;
use crate::config::model::HttpUrl;
use crate::config::origin::Written;
use crate::config::raw::address;
use crate::config::raw::reader::{Reader, subject};
use crate::config::yaml::{Entry, Typed};

/// What one looks like.
pub(in crate::config::raw) const URL_FORM: &str = "`https://host/path` or `http://host:port/path`";

/// Reads a URL by itself, so that no general word about a value repeats it.
pub(in crate::config::raw) fn http_url(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<HttpUrl>> {
    reader.report.hide(entry.node.place);
    let spot = reader.spot(entry);
    let read = match (entry.node.typed(), entry.node.text()) {
        (Typed::Text(_), Some(text)) => url(text),
        (Typed::Null, _) => Err(Wrong::new("has no value", URL_FORM)),
        _ => Err(Wrong::new("is no URL", URL_FORM)),
    };
    match read {
        Ok(url) => Some(Written::new(url, spot)),
        Err(wrong) => {
            reader.report.wrong(&spot, &subject(&entry.key), wrong);
            None
        }
    }
}

fn url(text: &str) -> Result<HttpUrl, Wrong> {
    let wrong = |why: &str| Wrong::new(why, URL_FORM);
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(wrong("has no scheme").note("it begins with `https://` or `http://`"));
    };
    let is_tls = match scheme.to_ascii_lowercase().as_str() {
        "https" => true,
        "http" => false,
        _ => return Err(wrong("has a scheme other than `https` and `http`")),
    };
    if rest.contains('#') {
        return Err(
            wrong("has a `#`, and what follows one is not sent").note("`%23` is the character itself")
        );
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, authority) = match authority.rsplit_once('@') {
        Some((user, authority)) => (Some(Arc::from(decoded(user))), authority),
        None => (None, authority),
    };
    let (written_host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port = match port {
        Some(port) => {
            address::port(port).ok_or_else(|| wrong("has a port that is no number from 1 to 65535"))?
        }
        None if is_tls => 443,
        None => 80,
    };
    if written_host.contains(':') && !written_host.starts_with('[') {
        let wrong = wrong("has an IPv6 address without brackets");
        return Err(wrong.note("it is written `https://[address]/path`"));
    }
    let host = address::host(written_host)
        .map_err(|_| wrong("has a host that is neither an IP address nor a host name"))?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    if path.parse::<http::uri::PathAndQuery>().is_err() {
        return Err(
            wrong("has a path that can't be sent").note("each such character is written `%` and two digits")
        );
    }
    Ok(HttpUrl { is_tls, host, port, path: path.into(), user })
}

/// The URL of somebody who is spoken to at no path, and who knows us by our certificate. Without a port it is that of etcd.
pub(in crate::config::raw) fn endpoint(text: &str, form: &'static str) -> Result<HttpUrl, Wrong> {
    let url = url(text).map_err(|wrong| Wrong { expected: Some(form.into()), ..wrong })?;
    let authority =
        text.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    if url.user.is_some() {
        return Err(Wrong::new("has a user", form).note("etcd knows evenkeel by `client_cert`"));
    }
    if &*url.path != "/" {
        return Err(Wrong::new("has a path", form).note("`prefix` says where in etcd everything is kept"));
    }
    Ok(if has_port { url } else { HttpUrl { port: EtcdConfig::PORT, ..url } })
}

/// With `%40` and the like as the bytes that they stand for.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn urls_of_receivers() {
        let read = |text: &str| {
            let HttpUrl { is_tls, host, port, path, user } = url(text).unwrap();
            (is_tls, host, port, path.to_string(), user.map(|user| String::from_utf8(user.to_vec()).unwrap()))
        };
        let table = [
            ("https://a", (true, "a".to_owned(), 443, "/".to_owned(), None)),
            ("HTTP://a:81/b/c?d=e", (false, "a".to_owned(), 81, "/b/c?d=e".to_owned(), None)),
            ("https://[::1]?d", (true, "::1".to_owned(), 443, "/?d".to_owned(), None)),
            (
                "http://me:p%40ss@a/b",
                (false, "a".to_owned(), 80, "/b".to_owned(), Some("me:p@ss".to_owned())),
            ),
        ];
        for (text, value) in table {
            assert_eq!(read(text), value, "{text}");
        }
    }

    #[test]
    fn no_word_about_a_url_repeats_it() {
        for text in [
            "hush",
            "a/hush",
            "ftp://a/hush",
            "https://a/hush#hush",
            "https:///hush",
            "https://hush:hu@a:b/hush",
            "https://a:0/hush",
            "https://::1/hush",
            "https://a_hush!/hush",
            "https://a/hush hush",
            "https://a/hush\u{e4}\n",
            "https://a/$hush \u{1}",
        ] {
            let wrong = url(text).unwrap_err();
            assert!(!format!("{wrong:?}").contains("hu"), "{text}: {wrong:?}");
        }
    }
}
