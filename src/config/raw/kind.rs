//! What a key takes, as data: the JSON Schema is made of it. The walker reads values with code of its own, and
//! `config::tests::schema` holds the two to each other: a range or a name that differs fails there.

use std::time::Duration;

/// An IP address, `*` or one in brackets.
pub(super) const ADDRESS: &str = r"\*|[0-9A-Fa-f:.\[\]]+";
/// An address or a network.
pub(super) const NETWORK: &str = r"[0-9A-Fa-f:.]+(?:/[0-9]{1,3})?";
/// Who may tell whose connections it passes on.
pub(super) const SENDER: &str = r"unix|[0-9A-Fa-f:.]+(?:/[0-9]{1,3})?";
/// A listener that is not a bare number.
pub(super) const LISTENER: &str = r"unix:.+|(?:[^/]+:)?[0-9]{1,5}";
/// A backend's address or name.
pub(super) const HOST: &str = r"\[?[0-9A-Za-z._:-]+\]?";
/// A backend's URL.
pub(super) const URL: &str = r"[A-Za-z]+://[^/?#@]+/?|unix:.+";
/// The URL of a webhook.
pub(super) const RECEIVER: &str = r"[Hh][Tt][Tt][Pp][Ss]?://[^#]+";
/// Where datagrams of statsd are sent.
pub(super) const STATSD_ADDRESS: &str = r"[Uu][Dd][Pp]://[^/\s]+|unix:.+";
/// The name of a target or a backend.
pub(in crate::config) const NAME: &str = r"[^\s/]+";
/// The host of a route.
pub(super) const HOST_PATTERN: &str = r"[^\s/]*[^\s/*][^\s/]*";
/// No answer at all.
pub(super) const DROP: &str = "[Dd][Rr][Oo][Pp]";
/// A method.
pub(super) const METHOD: &str = TOKEN;
/// The name of a route.
pub(super) const ROUTE_NAME: &str = r"[^\s]{1,200}";
/// The path of a route.
pub(super) const ROUTE_PATH: &str = r"/[^\s?#\\]*";
/// Method and URL.
pub(super) const SAMPLE: &str =
    r"\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+ +[Hh][Tt][Tt][Pp][Ss]?://[^\s#@/]+[^\s#@]*\s*";
/// The path that a backend gets, and perhaps a query.
pub(super) const SENT_PATH: &str = r"/[^\s#]*";
/// The name of a process.
pub(super) const INSTANCE: &str = r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}";
/// What becomes of a path: one with variables.
pub(super) const NEW_PATH: &str = r"[/{][^\s]*";
/// Where a client is sent.
pub(super) const LOCATION: &str = r"[^\s]+";
/// The type of a body.
pub(super) const MEDIA_TYPE: &str = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/.+";
/// The path of a probe.
pub(super) const PATH: &str = r#"/[!"$-~]*"#;
/// A Host header.
pub(super) const HOST_HEADER: &str = r#"[^\s/@,"]+"#;
/// The name of a header or a cookie (RFC 9110 §5.6.2).
pub(in crate::config) const TOKEN: &str = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/// The name of a parameter in a query (RFC 3986 §3.4).
pub(super) const PARAMETER: &str = r#"[!"$%'-<>-~]+"#;
/// A secret of at least 16 bytes; a character may be four of them.
pub(super) const SECRET: &str = r"[\s\S]{4,}";
/// A status, or a range of them.
pub(super) const STATUSES: &str = r"\s*[0-9]{3}\s*(?:-\s*[0-9]{3}\s*)?";
/// A number that is found out.
pub(super) const ADAPTIVE: &str = "[Aa][Dd][Aa][Pp][Tt][Ii][Vv][Ee]";
/// A percentile that is no bare number.
pub(super) const PERCENTILE: &str = r"[Pp]?[0-9]+";
/// How many in which time.
pub(super) const RATE: &str = r"\s*[0-9]+\s*/\s*(?:[sSmMhH]|[mM][iI][nN])\s*";
/// How often in a second.
pub(super) const PER_SECOND: &str = r"\s*[0-9]+\s*/\s*[sS]\s*";
/// What an answer to a probe contains.
pub(super) const BODY: &str = r"[\s\S]+";
/// A service of gRPC.
pub(super) const SERVICE: &str = r"[0-9A-Za-z._/-]{1,127}";
/// A protocol to upgrade to: a token, perhaps with a version (RFC 9110 §7.8).
pub(super) const PROTOCOL: &str = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:/[!#$%&'*+.^_`|~0-9A-Za-z-]+)?";
/// A version of TLS.
pub(super) const VERSION: &str = r"(?:TLSv?)*1\.[23]";
/// A form of access records that is no name.
pub(super) const TEMPLATE: &str = r".*[{}].*";
/// What a service is called.
pub(super) const SERVICE_NAME: &str = r"[^\x00-\x1f\x7f]{1,255}";
/// A share in percent.
pub(super) const SHARE: &str = r"[0-9]+(?:\.[0-9]+)?\s*%";
/// What users are asked for.
pub(super) const REALM: &str = r#"[ !#-\[\]-~]{1,128}"#;
/// What a claim of a token says.
pub(super) const CLAIM: &str = r"[\s\S]+";
/// An address of this machine.
pub(super) const SOURCE: &str = r"\[?[0-9A-Fa-f:.]+\]?";
/// Who is asked for names.
pub(super) const SERVER: &str = r"\[?[0-9A-Fa-f:.]+\]?(?::[0-9]{1,5})?";
/// A name that a certificate can be for.
pub(super) const CERTIFICATE_NAME: &str = r"(?:\*\.)?[^\s/:*\[\]_]+";
/// An authority that issues certificates.
pub(super) const DIRECTORY: &str = r"[A-Za-z-]+|[Hh][Tt][Tt][Pp][Ss]?://[^#]+";
/// A mail address.
pub(super) const MAIL: &str = r"(?:mailto:)?[^\s@,]+@[^\s@,?]+";
/// A file.
pub(super) const FILE: &str = r".+";

/// What a key takes. Regular expressions are of the kind that ECMA-262 and RE2 read alike, and hold for whole
/// texts; they may be wider than what the walker takes, and never narrower.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) enum Kind {
    /// Yes or no.
    Switch,
    /// A whole number from the first to the second.
    Whole(u32, u32),
    /// The same, or a text of this form.
    WholeOr(u32, u32, &'static str),
    /// A time with a unit, from the first to the second.
    Time(Duration, Duration),
    /// The same, where a bare number is seconds.
    Seconds(Duration, Duration),
    /// The same up to this one, or `0` without a unit.
    TimeOrZero(Duration),
    /// A whole number of percent, from the first to the second.
    Percent(u32, u32),
    /// The same, also without `%`.
    PercentOrWhole(u32, u32),
    /// Bytes, from the first to the second; a bare number will do.
    Size(u64, u64),
    /// One of the names that this gives; upper and lower case are the same.
    Choice(fn() -> Vec<&'static str>),
    /// The same, or a text of this form.
    ChoiceOr(fn() -> Vec<&'static str>, &'static str),
    /// One of the names that the first gives, or one of those that other programs have for them.
    ChoiceAs(fn() -> Vec<&'static str>, fn() -> Vec<&'static str>),
    /// One of the names that this gives, or a mapping with the keys of a shape.
    ChoiceOrGroup(fn() -> Vec<&'static str>, &'static Shape),
    /// One of the names that this gives, a whole number from the first to the second, or a text of this form.
    ChoiceOrWhole(fn() -> Vec<&'static str>, u32, u32, &'static str),
    /// One of the names that this gives, all of which YAML reads as numbers, or a text of this form.
    Numeral(fn() -> Vec<&'static str>, &'static str),
    /// A text of this form.
    Text(&'static str),
    /// The same, where YAML may also see a number.
    Word(&'static str),
    /// A word that switches off, or what stands inside.
    OrOff(&'static Kind),
    /// Yes, no, or one of the names that this gives.
    SwitchOrChoice(fn() -> Vec<&'static str>),
    /// Yes, no, or a text of this form.
    SwitchOrText(&'static str),
    /// Yes, no, or a mapping with the keys of a shape.
    SwitchOr(&'static Shape),
    /// A list; nothing at all is an empty one.
    List(&'static Kind),
    /// A list with at least one item.
    Items(&'static Kind),
    /// One, or a list with at least one item.
    OneOrItems(&'static Kind),
    /// One, or a list, which may be empty.
    OneOrList(&'static Kind),
    /// A mapping from names to what holds for their values: a value, a list of them, `{present: …}` or `{regex: …}`.
    Conditions,
    /// A mapping from names to values, each one or several.
    Values,
    /// A mapping from names to names of headers.
    Headers,
    /// A mapping from names of headers to values, each as it is written; where this holds also to lists of them.
    Lines(bool),
    /// A mapping from names to whole numbers from the first to the second.
    Weights(u32, u32),
    /// One of the names that this gives, a mapping with the keys of a shape, or a list of those with at least one item.
    ChoicesOrGroups(fn() -> Vec<&'static str>, &'static Shape),
    /// One of the names that this gives, a list of those with at least one item, or a mapping with the keys of a shape.
    ChoicesOrGroup(fn() -> Vec<&'static str>, &'static Shape),
    /// The same, or yes or no.
    SwitchOrChoicesOrGroup(fn() -> Vec<&'static str>, &'static Shape),
    /// The name of a rule, a mapping with the keys of a shape, or a list of those with at least one item.
    Rules(&'static Shape),
    /// A mapping with the keys of a shape.
    Group(&'static Shape),
    /// A mapping from names to groups.
    Named(&'static Shape),
}

/// One key of a shape.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Key {
    /// As it is written.
    pub(in crate::config) name: &'static str,
    /// What it takes.
    pub(in crate::config) kind: Kind,
    /// What it does, in one line for whoever hovers over it in an editor.
    pub(in crate::config) text: &'static str,
    /// What holds without it, in the form it has in a file; `None` when that depends on something else.
    pub(in crate::config) default: Option<&'static str>,
}

/// A key without a default of its own.
pub(super) const fn key(name: &'static str, kind: Kind, text: &'static str) -> Key {
    Key { name, kind, text, default: None }
}

impl Key {
    /// The same with a default.
    pub(super) const fn or(self, default: &'static str) -> Key {
        Key { default: Some(default), ..self }
    }
}

/// The names in a table of the model.
pub(super) fn names<T>(table: &'static [(&'static str, T)]) -> Vec<&'static str> {
    table.iter().map(|(name, _)| *name).collect()
}

/// Compares at compile time.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Whether one mapping stands inside another, by their paths.
pub(super) fn is_inside(path: &str, outer: &str) -> bool {
    path.len() > outer.len() && path.starts_with(outer)
}

/// One kind of mapping in the file.
#[derive(Debug)]
pub(in crate::config) struct Shape {
    /// How a message calls it.
    pub(super) title: &'static str,
    /// Where it stands: empty at the top, else with a dot at its end.
    pub(super) path: &'static str,
    /// Sets of keys of which exactly one must be there as a whole; empty when none must.
    pub(super) needs: &'static [&'static [&'static str]],
    /// Its keys in the order of the documentation, one in a line.
    pub(super) keys: &'static [Key],
}

impl Shape {
    /// Where it stands: empty at the top, else with a dot at its end.
    pub(in crate::config) const fn path(&self) -> &'static str {
        self.path
    }

    /// Sets of keys of which exactly one must be there as a whole.
    pub(in crate::config) const fn needs(&self) -> &'static [&'static [&'static str]] {
        self.needs
    }

    /// Its keys in the order of the documentation.
    pub(in crate::config) const fn keys(&self) -> &'static [Key] {
        self.keys
    }

    /// Its key of this name, for a shape that has it too. One that is not there does not compile.
    pub(super) const fn key(&self, name: &str) -> Key {
        let mut at = 0;
        while at < self.keys.len() {
            if is_same(self.keys[at].name.as_bytes(), name.as_bytes()) {
                return self.keys[at];
            }
            at += 1;
        }
        panic!("no key has this name")
    }

    /// The names of its keys.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.keys.iter().map(|key| key.name)
    }

    /// Whether it has this key.
    pub(super) fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }
}
