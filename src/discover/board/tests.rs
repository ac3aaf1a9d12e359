use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::Instant;

use super::*;
use crate::config::{Flags, load_text};
use crate::discover::answer::HeardAddress;
use crate::discover::shared::{NameAsked, NameOrder, ToldAddresses};
use crate::targets::{Ask, Chance, Pick, Registry, Target, Tried};

/// Own time, which tests let pass.
fn own_time() -> Tick {
    thread_local! { static BEGUN: Instant = Instant::now(); }
    Tick(1 + u64::try_from(BEGUN.with(Instant::elapsed).as_nanos()).unwrap_or(u64::MAX))
}

fn loaded() -> Arc<Loaded> {
    let text = "targets: {web: {protocol: http, listener: 8080, health_check: off, drain_timeout: 30s, \
                backends: [{dns: app.internal, port: 80}]}}";
    Arc::new(load_text(text, "t.yaml", Path::new("/"), &Flags::default(), &|_| None).expect("valid"))
}

fn answer(ttl: u64, numbers: impl IntoIterator<Item = u16>) -> Result<NameAnswer, String> {
    let heard = |number: u16| HeardAddress {
        address: (IpAddr::from([10, 0, (number >> 8) as u8, number as u8]), 0).into(),
        host: "app.internal".into(),
        priority: 0,
        weight: 0,
    };
    let heard: Vec<HeardAddress> = numbers.into_iter().map(heard).collect();
    if heard.is_empty() {
        return Err("the name has no addresses".into());
    }
    Ok(NameAnswer { heard, unheard: Vec::new(), omitted: 0, ttl: Duration::from_secs(ttl) })
}

/// What is said when somebody asks after so many seconds, for the so manieth time.
type Says = fn(u64, u32) -> Result<NameAnswer, String>;

/// What ten minutes have shown.
#[derive(Debug, Default)]
struct Seen {
    picks: u32,
    failures: u32,
    /// Picks of a backend that had left.
    late: u32,
    /// Questions.
    asked: u32,
    changes: u32,
    /// The addresses at the end.
    known: usize,
}

/// Ten minutes of a target whose name is answered like this, with a request every 100 ms.
async fn ten_minutes(says: Says) -> Seen {
    let file = loaded();
    let (begun, asked) = (Instant::now(), Arc::new(AtomicU32::new(0)));
    let count = Arc::clone(&asked);
    let given = move |_: &DnsQuestion| says(begun.elapsed().as_secs(), count.fetch_add(1, Ordering::Relaxed));
    let discovery = Discovery::with(own_time, NameAsker::Given(Arc::new(given)), Path::new("/nowhere"));
    let (registry, mut seen) = (Registry::new(), Seen::default());
    discovery.meet(&file).await;
    discovery.follow(&file);
    let mut changes = discovery.changes();
    changes.mark_changed();
    let mut target: Option<Arc<Target>> = None;
    let (tried, chance) = (Tried::new(), Chance::seeded(1));
    while begun.elapsed() < Duration::from_mins(10) {
        if changes.has_changed().unwrap_or(false) {
            changes.mark_unchanged();
            let prepared = registry.prepare(&discovery.expand(&file).loaded.config.targets);
            registry.commit(&prepared, own_time());
            target = prepared.targets.first().cloned();
            seen.changes += 1;
        }
        let now = own_time();
        match target.as_ref().map(|target| target.pick(&Ask::new(&tried, &chance, now))) {
            Some(Pick::Lease(lease)) => {
                seen.picks += 1;
                seen.late += u32::from(lease.backend().departure().is_some());
            }
            _ => seen.failures += 1,
        }
        sleep(Duration::from_millis(100)).await;
    }
    seen.asked = asked.load(Ordering::Relaxed);
    seen.known = discovery.view()[0].addresses.len();
    // Numbers, and with them cells and series, are given again.
    let numbers = target.iter().flat_map(|target| &target.backends).map(|backend| backend.id.0);
    assert!(numbers.max().unwrap_or_default() < 2_000, "of who has left something is left");
    seen
}

/// A good answer first; from then on whatever it is.
#[tokio::test(start_paused = true)]
async fn ten_minutes_of_whatever_dns_does_lose_no_request() {
    let scenes: [(&str, Says, usize); 9] = [
        ("SERVFAIL", |_, count| if count == 0 { answer(5, [1, 2, 3]) } else { Err("SERVFAIL".into()) }, 3),
        ("NXDOMAIN", |_, count| if count == 0 { answer(5, [1, 2, 3]) } else { Err("NXDOMAIN".into()) }, 3),
        ("nothing", |_, count| answer(5, if count == 0 { vec![1, 2, 3] } else { Vec::new() }), 3),
        ("a TTL of 0", |_, _| answer(0, [1, 2, 3]), 3),
        ("a part every 2 s", |after, _| answer(0, [1 + u16::try_from(after / 2 % 3).unwrap_or(0)]), 3),
        (
            "every other answer fails",
            |_, count| if count % 2 == 0 { answer(1, [1, 2]) } else { Err("late".into()) },
            2,
        ),
        ("1,001 addresses", |_, _| answer(30, 1..=1_001), 1_000),
        ("others every minute", |after, _| answer(5, [u16::try_from(after / 60).unwrap_or(0)]), 1),
        (
            "a name that comes after a minute",
            |after, _| if after < 60 { Err("no".into()) } else { answer(5, [7]) },
            1,
        ),
    ];
    for (what, says, known) in scenes {
        let seen = ten_minutes(says).await;
        assert_eq!((seen.late, seen.known), (0, known), "{what}: {seen:?}");
        let unserved = if what.starts_with("a name that comes") { 600..=700 } else { 0..=0 };
        assert!(unserved.contains(&seen.failures), "{what}: {seen:?}");
        // At most every second, and after a failure every ten.
        assert!((20..=601).contains(&seen.asked) || what == "1,001 addresses", "{what}: {seen:?}");
        let most = if what == "others every minute" { 20 } else { 4 };
        assert!(seen.changes <= most, "{what} does not flap: {seen:?}");
    }
}

/// So many addresses that nobody would want to hold all of them.
#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_addresses_in_ten_minutes_are_a_thousand_at_a_time() {
    let seen = ten_minutes(|after, _| {
        let first = u16::try_from(after % 600).unwrap_or(0) * 109;
        answer(0, (0..167).map(|number| first.wrapping_add(number)))
    })
    .await;
    assert_eq!((seen.failures, seen.late), (0, 0), "{seen:?}");
    assert!(seen.known <= 1_000 && seen.changes > 100, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_config_has_any_more_is_forgotten_and_asked_for_no_more() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let given = move |_: &DnsQuestion| {
        count.fetch_add(1, Ordering::Relaxed);
        answer(1, [1])
    };
    let discovery = Discovery::with(own_time, NameAsker::Given(Arc::new(given)), Path::new("/nowhere"));
    let file = loaded();
    discovery.meet(&file).await;
    assert_eq!((discovery.view().len(), asked.load(Ordering::Relaxed)), (1, 1));
    // Refused, it may be: nobody follows it, and the next config forgets it.
    sleep(Duration::from_mins(1)).await;
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    discovery.follow(&file);
    sleep(Duration::from_secs(10)).await;
    assert!((9..=12).contains(&asked.load(Ordering::Relaxed)), "{asked:?}");
    let mut other = Loaded::clone(&file);
    other.config.targets[0].sources.clear();
    discovery.follow(&other);
    let before = asked.load(Ordering::Relaxed);
    sleep(Duration::from_mins(1)).await;
    assert_eq!((discovery.view().len(), asked.load(Ordering::Relaxed)), (0, before));
    // Its config may come back while DNS is away; later nobody remembers.
    assert_eq!(discovery.expand(&file).loaded.config.targets[0].backends.len(), 1);
    sleep(KEPT).await;
    discovery.follow(&other);
    assert!(discovery.expand(&file).loaded.config.targets[0].backends.is_empty());
}

/// What all know counts while another node asks, and where nothing else is known.
#[tokio::test(start_paused = true)]
async fn what_others_know_is_told_while_they_ask_and_where_nobody_answers() {
    let says = Arc::new(Mutex::new(answer(1, [1, 3])));
    let said = Arc::clone(&says);
    let given = move |_: &DnsQuestion| said.lock().unwrap().clone();
    let discovery = Discovery::with(own_time, NameAsker::Given(Arc::new(given)), Path::new("/nowhere"));
    let file = loaded();
    discovery.meet(&file).await;
    discovery.follow(&file);
    let question = discovery.findings()[0].question.clone();
    let order = |by: Option<&str>, numbers: &[u16], absent: Option<Duration>| {
        let heard = answer(1, numbers.iter().copied()).map(|answer| answer.heard).unwrap_or_default();
        let heard = heard.into_iter().map(|one| (one, absent)).collect();
        let told = ToldAddresses { heard, ttl: Duration::from_secs(1) };
        HashMap::from([(question.clone(), NameOrder { by: by.map(Arc::from), told: Some(told) })])
    };
    let known = || discovery.view()[0].addresses.iter().map(|one| one.address.clone()).collect::<Vec<_>>();
    discovery.order(&order(None, &[1, 2], None));
    assert_eq!(known(), ["10.0.0.1", "10.0.0.3"], "an answer is better than what was known once");
    let changes = discovery.changes();
    discovery.order(&order(Some("b"), &[7], None));
    assert_eq!((known(), changes.has_changed().unwrap()), (vec!["10.0.0.7".to_owned()], true));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(known(), ["10.0.0.7"], "it asks nobody");
    assert_eq!(discovery.view()[0].asked_by.as_deref(), Some("b"));
    // Nobody tells that there are none.
    discovery.order(&order(Some("b"), &[], None));
    assert_eq!(known(), ["10.0.0.7"]);
    discovery.order(&HashMap::new());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        known(),
        ["10.0.0.1", "10.0.0.3", "10.0.0.7"],
        "it asks at once, and what it knew stays for a while"
    );
    // Where answers had lacked it for almost long enough, it leaves the sooner.
    discovery.order(&order(Some("b"), &[7], Some(Duration::from_secs(28))));
    discovery.order(&HashMap::new());
    sleep(Duration::from_secs(5)).await;
    assert_eq!(known(), ["10.0.0.1", "10.0.0.3"]);
    // A config without it forgets who asks.
    discovery.order(&order(Some("b"), &[7], None));
    let mut other = Loaded::clone(&file);
    other.config.targets[0].sources.clear();
    discovery.follow(&other);
    discovery.order(&order(Some("b"), &[8], None));
    discovery.follow(&file);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(known(), ["10.0.0.1", "10.0.0.3", "10.0.0.7"]);
    // One that starts while nobody answers has what others have known.
    *says.lock().unwrap() = Err("SERVFAIL".to_owned());
    let said = Arc::clone(&says);
    let given = move |_: &DnsQuestion| said.lock().unwrap().clone();
    let begun = Discovery::with(own_time, NameAsker::Given(Arc::new(given)), Path::new("/nowhere"));
    begun.meet(&file).await;
    begun.follow(&file);
    begun.order(&order(None, &[4], None));
    assert_eq!(begun.view()[0].addresses.len(), 1);
    // It says that nobody answers once it is sure of that.
    let failing = || begun.findings()[0].asked != NameAsked::NotYet;
    assert!(!failing());
    sleep(Duration::from_secs(10)).await;
    assert!(failing() && begun.view()[0].addresses.len() == 1);
}
