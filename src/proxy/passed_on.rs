//! Whose connection a backend is told it gets, before anything else is said on it (`send_proxy`).
//!
//! A connection that was told whose it is belongs to that client: it serves requests of the same client's connection and nobody else's.

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;

use crate::config::model::SendProxy;
use crate::message::Peer;
use crate::message::proxy_header::{PassedOn, ProxyHeader, of_nobody, write_v1, write_v2};
use crate::net::Stream;

use super::pool::PassedOwner;

/// What is known of a client's connection that backends may be told.
pub struct ClientFacts<'a> {
    /// Who it is.
    pub peer: &'a Peer,
    /// What a balancer in front has told of it.
    pub told: Option<&'a ProxyHeader>,
    /// Its connection.
    pub stream: &'a Stream,
    /// The host name it has asked for (SNI).
    pub sni: Option<&'a str>,
    /// What was agreed on (ALPN).
    pub alpn: Option<&'static str>,
    /// The common name of its verified certificate; `None`: it has shown none.
    pub certificate: Option<&'a str>,
}

impl ClientFacts<'_> {
    /// The header that tells it, with `id` as the connection's number unless a balancer in front has given it one.
    #[must_use]
    pub fn header(&self, version: SendProxy, id: u128) -> Rc<[u8]> {
        let source = self.peer.client.map(|client| SocketAddr::new(client.ip, client.port));
        let destination = self.told.and_then(|told| told.addresses).map(|(_, destination)| destination);
        let destination = destination.or_else(|| self.stream.local_address());
        let mut text = String::new();
        // A String takes everything.
        let _ = write!(text, "{id:032x}");
        let given = self.told.and_then(|told| told.told.unique_id());
        let tls = self.peer.tls.map(|tls| if tls.is_tls13 { "TLSv1.3" } else { "TLSv1.2" });
        let passed = PassedOn {
            addresses: source.zip(destination),
            tls,
            certificate: self.certificate.map(str::as_bytes),
            is_resumed: self.peer.tls.is_some_and(|tls| tls.resumed),
            alpn: self.alpn.map(str::as_bytes),
            sni: self.sni.map(str::as_bytes),
            id: given.unwrap_or(text.as_bytes()),
        };
        let mut out = Vec::with_capacity(128);
        match version {
            SendProxy::V1 => write_v1(&mut out, &passed),
            SendProxy::V2 => write_v2(&mut out, &passed),
        }
        out.into()
    }
}

/// With what a connection to a backend begins, and whose it is afterwards.
#[derive(Clone, Debug)]
pub struct Passing {
    /// Whose it is; `None`: nobody's in particular, as all that begin so.
    pub owner: Option<PassedOwner>,
    /// What it begins with.
    pub header: Rc<[u8]>,
}

impl Passing {
    /// That of a connection of our own.
    #[must_use]
    pub fn of_nobody(version: SendProxy) -> Passing {
        Passing { owner: None, header: of_nobody(version).into() }
    }
}

/// The headers of one client's connection, made when they are first needed.
pub struct PassingOn {
    /// Whose connections those are that begin with them.
    pub owner: PassedOwner,
    id: u128,
    headers: [OnceCell<Rc<[u8]>>; 2],
}

impl PassingOn {
    /// Those of a connection with these numbers.
    #[must_use]
    pub fn new(owner: PassedOwner, id: u128) -> PassingOn {
        PassingOn { owner, id, headers: Default::default() }
    }

    /// How a connection to a backend begins for `client`, whose headers these are.
    #[must_use]
    pub fn passing(&self, version: SendProxy, client: &ClientFacts<'_>) -> Passing {
        let header = self.headers[usize::from(version == SendProxy::V2)]
            .get_or_init(|| client.header(version, self.id));
        Passing { owner: Some(self.owner), header: Rc::clone(header) }
    }
}
