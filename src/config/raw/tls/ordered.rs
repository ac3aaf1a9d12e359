//! A certificate that is ordered: `acme` in an entry of `certificates`.

use std::net::IpAddr;

use crate::config::error::{Wrong, quoted};
use crate::config::model::tls::acme::{AcmeChallenge, OrderedCertificate, OrderedKey};
use crate::config::origin::Written;
use crate::config::raw::group::{items, there_already};
use crate::config::raw::reader::{Reader, Section, found, subject};
use crate::config::yaml::{Entry, Typed};

const FORM: &str = "host names such as `[example.com, \"*.example.com\"]`";
const NAME_FORM: &str = "a host name such as `example.com` or `\"*.example.com\"`";

/// `acme` with what stands beside it.
#[derive(Debug)]
pub(in crate::config) struct RawOrdered {
    /// In the one spelling that is compared, each once.
    pub(in crate::config) names: Written<Vec<String>>,
    pub(in crate::config) challenge: Option<Written<AcmeChallenge>>,
    pub(in crate::config) key: Option<Written<OrderedKey>>,
}

/// Keys that mean something beside `acme` only.
pub(super) const BESIDE: [&str; 2] = ["challenge", "key_type"];

/// Walks it.
pub(super) fn walk(section: &Section<'_>, entry: &Entry, reader: &mut Reader<'_>) -> Option<RawOrdered> {
    let names = names(entry, reader);
    let challenge = section.find("challenge").and_then(|entry| reader.choice(entry, AcmeChallenge::ALL));
    let key = section.find("key_type").and_then(|entry| reader.choice(entry, OrderedKey::ALL));
    Some(RawOrdered { names: names?, challenge, key })
}

fn names(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<String>>> {
    let items = items(entry, reader, FORM)?;
    let mut all: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_), Some(text)) => name(text),
            _ => Err(Wrong::new(found(item), NAME_FORM)),
        };
        let (spot, wrong) = match read {
            Ok(name) if all.contains(&name) => {
                (reader.spot_of_use(item), there_already(item, item.text().unwrap_or_default()))
            }
            Ok(name) => {
                all.push(name);
                continue;
            }
            Err(wrong) if item.is_null() => (reader.spot(entry), wrong),
            Err(wrong) => (reader.spot_of(item), wrong),
        };
        reader.report.wrong(&spot, &subject(&entry.key), wrong);
    }
    if all.len() > OrderedCertificate::NAMES {
        let wrong = Wrong::new(
            format!("has {} names", all.len()),
            format!("at most {} in one certificate", OrderedCertificate::NAMES),
        );
        reader.report.wrong(&reader.key_spot(entry), &subject(&entry.key), wrong);
        return None;
    }
    (all.len() == items.len()).then(|| Written::new(all, reader.key_spot(entry)))
}

/// A name in the one spelling that is compared.
fn name(text: &str) -> Result<String, Wrong> {
    let wrong = |why: &str| Wrong::new(format!("is {}, {why}", quoted(text)), NAME_FORM);
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<IpAddr>().is_ok() {
        return Err(wrong("an address").note("what is for an address is given as `cert_file` and `cert_key`"));
    }
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split(['/', ':', '?']).next().unwrap_or_default();
        return Err(wrong("a URL").hint(format!("write the host alone: `{host}`"), host));
    }
    let (is_wild, host) = match text.strip_prefix("*.") {
        Some(host) => (true, host),
        None => (false, text),
    };
    if host.contains('*') {
        return Err(wrong("with a star that is not its first label")
            .note("a certificate's star stands for one label, the leftmost"));
    }
    if let Some((host, port)) = host.rsplit_once(':')
        && port.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err(wrong("with a port").hint(format!("write the host alone: `{host}`"), host));
    }
    let ascii = idna::domain_to_ascii(host.trim_end_matches('.')).map_err(|_| wrong("which is no host"))?;
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // However its digits are written, and with a dot at its end.
    if ascii.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(wrong("which no certificate can be for"));
    }
    if ascii.len() > 253 || !ascii.split('.').all(is_label) {
        return Err(wrong("which no certificate can be for"));
    }
    Ok(if is_wild { format!("*.{ascii}") } else { ascii })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_spelling_and_what_is_none_is_told() {
        for (text, read) in [
            ("Example.COM.", "example.com"),
            ("*.Example.com", "*.example.com"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(name(text).expect(text), read);
        }
        for (text, why) in [
            ("192.0.2.1", "an address"),
            ("[::1]", "an address"),
            ("https://a.example/b", "a URL"),
            ("a.example:443", "with a port"),
            ("a.*.example", "with a star"),
            ("*", "with a star"),
            ("a_b.example", "no certificate can be for"),
            ("-a.example", "no certificate can be for"),
            ("a..example", "no certificate can be for"),
            ("", "no certificate can be for"),
            ("*.", "no certificate can be for"),
            ("192.0.2.1.", "no certificate can be for"),
            ("\u{ff11}92.0.2.1", "no certificate can be for"),
        ] {
            let wrong = name(text).expect_err(text);
            assert!(wrong.message.contains(why), "{text}: {}", wrong.message);
        }
    }
}
