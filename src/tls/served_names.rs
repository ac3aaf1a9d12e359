//! Which certificate a client sees, by the name that it asks for, and for which other names it would have seen the same.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

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

    /// Those of a listener.
    #[must_use]
    pub fn of(tls: &ListenerTls) -> ServedNames {
        let refuses = tls.unknown_sni == UnknownSni::Refuse;
        ServedNames(Arc::new(Chooser { refuses, ..Chooser::new(&tls.identities) }))
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
            || shown.len() == other.len()
                && shown.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
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

/// Chooses a certificate by the name that the client asks for (SNI, RFC 6066 §3).
#[derive(Debug)]
struct Chooser {
    /// By name.
    exact: HashMap<String, Vec<Arc<Identity>>>,
    /// By name without its star: `.example.com`.
    wildcard: HashMap<String, Vec<Arc<Identity>>>,
    /// For everybody else: the first, and those with the same names (another kind of key).
    default: Vec<Arc<Identity>>,
    /// There is nobody else.
    refuses: bool,
}

impl Chooser {
    fn new(identities: &[Arc<Identity>]) -> Chooser {
        let mut chooser =
            Chooser { exact: HashMap::new(), wildcard: HashMap::new(), default: Vec::new(), refuses: false };
        for identity in identities {
            for name in &identity.names {
                let (map, name) = match name.strip_prefix('*') {
                    Some(rest) => (&mut chooser.wildcard, rest),
                    None => (&mut chooser.exact, name.as_str()),
                };
                map.entry(name.to_owned()).or_default().push(Arc::clone(identity));
            }
            if identities.first().is_some_and(|first| first.names == identity.names) {
                chooser.default.push(Arc::clone(identity));
            }
        }
        chooser
    }

    fn candidates(&self, name: Option<&str>) -> &[Arc<Identity>] {
        name.and_then(|name| self.named(name)).unwrap_or(&self.default)
    }

    /// Those that are for this name.
    fn named(&self, name: &str) -> Option<&[Arc<Identity>]> {
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
        let candidates = self.candidates(name);
        let usable =
            |one: &&Arc<Identity>| one.certified.key.choose_scheme(hello.signature_schemes()).is_some();
        let identity = candidates.iter().find(usable).or(candidates.first())?;
        Some(Arc::clone(identity.shown(seconds)))
    }
}

#[cfg(test)]
mod tests;
