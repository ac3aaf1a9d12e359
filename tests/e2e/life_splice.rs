//! Long transfers through TCP targets, which stay inside the kernel: whatever ends them, the bytes in a pipe are neither
//! lost nor given to anybody else.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use evenkeel::config::model::Protocol;
use evenkeel::message::Cause;
use evenkeel::worker::Ended;
use fake_backend::pattern;

use super::life_lab::{connect, read_to_end, reset_on_close, until_ended};
use super::support::process::Process;
use super::support::{Keel, accept, comes_within, config, eventually, settled};

/// More than a socket buffer takes that nobody reads from.
const LONG: usize = 32 << 20;

/// More than all the socket buffers on the way take, also where reading has made them as large as Linux lets them be.
fn endless() -> Vec<u8> {
    vec![b'x'; 128 << 20]
}

/// A process between a client and a backend that sends, and cannot get on because the client does not read. A pipe holds bytes.
struct Stuck {
    process: Process,
    client: TcpStream,
    /// The backend's connection, once it has written all it could: `Err` if that failed.
    backend: JoinHandle<Result<TcpStream, std::io::Error>>,
    pipes: usize,
}

/// Whether a stream shows that it is one before the client's socket is full depends on who is faster: on a busy machine not each one does.
fn stuck(timeouts: &str, sent: Vec<u8>) -> Stuck {
    let sent = Arc::new(sent);
    let mut tries = std::iter::repeat_with(|| begin(timeouts, &sent)).take(5);
    tries.find_map(|stuck| stuck).expect("one of them goes through a pipe")
}

/// `None`: it goes through no pipe.
fn begin(timeouts: &str, sent: &Arc<Vec<u8>>) -> Option<Stuck> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let process = Process::start(
        &format!(
            "workers: 1\ntargets:\n  raw:\n    protocol: tcp\n    listener: '127.0.0.1:0'\n    health_check: off\n{timeouts}    \
             backends: [{{host: 127.0.0.1, port: {port}}}]\n"
        ),
        1,
    );
    let pipes = process.pipes();
    let client = connect(process.address("raw"));
    let mut socket = accept(&listener);
    let sent = Arc::clone(sent);
    let backend = std::thread::spawn(move || socket.write_all(&sent).map(|()| socket));
    let had_a_pipe = || process.pipes() == pipes + 2 || !process.records().is_empty();
    comes_within(Duration::from_secs(8), had_a_pipe).then_some(Stuck { process, client, backend, pipes })
}

/// The same, and it is seen to be stuck: no deadline may be short.
fn settle(stuck: Stuck) -> Stuck {
    // Nobody reads, so once the client's socket takes no more the pipe does not get empty.
    settled("the client's socket is full", || rustix::io::ioctl_fionread(&stuck.client).unwrap());
    assert_eq!(stuck.process.pipes(), stuck.pipes + 2);
    stuck
}

impl Stuck {
    fn until_recorded(&self, cause: &str) -> serde_json::Value {
        eventually("the record is there", || !self.process.records().is_empty());
        let record = self.process.records().remove(0);
        assert_eq!(record["cause"], cause, "{record}");
        record
    }
}

#[test]
fn the_end_comes_behind_the_bytes_in_the_pipe_and_the_pipe_is_used_again() {
    let Stuck { process, mut client, backend, pipes } = settle(stuck("", pattern(LONG)));
    let backend = std::thread::spawn(move || {
        let socket = backend.join().unwrap().unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        socket
    });
    let came = read_to_end(&mut client).unwrap();
    assert!(came == pattern(LONG), "{} bytes", came.len());
    // The other direction goes on, as long as the backend likes.
    let mut backend = backend.join().unwrap();
    client.write_all(b"thanks").unwrap();
    let mut thanks = [0; 6];
    backend.read_exact(&mut thanks).unwrap();
    assert_eq!(&thanks, b"thanks");
    assert_eq!(process.pipes(), pipes + 2, "kept for the next transfer");
}

#[test]
fn a_backends_reset_comes_behind_the_bytes_in_the_pipe() {
    let Stuck { process, mut client, backend, pipes } = settle(stuck("", pattern(LONG)));
    let reset = std::thread::spawn(move || reset_on_close(&backend.join().unwrap().unwrap()));
    let came = read_to_end(&mut client).expect_err("a reset");
    assert!(came == pattern(LONG)[..came.len()], "{} bytes", came.len());
    reset.join().unwrap();
    eventually("the record is there", || !process.records().is_empty());
    assert_eq!(process.records()[0]["cause"], "answer_cut");
    assert!(process.pipes() <= pipes + 2);
}

#[test]
fn a_client_that_leaves_takes_the_pipe_with_it() {
    let sent = endless();
    let length = sent.len() as u64;
    let stuck = settle(stuck("", sent));
    reset_on_close(&stuck.client);
    stuck.client.shutdown(Shutdown::Read).unwrap();
    let Stuck { process, client, backend, pipes } = stuck;
    drop(client);
    backend.join().unwrap().expect_err("nobody takes the rest");
    eventually("the record is there", || !process.records().is_empty());
    let record = process.records().remove(0);
    assert_eq!(record["cause"], "client_gone", "{record}");
    assert!(record["bytes_out"].as_u64().unwrap() < length);
    eventually("the pipe is closed", || process.pipes() == pipes);
}

#[test]
fn a_transfer_that_nobody_reads_ends_with_the_tunnel_timeout() {
    let stuck = stuck("    timeouts: {tunnel: 3s}\n", endless());
    let record = stuck.until_recorded("tunnel_idle");
    assert!(record["bytes_out"].as_u64().unwrap() > 0);
    stuck.backend.join().unwrap().expect_err("nobody takes the rest");
    eventually("the pipe is closed", || stuck.process.pipes() == stuck.pipes);
}

#[test]
fn a_transfer_under_way_is_finished_while_the_server_drains() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let keel = Keel::start(&config(Protocol::Tcp, &[listener.local_addr().unwrap()]));
    let mut client = connect(keel.address());
    let mut socket = accept(&listener);
    let (begun, half_way) = std::sync::mpsc::channel();
    let backend = std::thread::spawn(move || {
        let sent = pattern(LONG);
        socket.write_all(&sent[..1 << 20]).unwrap();
        begun.send(()).unwrap();
        socket.write_all(&sent[1 << 20..]).unwrap();
    });
    half_way.recv().unwrap();
    keel.server.shutdown().advance();
    assert!(read_to_end(&mut client).unwrap() == pattern(LONG));
    backend.join().unwrap();
    drop(client);
    until_ended(&keel, Cause::Done, 1);
    assert_eq!(keel.server.wait().unwrap(), Ended { cut: 0 });
}
