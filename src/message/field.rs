//! The header fields this proxy has an opinion about.
//!
//! A field is classified once, when its line is indexed, by length and a case-insensitive compare; every
//! later question is about a small number. Fields not listed here are only ever copied.

macro_rules! fields {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// A header field we know by number.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum HeaderField {
            /// Any other field.
            #[default]
            Other,
            /// A field about the client, spelled with `_` for `-`.
            ClientAlias,
            /// A line of an answer that a route has put there: no Connection line takes it away.
            Ours,
            $($(#[$doc])* $variant,)*
        }

        const NAMES: &[(&str, HeaderField)] = &[$(($name, HeaderField::$variant),)*];
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
    /// RFC 9110 §11.6.1.
    WwwAuthenticate = "www-authenticate";
    /// RFC 9110 §11.6.2.
    Authorization = "authorization";
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
    /// Marks the copy of a request whose answer nobody awaits.
    XEvenkeelMirror = "x-evenkeel-mirror";
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
    /// Which retry of a proxy's a request is; 0 or absent: none.
    RetryAttempt = "retry-attempt";
    /// RFC 6265 §5.4.
    Cookie = "cookie";
    /// RFC 9111 §5.2.
    CacheControl = "cache-control";
    /// RFC 9111 §5.4.
    Pragma = "pragma";
    /// RFC 9110 §14.2.
    Range = "range";
    /// RFC 9110 §13.1.1.
    IfMatch = "if-match";
    /// RFC 9110 §13.1.2.
    IfNoneMatch = "if-none-match";
    /// RFC 9110 §13.1.3.
    IfModifiedSince = "if-modified-since";
    /// RFC 9110 §13.1.4.
    IfUnmodifiedSince = "if-unmodified-since";
    /// RFC 9110 §13.1.5.
    IfRange = "if-range";
    /// RFC 9218 §5.
    Priority = "priority";
    /// W3C Trace Context §3.2.
    TraceParent = "traceparent";
    /// W3C Trace Context §3.3.
    TraceState = "tracestate";
}

/// The longest name we know.
const LONGEST: usize = 24;

/// A name as numbers: its first and its last bytes, and for a long one those between. Names of one length are equal
/// when these are.
type Key = [u64; 3];

/// `name` has at most [`LONGEST`] bytes; a longer one has no key, nor has one of a single byte.
const fn key(name: &[u8]) -> Option<Key> {
    match name.len() {
        2..4 => match (name.first_chunk::<2>(), name.last_chunk::<2>()) {
            (Some(first), Some(last)) => {
                Some([u16::from_le_bytes(*first) as u64, u16::from_le_bytes(*last) as u64, 0])
            }
            _ => None,
        },
        4..8 => match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                Some([u32::from_le_bytes(*first) as u64, u32::from_le_bytes(*last) as u64, 0])
            }
            _ => None,
        },
        8..=16 => match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
            (Some(first), Some(last)) => Some([u64::from_le_bytes(*first), u64::from_le_bytes(*last), 0]),
            _ => None,
        },
        17..=LONGEST => match (name.split_first_chunk::<8>(), name.last_chunk::<8>()) {
            (Some((first, rest)), Some(last)) => match rest.first_chunk::<8>() {
                Some(between) => Some([
                    u64::from_le_bytes(*first),
                    u64::from_le_bytes(*last),
                    u64::from_le_bytes(*between),
                ]),
                None => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// A name we know. `fold` makes the letters small, and changes nothing else.
struct Known {
    key: Key,
    fold: Key,
    field: HeaderField,
    /// Where another name of the same length and first letter stands; [`NOWHERE`]: there is none.
    next: u8,
}

impl Known {
    const fn new(name: &str, field: HeaderField, next: u8) -> Known {
        let name = name.as_bytes();
        let mut fold = [0; LONGEST];
        let mut at = 0;
        while at < name.len() {
            assert!(!name[at].is_ascii_uppercase(), "names are written in small letters");
            fold[at] = if name[at].is_ascii_lowercase() { 0x20 } else { 0 };
            at += 1;
        }
        match (key(name), key(fold.split_at(name.len()).0)) {
            (Some(key), Some(fold)) => Known { key, fold, field, next },
            _ => panic!("a name has 2 to LONGEST bytes"),
        }
    }
}

/// No place in [`KNOWN`].
const NOWHERE: u8 = u8::MAX;

/// The place in [`KNOWN`] of a name with this first letter, by its five low bits, and this length. Nearly every name
/// that we don't know is told by these two.
type Places = [[u8; LONGEST + 1]; 32];

/// The names we know, and where they are found. Those of the same first letter and length are linked.
const TABLES: ([Known; NAMES.len()], Places) = {
    let mut known = [const { Known::new("te", HeaderField::Te, NOWHERE) }; NAMES.len()];
    let mut places = [[NOWHERE; LONGEST + 1]; 32];
    let mut at = 0;
    while at < NAMES.len() {
        let (name, field) = NAMES[at];
        let place = &mut places[(name.as_bytes()[0] & 31) as usize][name.len()];
        known[at] = Known::new(name, field, *place);
        *place = at as u8;
        at += 1;
    }
    (known, places)
};

static KNOWN: [Known; NAMES.len()] = TABLES.0;
static PLACES: Places = TABLES.1;

/// A set of fields; a head says with two of them what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields(u64);

impl Fields {
    /// Fields that speak about one connection only and are never forwarded (RFC 9110 §7.6.1).
    pub const HOP_BY_HOP: Fields = Fields::of(&[
        HeaderField::Connection,
        HeaderField::KeepAlive,
        HeaderField::ProxyConnection,
        HeaderField::ProxyAuthenticate,
        HeaderField::ProxyAuthorization,
        HeaderField::Te,
        HeaderField::Upgrade,
        HeaderField::Http2Settings,
    ]);

    /// Fields by which a proxy tells a backend about the client; only a trusted peer may send them.
    pub const ABOUT_CLIENT: Fields = Fields::of(&[
        HeaderField::ClientAlias,
        HeaderField::Forwarded,
        HeaderField::XForwardedFor,
        HeaderField::XForwardedProto,
        HeaderField::XForwardedHost,
        HeaderField::XForwardedPort,
        HeaderField::XForwardedPrefix,
        HeaderField::XRealIp,
        HeaderField::ClientCert,
        HeaderField::ClientCertChain,
        HeaderField::XForwardedClientCert,
        HeaderField::XRequestId,
        HeaderField::XEvenkeelMirror,
    ]);

    /// The set of these fields.
    #[must_use]
    pub const fn of(fields: &[HeaderField]) -> Fields {
        let mut set = Fields(0);
        let mut at = 0;
        while at < fields.len() {
            set.0 |= 1 << fields[at] as u32;
            at += 1;
        }
        set
    }

    /// Whether `field` is in the set.
    #[must_use]
    pub const fn contains(self, field: HeaderField) -> bool {
        self.0 >> field as u32 & 1 == 1
    }

    /// The fields of either set.
    #[must_use]
    pub const fn and(self, other: Fields) -> Fields {
        Fields(self.0 | other.0)
    }

    /// The fields of this set that are not in the other.
    #[must_use]
    pub const fn without(self, other: Fields) -> Fields {
        Fields(self.0 & !other.0)
    }

    /// The fields that both sets have.
    #[must_use]
    pub const fn both(self, other: Fields) -> Fields {
        Fields(self.0 & other.0)
    }

    /// Whether the two sets share a field.
    #[must_use]
    pub const fn meets(self, other: Fields) -> bool {
        self.0 & other.0 != 0
    }
}

// Every field has a bit.
const _: () = assert!(NAMES.len() + 3 <= u64::BITS as usize);

impl HeaderField {
    /// The field that `name` spells, in any case.
    #[inline(always)]
    #[must_use]
    pub fn classify(name: &[u8]) -> HeaderField {
        let lengths = name.first().map(|first| &PLACES[usize::from(first & 31)]);
        match lengths.and_then(|places| places.get(name.len())) {
            None | Some(&NOWHERE) => HeaderField::Other,
            Some(&place) => HeaderField::compare(name, place),
        }
    }

    /// The field that `name` spells, when it stands at `place` or is linked from there.
    #[inline(always)]
    fn compare(name: &[u8], mut place: u8) -> HeaderField {
        let Some(found) = key(name) else { return HeaderField::Other };
        while let Some(known) = KNOWN.get(usize::from(place)) {
            if (0..found.len()).all(|word| found[word] | known.fold[word] == known.key[word]) {
                return known.field;
            }
            place = known.next;
        }
        HeaderField::Other
    }

    /// True for fields of one connection: see [`Fields::HOP_BY_HOP`].
    #[must_use]
    pub const fn is_hop_by_hop(self) -> bool {
        Fields::HOP_BY_HOP.contains(self)
    }

    /// True for fields about the client: see [`Fields::ABOUT_CLIENT`].
    #[must_use]
    pub const fn is_about_client(self) -> bool {
        Fields::ABOUT_CLIENT.contains(self)
    }

    /// The field a name stands for when a backend maps `_` to `-`, as CGI and WSGI do: `X_Forwarded_For` is an
    /// alias by which a client could speak in the proxy's name.
    #[must_use]
    pub fn classify_alias(name: &[u8]) -> HeaderField {
        if memchr::memchr(b'_', name).is_none() {
            return HeaderField::Other;
        }
        let mut written = [0u8; 32];
        let Some(front) = written.get_mut(..name.len()) else { return HeaderField::Other };
        front.copy_from_slice(name);
        // All of it, so that it is done in a few steps.
        let dashed = written.map(|byte| if byte == b'_' { b'-' } else { byte });
        HeaderField::classify(&dashed[..name.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_nothing_else_is() {
        assert_eq!(HeaderField::classify(b"HoSt"), HeaderField::Host);
        assert_eq!(HeaderField::classify(b"Content-Length"), HeaderField::ContentLength);
        assert_eq!(HeaderField::classify(b"content-lengths"), HeaderField::Other);
        assert_eq!(HeaderField::classify(b""), HeaderField::Other);
    }

    /// The rule as it can be said in one line.
    fn plainly(name: &[u8]) -> HeaderField {
        let known = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        known.map_or(HeaderField::Other, |&(_, field)| field)
    }

    #[test]
    fn every_name_is_found_and_none_that_differs_in_a_bit() {
        for (name, field) in NAMES {
            assert_eq!(HeaderField::classify(name.as_bytes()), *field, "{name}");
            assert_eq!(HeaderField::classify(name.to_ascii_uppercase().as_bytes()), *field, "{name}");
            for bit in 0..name.len() * 8 {
                let mut other = name.as_bytes().to_vec();
                other[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(HeaderField::classify(&other), plainly(&other), "{}", other.escape_ascii());
            }
            for length in 0..name.len() {
                let part = &name.as_bytes()[..length];
                assert_eq!(HeaderField::classify(part), plainly(part), "{name} cut to {length}");
            }
        }
        assert_eq!(HeaderField::classify(&[b'a'; LONGEST + 1]), HeaderField::Other);
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let two = Fields::of(&[HeaderField::Host, HeaderField::XRequestId]);
        assert!(
            two.contains(HeaderField::Host)
                && two.contains(HeaderField::XRequestId)
                && !two.contains(HeaderField::Date)
        );
        assert!(two.meets(Fields::ABOUT_CLIENT) && !two.meets(Fields::HOP_BY_HOP));
        assert!(!two.without(Fields::ABOUT_CLIENT).contains(HeaderField::XRequestId));
        assert!(two.and(Fields::HOP_BY_HOP).contains(HeaderField::Te));
    }

    #[test]
    fn underscore_spellings_are_seen_through() {
        assert_eq!(HeaderField::classify_alias(b"X_Forwarded-For"), HeaderField::XForwardedFor);
        assert_eq!(HeaderField::classify_alias(b"X-Forwarded-For"), HeaderField::Other);
        assert_eq!(HeaderField::classify_alias(b"content_length"), HeaderField::ContentLength);
    }
}
