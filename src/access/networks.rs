//! Which of many networks an address is in.
//!
//! Prefixes lie inside one another or apart, so a list of them cuts the addresses into ranges, each of which has one verdict. What is
//! kept are the sorted beginnings of these ranges: an address is found by one search among samples of them, every 64th, which stay
//! in the nearest cache, and a second one among the 64 behind the sample.

use std::cmp::Reverse;
use std::net::IpAddr;

use ipnet::IpNet;

/// What the networks say of an address that is in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkVerdict {
    /// It is let in.
    Allow,
    /// It is not.
    Deny,
}

/// Networks that are let in and networks that are not. Immutable: whoever has others makes another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

impl Networks {
    /// These.
    #[must_use]
    pub fn new(allow: &[IpNet], deny: &[IpNet]) -> Networks {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (networks, verdict) in [(allow, NetworkVerdict::Allow), (deny, NetworkVerdict::Deny)] {
            for network in networks {
                match network {
                    IpNet::V4(net) => {
                        v4.push(Prefix::new(net.network().into(), net.broadcast().into(), verdict));
                    }
                    IpNet::V6(net) => {
                        v6.push(Prefix::new(net.network().into(), net.broadcast().into(), verdict));
                    }
                }
            }
        }
        Networks { v4: Ranges::new(v4), v6: Ranges::new(v6) }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.starts.is_empty() && self.v6.starts.is_empty()
    }

    /// What the longest prefix says that `address` is in, denial at a tie; `None`: it is in none. A v4 address mapped into v6 is v4.
    #[must_use]
    pub fn verdict(&self, address: IpAddr) -> Option<NetworkVerdict> {
        match address.to_canonical() {
            IpAddr::V4(v4) => self.v4.verdict(v4.into()),
            IpAddr::V6(v6) => self.v6.verdict(v6.into()),
        }
    }

    /// Bytes that it takes beside itself.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.v4.bytes() + self.v6.bytes()
    }
}

/// An address as a number.
trait Address: Copy + Ord {
    /// The next one; `None`: there is none.
    fn next(self) -> Option<Self>;
}

impl Address for u32 {
    fn next(self) -> Option<u32> {
        self.checked_add(1)
    }
}

impl Address for u128 {
    fn next(self) -> Option<u128> {
        self.checked_add(1)
    }
}

/// The addresses of one network, both ends included.
#[derive(Clone, Copy, Debug)]
struct Prefix<A> {
    first: A,
    last: A,
    verdict: NetworkVerdict,
}

impl<A> Prefix<A> {
    fn new(first: A, last: A, verdict: NetworkVerdict) -> Prefix<A> {
        Prefix { first, last, verdict }
    }
}

/// Beginnings between two samples, 1 KiB of IPv6.
const STRIDE: usize = 64;

/// Ranges without a gap from the first beginning on. Each ends where the next begins.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ranges<A> {
    /// Every [`STRIDE`]th of `starts`, from the first on.
    samples: Box<[A]>,
    starts: Box<[A]>,
    /// Of the range that begins at the same place.
    verdicts: Box<[Option<NetworkVerdict>]>,
}

impl<A> Default for Ranges<A> {
    fn default() -> Ranges<A> {
        Ranges { samples: Box::default(), starts: Box::default(), verdicts: Box::default() }
    }
}

impl<A: Address> Ranges<A> {
    fn new(mut prefixes: Vec<Prefix<A>>) -> Ranges<A> {
        // Whoever holds another one comes before it; of two equal ones the denial comes last, as if it were the longer one.
        prefixes.sort_unstable_by_key(|prefix| (prefix.first, Reverse(prefix.last), prefix.verdict));
        let mut cut = Cut { starts: Vec::new(), verdicts: Vec::new() };
        // Those that the present address is in, the longest last.
        let mut around: Vec<Prefix<A>> = Vec::new();
        for prefix in prefixes {
            while let Some(ended) = around.pop_if(|open| open.last < prefix.first) {
                cut.behind(&ended, &around);
            }
            cut.at(prefix.first, Some(prefix.verdict));
            around.push(prefix);
        }
        while let Some(ended) = around.pop() {
            cut.behind(&ended, &around);
        }
        let Cut { starts, verdicts } = cut;
        Ranges {
            samples: starts.iter().step_by(STRIDE).copied().collect(),
            starts: starts.into(),
            verdicts: verdicts.into(),
        }
    }

    fn verdict(&self, address: A) -> Option<NetworkVerdict> {
        let sample = self.samples.partition_point(|start| *start <= address).checked_sub(1)?;
        let begin = sample * STRIDE;
        let block = &self.starts[begin..self.starts.len().min(begin + STRIDE)];
        // The first of the block is the sample, which is not behind the address.
        let inside = block.partition_point(|start| *start <= address).saturating_sub(1);
        self.verdicts[begin + inside]
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.samples) + size_of_val(&*self.starts) + size_of_val(&*self.verdicts)
    }
}

/// Ranges in the making.
struct Cut<A> {
    starts: Vec<A>,
    verdicts: Vec<Option<NetworkVerdict>>,
}

impl<A: Address> Cut<A> {
    /// From `start` on this holds, whatever has been said of it before. No start is smaller than the one before.
    fn at(&mut self, start: A, verdict: Option<NetworkVerdict>) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.verdicts.pop();
        }
        if self.verdicts.last().copied().flatten() != verdict {
            self.starts.push(start);
            self.verdicts.push(verdict);
        }
    }

    /// Behind the end of `ended` the longest of those `around` it holds again.
    fn behind(&mut self, ended: &Prefix<A>, around: &[Prefix<A>]) {
        if let Some(start) = ended.last.next() {
            self.at(start, around.last().map(|outer| outer.verdict));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    /// The rule as it is written, network by network.
    fn scan(allow: &[IpNet], deny: &[IpNet], address: IpAddr) -> Option<NetworkVerdict> {
        let address = address.to_canonical();
        let longest = |networks: &[IpNet]| {
            networks.iter().filter(|network| network.contains(&address)).map(IpNet::prefix_len).max()
        };
        match (longest(allow), longest(deny)) {
            (None, None) => None,
            (allow, deny) if allow > deny => Some(NetworkVerdict::Allow),
            (_, _) => Some(NetworkVerdict::Deny),
        }
    }

    fn network(address: IpAddr, length: u8) -> IpNet {
        IpNet::new(address, length).expect("a length that fits").trunc()
    }

    /// Addresses that lie close together, so that networks hold one another, and at both ends.
    fn address() -> impl Strategy<Value = IpAddr> {
        let near = |bits: u32| {
            prop_oneof![Just(0u32), Just(u32::MAX), Just(10 << 24)].prop_map(move |base| base ^ bits)
        };
        let v4 = (0u32..64).prop_flat_map(near).prop_map(|bits| IpAddr::V4(Ipv4Addr::from(bits)));
        let v6 = (0u128..64, prop_oneof![Just(0u128), Just(u128::MAX), Just(0x2001_0db8 << 96)])
            .prop_map(|(bits, base)| IpAddr::V6(Ipv6Addr::from(base ^ bits)));
        let any =
            prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)];
        prop_oneof![3 => v4, 3 => v6, 1 => any]
    }

    fn networks() -> impl Strategy<Value = Vec<IpNet>> {
        let one = (address(), 0u8..=10).prop_map(|(address, wider)| {
            let most = if address.is_ipv4() { 32 } else { 128 };
            // Mostly small ones, and the whole.
            network(address, if wider == 10 { 0 } else { most - wider })
        });
        prop::collection::vec(one, 0..200)
    }

    proptest! {
        #[test]
        fn the_search_says_what_a_scan_says(
            allow in networks(),
            deny in networks(),
            asked in prop::collection::vec(address(), 1..100),
        ) {
            let made = Networks::new(&allow, &deny);
            prop_assert_eq!(made.is_empty(), allow.is_empty() && deny.is_empty());
            let ends = allow.iter().chain(&deny).flat_map(|net| [net.network(), net.broadcast()]);
            let beside = ends.clone().flat_map(|end| match end {
                IpAddr::V4(end) => [end.to_bits().wrapping_add(1), end.to_bits().wrapping_sub(1)]
                    .map(|bits| IpAddr::V4(bits.into())),
                IpAddr::V6(end) => [end.to_bits().wrapping_add(1), end.to_bits().wrapping_sub(1)]
                    .map(|bits| IpAddr::V6(bits.into())),
            });
            for address in asked.into_iter().chain(ends.clone()).chain(beside) {
                prop_assert_eq!(made.verdict(address), scan(&allow, &deny, address), "{}", address);
            }
        }
    }

    #[test]
    fn a_v4_address_in_v6_is_v4() {
        let made = Networks::new(&[network("10.0.0.0".parse().expect("one"), 8)], &[]);
        assert_eq!(made.verdict("::ffff:10.1.2.3".parse().expect("one")), Some(NetworkVerdict::Allow));
        assert_eq!(made.verdict("::10.1.2.3".parse().expect("one")), None);
        let all = Networks::new(&[], &[network("::".parse().expect("one"), 0)]);
        assert_eq!(all.verdict("::ffff:10.1.2.3".parse().expect("one")), None, "v4 is not in ::/0");
    }

    #[test]
    fn neighbours_that_say_the_same_are_one_range() {
        let nets: Vec<IpNet> =
            (0..=255u8).map(|last| network(Ipv4Addr::new(10, 0, 0, last).into(), 32)).collect();
        let made = Networks::new(&[], &nets);
        assert_eq!(made.v4.starts.len(), 2, "one beginning, one end");
        assert_eq!(Networks::new(&[], &[network(Ipv4Addr::UNSPECIFIED.into(), 0)]).v4.starts.len(), 1);
    }
}
