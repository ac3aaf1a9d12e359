//! What a backend gets of a request, and a client of an answer: written by what writes them on the wire.

use std::net::IpAddr;

use super::chain::{Destiny, HeaderChange, HeaderPair, Side};
use crate::config::model::route::Action;
use crate::config::model::{HostHeader, SampleRequest};
use crate::message::{Cause, ClientAddress, Framing, Head};
use crate::proxy::http::h1::edit::RequestEdits;
use crate::proxy::http::h1::write::{self, About, Host};
use crate::proxy::http::hash_key::{Sender, hash_key};
use crate::proxy::http::routing::found::{groups, sent_path};
use crate::proxy::http::sticky;
use crate::route::{TextFacts, render};
use crate::snapshot::{Destination, Listener, Route};

/// What stands for the Host of a backend that is not chosen yet.
const OF_BACKEND: &str = "{backend}";

/// A request that nobody has sent, at a listener.
pub(super) struct SampleSent<'a> {
    /// Where it came in.
    pub(super) listener: &'a Listener,
    /// As it was given.
    pub(super) request: &'a SampleRequest,
    /// Its head.
    pub(super) head: &'a Head,
    /// Who asks.
    pub(super) sender: Sender,
    /// As trusted proxies tell it.
    pub(super) client: Option<IpAddr>,
}

impl SampleSent<'_> {
    /// What a backend of `destination` gets; `None`: there is no path that could be sent there.
    pub(super) fn side(
        &self,
        route: &Route,
        destination: &Destination,
        path: &[u8],
        percent: f64,
    ) -> Option<Side> {
        let Destination { target, rules, .. } = destination;
        let facts = self.facts(route, path, &target.name);
        let other = if self.listener.straight().is_some() {
            None
        } else {
            sent_path(route, &self.listener.config.normalize, path, &facts).ok()?
        };
        let other = other.map(|path| self.head.with_path(&path));
        let head = other.as_ref().unwrap_or(self.head);
        let before = self.written(head, &target.config.host);
        let mut after = before.clone();
        if !route.request_edits.is_empty() {
            let mut lines = Vec::new();
            route.request_edits.write(&facts, &mut lines);
            RequestEdits { edits: &route.request_edits, lines: &lines }.apply(&mut after, head);
        }
        let is_hash = target.config.balance.algorithm.is_hash();
        let trusts = |proxy: IpAddr| self.listener.trusts(proxy);
        let key = if is_hash { hash_key(&rules.hash_key, self.head, self.sender, trusts) } else { None };
        let (before, lines) = (pairs(&before), pairs(&after));
        Some(Side {
            target: target.name.to_string(),
            percent,
            path: shown(head.path()),
            edits: changes(&before, &lines),
            answer_lines: self.answer_lines(route, &facts, Head::answer(200)),
            pin: sticky::pin(target, self.head).map(|backend| backend.name.to_string()),
            lines,
            key,
        })
    }

    /// An answer of our own on this route.
    pub(super) fn answered(&self, route: &Route, path: &[u8], status: u16, cause: Option<Cause>) -> Destiny {
        let facts = self.facts(route, path, "");
        let mut answer = Head::answer(status);
        let mut location = None;
        match &route.config.action {
            Action::Redirect(redirect) if cause.is_none() => {
                let to = render::location(&redirect.to, &facts);
                location = Some(shown(&to)).filter(|to| !to.is_empty());
            }
            Action::Respond(_) if cause.is_none() => {
                route.own_lines.apply(&mut answer, &facts);
            }
            _ => {}
        }
        let lines = self.answer_lines(route, &facts, answer);
        Destiny::Answered { status, cause: cause.map(Cause::token), location, lines }
    }

    fn answer_lines(&self, route: &Route, facts: &TextFacts<'_>, mut answer: Head) -> Vec<HeaderPair> {
        route.answer_edits.apply(&mut answer, facts);
        pairs(answer.at(answer.start_and_lines()))
    }

    /// The head for a backend, before the route has the last word.
    fn written(&self, head: &Head, host: &HostHeader) -> Vec<u8> {
        let SampleSent { listener, request, sender, client, .. } = *self;
        let from = ClientAddress::new(request.from, 0);
        let about = About {
            kind: listener.config.forwarded,
            client: Some(&from),
            trusted: sender.trusted,
            real_ip: client.filter(|_| listener.config.x_real_ip),
            scheme: scheme(request.is_tls),
            certificate: &[],
            id: 0,
            retry: 0,
            trace: None,
        };
        let host = match host {
            HostHeader::Pass => Host::Pass { missing: OF_BACKEND },
            HostHeader::Backend => Host::Write(OF_BACKEND),
            HostHeader::Name(name) => Host::Write(name),
        };
        let mut out = Vec::new();
        write::request(&mut out, head, Framing::None, None, &about, None, host);
        out
    }

    fn facts<'f>(&'f self, route: &'f Route, path: &'f [u8], target: &'f str) -> TextFacts<'f> {
        TextFacts {
            head: self.head,
            groups: groups(route, path),
            client: self.client,
            scheme: scheme(self.request.is_tls),
            id: 0,
            target,
            backend: "",
            tls: if self.request.is_tls { "1.3" } else { "" },
            subject: self.request.certificate.as_ref().map_or("", |certificate| &certificate.subject),
            told: None,
            user: "",
        }
    }
}

const fn scheme(is_tls: bool) -> &'static str {
    if is_tls { "https" } else { "http" }
}

/// The lines of a head as it stands on the wire, but for the first one.
fn pairs(head: &[u8]) -> Vec<HeaderPair> {
    let lines = head.split(|&byte| byte == b'\n').skip(1).map(<[u8]>::trim_ascii_end);
    let pair = |line: &[u8]| {
        let colon = memchr::memchr(b':', line)?;
        Some(HeaderPair { name: shown(&line[..colon]), value: shown(line[colon + 1..].trim_ascii()) })
    };
    lines.filter_map(pair).collect()
}

/// What differs, name by name.
fn changes(before: &[HeaderPair], after: &[HeaderPair]) -> Vec<HeaderChange> {
    let values = |lines: &[HeaderPair], name: &str| -> Vec<String> {
        let same = lines.iter().filter(|line| line.name.eq_ignore_ascii_case(name));
        same.map(|line| line.value.clone()).collect()
    };
    let mut changes: Vec<HeaderChange> = Vec::new();
    for HeaderPair { name, .. } in after.iter().chain(before) {
        let (was, is) = (values(before, name), values(after, name));
        if was != is && !changes.iter().any(|change| change.name.eq_ignore_ascii_case(name)) {
            changes.push(HeaderChange { name: name.clone(), before: was, after: is });
        }
    }
    changes
}

/// Bytes as people read them.
pub(super) fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => bytes.escape_ascii().to_string(),
    }
}
