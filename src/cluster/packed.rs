//! How rows are kept that are long, or nobody else's business: compressed, and sealed where there is a key.
//!
//! Sealed with AES-256-GCM and a random nonce. What a row is called, with its cluster, goes into the seal: one that is put in the place of another does not
//! open. In front stands which key it was, so that a node with another one can say so.

use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::rows;
use crate::config::model::ClusterKey;

/// The first byte: what follows is compressed, or sealed.
const PLAIN: u8 = 1;
const SEALED: u8 = 2;
const LEVEL: i32 = 3;
/// The most that a row may come to: more than a config may be.
const MOST: usize = 64 << 20;
/// Bytes that name a key.
const ID: usize = 4;
const NONCE: usize = 12;

/// Why a row can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unpacked {
    /// It was sealed, and there is no key.
    #[error("it is sealed, and this node has no `cluster.secrets_key_file`")]
    NoKey,
    /// It was sealed with another key.
    #[error("it is sealed with another key than that of this node's `cluster.secrets_key_file`")]
    OtherKey,
    /// It is not what was written.
    #[error("it is damaged, or of a version that this one does not know")]
    Damaged,
}

/// What a key is known by.
fn id(key: &ClusterKey) -> [u8; ID] {
    let named = digest(&SHA256, &[b"evenkeel cluster key: ".as_slice(), &key.0].concat());
    let mut id = [0; ID];
    id.copy_from_slice(&named.as_ref()[..ID]);
    id
}

fn aead(key: &ClusterKey) -> Option<RandomizedNonceKey> {
    RandomizedNonceKey::new(&AES_256_GCM, &key.0).ok()
}

/// A row of this full name as it is kept.
#[must_use]
pub fn pack(name: &str, value: &[u8], key: Option<&ClusterKey>) -> Vec<u8> {
    // It fails for want of memory alone.
    let small = zstd::bulk::compress(value, LEVEL).unwrap_or_default();
    let sealed = key.and_then(|key| {
        let mut inside = small.clone();
        let nonce = aead(key)?.seal_in_place_append_tag(Aad::from(name), &mut inside).ok()?;
        Some([&[SEALED][..], &id(key), nonce.as_ref(), &inside].concat())
    });
    match (key, sealed) {
        (Some(_), Some(sealed)) => sealed,
        // Never in the open what was to be sealed.
        (Some(_), None) => Vec::new(),
        (None, _) => [&[PLAIN][..], &small].concat(),
    }
}

/// The same of one that takes the place of what was there `before`: what this version does not know of that stays, as far as it can be read.
#[must_use]
pub fn pack_over<T: Serialize + DeserializeOwned>(
    name: &str,
    row: &T,
    before: Option<&[u8]>,
    key: Option<&ClusterKey>,
) -> Vec<u8> {
    let before = before.and_then(|before| unpack(name, before, key).ok());
    pack(name, &rows::write_over(row, before.as_deref()), key)
}

/// What a row of this full name says.
///
/// # Errors
/// See [`Unpacked`].
pub fn unpack(name: &str, packed: &[u8], key: Option<&ClusterKey>) -> Result<Vec<u8>, Unpacked> {
    let open = |small: &[u8]| zstd::bulk::decompress(small, MOST).map_err(|_| Unpacked::Damaged);
    match packed.split_first() {
        Some((&PLAIN, small)) => open(small),
        Some((&SEALED, rest)) => {
            let (sealed_by, rest) = rest.split_at_checked(ID).ok_or(Unpacked::Damaged)?;
            let key = key.ok_or(Unpacked::NoKey)?;
            if id(key) != sealed_by {
                return Err(Unpacked::OtherKey);
            }
            let (nonce, inside) = rest.split_at_checked(NONCE).ok_or(Unpacked::Damaged)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unpacked::Damaged)?;
            let mut inside = inside.to_vec();
            let opened = aead(key).ok_or(Unpacked::Damaged)?;
            let small = opened.open_in_place(nonce, Aad::from(name), &mut inside);
            open(small.map_err(|_| Unpacked::Damaged)?)
        }
        _ => Err(Unpacked::Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ClusterKey = ClusterKey([7; ClusterKey::LENGTH]);
    const OTHER: ClusterKey = ClusterKey([8; ClusterKey::LENGTH]);

    #[test]
    fn what_is_packed_is_the_same_when_it_comes_back() {
        for value in [&b""[..], b"targets: {}\n", &[b'x'; 100_000]] {
            for key in [None, Some(&KEY)] {
                let packed = pack("prod/config/rev/1", value, key);
                assert!(packed.len() < value.len() + 64);
                assert_eq!(unpack("prod/config/rev/1", &packed, Some(&KEY)).as_deref(), Ok(value));
            }
        }
    }

    #[test]
    fn what_a_later_version_has_said_stays_also_where_it_is_sealed() {
        let name = "prod/key/tickets";
        let row = rows::SchemaRow { writer: 1, min_reader: 1 };
        let later = pack(name, br#"{"writer":2,"min_reader":1,"why":"b"}"#, Some(&KEY));
        let said = |before: Option<&[u8]>, key: &ClusterKey| {
            let packed = pack_over(name, &row, before, Some(key));
            let said: serde_json::Value = rows::read(&unpack(name, &packed, Some(key)).unwrap()).unwrap();
            (said["writer"].clone(), said["why"].clone())
        };
        assert_eq!(said(Some(&later), &KEY), (1.into(), "b".into()));
        assert_eq!(said(Some(&later), &OTHER), (1.into(), ().into()), "nobody can know what it was");
        assert_eq!(said(None, &KEY), (1.into(), ().into()));
    }

    #[test]
    fn what_is_sealed_opens_with_its_key_in_its_place_alone() {
        let packed = pack("prod/config/rev/1", b"secret", Some(&KEY));
        assert!(!packed.windows(6).any(|part| part == b"secret"));
        assert_ne!(packed, pack("prod/config/rev/1", b"secret", Some(&KEY)), "no two nonces are the same");
        assert_eq!(unpack("prod/config/rev/1", &packed, None), Err(Unpacked::NoKey));
        assert_eq!(unpack("prod/config/rev/1", &packed, Some(&OTHER)), Err(Unpacked::OtherKey));
        assert_eq!(unpack("test/config/rev/1", &packed, Some(&KEY)), Err(Unpacked::Damaged));
        assert_eq!(unpack("prod/config/rev/2", &packed, Some(&KEY)), Err(Unpacked::Damaged));
        for at in 0..packed.len() {
            let mut other = packed.clone();
            other[at] ^= 1;
            assert!(unpack("prod/config/rev/1", &other, Some(&KEY)).is_err(), "byte {at}");
            assert!(unpack("prod/config/rev/1", &packed[..at], Some(&KEY)).is_err(), "{at} bytes");
        }
    }
}
