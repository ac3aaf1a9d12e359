use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::task::coop::poll_proceed;

use super::*;

/// Far more than the event loop needs to learn of something.
const PATIENCE: Duration = Duration::from_secs(20);

/// A task, as far as who wakes it can tell.
#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Task {
    fn woken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn pair() -> (Plain<UnixStream>, UnixStream) {
    let (near, far) = UnixStream::pair().expect("a pair of sockets");
    (near.into(), far)
}

fn receive(socket: BorrowedFd<'_>) -> rustix::io::Result<Progress> {
    let mut room = [0u8; 64];
    Ok(Progress { count: recv(socket, &mut room, RecvFlags::empty())?.0, most: room.len() })
}

type Read = fn(&Plain<UnixStream>, &mut Context<'_>) -> Poll<io::Result<usize>>;

/// The two ways to read.
const READS: [Read; 2] = [read, |near, cx| near.poll_awaited(cx, receive)];

fn read(near: &Plain<UnixStream>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
    near.poll_read(cx, receive)
}

fn write(near: &Plain<UnixStream>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
    near.poll_write(cx, |socket| {
        Ok(Progress { count: send(socket, bytes, SendFlags::NOSIGNAL)?, most: bytes.len() })
    })
}

fn read_as(near: &Plain<UnixStream>, task: &Arc<Task>) -> Poll<io::Result<usize>> {
    read(near, &mut Context::from_waker(&Waker::from(Arc::clone(task))))
}

/// Gives the event loop turns until `done`.
async fn until(done: impl Fn() -> bool) {
    let turns = async {
        while !done() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, turns).await.expect("the event loop says so");
}

#[tokio::test]
async fn who_waits_is_woken_each_time_however_often_it_asks() {
    for read in READS {
        let (near, far) = pair();
        let task = Arc::new(Task::default());
        let read = || read(&near, &mut Context::from_waker(&Waker::from(Arc::clone(&task))));
        for round in 1..=3 {
            assert!((0..3).all(|_| read().is_pending()));
            far.try_write(b"news").expect("there is room");
            until(|| task.woken() == round).await;
            assert!(matches!(read(), Poll::Ready(Ok(4))));
        }
    }
}

#[tokio::test]
async fn another_task_that_waits_is_the_one_that_is_woken() {
    let (near, far) = pair();
    let tasks = [Arc::new(Task::default()), Arc::new(Task::default())];
    for task in tasks.iter().chain(&tasks) {
        assert!(read_as(&near, task).is_pending());
    }
    far.try_write(b"news").expect("there is room");
    until(|| tasks[1].woken() == 1).await;
    assert_eq!(tasks[0].woken(), 0);
}

#[tokio::test]
async fn a_look_from_elsewhere_does_not_keep_the_task_from_being_woken() {
    let (near, far) = pair();
    let task = Arc::new(Task::default());
    assert!(read_as(&near, &task).is_pending());
    assert!(near.poll_readable(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(read_as(&near, &task).is_pending());
    far.try_write(b"news").expect("there is room");
    until(|| task.woken() == 1).await;
}

#[tokio::test]
async fn a_task_that_has_used_up_its_share_is_woken_all_the_same() {
    for read in READS {
        let (near, far) = pair();
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut cx = Context::from_waker(&waker);
        while let Poll::Ready(share) = poll_proceed(&mut cx) {
            share.made_progress();
        }
        // Told to wait and to come again, but not put down.
        assert!(read(&near, &mut cx).is_pending());
        tokio::task::yield_now().await;
        assert!(read(&near, &mut cx).is_pending());
        let before = task.woken();
        far.try_write(b"news").expect("there is room");
        until(|| task.woken() > before).await;
    }
}

#[tokio::test]
async fn who_finds_no_room_waits_for_it_without_asking_the_kernel_again() {
    let (near, far) = pair();
    let (piece, task, calls) = ([b'x'; 4096], Arc::new(Task::default()), Cell::new(0));
    let push = || {
        near.poll_write(&mut Context::from_waker(&Waker::from(Arc::clone(&task))), |socket| {
            calls.set(calls.get() + 1);
            Ok(Progress { count: send(socket, &piece, SendFlags::NOSIGNAL)?, most: piece.len() })
        })
    };
    let mut sent = 0;
    while let Poll::Ready(count) = push() {
        sent += count.expect("an open socket");
    }
    let before = calls.get();
    assert!(push().is_pending() && calls.get() == before, "it is known to be full");
    let mut room = vec![0; sent];
    let mut taken = 0;
    while taken < sent {
        far.readable().await.expect("an open socket");
        taken += far.try_read(&mut room).unwrap_or(0);
    }
    until(|| task.woken() == 1).await;
    assert!(push().is_ready() && calls.get() == before + 1);
}

#[tokio::test]
async fn the_end_is_read_again_and_again() {
    let (near, far) = pair();
    drop(far);
    until(|| near.is_readable_now()).await;
    let mut cx = Context::from_waker(Waker::noop());
    assert!((0..3).all(|_| matches!(read(&near, &mut cx), Poll::Ready(Ok(0)))));
    assert!(matches!(write(&near, &mut cx, b"x"), Poll::Ready(Err(_))));
}
