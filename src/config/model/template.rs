//! The template of an access line: text with fields in braces, taken apart once, when a config is accepted.
//!
//! `{name}` is a field, `{header.name}` a header of the request, `{{` and `}}` are the braces themselves. The
//! forms `text`, `common` and `combined` are templates too.

macro_rules! fields {
    ($(#[$about:meta])* $name:ident: $($(#[$doc:meta])* $variant:ident = $word:literal;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every field, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Its name in templates and, if it is there, in JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            /// What stands before its value in an object of JSON: a comma, its name in quotes, a colon.
            #[must_use]
            pub const fn json_key(self) -> &'static str {
                match self { $($name::$variant => concat!(",\"", $word, "\":"),)* }
            }
        }
    };
}

fields! {
    /// What a record says: the fields of the JSON form in their order, and all of them for templates.
    LogField:
    /// When the request began, or when the TCP connection was accepted.
    Time = "time";
    /// `http`, `upgrade` or `tcp`.
    Kind = "kind";
    /// Address and port of the peer.
    Client = "client";
    /// The listener's name.
    Listener = "listener";
    /// The target's name.
    Target = "target";
    /// The name of the last attempt's backend.
    Backend = "backend";
    /// The method.
    Method = "method";
    /// Path and query.
    Path = "path";
    /// The authority: of an absolute request target, else of Host.
    Host = "host";
    /// The status that the client got.
    Status = "status";
    /// Why it ended.
    Cause = "cause";
    /// Body bytes from the client.
    BytesIn = "bytes_in";
    /// Body bytes to the client.
    BytesOut = "bytes_out";
    /// The whole time.
    Duration = "duration_ms";
    /// Opening the last attempt's connection.
    Connect = "connect_ms";
    /// From sending the request to the first byte of the answer.
    FirstByte = "first_byte_ms";
    /// How many backends were tried.
    Attempts = "attempts";
    /// Why each attempt before the last one failed, in order.
    EarlierCauses = "earlier_causes";
    /// Whether the last connection came from the pool.
    Reused = "reused";
    /// The version of TLS with the client.
    Tls = "tls";
    /// Whether an earlier TLS session was continued.
    TlsResumed = "tls_resumed";
    /// From the accept to the end of the TLS handshake.
    Handshake = "tls_ms";
    /// The request's number.
    Id = "id";
    /// The User-Agent header.
    UserAgent = "user_agent";
    /// The Referer header.
    Referer = "referer";
    /// The route's name. In JSON only where its listener has more than one route that takes everything.
    Route = "route";
    /// Who the client has shown to be. In JSON only where it has.
    User = "user";
    /// The host name that the client has asked for under TLS (SNI), of connections without requests. In JSON only where it has.
    TlsSni = "tls_sni";
    /// What a balancer in front has agreed on with the client (ALPN). In JSON only where one has told something, as the next four.
    ProxyAlpn = "proxy_alpn";
    /// The host name that the client has asked it for.
    ProxyAuthority = "proxy_authority";
    /// Its number of the connection.
    ProxyUniqueId = "proxy_unique_id";
    /// The version of TLS between the two.
    ProxyTls = "proxy_tls";
    /// The common name of the client's certificate, as it tells it.
    ProxyClientCn = "proxy_client_cn";
    /// What the cache has done. In JSON only where the route has one.
    Cache = "cache";
    /// Why nothing was stored or taken from what is stored. In JSON only where that is so.
    CacheReason = "cache_reason";
    /// What a call of gRPC ended with. In JSON only of those.
    GrpcStatus = "grpc_status";
    /// The trace that the request belongs to. In JSON only where requests are traced.
    TraceId = "trace_id";
    /// The share of records like this one that is logged. In JSON only where sampling is on.
    SampleRate = "sample_rate";
}

fields! {
    /// The same facts in other forms, for templates only.
    DerivedField:
    /// `time` as `10/Oct/2000:13:55:36 +0000`.
    TimeCommon = "time_common";
    /// The address of `client`, without brackets.
    ClientIp = "client_ip";
    /// The port of `client`.
    ClientPort = "client_port";
    /// The request line: method, request target and version.
    Request = "request";
    /// Method and path.
    MethodPath = "method_path";
    /// `status`, or the status of the cause when the client got none: always a number.
    Code = "code";
}

/// A template, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: Box<str>,
    pieces: Vec<TemplatePiece>,
}

/// A stretch of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePiece {
    /// Stands in every line as it is.
    Text(Box<str>),
    /// Is filled in.
    Value(TemplateSource, Slot),
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateSource {
    /// The record.
    Field(LogField),
    /// The record, in another form.
    Derived(DerivedField),
    /// The first request header of this name, in lower case.
    Header(Box<str>),
}

/// What a value must not contain where it stands, beside what is never written as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The first byte of the text behind it, which is where a reader takes it to end.
    pub until: Option<u8>,
    /// It stands between double quotes, so blanks end nothing.
    pub quoted: bool,
}

impl Slot {
    /// Whether a blank inside the value can't be taken for its end.
    #[must_use]
    pub const fn keeps_blanks(self) -> bool {
        self.quoted && !matches!(self.until, Some(b' '))
    }
}

/// What is wrong with a template. Places are counted in characters from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateFault {
    /// Where it begins.
    pub start: usize,
    /// How long it is.
    pub width: usize,
    /// What it is.
    pub kind: FaultKind,
}

/// The ways in which a template can be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// No field has this name.
    UnknownField(String),
    /// No header can have this name (RFC 9110 §5.1).
    BadHeader(String),
    /// A `{` that nothing closes.
    Unclosed,
    /// A `}` that nothing opened.
    Unopened,
    /// A line feed or another control character; only a tab may be there.
    Control,
    /// Every line would be the same.
    NoField,
}

impl Template {
    /// Takes a template apart.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn parse(text: &str) -> Result<Template, Vec<TemplateFault>> {
        let characters: Vec<char> = text.chars().collect();
        let (mut pieces, mut faults) = (Vec::new(), Vec::new());
        let mut literal = String::new();
        let mut at = 0;
        while let Some(&character) = characters.get(at) {
            let rest = &characters[at + 1..];
            let mut fault = |width, kind| faults.push(TemplateFault { start: at, width, kind });
            let mut used = 1;
            match character {
                '{' | '}' if rest.first() == Some(&character) => {
                    literal.push(character);
                    used = 2;
                }
                '{' => match rest.iter().position(|next| matches!(next, '{' | '}')) {
                    Some(end) if rest[end] == '}' => {
                        used = end + 2;
                        match TemplateSource::parse(&rest[..end].iter().collect::<String>()) {
                            Ok(source) => {
                                if !literal.is_empty() {
                                    pieces.push(TemplatePiece::Text(std::mem::take(&mut literal).into()));
                                }
                                pieces.push(TemplatePiece::Value(source, Slot::default()));
                            }
                            Err(kind) => fault(used, kind),
                        }
                    }
                    Some(_) | None => fault(1, FaultKind::Unclosed),
                },
                '}' => fault(1, FaultKind::Unopened),
                '\t' => literal.push(character),
                control if control.is_control() => fault(1, FaultKind::Control),
                plain => literal.push(plain),
            }
            at += used;
        }
        if pieces.is_empty() && faults.is_empty() {
            faults.push(TemplateFault { start: 0, width: characters.len(), kind: FaultKind::NoField });
        }
        if !literal.is_empty() {
            pieces.push(TemplatePiece::Text(literal.into()));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        fit(&mut pieces);
        Ok(Template { text: text.into(), pieces })
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its pieces in order.
    #[must_use]
    pub fn pieces(&self) -> &[TemplatePiece] {
        &self.pieces
    }
}

impl TemplateSource {
    /// What stands between the braces.
    fn parse(name: &str) -> Result<TemplateSource, FaultKind> {
        if let Some(header) = name.strip_prefix("header.") {
            let is_token = !header.is_empty()
                && header
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
            return if is_token {
                Ok(TemplateSource::Header(header.to_ascii_lowercase().into()))
            } else {
                Err(FaultKind::BadHeader(header.to_owned()))
            };
        }
        let field =
            LogField::ALL.iter().find(|field| field.name() == name).copied().map(TemplateSource::Field);
        let derived = || DerivedField::ALL.iter().find(|field| field.name() == name).copied();
        field
            .or_else(|| derived().map(TemplateSource::Derived))
            .ok_or_else(|| FaultKind::UnknownField(name.to_owned()))
    }
}

/// Tells each value where it stands.
fn fit(pieces: &mut [TemplatePiece]) {
    let mut inside = false;
    for piece in pieces.iter_mut() {
        match piece {
            TemplatePiece::Text(text) => inside ^= text.matches('"').count() % 2 == 1,
            TemplatePiece::Value(_, slot) => slot.quoted = inside,
        }
    }
    let mut next = None;
    for piece in pieces.iter_mut().rev() {
        match piece {
            TemplatePiece::Text(text) => next = text.bytes().next(),
            TemplatePiece::Value(_, slot) => slot.until = next,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(text: &str) -> Vec<TemplatePiece> {
        Template::parse(text).expect("a template").pieces
    }

    fn value(source: TemplateSource, until: Option<u8>, quoted: bool) -> TemplatePiece {
        TemplatePiece::Value(source, Slot { until, quoted })
    }

    #[test]
    fn fields_text_and_braces() {
        assert_eq!(
            pieces("a {{{status}}}\t\"{header.X-A}\"{code}{id}"),
            [
                TemplatePiece::Text("a {".into()),
                value(TemplateSource::Field(LogField::Status), Some(b'}'), false),
                TemplatePiece::Text("}\t\"".into()),
                value(TemplateSource::Header("x-a".into()), Some(b'"'), true),
                TemplatePiece::Text("\"".into()),
                value(TemplateSource::Derived(DerivedField::Code), None, false),
                value(TemplateSource::Field(LogField::Id), None, false),
            ]
        );
    }

    #[test]
    fn every_fault_is_found_with_its_place() {
        let faults = Template::parse("é{statu} {header.} {header.a b} } {id\n{status").expect_err("faulty");
        let told: Vec<_> = faults.into_iter().map(|fault| (fault.start, fault.width, fault.kind)).collect();
        assert_eq!(
            told,
            [
                (1, 7, FaultKind::UnknownField("statu".into())),
                (9, 9, FaultKind::BadHeader(String::new())),
                (19, 12, FaultKind::BadHeader("a b".into())),
                (32, 1, FaultKind::Unopened),
                (34, 1, FaultKind::Unclosed),
                (37, 1, FaultKind::Control),
                (38, 1, FaultKind::Unclosed),
            ]
        );
        let none = Template::parse("{{status}}").expect_err("nothing is filled in");
        assert_eq!((none[0].width, &none[0].kind), (10, &FaultKind::NoField));
    }

    #[test]
    fn no_two_fields_have_one_name() {
        let mut names: Vec<_> = LogField::ALL.iter().map(|field| field.name()).collect();
        names.extend(DerivedField::ALL.iter().map(|field| field.name()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    proptest! {
        #[test]
        fn any_text_is_a_template_or_has_faults_inside_it(text in "([{}\"a-z. \\PC]|\\{status\\}|\\{header\\.a\\}){0,40}") {
            match Template::parse(&text) {
                Ok(template) => {
                    // Put together again it is the same.
                    let shown: String = template.pieces.iter().map(|piece| match piece {
                        TemplatePiece::Text(text) => text.replace('{', "{{").replace('}', "}}"),
                        TemplatePiece::Value(TemplateSource::Field(field), _) => format!("{{{}}}", field.name()),
                        TemplatePiece::Value(TemplateSource::Derived(field), _) => format!("{{{}}}", field.name()),
                        TemplatePiece::Value(TemplateSource::Header(name), _) => format!("{{header.{name}}}"),
                    }).collect();
                    prop_assert_eq!(shown, text);
                }
                Err(faults) => {
                    prop_assert!(!faults.is_empty());
                    let length = text.chars().count();
                    prop_assert!(faults.iter().all(|fault| fault.start + fault.width <= length.max(1)));
                }
            }
        }
    }
}
