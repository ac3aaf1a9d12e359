//! Writing a header for a backend.

use std::net::{IpAddr, SocketAddr};

use super::SIGNATURE;
use super::told::{
    ALPN, AUTHORITY, CLIENT_CERT_CONN, CLIENT_CERT_SESS, CLIENT_SSL, SSL, SSL_CN, SSL_VERSION, UNIQUE_ID,
};
use crate::config::model::SendProxy;

/// Whose connection is passed on.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassedOn<'a> {
    /// Who has connected, and where; `None`: it has come over a unix socket, or one of the two is not known.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// The version of its TLS session, `TLSv1.3`; `None`: there is none.
    pub tls: Option<&'a str>,
    /// The common name of its certificate, which was verified; `None`: it has shown none. Empty: it has none.
    pub certificate: Option<&'a [u8]>,
    /// That certificate was shown when an earlier session began, which goes on.
    pub is_resumed: bool,
    /// What was agreed on (ALPN).
    pub alpn: Option<&'a [u8]>,
    /// The host name it has asked for (SNI).
    pub sni: Option<&'a [u8]>,
    /// A number of this connection; empty: none is told.
    pub id: &'a [u8],
}

/// Both addresses in one family: of two an IPv4 address is written as IPv6 has it.
fn alike((source, destination): (SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr) {
    let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let (source, destination) = (canonical(source), canonical(destination));
    if source.is_ipv4() == destination.is_ipv4() {
        return (source, destination);
    }
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(v4) => SocketAddr::new(v4.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    (mapped(source), mapped(destination))
}

/// Appends a line of version 1.
pub fn write_v1(out: &mut Vec<u8>, passed: &PassedOn<'_>) {
    let line = match passed.addresses.map(alike) {
        None => "PROXY UNKNOWN\r\n".to_owned(),
        Some((source, destination)) => {
            let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
            let (from, to) = (source.ip(), destination.ip());
            format!("PROXY {family} {from} {to} {} {}\r\n", source.port(), destination.port())
        }
    };
    out.extend_from_slice(line.as_bytes());
}

/// Appends a header of version 2.
pub fn write_v2(out: &mut Vec<u8>, passed: &PassedOn<'_>) {
    let begin = out.len();
    out.extend_from_slice(SIGNATURE);
    let family = match passed.addresses.map(alike) {
        None => 0x00,
        Some((source, _)) if source.is_ipv4() => 0x11,
        Some(_) => 0x21,
    };
    out.extend_from_slice(&[0x21, family, 0, 0]);
    if let Some((source, destination)) = passed.addresses.map(alike) {
        for address in [source, destination] {
            match address.ip() {
                IpAddr::V4(v4) => out.extend_from_slice(&v4.octets()),
                IpAddr::V6(v6) => out.extend_from_slice(&v6.octets()),
            }
        }
        for address in [source, destination] {
            out.extend_from_slice(&address.port().to_be_bytes());
        }
    }
    // Behind an unspecified family stands nothing that would be read.
    if family != 0 {
        lines(out, passed);
    }
    let length = u16::try_from(out.len() - begin - 16).unwrap_or(u16::MAX);
    out[begin + 14..begin + 16].copy_from_slice(&length.to_be_bytes());
}

/// The header of a connection that is our own: nobody's is passed on.
#[must_use]
pub fn of_nobody(version: SendProxy) -> Vec<u8> {
    match version {
        SendProxy::V1 => b"PROXY UNKNOWN\r\n".to_vec(),
        SendProxy::V2 => [&SIGNATURE[..], &[0x20, 0x00, 0, 0]].concat(),
    }
}

fn lines(out: &mut Vec<u8>, passed: &PassedOn<'_>) {
    let line = |out: &mut Vec<u8>, kind: u8, value: &[u8]| {
        // A name of a certificate may be long: what does not fit is not told by halves.
        let Ok(length) = u16::try_from(value.len()) else { return };
        if value.len() <= 1024 {
            out.push(kind);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(value);
        }
    };
    if let Some(alpn) = passed.alpn {
        line(out, ALPN, alpn);
    }
    if let Some(sni) = passed.sni {
        line(out, AUTHORITY, sni);
    }
    if !passed.id.is_empty() {
        line(out, UNIQUE_ID, passed.id);
    }
    let Some(version) = passed.tls else { return };
    let mut session = Vec::new();
    let (flags, verified) = match passed.certificate {
        // As HAProxy says it: whoever goes on has shown it in the session and not on this connection.
        Some(_) if passed.is_resumed => (CLIENT_SSL | CLIENT_CERT_SESS, 0u32),
        Some(_) => (CLIENT_SSL | CLIENT_CERT_CONN | CLIENT_CERT_SESS, 0),
        None => (CLIENT_SSL, 1),
    };
    session.push(flags);
    session.extend_from_slice(&verified.to_be_bytes());
    line(&mut session, SSL_VERSION, version.as_bytes());
    // X.509 bounds it to 64 characters.
    if let Some(name) = passed.certificate.filter(|name| (1..=256).contains(&name.len())) {
        line(&mut session, SSL_CN, name);
    }
    line(out, SSL, &session);
}
