//! Which certificate a client sees, by the name that it asks for, and for which other names it would have seen the same.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{LiveCertificate, LiveCertificates};
use crate::config::model::tls::{Identity, ListenerTls, UnknownSni};

/// Which certificates the clients of a listener see.
#[derive(Clone, Debug)]
pub struct ServedNames(Arc<Chooser>);

impl ServedNames {
    /// Those of these certificates, of which the first is for everybody who asks for none of their names.
    #[must_use]
    pub fn new(identities: &[Arc<Identity>]) -> ServedNames {
        ServedNames(Arc::new(Chooser::new(identities)))
    }

    /// Those of a listener; what it orders is found in `live`.
    #[must_use]
    pub fn of(tls: &ListenerTls, live: &LiveCertificates) -> ServedNames {
        let refuses = tls.unknown_sni == UnknownSni::Refuse;
        let ordered = tls.ordered.iter().map(|order| ServedCertificate::Live(live.get(order)));
        let read = tls.identities.iter().map(|identity| ServedCertificate::Read(Arc::clone(identity)));
        let all =
            if tls.orders_first { ordered.chain(read).collect() } else { read.chain(ordered).collect() };
        ServedNames(Arc::new(Chooser { refuses, ..Chooser::of(all) }))
    }

    /// All of them; the first is for everybody who asks for none of their names.
    #[must_use]
    pub fn all(&self) -> &[ServedCertificate] {
        &self.0.all
    }

    /// Whether all clients see the same, whatever they ask for.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.0.all.len() <= 1 && !self.0.refuses
    }

    /// Whether a client that has asked for `sni` (`None`: for no name) has seen the very same certificates as one that asks for `host`:
    /// a name in any case, perhaps with a dot at its end, or an IP address, which nobody can ask for (RFC 6066 §3). Without a port.
    #[must_use]
    pub fn is_same(&self, sni: Option<&str>, host: &str) -> bool {
        let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let asked = Some(host).filter(|_| inside.parse::<IpAddr>().is_err());
        if self.0.refuses && !self.has(asked) {
            return false;
        }
        let (shown, other) = (self.0.candidates(sni), self.0.candidates(asked));
        std::ptr::eq(shown, other)
            || shown.len() == other.len() && shown.iter().zip(other).all(|(one, other)| one.is(other))
    }

    /// Whether a certificate is for this name; `None`: for none.
    #[must_use]
    pub fn has(&self, sni: Option<&str>) -> bool {
        sni.is_some_and(|sni| self.0.named(sni).is_some())
    }

    pub(super) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::clone(&self.0) as Arc<dyn ResolvesServerCert>
    }
}

thread_local! {
    /// The name that the latest client of this thread has asked for.
    ///
    /// A session without buffers of its own does not tell that name, but asks for a certificate by it, on the thread and in the call in
    /// which it takes in the client's first message.
    static ASKED: RefCell<Option<Box<str>>> = const { RefCell::new(None) };
}

/// Does one step of a handshake, and gives the name that a client has asked for in it (SNI).
pub fn hearing<T>(step: impl FnOnce() -> T) -> (T, Option<Box<str>>) {
    // Of a step that a panic has ended.
    ASKED.take();
    let done = step();
    (done, ASKED.take())
}

/// A certificate that clients may see.
#[derive(Clone, Debug)]
pub enum ServedCertificate {
    /// One that was read.
    Read(Arc<Identity>),
    /// One that is ordered.
    Live(Arc<LiveCertificate>),
}

impl ServedCertificate {
    /// What a client is shown now that asks for this name (`None`: for none).
    fn shown_to(&self, name: Option<&str>) -> Arc<Identity> {
        match self {
            ServedCertificate::Read(identity) => Arc::clone(identity),
            ServedCertificate::Live(live) => live.shown_to(name),
        }
    }

    /// What is shown now.
    #[must_use]
    pub fn identity(&self) -> Arc<Identity> {
        match self {
            ServedCertificate::Read(identity) => Arc::clone(identity),
            ServedCertificate::Live(live) => Arc::clone(&live.shown().identity),
        }
    }

    /// The names it is for, whatever it is at the moment.
    fn names(&self) -> &[String] {
        match self {
            ServedCertificate::Read(identity) => &identity.names,
            ServedCertificate::Live(live) => &live.order().names,
        }
    }

    fn is(&self, other: &ServedCertificate) -> bool {
        match (self, other) {
            (ServedCertificate::Read(one), ServedCertificate::Read(other)) => Arc::ptr_eq(one, other),
            (ServedCertificate::Live(one), ServedCertificate::Live(other)) => Arc::ptr_eq(one, other),
            (ServedCertificate::Read(_), ServedCertificate::Live(_))
            | (ServedCertificate::Live(_), ServedCertificate::Read(_)) => false,
        }
    }
}

/// Chooses a certificate by the name that the client asks for (SNI, RFC 6066 §3).
#[derive(Debug)]
struct Chooser {
    all: Vec<ServedCertificate>,
    /// By name.
    exact: HashMap<String, Vec<ServedCertificate>>,
    /// By name without its star: `.example.com`.
    wildcard: HashMap<String, Vec<ServedCertificate>>,
    /// For everybody else: the first, and those with the same names (another kind of key).
    default: Vec<ServedCertificate>,
    /// There is nobody else.
    refuses: bool,
}

impl Chooser {
    fn new(identities: &[Arc<Identity>]) -> Chooser {
        Chooser::of(identities.iter().map(|identity| ServedCertificate::Read(Arc::clone(identity))).collect())
    }

    fn of(all: Vec<ServedCertificate>) -> Chooser {
        let (mut exact, mut wildcard) = (HashMap::new(), HashMap::new());
        let mut default = Vec::new();
        for one in &all {
            for name in one.names() {
                let (map, name) = match name.strip_prefix('*') {
                    Some(rest) => (&mut wildcard, rest),
                    None => (&mut exact, name.as_str()),
                };
                let named: &mut Vec<ServedCertificate> = map.entry(name.to_owned()).or_default();
                // A certificate may say a name twice.
                if !named.last().is_some_and(|last| last.is(one)) {
                    named.push(one.clone());
                }
            }
            if all.first().is_some_and(|first| first.names() == one.names()) {
                default.push(one.clone());
            }
        }
        Chooser { all, exact, wildcard, default, refuses: false }
    }

    fn candidates(&self, name: Option<&str>) -> &[ServedCertificate] {
        name.and_then(|name| self.named(name)).unwrap_or(&self.default)
    }

    /// Those that are for this name.
    fn named(&self, name: &str) -> Option<&[ServedCertificate]> {
        let name = lower(name.trim_end_matches('.'));
        // A star stands for one label, the leftmost (RFC 9525 §6.3).
        let parent = || self.wildcard.get(&name[name.find('.')?..]);
        self.exact.get(&*name).or_else(parent).map(Vec::as_slice)
    }
}

/// Since 1970.
fn seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The same in lower case, which it mostly is already.
fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

impl ResolvesServerCert for Chooser {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        ASKED.set(hello.server_name().map(Into::into));
        let name = hello.server_name();
        if self.refuses && name.is_none_or(|name| self.named(name).is_none()) {
            // Who was heard before has been told so by then.
            return None;
        }
        let mut first = None;
        let asked = name.map(|name| lower(name.trim_end_matches('.')));
        for candidate in self.candidates(name) {
            let identity = candidate.shown_to(asked.as_deref());
            if identity.certified.key.choose_scheme(hello.signature_schemes()).is_some() {
                return Some(Arc::clone(identity.shown(seconds)));
            }
            first.get_or_insert(identity);
        }
        first.map(|identity| Arc::clone(identity.shown(seconds)))
    }
}

#[cfg(test)]
mod tests;
