//! Why a request or a connection ended as it did: one closed list, one exhaustive table.
//!
//! The table says who is at fault, what the client gets and what the log calls it. There is no wildcard
//! arm, so a new cause does not compile until somebody has answered all three.

/// Who is at fault; decides what counts against a backend and what may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Nobody.
    Nobody,
    /// The client: what it sent, or that it left.
    Client,
    /// This process or machine: limits, shortage, no eligible backend.
    Local,
    /// The backend.
    Backend,
}

macro_rules! causes {
    ($($(#[$doc:meta])* $variant:ident = $token:literal, $status:literal, $blame:ident, $text:literal;)*) => {
        /// Why a request or a connection ended as it did.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Cause {
            $($(#[$doc])* $variant,)*
        }

        impl Cause {
            /// Every cause, in the order of its number.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant,)*];

            /// The name in logs, metrics and error answers; stable, lower case with underscores.
            #[must_use]
            pub const fn token(self) -> &'static str {
                match self { $(Cause::$variant => $token,)* }
            }

            /// The status of the answer we write ourselves. 499 is for logs only: nobody is there to read it.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Cause::$variant => $status,)* }
            }

            /// Who is at fault.
            #[must_use]
            pub const fn blame(self) -> Blame {
                match self { $(Cause::$variant => Blame::$blame,)* }
            }

            /// One sentence for the client. It reveals nothing internal.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Cause::$variant => $text,)* }
            }
        }
    };
}

causes! {
    /// Nothing went wrong.
    #[default]
    Done = "-", 200, Nobody, "Done.";

    /// The request line or a header line breaks RFC 9112.
    BadHead = "bad_head", 400, Client, "The request head is malformed.";
    /// Host is missing, repeated or invalid.
    BadHost = "bad_host", 400, Client, "The request needs exactly one valid Host.";
    /// Content-Length is not one plain number.
    BadLength = "bad_length", 400, Client, "Content-Length must be one plain number.";
    /// Content-Length and Transfer-Encoding together.
    LengthConflict = "length_conflict", 400, Client, "Content-Length and Transfer-Encoding exclude each other.";
    /// Transfer-Encoding that is malformed or not allowed here.
    BadTransferEncoding = "bad_transfer_encoding", 400, Client, "Transfer-Encoding may only be chunked, once.";
    /// A transfer coding we do not implement.
    UnknownTransferCoding = "unknown_transfer_coding", 501, Client, "Only the transfer coding chunked is implemented.";
    /// A chunk or a trailer breaks RFC 9112 §7.1.
    BadChunk = "bad_chunk", 400, Client, "The chunked body is malformed.";
    /// An HTTP version other than 1.0 and 1.1.
    BadVersion = "bad_version", 505, Client, "Only HTTP/1.0 and HTTP/1.1 are spoken here.";
    /// TLS on a port that speaks plain HTTP.
    TlsHello = "tls_hello", 400, Client, "This port speaks plain HTTP. Use http:// instead of https://.";
    /// A header of the PROXY protocol, version 1 or 2.
    ProxyProtocol = "proxy_protocol", 400, Client, "The PROXY protocol is not spoken here.";
    /// A connection to a listener whose clients balancers tell, from an address that may not tell.
    ProxySender = "proxy_sender", 403, Client, "Only known balancers may connect here.";
    /// A balancer has told none of the PROXY protocol's headers, or one that is malformed.
    BadProxyHeader = "bad_proxy_header", 400, Client, "The header of the PROXY protocol is missing or malformed.";
    /// A balancer's header was not complete in time.
    ProxyTimeout = "proxy_timeout", 408, Client, "The header of the PROXY protocol did not arrive in time.";
    /// A client asks under TLS for a name that nobody has here, and was told so by the alert unrecognized_name (RFC 6066 §3).
    UnknownSni = "unknown_sni", 421, Client, "Nobody has this name here.";
    /// The preface of HTTP/2 (RFC 9113 §3.4). The client is told in a frame: it reads no HTTP/1.1.
    Http2Preface = "http2_preface", 505, Client, "HTTP/2 is not spoken here. Use HTTP/1.1.";
    /// A frame that breaks RFC 9113: its stream is reset, or the connection closed.
    BadFrame = "bad_frame", 400, Client, "This breaks the rules of HTTP/2.";
    /// A client of HTTP/2 made too much work for too little, and its connection was closed with ENHANCE_YOUR_CALM.
    Http2Flood = "http2_flood", 429, Client, "Too much work for too little.";
    /// A backend asks an HTTP/2 client to log in its connection (NTLM, Negotiate), which only HTTP/1.1 can: the stream is reset with
    /// HTTP_1_1_REQUIRED.
    NeedsHttp11 = "needs_http_1_1", 421, Client, "This has to be asked with HTTP/1.1.";
    /// CONNECT is never forwarded.
    ConnectMethod = "connect_method", 405, Client, "CONNECT is not allowed here.";
    /// The request line alone is over the head limit.
    TargetTooLong = "target_too_long", 414, Client, "The request target is too long.";
    /// The head is over `limits.head_size`.
    HeadTooLarge = "head_too_large", 431, Client, "The request head is too large.";
    /// More header lines than `limits.headers`.
    TooManyHeaders = "too_many_headers", 431, Client, "The request has too many header lines.";
    /// The body is over `limits.body`.
    BodyTooLarge = "body_too_large", 413, Client, "The request body is too large.";
    /// The head was not complete in time.
    HeadTimeout = "head_timeout", 408, Client, "The request head did not arrive in time.";
    /// Plain HTTP on a port that speaks HTTPS.
    PlainHttp = "plain_http", 400, Client, "This port speaks HTTPS. Use https:// instead of http://.";
    /// The TLS handshake with the client failed; nobody is there to read an answer.
    TlsHandshake = "tls_handshake", 400, Client, "The TLS handshake failed.";
    /// The TLS handshake with the client was not complete in time.
    TlsTimeout = "tls_timeout", 408, Client, "The TLS handshake was not complete in time.";
    /// The client had no certificate, or one that did not convince.
    ClientCertificate = "client_certificate", 400, Client, "A valid client certificate is needed.";
    /// The body came too slowly or stopped.
    BodyTimeout = "body_timeout", 408, Client, "The request body did not arrive in time.";
    /// The time that a call of gRPC was given by its `grpc-timeout` is over.
    GrpcTimeout = "grpc_timeout", 408, Client, "The time that the call was given is over.";
    /// The client took no bytes for the idle timeout.
    ClientStalled = "client_stalled", 499, Client, "The client stopped reading.";
    /// The client closed or reset before its answer was complete.
    ClientGone = "client_gone", 499, Client, "The client left.";

    /// No route takes the request.
    NoRoute = "no_route", 404, Client, "There is nothing here.";
    /// The request is for a host that another certificate or another listener is for (RFC 9110 §15.5.20): its connection was made for
    /// another one, and is good for that.
    MisdirectedRequest = "misdirected_request", 421, Client, "This connection is not for that host. Use another one.";
    /// The client wants nothing but what is stored (`only-if-cached`), and nothing is that could be sent (RFC 9111 §5.2.1.7).
    OnlyIfCached = "only_if_cached", 504, Client, "Nothing is stored that could be sent.";
    /// The path is written in a form that is refused.
    BadPath = "bad_path", 400, Client, "The path is written in a form that is not taken here.";
    /// The client's address was blocked at run time.
    Blocked = "blocked", 403, Client, "You may not come in.";
    /// `access` of the listener or of the route does not let the client in.
    AccessDenied = "access_denied", 403, Client, "You may not have this.";
    /// The route asks for a token, and there is none.
    TokenMissing = "token_missing", 401, Client, "A bearer token is needed.";
    /// The token is none, or has something twice, or something critical that is not understood.
    TokenMalformed = "token_malformed", 401, Client, "The token is not valid.";
    /// The token is not signed as it has to be, or not by whom it says.
    TokenSignature = "token_signature", 401, Client, "The token is not valid.";
    /// The token's time is over.
    TokenExpired = "token_expired", 401, Client, "The token has expired.";
    /// The token is not for this place, not by this issuer, or not valid yet.
    TokenClaims = "token_claims", 401, Client, "The token is not valid here.";
    /// The key that the token names is not known, or no keys are.
    TokenKeys = "token_keys", 401, Client, "The token can't be verified.";

    /// The client has not shown who it is.
    AuthRequired = "auth_required", 401, Client, "You need to show who you are.";
    /// What it shows is not written as it has to be.
    AuthMalformed = "auth_malformed", 401, Client, "What you show of yourself is malformed.";
    /// There is no such user, or the password is another one.
    AuthFailed = "auth_failed", 401, Client, "This is no valid user name and password.";
    /// Too many passwords of this client, or of all, wait to be compared.
    AuthBusy = "auth_busy", 429, Client, "Too many passwords are waiting to be compared.";
    /// The service that says who may come in has answered otherwise: the client gets its answer.
    AuthDenied = "auth_denied", 403, Client, "You may not have this.";
    /// That service could not be asked.
    AuthUnavailable = "auth_unavailable", 503, Local, "It can't be found out who you are.";
    /// It did not answer in time.
    AuthTimeout = "auth_timeout", 504, Local, "It could not be found out in time who you are.";
    /// Its answer is malformed or too long.
    AuthAnswer = "auth_answer", 502, Local, "It can't be found out who you are.";
    /// Over one of the rate limits of the route or its listener.
    RateLimited = "rate_limited", 429, Client, "Too many requests in too short a time.";

    /// No backend is eligible.
    NoBackend = "no_backend", 503, Local, "No backend is available.";
    /// Every backend that could be chosen has an open breaker.
    BreakerOpen = "breaker_open", 503, Local, "No backend is available.";
    /// Every backend has `max_in_flight` requests, and as many as may wait do.
    QueueFull = "queue_full", 503, Local, "Too many requests are waiting.";
    /// No backend had room in time.
    QueueTimeout = "queue_timeout", 503, Local, "No backend had room in time.";
    /// Over `timeouts.total`.
    TotalTimeout = "total_timeout", 504, Local, "The request took too long.";
    /// No backend had its first verdict in time.
    NoVerdict = "no_verdict", 503, Local, "No backend has been checked yet.";
    /// Over `limits.connections_per_client`.
    TooManyFromClient = "too_many_from_client", 429, Client, "Too many connections from your address.";
    /// Over `max_connections` or `limits.connections`.
    TooManyConnections = "too_many_connections", 503, Local, "Too many connections.";
    /// Out of descriptors, memory or buffers.
    LocalShortage = "local_shortage", 503, Local, "A local resource ran out.";
    /// Out of local ports or addresses towards one destination.
    NoLocalPort = "no_local_port", 503, Local, "No local port was left towards the backend.";
    /// Cut because the shutdown deadline passed.
    Shutdown = "shutdown", 503, Local, "The service is shutting down.";
    /// A bug of ours.
    Internal = "internal", 500, Local, "An internal error occurred.";

    /// Every backend tried refused the connection or could not be reached.
    ConnectFailed = "connect_failed", 503, Backend, "No backend could be reached.";
    /// A backend did not accept in time.
    ConnectTimeout = "connect_timeout", 504, Backend, "The backend did not accept a connection in time.";
    /// The TLS handshake with a backend failed.
    UpstreamTls = "upstream_tls", 502, Backend, "The TLS handshake with the backend failed.";
    /// A backend's certificate is for another name.
    UpstreamTlsName = "upstream_tls_name", 502, Backend, "The backend's certificate is for another name.";
    /// A backend's certificate has expired or is not in force yet.
    UpstreamTlsExpired = "upstream_tls_expired", 502, Backend, "The backend's certificate is not in force.";
    /// A backend's certificate was issued by nobody whom we trust.
    UpstreamTlsIssuer = "upstream_tls_issuer", 502, Backend, "The backend's certificate is not trusted.";
    /// A backend did not accept our certificate, or wants one.
    UpstreamTlsRefused = "upstream_tls_refused", 502, Backend, "The backend refused our certificate.";
    /// A backend that should speak TLS does not.
    UpstreamNotTls = "upstream_not_tls", 502, Backend, "The backend does not speak TLS.";
    /// The TLS handshake with a backend was not complete in time.
    UpstreamTlsTimeout = "upstream_tls_timeout", 504, Backend, "The TLS handshake with the backend was not complete in time.";
    /// A backend closed or reset before its answer began.
    BackendClosed = "backend_closed", 502, Backend, "The backend closed the connection without an answer.";
    /// No head of the answer in time.
    FirstByteTimeout = "first_byte_timeout", 504, Backend, "The backend did not answer in time.";
    /// Over `timeouts.attempt`.
    AttemptTimeout = "attempt_timeout", 504, Backend, "The backend did not answer in time.";
    /// The answer had a status for which another backend was tried.
    ErrorStatus = "error_status", 502, Backend, "The backend answered with an error.";
    /// The answer's head breaks RFC 9112 or is too large.
    BadAnswer = "bad_answer", 502, Backend, "The backend's answer is malformed.";
    /// 101 without or against a matching request.
    BadUpgrade = "bad_upgrade", 502, Backend, "The backend switched protocols unasked.";
    /// The answer's body broke its framing.
    BadAnswerBody = "bad_answer_body", 502, Backend, "The backend's answer broke off.";
    /// The backend closed or reset in the middle of a body.
    AnswerCut = "answer_cut", 502, Backend, "The backend's answer broke off.";
    /// The backend was silent in the middle of a body.
    AnswerStalled = "answer_stalled", 504, Backend, "The backend stopped in the middle of its answer.";

    /// A header line of a route was left out: its value would have been none. No request ends for it.
    FieldDropped = "field_dropped", 200, Nobody, "A header line was left out.";

    /// As many copies as may wait do, or take as much memory as they may. Of copies alone, as the next three.
    MirrorFull = "mirror_full", 503, Local, "Too many copies are waiting.";
    /// The body of the request is longer than what is copied.
    MirrorTooLong = "mirror_too_long", 503, Local, "The request is too long to be copied.";
    /// The request ended before its body was complete.
    MirrorUnfinished = "mirror_unfinished", 503, Local, "The request was not read to its end.";
    /// The answer to a copy took too long or was too long, and was not read to its end.
    MirrorCut = "mirror_cut", 503, Local, "The answer to a copy was not read to its end.";

    /// Another attempt of the same request was sooner.
    Overtaken = "overtaken", 200, Nobody, "Another backend was sooner.";
    /// A tunnel was silent for its whole idle time.
    TunnelIdle = "tunnel_idle", 200, Nobody, "The connection was idle for too long.";
    /// A tunnel was ended because its backend or its listener is gone from the config.
    Drained = "drained", 200, Nobody, "The connection was ended because its backend leaves.";
}

impl Cause {
    /// Whether nothing that follows on the client's connection can be trusted, or is wanted.
    #[must_use]
    pub const fn ends_connection(self) -> bool {
        match self {
            Cause::NoRoute
            | Cause::MisdirectedRequest
            | Cause::OnlyIfCached
            | Cause::AccessDenied
            | Cause::Blocked
            | Cause::RateLimited
            | Cause::AuthRequired
            | Cause::AuthMalformed
            | Cause::AuthFailed
            | Cause::AuthBusy
            | Cause::AuthDenied
            | Cause::TokenMissing
            | Cause::TokenMalformed
            | Cause::TokenSignature
            | Cause::TokenExpired
            | Cause::TokenClaims
            | Cause::TokenKeys => false,
            Cause::TooManyConnections => true,
            _ => matches!(self.blame(), Blame::Client),
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.token())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unique_and_statuses_fit_the_blame() {
        let mut seen = std::collections::HashSet::new();
        for &cause in Cause::ALL {
            assert!(seen.insert(cause.token()), "{} twice", cause.token());
            let class = cause.status() / 100;
            match cause.blame() {
                Blame::Nobody => assert_eq!(class, 2, "{cause}"),
                Blame::Client => assert!(class == 4 || matches!(cause.status(), 501 | 504 | 505), "{cause}"),
                Blame::Local | Blame::Backend => assert_eq!(class, 5, "{cause}"),
            }
        }
    }
}
