//! Proofs that names are ours, as long as an authority may ask for them: answers to requests (RFC 8555 §8.3), and certificates that say so in
//! a handshake (RFC 8737).
//!
//! Invariants:
//!
//! 1. A proof is there from when it is offered until its [`OfferedProof`] is dropped, however that comes about, and no longer.
//! 2. The two switches say whether there is any of a kind. One goes on before anybody can have been told to ask, and off when the last has
//!    gone; a worker that reads an old value asks for nothing, or looks into an empty map.
//! 3. Who withdraws a proof takes no other one along: of several for one token or name the latest is given.
//! 4. Readers take a pointer and never wait; writers take turns.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::provider;

/// What is agreed on in such a handshake (RFC 8737 §6.2).
pub const ACME_TLS: &[u8] = b"acme-tls/1";
/// Below which path answers are asked for.
const ACME_PATH: &[u8] = b"/.well-known/acme-challenge/";

/// All proofs that an authority may ask for now.
#[derive(Debug, Default)]
pub struct Proofs {
    has_answers: AtomicBool,
    has_certificates: AtomicBool,
    offered: ArcSwap<Offered>,
    turn: Mutex<()>,
}

#[derive(Clone, Debug, Default)]
struct Offered {
    /// By token, each with the number of its proof.
    answers: HashMap<Box<str>, Vec<(u64, Arc<str>)>>,
    /// By name, in the same way.
    certificates: HashMap<Box<str>, Vec<(u64, Arc<ServerConfig>)>>,
    next: u64,
}

/// Takes out what has this number, and the place that is left empty.
fn withdraw<T>(all: &mut HashMap<Box<str>, Vec<(u64, T)>>, key: &str, number: u64) {
    if let Some(of_key) = all.get_mut(key) {
        of_key.retain(|(other, _)| *other != number);
        if of_key.is_empty() {
            all.remove(key);
        }
    }
}

/// A proof that is there as long as this is.
#[derive(Debug)]
pub struct OfferedProof {
    proofs: Arc<Proofs>,
    key: ProofKey,
    number: u64,
}

#[derive(Debug)]
enum ProofKey {
    Token(Box<str>),
    Name(Box<str>),
}

impl Drop for OfferedProof {
    fn drop(&mut self) {
        self.proofs.change(|offered| match &self.key {
            ProofKey::Token(token) => withdraw(&mut offered.answers, token, self.number),
            ProofKey::Name(name) => withdraw(&mut offered.certificates, name, self.number),
        });
    }
}

impl Proofs {
    fn change<T>(&self, change: impl FnOnce(&mut Offered) -> T) -> T {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut offered = Offered::clone(&self.offered.load());
        let changed = change(&mut offered);
        let (answers, certificates) = (!offered.answers.is_empty(), !offered.certificates.is_empty());
        self.offered.store(Arc::new(offered));
        self.has_answers.store(answers, Ordering::Release);
        self.has_certificates.store(certificates, Ordering::Release);
        changed
    }

    /// From now on whoever asks for `token` gets `answer`.
    #[must_use]
    pub fn answer(self: &Arc<Self>, token: &str, answer: &str) -> OfferedProof {
        let number = self.change(|offered| {
            offered.next += 1;
            offered.answers.entry(token.into()).or_default().push((offered.next, answer.into()));
            offered.next
        });
        OfferedProof { proofs: Arc::clone(self), key: ProofKey::Token(token.into()), number }
    }

    /// From now on whoever asks for `name` (in lower case) by [`ACME_TLS`] sees this certificate.
    #[must_use]
    pub fn certify(self: &Arc<Self>, name: &str, certified: CertifiedKey) -> OfferedProof {
        let versions = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = versions.expect("the provider speaks both").with_no_client_auth();
        let mut config = config.with_cert_resolver(Arc::new(Always(Arc::new(certified))));
        config.alpn_protocols = vec![ACME_TLS.to_vec()];
        // Nobody comes again.
        config.send_tls13_tickets = 0;
        let number = self.change(|offered| {
            offered.next += 1;
            offered.certificates.entry(name.into()).or_default().push((offered.next, Arc::new(config)));
            offered.next
        });
        OfferedProof { proofs: Arc::clone(self), key: ProofKey::Name(name.into()), number }
    }

    /// Whether anybody may ask for an answer: everybody else need not be looked at.
    #[must_use]
    #[inline]
    pub fn has_answers(&self) -> bool {
        self.has_answers.load(Ordering::Acquire)
    }

    /// The same of a certificate.
    #[must_use]
    #[inline]
    pub fn has_certificates(&self) -> bool {
        self.has_certificates.load(Ordering::Acquire)
    }

    /// The answer to a GET of this path, if it asks for one.
    #[must_use]
    pub fn answer_to(&self, path: &[u8]) -> Option<Arc<str>> {
        let token = std::str::from_utf8(path.strip_prefix(ACME_PATH)?).ok()?;
        self.offered.load().answers.get(token)?.last().map(|(_, answer)| Arc::clone(answer))
    }

    /// What the session of a client is made with that asks for this name and offers these protocols; `None`: it does not ask for a proof.
    #[must_use]
    pub fn session_for(&self, name: Option<&str>, protocols: &[Box<[u8]>]) -> Option<Arc<ServerConfig>> {
        let [only] = protocols else { return None };
        if **only != *ACME_TLS {
            return None;
        }
        self.offered.load().certificates.get(name?)?.last().map(|(_, config)| Arc::clone(config))
    }
}

/// Shows one certificate to everybody.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::fixtures::identity;

    fn of(text: &str) -> Vec<Box<[u8]>> {
        text.split(' ').map(|one| one.as_bytes().into()).collect()
    }

    #[test]
    fn a_proof_is_there_as_long_as_it_is_offered() {
        let proofs = Arc::new(Proofs::default());
        let asked = |token: &str| proofs.answer_to(format!("/.well-known/acme-challenge/{token}").as_bytes());
        assert!(!proofs.has_answers() && asked("a").is_none());
        let first = proofs.answer("a", "a.print");
        let second = proofs.answer("b", "b.print");
        assert!(proofs.has_answers() && !proofs.has_certificates());
        assert_eq!([asked("a").as_deref(), asked("b").as_deref()], [Some("a.print"), Some("b.print")]);
        for other in ["", "c", "a/", "a?b", "../a"] {
            assert_eq!(asked(other), None, "{other}");
        }
        assert_eq!(proofs.answer_to(b"/a"), None);
        drop(first);
        assert!(proofs.has_answers() && asked("a").is_none() && asked("b").is_some());
        let again = proofs.answer("b", "b.other");
        assert_eq!(asked("b").as_deref(), Some("b.other"), "the latest");
        drop(again);
        assert_eq!(asked("b").as_deref(), Some("b.print"), "and nobody else's is gone");
        drop(second);
        assert!(!proofs.has_answers() && asked("b").is_none());
    }

    #[test]
    fn only_who_asks_for_nothing_else_is_shown_a_certificate() {
        let proofs = Arc::new(Proofs::default());
        let certified = CertifiedKey::clone(&identity(&["a.example"]).certified);
        let offered = proofs.certify("a.example", certified);
        assert!(proofs.has_certificates() && !proofs.has_answers());
        assert!(proofs.session_for(Some("a.example"), &of("acme-tls/1")).is_some());
        for (name, protocols) in [
            (Some("b.example"), "acme-tls/1"),
            (None, "acme-tls/1"),
            (Some("a.example"), "acme-tls/1 h2"),
            (Some("a.example"), "h2"),
        ] {
            assert!(proofs.session_for(name, &of(protocols)).is_none(), "{name:?} {protocols}");
        }
        drop(offered);
        assert!(!proofs.has_certificates());
        assert!(proofs.session_for(Some("a.example"), &of("acme-tls/1")).is_none());
    }

    /// Whoever offers and withdraws at the same time as others leaves nothing, and never sees its own missing.
    #[test]
    fn many_who_offer_at_once_do_not_see_each_other() {
        let proofs = Arc::new(Proofs::default());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let proofs = Arc::clone(&proofs);
                scope.spawn(move || {
                    for round in 0..500 {
                        let token = format!("{thread}-{round}");
                        let offered = proofs.answer(&token, &token);
                        let path = format!("/.well-known/acme-challenge/{token}");
                        assert!(proofs.has_answers(), "the switch is on while one is there");
                        assert_eq!(proofs.answer_to(path.as_bytes()).as_deref(), Some(&*token));
                        drop(offered);
                        assert_eq!(proofs.answer_to(path.as_bytes()), None);
                    }
                });
            }
        });
        assert!(!proofs.has_answers());
    }
}
