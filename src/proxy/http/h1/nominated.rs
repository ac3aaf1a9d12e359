//! Fields that a sender has named as those of one connection: they stay behind (RFC 9110 §7.6.1).

use crate::message::{Fields, Head, HeadLine, HeaderField, tokens};

/// Fields that frame or route a message, or that a proxy adds: no Connection line takes them away. Nor does one take
/// away what is said about the client.
const PROTECTED: Fields = Fields::of(&[
    HeaderField::Host,
    HeaderField::ContentLength,
    HeaderField::TransferEncoding,
    HeaderField::Via,
    HeaderField::Trailer,
    HeaderField::Date,
    HeaderField::Ours,
]);

/// The fields that Connection lines name beside those of one connection, each with its key. All Connection lines count
/// together, and `parse` sees to it that they are not many.
#[derive(Default)]
pub struct Nominated<'a> {
    few: [(u32, &'a [u8]); 4],
    count: usize,
    /// Those for which there are not enough places in `few`.
    more: Vec<(u32, &'a [u8])>,
    /// A bit for each length that one of them has, of long ones by its remainder: nearly all lines are told by it.
    lengths: u64,
}

impl<'a> Nominated<'a> {
    /// Those of a head.
    #[must_use]
    pub fn by(head: &'a Head) -> Nominated<'a> {
        let mut nominated = Nominated::default();
        let listed = head.values(HeaderField::Connection).flat_map(tokens);
        for name in listed.filter(|name| !HeaderField::classify(name).is_hop_by_hop()) {
            let one = (Nominated::key(name), name);
            nominated.lengths |= 1 << (name.len() % 64);
            match nominated.few.get_mut(nominated.count) {
                Some(free) => {
                    *free = one;
                    nominated.count += 1;
                }
                None => nominated.more.push(one),
            }
        }
        nominated
    }

    /// A number that is the same for equal names, in any case, and hardly for others: comparing names costs more.
    fn key(name: &[u8]) -> u32 {
        let (front, back) = name.split_at(name.len().min(8));
        let ends = front.iter().chain(back.iter().rev().take(8));
        ends.fold(name.len() as u32, |key, byte| key.wrapping_mul(31).wrapping_add(u32::from(byte | 0x20)))
    }

    /// Whether this line is to be left out.
    #[inline]
    #[must_use]
    pub fn holds(&self, head: &Head, item: &HeadLine) -> bool {
        self.lengths != 0 && self.holds_one(head, item)
    }

    fn holds_one(&self, head: &Head, item: &HeadLine) -> bool {
        let name = head.at(item.name());
        if self.lengths >> (name.len() % 64) & 1 == 0
            || PROTECTED.contains(item.field)
            || item.field.is_about_client()
        {
            return false;
        }
        let key = Nominated::key(name);
        let same = |&(other, nominated): &(u32, &[u8])| other == key && nominated.eq_ignore_ascii_case(name);
        self.few.get(..self.count).unwrap_or_default().iter().any(same) || self.more.iter().any(same)
    }
}
