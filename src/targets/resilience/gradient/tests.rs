use proptest::prelude::*;

use super::*;

/// A backend that works on `slots` requests at once, and clients that send the next request when they have an answer.
#[derive(Clone, Copy)]
struct Backend {
    slots: f64,
    /// What an answer takes when there is a slot, in doublings.
    service: f64,
}

impl Backend {
    const fn new(slots: f64) -> Backend {
        Backend { slots, service: 8.0 }
    }

    /// One second with `clients` of them, of whom no more than the limit get through; `noise` in doublings.
    fn run(self, gradient: &mut Gradient, clients: f64, noise: f64) -> u32 {
        let busy = clients.min(gradient.limit().into());
        let latency = self.service + (busy / self.slots).max(1.0).log2() + noise;
        gradient.step(Sample { latency, busy, faulty: false })
    }

    /// So many seconds of many clients: the limits after each.
    fn saturate(self, gradient: &mut Gradient, seconds: usize) -> Vec<u32> {
        (0..seconds).map(|_| self.run(gradient, 1e6, 0.0)).collect()
    }
}

/// Where the limit of a backend with so many slots may settle.
fn around(slots: f64) -> std::ops::RangeInclusive<f64> {
    let tolerated = slots * 1.25;
    slots..=(tolerated + 2.0 * tolerated.sqrt()).max(8.0)
}

/// The same, for a list of limits.
fn assert_around(limits: &[u32], slots: f64) {
    let range = around(slots);
    assert!(limits.iter().all(|limit| range.contains(&f64::from(*limit))), "{slots} slots: {limits:?}");
}

#[test]
fn the_limit_settles_a_little_above_the_knee() {
    for (slots, within) in
        [(1.0, 20), (4.0, 20), (16.0, 20), (50.0, 20), (200.0, 20), (1000.0, 30), (4000.0, 60)]
    {
        let mut gradient = Gradient::default();
        let limits = Backend::new(slots).saturate(&mut gradient, within + 60);
        assert_around(&limits[within..], slots);
    }
}

#[test]
fn it_stays_there_for_hours_and_gives_up_little_for_measuring() {
    for slots in [4.0, 16.0, 200.0, 1000.0] {
        let mut gradient = Gradient::default();
        Backend::new(slots).saturate(&mut gradient, 60);
        let limits = Backend::new(slots).saturate(&mut gradient, 4 * 3600);
        assert!(limits.iter().all(|limit| f64::from(*limit) <= *around(slots).end()), "{slots} slots");
        let idle: f64 = limits.iter().map(|limit| 1.0 - (f64::from(*limit) / slots).min(1.0)).sum();
        let share = idle / limits.len() as f64;
        assert!(share < 0.025, "{slots} slots: {share} of them idle");
    }
}

#[test]
fn a_backend_that_loses_slots_gets_fewer_requests_and_more_when_they_are_back() {
    let mut gradient = Gradient::default();
    assert_around(&Backend::new(200.0).saturate(&mut gradient, 90)[60..], 200.0);
    let limits = Backend::new(20.0).saturate(&mut gradient, 30);
    assert!(limits[..12].is_sorted_by(|before, after| before > after), "{limits:?}");
    assert_around(&limits[25..], 20.0);
    let limits = Backend::new(200.0).saturate(&mut gradient, 80);
    assert_around(&limits[60..], 200.0);
}

#[test]
fn a_backend_that_became_slower_by_itself_keeps_its_requests() {
    for slots in [50.0, 200.0, 1000.0] {
        let mut gradient = Gradient::default();
        let mut backend = Backend::new(slots);
        backend.saturate(&mut gradient, 60);
        backend.service += 1.0;
        let limits = backend.saturate(&mut gradient, 30);
        assert!(limits.iter().any(|limit| f64::from(*limit) < slots / 1.5), "it finds out: {limits:?}");
        assert_around(&limits[15..], slots);
    }
}

#[test]
fn a_limit_that_is_not_used_stays_and_its_latency_is_the_baseline() {
    let mut gradient = Gradient::default();
    let backend = Backend::new(200.0);
    for _ in 0..20 {
        backend.run(&mut gradient, 30.0, 0.0);
    }
    let limit = gradient.limit();
    assert!((60..=120).contains(&limit), "no growth beyond twice what is used: {limit}");
    // Slower by half, without load: nothing to do with it.
    let slower = Backend { service: 8.6, ..backend };
    for _ in 0..100 {
        assert_eq!(slower.run(&mut gradient, 10.0, 0.0), limit);
    }
    assert!((gradient.baseline.expect("it was measured") - 8.6).abs() < 0.1);
}

#[test]
fn quick_errors_neither_lower_the_baseline_nor_raise_the_limit() {
    let mut gradient = Gradient::default();
    let backend = Backend::new(50.0);
    let limit = *backend.saturate(&mut gradient, 60).last().expect("60 of them");
    let faulty = Sample { latency: 1.0, busy: limit.into(), faulty: true };
    assert!((0..200).all(|_| gradient.step(faulty) == limit));
    assert_around(&backend.saturate(&mut gradient, 10)[5..], 50.0);
    // Errors that come late are a reason to fall like any other.
    let late = Sample { latency: 14.0, busy: limit.into(), faulty: true };
    assert!(gradient.step(late) < limit);
}

#[test]
fn a_dip_that_nothing_comes_of_ends() {
    let mut gradient = Gradient::default();
    Backend::new(1e6).saturate(&mut gradient, 5);
    gradient.age = DUE;
    let before = gradient.limit();
    // Long downloads: nobody leaves.
    let stuck = Sample { latency: 8.0, busy: before.into(), faulty: false };
    let limits: Vec<u32> = (0..=PATIENCE + 1).map(|_| gradient.step(stuck)).collect();
    assert_eq!(limits[0], before / 2);
    assert_eq!(limits.last(), Some(&before));
}

proptest! {
    /// Whatever it is told.
    #[test]
    fn the_limit_keeps_to_its_bounds(
        samples in prop::collection::vec((0.0_f64..22.0, 0.0_f64..2.0, prop::bool::weighted(0.1)), 1..400),
    ) {
        let mut gradient = Gradient::default();
        for (latency, share, faulty) in samples {
            let busy = f64::from(gradient.limit()) * share;
            let limit = gradient.step(Sample { latency, busy, faulty });
            prop_assert!((LEAST..=MOST).contains(&limit));
            prop_assert_eq!(limit, gradient.limit());
        }
    }

    /// Also where no second is like the other.
    #[test]
    fn it_settles_under_noise(
        slots in 16.0_f64..1500.0,
        noise in prop::collection::vec(-0.15_f64..0.15, 600),
    ) {
        let mut gradient = Gradient::default();
        let backend = Backend::new(slots);
        let limits: Vec<u32> = noise.iter().map(|noise| backend.run(&mut gradient, 1e6, *noise)).collect();
        let (mut low, most) = (0, 1.6 * slots + 3.0 * slots.sqrt());
        for limit in &limits[60..] {
            prop_assert!(f64::from(*limit) <= most, "{} slots: {:?}", slots, limits);
            low += usize::from(f64::from(*limit) < 0.9 * slots);
        }
        prop_assert!(low <= 54, "{} slots: {} of 540 seconds too low: {:?}", slots, low, limits);
    }
}
