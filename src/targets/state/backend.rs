//! One address inside a target, with the live state that outlives a reload.
//!
//! The words that requests touch are atomics in a cache line of their own; why a backend is up or down
//! sits behind a mutex that only the control runtime and status readers take. Only the registry makes
//! backends, only `TargetState` changes their health.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::config::model::{self, BackendAddress};
use crate::message::BackendId;
use crate::slots::HeldSlot;
use crate::targets::queueing::seat::SeatWord;
use crate::targets::resilience::answers::Answers;
use crate::targets::resilience::attempt_counts::AttemptCounts;
use crate::targets::resilience::breaker::{Breaker, Circuit};
use crate::targets::resilience::ejection::{Ejection, EjectionKind};
use crate::targets::resilience::trouble::Trouble;
use crate::targets::state::decide::{Health, Inputs, Probe, Resolution, decide};
use crate::targets::state::departure::{Departure, DepartureWord};
use crate::targets::state::endpoint::Endpoint;
use crate::targets::state::health::last_probe::LastProbe;
use crate::targets::state::health::threshold::Threshold;
use crate::targets::state::input::Input;
use crate::targets::state::objects::{Backend, Board, Detail};
use crate::targets::state::operator::Operator;
use crate::tick::{Tick, nanos};
use crate::tls::Upstream;

impl Backend {
    /// A backend of `target` that was never seen before.
    pub(in crate::targets) fn new(
        slot: HeldSlot,
        target: &model::TargetConfig,
        config: &model::BackendConfig,
        board: &Arc<Board>,
        tls: Option<Upstream>,
    ) -> Backend {
        let endpoints = literal(&config.address);
        let name = if endpoints.is_empty() {
            Input::new(Resolution::Pending, "the name is being resolved", Tick::ZERO)
        } else {
            Input::new(Resolution::Resolved, "a literal address", Tick::ZERO)
        };
        let operator = Operator::of(config);
        let inputs = Inputs { operator, ..Inputs::new(name, probe_input(target.health.is_some())) };
        let decision = decide(&inputs);
        Backend {
            in_flight: AtomicU32::default(),
            generation: AtomicU32::default(),
            ejection: Ejection::default(),
            breaker: Breaker::default(),
            board: Arc::clone(board),
            seat: SeatWord::default(),
            id: BackendId(slot.number()),
            health: AtomicU8::new(decision.standing as u8),
            errors: AtomicU8::default(),
            idle_proven: AtomicU64::default(),
            answers: Answers::default(),
            attempt_counts: AttemptCounts::default(),
            name: config.name.as_str().into(),
            identity: format!("{}/{}", target.name, config.name).into(),
            address: config.address.clone(),
            authority: config.authority().into(),
            tls,
            tls_settings: config.tls.clone(),
            dialing: Arc::clone(&config.dialing),
            endpoints: ArcSwap::from_pointee(endpoints.into()),
            detail: Mutex::new(Detail {
                inputs,
                threshold: Threshold::default(),
                check: 0,
                decision,
                added: Tick::ZERO,
                last_probe: None,
            }),
            trouble: Trouble::default(),
            departure: DepartureWord::default(),
            elsewhere: AtomicU32::default(),
            own: AtomicBool::new(true),
            gone: AtomicBool::new(false),
            idle_connections: AtomicU32::default(),
            _slot: slot,
        }
    }

    /// Whether `config` still means this backend; if not, a reload makes a new one. How it is probed is no part of what it
    /// is.
    pub(in crate::targets) fn is_still(&self, config: &model::BackendConfig) -> bool {
        *self.name == *config.name
            && self.address == config.address
            && self.tls_settings == config.tls
            && self.dialing == config.dialing
    }

    /// Its state at this moment.
    #[must_use]
    pub fn health(&self) -> Health {
        match self.health.load(Ordering::Relaxed) {
            0 => Health::Unknown,
            1 => Health::Up,
            2 => Health::Down,
            _ => Health::Draining,
        }
    }

    /// Whether those who are kept at it, and come again and again, may stay: it is up as far as is known, and neither refuses nor fails all the time.
    #[must_use]
    #[inline]
    pub fn holds(&self) -> bool {
        matches!(self.health(), Health::Up | Health::Unknown)
            && self.ejection().word().kind() != Some(EjectionKind::Refused)
            && (self.breaker().is_clear() || self.breaker().word().circuit() == Circuit::Closed)
            && !self.is_gone()
    }

    /// Whether it is to have nobody before long: it is drained, taken down by hand, or in no config any more.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.health() == Health::Draining || self.is_gone() || self.departure().is_some()
    }

    /// Its addresses in the order in which they are tried; none while its name has not been resolved.
    #[must_use]
    pub fn endpoints(&self) -> Arc<[Endpoint]> {
        Arc::clone(&self.endpoints.load())
    }

    /// Grows by one (wrapping) when it goes down, is removed or changes its addresses. A pooled connection
    /// remembers the value it was opened under and is closed when the two differ.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// How it leaves; `None`: it stays. Whoever changes it tells the workers afterwards.
    #[must_use]
    pub fn departure(&self) -> Option<Departure> {
        self.departure.get()
    }

    /// No config has it any more: it leaves in this way. One that leaves already is over when the first of the two is.
    pub(in crate::targets) fn remove(&self, departure: Departure) {
        self.gone.store(true, Ordering::Relaxed);
        self.departure.hasten(departure);
        self.retire_connections();
    }

    /// A config has it again before it was over: it stays. Workers are to look at it.
    pub(in crate::targets) fn stay(&self) {
        self.gone.store(false, Ordering::Relaxed);
        self.departure.stay();
    }

    /// One that no config has any more leaves in this way, unless it is over sooner anyway. Says whether it leaves at all. Whoever
    /// calls it tells the workers afterwards.
    #[must_use]
    pub fn hasten(&self, departure: Departure) -> bool {
        let leaves = self.gone.load(Ordering::Relaxed);
        if leaves {
            self.departure.hasten(departure);
        }
        leaves
    }

    /// It is taken down: the tunnels to it end in this way.
    pub(in crate::targets) fn take_down(&self, departure: Departure) {
        self.departure.hasten(departure);
        self.retire_connections();
    }

    /// It is no longer taken down: its tunnels go on after all.
    pub(in crate::targets) fn take_back(&self) {
        self.departure.stay();
    }

    /// Whether no config has it any more. Who was kept at it goes elsewhere.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Notes that it closed a kept-alive connection that had been idle for `age`, at most.
    pub fn note_idle_close(&self, age: Duration) {
        self.idle_proven.fetch_min(nanos(age), Ordering::Relaxed);
    }

    /// Notes that a kept-alive connection to it was still open after being idle for `age`.
    pub fn note_idle_open(&self, age: Duration) {
        self.idle_proven.fetch_max(nanos(age), Ordering::Relaxed);
    }

    /// The longest time for which it has kept an idle connection open, since it last closed one earlier than
    /// that; zero at first.
    #[must_use]
    pub fn idle_proven(&self) -> Duration {
        Duration::from_nanos(self.idle_proven.load(Ordering::Relaxed))
    }

    /// Which check is in force, counted from 0 as they change: who probes says from which one a verdict is.
    #[must_use]
    pub fn check(&self) -> u32 {
        self.detail().check
    }

    /// Notes its latest probe, for status readers.
    pub fn note_probe(&self, probe: LastProbe) {
        self.detail().last_probe = Some(probe);
    }

    /// Whether its latest probe contradicted the verdict in force, so that the next is due earlier.
    #[must_use]
    pub fn in_doubt(&self) -> bool {
        self.detail().threshold.in_doubt()
    }

    /// The port of a backend that was written as a host.
    pub(in crate::targets) fn port(&self) -> Option<u16> {
        match &self.address {
            BackendAddress::Host { port, .. } => Some(*port),
            BackendAddress::Unix(_) => None,
        }
    }

    pub(in crate::targets) fn detail(&self) -> MutexGuard<'_, Detail> {
        // A panic in between leaves plain values behind, each valid by itself.
        self.detail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the health that [`Detail`] has come to.
    pub(in crate::targets) fn publish(&self, health: Health) {
        self.health.store(health as u8, Ordering::Relaxed);
    }

    /// Replaces the addresses, which are tried in turn: families take turns, beginning with that of the first, so that a network on
    /// which one of them does not work costs one attempt (RFC 8305 §4). Says whether they changed; another order of the same ones is no change,
    /// since resolvers rotate their answers.
    pub(in crate::targets) fn readdress(&self, addresses: &[IpAddr]) -> bool {
        let Some(port) = self.port() else { return false };
        let mut fresh: Vec<Endpoint> = Vec::with_capacity(addresses.len());
        for address in by_turns(addresses) {
            let endpoint = Endpoint::Tcp(SocketAddr::new(address, port));
            if !fresh.contains(&endpoint) {
                fresh.push(endpoint);
            }
        }
        let known = self.endpoints();
        if known.len() == fresh.len() && fresh.iter().all(|endpoint| known.contains(endpoint)) {
            return false;
        }
        self.endpoints.store(Arc::new(fresh.into()));
        true
    }

    /// Makes the pools drop the connections they keep to it.
    pub(in crate::targets) fn retire_connections(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Its circuit breaker.
    #[inline]
    pub(in crate::targets) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Errors one after the other, up to 255.
    #[inline]
    pub(in crate::targets) fn errors(&self) -> &AtomicU8 {
        &self.errors
    }

    /// Until when it is out by its own words; `None`: it is not. [`Tick::NEVER`]: until its breaker's trial reports.
    pub(in crate::targets) fn out_until(&self) -> Option<Tick> {
        let ejected = self.ejection.word().until();
        match self.breaker.word().circuit() {
            Circuit::Closed => ejected,
            Circuit::Open(until) => Some(ejected.map_or(until, |ejected| ejected.max(until))),
            Circuit::HalfOpen => Some(Tick::NEVER),
        }
    }

    /// Whether it may serve those whose cookie names it: it is up, or drains, and is not left out for anything that counts
    /// (`panics`: for what outliers do is set aside). It may be full.
    pub(in crate::targets) fn serves_pins(&self, panics: bool) -> bool {
        let is_there = matches!(self.health(), Health::Up | Health::Draining);
        let is_outlier = || {
            let is_closed = self.breaker.word().circuit() == Circuit::Closed;
            panics && is_closed && self.ejection.word().is_outlier()
        };
        is_there && (self.out_until().is_none() || is_outlier())
    }

    /// Whether it is passed over.
    #[inline]
    pub(in crate::targets) fn ejection(&self) -> &Ejection {
        &self.ejection
    }

    /// How soon and how well it answers, as far as its target's algorithm wants to know.
    pub(in crate::targets) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// What its attempts came to.
    pub(in crate::targets) fn attempt_counts(&self) -> &AttemptCounts {
        &self.attempt_counts
    }

    /// The call for a probe.
    pub(in crate::targets) fn trouble(&self) -> &Trouble {
        &self.trouble
    }

    /// Where it is in the live set.
    pub(in crate::targets) fn seat(&self) -> &SeatWord {
        &self.seat
    }

    /// Where leases of its target report.
    pub(in crate::targets) fn board(&self) -> &Board {
        &self.board
    }

    /// Whether it is out of the choice only for having as many leases as it may have.
    pub(in crate::targets) fn is_only_full(&self) -> bool {
        let limit = self.board.limit();
        limit > 0 && self.taken() >= limit && self.serves_pins(self.board.panics())
    }

    /// Counts one more lease. Whoever keeps an order of loads is told by the caller.
    pub(in crate::targets) fn enter(&self) {
        #[cfg(test)]
        crate::steps::point();
        self.in_flight.fetch_add(1, Ordering::SeqCst);
    }

    /// The same, unless it has `limit` already (0: any number). Gives how many there are now.
    #[inline]
    pub(in crate::targets) fn enter_within(&self, limit: u32) -> Option<u32> {
        if limit == 0 {
            self.enter();
            return Some(0);
        }
        #[cfg(test)]
        crate::steps::point();
        let count = |now: u32| (now < limit).then_some(now + 1);
        self.in_flight.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count).ok().map(|before| before + 1)
    }

    /// Counts one lease less.
    pub(in crate::targets) fn leave(&self) {
        #[cfg(test)]
        crate::steps::point();
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    /// The same, unless it has `limit` or more. Says whether it did.
    pub(in crate::targets) fn leave_below(&self, limit: u32) -> bool {
        #[cfg(test)]
        crate::steps::point();
        let count = |now: u32| (now < limit).then_some(now - 1);
        self.in_flight.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count).is_ok()
    }
}

/// What the probe says before its first verdict.
pub(in crate::targets) fn probe_input(probed: bool) -> Input<Probe> {
    if probed {
        Input::new(Probe::Pending, "not probed yet", Tick::ZERO)
    } else {
        Input::new(Probe::Off, "health_check is off", Tick::ZERO)
    }
}

/// The same addresses, one of each family in turn as long as there are both, in the order given within each.
fn by_turns(addresses: &[IpAddr]) -> impl Iterator<Item = IpAddr> {
    let first = addresses.first().is_some_and(IpAddr::is_ipv6);
    let of = move |six: bool| addresses.iter().copied().filter(move |address| address.is_ipv6() == six);
    let (mut own, mut other) = (of(first), of(!first));
    let mut turn = false;
    std::iter::from_fn(move || {
        turn = !turn;
        if turn { own.next().or_else(|| other.next()) } else { other.next().or_else(|| own.next()) }
    })
}

/// The endpoints of an address that needs no lookup; none for a name.
fn literal(address: &BackendAddress) -> Vec<Endpoint> {
    match address {
        BackendAddress::Host { host, port } => {
            host.parse::<IpAddr>().map(|ip| Endpoint::Tcp(SocketAddr::new(ip, *port))).into_iter().collect()
        }
        BackendAddress::Unix(path) => vec![Endpoint::Unix(Arc::from(path.as_path()))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::fixtures::{alone, host, probed, unprobed};

    #[test]
    fn what_a_pick_touches_is_one_line_with_the_counts() {
        let counts = 2 * size_of::<usize>();
        assert!(counts + std::mem::offset_of!(Backend, idle_proven) <= 64);
        assert!(align_of::<Backend>() <= 16, "a greater alignment moves the counts away");
    }

    #[test]
    fn literals_have_an_endpoint_from_the_start_and_names_none() {
        let backend = |address| alone(&probed(0), address);
        let v6 = backend(host("::1", 80));
        assert_eq!(v6.endpoints().iter().map(ToString::to_string).collect::<Vec<_>>(), ["[::1]:80"]);
        let unix = backend(BackendAddress::Unix("/run/app.sock".into()));
        assert_eq!(unix.endpoints()[0].to_string(), "unix:/run/app.sock");
        let name = backend(host("app.internal", 80));
        assert!(name.endpoints().is_empty() && name.health() == Health::Unknown);
        assert_eq!(&*name.identity, "web/a");
    }

    #[test]
    fn without_probing_a_literal_is_up_and_a_name_waits_for_its_addresses() {
        let backend = |address| alone(&unprobed(0), address).health();
        assert_eq!(backend(host("127.0.0.1", 80)), Health::Up);
        assert_eq!(backend(host("app.internal", 80)), Health::Unknown);
    }

    #[test]
    fn another_order_of_the_same_addresses_is_no_change() {
        let backend = alone(&probed(0), host("app.internal", 80));
        let ip = |last| IpAddr::from([10, 0, 0, last]);
        assert!(backend.readdress(&[ip(1), ip(2), ip(1)]));
        assert_eq!(backend.endpoints().len(), 2);
        assert!(!backend.readdress(&[ip(2), ip(1)]));
        assert_eq!(backend.endpoints()[0], Endpoint::Tcp((ip(1), 80).into()));
        assert!(backend.readdress(&[ip(2)]));
    }

    #[test]
    fn families_take_turns_in_the_order_of_the_resolver() {
        let list = |text: &str| -> Vec<IpAddr> {
            text.split_whitespace().map(|one| one.parse().expect("an address")).collect()
        };
        for (given, order) in [
            ("::1 ::2 ::3 10.0.0.1 10.0.0.2", "::1 10.0.0.1 ::2 10.0.0.2 ::3"),
            ("10.0.0.2 10.0.0.1 ::1", "10.0.0.2 ::1 10.0.0.1"),
            ("10.0.0.2 10.0.0.1", "10.0.0.2 10.0.0.1"),
            ("::2", "::2"),
            ("", ""),
        ] {
            assert_eq!(by_turns(&list(given)).collect::<Vec<_>>(), list(order), "{given}");
        }
        let backend = alone(&probed(0), host("app.internal", 80));
        assert!(backend.readdress(&list("::1 ::2 10.0.0.1")));
        let texts: Vec<String> = backend.endpoints().iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["[::1]:80", "10.0.0.1:80", "[::2]:80"]);
    }

    #[test]
    fn what_is_proven_of_idle_connections_grows_and_is_disproved() {
        let backend = alone(&probed(0), host("127.0.0.1", 80));
        let millis = Duration::from_millis;
        assert_eq!(backend.idle_proven(), Duration::ZERO);
        for age in [30, 49, 20] {
            backend.note_idle_open(millis(age));
        }
        assert_eq!(backend.idle_proven(), millis(49));
        backend.note_idle_close(millis(700));
        assert_eq!(backend.idle_proven(), millis(49), "seen late: it says nothing");
        backend.note_idle_close(millis(10));
        assert_eq!(backend.idle_proven(), millis(10));
        backend.note_idle_open(millis(60));
        assert_eq!(backend.idle_proven(), millis(60), "a restart is not held against it for ever");
    }
}
