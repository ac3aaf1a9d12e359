//! What a header of version 2 says beside addresses: type, length, value, one after the other.

use crate::config::model::ProxyFact;

/// The sender's ALPN protocol.
pub(super) const ALPN: u8 = 0x01;
/// The host name that the client has asked for (SNI).
pub(super) const AUTHORITY: u8 = 0x02;
/// CRC32c of the header.
pub(super) const CRC32C: u8 = 0x03;
/// The sender's number of the connection.
pub(super) const UNIQUE_ID: u8 = 0x05;
/// What its TLS session was: a byte of flags, four of the verification's result, and more of the same kind.
pub(super) const SSL: u8 = 0x20;
/// Within that: the version as text.
pub(super) const SSL_VERSION: u8 = 0x21;
/// The common name of the client's certificate.
pub(super) const SSL_CN: u8 = 0x22;
/// Flag: the client has spoken TLS.
pub(super) const CLIENT_SSL: u8 = 0x01;
/// Flag: it has shown a certificate on this connection.
pub(super) const CLIENT_CERT_CONN: u8 = 0x02;
/// Flag: it has in this session.
pub(super) const CLIENT_CERT_SESS: u8 = 0x04;
/// Most bytes of a number of a connection.
pub(super) const UNIQUE_ID_MOST: usize = 128;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// What it is about.
    pub kind: u8,
    /// What it says.
    pub value: &'a [u8],
}

/// All of a header, whole ones only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldLines(Box<[u8]>);

/// What the sender says of the client's TLS session. It is what it says: nothing of it was verified here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsTold<'a> {
    /// The client has spoken TLS with it.
    pub is_tls: bool,
    /// It has shown a certificate that was verified.
    pub has_certificate: bool,
    lines: &'a [u8],
}

impl<'a> TlsTold<'a> {
    /// What it says about `kind`.
    #[must_use]
    pub fn find(&self, kind: u8) -> Option<&'a [u8]> {
        each(self.lines).find(|tlv| tlv.kind == kind).map(|tlv| tlv.value)
    }
}

/// Goes through `bytes`; ends at the first that is not whole.
fn each(mut bytes: &[u8]) -> impl Iterator<Item = Tlv<'_>> {
    std::iter::from_fn(move || {
        let (&[kind, high, low], rest) = bytes.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
        bytes = rest;
        Some(Tlv { kind, value })
    })
}

/// Whether `bytes` are whole ones up to the last byte.
fn are_whole(bytes: &[u8]) -> bool {
    each(bytes).map(|tlv| tlv.value.len() + 3).sum::<usize>() == bytes.len()
}

impl ToldLines {
    /// Takes them; `None`: one is not whole, or is none of its kind.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<ToldLines> {
        let is_one = |tlv: Tlv<'_>| match tlv.kind {
            CRC32C => tlv.value.len() == 4,
            UNIQUE_ID => tlv.value.len() <= UNIQUE_ID_MOST,
            SSL => tlv.value.get(5..).is_some_and(are_whole),
            _ => true,
        };
        (are_whole(bytes) && each(bytes).all(is_one)).then(|| ToldLines(bytes.into()))
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in their order.
    pub fn all(&self) -> impl Iterator<Item = Tlv<'_>> {
        each(&self.0)
    }

    /// What the first of this kind says.
    #[must_use]
    pub fn find(&self, kind: u8) -> Option<&[u8]> {
        self.all().find(|tlv| tlv.kind == kind).map(|tlv| tlv.value)
    }

    /// The protocol that the client and the sender have agreed on (ALPN).
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.find(ALPN)
    }

    /// The host name that the client has asked for.
    #[must_use]
    pub fn authority(&self) -> Option<&[u8]> {
        self.find(AUTHORITY)
    }

    /// The sender's number of the connection.
    #[must_use]
    pub fn unique_id(&self) -> Option<&[u8]> {
        self.find(UNIQUE_ID)
    }

    /// What it says that has a name; `None`: nothing of that.
    #[must_use]
    pub fn fact(&self, fact: ProxyFact) -> Option<&[u8]> {
        match fact {
            ProxyFact::Alpn => self.alpn(),
            ProxyFact::Authority => self.authority(),
            ProxyFact::UniqueId => self.unique_id(),
            ProxyFact::Tls => self.tls().filter(|tls| tls.is_tls)?.find(SSL_VERSION),
            ProxyFact::ClientName => self.tls().filter(|tls| tls.is_tls)?.find(SSL_CN),
            ProxyFact::Line(kind) => self.find(kind),
        }
    }

    /// What it says of the client's TLS session.
    #[must_use]
    pub fn tls(&self) -> Option<TlsTold<'_>> {
        let (&[flags, verified @ ..], lines) = self.find(SSL)?.split_first_chunk::<5>()?;
        let is_tls = flags & CLIENT_SSL != 0;
        // The result is zero where one was shown and was verified.
        let has_certificate =
            is_tls && flags & (CLIENT_CERT_CONN | CLIENT_CERT_SESS) != 0 && verified == [0; 4];
        Some(TlsTold { is_tls, has_certificate, lines })
    }
}
