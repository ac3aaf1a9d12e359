//! What clients still owe whose connection was ended or left: whoever comes again begins with that, so that reconnecting refills no
//! budget.
//!
//! Invariants. There are at most 512 addresses; where there is no room the smallest debt goes. A debt falls by time as a budget
//! fills, so after ten seconds nothing is left of it.

use std::net::{IpAddr, Ipv6Addr};

use super::budget::{EACH_SECOND, FULL};
use crate::tick::Tick;

/// Addresses that are remembered.
const MOST: usize = 512;
/// A debt that is not worth remembering.
const SMALL: u32 = FULL / 10;
/// The largest: whoever shares an address with somebody who floods can still begin as clients do.
const LARGEST: u32 = FULL - 200;

/// What one address owes.
#[derive(Clone, Copy, Debug)]
struct Debt {
    address: IpAddr,
    units: u32,
    since: Tick,
}

impl Debt {
    fn left(&self, now: Tick) -> u32 {
        remaining(self.units, self.since, now)
    }
}

/// What is left of so many units that were owed at `since`.
#[must_use]
pub fn remaining(units: u32, since: Tick, now: Tick) -> u32 {
    let paid = now.since(since).as_millis() as u64 * EACH_SECOND / 1000;
    u32::try_from(paid).map_or(0, |paid| units.saturating_sub(paid))
}

/// The debts that one worker knows of.
#[derive(Debug, Default)]
pub struct Debts(Vec<Debt>);

impl Debts {
    /// Notes what a connection owes that has ended.
    pub fn note(&mut self, address: IpAddr, units: u32, now: Tick) {
        if units < SMALL {
            return;
        }
        let address = network(address);
        let debt = Debt { address, units: units.min(LARGEST), since: now };
        if let Some(known) = self.0.iter_mut().find(|known| known.address == address) {
            // Connections of one address add up.
            known.units = known.left(now).saturating_add(debt.units).min(LARGEST);
            known.since = now;
            return;
        }
        if self.0.len() >= MOST {
            self.0.retain(|known| known.left(now) > 0);
        }
        if self.0.len() < MOST {
            self.0.push(debt);
        } else if let Some(smallest) = self.0.iter_mut().min_by_key(|known| known.left(now))
            && smallest.left(now) < debt.units
        {
            *smallest = debt;
        }
    }

    /// What a client from there owes.
    #[must_use]
    pub fn of(&self, address: IpAddr, now: Tick) -> u32 {
        if self.0.is_empty() {
            return 0;
        }
        let address = network(address);
        self.0.iter().find(|debt| debt.address == address).map_or(0, |debt| debt.left(now))
    }
}

/// Whoever has one v6 address has all of its /64.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => v4.into(),
            None => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_debt_is_the_networks_and_is_paid_by_time() {
        let (mut debts, start) = (Debts::default(), Tick(1));
        debts.note(address("2001:db8::1"), 1000, start);
        assert_eq!(debts.of(address("2001:db8::ffff:1:2:3"), start), LARGEST);
        assert_eq!(debts.of(address("2001:db8:0:1::1"), start), 0);
        assert_eq!(debts.of(address("2001:db8::1"), start.after(Duration::from_secs(4))), LARGEST - 400);
        assert_eq!(debts.of(address("2001:db8::1"), start.after(Duration::from_secs(10))), 0);
        debts.note(address("::ffff:10.0.0.1"), 300, start);
        debts.note(address("10.0.0.1"), 300, start.after(Duration::from_secs(1)));
        assert_eq!(debts.of(address("10.0.0.1"), start.after(Duration::from_secs(1))), 500, "they add up");
        debts.note(address("10.0.0.2"), SMALL - 1, start);
        assert_eq!(debts.of(address("10.0.0.2"), start), 0);
    }

    #[test]
    fn the_table_is_bounded_and_keeps_the_largest() {
        let (mut debts, now) = (Debts::default(), Tick(1));
        let nth = |number: u32| IpAddr::from(number.to_be_bytes());
        for number in 0..10_000 {
            debts.note(nth(number), if number % 100 == 0 { 1000 } else { 200 }, now);
        }
        assert_eq!(debts.0.len(), MOST);
        assert!((0..100).all(|number| debts.of(nth(number * 100), now) == LARGEST));
    }
}
