//! Events that nobody reads: they may be lost, and nothing else may happen.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc;

use fake_backend::Running;
use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, backend, demo_from, evenkeel, eventually, own_ports};

/// A process whose standard error is this test's business. It listens on unix sockets, whose names need not be read anywhere.
struct Mute {
    child: Killed,
    folder: tempfile::TempDir,
    _backend: Running,
}

impl Mute {
    /// `web` is served; each request to `broken` fails, and is an event, the only one: nothing is left out there.
    fn start(stderr: impl Into<Stdio>) -> Mute {
        let (folder, backend) = (tempfile::tempdir().unwrap(), backend("one"));
        let at = folder.path().display();
        let config = format!(
            "logging: debug\nworkers: 2\ntargets:\n  \
             web: {{protocol: http, listener: 'unix:{at}/web', health_check: off, backends: [{{url: '{}'}}]}}\n  \
             broken: {{protocol: http, listener: 'unix:{at}/broken', health_check: off, breaker: off, outlier: off,\n    \
             backends: [{{url: 'unix:{at}/nobody'}}]}}\n",
            backend.url()
        );
        let file = folder.path().join("evenkeel.yaml");
        std::fs::write(&file, config).unwrap();
        let mut command = evenkeel(&["--config", file.to_str().unwrap()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        // What it was given is its own from here on.
        drop(command);
        Mute { child: Killed(child), folder, _backend: backend }
    }

    fn path(&self, listener: &str) -> PathBuf {
        self.folder.path().join(listener)
    }

    fn client(&self, listener: &str) -> UnixStream {
        let mut client = None;
        eventually("it listens", || {
            client = UnixStream::connect(self.path(listener)).ok();
            client.is_some()
        });
        let client = client.unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    }

    /// One request on a connection of its own: the status.
    fn get(&self, listener: &str) -> String {
        let mut client = self.client(listener);
        client.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer in time");
        answer.chars().skip("HTTP/1.1 ".len()).take(3).collect()
    }

    /// Makes so many events, by requests that fail.
    fn fail(&self, count: usize) {
        let mut client = BufReader::new(self.client("broken"));
        let mut line = String::new();
        for _ in 0..count {
            client.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
            let mut length = 0;
            while line != "\r\n" {
                line.clear();
                assert!(client.read_line(&mut line).expect("an answer in time") > 0, "it has closed");
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            line.clear();
            std::io::copy(&mut (&mut client).take(length), &mut std::io::sink()).unwrap();
        }
    }

    /// Serves while its events go nowhere, and ends when told to.
    fn serves_and_ends(mut self) {
        for _ in 0..20 {
            assert_eq!((self.get("web"), self.get("broken")), ("200".into(), "503".into()));
        }
        self.signal(Signal::TERM);
        assert_eq!(self.exit_code(), Some(0));
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child.0), signal).unwrap();
    }

    fn exit_code(&mut self) -> Option<i32> {
        self.child.exit_code()
    }
}

/// A process that ends with the test at the latest.
struct Killed(Child);

impl Killed {
    fn exit_code(&mut self) -> Option<i32> {
        let mut ended = None;
        eventually("it ends", || {
            ended = self.0.try_wait().unwrap();
            ended.is_some()
        });
        ended.and_then(|status| status.code())
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A pipe into which not one byte more goes.
fn full_pipe() -> (PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let room = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    writer.write_all(&vec![b'\n'; room]).unwrap();
    (reader, writer)
}

/// The lines that come out of `source`, as they come.
fn lines_of(source: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(source).lines().map_while(Result::ok).all(|line| send.send(line).is_ok())
    });
    lines
}

/// All lines until the end.
fn all_of(lines: &mpsc::Receiver<String>) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => all.push(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => return all,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("it says no more and does not end: {all:#?}"),
        }
    }
}

#[test]
fn standard_error_that_nobody_reads_stops_neither_traffic_nor_signals() {
    let (_unread, full) = full_pipe();
    Mute::start(full).serves_and_ends();
}

#[test]
fn standard_error_on_a_full_disk_stops_neither_traffic_nor_signals() {
    Mute::start(File::options().write(true).open("/dev/full").unwrap()).serves_and_ends();
}

#[test]
fn standard_error_whose_reader_is_gone_stops_neither_traffic_nor_signals() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mute = Mute::start(writer);
    assert_eq!(mute.get("web"), "200");
    drop(reader);
    mute.serves_and_ends();
}

#[test]
fn a_reader_that_comes_back_gets_what_was_kept_and_the_number_of_what_was_lost() {
    const EVENTS: usize = 8000;
    let (reader, full) = full_pipe();
    let mut mute = Mute::start(full);
    mute.fail(EVENTS);
    let lines = lines_of(reader);
    let (mut kept, mut lost) = (0, None);
    while lost.is_none() {
        let line = lines.recv_timeout(PATIENCE).expect("a line says what was lost");
        kept += usize::from(line.contains("connect failed"));
        let number = line.split(" events were lost").next().filter(|start| *start != line);
        lost = number.and_then(|start| start.rsplit(' ').next()?.parse::<usize>().ok());
    }
    assert_eq!(kept + lost.unwrap(), EVENTS, "{kept} kept");
    assert!(kept > 1000, "{kept} kept");
    mute.signal(Signal::TERM);
    let rest = all_of(&lines);
    assert!(rest.last().is_some_and(|line| line.contains("everything was finished")), "{rest:?}");
    assert_eq!(mute.exit_code(), Some(0));
}

#[test]
fn a_descriptor_that_somebody_else_made_non_blocking_loses_no_line() {
    const EVENTS: usize = 2000;
    let (reader, writer) = UnixStream::pair().unwrap();
    writer.set_nonblocking(true).unwrap();
    let mut mute = Mute::start(std::os::fd::OwnedFd::from(writer));
    // More than fits into the socket waits until somebody reads.
    mute.fail(EVENTS);
    let lines = lines_of(reader);
    let (mut all, mut came) = (Vec::new(), 0);
    while came < EVENTS {
        let line = lines.recv_timeout(PATIENCE).expect("all of them come");
        came += usize::from(line.contains("connect failed"));
        all.push(line);
    }
    mute.signal(Signal::TERM);
    all.extend(all_of(&lines));
    assert_eq!(mute.exit_code(), Some(0));
    assert!(all.first().is_some_and(|line| line.contains("room for ")), "{:?}", all.first());
    assert!(all.last().is_some_and(|line| line.contains("everything was finished")), "{:?}", all.last());
}

#[test]
fn a_start_that_fails_ends_although_nobody_reads_why() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for format in ["text", "json"] {
        let (_unread, full) = full_pipe();
        let mut command =
            evenkeel(&["--backends", "http://127.0.0.1:1", "--port", &port, "--log-format", format]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(full).spawn().unwrap();
        assert_eq!(Killed(child).exit_code(), Some(1), "{format}");
    }
}

#[test]
fn a_demo_whose_welcome_nobody_reads_ends_when_told_to() {
    let (_unread, full) = full_pipe();
    let mut command = demo_from(own_ports());
    let child = command.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let mut demo = Killed(child);
    let lines = lines_of(demo.0.stderr.take().unwrap());
    while !lines.recv_timeout(PATIENCE).expect("it listens").contains("listening") {}
    kill_process(Pid::from_child(&demo.0), Signal::TERM).unwrap();
    let rest = all_of(&lines);
    assert!(rest.last().is_some_and(|line| line.contains("everything was finished")), "{rest:?}");
    assert_eq!(demo.exit_code(), Some(0));
}
