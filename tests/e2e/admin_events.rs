//! The events that are kept, and the stream of those to come, over real sockets.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use serde_json::Value;

use super::door_lab::{CONFIGURE, READ, ask, bearer, door, guarded, of, tokens};
use super::support::process::Process;
use super::support::{Client, PATIENCE, accept, eventually, fakes};

/// A stream of events that somebody reads.
struct Stream(BufReader<Box<dyn Read>>);

/// Name, kind and data of one.
type Told = (String, String, Value);

impl Stream {
    fn over(mut socket: impl Read + Write + 'static, query: &str, headers: &str) -> Stream {
        let head = format!(
            "GET /api/v1/events{query} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{headers}\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        Stream(BufReader::new(Box::new(socket)))
    }

    /// Over the unix socket.
    fn local(process: &Process, query: &str, headers: &str) -> Stream {
        let socket = UnixStream::connect(process.socket()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Stream::over(socket, query, headers)
    }

    /// Over TCP, with a token.
    fn remote(process: &Process, query: &str, headers: &str) -> Stream {
        let socket = TcpStream::connect(door(process)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Stream::over(socket, query, &format!("{}\r\n{headers}", bearer(READ)))
    }

    /// The value of the next line of this name; `None`: the stream has ended.
    fn line(&mut self, name: &str) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            if let Some(value) = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")) {
                return Some(value.trim_end().to_owned());
            }
        }
    }

    /// It has begun: what comes now is on it.
    fn begun(mut self) -> Stream {
        self.line("id").unwrap();
        self
    }

    fn next(&mut self) -> Option<Told> {
        let mut id = self.line("id")?;
        let kind = loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0);
            match line.trim_end().split_once(": ") {
                Some(("event", kind)) => break kind.to_owned(),
                Some(("id", next)) => next.clone_into(&mut id),
                _ => {}
            }
        };
        let data = self.line("data")?;
        Some((id, kind, serde_json::from_str(&data).unwrap()))
    }
}

fn reload(process: &Process) {
    assert_eq!(process.ask("POST /api/v1/reload", b"").0, 200);
}

/// What the start has said is put into the history a moment after it stands in the log.
fn start_is_told(process: &Process) {
    let is_told = || !events(process, "?kind=listening")["events"].as_array().unwrap().is_empty();
    eventually("the start is told", is_told);
}

fn events(process: &Process, query: &str) -> Value {
    let (status, list) = process.ask(&format!("GET /api/v1/events{query}"), b"");
    assert_eq!(status, 200, "{list}");
    list
}

/// Has the process tell events of about 32 KiB, of which the history holds some thirty.
fn shout(process: &Process, count: usize) {
    let config = format!("include: [/{}.yaml]\n", "k".repeat(20_000));
    std::fs::write(process.folder().join("evenkeel.yaml"), config).unwrap();
    for _ in 0..count {
        assert_eq!(process.ask("POST /api/v1/reload", b"").0, 422);
    }
}

#[test]
fn the_list_goes_on_behind_an_event_and_has_only_what_is_asked_for() {
    let backends = fakes(1);
    let process = Process::start(&of(&backends[0], ""), 1);
    start_is_told(&process);
    (0..3).for_each(|_| reload(&process));
    let all = events(&process, "");
    let list = all["events"].as_array().unwrap();
    let kinds: Vec<&str> = list.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"listening") && kinds.ends_with(&["reload"; 3]), "{kinds:?}");
    assert_eq!((&all["latest"], &all["missed"]), (&list.last().unwrap()["id"], &0.into()));
    let ids = |list: &Value| -> Vec<Value> {
        list["events"].as_array().unwrap().iter().map(|event| event["id"].clone()).collect()
    };
    let reloads = ids(&events(&process, "?kind=reload"));
    assert_eq!(reloads.len(), 3);
    assert_eq!(ids(&events(&process, "?kind=reload&limit=1")), reloads[2..]);
    let first = reloads[0].as_str().unwrap();
    assert_eq!(ids(&events(&process, &format!("?after={first}"))), reloads[1..]);
    assert_eq!(ids(&events(&process, &format!("?after={first}&limit=1"))), reloads[1..2]);
    assert_eq!(ids(&events(&process, "?after=of-another-process&limit=1")), ids(&all)[..1]);
    for wrong in ["limit=0", "limit=4097", "limit=x", "kind=reloads", "kind=,", "kind=reload,x", "before=1"] {
        assert_eq!(process.ask(&format!("GET /api/v1/events?{wrong}"), b"").0, 400, "{wrong}");
    }
    assert_eq!(process.ask("GET /api/v1/events?limit=1\nAccept: text/event-stream", b"").0, 400);
}

#[test]
fn a_stream_goes_on_where_its_client_was_and_begins_anew_after_a_restart() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    start_is_told(&process);
    for connect in [Stream::local, Stream::remote] {
        let mut stream = connect(&process, "", "").begun();
        reload(&process);
        let (id, kind, data) = stream.next().unwrap();
        assert_eq!(
            (kind.as_str(), &data["id"], &data["text"]),
            ("reload", &id.clone().into(), &"reloaded: nothing differs".into())
        );
        drop(stream);
        (0..2).for_each(|_| reload(&process));
        // What a browser sends counts for more than the address that it began with.
        let mut again = connect(&process, "?after=0", &format!("Last-Event-ID: {id}\r\n")).begun();
        let number = |id: &str| id.rsplit('-').next().unwrap().parse::<u64>().unwrap();
        for later in 1..=2 {
            assert_eq!(number(&again.next().unwrap().0), number(&id) + later);
        }
        let mut anew = connect(&process, "", "Last-Event-ID: 1a2b3c-7\r\n").begun();
        assert_eq!(number(&anew.next().unwrap().0), 1, "of another process: all that there is");
        let mut some = connect(&process, "?after=0&kind=listening", "").begun();
        assert_eq!(some.next().unwrap().1, "listening");
    }
}

#[test]
fn whoever_comes_too_late_is_told_what_is_gone_and_whoever_does_not_read_is_dropped() {
    let backends = fakes(1);
    let process = Process::start(&of(&backends[0], ""), 1);
    let mut lazy = Stream::local(&process, "", "").begun();
    shout(&process, 120);
    let mut late = Stream::local(&process, "?after=0", "").begun();
    let (id, kind, data) = late.next().unwrap();
    let gone = data["missed"].as_u64().unwrap();
    assert!(kind == "missed" && gone > 60 && id.ends_with(&format!("-{gone}")), "{id} {kind} {data}");
    let list = events(&process, &format!("?after={id}&limit=1"));
    assert_eq!((&list["missed"], &list["events"][0]["id"]), (&0.into(), &late.next().unwrap().0.into()));
    let read = std::iter::from_fn(|| lazy.next()).count();
    assert!(read > 0 && read < 100, "{read}");
    eventually("it is told", || {
        process.said().iter().any(|line| {
            // Where that many reloads take long it is the first of both.
            let reasons = ["it took nothing for 30 seconds", "gone before it took them"];
            line.contains("WARN an event stream was closed, uid ")
                && reasons.iter().any(|reason| line.ends_with(reason))
        })
    });
}

#[test]
fn streams_lock_nobody_out_and_end_with_the_rights_they_were_begun_with() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    start_is_told(&process);
    let mut streams: Vec<Stream> = (0..160).map(|_| Stream::remote(&process, "", "").begun()).collect();
    assert_eq!(ask(door(&process), "GET /api/v1", &bearer(READ), b"").status, 200);
    assert!(streams[0].next().is_none(), "the first has made room");
    std::fs::write(process.folder().join("tokens"), tokens().replace(READ, CONFIGURE.get(1..).unwrap()))
        .unwrap();
    let mut local = Stream::local(&process, "?kind=reload", "").begun();
    reload(&process);
    assert_eq!(local.next().unwrap().1, "reload");
    for stream in &mut streams[1..] {
        // What was told before may come.
        assert!(std::iter::from_fn(|| stream.next()).count() <= 1);
    }
}

#[test]
fn a_stream_ends_when_the_process_drains() {
    let backend = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = format!(
        "workers: 1\nadmin: {{listener: 127.0.0.1:0}}\ntargets: {{web: {{protocol: http, listener: 127.0.0.1:0, \
         health_check: off, backends: [{{host: 127.0.0.1, port: {}}}]}}}}\n",
        backend.local_addr().unwrap().port()
    );
    let process = Process::start(&config, 1);
    start_is_told(&process);
    let mut client = Client::connect(process.address("web"));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut backend = Client::over(accept(&backend));
    backend.take_until("\r\n\r\n");
    let mut streams = [Stream::local(&process, "", "").begun(), Stream::remote(&process, "", "").begun()];
    process.terminate();
    for stream in &mut streams {
        assert_eq!(stream.next().unwrap().1, "draining");
        assert!(stream.next().is_none());
    }
    backend.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
    assert_eq!(client.answer().text(), "hi", "it was still there");
}
