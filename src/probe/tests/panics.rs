//! Tasks of control that panic, as a fault in this program would make them.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// A clock that panics when it is read for the first time after `armed` was set.
fn fragile(armed: &Arc<AtomicBool>) -> impl Fn() -> Tick + Clone + Send + Sync + 'static {
    let (clock, armed) = (clock(), Arc::clone(armed));
    move || {
        assert!(!armed.swap(false, Ordering::AcqRel), "a fault of ours");
        clock()
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_is_begun_again() {
    let (lines, _guard) = Lines::capture();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.sock");
    let target = target(Some(health(2 * SECOND, SECOND)), vec![unix(&path)], None);
    let armed = Arc::new(AtomicBool::new(false));
    // Without a sweep: it reads the same clock.
    let subject = subject(&target, fragile(&armed));
    let rules = rules(health(2 * SECOND, SECOND));
    let _probing = tokio::spawn(again("probing it", async move || {
        watch(&subject, &rules, None, &ProbeDesk::default()).await
    }));
    until(&target, 0, Health::Down).await;
    armed.store(true, Ordering::Release);
    let _listener = tokio::net::UnixListener::bind(&path).expect("listens");
    until(&target, 0, Health::Up).await;
    assert!(!armed.load(Ordering::Acquire), "it did panic");
    let told = lines.all();
    assert!(told.iter().any(|line| line.contains("probing it: begun again after a panic")), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_panics_is_begun_again() {
    let (lines, _guard) = Lines::capture();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
    let port = listener.local_addr().expect("bound").port();
    let target = target(Some(health(2 * SECOND, SECOND)), vec![host("app.test", port)], None);
    let armed = AtomicBool::new(true);
    let resolver = Resolver::Given(Arc::new(move |_| {
        assert!(!armed.swap(false, Ordering::AcqRel), "a fault of ours");
        Ok(vec![IpAddr::from([127, 0, 0, 1])])
    }));
    let _tasks = start_with(std::slice::from_ref(&target), &resolver, clock(), &CancellationToken::new());
    until(&target, 0, Health::Up).await;
    let told = lines.all();
    assert!(
        told.iter().any(|line| line.contains("resolving app.test: begun again after a panic")),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_panics_is_begun_again() {
    let (lines, _guard) = Lines::capture();
    let target = target(None, vec![host("127.0.0.1", 1)], None);
    let armed = Arc::new(AtomicBool::new(true));
    let reads = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let (fragile, counted) = (fragile(&armed), Arc::clone(&reads));
    let clock = move || {
        counted.fetch_add(1, Ordering::AcqRel);
        fragile()
    };
    // Nothing but the sweep reads it: there are no checks and no names.
    let _tasks =
        start_with(std::slice::from_ref(&target), &Resolver::System, clock, &CancellationToken::new());
    let swept = async {
        while reads.load(Ordering::Acquire) < 3 {
            sleep(SECOND).await;
        }
    };
    timeout(60 * SECOND, swept).await.expect("it goes on");
    let told = lines.all();
    let wanted = "comparing the backends of web: begun again after a panic";
    assert!(told.iter().any(|line| line.contains(wanted)), "{told:?}");
}
