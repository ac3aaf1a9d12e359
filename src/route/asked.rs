//! What routes look at of a request.

use std::net::IpAddr;

use crate::message::Head;
use crate::tls::CertificateFacts;

/// A request, as routes see it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its head: method, authority, query, header lines.
    pub head: &'a Head,
    /// Its path without the query, in the one form in which it is matched and forwarded.
    pub path: &'a [u8],
    /// The client's address, as trusted proxies tell it; `None` on a unix socket.
    pub client: Option<IpAddr>,
    /// What its client's verified certificate says; `None`: it showed none.
    pub certificate: Option<&'a CertificateFacts>,
}

impl<'a> Asked<'a> {
    /// The query without the `?`; empty where there is none.
    #[must_use]
    pub fn query(&self) -> &'a [u8] {
        let path = self.head.path();
        memchr::memchr(b'?', path).and_then(|at| path.get(at + 1..)).unwrap_or_default()
    }
}
