//! `match`: which requests are a route's own.

use regex::bytes::{Regex, RegexBuilder};

use crate::config::error::{Wrong, quoted};
use crate::config::model::Wildcard;
use crate::config::model::route::{
    CertificateMatch, FieldMatch, FieldTest, HostPattern, PathPattern, RouteMatch,
};
use crate::config::origin::Spot;
use crate::config::raw::address;
use crate::config::raw::group::items;
use crate::config::raw::reader::{Reader, Section, found};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::words::is_token;
use crate::config::yaml::{Entry, Node, Typed};

/// Bytes that one expression may take when it is compiled.
const EXPRESSION: usize = 1 << 20;

const HOST_FORM: &str = "a host such as `shop.example`, `\"*.shop.example\"` or `shop.example:8443`";
const PATH_FORM: &str = "a path such as `/api`, without a query";
const SUBJECT_FORM: &str = "a subject such as `\"*CN=robot*\"`, in which `*` stands for anything";
const NAME_FORM: &str = "a name such as `\"*.robots.example\"`, in which `*` stands for anything";
const ALPN_FORM: &str = "a protocol such as `h2` or `http/1.1`";
const FIELD_FORM: &str = "a value, a list of values, `{present: true}` or `{regex: '^a'}`";

/// Walks `match`; `None`: a part of it has been reported. `keys`: gets where its keys stand.
pub(super) fn walk(
    entry: &Entry,
    keys: &mut Vec<(&'static str, Spot)>,
    reader: &mut Reader<'_>,
) -> Option<RouteMatch> {
    let section = reader.section("`match`", &entry.node, &shape::MATCH)?;
    for key in shape::MATCH.names() {
        keys.extend(section.find(key).map(|entry| (key, reader.key_spot(entry))));
    }
    let hosts = texts(section.find("host"), HOST_FORM, reader, host);
    let methods = texts(section.find("method"), "a method such as `GET`", reader, method);
    let clients = texts(section.find("client"), "an address or a network", reader, address::network);
    let path = path(&section, reader);
    let headers = fields(section.find("header"), true, reader);
    let queries = fields(section.find("query"), false, reader);
    let cookies = fields(section.find("cookie"), false, reader);
    let certificate = match section.find("client_cert") {
        Some(entry) => certificate(entry, reader),
        None => Some(CertificateMatch::default()),
    };
    let alpn = texts(section.find("alpn"), ALPN_FORM, reader, protocol);
    if shape::MATCH.names().any(|key| section.is_misspelt(key)) {
        return None;
    }
    Some(RouteMatch {
        hosts: hosts?,
        path: path?,
        methods: methods?,
        headers: headers?,
        queries: queries?,
        cookies: cookies?,
        clients: clients?,
        certificate: certificate?,
        alpn: alpn?,
    })
}

/// A protocol as clients offer it (RFC 7301 §3.1).
fn protocol(text: &str) -> Result<String, Wrong> {
    let wrong = || Wrong::new(format!("is {}, which no client offers", quoted(text)), ALPN_FORM);
    match &*text.to_ascii_lowercase() {
        "http/2" | "http2" | "http/2.0" => return Err(wrong().instead("h2")),
        "http" | "http1" | "http1.1" | "http/1" => return Err(wrong().instead("http/1.1")),
        // Names are compared byte by byte (RFC 7301 §3.2), and these are the usual ones.
        lower @ ("h2" | "http/1.1" | "http/1.0") if lower != text => return Err(wrong().instead(lower)),
        _ => {}
    }
    let is_protocol = text.len() <= 255 && text.split('/').count() <= 2 && text.split('/').all(is_token);
    if is_protocol { Ok(text.to_owned()) } else { Err(wrong()) }
}

/// What a client's certificate is like.
fn certificate(entry: &Entry, reader: &mut Reader<'_>) -> Option<CertificateMatch> {
    let section = reader.section("`client_cert`", &entry.node, &shape::CERTIFICATE_MATCH)?;
    let subjects = texts(section.find("subject"), SUBJECT_FORM, reader, |text| wildcard(text, SUBJECT_FORM));
    let names = texts(section.find("san"), NAME_FORM, reader, |text| wildcard(text, NAME_FORM));
    if ["subject", "san"].iter().any(|key| section.is_misspelt(key)) {
        return None;
    }
    let found = CertificateMatch { subjects: subjects?, names: names? };
    if found.is_empty() {
        let wrong = Wrong::new("asks for nothing", "`subject`, `san`, or both");
        let wrong = wrong.note("`client_cert: {subject: \"*\"}` takes whoever has shown a certificate");
        reader.report.wrong(&reader.key_spot(entry), "`client_cert`", wrong);
        return None;
    }
    Some(found)
}

fn wildcard(text: &str, form: &str) -> Result<Wildcard, Wrong> {
    if text.is_empty() {
        return Err(Wrong::new("is empty", form));
    }
    Ok(Wildcard::new(text))
}

/// One text or several; none where the key is not there.
pub(in crate::config::raw) fn texts<T: PartialEq>(
    entry: Option<&Entry>,
    expected: &str,
    reader: &mut Reader<'_>,
    parse: impl Fn(&str) -> Result<T, Wrong>,
) -> Option<Vec<T>> {
    let Some(entry) = entry else { return Some(Vec::new()) };
    let items = items(entry, reader, expected)?;
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_) | Typed::Integer(_) | Typed::Float(_), Some(text)) => parse(text),
            _ => Err(Wrong::new(found(item), expected)),
        };
        match read {
            Ok(value) if all.contains(&value) => {
                let spot = reader.spot_of_use(item);
                reader.report.wrong(&spot, &format!("`{}`", entry.key), Wrong::bare("is there already"));
            }
            Ok(value) => all.push(value),
            Err(wrong) => {
                let spot = reader.spot_of(item);
                reader.report.wrong(&spot, &format!("`{}`", entry.key), wrong);
            }
        }
    }
    (all.len() == items.len()).then_some(all)
}

/// A host in the one spelling that is compared.
fn host(text: &str) -> Result<HostPattern, Wrong> {
    let wrong = || Wrong::new(format!("is {}, which is no host", quoted(text)), HOST_FORM);
    if let Some((_, behind)) = text.split_once("://") {
        let only = behind.split('/').next().unwrap_or_default().to_owned();
        return Err(wrong().hint(format!("write the host alone: `{only}`"), only));
    }
    if text == "*" {
        return Err(wrong().note("leave `host` out: then the route is for any host"));
    }
    if text.contains('/') {
        return Err(wrong().note("the path belongs into `path` or `path_prefix`"));
    }
    let (rest, is_suffix) = text.strip_prefix("*.").map_or((text, false), |rest| (rest, true));
    let (name, port) = match rest.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
            (name, Some(port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong)?))
        }
        _ => (rest, None),
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    if let Some(inside) = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        let ip: std::net::Ipv6Addr = inside.parse().map_err(|_| wrong())?;
        return Ok(HostPattern { name: format!("[{ip}]"), is_suffix: false, port });
    }
    let ascii = idna::domain_to_ascii(name).map_err(|_| wrong())?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if ascii.is_empty() || ascii.len() > 253 || !ascii.bytes().all(fits) || ascii.contains("..") {
        return Err(wrong());
    }
    Ok(HostPattern { name: ascii, is_suffix, port })
}

fn method(text: &str) -> Result<String, Wrong> {
    if !is_token(text) {
        return Err(Wrong::new(format!("is {}, which is no method", quoted(text)), "a method such as `GET`"));
    }
    let upper = text.to_ascii_uppercase();
    let is_slip = matches!(&*upper, "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS");
    if is_slip && upper != text {
        let wrong = Wrong::new(format!("is {}, and methods are case-sensitive", quoted(text)), "`GET`");
        return Err(wrong.instead(upper));
    }
    Ok(text.to_owned())
}

/// The one of the three keys that is there.
fn path(section: &Section<'_>, reader: &mut Reader<'_>) -> Option<PathPattern> {
    let keys = ["path", "path_prefix", "path_regex"];
    let all: Vec<&Entry> = keys.into_iter().filter_map(|key| section.find(key)).collect();
    let &[entry] = all.as_slice() else {
        let [first, second, ..] = all.as_slice() else { return Some(PathPattern::Any) };
        let message = format!("`{}` and `{}` exclude each other", first.key, second.key);
        reader.report.at(second.key_place.max(first.key_place), message).note("keep one of them");
        return None;
    };
    match entry.key.as_str() {
        "path" => reader.parsed(entry, PATH_FORM, plain).map(|path| PathPattern::Exact(path.value)),
        "path_prefix" => {
            let read = reader.parsed(entry, PATH_FORM, plain)?;
            let prefix = read.value.trim_end_matches('/');
            Some(PathPattern::Prefix(if prefix.is_empty() { "/" } else { prefix }.to_owned()))
        }
        _ => reader
            .word(entry, "a regular expression", expression)
            .map(|regex| PathPattern::Regex(regex.value)),
    }
}

/// A path as requests have it once it has its one form (docs/routing.md).
pub(super) fn plain(text: &str) -> Result<String, Wrong> {
    let wrong = |what: &str| Wrong::new(format!("is {}, {what}", quoted(text)), PATH_FORM);
    if !text.starts_with('/') {
        return Err(wrong("which does not begin with a slash").instead(format!("/{text}")));
    }
    if let Some(at) = text.find(['?', '#']) {
        return Err(wrong("with more than a path").instead(&text[..at]));
    }
    if let Some(byte) = text.bytes().find(|&byte| !PathPattern::may_have(byte) || byte == b'\\') {
        let wrong = wrong("with characters that have to be escaped, such as `%20`");
        let is_one = byte.is_ascii_graphic() && byte != b'\\';
        return Err(match is_one {
            true => wrong.instead(text.replace(char::from(byte), &format!("%{byte:02X}"))),
            false => wrong,
        });
    }
    if text.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(wrong("with dot segments, which no request has here"));
    }
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let digits = rest.get(at + 1..at + 3).unwrap_or_default();
        let Ok(value) = u8::from_str_radix(digits, 16) else { return Err(wrong("with a broken escape")) };
        // Marks that part a path, and those that may not stand in one, have to be escaped; others must not be.
        let is_plain = PathPattern::may_have(value) && !b"%/\\;?#".contains(&value);
        if is_plain || digits != digits.to_ascii_uppercase() {
            let form = if is_plain { char::from(value).to_string() } else { format!("%{value:02X}") };
            let instead = text.replace(&format!("%{digits}"), &form);
            return Err(wrong("in a form that no request has here").instead(instead));
        }
        rest = &rest[at + 3..];
    }
    Ok(text.to_owned())
}

fn expression(text: &str) -> Result<Regex, Wrong> {
    if text.is_empty() {
        return Err(Wrong::new("is empty", "an expression such as '^/v([0-9]+)/'"));
    }
    RegexBuilder::new(text).size_limit(EXPRESSION).build().map_err(|fault| {
        let told = fault.to_string();
        let last = told.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let wrong = Wrong::new(
            format!("is {}, which is no regular expression: {last}", quoted(text)),
            "an expression such as '^/v([0-9]+)/'",
        );
        wrong.note("the syntax is that of RE2 and of Rust's regex, in single quotes")
    })
}

/// Conditions on headers, parameters or cookies.
pub(in crate::config::raw) fn fields(
    entry: Option<&Entry>,
    is_header: bool,
    reader: &mut Reader<'_>,
) -> Option<Vec<FieldMatch>> {
    let Some(entry) = entry else { return Some(Vec::new()) };
    let entries = match entry.node.typed() {
        Typed::Map(entries) if !entries.is_empty() => entries,
        _ => {
            reader.refuse(entry, "a mapping from names to values such as `{X-Beta: yes}`");
            return None;
        }
    };
    let mut all: Vec<FieldMatch> = Vec::with_capacity(entries.len());
    for one in entries {
        let name = if is_header { one.key.to_ascii_lowercase() } else { one.key.clone() };
        let spot = reader.key_spot(one);
        if one.key.is_empty() || is_header && !is_token(&one.key) {
            let wrong = Wrong::bare(format!("is {}, which is no name", quoted(&one.key)));
            reader.report.wrong(&spot, &format!("an entry of `{}`", entry.key), wrong);
        } else if all.iter().any(|other| other.name == name) {
            let wrong = Wrong::bare(format!("{} is there already, in another spelling", quoted(&one.key)));
            reader.report.wrong(&spot, &format!("an entry of `{}`", entry.key), wrong);
        } else if let Some(test) = test(&one.node, &one.key, reader) {
            all.push(FieldMatch { name, test });
        }
    }
    (all.len() == entries.len()).then_some(all)
}

/// What holds for a value. Texts are taken as they are written: `2.10` and `yes` are no numbers and truths here.
fn test(node: &Node, name: &str, reader: &mut Reader<'_>) -> Option<FieldTest> {
    let values = |items: &[Node]| -> Option<Vec<String>> {
        let texts = items.iter().map(|item| match item.typed() {
            Typed::Null | Typed::List(_) | Typed::Map(_) => None,
            _ => item.text().map(str::to_owned),
        });
        texts.collect()
    };
    let found_test = match node.typed() {
        Typed::List(items) if !items.is_empty() => values(items).map(FieldTest::Is),
        Typed::Map([only]) if only.key == "present" => {
            return reader.switch(only).map(|wanted| FieldTest::Present(wanted.value));
        }
        Typed::Map([only]) if only.key == "regex" => {
            return reader
                .word(only, "a regular expression", expression)
                .map(|read| FieldTest::Regex(read.value));
        }
        Typed::Map(_) | Typed::List(_) | Typed::Null => None,
        _ => values(std::slice::from_ref(node)).map(FieldTest::Is),
    };
    if found_test.is_none() {
        let spot = reader.spot_of(node);
        reader.report.wrong(&spot, &format!("`{name}`"), Wrong::new(found(node), FIELD_FORM));
    }
    found_test
}
