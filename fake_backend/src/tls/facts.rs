//! What is told of handshakes.

/// What a finished handshake agreed upon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFacts {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// Whether it took up an earlier session.
    pub resumed: bool,
    /// The name the client asked for (SNI, RFC 6066 §3); never an address.
    pub server_name: Option<String>,
    /// The protocol agreed upon (ALPN, RFC 7301).
    pub alpn: Option<String>,
    /// The key exchange group, such as `X25519MLKEM768`; none where a TLS 1.2 session was resumed.
    pub group: Option<String>,
    /// The subject of the client's certificate, such as `CN=alice`.
    pub client_subject: Option<String>,
}

/// A handshake that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Which connection it was: 1 for the first one accepted.
    pub connection: u64,
    /// What was agreed upon, or why nothing was. A client's alert reads `received fatal alert: UnknownCA`.
    pub outcome: Result<TlsFacts, String>,
}
