//! `tests`: requests, and what has to become of each before the config is taken.

use std::net::IpAddr;

use crate::config::error::{Wrong, quoted};
use crate::config::model::routing_test::ExpectedAuth;
use crate::config::model::{Expectation, ExpectedAnswer, RoutingTest, SampleCertificate, SampleRequest};
use crate::config::origin::Written;
use crate::config::raw::group::list;
use crate::config::raw::listener::route::matches::{fields, texts};
use crate::config::raw::listener::route::route_name;
use crate::config::raw::reader::{Reader, found, is_off};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::words::{is_token, name};
use crate::config::yaml::{Entry, Node, Typed};

const REQUEST_FORM: &str = "a method and a URL such as `GET https://shop.example/api/x`";
const PATH_FORM: &str = "a path such as `/v2/x`, with or without a query";
const LOCATION_FORM: &str = "a URL such as `https://shop.example/`";
const VALUE_FORM: &str = "a value, or a list of values";

/// Walks the `tests` of one file.
pub(in crate::config::raw) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> Vec<Written<RoutingTest>> {
    let expected = "a list, each item with `request` and `expect`";
    let items = list(entry, reader, expected).unwrap_or_default();
    items.iter().filter_map(|item| test(item, reader)).collect()
}

/// One test. What is wrong with it later is wrong at its request.
fn test(item: &Node, reader: &mut Reader<'_>) -> Option<Written<RoutingTest>> {
    let section = reader.section("an entry of `tests`", item, &shape::ROUTING_TEST)?;
    for (key, form) in [("request", REQUEST_FORM), ("expect", "something such as `expect: {target: web}`")] {
        if section.find(key).is_none() && !section.is_misspelt(key) {
            let wrong = Wrong::new(format!("has no `{key}`"), form);
            reader.report.wrong(&reader.spot_of(item), "this test", wrong);
        }
    }
    let request = section.find("request").and_then(|entry| reader.parsed(entry, REQUEST_FORM, request));
    let listener = section.find("listener").map(|entry| reader.word(entry, "the name of a listener", name));
    let from =
        section.find("from").map(|entry| reader.parsed(entry, "an address such as `10.1.2.3`", address));
    let headers = pairs(section.find("headers"), reader);
    let cookies = pairs(section.find("cookies"), reader);
    let certificate = section.find("client_cert").map(|entry| (entry, certificate(entry, reader)));
    let expect = section.find("expect").map(|entry| expectation(entry, reader));
    let keys = ["listener", "from", "headers", "cookies", "client_cert"];
    if keys.iter().any(|key| section.is_misspelt(key)) {
        return None;
    }
    let (mut headers, cookies, expect, request) = (headers?, cookies?, expect??, request?);
    if !cookies.is_empty() {
        let all: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        headers.push(("Cookie".to_owned(), all.join("; ")));
    }
    let mut sample = request.value;
    if let Some(listener) = listener {
        sample.listener = Some(listener?.value);
    }
    if let Some(from) = from {
        sample.from = from?.value;
    }
    if let Some((entry, certificate)) = certificate {
        sample.certificate = Some(certificate?);
        if !sample.is_tls {
            let wrong = Wrong::bare("is shown by a request whose URL begins with `http://`");
            let wrong = wrong.note("a client shows its certificate over TLS: write `https://`");
            reader.report.wrong(&reader.key_spot(entry), "`client_cert`", wrong);
            return None;
        }
    }
    sample.headers = headers;
    Some(Written::new(RoutingTest { request: sample, expect }, request.spot))
}

fn request(text: &str) -> Result<SampleRequest, Wrong> {
    let wrong = |what: &str| Wrong::new(format!("is {}, {what}", quoted(text)), REQUEST_FORM);
    let (method, url) = text.trim().split_once(' ').ok_or_else(|| wrong("which is not both"))?;
    if url.contains('@') {
        return Err(Wrong::new("has a user in its URL, or an `@`, which is written `%40`", REQUEST_FORM));
    }
    if !is_token(method) {
        return Err(wrong("whose method is none"));
    }
    SampleRequest::new(method, url.trim_start()).map_err(wrong)
}

/// A certificate that nobody has issued; without a key it says nothing.
fn certificate(entry: &Entry, reader: &mut Reader<'_>) -> Option<SampleCertificate> {
    const SUBJECT: &str = "a subject such as `CN=robot`";
    const NAMES: &str = "a name such as `r2.robots.example`, or a list of them";
    let section = reader.section("`client_cert`", &entry.node, &shape::SAMPLE_CERTIFICATE)?;
    let whole = |text: &str, form: &str| match text {
        "" => Err(Wrong::new("is empty", form)),
        _ => Ok(text.to_owned()),
    };
    let subject =
        section.find("subject").map(|entry| reader.word(entry, SUBJECT, |text| whole(text, SUBJECT)));
    let names = texts(section.find("san"), NAMES, reader, |text| whole(text, NAMES));
    if ["subject", "san"].iter().any(|key| section.is_misspelt(key)) {
        return None;
    }
    let subject = match subject {
        Some(subject) => subject?.value,
        None => String::new(),
    };
    Some(SampleCertificate { subject, names: names? })
}

fn address(text: &str) -> Result<IpAddr, Wrong> {
    let wrong = || Wrong::new(format!("is {}", quoted(text)), "an address such as `10.1.2.3`");
    text.parse().map_err(|_| wrong())
}

/// Names with values, in their order, each as it is written: `2.10` and `yes` are no numbers and truths here.
fn pairs(entry: Option<&Entry>, reader: &mut Reader<'_>) -> Option<Vec<(String, String)>> {
    let Some(entry) = entry else { return Some(Vec::new()) };
    let Typed::Map(entries) = entry.node.typed() else {
        reader.refuse(entry, "a mapping from names to values such as `{X-Beta: yes}`");
        return None;
    };
    let mut all = Vec::with_capacity(entries.len());
    let mut is_whole = true;
    for one in entries {
        let read = pair(one, &entry.key);
        is_whole &= read.is_ok();
        match read {
            Ok(pairs) => all.extend(pairs),
            Err(wrong) => {
                let spot = reader.spot(one);
                reader.report.wrong(&spot, &format!("`{}`", one.key), wrong);
            }
        }
    }
    is_whole.then_some(all)
}

fn pair(one: &Entry, key: &str) -> Result<Vec<(String, String)>, Wrong> {
    if !is_token(&one.key) {
        return Err(Wrong::bare("is no name of one"));
    }
    if key == "headers" && one.key.eq_ignore_ascii_case("host") {
        return Err(Wrong::bare("is what the URL of `request` says"));
    }
    let items = match one.node.typed() {
        Typed::List(items) if !items.is_empty() && key == "headers" => items,
        _ => std::slice::from_ref(&one.node),
    };
    let value = |item: &Node| match (item.typed(), item.text()) {
        (Typed::Null | Typed::List(_) | Typed::Map(_), _) | (_, None) => {
            Err(Wrong::new(found(item), VALUE_FORM))
        }
        (_, Some(text)) if text.chars().any(|c| c.is_control() && c != '\t') => {
            Err(Wrong::bare("has a character that no value of it has"))
        }
        (_, Some(text)) if key == "cookies" && text.contains(';') => {
            Err(Wrong::bare("has a `;`, with which a cookie ends"))
        }
        (_, Some(text)) => Ok((one.key.clone(), text.to_owned())),
    };
    items.iter().map(value).collect()
}

fn expectation(entry: &Entry, reader: &mut Reader<'_>) -> Option<Expectation> {
    let section = reader.section("`expect`", &entry.node, &shape::EXPECT)?;
    let keys = ["target", "route", "path", "headers", "status", "location", "auth"];
    if keys.iter().any(|key| section.is_misspelt(key)) {
        return None;
    }
    if keys.iter().all(|key| section.find(key).is_none()) {
        let wrong = Wrong::new("expects nothing", "something such as `expect: {target: web}`");
        reader.report.wrong(&reader.key_spot(entry), "this test", wrong);
        return None;
    }
    let targets = texts(section.find("target"), "the name of a target, or a list of them", reader, name);
    let route = section.find("route").map(|entry| reader.word(entry, "the name of a route", route_name));
    let location = section.find("location").map(|entry| reader.parsed(entry, LOCATION_FORM, location));
    let path = section.find("path").map(|entry| reader.parsed(entry, PATH_FORM, path));
    let headers = fields(section.find("headers"), true, reader);
    let auth = section.find("auth").map(|entry| auth(entry, reader));
    let answer = section.find("status").map(|entry| answer(entry, reader));
    let mut expect = Expectation { targets: targets?, headers: headers?, ..Expectation::default() };
    if let Some(route) = route {
        expect.route = Some(route?.value);
    }
    if let Some(path) = path {
        expect.path = Some(path?.value);
    }
    if let Some(auth) = auth {
        expect.auth = Some(auth?);
    }
    if let Some(answer) = answer {
        expect.answer = Some(answer?);
    }
    if let Some(location) = location {
        expect.location = Some(location?.value);
    }
    let is_forwarded = !expect.targets.is_empty() || expect.path.is_some() || !expect.headers.is_empty();
    let is_answered = expect.answer.is_some() || expect.location.is_some();
    if is_forwarded && is_answered {
        let wrong = Wrong::bare("is expected to be answered here and to go to a backend");
        let wrong = wrong.note("`status` and `location` are those of answers that no backend gives");
        reader.report.wrong(&reader.key_spot(entry), "this request", wrong);
        return None;
    }
    Some(expect)
}

fn auth(entry: &Entry, reader: &mut Reader<'_>) -> Option<ExpectedAuth> {
    if is_off(&entry.node) {
        return Some(ExpectedAuth::Off);
    }
    let rule = reader.word(entry, "the name of one of `auth`, or `off`", name)?;
    Some(ExpectedAuth::Rule(rule.value))
}

fn location(text: &str) -> Result<String, Wrong> {
    if text.is_empty() { Err(Wrong::new("is empty", LOCATION_FORM)) } else { Ok(text.to_owned()) }
}

fn path(text: &str) -> Result<String, Wrong> {
    if text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(format!("is {}", quoted(text)), PATH_FORM))
}

fn answer(entry: &Entry, reader: &mut Reader<'_>) -> Option<ExpectedAnswer> {
    if entry.node.text().is_some_and(|text| text.eq_ignore_ascii_case("drop")) {
        return Some(ExpectedAnswer::Drop);
    }
    let status = reader.number(entry, 100..=599, "`drop`, or a status")?;
    Some(ExpectedAnswer::Status(u16::try_from(status.value).unwrap_or(u16::MAX)))
}
