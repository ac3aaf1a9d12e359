//! What a sticky cookie holds: for each backend a value that only holders of the key can make.
//!
//! A value is a keyed hash of the backend's identity, so every worker, the next process and every other node with
//! the same key read it alike, and nothing has to be remembered or shared. It tells a client neither names nor
//! addresses.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::config::model::Sticky;
use crate::message::BackendId;
use crate::targets::Backend;

/// Stands in front of an identity when it is hashed: the same key may serve something else one day.
const PURPOSE: &[u8] = b"evenkeel sticky v1\0";
/// Bytes kept of a hash. To guess a value of 128 bits is hopeless, and the cookie goes with every request.
const KEPT: usize = 16;
/// Characters of a value: its bytes in base64url without padding.
const LENGTH: usize = (KEPT * 8).div_ceil(6);

type Value = [u8; LENGTH];

/// The values of one target's sticky cookie. Made once for each accepted config.
pub struct Pins {
    cookie: Box<str>,
    backends: HashMap<Value, Arc<Backend>>,
    values: HashMap<BackendId, Box<str>>,
}

impl Pins {
    /// The values of these backends.
    #[must_use]
    pub(in crate::targets) fn new(sticky: &Sticky, backends: &[Arc<Backend>]) -> Pins {
        let key = Key::new(HMAC_SHA256, &sticky.key);
        let mut pins = Pins {
            cookie: sticky.cookie.as_str().into(),
            backends: HashMap::with_capacity(backends.len()),
            values: HashMap::with_capacity(backends.len()),
        };
        for backend in backends {
            let text = value(&key, &backend.identity);
            let bytes = text.as_bytes().try_into().expect("KEPT bytes come to LENGTH characters");
            pins.backends.insert(bytes, Arc::clone(backend));
            pins.values.insert(backend.id, text.into());
        }
        pins
    }

    /// The cookie's name.
    #[must_use]
    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    /// The backend that a cookie with this value names; `None`: the value was altered, or made with another key, or for a
    /// backend that is gone.
    ///
    /// A plain look-up in a table keyed at random: how long it takes tells nothing. What it compares is no
    /// secret from whoever was given it, and to make the value of another backend takes the key.
    #[must_use]
    pub fn find(&self, value: &[u8]) -> Option<&Arc<Backend>> {
        // Whatever a client sends, this much of it is hashed and no more.
        if value.len() == LENGTH { self.backends.get(value) } else { None }
    }

    /// The value that names `backend`: 22 characters of A-Z, a-z, 0-9, `-` and `_`. `None`: it is none of the target's.
    #[must_use]
    pub fn value_of(&self, backend: BackendId) -> Option<&str> {
        self.values.get(&backend).map(|value| &**value)
    }
}

impl fmt::Debug for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever reads a log must not learn how to be sent to a backend of choice.
        f.debug_struct("Pins").field("cookie", &self.cookie).finish_non_exhaustive()
    }
}

fn value(key: &Key, identity: &str) -> String {
    let hash = sign(key, &[PURPOSE, identity.as_bytes()].concat());
    URL_SAFE_NO_PAD.encode(&hash.as_ref()[..KEPT])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::config::model;
    use crate::targets::fixtures::unprobed;
    use crate::targets::{Registry, Target};

    fn sticky(key: &[u8]) -> Sticky {
        Sticky { cookie: "evenkeel".into(), key: key.into(), is_fleeting: false }
    }

    fn target(name: &str, backends: u16, key: &[u8]) -> Arc<Target> {
        let sticky = Some(sticky(key));
        let config = model::TargetConfig { name: name.into(), sticky, ..unprobed(backends) };
        Registry::new().apply(&[config]).remove(0)
    }

    fn values(target: &Target) -> Vec<&str> {
        let pins = target.pins.as_ref().expect("sticky");
        target.backends.iter().map(|backend| pins.value_of(backend.id).expect("a value")).collect()
    }

    /// Another implementation made these, so that all versions and all nodes agree:
    /// `printf 'evenkeel sticky v1\0web/b0' | openssl dgst -sha256 -hmac 'a key' -binary | head -c 16 | basenc --base64url`
    #[test]
    fn values_are_these() {
        assert_eq!(values(&target("web", 2, b"a key")), ["0n98DRDixrIsUjdUAXYmVQ", "sYbFYJMalsR4PT5sxIMl5g"]);
    }

    #[test]
    fn every_value_finds_its_backend_in_every_process_with_the_key() {
        let (one, other) = (target("web", 300, b"secret"), target("web", 300, b"secret"));
        let pins = one.pins.as_ref().expect("sticky");
        for (backend, value) in other.backends.iter().zip(values(&other)) {
            assert!(
                value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
                "{value}"
            );
            assert_eq!(pins.find(value.as_bytes()).map(|found| &found.identity), Some(&backend.identity));
        }
    }

    #[test]
    fn another_key_target_or_backend_has_other_values() {
        let all = [("web", &b"k"[..]), ("web", b"l"), ("api", b"k"), ("web", b"")];
        let targets = all.map(|(name, key)| target(name, 50, key));
        let seen: HashSet<&str> = targets.iter().flat_map(|target| values(target)).collect();
        assert_eq!(seen.len(), 200);
        let pins = targets[0].pins.as_ref().expect("sticky");
        assert!(
            targets[1..].iter().flat_map(|target| values(target)).all(|v| pins.find(v.as_bytes()).is_none())
        );
    }

    #[test]
    fn an_altered_value_names_nobody() {
        let target = target("web", 3, b"k");
        let pins = target.pins.as_ref().expect("sticky");
        let good = values(&target)[1].as_bytes().to_vec();
        assert!(pins.find(&good).is_some());
        for place in 0..good.len() {
            for bit in 0..8 {
                let mut other = good.clone();
                other[place] ^= 1 << bit;
                assert!(pins.find(&other).is_none(), "{}", other.escape_ascii());
            }
            assert!(pins.find(&good[..place]).is_none());
        }
        assert!(pins.find(&[&good[..], b"="].concat()).is_none());
        assert!(pins.find(&vec![b'a'; 32 * 1024]).is_none());
    }

    #[test]
    fn a_backend_that_moves_keeps_its_value_and_one_that_leaves_loses_it() {
        let registry = Registry::new();
        let mut config = model::TargetConfig { sticky: Some(sticky(b"k")), ..unprobed(2) };
        let before = registry.apply(std::slice::from_ref(&config));
        config.backends[0].address = crate::targets::fixtures::host("10.9.9.9", 80);
        config.backends.remove(1);
        let after = registry.apply(std::slice::from_ref(&config));
        let (old, new) = (values(&before[0]), values(&after[0]));
        assert_eq!((old[0], new.len()), (new[0], 1));
        let pins = after[0].pins.as_ref().expect("sticky");
        assert!(Arc::ptr_eq(pins.find(new[0].as_bytes()).expect("known"), &after[0].backends[0]));
        assert!(pins.find(old[1].as_bytes()).is_none());
        assert_eq!(pins.value_of(before[0].backends[1].id), None);
    }

    #[test]
    fn neither_the_key_nor_a_value_is_shown() {
        let target = target("web", 1, b"hush");
        let shown = format!("{target:?}");
        assert!(shown.contains("Pins") && !shown.contains(values(&target)[0]) && !shown.contains("hush"));
        assert!(!shown.contains(&format!("{:?}", b"hush")));
    }
}
