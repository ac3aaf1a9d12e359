//! The written form of `health_check`.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::bounds::{COUNT_MAX, DAY, HOUR, INTERVAL_MIN, MILLISECOND};
use super::group::section_or_off;
use super::reader::{Reader, is_off, is_on};
use super::shape;
use super::statuses::statuses;
use crate::config::error::{Wrong, quoted};
use crate::config::origin::{Field, Written};
use crate::config::yaml::Entry;

/// `health_check` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawHealth {
    pub(in crate::config) interval: Option<Written<Duration>>,
    pub(in crate::config) timeout: Option<Written<Duration>>,
    pub(in crate::config) rise: Option<Written<u32>>,
    pub(in crate::config) fall: Option<Written<u32>>,
    pub(in crate::config) path: Field<String>,
    pub(in crate::config) expect: Option<Written<Vec<RangeInclusive<u16>>>>,
    pub(in crate::config) host: Option<Written<String>>,
    pub(in crate::config) body: Option<Written<String>>,
    pub(in crate::config) port: Option<Written<u32>>,
    /// Empty: the whole server.
    pub(in crate::config) grpc: Option<Written<String>>,
    /// Empty: the root; `None` inside: `off`.
    pub(in crate::config) dns: Option<Written<Option<String>>>,
    pub(in crate::config) send: Option<Written<Vec<u8>>>,
    pub(in crate::config) receive: Option<Written<Vec<u8>>>,
    pub(in crate::config) agent: Option<Written<u32>>,
}

/// Walks `health_check`.
pub(super) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<RawHealth>>> {
    const EXPECTED: &str = "`off`, or a mapping with keys such as `interval` and `path`";
    let written = section_or_off(entry, reader, &shape::HEALTH_CHECK, EXPECTED, None)?;
    let Some(section) = written.value else { return Some(Written::new(None, written.spot)) };
    let health = RawHealth {
        interval: section.find("interval").and_then(|entry| reader.duration(entry, INTERVAL_MIN..=DAY)),
        timeout: section.find("timeout").and_then(|entry| reader.duration(entry, MILLISECOND..=HOUR)),
        rise: section.find("rise").and_then(|entry| reader.whole(entry, 1..=COUNT_MAX)),
        fall: section.find("fall").and_then(|entry| reader.whole(entry, 1..=COUNT_MAX)),
        path: match section.find("path") {
            Some(entry) => Field::read(reader.parsed(entry, "a path such as `/health`", probe_path)),
            None if section.is_misspelt("path") => Field::Faulty,
            None => Field::Absent,
        },
        expect: section.find("expect").and_then(|entry| statuses(entry, reader, 100..=599)),
        host: section
            .find("host")
            .and_then(|entry| reader.word(entry, "a host name such as `app.example`", host_header)),
        body: section.find("body").and_then(|entry| reader.word(entry, BODY, body)),
        port: section.find("port").and_then(|entry| reader.whole(entry, 1..=65_535)),
        grpc: section.find("grpc").and_then(|entry| grpc(entry, reader)),
        dns: section.find("dns").and_then(|entry| dns(entry, reader)),
        send: section.find("send").and_then(|entry| reader.word(entry, BYTES, bytes)),
        receive: section.find("receive").and_then(|entry| reader.word(entry, BYTES, bytes)),
        agent: section.find("agent").and_then(|entry| reader.whole(entry, 1..=65_535)),
    };
    Some(Written::new(Some(health), written.spot))
}

const BODY: &str = "a text that the answer contains, such as `ready`";
/// More of an answer than a probe would ever compare.
const BODY_MAX: usize = 1_024;

fn body(text: &str) -> Result<String, Wrong> {
    match text.len() {
        0 => Err(Wrong::new("is empty, and every answer has that in it", BODY)),
        1..=BODY_MAX => Ok(text.to_owned()),
        _ => Err(Wrong::new(format!("is longer than {BODY_MAX} bytes"), BODY)),
    }
}

const SERVICE: &str = "`on`, or the name of a service such as `shop.Cart`";

/// Whose health is asked for; nothing where it is `off`.
fn grpc(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<String>> {
    if is_on(&entry.node) {
        return Some(Written::new(String::new(), reader.spot(entry)));
    }
    if is_off(&entry.node) {
        return None;
    }
    reader.parsed(entry, SERVICE, |text| {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/');
        match text.len() {
            1..=SERVICE_MAX if text.bytes().all(is_name) => Ok(text.to_owned()),
            _ => Err(Wrong::new(format!("is {}, which is no name of a service", quoted(text)), SERVICE)),
        }
    })
}

/// Which name is asked for.
fn dns(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<String>>> {
    if is_on(&entry.node) {
        return Some(Written::new(Some(String::new()), reader.spot(entry)));
    }
    if is_off(&entry.node) {
        return Some(Written::new(None, reader.spot(entry)));
    }
    const NAME: &str = "`on`, or a name such as `example.com`";
    reader.parsed(entry, NAME, |text| {
        let label = |label: &str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            (1..=63).contains(&label.len()) && label.bytes().all(is_part)
        };
        let bare = text.strip_suffix('.').unwrap_or(text);
        match bare.len() {
            1..=253 if bare.split('.').all(label) => Ok(Some(bare.to_ascii_lowercase())),
            _ => Err(Wrong::new(format!("is {}, which is no name of DNS", quoted(text)), NAME)),
        }
    })
}

/// Longer than services are called.
const SERVICE_MAX: usize = 127;

const BYTES: &str = "a text such as `'PING\\r\\n'`";

/// Bytes as a text: `\r`, `\n`, `\t`, `\0`, `\\` and `\xHH` stand for one of them.
fn bytes(text: &str) -> Result<Vec<u8>, Wrong> {
    let strange = |escape: &str| {
        Wrong::new(format!("has {} in it, which stands for nothing", quoted(escape)), BYTES)
            .note("`\\r`, `\\n`, `\\t`, `\\0`, `\\\\` and `\\xHH` (two hex digits) are known")
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let sign = escape.chars().next().ok_or_else(|| strange("\\"))?;
        rest = &escape[sign.len_utf8()..];
        bytes.push(match sign {
            'r' => b'\r',
            'n' => b'\n',
            't' => b'\t',
            '0' => 0,
            '\\' => b'\\',
            'x' => {
                let digits =
                    rest.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
                let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                rest = rest.get(2..).unwrap_or_default();
                byte.ok_or_else(|| strange("\\x"))?
            }
            other => return Err(strange(&format!("\\{other}"))),
        });
    }
    bytes.extend_from_slice(rest.as_bytes());
    match bytes.len() {
        0 => Err(Wrong::new("is empty", BYTES)),
        1..=BODY_MAX => Ok(bytes),
        _ => Err(Wrong::new(format!("is longer than {BODY_MAX} bytes"), BYTES)),
    }
}

/// What may stand in a Host field: a name or an address, perhaps with a port (RFC 9110 §7.2).
pub(super) fn host_header(text: &str) -> Result<String, Wrong> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    let is_port = |port: &str| {
        port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    // An IPv6 address has its brackets on the wire.
    let is_name = super::address::host(name).is_ok() && (!name.contains(':') || name.starts_with('['));
    if !is_name || !port.is_none_or(is_port) {
        return Err(Wrong::new(
            format!("is {}, which no Host header may be", quoted(text)),
            "a host name such as `app.example`, perhaps with a port",
        ));
    }
    Ok(text.to_owned())
}

/// Reads the path of a probe: what may stand in a request line (RFC 9112 §3.2.1).
pub(in crate::config) fn probe_path(text: &str) -> Result<String, Wrong> {
    let wrong = |why: &str| Wrong::new(format!("is {}, {why}", quoted(text)), "a path such as `/health`");
    if !text.starts_with('/') {
        return Err(wrong("which does not begin with `/`").instead(format!("/{}", text.replace(' ', "%20"))));
    }
    if text.bytes().any(|b| !b.is_ascii_graphic() || b == b'#') {
        return Err(wrong("which has a blank or another character that no request may carry")
            .instead(text.replace(' ', "%20")));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_host() {
        for fine in
            ["a", "app.example", "app.example:8080", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:8080"]
        {
            assert!(host_header(fine).is_ok(), "{fine}");
        }
        for wrong in
            ["", "a b", "$host", "a:", "a:0", "a:65536", "a:+1", "::1", "{host}", "a/b", "[::1", "https://a"]
        {
            assert!(host_header(wrong).is_err(), "{wrong}");
        }
    }
}
