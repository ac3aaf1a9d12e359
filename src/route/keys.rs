//! Tables of texts from a config, laid out so that a lookup among many touches as little memory as one among few.

use std::collections::HashMap;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What stands under texts of a config, each of them one of an owner's. No stranger chooses the texts, so none can make them collide, and
/// whoever asks for others meets at most as many as there are: a fast hash will do.
#[derive(Debug)]
pub(super) struct KeyTable<V> {
    entries: HashTable<Entry<V>>,
    /// All texts, each once however many owners have it.
    texts: Box<[u8]>,
}

/// Where a text of an owner is, and what stands under it: together, as whoever finds one wants the other.
#[derive(Clone, Copy, Debug)]
struct Entry<V> {
    owner: u32,
    start: u32,
    length: u32,
    value: V,
}

impl<V: Copy> KeyTable<V> {
    /// The table of these, of which no two have the same owner and text.
    #[must_use]
    pub(super) fn new<'k>(keys: impl Iterator<Item = (u32, &'k [u8], V)>) -> KeyTable<V> {
        let mut texts = Vec::new();
        let mut starts: HashMap<&[u8], u32> = HashMap::new();
        let entries: Vec<Entry<V>> = keys
            .map(|(owner, text, value)| {
                let start = *starts.entry(text).or_insert_with(|| {
                    let start = small(texts.len());
                    texts.extend_from_slice(text);
                    start
                });
                Entry { owner, start, length: small(text.len()), value }
            })
            .collect();
        let mut table = KeyTable { entries: HashTable::with_capacity(entries.len()), texts: texts.into() };
        let KeyTable { entries: laid, texts } = &mut table;
        let hashed = |entry: &Entry<V>| hash(entry.owner, entry.text(texts));
        for entry in entries {
            laid.insert_unique(hashed(&entry), entry, hashed);
        }
        table
    }

    /// What stands under this text of this owner.
    #[must_use]
    #[inline]
    pub(super) fn get(&self, owner: u32, text: &[u8]) -> Option<V> {
        let is_it = |entry: &Entry<V>| entry.owner == owner && entry.text(&self.texts) == text;
        self.entries.find(hash(owner, text), is_it).map(|entry| entry.value)
    }
}

impl<V> Default for KeyTable<V> {
    fn default() -> KeyTable<V> {
        KeyTable { entries: HashTable::new(), texts: Box::default() }
    }
}

impl<V> Entry<V> {
    #[inline]
    fn text<'t>(&self, texts: &'t [u8]) -> &'t [u8] {
        texts.get(self.start as usize..).and_then(|rest| rest.get(..self.length as usize)).unwrap_or_default()
    }
}

/// XXH3 of a text, another one for each owner.
#[inline]
fn hash(owner: u32, text: &[u8]) -> u64 {
    xxh3_64_with_seed(text, u64::from(owner))
}

/// A place or length of a table: no config fills 4 GiB.
#[must_use]
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_told_apart() {
        let texts: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
        let keys =
            |owner: u32| texts.iter().zip(0..).map(move |(text, at)| (owner, text.as_bytes(), at + owner));
        let table = KeyTable::new(keys(0).chain(keys(1)));
        for (text, at) in texts.iter().zip(0..) {
            assert_eq!(table.get(0, text.as_bytes()), Some(at));
            assert_eq!(table.get(1, text.as_bytes()), Some(at + 1));
            assert_eq!(table.get(2, text.as_bytes()), None);
        }
        assert_eq!(table.get(0, b"x"), None);
        assert_eq!(table.get(0, b""), None);
        assert_eq!(table.texts.len(), texts.iter().map(String::len).sum::<usize>(), "each text once");
        assert_eq!(KeyTable::<u32>::default().get(0, b""), None);
    }
}
