//! Keys of session tickets (RFC 8446 §4.6.1, RFC 5077), which all workers share.
//!
//! A ticket is a session sealed for ourselves: the name of a key, a nonce, the sealed session. Three keys stand at
//! any time: the current one seals, the previous one still opens, and the next one opens too, because another
//! process with the same keys may have rotated a moment earlier. Each identity with its client-certificate policy
//! has keys of its own, so no session is resumed where its client would have been asked for something else.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{digest, hmac};
use rustls::server::ProducesTickets;
use thiserror::Error;

use crate::config::model::tls::{ClientAuth, ExpiredList, ListenerTls};

/// How often the keys move on.
pub const ROTATION: Duration = Duration::from_secs(6 * 3600);

const NAME: usize = 16;
const SECRET: usize = 32;
/// Bytes of an exported key: its name and its secret.
const EXPORTED: usize = NAME + SECRET;

struct Key {
    name: [u8; NAME],
    secret: [u8; SECRET],
    sealing: LessSafeKey,
}

impl Key {
    fn new(name: [u8; NAME], secret: [u8; SECRET]) -> Key {
        let unbound = UnboundKey::new(&AES_256_GCM, &secret).expect("a secret of the right length");
        Key { name, secret, sealing: LessSafeKey::new(unbound) }
    }

    fn random() -> Key {
        Key::new(random(), random())
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // The system's generator; without it there would be no TLS at all.
    aws_lc_rs::rand::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

#[derive(Clone)]
struct Keys {
    previous: Arc<Key>,
    current: Arc<Key>,
    next: Arc<Key>,
}

/// Exported keys that can't be taken in.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("ticket keys are three of {EXPORTED} bytes each")]
pub struct BadKeys;

/// The keys of one identity and client-certificate policy.
pub struct TicketKeys {
    keys: ArcSwap<Keys>,
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys")
    }
}

impl Default for TicketKeys {
    fn default() -> Self {
        let key = || Arc::new(Key::random());
        TicketKeys { keys: ArcSwap::from_pointee(Keys { previous: key(), current: key(), next: key() }) }
    }
}

impl TicketKeys {
    /// Moves on: the next key becomes the current one. Tickets of the key before the current one are worthless
    /// from now on.
    pub fn rotate(&self) {
        let keys = self.keys.load_full();
        let (previous, current) = (Arc::clone(&keys.current), Arc::clone(&keys.next));
        self.keys.store(Arc::new(Keys { previous, current, next: Arc::new(Key::random()) }));
    }

    /// The three keys, previous first, for another process or node. They are secrets: they open every session
    /// that was sealed with them.
    #[must_use]
    pub fn export(&self) -> Vec<u8> {
        let keys = self.keys.load();
        let three = [&keys.previous, &keys.current, &keys.next];
        three.iter().flat_map(|key| key.name.iter().chain(&key.secret)).copied().collect()
    }

    /// Takes over what [`TicketKeys::export`] gave.
    ///
    /// # Errors
    /// It is not that; the keys stay as they were.
    pub fn inject(&self, exported: &[u8]) -> Result<(), BadKeys> {
        let key = |nth: usize| -> Result<Arc<Key>, BadKeys> {
            let bytes = exported.get(nth * EXPORTED..(nth + 1) * EXPORTED).ok_or(BadKeys)?;
            let (name, secret) = bytes.split_at(NAME);
            Ok(Arc::new(Key::new(
                name.try_into().map_err(|_| BadKeys)?,
                secret.try_into().map_err(|_| BadKeys)?,
            )))
        };
        if exported.len() != 3 * EXPORTED {
            return Err(BadKeys);
        }
        self.keys.store(Arc::new(Keys { previous: key(0)?, current: key(1)?, next: key(2)? }));
        Ok(())
    }
}

impl ProducesTickets for TicketKeys {
    fn enabled(&self) -> bool {
        true
    }

    /// A ticket is good for at least one rotation, and a client may be told no more than that.
    fn lifetime(&self) -> u32 {
        u32::try_from(ROTATION.as_secs()).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let key = Arc::clone(&self.keys.load().current);
        // Random nonces of 96 bits are safe for 2^32 tickets of one key; six hours do not see so many.
        let nonce: [u8; NONCE_LEN] = random();
        let mut ticket = Vec::with_capacity(NAME + NONCE_LEN + plain.len() + AES_256_GCM.tag_len());
        ticket.extend_from_slice(&key.name);
        ticket.extend_from_slice(&nonce);
        ticket.extend_from_slice(plain);
        let sealed = &mut ticket[NAME + NONCE_LEN..];
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = key.sealing.seal_in_place_separate_tag(nonce, Aad::from(key.name), sealed).ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let keys = self.keys.load();
        // The name is no secret: it stands in every ticket.
        let key = [&keys.current, &keys.previous, &keys.next].into_iter().find(|key| key.name == name)?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let length = key.sealing.open_in_place(nonce, Aad::from(key.name), &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }
}

/// The ticket keys of the process, alive across reloads as long as a listener has them.
#[derive(Debug, Default)]
pub struct Tickets {
    stock: Mutex<TicketStock>,
}

#[derive(Debug, Default)]
struct TicketStock {
    keys: HashMap<[u8; 32], Arc<TicketKeys>>,
    /// What they are made of where others have the same; `None`: each is made by chance.
    roots: Option<TicketRoots>,
}

/// Secrets of which several processes make the same keys: of the previous ones, the current ones, and the next.
#[derive(Clone, PartialEq, Eq)]
pub struct TicketRoots(pub [[u8; SECRET]; 3]);

impl fmt::Debug for TicketRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketRoots(…)")
    }
}

impl TicketRoots {
    /// One by chance.
    #[must_use]
    pub fn fresh() -> [u8; SECRET] {
        random()
    }

    /// The keys for this policy, as [`TicketKeys::export`] gives them.
    fn keys(&self, policy: &[u8]) -> Vec<u8> {
        let part = |root: &[u8], what: &[u8], length: usize| {
            let made = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, root), &[what, policy].concat());
            made.as_ref()[..length].to_vec()
        };
        let key = |root: &[u8; SECRET]| [part(root, b"name", NAME), part(root, b"secret", SECRET)].concat();
        self.0.iter().flat_map(key).collect()
    }
}

impl Tickets {
    /// The keys for what a listener shows and asks for: the same for listeners that do so alike.
    #[must_use]
    pub fn of(&self, tls: &ListenerTls) -> Arc<TicketKeys> {
        let mut stock = self.stock();
        let TicketStock { keys, roots } = &mut *stock;
        let policy = policy(tls);
        if !keys.contains_key(&policy) {
            // Each renewed certificate has keys of its own; those of one that no listener shows any more open nothing.
            keys.retain(|_, keys| Arc::strong_count(keys) > 1);
        }
        let keys = keys.entry(policy).or_insert_with(|| {
            let keys = TicketKeys::default();
            take_over(&keys, roots.as_ref(), &policy);
            Arc::new(keys)
        });
        Arc::clone(keys)
    }

    /// From now on all keys are made of these, and others move them on.
    pub fn share(&self, roots: TicketRoots) {
        let mut stock = self.stock();
        stock.keys.iter().for_each(|(policy, keys)| take_over(keys, Some(&roots), policy));
        stock.roots = Some(roots);
    }

    /// All keys for the process that takes the place of this one, each behind what it is for. They are secrets, see [`TicketKeys::export`].
    #[must_use]
    pub fn export(&self) -> Vec<u8> {
        let stock = self.stock();
        stock.keys.iter().flat_map(|(policy, keys)| [policy.to_vec(), keys.export()].concat()).collect()
    }

    /// Takes over those of the process before that are for something that is shown here, unless others have the same. What is not that counts for nothing.
    pub fn take_over(&self, exported: &[u8]) {
        let stock = self.stock();
        if stock.roots.is_some() {
            return;
        }
        for one in exported.chunks_exact(32 + 3 * EXPORTED) {
            let (policy, keys) = one.split_at(32);
            if let Some(own) = stock.keys.get(policy) {
                // They are three of the right length.
                let _ = own.inject(keys);
            }
        }
    }

    fn stock(&self) -> MutexGuard<'_, TicketStock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves all keys on that are this process's own, and forgets those of certificates that nobody shows any more.
    pub fn rotate(&self) {
        let mut stock = self.stock();
        stock.keys.retain(|_, keys| Arc::strong_count(keys) > 1);
        if stock.roots.is_none() {
            stock.keys.values().for_each(|keys| keys.rotate());
        }
    }
}

/// The keys are those that come of `roots`.
fn take_over(keys: &TicketKeys, roots: Option<&TicketRoots>, policy: &[u8]) {
    if let Some(roots) = roots {
        // They are three of the right length.
        let _ = keys.inject(&roots.keys(policy));
    }
}

/// What must be alike for a session to be resumed: certificates, authorities, and what is asked of clients.
fn policy(tls: &ListenerTls) -> [u8; 32] {
    let mut digest = digest::Context::new(&digest::SHA256);
    let mut add = |bytes: &[u8]| {
        digest.update(&(bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    add(&[tls.oldest as u8]);
    for identity in &tls.identities {
        identity.certified.cert.first().into_iter().for_each(|leaf| add(leaf));
    }
    for order in &tls.ordered {
        // Whatever is issued for them, the names are the same ones.
        order.names.iter().for_each(|name| add(name.as_bytes()));
        add(order.key.name().as_bytes());
    }
    if let Some(clients) = &tls.clients {
        add(match clients.auth {
            ClientAuth::Required => b"required",
            ClientAuth::Optional => b"optional",
        });
        clients.authorities.certificates.iter().for_each(|authority| add(authority));
        // Whoever was let in before a list has changed shakes hands in full, and is looked up in it.
        if let Some(revoked) = &clients.revoked {
            add(match revoked.expired {
                ExpiredList::Keep => b"keep",
                ExpiredList::Refuse => b"refuse",
            });
            revoked.lists.iter().for_each(|list| add(&list.der));
        }
    }
    let mut policy = [0; 32];
    policy.copy_from_slice(digest.finish().as_ref());
    policy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::tls::TlsVersion;

    #[test]
    fn a_ticket_lives_through_one_rotation_and_no_more() {
        let keys = TicketKeys::default();
        let ticket = keys.encrypt(b"a session").expect("sealed");
        assert!(!ticket.windows(9).any(|part| part == b"a session"), "it is sealed");
        for _ in 0..2 {
            assert_eq!(keys.decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
            keys.rotate();
        }
        assert_eq!(keys.decrypt(&ticket), None);
    }

    #[test]
    fn keys_that_nobody_uses_any_more_are_forgotten_with_the_next_rotation() {
        let tickets = Tickets::default();
        let tls = |oldest| ListenerTls { oldest, ..ListenerTls::showing(Vec::new()) };
        let used = tickets.of(&tls(TlsVersion::V12));
        drop(tickets.of(&tls(TlsVersion::V13)));
        assert_eq!(tickets.stock().keys.len(), 2, "a config that comes back finds its keys");
        tickets.rotate();
        assert_eq!(tickets.stock().keys.len(), 1);
        assert!(Arc::ptr_eq(&used, &tickets.of(&tls(TlsVersion::V12))));
    }

    #[test]
    fn processes_with_the_same_roots_open_each_others_tickets_whatever_came_first() {
        let [ours, theirs] = [Tickets::default(), Tickets::default()];
        let tls = |oldest| ListenerTls { oldest, ..ListenerTls::showing(Vec::new()) };
        let before = ours.of(&tls(TlsVersion::V12));
        let [a, b, c, d] = [(); 4].map(|()| TicketRoots::fresh());
        ours.share(TicketRoots([a, b, c]));
        theirs.share(TicketRoots([b, c, d]));
        let (same, other) = (theirs.of(&tls(TlsVersion::V12)), theirs.of(&tls(TlsVersion::V13)));
        for (one, another) in [(&before, &same), (&same, &before)] {
            let ticket = one.encrypt(b"x").expect("sealed");
            assert_eq!(another.decrypt(&ticket).as_deref(), Some(&b"x"[..]));
        }
        let ticket = before.encrypt(b"x").expect("sealed");
        assert_eq!(other.decrypt(&ticket), None, "what asks clients for something else has keys of its own");
        // Others move them on.
        ours.rotate();
        assert_eq!(same.decrypt(&before.encrypt(b"y").expect("sealed")).as_deref(), Some(&b"y"[..]));
    }

    #[test]
    fn the_next_process_opens_tickets_of_the_one_before_for_what_both_show_alike() {
        let [before, after, shared] = [(); 3].map(|()| Tickets::default());
        let tls = |oldest| ListenerTls { oldest, ..ListenerTls::showing(Vec::new()) };
        let (ours, only_before) = (before.of(&tls(TlsVersion::V12)), before.of(&tls(TlsVersion::V13)));
        let ticket = ours.encrypt(b"x").expect("sealed");
        let theirs = after.of(&tls(TlsVersion::V12));
        assert_eq!(theirs.decrypt(&ticket), None);
        after.take_over(&before.export());
        assert_eq!(theirs.decrypt(&ticket).as_deref(), Some(&b"x"[..]));
        assert_eq!(theirs.decrypt(&only_before.encrypt(b"x").expect("sealed")), None);
        assert_eq!(after.stock().keys.len(), 1, "what nobody shows any more is not taken");
        // What is no export changes nothing, and what all nodes have alike goes before.
        after.take_over(&before.export()[..40]);
        assert!(theirs.decrypt(&ticket).is_some());
        shared.share(TicketRoots([(); 3].map(|()| TicketRoots::fresh())));
        let of_all = shared.of(&tls(TlsVersion::V12));
        shared.take_over(&before.export());
        assert_eq!(of_all.decrypt(&ticket), None);
    }

    #[test]
    fn two_processes_with_the_same_keys_open_each_others_tickets_also_across_a_rotation() {
        let (ours, theirs) = (TicketKeys::default(), TicketKeys::default());
        let before = theirs.encrypt(b"x").expect("sealed");
        assert_eq!(ours.decrypt(&before), None);
        theirs.inject(&ours.export()).expect("three keys");
        theirs.rotate();
        let early = theirs.encrypt(b"x").expect("sealed");
        assert!(ours.decrypt(&early).is_some(), "the next key is known already");
        assert_eq!(theirs.inject(&ours.export()[1..]), Err(BadKeys));
    }

    #[test]
    fn keys_last_as_long_as_a_listener_has_them() {
        let of = |oldest| ListenerTls { oldest, ..ListenerTls::showing(Vec::new()) };
        let tickets = Tickets::default();
        drop(tickets.of(&of(TlsVersion::V12)));
        let held = tickets.of(&of(TlsVersion::V13));
        assert_eq!(tickets.stock().keys.len(), 1, "nobody has the first any more");
        drop(tickets.of(&of(TlsVersion::V12)));
        assert!(Arc::ptr_eq(&held, &tickets.of(&of(TlsVersion::V13))));
    }

    #[test]
    fn no_altered_or_cut_ticket_is_opened() {
        let keys = TicketKeys::default();
        let ticket = keys.encrypt(b"a session").expect("sealed");
        for at in 0..ticket.len() {
            let mut altered = ticket.clone();
            altered[at] ^= 1;
            assert_eq!(keys.decrypt(&altered), None, "byte {at}");
            assert_eq!(keys.decrypt(&ticket[..at]), None, "{at} bytes");
        }
    }
}
