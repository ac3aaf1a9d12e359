//! Partings between sockets whose far ends are played here. A unit is a line; the last one is a full stop.

use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::*;
use crate::net::relay::Early;
use crate::net::tls::fixture::{once, pair, settle};
use crate::net::{Buffer, Ticker};

const LAST: &[u8] = b".\n";
const FROM_US: [&[u8]; 2] = [b"bye, c\n", b"bye, b\n"];

/// Lines.
#[derive(Clone, Debug, Default)]
struct Lines {
    line: Vec<u8>,
    over: bool,
    lost: bool,
}

impl Follow for Lines {
    fn see(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.line.push(byte);
            self.lost |= byte == b'?';
            if byte == b'\n' {
                self.over |= self.line == LAST;
                self.line.clear();
            }
        }
    }

    fn skip(&mut self, _: usize) {}

    fn unseen(&self) -> usize {
        0
    }

    fn gap(&self, bytes: &[u8]) -> Option<usize> {
        if self.line.is_empty() { Some(0) } else { Some(bytes.iter().position(|&byte| byte == b'\n')? + 1) }
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn is_lost(&self) -> bool {
        self.lost
    }
}

/// A relay of lines, and its far ends.
struct Scene {
    client: Stream,
    backend: Stream,
    client_end: UnixStream,
    backend_end: UnixStream,
}

/// What became of it.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    ready: bool,
    told: (bool, bool),
    client: String,
    backend: String,
}

fn came(ready: bool, told: (bool, bool), client: &str, backend: &str) -> Came {
    Came { ready, told, client: client.into(), backend: backend.into() }
}

impl Scene {
    fn new() -> Scene {
        let ends = || UnixStream::pair().expect("a pair of sockets");
        let ((client, client_end), (backend, backend_end)) = (ends(), ends());
        Scene { client: client.into(), backend: backend.into(), client_end, backend_end }
    }

    /// What both say is relayed, and then it parts; behind that they say more.
    async fn play(mut self, before: [&str; 2], after: [Option<&str>; 2], early: Early) -> Came {
        let (ticker, buffers, moved) = (Ticker::new(), FreeList::new(), BytesMoved::default());
        let deadline = ticker.deadline();
        let lines = [Lines::default(), Lines::default()];
        let mut relay = Relay::following(lines, early, &buffers, &deadline, Duration::from_secs(60), &moved);
        self.client_end.write_all(before[0].as_bytes()).await.expect("room");
        self.backend_end.write_all(before[1].as_bytes()).await.expect("room");
        for _ in 0..3 {
            let polled = once(|cx| relay.poll(cx, &mut self.client, &mut self.backend)).await;
            assert!(polled.is_pending(), "it goes on");
            settle().await;
        }
        let mut parting = relay.part(LastWords::new(FROM_US[0]), LastWords::new(FROM_US[1]));
        let mut ready = false;
        for round in 0..6 {
            if round == 2 {
                for (end, after) in [&mut self.client_end, &mut self.backend_end].into_iter().zip(after) {
                    match after {
                        Some(text) => end.write_all(text.as_bytes()).await.expect("room"),
                        None => end.shutdown().await.expect("open"),
                    }
                }
            }
            settle().await;
            ready = once(|cx| parting.poll(cx, &mut self.client, &mut self.backend)).await.is_ready();
        }
        let told = parting.told();
        drop(parting);
        drop((self.client, self.backend));
        let (mut client, mut backend) = (Vec::new(), Vec::new());
        // What is left unread on our side resets the connection, behind what came.
        let _ = self.client_end.read_to_end(&mut client).await;
        let _ = self.backend_end.read_to_end(&mut backend).await;
        let [client, backend] = [client, backend].map(|bytes| String::from_utf8(bytes).expect("ASCII"));
        Came { ready, told, client, backend }
    }
}

#[tokio::test]
async fn both_are_told_between_two_units_and_nothing_passes_behind() {
    let found =
        Scene::new().play(["a\n", "b\n"], [Some("late\n.\n"), Some("late\n.\n")], Early::default()).await;
    assert_eq!(found, came(true, (true, true), "b\nbye, c\n", "a\nbye, b\n"));
}

#[tokio::test]
async fn a_unit_that_has_begun_ends_before() {
    let found = Scene::new()
        .play(["a\nhalf", "b"], [Some(" of it\nmore\n.\n"), Some("\n.\n")], Early::default())
        .await;
    assert_eq!(found, came(true, (true, true), "b\nbye, c\n", "a\nhalf of it\nbye, b\n"));
}

#[tokio::test]
async fn one_that_never_ends_keeps_its_side_untold() {
    let found = Scene::new().play(["half", "b\n"], [Some(" and half"), Some(".\n")], Early::default()).await;
    assert_eq!(found, came(false, (true, false), "b\nbye, c\n", "half and half"));
}

#[tokio::test]
async fn who_was_told_by_the_other_side_needs_no_word_of_ours() {
    let found = Scene::new().play([".\n", "b\n"], [Some(""), Some(".\n")], Early::default()).await;
    assert_eq!(found, came(true, (true, true), "b\nbye, c\n", ".\n"), "the client has closed");
    let found = Scene::new().play(["a\n", ".\n"], [Some(".\n"), Some("x\n")], Early::default()).await;
    assert_eq!(found, came(true, (true, true), ".\n", "a\nbye, b\n"), "the backend has");
    let found = Scene::new().play([".\n", ".\n"], [Some("x\n"), Some("x\n")], Early::default()).await;
    assert_eq!(found, came(true, (true, true), ".\n", ".\n"), "both have");
}

#[tokio::test]
async fn the_end_of_a_source_is_an_answer_between_units_and_a_failure_in_one() {
    let found = Scene::new().play(["a\n", "b\n"], [None, None], Early::default()).await;
    assert_eq!(found, came(true, (true, true), "b\nbye, c\n", "a\nbye, b\n"));
    let found = Scene::new().play(["half", "b\n"], [None, None], Early::default()).await;
    assert_eq!(found, came(true, (true, false), "b\nbye, c\n", "half"));
}

#[tokio::test]
async fn where_units_are_unknown_nobody_is_told() {
    let found = Scene::new().play(["what?\n", "b\n"], [Some(".\n"), Some(".\n")], Early::default()).await;
    assert_eq!(found, came(true, (true, false), "b\nbye, c\n", "what?\n"));
}

#[tokio::test]
async fn a_side_that_had_ended_is_not_told_and_the_other_is() {
    let mut scene = Scene::new();
    scene.client_end.shutdown().await.expect("open");
    let found = scene.play(["", "b\nhalf"], [Some(""), Some("\n.\n")], Early::default());
    assert_eq!(found.await, came(true, (true, true), "b\nhalf\nbye, c\n", ""));
}

#[tokio::test]
async fn one_who_is_gone_keeps_nobody_from_being_told() {
    let (ticker, buffers, moved) = (Ticker::new(), FreeList::new(), BytesMoved::default());
    let deadline = ticker.deadline();
    let Scene { mut client, mut backend, client_end, mut backend_end } = Scene::new();
    let lines = [Lines::default(), Lines::default()];
    let relay =
        Relay::following(lines, Early::default(), &buffers, &deadline, Duration::from_secs(60), &moved);
    drop(client_end);
    let mut parting = relay.part(LastWords::new(FROM_US[0]), LastWords::new(FROM_US[1]));
    backend_end.write_all(LAST).await.expect("room");
    settle().await;
    let mut done = false;
    for _ in 0..3 {
        done = once(|cx| parting.poll(cx, &mut client, &mut backend)).await.is_ready();
        settle().await;
    }
    assert!(done && parting.is_said());
    assert_eq!(parting.told(), (false, true));
}

/// A TLS session that has encrypted bytes gives them out whole: what is said comes behind the unit that they end in.
#[tokio::test]
async fn what_a_tls_session_has_encrypted_goes_out_before_anything_else() {
    let (ticker, buffers, moved) = (Ticker::new(), FreeList::new(), BytesMoved::default());
    let deadline = ticker.deadline();
    let (near, mut far) = pair().await;
    let mut client = Stream::Tls(Box::new(near));
    let (near, backend_end) = UnixStream::pair().expect("a pair of sockets");
    let mut backend = Stream::from(near);
    let mut relay = Relay::following(
        [Lines::default(), Lines::default()],
        Early::default(),
        &buffers,
        &deadline,
        Duration::from_secs(60),
        &moved,
    );
    let line = [&[b'x'; 999][..], b"\n"].concat();
    let mut sent = 0;
    while !client.is_writing() {
        let _ = backend_end.try_write(&line);
        sent += 1;
        settle().await;
        assert!(once(|cx| relay.poll(cx, &mut client, &mut backend)).await.is_pending());
        assert!(sent < 100_000, "it takes everything");
    }
    let mut parting = relay.part(LastWords::new(FROM_US[0]), LastWords::new(FROM_US[1]));
    let mut got = Vec::new();
    for _ in 0..10_000 {
        let _ = once(|cx| parting.poll(cx, &mut client, &mut backend)).await;
        got.extend(far.read().0);
        if parting.told().0 {
            break;
        }
        settle().await;
    }
    got.extend(far.read().0);
    let lines: Vec<&[u8]> = got.split_inclusive(|&byte| byte == b'\n').collect();
    let (last, others) = lines.split_last().expect("lines");
    assert_eq!(String::from_utf8_lossy(last), String::from_utf8_lossy(FROM_US[0]));
    assert!(others.len() > 10 && others.iter().all(|one| **one == *line), "whole lines only");
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

/// Whether the last unit is among these.
fn is_over(text: &str) -> bool {
    text.split_inclusive('\n').any(|line| line.as_bytes() == LAST)
}

/// What may come out where this went in: whole units and ours behind them, or a source's own end.
fn is_sound(out: &str, went_in: &str, ours: &str) -> bool {
    let whole = |text: &str| text.is_empty() || text.ends_with('\n');
    match out.strip_suffix(ours) {
        Some(passed) => went_in.starts_with(passed) && whole(passed) && !is_over(passed),
        None => went_in.starts_with(out),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_said_last_words_stand_between_units_and_nothing_behind_them(
        before in proptest::array::uniform2("([a-c]{0,3}\n|[.]\n|[a-c]){0,6}"),
        after in proptest::array::uniform2(proptest::option::of("([a-c]{0,3}\n|[.]\n|[a-c]){0,6}")),
        early in proptest::option::of("([a-c]{0,3}\n|[a-c]){1,3}"),
    ) {
        let ahead = early.clone().unwrap_or_default();
        let found = block_on(async {
            let buffers = FreeList::new();
            let held: Option<Buffer> = early.map(|text| buffers.filled(text.as_bytes()));
            let early = Early { client: held, backend: None };
            let later = [after[0].as_deref(), after[1].as_deref()];
            Scene::new().play([&before[0], &before[1]], later, early).await
        });
        let later = after.map(Option::unwrap_or_default);
        let up = format!("{ahead}{}{}", before[0], later[0]);
        let down = format!("{}{}", before[1], later[1]);
        prop_assert!(is_sound(&found.backend, &up, "bye, b\n"), "{found:?} of {up:?}");
        prop_assert!(is_sound(&found.client, &down, "bye, c\n"), "{found:?} of {down:?}");
        prop_assert_eq!(found.told.0, found.client.ends_with("bye, c\n") || is_over(&found.client));
        prop_assert_eq!(found.told.1, found.backend.ends_with("bye, b\n") || is_over(&found.backend));
    }
}
