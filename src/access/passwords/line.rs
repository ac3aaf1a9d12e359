//! Who waits for a password to be compared, and whose turn it is.
//!
//! Invariants, which the tests hold against a plain model: of one client at most [`OF_CLIENT`] logins wait, of all together at most
//! [`OF_ALL`]; a client stands in `turns` once if any login of it waits, and else not at all; at most one login is under way. Clients take
//! turns, and the logins of one come in their order: whoever comes once waits for at most one login of each other client.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use super::known::PasswordDigest;

/// Logins of one client that wait at most, beside one that is under way.
pub(super) const OF_CLIENT: usize = 2;
/// Logins of all clients that wait at most.
pub(super) const OF_ALL: usize = 256;

/// Too many wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowded;

/// A client as far as turns go: an address, of v6 its /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClientKey(Option<IpAddr>);

impl ClientKey {
    pub(super) fn of(client: Option<IpAddr>) -> ClientKey {
        ClientKey(client.map(|client| match client.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) >> 64 << 64)),
            v4 @ IpAddr::V4(_) => v4,
        }))
    }
}

/// Logins of work `W`, each with who is told of it.
#[derive(Debug)]
pub(super) struct Line<W, T> {
    waiting: HashMap<ClientKey, VecDeque<Waiting<W, T>>>,
    turns: VecDeque<ClientKey>,
    count: usize,
    under_way: Option<UnderWay<T>>,
}

#[derive(Debug)]
struct Waiting<W, T> {
    digest: PasswordDigest,
    work: W,
    told: Vec<T>,
}

#[derive(Debug)]
struct UnderWay<T> {
    client: ClientKey,
    digest: PasswordDigest,
    told: Vec<T>,
}

impl<W, T> Default for Line<W, T> {
    fn default() -> Line<W, T> {
        Line { waiting: HashMap::new(), turns: VecDeque::new(), count: 0, under_way: None }
    }
}

impl<W, T> Line<W, T> {
    /// Takes a login in. One of the same client with the same digest that is there already tells both. `is_wanted`: whether somebody
    /// still waits to be told; the places of those who left are free.
    pub(super) fn enter(
        &mut self,
        client: ClientKey,
        (digest, work, told): (PasswordDigest, W, T),
        is_wanted: impl Fn(&T) -> bool,
    ) -> Result<(), Crowded> {
        if let Some(under_way) = &mut self.under_way
            && (under_way.client, under_way.digest) == (client, digest)
        {
            under_way.told.push(told);
            return Ok(());
        }
        if let Some(own) = self.waiting.get_mut(&client) {
            let before = own.len();
            own.retain(|login| login.told.iter().any(&is_wanted));
            self.count -= before - own.len();
            if let Some(same) = own.iter_mut().find(|login| login.digest == digest) {
                same.told.push(told);
                return Ok(());
            }
            if own.len() >= OF_CLIENT {
                return Err(Crowded);
            }
        }
        if self.count >= OF_ALL {
            self.leave_empty(client);
            return Err(Crowded);
        }
        let own = self.waiting.entry(client).or_insert_with(|| {
            self.turns.push_back(client);
            VecDeque::with_capacity(OF_CLIENT)
        });
        own.push_back(Waiting { digest, work, told: vec![told] });
        self.count += 1;
        Ok(())
    }

    /// The next login that is still wanted, which is under way from now on. Nothing may be under way.
    pub(super) fn next(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<W> {
        debug_assert!(self.under_way.is_none(), "one at a time");
        while let Some(client) = self.turns.pop_front() {
            let Some(own) = self.waiting.get_mut(&client) else { continue };
            let login = own.pop_front();
            self.count -= usize::from(login.is_some());
            if own.is_empty() {
                self.waiting.remove(&client);
            } else {
                self.turns.push_back(client);
            }
            if let Some(Waiting { digest, work, told }) = login
                && told.iter().any(&is_wanted)
            {
                self.under_way = Some(UnderWay { client, digest, told });
                return Some(work);
            }
        }
        None
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Who is to be told of the login that was under way.
    pub(super) fn finish(&mut self) -> Vec<T> {
        self.under_way.take().map(|login| login.told).unwrap_or_default()
    }

    fn leave_empty(&mut self, client: ClientKey) {
        if self.waiting.get(&client).is_some_and(VecDeque::is_empty) {
            self.waiting.remove(&client);
            self.turns.retain(|other| *other != client);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client(number: u8) -> ClientKey {
        ClientKey::of(Some(IpAddr::from([192, 0, 2, number])))
    }

    #[test]
    fn a_client_is_an_address_and_of_v6_a_network() {
        let key = |text: &str| ClientKey::of(Some(text.parse().expect("an address")));
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:1"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_ne!(key("::"), ClientKey::of(None));
    }

    #[test]
    fn clients_take_turns_whatever_one_of_them_has_waiting() {
        let mut line: Line<u32, ()> = Line::default();
        for (from, number) in [(1, 10), (1, 11), (2, 20), (3, 30), (2, 21)] {
            line.enter(client(from), ([number as u8; 32], number, ()), |()| true).expect("room");
        }
        assert_eq!(line.enter(client(1), ([12; 32], 12, ()), |()| true), Err(Crowded));
        assert_eq!(line.enter(client(1), ([10; 32], 12, ()), |()| true), Ok(()), "it is there already");
        let mut order = Vec::new();
        while let Some(work) = line.next(|()| true) {
            order.push((work, line.finish().len()));
        }
        assert_eq!(order, [(10, 2), (20, 1), (30, 1), (11, 1), (21, 1)]);
    }

    #[test]
    fn whoever_has_left_holds_no_place() {
        let mut line: Line<u32, bool> = Line::default();
        for number in [1, 2] {
            line.enter(client(1), ([number; 32], u32::from(number), false), |wanted| *wanted).expect("room");
        }
        line.enter(client(1), ([3; 32], 3, true), |wanted| *wanted).expect("those who left made room");
        assert_eq!(line.next(|wanted| *wanted), Some(3));
        assert_eq!((line.finish(), line.next(|wanted| *wanted)), (vec![true], None));
        assert_eq!((line.count, line.waiting.len(), line.turns.len()), (0, 0, 0));
    }

    #[test]
    fn a_crowd_of_clients_is_bounded_too() {
        let mut line: Line<usize, ()> = Line::default();
        let key = |number: usize| ClientKey::of(Some(IpAddr::from((number as u32).to_be_bytes())));
        let came: Vec<bool> = (0..OF_ALL + 9)
            .map(|number| line.enter(key(number), ([1; 32], number, ()), |()| true).is_ok())
            .collect();
        assert_eq!(came.iter().filter(|came| **came).count(), OF_ALL);
        assert_eq!((line.waiting.len(), line.turns.len()), (OF_ALL, OF_ALL));
    }

    proptest! {
        /// Whatever comes, leaves and is done in whichever order, the invariants hold, and everybody who came is told once.
        #[test]
        fn any_order_of_turns_keeps_the_invariants(
            steps in prop::collection::vec((0u8..4, 0u8..4, 0u8..4, any::<bool>()), 1..300),
        ) {
            let mut line: Line<(ClientKey, u8), (usize, bool)> = Line::default();
            let (mut came, mut told, mut gone) = (0usize, 0usize, 0usize);
            for (kind, from, digest, stays) in steps {
                match kind {
                    0..=2 => {
                        let login = ([digest; 32], (client(from), digest), (came, stays));
                        if line.enter(client(from), login, |(_, stays)| *stays).is_ok() {
                            came += 1;
                        }
                    }
                    _ => {
                        if line.under_way.is_some() {
                            told += line.finish().len();
                        } else {
                            line.next(|(_, stays)| *stays);
                        }
                    }
                }
                let waiting: usize = line.waiting.values().map(VecDeque::len).sum();
                prop_assert_eq!(waiting, line.count);
                prop_assert!(line.waiting.values().all(|own| own.len() <= OF_CLIENT && !own.is_empty()));
                let mut turns: Vec<ClientKey> = line.turns.iter().copied().collect();
                prop_assert_eq!(turns.len(), line.waiting.len());
                turns.retain(|client| line.waiting.contains_key(client));
                prop_assert_eq!(turns.len(), line.waiting.len());
            }
            told += line.finish().len();
            while line.next(|(_, stays)| *stays).is_some() {
                told += line.finish().len();
            }
            prop_assert_eq!(line.count, 0);
            gone += came - told;
            prop_assert!(gone <= came);
        }
    }
}
