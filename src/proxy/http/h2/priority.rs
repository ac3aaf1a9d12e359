//! Which stream goes first (RFC 9218).

use crate::message::{Head, HeaderField, tokens};

/// What a client says about the urgency of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 is first, 7 last.
    pub urgency: u8,
    /// It is of use while it is not whole: it shares with its like.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Priority {
        // RFC 9218 has it the other way round for those that say something. Who says nothing may wait for any of its streams.
        Priority { urgency: 3, incremental: true }
    }
}

impl Priority {
    /// That of the `priority` fields of a head, or the usual one.
    #[must_use]
    pub fn of(head: &Head) -> Priority {
        head.value(HeaderField::Priority).map_or_else(Priority::default, Priority::parse)
    }

    /// That of a field's value; what is not understood counts as not said (RFC 9218 §4, RFC 9651).
    #[must_use]
    pub fn parse(value: &[u8]) -> Priority {
        let mut priority = Priority { incremental: false, ..Priority::default() };
        for item in tokens(value) {
            match item {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }

    /// The place among those that wait: the smallest goes first. `share`: when the stream last had one, and `id` its number. Those of
    /// one urgency go one after the other, but for those that share.
    #[must_use]
    pub fn rank(self, share: u32, id: u32) -> (u8, u32, u32) {
        (self.urgency, if self.incremental { share } else { 0 }, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_counts_as_not_said() {
        let of = |text: &str| {
            let Priority { urgency, incremental } = Priority::parse(text.as_bytes());
            (urgency, incremental)
        };
        for (text, expected) in [
            ("", (3, false)),
            ("u=0", (0, false)),
            ("u=7, i", (7, true)),
            ("i,u=1", (1, true)),
            ("u=8", (3, false)),
            ("u=-1", (3, false)),
            ("u=5, i=?0", (5, false)),
            ("i=?1;x, u=2", (2, false)),
            ("U=1, I", (3, false)),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn urgent_ones_go_first_and_those_that_share_take_turns() {
        let of = |urgency, incremental| Priority { urgency, incremental };
        assert!(of(0, false).rank(9, 9) < of(1, false).rank(0, 1));
        assert!(of(3, false).rank(9, 1) < of(3, false).rank(2, 3), "one after the other");
        assert!(of(3, true).rank(1, 9) < of(3, true).rank(2, 3), "who had its share longest ago");
    }
}
