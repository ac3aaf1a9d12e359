//! Relays between sockets whose far ends are played here.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::net::Ticker;
use crate::net::splice::Pipes;
use crate::net::tls::fixture::{once, pair, settle};

/// No test may take longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lets both directions begin as if much had come already.
fn hurry(relay: &mut Relay<'_>) {
    for run in [&mut relay.up.run, &mut relay.down.run] {
        while !run.is_long() {
            run.read(true);
        }
    }
}

/// A relay between a TLS client that has done `before` and gone, and a backend that has answered nothing and ended: how it
/// ended, and what the backend got.
async fn relayed(before: impl FnOnce(&mut crate::net::tls::fixture::Far)) -> (RelayEnd, Vec<u8>) {
    let (near, mut far) = pair().await;
    let mut client = Stream::Tls(Box::new(near));
    before(&mut far);
    drop(far);
    let (near, mut backend_end) = UnixStream::pair().expect("a pair of sockets");
    near.set_nonblocking(true).expect("non-blocking");
    backend_end.shutdown(std::net::Shutdown::Write).expect("open");
    let mut backend = Stream::from(tokio::net::UnixStream::from_std(near).expect("inside of a runtime"));
    let (ticker, buffers, moved) = (Ticker::new(), FreeList::new(), BytesMoved::default());
    let deadline = ticker.deadline();
    let mut relay = Relay::new(Early::default(), &buffers, &deadline, Duration::from_secs(60), &moved);
    // What comes out of a TLS session is not what is in its socket, however much of it there is.
    hurry(&mut relay);
    for _ in 0..100 {
        settle().await;
        if let Poll::Ready(end) = once(|cx| relay.poll(cx, &mut client, &mut backend)).await {
            drop(backend);
            let mut got = Vec::new();
            backend_end.read_to_end(&mut got).expect("an end");
            return (end, got);
        }
    }
    panic!("it does not end");
}

#[tokio::test]
async fn a_client_that_has_said_its_end_and_gone_has_not_failed() {
    let (end, got) = relayed(|far| {
        far.write(b"last words");
        far.session.send_close_notify();
        far.send();
    })
    .await;
    assert!(matches!(end, RelayEnd::Closed), "{end:?}");
    assert_eq!(got, b"last words");
    let (end, _) = relayed(|far| far.write(b"half of")).await;
    assert!(matches!(end, RelayEnd::Client(_)), "{end:?}");
}

/// Two sockets that are connected to each other.
async fn sockets(tcp: bool, narrow: bool) -> (Stream, Stream) {
    if !tcp {
        let (near, far) = tokio::net::UnixStream::pair().expect("a pair of sockets");
        return (near.into(), far.into());
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("bound");
    let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
    let (near, far) = (near.expect("connects"), far.expect("accepts").0);
    if narrow {
        // So little fits in that a pipe is never emptied at once.
        for socket in [SockRef::from(&near), SockRef::from(&far)] {
            socket.set_send_buffer_size(32 * 1024).expect("set");
            socket.set_recv_buffer_size(32 * 1024).expect("set");
        }
    }
    (near.into(), far.into())
}

fn pattern(from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|at| (at % 251) as u8 ^ (at >> 12) as u8).collect()
}

/// Writes the pattern in pieces of these sizes and ends; reads until the end meanwhile, in pieces of `gulp` and with a pause
/// between, and counts. What comes must be the pattern too.
async fn play(stream: Stream, sizes: &[usize], gulp: usize) -> usize {
    match stream {
        Stream::Tcp(tcp) => {
            let (reader, writer) = tcp.into_socket().into_split();
            play_halves(reader, writer, sizes, gulp).await
        }
        Stream::Unix(unix) => {
            let (reader, writer) = unix.into_socket().into_split();
            play_halves(reader, writer, sizes, gulp).await
        }
        Stream::Fresh(_) | Stream::Tls(_) | Stream::Carried(_) => 0,
    }
}

async fn play_halves(
    mut reader: impl tokio::io::AsyncRead + Unpin,
    mut writer: impl tokio::io::AsyncWrite + Unpin,
    sizes: &[usize],
    gulp: usize,
) -> usize {
    let send = async {
        let mut sent = 0;
        for &size in sizes {
            writer.write_all(&pattern(sent, size)).await.expect("writes");
            sent += size;
            tokio::task::yield_now().await;
        }
        writer.shutdown().await.expect("ends");
    };
    let take = async {
        let (mut came, mut space) = (0, vec![0; gulp]);
        loop {
            let count = reader.read(&mut space).await.expect("reads");
            if count == 0 {
                return came;
            }
            assert!(space[..count] == pattern(came, count), "other bytes from {came} on");
            came += count;
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(send, take).1
}

#[derive(Clone, Debug)]
struct Case {
    /// What the client sends, in pieces of these sizes, and what the backend sends.
    sizes: [Vec<usize>; 2],
    /// How much each of them takes at a time.
    gulps: [usize; 2],
    tcp: [bool; 2],
    narrow: bool,
    pipes: usize,
    hurried: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let size = || prop_oneof![1..2_000usize, 60_000..70_000usize, 200_000..400_000usize];
    let sizes = || proptest::collection::vec(size(), 0..6);
    let gulp = || prop_oneof![1_000..5_000usize, Just(300_000usize)];
    ([sizes(), sizes()], [gulp(), gulp()], any::<[bool; 2]>(), any::<bool>(), 0..3usize, any::<bool>())
        .prop_map(|(sizes, gulps, tcp, narrow, pipes, hurried)| Case {
            sizes,
            gulps,
            tcp,
            narrow,
            pipes,
            hurried,
        })
}

async fn check(case: &Case) {
    let (mut client, client_end) = sockets(case.tcp[0], case.narrow).await;
    let (mut backend, backend_end) = sockets(case.tcp[1], case.narrow).await;
    let (ticker, buffers, moved) =
        (Ticker::new(), FreeList::with_pipes(Pipes::new(case.pipes)), BytesMoved::default());
    let deadline = ticker.deadline();
    let mut relay = Relay::new(Early::default(), &buffers, &deadline, PATIENCE, &moved);
    if case.hurried {
        hurry(&mut relay);
    }
    let relayed = std::future::poll_fn(|cx| relay.poll(cx, &mut client, &mut backend));
    let work = async {
        tokio::join!(
            relayed,
            play(client_end, &case.sizes[0], case.gulps[0]),
            play(backend_end, &case.sizes[1], case.gulps[1]),
        )
    };
    let (end, down, up) = tokio::time::timeout(PATIENCE, work).await.expect("it ends");
    assert!(matches!(end, RelayEnd::Closed), "{end:?}");
    let sent = [0, 1].map(|side| case.sizes[side].iter().sum::<usize>());
    assert_eq!([up, down], sent);
    assert_eq!([moved.up.get(), moved.down.get()], sent.map(|count| count as u64));
    let (open, idle) = buffers.pipes().counts();
    assert!(open == idle && open <= case.pipes, "{idle} of {open} came back");
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_byte_arrives_once_and_in_order_and_the_ends_behind_them(case in case()) {
        block_on(check(&case));
    }
}

#[test]
fn much_goes_through_a_pipe_and_little_does_not() {
    for (size, pipes) in [(4 << 20, 1), (100_000, 0)] {
        block_on(async {
            let (mut client, client_end) = sockets(true, false).await;
            let (mut backend, backend_end) = sockets(false, false).await;
            let (ticker, buffers, moved) = (Ticker::new(), FreeList::new(), BytesMoved::default());
            let deadline = ticker.deadline();
            let mut relay = Relay::new(Early::default(), &buffers, &deadline, PATIENCE, &moved);
            let relayed = std::future::poll_fn(|cx| relay.poll(cx, &mut client, &mut backend));
            let sizes = [size];
            let work = async {
                tokio::join!(relayed, play(client_end, &sizes, 1 << 20), play(backend_end, &[], 1 << 20)).2
            };
            assert_eq!(tokio::time::timeout(PATIENCE, work).await.expect("it ends"), size);
            assert_eq!(buffers.pipes().counts(), (pipes, pipes), "for {size} bytes");
        });
    }
}

#[tokio::test]
async fn a_pipe_that_holds_bytes_of_a_relay_that_was_cut_serves_nobody_else() {
    let (mut client, mut client_end) = sockets(true, false).await;
    let (mut backend, _backend_end) = sockets(true, true).await;
    let (ticker, buffers, moved) = (Ticker::new(), FreeList::new(), BytesMoved::default());
    let deadline = ticker.deadline();
    let mut relay = Relay::new(Early::default(), &buffers, &deadline, PATIENCE, &moved);
    hurry(&mut relay);
    let Stream::Tcp(far) = &mut client_end else { panic!("it is TCP") };
    let far = far.socket_mut();
    let stuck = async {
        loop {
            // Nobody reads at the other end.
            let _ = far.try_write(&[b'x'; 65_536]);
            assert!(once(|cx| relay.poll(cx, &mut client, &mut backend)).await.is_pending());
            if matches!(relay.up.waiting, Waiting::Pipe(_)) && buffers.pipes().counts() == (1, 0) {
                return;
            }
            hurry(&mut relay);
            settle().await;
        }
    };
    tokio::time::timeout(PATIENCE, stuck).await.expect("a pipe with bytes in it");
    drop(relay);
    assert_eq!(buffers.pipes().counts(), (0, 0));
}

#[tokio::test]
async fn an_urgent_byte_is_no_end() {
    let (mut client, mut client_end) = sockets(true, false).await;
    let (mut backend, mut backend_end) = sockets(true, false).await;
    let (ticker, buffers, moved) = (Ticker::new(), FreeList::new(), BytesMoved::default());
    let deadline = ticker.deadline();
    let mut relay = Relay::new(Early::default(), &buffers, &deadline, PATIENCE, &moved);
    hurry(&mut relay);
    let (Stream::Tcp(far), Stream::Tcp(out)) = (&mut client_end, &mut backend_end) else {
        panic!("both are TCP")
    };
    let (far, out) = (far.socket_mut(), out.socket_mut());
    SockRef::from(&*far).send_out_of_band(b"!").expect("sends");
    far.write_all(b"what follows").await.expect("writes");
    far.shutdown().await.expect("ends");
    out.shutdown().await.expect("ends");
    let mut got = Vec::new();
    let relayed = std::future::poll_fn(|cx| relay.poll(cx, &mut client, &mut backend));
    let work = async { tokio::join!(relayed, out.read_to_end(&mut got)) };
    let (end, read) = tokio::time::timeout(PATIENCE, work).await.expect("it ends");
    assert!(matches!(end, RelayEnd::Closed), "{end:?}");
    read.expect("reads");
    assert_eq!(got, b"what follows");
}

#[tokio::test]
async fn each_byte_puts_the_idle_time_off() {
    let pair = || {
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        near.set_nonblocking(true).expect("non-blocking");
        (Stream::from(tokio::net::UnixStream::from_std(near).expect("inside of a runtime")), far)
    };
    let ((mut client, mut client_end), (mut backend, _backend_end)) = (pair(), pair());
    let (ticker, buffers, moved) = (Ticker::new(), FreeList::new(), BytesMoved::default());
    let (deadline, start) = (ticker.deadline(), crate::net::now());
    let mut relay = Relay::new(Early::default(), &buffers, &deadline, Duration::from_secs(60), &moved);
    for (second, says, ends) in
        [(40, true, false), (41, false, false), (90, false, false), (102, false, true)]
    {
        if says {
            client_end.write_all(b"x").expect("open");
        }
        ticker.tick(start.after(Duration::from_secs(second)));
        settle().await;
        let end = once(|cx| relay.poll(cx, &mut client, &mut backend)).await;
        assert_eq!(matches!(end, Poll::Ready(RelayEnd::Idle)), ends, "{second}: {end:?}");
        assert_eq!(end.is_ready(), ends, "{second}");
    }
}
