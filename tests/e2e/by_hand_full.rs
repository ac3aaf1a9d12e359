//! No room on the disk for a change by hand. A limit on the size of files does what a full disk does, and can be taken away
//! from outside while the process serves.

use serde_json::json;

use super::by_hand::{change, entries, of, seen};
use super::support::process::{Process, whole};
use super::support::{Client, fakes};

#[test]
fn without_room_a_change_is_refused_and_nothing_else_suffers() {
    let backends = fakes(2);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("evenkeel.yaml"),
        whole(&format!("state_dir: kept\n{}", of(&backends, ""))),
    )
    .unwrap();
    let process = Process::start_with_bounded_files(folder, 1);
    let weight = |backend: &str, weight: u16| {
        change(&process, &format!("PATCH /backends/{backend}"), &json!({"weight": weight}))
    };
    assert_eq!(weight("b0", 5).0, 200);
    let journal = process.folder().join("kept/overlay.journal");
    let kept = std::fs::read(&journal).unwrap();
    process.bound_files(Some(kept.len() as u64 + 10));
    let digest = process.digest();
    let mut client = Client::connect(process.address("web"));
    for number in 6..16 {
        let (status, answer) = weight("b0", number);
        assert_eq!((status, &answer["type"]), (507, &json!("urn:evenkeel:problem:not-kept")), "{answer}");
        assert!(answer["detail"].as_str().unwrap().starts_with("nothing has changed"), "{answer}");
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!((seen(&process), process.digest()), (vec!["b0 5 up".into(), "b1 1 up".into()], digest));
    assert!(process.hang_up().contains("reloaded: nothing differs"));
    process.bound_files(None);
    let (status, answer) = weight("b1", 7);
    assert_eq!(status, 200, "{answer}");
    let all = ["b0 5 up", "b1 7 up"];
    assert_eq!(seen(&process), all);
    // Nothing was lost, and nothing that was refused has come back.
    let process = Process::start_in(process.kill(), 1);
    assert_eq!((seen(&process), entries(&process).len()), (all.map(str::to_owned).to_vec(), 2));
    assert!(!process.said().iter().any(|line| line.contains("torn") || line.contains("damaged")));
}
