//! A request as it comes in, and what follows from nothing but itself and its listener.

use std::net::IpAddr;
use std::rc::Rc;

use crate::message::proxy_header::ProxyHeader;
use crate::message::{Head, HeaderField, Peer, Record, Version, tokens};
use crate::proxy::WorkerCtx;
use crate::proxy::recording::Recording;
use crate::snapshot::{Listener, RequestRules};
use crate::tick::Tick;

use super::client::Secured;
use super::h1::write::About;
use super::hash_key::{self, Sender, hash_key};
use super::routing::way::Way;

/// A request that has just been read.
pub struct IncomingRequest<'a> {
    /// The worker that serves it.
    pub ctx: &'a Rc<WorkerCtx>,
    /// Where it came in.
    pub listener: &'a Listener,
    /// Its head.
    pub head: &'a Head,
    /// Who asks.
    pub peer: &'a Peer,
    /// What a balancer in front has told of it; `None`: nothing.
    pub told: Option<&'a Rc<ProxyHeader>>,
    /// Its first byte came.
    pub started: Tick,
    /// Its head was complete.
    pub head_read: Tick,
}

impl<'a> IncomingRequest<'a> {
    /// Begins what becomes of it.
    #[inline(always)]
    pub fn recording(&self, record: &'a mut Record) -> Recording<'a> {
        self.peer.begin(record);
        record.started = self.started;
        record.head_read = self.head_read;
        record.listener = self.listener.id;
        Recording::told((self.ctx, Some(self.head), record), self.told)
    }

    /// Who sent it.
    #[inline(always)]
    #[must_use]
    pub fn sender(&self) -> Sender {
        let peer = self.peer.client.map(|client| client.ip);
        let trusted = peer.is_some_and(|address| self.listener.trusts(address));
        Sender { peer, trusted, kind: self.listener.config.forwarded }
    }

    /// Its number: the one that a trusted proxy gave it, or a new one.
    #[inline(always)]
    #[must_use]
    pub fn id(&self, sender: &Sender) -> u128 {
        let given = if sender.trusted { self.given_id() } else { None };
        given.unwrap_or_else(|| self.ctx.request_id())
    }

    #[cold]
    fn given_id(&self) -> Option<u128> {
        // Zero is no number: neither of a request nor of a trace (W3C Trace Context §3.2.2.3).
        self.head.value(HeaderField::XRequestId).and_then(request_number).filter(|&id| id != 0)
    }

    /// What its backend is chosen by, where its target hashes.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn key(
        &self,
        rules: &RequestRules,
        way: &Way<'_>,
        sender: &Sender,
        recording: &Recording<'_>,
    ) -> Option<u64> {
        // Nobody need look a second time for whom a trusted proxy speaks.
        let told =
            recording.nearest().map(|nearest| Sender { peer: Some(nearest), trusted: false, ..*sender });
        let sender = told.unwrap_or(*sender);
        hash_key(&rules.hash_key, way.asked(self.head), sender, |address| self.listener.trusts(address))
    }
}

/// What backends are told about the client.
#[inline(always)]
pub fn about<'a>(
    &IncomingRequest { listener, head, peer, .. }: &IncomingRequest<'a>,
    sender: &Sender,
    secured: Option<&'a Secured>,
    record: &Record,
) -> About<'a> {
    About {
        kind: listener.config.forwarded,
        client: peer.client.as_ref(),
        trusted: sender.trusted,
        real_ip: if listener.config.x_real_ip { real_ip(listener, head, sender) } else { None },
        scheme: if secured.is_some() { "https" } else { "http" },
        certificate: secured.map_or(&[], |secured| &*secured.certificate),
        id: record.id,
        retry: 0,
        trace: WorkerCtx::trace(record, head),
    }
}

/// The client's own address, as far as trusted proxies tell it.
#[cold]
fn real_ip(listener: &Listener, head: &Head, sender: &Sender) -> Option<IpAddr> {
    hash_key::client(head, *sender, |address| listener.trusts(address))
}

/// Whether a trusted proxy says that its client came with TLS.
#[cold]
#[must_use]
pub fn says_https(head: &Head) -> bool {
    let told = head.named("x-forwarded-proto").or_else(|| forwarded(head, b"proto"));
    told.is_some_and(|proto| proto.eq_ignore_ascii_case(b"https"))
}

/// The host that a trusted proxy says that its client asked for; empty: it does not say.
#[cold]
#[must_use]
pub fn told_host(head: &Head) -> &[u8] {
    head.named("x-forwarded-host").or_else(|| forwarded(head, b"host")).unwrap_or_default()
}

/// The first parameter of this name in `Forwarded` (RFC 7239 §4).
fn forwarded<'h>(head: &'h Head, name: &[u8]) -> Option<&'h [u8]> {
    let value = head.value(HeaderField::Forwarded)?;
    let mut pairs = value.split(|byte| matches!(byte, b';' | b',')).map(<[u8]>::trim_ascii);
    pairs.find_map(|pair| {
        let (other, value) = pair.split_at(memchr::memchr(b'=', pair)?);
        other.eq_ignore_ascii_case(name).then(|| value[1..].trim_ascii())
    })
}

/// The protocol that the client asks to switch to, if it is one that we pass on. HTTP/1.0 can't ask (RFC 9110
/// §7.8).
pub fn wanted_upgrade<'a>(head: &'a Head, allowed: &[String]) -> Option<&'a [u8]> {
    if head.version == Version::Http10
        || !head.has_hop_by_hop()
        || !head.lists(HeaderField::Connection, b"upgrade")
    {
        return None;
    }
    let offered = head.values(HeaderField::Upgrade).flat_map(tokens);
    offered.into_iter().find(|name| allowed.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())))
}

/// The number in a request id of 32 hex digits, with the dashes of a UUID or without.
fn request_number(text: &[u8]) -> Option<u128> {
    // A digit and a dash, and so on.
    if text.len() > 64 {
        return None;
    }
    let digits: Vec<u8> = text.iter().copied().filter(|&byte| byte != b'-').collect();
    let plain = digits.len() == 32 && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(&digits).ok().filter(|_| plain)?;
    u128::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_tells_scheme_and_host_in_either_way() {
        let told = |lines: &[(&str, &str)]| {
            let mut head = Head::request("GET", "/", "a");
            lines.iter().for_each(|(name, value)| head.push(name.as_bytes(), value.as_bytes()));
            (says_https(&head), String::from_utf8_lossy(told_host(&head)).into_owned())
        };
        assert_eq!(told(&[]), (false, String::new()));
        assert_eq!(told(&[("X-Forwarded-Proto", "HTTPS"), ("X-Forwarded-Host", "b")]), (true, "b".into()));
        assert_eq!(told(&[("Forwarded", "for=1.2.3.4; Proto=https;host=b, for=x")]), (true, "b".into()));
        assert_eq!(told(&[("Forwarded", "for=_x;proto")]), (false, String::new()));
    }

    #[test]
    fn a_request_id_is_a_number_with_or_without_dashes() {
        assert_eq!(request_number(b"000000000000000000000000000000Ab"), Some(0xab));
        assert_eq!(request_number(b"00000000-0000-0000-0000-0000000000ab"), Some(0xab));
        for other in [
            &b""[..],
            b"ab",
            b"+00000000000000000000000000000ab",
            b"000000000000000000000000000000xy",
            b"\xff",
        ] {
            assert_eq!(request_number(other), None, "{other:?}");
        }
    }
}
