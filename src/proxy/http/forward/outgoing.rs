//! The head of a request as a backend is to get it: said once, for whatever protocol writes it.

use crate::message::{Framing, Head};
use crate::proxy::http::h1::edit::RequestEdits;
use crate::proxy::http::h1::write::{self, About, Host};

/// What the head of a request is made of for one backend.
#[derive(Clone, Copy)]
pub struct OutgoingHead<'a> {
    /// As it came.
    pub head: &'a Head,
    /// How the length of its body is known.
    pub framing: Framing,
    /// The protocol to ask for.
    pub upgrade: Option<&'a [u8]>,
    /// What the backend is told about the client.
    pub about: &'a About<'a>,
    /// Where it is traced, what the backend's own spans are below; `None`: the request's.
    pub span: Option<u64>,
    /// What it gets as Host.
    pub host: Host<'a>,
    /// What the route changes about all that.
    pub edits: Option<&'a RequestEdits<'a>>,
}

impl OutgoingHead<'_> {
    /// Writes it as HTTP/1 does, into `out`, which is empty.
    // Always: no request pays for the parts being handed over as one.
    #[inline(always)]
    pub fn write(&self, out: &mut Vec<u8>) {
        write::request(out, self.head, self.framing, self.upgrade, self.about, self.span, self.host);
        if let Some(edits) = self.edits {
            edits.apply(out, self.head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::Forwarded;
    use crate::config::model::route::HeaderEdit;
    use crate::route::LineEdits;

    #[test]
    fn a_route_has_the_last_word_about_the_lines_that_are_our_own() {
        let about = About {
            kind: Forwarded::Off,
            client: None,
            trusted: false,
            real_ip: None,
            scheme: "http",
            certificate: &[],
            id: 7,
            retry: 2,
            trace: None,
        };
        let edits = LineEdits::new(&["Via", "X-Request-Id"].map(|name| HeaderEdit::Remove(name.to_owned())));
        let edits = RequestEdits { edits: &edits, lines: b"N: v\r\n\r\n" };
        let outgoing = OutgoingHead {
            head: &Head::request("PUT", "/", "from-client"),
            framing: Framing::Length(3),
            upgrade: Some(b"echo"),
            about: &about,
            span: None,
            host: Host::Write("of-backend"),
            edits: Some(&edits),
        };
        let text = |outgoing: OutgoingHead<'_>| {
            let mut out = Vec::new();
            outgoing.write(&mut out);
            String::from_utf8(out).expect("text")
        };
        let written = "PUT / HTTP/1.1\r\nHost: of-backend\r\nContent-Length: 3\r\nRetry-Attempt: 2\r\n\
                       Connection: Upgrade\r\nUpgrade: echo\r\n";
        assert_eq!(text(outgoing), format!("{written}N: v\r\n\r\n"));
        let unedited = text(OutgoingHead { edits: None, ..outgoing });
        let (id, via) = ("00000000000000000000000000000007", "Via: 1.1 evenkeel\r\n");
        assert_eq!(unedited, format!("{written}{via}X-Request-Id: {id}\r\n\r\n"));
    }
}
