//! The header fields this proxy has an opinion about.
//!
//! A field is classified once, when its line is indexed, by length and a case-insensitive compare; every
//! later question is about a small number. Fields not listed here are only ever copied.

macro_rules! fields {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// A header field we know by number.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Field {
            /// Any other field.
            #[default]
            Other,
            /// A field about the client, spelled with `_` for `-`.
            ClientAlias,
            $($(#[$doc])* $variant,)*
        }

        impl Field {
            /// The field that `name` spells, in any case.
            #[must_use]
            pub fn classify(name: &[u8]) -> Field {
                // One comparison of lengths rules out nearly every candidate.
                $(if name.len() == $name.len() && name.eq_ignore_ascii_case($name.as_bytes()) {
                    return Field::$variant;
                })*
                Field::Other
            }
        }
    };
}

fields! {
    /// RFC 9110 §7.2.
    Host = "host";
    /// RFC 9110 §10.1.5; copied into access records.
    UserAgent = "user-agent";
    /// RFC 9110 §10.1.3; copied into access records.
    Referer = "referer";
    /// RFC 9110 §8.6.
    ContentLength = "content-length";
    /// RFC 9112 §6.1.
    TransferEncoding = "transfer-encoding";
    /// RFC 9110 §7.6.1.
    Connection = "connection";
    /// RFC 2068 §19.7.1.1.
    KeepAlive = "keep-alive";
    /// Not a standard; some old clients send it.
    ProxyConnection = "proxy-connection";
    /// RFC 9110 §11.7.1.
    ProxyAuthenticate = "proxy-authenticate";
    /// RFC 9110 §11.7.2.
    ProxyAuthorization = "proxy-authorization";
    /// RFC 9110 §10.1.4.
    Te = "te";
    /// RFC 9110 §6.6.2.
    Trailer = "trailer";
    /// RFC 9110 §7.8.
    Upgrade = "upgrade";
    /// RFC 7540 §3.2.1; h2c is served as HTTP/1.1.
    Http2Settings = "http2-settings";
    /// RFC 9110 §10.1.1.
    Expect = "expect";
    /// RFC 9110 §6.6.1.
    Date = "date";
    /// RFC 9110 §7.6.3.
    Via = "via";
    /// RFC 7239.
    Forwarded = "forwarded";
    /// The client's address, by custom.
    XForwardedFor = "x-forwarded-for";
    /// The client's scheme, by custom.
    XForwardedProto = "x-forwarded-proto";
    /// The client's Host, by custom.
    XForwardedHost = "x-forwarded-host";
    /// The client's port, by custom.
    XForwardedPort = "x-forwarded-port";
    /// The prefix that was stripped, by custom.
    XForwardedPrefix = "x-forwarded-prefix";
    /// The client's address, by another custom.
    XRealIp = "x-real-ip";
    /// The client's certificate (RFC 9440).
    ClientCert = "client-cert";
    /// What else came with it (RFC 9440).
    ClientCertChain = "client-cert-chain";
    /// Facts of the client's certificate, by custom.
    XForwardedClientCert = "x-forwarded-client-cert";
    /// Number of the request.
    XRequestId = "x-request-id";
}

impl Field {
    /// True for fields that speak about one connection only and are never forwarded (RFC 9110 §7.6.1).
    #[must_use]
    pub const fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            Field::Connection
                | Field::KeepAlive
                | Field::ProxyConnection
                | Field::ProxyAuthenticate
                | Field::ProxyAuthorization
                | Field::Te
                | Field::Upgrade
                | Field::Http2Settings
        )
    }

    /// True for fields by which a proxy tells a backend about the client; only a trusted peer may send them.
    #[must_use]
    pub const fn is_about_client(self) -> bool {
        matches!(
            self,
            Field::ClientAlias
                | Field::Forwarded
                | Field::XForwardedFor
                | Field::XForwardedProto
                | Field::XForwardedHost
                | Field::XForwardedPort
                | Field::XForwardedPrefix
                | Field::XRealIp
                | Field::ClientCert
                | Field::ClientCertChain
                | Field::XForwardedClientCert
                | Field::XRequestId
        )
    }

    /// The field a name stands for when a backend maps `_` to `-`, as CGI and WSGI do: `X_Forwarded_For` is an
    /// alias by which a client could speak in the proxy's name.
    #[must_use]
    pub fn classify_alias(name: &[u8]) -> Field {
        if !name.contains(&b'_') || name.len() > 32 {
            return Field::Other;
        }
        let mut dashed = [0u8; 32];
        for (to, &from) in dashed.iter_mut().zip(name) {
            *to = if from == b'_' { b'-' } else { from };
        }
        Field::classify(&dashed[..name.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_nothing_else_is() {
        assert_eq!(Field::classify(b"HoSt"), Field::Host);
        assert_eq!(Field::classify(b"Content-Length"), Field::ContentLength);
        assert_eq!(Field::classify(b"content-lengths"), Field::Other);
        assert_eq!(Field::classify(b""), Field::Other);
    }

    #[test]
    fn underscore_spellings_are_seen_through() {
        assert_eq!(Field::classify_alias(b"X_Forwarded-For"), Field::XForwardedFor);
        assert_eq!(Field::classify_alias(b"X-Forwarded-For"), Field::Other);
        assert_eq!(Field::classify_alias(b"content_length"), Field::ContentLength);
    }
}
