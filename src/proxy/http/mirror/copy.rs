//! A copy of a request, as bytes: all but the Host where that is the backend's own, since none is picked yet.

use std::sync::Arc;

use crate::config::model::HostHeader;
use crate::message::{Framing, Head, HeaderField, grpc};
use crate::net::FreeList;
use crate::proxy::head_buffers::HeadBuffer;
use crate::proxy::http::body::Memory;
use crate::proxy::http::forward::outgoing::OutgoingHead;
use crate::proxy::http::h1::edit::RequestEdits;
use crate::proxy::http::h1::write::{About, Host};
use crate::proxy::passed_on::Passing;
use crate::proxy::pool::{Keep, Need};
use crate::targets::{Backend, Target};
use crate::tick::Tick;

use super::room::{Lanes, Load, Room};
use super::tee::TeedBody;

/// The header by which a backend knows that nobody awaits its answer.
pub const MARK: &[u8] = b"X-Evenkeel-Mirror: ";

/// One worker's copies, and the room for them.
#[derive(Default)]
pub struct Mirrors {
    /// By target.
    pub lanes: Lanes<Box<MirrorCopy>>,
    /// Their memory.
    pub room: Room,
}

/// A copy of a request.
pub struct MirrorCopy {
    /// Who gets it.
    pub target: Arc<Target>,
    /// What its backend is chosen by where the target hashes.
    pub key: Option<u64>,
    /// For whom its connection is kept afterwards.
    pub keep: Keep,
    /// How its connection begins, where backends are told whose they are.
    pub passing: Option<Passing>,
    /// It asks for a head alone.
    pub to_head: bool,
    /// Doing it twice is as good as once.
    pub is_idempotent: bool,
    /// It is a call of gRPC.
    pub is_call: bool,
    /// When it was made.
    pub since: Tick,
    framing: Framing,
    /// Its head, and behind that its body as HTTP/1.1 has it.
    bytes: HeadBuffer,
    /// Its body, where it goes another way.
    content: Option<TeedBody>,
    /// Where the authority of its backend is to stand; `None`: its Host is there.
    host_at: Option<usize>,
    load: Load,
}

/// What a copy is made of.
pub struct Made<'a> {
    /// Who gets it.
    pub target: &'a Arc<Target>,
    /// What it is called, which stands in its mark.
    pub names: [&'a str; 2],
    /// The head of the request, as its backend gets it.
    pub head: &'a Head,
    /// What the route changes about its lines.
    pub edits: Option<RequestEdits<'a>>,
    /// Of the request's body.
    pub framing: Framing,
    /// What backends are told about the client.
    pub about: &'a About<'a>,
    /// See [`MirrorCopy::key`].
    pub key: Option<u64>,
    /// See [`MirrorCopy::keep`].
    pub keep: Keep,
    /// See [`MirrorCopy::passing`].
    pub passing: Option<Passing>,
    /// The moment.
    pub now: Tick,
}

impl MirrorCopy {
    /// The copy without its body, written into `bytes`. `None`: there is no room for it.
    #[must_use]
    pub fn new(made: &Made<'_>, mut bytes: HeadBuffer, mut load: Load) -> Option<Box<MirrorCopy>> {
        let Made { target, head, framing, about, .. } = *made;
        let (host, is_open) = match &target.config.host {
            HostHeader::Name(name) => (Host::Write(name), false),
            HostHeader::Pass if !head.authority().is_empty() => (Host::Pass { missing: "" }, false),
            HostHeader::Pass | HostHeader::Backend => (Host::Write(""), true),
        };
        let edits = made.edits.as_ref();
        OutgoingHead { head, framing, upgrade: None, about, span: None, host, edits }.write(&mut bytes);
        // All of its body is there, so nobody waits for a 100.
        if head.has(HeaderField::Expect) {
            remove_lines(&mut bytes, b"expect");
        }
        mark(&mut bytes, made.names);
        load.grow(bytes.len()).then(|| {
            Box::new(MirrorCopy {
                target: Arc::clone(target),
                key: made.key,
                keep: made.keep,
                passing: made.passing.clone(),
                to_head: head.method() == b"HEAD",
                is_idempotent: head.is_idempotent(),
                is_call: grpc::is_grpc(head),
                since: made.now,
                framing,
                content: None,
                host_at: if is_open { host_place(&bytes) } else { None },
                bytes,
                load,
            })
        })
    }

    /// Nothing of the room that it has a part of.
    #[must_use]
    pub fn load(&self) -> Load {
        self.load.another()
    }

    /// Adds the body, and what that takes of the room.
    pub fn add_body(&mut self, body: &TeedBody, load: Load) {
        self.load.join(load);
        if self.target.config.upstream.is_http2() {
            // There it goes in frames of its own.
            self.content = Some(body.clone());
            return;
        }
        let is_chunked = self.framing == Framing::Chunked;
        let is_one_chunk = is_chunked && !body.is_raw && !body.bytes.is_empty();
        if is_one_chunk {
            self.bytes.extend_from_slice(format!("{:x}\r\n", body.bytes.len()).as_bytes());
        }
        self.bytes.extend_from_slice(&body.bytes);
        if is_chunked {
            self.bytes.extend_from_slice(if is_one_chunk { b"\r\n0\r\n" } else { b"0\r\n" });
            self.bytes.extend_from_slice(&body.trailers);
            self.bytes.extend_from_slice(b"\r\n");
        }
    }

    /// Its body, where that does not stand behind the head.
    #[must_use]
    pub fn body(&self, buffers: &FreeList) -> Option<Memory> {
        let content = self.content.as_ref()?;
        let whole = Memory::whole(content.bytes.clone(), buffers.clone());
        let trailers = content.trailers.clone();
        Some(Memory { trailers, framing: self.framing, ..whole })
    }

    /// What it needs of a pooled connection.
    #[must_use]
    pub fn need(&self) -> Need {
        let no_body = matches!(self.framing, Framing::None | Framing::Length(0));
        if no_body && self.is_idempotent { Need::Repeatable } else { Need::Once }
    }

    /// Appends what `backend` gets.
    pub fn write(&self, out: &mut Vec<u8>, backend: &Backend) {
        let (before, behind) = self.bytes.split_at(self.host_at.unwrap_or(0).min(self.bytes.len()));
        out.reserve(self.bytes.len() + 64);
        out.extend_from_slice(before);
        if self.host_at.is_some() {
            let is_backend = matches!(self.target.config.host, HostHeader::Backend);
            let authority: &str = if is_backend { &backend.authority } else { &backend.name };
            out.extend_from_slice(authority.as_bytes());
        }
        out.extend_from_slice(behind);
    }
}

/// Where the value of Host goes in a head that has an empty one: it stands first.
fn host_place(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"\r\nHost: ";
    memchr::memmem::find(head, NAME).map(|at| at + NAME.len())
}

/// Removes the lines of this name, in small letters, from a head.
fn remove_lines(head: &mut Vec<u8>, name: &[u8]) {
    let mut at = 0;
    while let Some(length) = memchr::memmem::find(&head[at..], b"\r\n").map(|end| end + 2) {
        let line = &head[at..at + length];
        let is_it = line.split(|byte| *byte == b':').next().is_some_and(|it| it.eq_ignore_ascii_case(name));
        if at > 0 && is_it {
            head.drain(at..at + length);
        } else {
            at += length;
        }
    }
}

/// Adds the line that says what it is. Of a name only what may stand in a header goes in as it is.
fn mark(head: &mut Vec<u8>, [listener, route]: [&str; 2]) {
    head.truncate(head.len().saturating_sub(2));
    head.extend_from_slice(MARK);
    for byte in listener.bytes().chain([b'/']).chain(route.bytes()) {
        if byte.is_ascii_graphic() {
            head.push(byte);
        } else {
            head.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    head.extend_from_slice(b"\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::super::room::BYTES;
    use super::*;
    use crate::config::model::Forwarded;
    use crate::proxy::head_buffers::HeadBuffers;
    use crate::proxy::lend::tests::unprobed;

    const ABOUT: About<'_> = About {
        kind: Forwarded::Off,
        client: None,
        trusted: false,
        real_ip: None,
        scheme: "http",
        certificate: &[],
        id: 0,
        retry: 0,
        trace: None,
    };

    fn made(head: &Head, framing: Framing, load: Load) -> Option<(Box<MirrorCopy>, Arc<Target>)> {
        let target = unprobed(1);
        let made = Made {
            target: &target,
            names: ["front", "käse"],
            head,
            edits: None,
            framing,
            about: &ABOUT,
            key: None,
            keep: Keep::Shared,
            passing: None,
            now: Tick(1),
        };
        let copy = MirrorCopy::new(&made, HeadBuffers::default().take(), load)?;
        Some((copy, target))
    }

    fn text(copy: &MirrorCopy, target: &Target) -> String {
        let mut out = Vec::new();
        copy.write(&mut out, &target.backends[0]);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_copy_is_the_request_with_a_mark_and_without_expect() {
        let mut head = Head::request("PUT", "/a?b", "h:1");
        head.push(b"Expect", b"100-continue");
        head.push(b"X-Expect", b"expect:");
        head.push(b"Content-Length", b"3");
        let room = Room::default();
        let (mut copy, target) = made(&head, Framing::Length(3), room.load()).expect("there is room");
        let before = room.taken();
        let mut load = room.load();
        assert!(load.grow(3));
        copy.add_body(&TeedBody { bytes: b"abc".to_vec(), ..TeedBody::default() }, load);
        assert_eq!(room.taken(), before + 3);
        let text = text(&copy, &target);
        assert!(
            text.starts_with("PUT /a?b HTTP/1.1\r\nhost: h:1\r\nX-Expect: expect:\r\nContent-Length: 3\r\n"),
            "{text}"
        );
        assert!(text.ends_with("\r\nX-Evenkeel-Mirror: front/k%C3%A4se\r\n\r\nabc"), "{text}");
        assert_eq!(copy.need(), Need::Once);
        drop(copy);
        assert_eq!(room.taken(), 0);
    }

    #[test]
    fn a_chunked_body_is_written_as_it_came_or_as_one_chunk() {
        let mut head = Head::request("POST", "/", "h");
        head.push(b"Transfer-Encoding", b"chunked");
        for (bytes, is_raw, trailers, behind) in [
            ("2\r\nab\r\n", true, "X: y\r\n", "2\r\nab\r\n0\r\nX: y\r\n\r\n"),
            ("0123456789abcdef", false, "", "10\r\n0123456789abcdef\r\n0\r\n\r\n"),
            ("a", false, "X: y\r\n", "1\r\na\r\n0\r\nX: y\r\n\r\n"),
            ("", false, "", "0\r\n\r\n"),
        ] {
            let room = Room::default();
            let (mut copy, target) = made(&head, Framing::Chunked, room.load()).expect("there is room");
            let body = TeedBody { bytes: bytes.into(), is_raw, trailers: trailers.into() };
            copy.add_body(&body, room.load());
            let text = text(&copy, &target);
            assert_eq!(text.split_once("\r\n\r\n").expect("a head").1, behind);
        }
    }

    #[test]
    fn a_request_without_a_host_gets_that_of_the_backend() {
        let mut head = Head::request("GET", "/", "h");
        let mut load = Room::default().load();
        assert!(load.grow(BYTES) && made(&head, Framing::None, load.another()).is_none());
        head.clear();
        head.load(b"GET /x HTTP/1.0\r\n\r\n");
        let span = crate::message::Span::new;
        head.set_request_line(span(0, 3), span(4, 6), span(4, 6), span(0, 0));
        head.version = crate::message::Version::Http10;
        let (copy, target) = made(&head, Framing::None, Room::default().load()).expect("there is room");
        let text = text(&copy, &target);
        assert!(text.starts_with("GET /x HTTP/1.1\r\nHost: b0\r\nVia: 1.0"), "{text}");
    }
}
