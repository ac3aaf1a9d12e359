//! Events between a crowd that logs and a destination that misbehaves.

use std::sync::{Condvar, Mutex, MutexGuard};

use super::*;

const LONG: Duration = Duration::from_secs(20);

/// What a destination does and has seen.
#[derive(Default)]
struct Scene {
    written: Vec<u8>,
    /// Writes wait while this is set.
    stuck: bool,
    /// One write goes through all the same.
    once: bool,
    /// Writes fail while this is set.
    broken: bool,
    /// Writes that were begun.
    writes: usize,
}

#[derive(Clone, Default)]
struct Place(Arc<(Mutex<Scene>, Condvar)>);

impl Place {
    fn scene(&self) -> MutexGuard<'_, Scene> {
        self.0.0.lock().expect("no panic")
    }

    fn change(&self, change: impl FnOnce(&mut Scene)) {
        change(&mut self.scene());
        self.0.1.notify_all();
    }

    fn wait(&self, reached: impl Fn(&Scene) -> bool) {
        let waited = self.0.1.wait_timeout_while(self.scene(), LONG, |scene| !reached(scene));
        assert!(!waited.expect("no panic").1.timed_out(), "the destination never got there");
    }

    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.scene().written.clone()).expect("text");
        text.lines().map(str::to_owned).collect()
    }
}

impl Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut scene = self.scene();
        scene.writes += 1;
        self.0.1.notify_all();
        let mut scene = self.0.1.wait_while(scene, |scene| scene.stuck && !scene.once).expect("no panic");
        scene.once = false;
        if scene.broken {
            return Err(io::ErrorKind::StorageFull.into());
        }
        scene.written.extend_from_slice(bytes);
        self.0.1.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn outlet(place: &Place) -> Outlet {
    let confess = Box::new(|lost| format!("{lost} lost\n").into_bytes());
    Outlet::start(Box::new(place.clone()), confess).expect("a thread")
}

/// Offers numbered events.
fn offer(intake: &EventIntake, numbers: std::ops::Range<usize>) {
    numbers.for_each(|number| intake.offer(format!("{number}\n").as_bytes()));
}

#[test]
fn events_come_in_order_and_close_waits_for_the_last() {
    let place = Place::default();
    let outlet = outlet(&place);
    offer(outlet.intake(), 0..1000);
    outlet.close(LONG);
    assert!(place.lines().into_iter().eq((0..1000).map(|number| number.to_string())));
}

#[test]
fn what_finds_no_room_is_counted_and_told_behind_what_was_kept() {
    let place = Place::default();
    let outlet = outlet(&place);
    place.change(|scene| scene.stuck = true);
    offer(outlet.intake(), 0..1);
    place.wait(|scene| scene.writes == 1);
    // One is being written, so many wait, and the rest has no room.
    let before = events::lost_so_far();
    offer(outlet.intake(), 1..EVENTS + 8);
    // Other tests may lose some as well.
    assert!(events::lost_so_far() >= before + 7, "it is counted before anybody can be told");
    place.change(|scene| scene.stuck = false);
    place.wait(|scene| scene.written.ends_with(b"lost\n"));
    let lines = place.lines();
    assert_eq!(lines.len(), EVENTS + 2);
    assert_eq!((lines[EVENTS].clone(), lines[EVENTS + 1].as_str()), (EVENTS.to_string(), "7 lost"));
    // It is told once.
    offer(outlet.intake(), 0..1);
    outlet.close(LONG);
    assert_eq!(place.lines().len(), EVENTS + 3);
}

#[test]
fn a_queue_that_is_never_empty_does_not_keep_a_loss_secret() {
    let place = Place::default();
    let outlet = outlet(&place);
    place.change(|scene| scene.stuck = true);
    offer(outlet.intake(), 0..1);
    place.wait(|scene| scene.writes == 1);
    offer(outlet.intake(), 0..EVENTS + 1);
    // From here on one more comes for each that is written, so that the next one always waits.
    let told = |scene: &Scene| scene.written.ends_with(b"1 lost\n");
    for _ in 0..TELL_AFTER + 1 {
        let begun = place.scene().writes;
        place.change(|scene| scene.once = true);
        place.wait(|scene| scene.writes > begun);
        if told(&place.scene()) {
            break;
        }
        offer(outlet.intake(), 0..1);
    }
    assert!(told(&place.scene()), "never told");
    place.change(|scene| scene.stuck = false);
    outlet.close(LONG);
}

#[test]
fn few_large_events_fill_the_queue_too() {
    let place = Place::default();
    let outlet = outlet(&place);
    place.change(|scene| scene.stuck = true);
    offer(outlet.intake(), 0..1);
    place.wait(|scene| scene.writes == 1);
    let mut large = vec![b'x'; BYTES / 4];
    large[BYTES / 4 - 1] = b'\n';
    (0..6).for_each(|_| outlet.intake().offer(&large));
    assert_eq!(outlet.intake().shared.waiting.load(Ordering::Acquire), BYTES);
    // More than ever fits is refused at once, and takes no room from others.
    outlet.intake().offer(&vec![b'\n'; BYTES + 1]);
    place.change(|scene| scene.stuck = false);
    place.wait(|scene| scene.written.ends_with(b"3 lost\n"));
    assert_eq!(outlet.intake().shared.waiting.load(Ordering::Acquire), 0);
    assert_eq!(place.lines().len(), 1 + 4 + 1);
    outlet.close(LONG);
}

#[test]
fn what_could_not_be_written_is_told_before_what_comes_next() {
    let place = Place::default();
    let outlet = outlet(&place);
    place.change(|scene| scene.broken = true);
    offer(outlet.intake(), 0..3);
    // The first event is tried, and with each further one the line that tells of the loss.
    place.wait(|scene| scene.writes == 3);
    place.change(|scene| scene.broken = false);
    offer(outlet.intake(), 3..5);
    outlet.close(LONG);
    assert_eq!(place.lines(), ["3 lost", "3", "4"]);
}

#[test]
fn a_destination_that_fails_is_only_tried_when_there_is_something_to_say() {
    let place = Place::default();
    let outlet = outlet(&place);
    place.change(|scene| scene.broken = true);
    offer(outlet.intake(), 0..10);
    outlet.close(LONG);
    assert_eq!(place.scene().writes, 10);
}

#[test]
fn a_destination_that_takes_nothing_is_left_behind() {
    let place = Place::default();
    let outlet = outlet(&place);
    place.change(|scene| scene.stuck = true);
    offer(outlet.intake(), 0..2);
    place.wait(|scene| scene.writes == 1);
    let intake = outlet.intake().clone();
    outlet.close(Duration::from_millis(1));
    // Whoever still logs is not harmed, neither now nor when the thread has ended.
    intake.offer(b"late\n");
    place.change(|scene| scene.stuck = false);
    place.wait(|scene| scene.written.ends_with(b"late\n"));
    intake.offer(b"too late\n");
}

#[test]
fn many_threads_lose_and_keep_as_many_events_as_they_offer() {
    let place = Place::default();
    let outlet = outlet(&place);
    place.change(|scene| scene.stuck = true);
    let intake = outlet.intake();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| offer(intake, 0..EVENTS / 2));
        }
    });
    place.change(|scene| scene.stuck = false);
    outlet.close(LONG);
    let lines = place.lines();
    let lost: usize = lines.iter().filter_map(|line| line.strip_suffix(" lost")?.parse::<usize>().ok()).sum();
    let kept = lines.iter().filter(|line| !line.ends_with(" lost")).count();
    assert_eq!((kept + lost, kept >= EVENTS), (2 * EVENTS, true));
}
