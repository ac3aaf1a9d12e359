//! Routes: which requests of a listener go where, and what is changed on the way, in the accepted form.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use regex::bytes::Regex;

use super::GrpcStatuses;
use super::Share;
use super::access::AccessList;
use super::auth::Auth;
use super::balance::HashKey;
use super::cache::{CachePolicy, CompressPolicy};
use super::rate::RateLimit;
use super::resilience::Retries;
use super::text::Text;
use super::wildcard::Wildcard;

/// Which requests go where, and what is changed on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteConfig {
    /// Unique inside its listener; by default its match, written canonically: `shop.example/api`.
    pub name: String,
    /// Routes with a number are asked before all others, the lowest first.
    pub order: Option<u32>,
    /// Which requests are its own.
    pub matches: RouteMatch,
    /// What becomes of them.
    pub action: Action,
    /// What it takes are whole connections, by what their clients ask for under TLS, and nothing of them is decrypted.
    pub is_passthrough: bool,
    /// Whose clients may have it at all: each of these lets them in, beside those of the listener.
    pub access: Vec<Arc<AccessList>>,
    /// How its clients show who they are, by itself or by its listener; `None`: they need not.
    pub auth: Option<Arc<Auth>>,
    /// How often somebody may ask, beside what its listener says.
    pub rate_limits: Vec<Arc<RateLimit>>,
    /// What backends get as path; `None`: what the client sent.
    pub rewrite: Option<Rewrite>,
    /// Header edits in both directions; those of the listener stand before those of the route.
    pub headers: HeaderEdits,
    /// Who gets a copy of a share of the requests.
    pub mirror: Option<Mirror>,
    /// What is answered from what is stored; `None`: nothing.
    pub cache: Option<Arc<CachePolicy>>,
    /// Which answers are compressed; `None`: none.
    pub compress: Option<Arc<CompressPolicy>>,
    /// What it says instead of its listener and its target.
    pub own: RouteOverrides,
}

impl RouteConfig {
    /// One that takes every request to the target of this name: that of the short form.
    #[must_use]
    pub fn catch_all(target: &str) -> RouteConfig {
        RouteConfig {
            name: "*".to_owned(),
            order: None,
            matches: RouteMatch::default(),
            action: Action::Forward(target.into()),
            is_passthrough: false,
            access: Vec::new(),
            auth: None,
            rate_limits: Vec::new(),
            rewrite: None,
            headers: HeaderEdits::default(),
            mirror: None,
            cache: None,
            compress: None,
            own: RouteOverrides::default(),
        }
    }

    /// The names of all targets that it may lead to, copies aside.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        let (one, several) = match &self.action {
            Action::Forward(target) => (Some(&**target), &[][..]),
            Action::Split(split) => (None, &*split.sides),
            Action::Redirect(_) | Action::Respond(_) => (None, &[][..]),
        };
        one.into_iter().chain(several.iter().map(|side| &*side.target))
    }
}

/// Which requests are a route's own: all conditions must hold. The default takes every request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteMatch {
    /// One of these; none: any host.
    pub hosts: Vec<HostPattern>,
    /// What the path is like.
    pub path: PathPattern,
    /// One of these, as they are written (methods are case-sensitive); none: any.
    pub methods: Vec<String>,
    /// Header lines: one of the lines of that name passes.
    pub headers: Vec<FieldMatch>,
    /// Parameters of the query.
    pub queries: Vec<FieldMatch>,
    /// Cookies.
    pub cookies: Vec<FieldMatch>,
    /// The client's address, as trusted proxies tell it, is in one of these; none: any.
    pub clients: Vec<IpNet>,
    /// What its client's certificate is like.
    pub certificate: CertificateMatch,
    /// One of these is among what its client offers to speak under TLS (ALPN, RFC 7301); none: whatever that is. Of connections that
    /// are passed through alone.
    pub alpn: Vec<String>,
}

impl RouteMatch {
    /// How many conditions it has beside host and path. Of two routes with the same host and path the one with more goes first.
    #[must_use]
    pub fn conditions(&self) -> usize {
        let lists = [self.methods.is_empty(), self.clients.is_empty(), self.alpn.is_empty()];
        let lists = lists.into_iter().filter(|is_empty| !is_empty).count();
        let CertificateMatch { subjects, names } = &self.certificate;
        let facts = usize::from(!subjects.is_empty()) + usize::from(!names.is_empty());
        lists + facts + self.headers.len() + self.queries.len() + self.cookies.len()
    }

    /// Whether it takes every request.
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.hosts.is_empty() && self.path == PathPattern::Any && self.conditions() == 0
    }
}

/// What a verified certificate of the client is like. Where one of the two lists has an item, a client without a certificate is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateMatch {
    /// One of these stands for its subject, as RFC 4514 writes it; none: any subject.
    pub subjects: Vec<Wildcard>,
    /// One of these stands for one of its other names (subjectAltName): a DNS name, an email address, a URI or an IP address; none:
    /// any names.
    pub names: Vec<Wildcard>,
}

impl CertificateMatch {
    /// Whether it asks for nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.subjects.is_empty() && self.names.is_empty()
    }
}

/// The host of a request, in lower case, in its ASCII form, without a dot at the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPattern {
    /// The name, without the `*.` of a suffix.
    pub name: String,
    /// `*.name`: any name with at least one label before it.
    pub is_suffix: bool,
    /// With this port; `None`: any port or none.
    pub port: Option<u16>,
}

/// What the path of a request, without the query, is like. Paths are case-sensitive.
#[derive(Clone, Debug, Default)]
pub enum PathPattern {
    /// Anything, also `*`.
    #[default]
    Any,
    /// Just this.
    Exact(String),
    /// This and all below, segment by segment: `/api` and `/api/x`, never `/apiary`. Without a slash at the end, but for `/`.
    Prefix(String),
    /// What this finds anywhere in it.
    Regex(Regex),
}

impl PathPattern {
    /// Whether a byte may stand in a path as it is (RFC 3986 §3.3); others have to be escaped.
    #[must_use]
    pub fn may_have(byte: u8) -> bool {
        let is_other = matches!(byte, b'"' | b'<' | b'>' | b'[' | b']' | b'^' | b'`' | b'{' | b'|' | b'}');
        byte.is_ascii_graphic() && !is_other
    }
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &PathPattern) -> bool {
        match (self, other) {
            (PathPattern::Any, PathPattern::Any) => true,
            (PathPattern::Exact(one), PathPattern::Exact(other))
            | (PathPattern::Prefix(one), PathPattern::Prefix(other)) => one == other,
            (PathPattern::Regex(one), PathPattern::Regex(other)) => one.as_str() == other.as_str(),
            _ => false,
        }
    }
}

/// A condition on a header, a parameter or a cookie.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldMatch {
    /// Its name; of a header in lower case.
    pub name: String,
    /// What holds for it.
    pub test: FieldTest,
}

/// What holds for a value.
#[derive(Clone, Debug)]
pub enum FieldTest {
    /// It is one of these, byte for byte.
    Is(Vec<String>),
    /// It is there at all, or is not.
    Present(bool),
    /// This finds something in it.
    Regex(Regex),
}

impl PartialEq for FieldTest {
    fn eq(&self, other: &FieldTest) -> bool {
        match (self, other) {
            (FieldTest::Is(one), FieldTest::Is(other)) => one == other,
            (FieldTest::Present(one), FieldTest::Present(other)) => one == other,
            (FieldTest::Regex(one), FieldTest::Regex(other)) => one.as_str() == other.as_str(),
            _ => false,
        }
    }
}

/// What becomes of a route's requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// They go to the target of this name.
    Forward(Arc<str>),
    /// To one of several targets.
    Split(Split),
    /// The client is sent elsewhere.
    Redirect(Redirect),
    /// An answer of our own.
    Respond(Arc<Respond>),
}

/// Targets that share a route's requests by weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// In the order of the file; at least one has a weight above 0.
    pub sides: Vec<SplitSide>,
    /// Who goes where.
    pub by: SplitBy,
}

/// One target of a split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitSide {
    /// Its name: on that hangs which clients are sent to it.
    pub target: Arc<str>,
    /// How much it gets beside the others, 0 to 1,000,000.
    pub weight: u32,
}

/// Who goes to which side of a split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SplitBy {
    /// Chance decides, request by request.
    #[default]
    Chance,
    /// The same of a request always goes to the same side, and where weights move to another one only as far as they do. Where a
    /// request has no such thing it is the client's address.
    Key(HashKey),
}

/// Where a client is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The `Location`.
    pub to: Text,
    /// 301, 302, 303, 307 or 308. Default 308.
    pub status: u16,
}

/// An answer of our own.
#[derive(Clone, Debug, PartialEq)]
pub struct Respond {
    /// 200 to 599.
    pub status: u16,
    /// Its body, at most 1 MiB.
    pub body: Vec<u8>,
    /// Its `Content-Type`; `None`: it has none.
    pub content_type: Option<String>,
    /// Further header lines.
    pub headers: Vec<(String, Text)>,
}

/// What backends get as path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// A prefix less, then a prefix more; the query stays.
    Prefix {
        /// Taken away, by segments; empty: nothing.
        strip: String,
        /// Put before; empty: nothing.
        add: String,
    },
    /// This instead; without a `?` in it the query stays.
    Path(Text),
}

/// Edits of header lines, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderEdits {
    /// Of requests, on their way to a backend.
    pub request: Vec<HeaderEdit>,
    /// Of answers, on their way to the client.
    pub response: Vec<HeaderEdit>,
}

impl HeaderEdits {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty()
    }
}

/// One edit of a header. Names are as written; they are compared without regard to case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderEdit {
    /// All lines of this name go, and this one comes.
    Set(String, Text),
    /// This line comes beside those that are there.
    Add(String, Text),
    /// All lines of this name go.
    Remove(String),
}

impl HeaderEdit {
    /// Whose lines it is about.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            HeaderEdit::Set(name, _) | HeaderEdit::Add(name, _) | HeaderEdit::Remove(name) => name,
        }
    }
}

/// A target that gets copies of requests, whose answers nobody sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Its name.
    pub target: Arc<str>,
    /// Of how many requests. Default: all.
    pub share: Share,
}

/// What a route says instead of its listener and its target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteOverrides {
    /// Bytes of a request body; `Some(None)` (`off`): any.
    pub body: Option<Option<u64>>,
    /// Between bytes of a body, in either direction.
    pub idle: Option<Duration>,
    /// Silence on an upgraded connection.
    pub tunnel: Option<Duration>,
    /// For all attempts; `Some(None)`: `off`.
    pub total: Option<Option<Duration>>,
    /// Attempts of a request; 1: no retries.
    pub attempts: Option<u8>,
    /// What is tried again: as much of [`Retries`] as `on` says.
    pub retry_on: Option<RetryOn>,
    /// What of a request is hashed.
    pub hash_key: Option<HashKey>,
    /// Protocols that a client may upgrade to, in lower case.
    pub upgrade: Option<Vec<String>>,
}

/// After what a request is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// No connection could be made.
    pub connect: bool,
    /// The connection broke before a byte of the answer.
    pub reset: bool,
    /// The first byte, or the whole head, took too long.
    pub timeout: bool,
    /// The answer has one of these statuses.
    pub statuses: Vec<std::ops::RangeInclusive<u16>>,
    /// A call of gRPC has ended with one of these before it has begun to answer.
    pub grpc: GrpcStatuses,
}

impl RouteOverrides {
    /// What becomes of a target's retries.
    #[must_use]
    pub fn retries(&self, of_target: Option<&Retries>) -> Option<Retries> {
        if self.attempts == Some(1) {
            return None;
        }
        let asked = self.attempts.is_some() || self.retry_on.is_some();
        let mut retries = of_target.cloned().or_else(|| asked.then(Retries::default))?;
        if let Some(attempts) = self.attempts {
            retries.attempts = attempts;
        }
        if let Some(on) = &self.retry_on {
            retries.on_connect = on.connect;
            retries.on_reset = on.reset;
            retries.on_timeout = on.timeout;
            retries.on_statuses.clone_from(&on.statuses);
            retries.on_grpc = on.grpc;
        }
        Some(retries)
    }
}

/// What is done about the different ways to write one path, before routes are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Normalize {
    /// Segments `.` and `..`, also written with `%2e`. Default: resolved.
    pub dot_segments: DotSegments,
    /// `%2F`, and `%5C`. Default: kept.
    pub encoded_slash: EncodedSlash,
    /// Several slashes in a row become one. Default: no.
    pub merge_slashes: bool,
}

impl Default for Normalize {
    fn default() -> Self {
        Normalize {
            dot_segments: DotSegments::Resolve,
            encoded_slash: EncodedSlash::Keep,
            merge_slashes: false,
        }
    }
}

/// What is done about `.` and `..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DotSegments {
    /// They are resolved (RFC 3986 §5.2.4); one that leads above the root is refused.
    Resolve,
    /// They are refused.
    Refuse,
}

impl DotSegments {
    /// Both with the names they have in a config file.
    pub const ALL: &'static [(&'static str, DotSegments)] =
        &[("resolve", DotSegments::Resolve), ("refuse", DotSegments::Refuse)];
}

/// What is done about an escaped slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodedSlash {
    /// It is a part of its segment, and stays as it is.
    Keep,
    /// It is refused.
    Refuse,
}

impl EncodedSlash {
    /// Both with the names they have in a config file.
    pub const ALL: &'static [(&'static str, EncodedSlash)] =
        &[("keep", EncodedSlash::Keep), ("refuse", EncodedSlash::Refuse)];
}
