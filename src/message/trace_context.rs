//! Trace context: which trace a request belongs to, as `traceparent` says (W3C Trace Context, Recommendation of 2021-11-23).

use super::{Head, HeaderField};

/// What a `traceparent` line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace; never zero.
    pub trace: u128,
    /// The span that the request was sent in; never zero.
    pub span: u64,
    /// Bits of which two are known: [`TraceParent::SAMPLED`] and [`TraceParent::RANDOM`].
    pub flags: u8,
}

impl TraceParent {
    /// Whoever sent it may have kept the trace (§3.2.2.5.1).
    pub const SAMPLED: u8 = 1;
    /// The trace's number was made at random (level 2, §3.2.2.5.2).
    pub const RANDOM: u8 = 2;
    /// Bytes of a value of version 00.
    const LENGTH: usize = 55;

    /// Reads a value; `None`: it is malformed. Of later versions the part is read that version 00 has as well (§3.2.4).
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<TraceParent> {
        let (known, more) = value.split_at_checked(TraceParent::LENGTH)?;
        let dashes = [2, 35, 52].iter().all(|&place| known[place] == b'-');
        let version = hex(&known[..2])?;
        let fits = match version {
            0 => more.is_empty(),
            0xff => false,
            _ => more.first().is_none_or(|&byte| byte == b'-'),
        };
        let (trace, span) = (hex(&known[3..35])?, hex(&known[36..52])?);
        let flags = hex(&known[53..])?;
        let is_known = dashes && fits && trace != 0 && span != 0;
        is_known.then_some(TraceParent { trace, span: u64::try_from(span).ok()?, flags: flags as u8 })
    }

    /// What the only `traceparent` line of a request says; `None`: there is none, there are several, or it is malformed.
    #[must_use]
    pub fn of(head: &Head) -> Option<TraceParent> {
        if !head.has(HeaderField::TraceParent) || head.repeats(HeaderField::TraceParent) {
            return None;
        }
        TraceParent::parse(head.value(HeaderField::TraceParent)?)
    }

    /// Whether whoever sent it may have kept the trace.
    #[must_use]
    pub const fn is_sampled(self) -> bool {
        self.flags & TraceParent::SAMPLED != 0
    }
}

/// At most 32 hex digits, of which no letter is a capital.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, &byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

/// The trace of a request, and its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: u128,
    /// The span that the request came in; 0: it begins the trace.
    pub parent: u64,
    /// The span of what is told about it: the request, or one attempt.
    pub span: u64,
    /// As in a [`TraceParent`].
    pub flags: u8,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_parent_is_read_as_it_is_written() {
        let parent = TraceParent::parse(GOOD.as_bytes()).expect("it is right");
        assert_eq!(parent.trace, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!((parent.span, parent.flags, parent.is_sampled()), (0xb7ad_6b71_6920_3331, 1, true));
        let of = |value: &str| TraceParent::parse(value.as_bytes());
        for (value, flags) in [("-00", 0), ("-02", 2), ("-ff", 255)] {
            assert_eq!(of(&GOOD.replace("-01", value)).map(|parent| parent.flags), Some(flags));
        }
        // Of a version to come what we know is read.
        for later in ["cc-", "01-"] {
            let later = GOOD.replace("00-", later);
            assert_eq!(of(&later), Some(parent));
            assert_eq!(of(&format!("{later}-what-the-future-brings")), Some(parent));
            assert_eq!(of(&format!("{later}.what")), None);
        }
    }

    #[test]
    fn what_is_malformed_is_none() {
        for (from, to) in [
            ("00-", "ff-"),
            ("00-", "0-"),
            ("00-", "g0-"),
            ("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
            ("b7ad6b7169203331", "0000000000000000"),
            ("0af7", "0AF7"),
            ("0af7", "0ag7"),
            ("-b7ad", ".b7ad"),
            ("-b7ad", "b7ad"),
            ("-01", "-1"),
            ("-01", "-0g"),
            ("-01", "-01-"),
            ("-01", "-01 "),
            (GOOD, ""),
        ] {
            assert_eq!(TraceParent::parse(GOOD.replace(from, to).as_bytes()), None, "{from} → {to}");
        }
        let mut head = Head::request("GET", "/", "a");
        assert_eq!(TraceParent::of(&head), None);
        head.push(b"TraceParent", GOOD.as_bytes());
        assert!(TraceParent::of(&head).is_some());
        head.push(b"traceparent", GOOD.as_bytes());
        assert_eq!(TraceParent::of(&head), None, "two of them say nothing");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(value in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = TraceParent::parse(&value);
        }

        #[test]
        fn what_is_read_is_what_was_written(trace in 1..u128::MAX, span in 1..u64::MAX, flags: u8) {
            let value = format!("00-{trace:032x}-{span:016x}-{flags:02x}");
            prop_assert_eq!(TraceParent::parse(value.as_bytes()), Some(TraceParent { trace, span, flags }));
        }
    }
}
