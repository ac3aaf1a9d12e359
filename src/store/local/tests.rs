use std::os::unix::fs::PermissionsExt as _;

use super::*;

const JOURNAL: &str = LocalStore::OVERLAY;

fn store(folder: &Path) -> LocalStore {
    LocalStore::new(&Arc::new(LockedFolder::take(folder, "edge-1").expect("locked")), JOURNAL)
}

fn records(texts: &[&str]) -> Vec<StoreRecord> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[test]
fn what_was_kept_is_there_for_the_next_process_and_for_nobody_else_to_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("a/b");
    let mut first = store(&inner);
    assert_eq!(first.load().expect("read"), Kept::default());
    first.append(b"one").expect("kept");
    first.append(b"two").expect("kept");
    assert!(first.append(b"a\nb").is_err());
    drop(first);
    let mode = std::fs::metadata(inner.join(JOURNAL)).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut next = store(&inner);
    assert_eq!(next.load().expect("read").records, records(&["one", "two"]));
    next.compact(&records(&["both"])).expect("kept");
    next.append(b"three").expect("kept");
    drop(next);
    assert_eq!(store(&inner).load().expect("read").records, records(&["both", "three"]));
}

#[test]
fn a_second_process_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let _first = store(folder.path());
    let error = LockedFolder::take(folder.path(), "edge-2").expect_err("it is taken");
    let holder = format!("edge-1 (process {})", std::process::id());
    assert_eq!(error.to_string(), format!("state_dir {} is in use by {holder}", folder.path().display()));
}

#[test]
fn a_journal_that_was_removed_under_the_process_keeps_nothing_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = store(folder.path());
    store.load().expect("read");
    store.append(b"one").expect("kept");
    std::fs::remove_file(folder.path().join(JOURNAL)).expect("removed");
    let error = store.append(b"two").expect_err("a restart would not find it");
    assert!(error.to_string().contains("was removed"), "{error}");
}

#[test]
fn a_torn_tail_is_cut_and_what_follows_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = store(folder.path());
    first.load().expect("read");
    first.append(b"one").expect("kept");
    drop(first);
    let path = folder.path().join(JOURNAL);
    let mut file = OpenOptions::new().append(true).open(&path).expect("there");
    file.write_all(&journal::line(b"two")[..15]).expect("written");
    let mut next = store(folder.path());
    let kept = next.load().expect("read");
    assert_eq!((kept.records, kept.torn), (records(&["one"]), 15));
    next.append(b"three").expect("kept");
    drop(next);
    let kept = store(folder.path()).load().expect("read");
    assert_eq!((kept.records, kept.torn), (records(&["one", "three"]), 0));
}

/// A folder whose journal has two lines, one of which is not what was written; its path and its text.
fn damaged(line: &str, other: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = store(folder.path());
    first.load().expect("read");
    first.append(b"one").expect("kept");
    first.append(b"two").expect("kept");
    drop(first);
    let path = folder.path().join(JOURNAL);
    let text = std::fs::read_to_string(&path).expect("text").replace(line, other);
    std::fs::write(&path, &text).expect("written");
    (folder, text)
}

#[test]
fn a_damaged_line_is_left_out_and_its_file_is_kept_aside() {
    let (folder, text) = damaged("one", "0ne");
    let kept = store(folder.path()).load().expect("read");
    assert_eq!((kept.records, kept.damaged), (records(&["two"]), 1));
    assert_eq!(std::fs::read_to_string(folder.path().join("overlay.journal.damaged")).expect("there"), text);
    assert_eq!(store(folder.path()).load().expect("read").damaged, 0);
}

#[test]
fn a_last_line_that_has_its_end_is_damaged_and_not_torn() {
    let (folder, text) = damaged("two", "tw0");
    let kept = store(folder.path()).load().expect("read");
    assert_eq!((kept.records, kept.damaged, kept.torn), (records(&["one"]), 1, 0));
    assert_eq!(std::fs::read_to_string(folder.path().join("overlay.journal.damaged")).expect("there"), text);
}

#[test]
fn a_journal_of_a_later_version_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let later = [journal::line(br#"{"journal":2}"#), b"anything\n".to_vec()].concat();
    std::fs::write(folder.path().join(JOURNAL), &later).expect("written");
    let mut store = store(folder.path());
    assert!(store.load().expect_err("unknown").to_string().contains("later version"));
    assert!(store.append(b"one").is_err());
    assert_eq!(std::fs::read(folder.path().join(JOURNAL)).expect("there"), later);
}

#[test]
fn a_journal_that_was_doubled_by_hand_is_left_alone_and_told_with_its_line_and_the_cure() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = store(folder.path());
    first.load().expect("read");
    first.append(b"one").expect("kept");
    drop(first);
    let path = folder.path().join(JOURNAL);
    let once = std::fs::read(&path).expect("there");
    let doubled = [once.clone(), once.clone()].concat();
    std::fs::write(&path, &doubled).expect("written");
    let mut second = store(folder.path());
    let error = second.load().expect_err("nobody knows which one counts").to_string();
    assert!(error.starts_with(&format!("{}:3: another journal begins here", path.display())), "{error}");
    assert!(error.contains("keep the lines up to 2 or those from 3 on"), "{error}");
    assert!(second.append(b"two").is_err());
    assert_eq!(std::fs::read(&path).expect("there"), doubled);
    drop(second);
    // The cure.
    std::fs::write(&path, &doubled[..once.len()]).expect("written");
    assert_eq!(store(folder.path()).load().expect("read").records, records(&["one"]));
}

#[test]
fn a_full_disk_refuses_and_what_was_kept_still_is() {
    // A limit on the size of files is what this user can have without a disk of its own.
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = store(folder.path());
    store.load().expect("read");
    store.append(b"one").expect("kept");
    let whole = std::fs::read(folder.path().join(JOURNAL)).expect("there");
    store.file = Some(OpenOptions::new().read(true).write(true).open("/dev/full").expect("Linux has it"));
    let error = store.append(b"two").expect_err("no room");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(std::fs::read(folder.path().join(JOURNAL)).expect("there"), whole);
}
