use super::*;
use crate::message::{BackendId, Cause, TargetId};
use crate::telemetry::access_log::Names;
use crate::tick::Tick;

fn config(memory: u64) -> RecorderConfig {
    RecorderConfig { memory, ..RecorderConfig::default() }
}

fn pen(recorder: &FlightRecorder) -> RecorderPen {
    RecorderPen::new(recorder.clone())
}

fn end(pen: &mut RecorderPen, record: &Record) -> Option<KeptFor> {
    let names = Names::default();
    let why = pen.wants(record)?;
    pen.keep(record, why, &KeptSubject { head: None, route: None, names: &names, config: 1, trace: None });
    Some(why)
}

fn ids(recorder: &FlightRecorder, reasons: &[KeptFor]) -> Vec<u128> {
    let mut ids = Vec::new();
    recorder.read(reasons, |kept| {
        ids.push(kept.record.id);
        true
    });
    ids
}

#[test]
fn neither_samples_nor_what_clients_do_push_out_a_failure() {
    let recorder = FlightRecorder::new(&config(256 << 10), &Arc::default());
    let mut pen = pen(&recorder);
    let failed = Record { id: 1, cause: Cause::ConnectFailed, status: 503, ..Record::default() };
    assert_eq!(end(&mut pen, &failed), Some(KeptFor::Failed));
    let mut again = Record { id: 2, status: 200, ..Record::default() };
    for number in 0..2 {
        again.attempt(BackendId(number), Tick(1));
    }
    assert_eq!(end(&mut pen, &again), Some(KeptFor::Retried));
    let limited = Record { id: 3, cause: Cause::RateLimited, status: 429, ..Record::default() };
    for _ in 0..100_000 {
        end(&mut pen, &limited);
    }
    let good = Record { id: 4, status: 200, ..Record::default() };
    for _ in 0..2_000_000 {
        end(&mut pen, &good);
    }
    assert_eq!(ids(&recorder, &[KeptFor::Failed, KeptFor::Retried, KeptFor::Slow]), [1, 2]);
    let refused = ids(&recorder, &[KeptFor::Refused]).len();
    assert!((100..100_000).contains(&refused), "{refused}");
    let mut sampled = 0;
    recorder.read(&[KeptFor::Sampled], |_| {
        sampled += 1;
        sampled < 10
    });
    assert_eq!(sampled, 10, "what is enough is enough");
}

#[test]
fn one_in_a_thousand_is_a_sample() {
    let recorder = FlightRecorder::new(&config(256 << 10), &Arc::default());
    let mut pen = pen(&recorder);
    let good = Record { status: 200, ..Record::default() };
    let kept = (0..5 * ONE_IN).filter(|_| end(&mut pen, &good).is_some()).count();
    assert_eq!((kept, ids(&recorder, KeptFor::ALL).len()), (5, 5));
}

#[test]
fn what_is_kept_stays_under_another_config_unless_its_memory_is_another() {
    let slow = Arc::default();
    let recorder = FlightRecorder::new(&config(256 << 10), &slow);
    let failed = Record { id: 1, cause: Cause::NoBackend, target: Some(TargetId(0)), ..Record::default() };
    end(&mut pen(&recorder), &failed);
    let shows = RecorderConfig { show_headers: Vec::new(), ..config(256 << 10) };
    assert_eq!(ids(&recorder.under(&shows), KeptFor::ALL), [1]);
    assert!(ids(&recorder.under(&config(512 << 10)), KeptFor::ALL).is_empty());
}
