//! What is stored, as another process is told of it that takes the place of this one.
//!
//! Told is what is whole, and not purged: heads, for whom and how long they are, and bodies, up to a bound. Their times are those of the
//! machine's own clock, so they are the same there. Forms in codings are not told: they are made again.
//!
//! Invariants:
//!
//! 1. What is purged from the moment on that [purges are watched](CacheStore::watch_purges) is either not told, or stands among
//!    [those that were seen](CacheStore::purges_seen): watching begins before telling does.
//! 2. Whatever is read, nothing is taken over that is not as it was told: what is cut short or makes no sense ends it, and what came before that
//!    is there.

use std::io::{self, Read, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cache::freshness::Freshness;
use crate::cache::key::CacheKey;
use crate::cache::storing::Storable;
use crate::cache::vary::Variant;
use crate::message::Head;

use super::purges::{PurgeKind, PurgeOf};
use super::watched::{PurgeOfAny, ToldPurge};
use super::{CacheStore, Object, ObjectBody};

/// What is told, and how: whoever reads another form than its own has nothing.
const FORM: &[u8] = b"evenkeel stored 1";
/// Where less is left nothing more is looked for.
const LEAST: u64 = 1_024;
/// Bytes of a key, a head or a list of tags: more than any that was stored.
const MOST_PART: u64 = 1 << 20;

/// What is told of an object before its bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldObject {
    /// Bytes of its key that are its URL.
    url: usize,
    status: u16,
    freshness: Freshness,
    variant: Variant,
    no_transform: bool,
    /// It was declared stale.
    is_spoilt: bool,
    /// How many tags come behind its key.
    tags: usize,
    /// How many lines, each a name and a value, come behind these.
    lines: usize,
    /// Bytes of its body, which come last.
    length: u64,
}

impl CacheStore {
    /// Tells what is stored, as long as it takes no more than `most` bytes, heads and keys included. Says how many objects that were.
    ///
    /// # Errors
    /// What `out` says.
    pub fn tell(&self, most: u64, out: &mut impl Write) -> io::Result<u64> {
        let (mut left, mut count) = (most, 0);
        write_part(out, FORM)?;
        let places = self
            .all_shards()
            .iter()
            .flat_map(|shard| shard.places().into_iter().map(move |place| (shard, place)));
        for of in places.filter_map(|(shard, place)| shard.peek(place)) {
            if left < LEAST {
                break;
            }
            for object in of.objects.iter().filter(|object| !self.is_gone(object)) {
                let Some(body) = object.whole() else { continue };
                let weight = object.weight() + body.length();
                if weight > left {
                    continue;
                }
                left -= weight;
                count += 1;
                let Storable { head, freshness, variant, tags, no_transform } = &*object.answer;
                let told = ToldObject {
                    url: object.key().url().len(),
                    status: head.status,
                    freshness: *freshness,
                    variant: variant.clone(),
                    no_transform: *no_transform,
                    is_spoilt: object.is_spoilt(),
                    tags: tags.len(),
                    lines: head.lines().len(),
                    length: body.length(),
                };
                write_part(out, &serde_json::to_vec(&told)?)?;
                write_part(out, object.key().bytes())?;
                tags.iter().try_for_each(|tag| write_part(out, tag))?;
                for line in head.lines() {
                    let (name, value) = head.pair(line);
                    write_part(out, name)?;
                    write_part(out, value)?;
                }
                let mut at = 0;
                while let Some((chunk, range)) = body.part(at, u64::MAX) {
                    at += range.len() as u64;
                    out.write_all(&chunk[range])?;
                }
            }
        }
        Ok(count)
    }

    /// Stores what another process has [told](CacheStore::tell), where there is room, before anybody asks. Says how many objects that were.
    ///
    /// # Errors
    /// It breaks off, or makes no sense; what came before that is there.
    pub fn take_over(&self, from: &mut impl Read) -> io::Result<u64> {
        if needed(from)? != FORM {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut count = 0;
        while let Some(told) = read_part(from)? {
            let told: ToldObject = serde_json::from_slice(&told)?;
            let key = CacheKey::from_parts(needed(from)?, told.url).ok_or(io::ErrorKind::InvalidData)?;
            let tags = (0..told.tags).map(|_| Ok(needed(from)?.into())).collect::<io::Result<Vec<_>>>()?;
            let mut head = Head::answer(told.status);
            for _ in 0..told.lines {
                let (name, value) = (needed(from)?, needed(from)?);
                head.push(&name, &value);
            }
            let ToldObject { freshness, variant, no_transform, is_spoilt, length, .. } = told;
            let Ok(room) = self.room(&key, Some(length), true) else {
                // It is read all the same.
                if io::copy(&mut from.take(length), &mut io::sink())? < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            };
            let mut bytes = vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?];
            from.read_exact(&mut bytes)?;
            let body = ObjectBody::Whole(room.fill(&bytes));
            let answer = Arc::new(Storable { head, freshness, variant, tags, no_transform });
            let place = key.url_hash(self.secret);
            let object = Object::new(key, answer, body, 0);
            if is_spoilt {
                object.spoil();
            }
            let under_way = self.under_way.shard(place);
            self.put(place, Arc::new(object));
            drop(under_way);
            count += 1;
        }
        Ok(count)
    }

    /// From now on remembers what is purged, for [`CacheStore::purges_seen`].
    pub fn watch_purges(&self) {
        self.watched.begin();
    }

    /// No longer does.
    pub fn unwatch_purges(&self) {
        self.watched.end();
    }

    /// What was purged since this was asked the last time.
    #[must_use]
    pub fn purges_seen(&self) -> Vec<ToldPurge> {
        self.watched.take()
    }

    /// Nobody is told of what is purged here any more: from now on all that is stored is asked for anew before it is used.
    pub fn doubt(&self) {
        self.purges.note(PurgeOf::All, PurgeKind::Soft);
    }

    /// Does what another process has done.
    pub fn purge_as(&self, told: ToldPurge) {
        let (of, kind) = told.into_parts();
        match of {
            PurgeOfAny::Url(url) => {
                self.purge_url(&url, kind);
            }
            PurgeOfAny::More(of) => self.purge(of, kind),
        }
    }
}

fn write_part(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(bytes)
}

/// `None`: there is no more.
fn read_part(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 8];
    match from.read(&mut length[..1])? {
        0 => return Ok(None),
        _ => from.read_exact(&mut length[1..])?,
    }
    let length = u64::from_le_bytes(length);
    if length > MOST_PART {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

fn needed(from: &mut impl Read) -> io::Result<Vec<u8>> {
    read_part(from)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
