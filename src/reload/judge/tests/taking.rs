//! Samples of what is in force.

use std::path::Path;
use std::sync::Arc;

use super::super::sample::{JudgedObject, ObjectTally, Sampler};
use crate::config::{Flags, load_text};
use crate::message::{Cause, Record};
use crate::snapshot::{Snapshot, Snapshots};
use crate::telemetry::cells::{Cells, EndTally};
use crate::tick::Tick;

fn text(targets: usize) -> String {
    let target = |number: usize| {
        format!(
            "  t{number}: {{listener: {}, protocol: http, backends: [{{url: 'http://127.0.0.1:9'}}]}}\n",
            10_000 + number
        )
    };
    format!("targets:\n{}", (0..targets).map(target).collect::<String>())
}

fn snapshot(snapshots: &Snapshots, text: &str) -> Arc<Snapshot> {
    let loaded = load_text(text, "t.yaml", Path::new("/"), &Flags::default(), &|_| None).expect("valid");
    snapshots.commit(snapshots.prepare(&loaded.config)).0
}

fn tally(ended: u64, bad: u64, under_way: u64) -> ObjectTally {
    ObjectTally { ends: EndTally { ended, bad }, under_way }
}

#[test]
fn a_sample_has_what_all_workers_counted_of_targets_and_listeners() {
    let snapshots = Snapshots::new();
    let one = snapshot(&snapshots, &text(2));
    let workers: Vec<Arc<Cells>> = (0..2).map(|_| Arc::default()).collect();
    let (listener, target) = (one.listeners[1].id, one.targets[1].id);
    for (worker, status) in [(0, 200), (1, 502), (1, 200)] {
        workers[worker].record(&Record { listener, target: Some(target), status, ..Record::default() });
    }
    let refused = Record { listener, cause: Cause::TlsHandshake, ..Record::default() };
    workers[0].ends.note(&refused);
    workers[0].record(&refused);
    let mut sampler = Sampler::default();
    let sample = sampler.sample(&one, &workers, Tick(1));
    let place = |object: &JudgedObject| sample.roster.place(object).expect("there");
    let (t0, t1) = (JudgedObject::Target("t0".into()), JudgedObject::Target("t1".into()));
    let l1 = JudgedObject::Listener("t1".into());
    assert_eq!(sample.tallies[place(&t0)], tally(0, 0, 0));
    assert_eq!(sample.tallies[place(&t1)], tally(3, 1, 0));
    assert_eq!(sample.tallies[place(&l1)], tally(4, 2, 0));
    assert_eq!(sample.roster.objects()[place(&l1)].leads_to, [place(&t1)]);
    assert!(Arc::ptr_eq(&sample.roster, &sampler.sample(&one, &workers, Tick(2)).roster));
    let other = snapshot(&snapshots, &text(1));
    assert!(!Arc::ptr_eq(&sample.roster, &sampler.sample(&other, &workers, Tick(3)).roster));
}
