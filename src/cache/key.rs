//! Under what an answer is stored: who asks for the same thing at the same place (RFC 9111 §2).
//!
//! The key is scheme, host, path and query, and then what of this proxy's own has chosen the answer: route, target, header lines that the
//! route names. It has no method: HEAD is answered from what GET has stored. It is bytes in which no part can be taken for another one,
//! because no part has a zero byte.
//!
//! Requests of one connection mostly ask the same host: [`KeyWriter`] remembers its normal form from one to the next.
//!
//! Found is it by a hash of 128 bits, and *compared* are the bytes: a hash that can be computed in a few nanoseconds is none that
//! nobody can make two keys for, whatever secret it has been given, and a wrong answer is worse than the comparison of a hundred bytes.
//! The secret is there so that nobody can make many keys for one place of a table.

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::message::Head;

use super::fields::values;

/// Which parameters of the query tell objects apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueryRule {
    /// The whole query, as it stands.
    #[default]
    Whole,
    /// Those with these names, by name; those of one name in the order they came. The names are decoded, sorted, and each there once:
    /// see [`QueryRule::named`].
    Named(Box<[Box<[u8]>]>),
}

impl QueryRule {
    /// The parameters with these names.
    #[must_use]
    pub fn named<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> QueryRule {
        let mut names: Vec<Box<[u8]>> = names.into_iter().map(Box::from).collect();
        names.sort_unstable();
        names.dedup();
        QueryRule::Named(names.into())
    }
}

/// Which requests of a route are for the same object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRules {
    /// Which parameters count.
    pub query: QueryRule,
    /// Which header lines count, in any case.
    pub headers: Vec<Box<str>>,
}

/// What a key is made of beside header lines.
#[derive(Clone, Copy, Debug)]
pub struct KeyParts<'a> {
    /// Whether the client came with TLS, or a trusted proxy says so.
    pub is_https: bool,
    /// The authority that the client asked for.
    pub authority: &'a [u8],
    /// What a trusted proxy says that it asked for; empty: nothing.
    pub told_host: &'a [u8],
    /// Path and query, after they were normalised and before they are rewritten.
    pub path: &'a [u8],
    /// `listener/route`.
    pub route: &'a [u8],
    /// The target that gets the request.
    pub target: &'a [u8],
}

/// A key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CacheKey {
    bytes: Vec<u8>,
    /// How many of them are the URL.
    url: usize,
}

impl CacheKey {
    /// The key of a request.
    #[must_use]
    pub fn of(parts: &KeyParts<'_>, request: &Head, rules: &KeyRules) -> CacheKey {
        let mut writer = KeyWriter::default();
        writer.write(parts, request, rules);
        writer.key
    }

    /// One that another process has told, of which so many bytes are the URL; `None`: there are not so many.
    #[must_use]
    pub fn from_parts(bytes: Vec<u8>, url: usize) -> Option<CacheKey> {
        (url <= bytes.len()).then_some(CacheKey { bytes, url })
    }

    /// All of it: what two keys are compared by.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The part that is the URL: what [`url_key`] makes for a purge.
    #[must_use]
    pub fn url(&self) -> &[u8] {
        &self.bytes[..self.url]
    }

    /// Where it is found. `secret`: the process's own.
    #[must_use]
    pub fn hash(&self, secret: u64) -> u128 {
        xxh3_128_with_seed(&self.bytes, secret)
    }

    /// Where all keys of its URL are found.
    #[must_use]
    pub fn url_hash(&self, secret: u64) -> u128 {
        CacheKey::hash_of_url(self.url(), secret)
    }

    /// The same of what [`url_key`] makes of a URL.
    #[must_use]
    pub fn hash_of_url(url: &[u8], secret: u64) -> u128 {
        xxh3_128_with_seed(url, secret)
    }
}

/// Writes one key after the other into the same memory.
#[derive(Clone, Debug, Default)]
pub struct KeyWriter {
    key: CacheKey,
    /// Of the key, up to the path.
    host: usize,
    /// The authority that is there in its normal form, as it was written, and whether with TLS.
    authority: Vec<u8>,
    is_https: bool,
}

impl KeyWriter {
    /// The key of a request.
    pub fn write(&mut self, parts: &KeyParts<'_>, request: &Head, rules: &KeyRules) -> &CacheKey {
        let CacheKey { bytes, url } = &mut self.key;
        if self.host == 0 || self.is_https != parts.is_https || self.authority != parts.authority {
            bytes.clear();
            write_host(parts.is_https, parts.authority, bytes);
            self.host = bytes.len();
            self.authority.clear();
            self.authority.extend_from_slice(parts.authority);
            self.is_https = parts.is_https;
        }
        bytes.truncate(self.host);
        write_path(parts.path, &rules.query, bytes);
        *url = bytes.len();
        // Backends get the host as it was written, and may answer by that.
        let is_normal = bytes.get(1..self.host - 1) == Some(parts.authority);
        let written = if is_normal { &[][..] } else { parts.authority };
        for part in [parts.route, parts.target, written, parts.told_host] {
            bytes.extend_from_slice(part);
            bytes.push(0);
        }
        for name in &rules.headers {
            // Where a route names other lines from now on, what is stored is for none of its requests.
            bytes.extend_from_slice(name.as_bytes());
            for value in values(request, name) {
                // In front of each line, so that none is told from one that is empty.
                bytes.push(1);
                bytes.extend_from_slice(value);
            }
            bytes.push(0);
        }
        &self.key
    }
}

/// The part of a key that is the URL, as a route with this rule has it: for a purge, and for what an answer [invalidates](super::invalidated).
#[must_use]
pub fn url_key(is_https: bool, authority: &[u8], path: &[u8], query: &QueryRule) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_url(is_https, authority, path, query, &mut bytes);
    bytes
}

/// What such parts of keys begin with whose path begins so.
#[must_use]
pub fn url_prefix(is_https: bool, authority: &[u8], path: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_host(is_https, authority, &mut bytes);
    bytes.extend_from_slice(path);
    bytes
}

fn write_url(is_https: bool, authority: &[u8], path: &[u8], rule: &QueryRule, out: &mut Vec<u8>) {
    write_host(is_https, authority, out);
    write_path(path, rule, out);
}

fn write_host(is_https: bool, authority: &[u8], out: &mut Vec<u8>) {
    out.push(if is_https { b's' } else { b'p' });
    write_authority(is_https, authority, out);
    out.push(0);
}

fn write_path(path: &[u8], rule: &QueryRule, out: &mut Vec<u8>) {
    let question = memchr::memchr(b'?', path).unwrap_or(path.len());
    out.extend_from_slice(&path[..question]);
    match path.get(question + 1..) {
        None => {}
        Some(query) => match rule {
            QueryRule::Whole => out.extend_from_slice(&path[question..]),
            QueryRule::Named(_) => write_query(query, rule, out),
        },
    }
    out.push(0);
}

/// A host in small letters, without a dot at its end, and without a port that goes without saying.
pub(super) fn write_authority(is_https: bool, authority: &[u8], out: &mut Vec<u8>) {
    let usual: &[u8] = if is_https { b":443" } else { b":80" };
    let authority = authority.strip_suffix(usual).or(authority.strip_suffix(b":")).unwrap_or(authority);
    let bracket = memchr::memrchr(b']', authority).unwrap_or(0);
    let colon = memchr::memrchr(b':', authority).filter(|at| *at >= bracket).unwrap_or(authority.len());
    let (name, port) = authority.split_at(colon);
    let name = name.strip_suffix(b".").unwrap_or(name);
    out.extend(name.iter().map(u8::to_ascii_lowercase));
    out.extend_from_slice(port);
}

/// What of a query counts, with `?` in front if there is something. Where a route names its parameters, this is also what its
/// backends get: what they never see can't make one answer stand for two.
pub fn write_query(query: &[u8], rule: &QueryRule, out: &mut Vec<u8>) {
    let QueryRule::Named(names) = rule else {
        out.push(b'?');
        return out.extend_from_slice(query);
    };
    let parameters = || query.split(|byte| *byte == b'&').filter(|one| !one.is_empty());
    let mut sign = b'?';
    for name in names {
        for parameter in parameters().filter(|one| is_named(one, name)) {
            out.push(sign);
            out.extend_from_slice(parameter);
            sign = b'&';
        }
    }
}

/// Whether a parameter has this name, once it is decoded.
fn is_named(parameter: &[u8], name: &[u8]) -> bool {
    let written = parameter.split(|byte| *byte == b'=').next().unwrap_or_default();
    let mut rest = written.iter();
    let mut name = name.iter();
    loop {
        let hex = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
        let byte = match rest.next() {
            None => return name.next().is_none(),
            Some(b'+') => b' ',
            Some(b'%') => {
                let behind = rest.as_slice();
                match (hex(behind.first()), hex(behind.get(1))) {
                    (Some(high), Some(low)) => {
                        rest = behind[2..].iter();
                        (high * 16 + low) as u8
                    }
                    _ => b'%',
                }
            }
            Some(byte) => *byte,
        };
        if name.next() != Some(&byte) {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts<'a>(authority: &'a str, path: &'a str) -> KeyParts<'a> {
        KeyParts {
            is_https: true,
            authority: authority.as_bytes(),
            told_host: b"",
            path: path.as_bytes(),
            route: b"l/r",
            target: b"t",
        }
    }

    fn key(parts: &KeyParts<'_>, rules: &KeyRules) -> CacheKey {
        CacheKey::of(parts, &Head::request("GET", "/", "x"), rules)
    }

    /// Found by an attack: a route that named another line was answered from what was stored for the values of the one before.
    #[test]
    fn what_was_stored_by_one_line_is_for_nobody_who_has_the_same_in_another_one() {
        let of = |line: &str, rule: &str| {
            let mut request = Head::request("GET", "/", "x");
            request.push(line.as_bytes(), b"de");
            let rules = KeyRules { headers: vec![rule.into()], ..KeyRules::default() };
            CacheKey::of(&parts("a", "/"), &request, &rules)
        };
        assert_ne!(of("X-Tenant", "x-tenant"), of("Accept-Language", "accept-language"));
        assert_eq!(of("X-Tenant", "x-tenant"), of("x-tenant", "x-tenant"));
    }

    fn named(names: &[&str]) -> KeyRules {
        KeyRules { query: QueryRule::named(names.iter().map(|name| name.as_bytes())), headers: Vec::new() }
    }

    #[test]
    fn rfc9111_2_every_part_tells_objects_apart() {
        let rules = KeyRules::default();
        let one = parts("a.example", "/p?q=1");
        let others = [
            KeyParts { is_https: false, ..one },
            KeyParts { authority: b"b.example", ..one },
            KeyParts { authority: b"a.example:8443", ..one },
            KeyParts { path: b"/p?q=2", ..one },
            KeyParts { path: b"/p?", ..one },
            KeyParts { path: b"/p", ..one },
            KeyParts { path: b"/P?q=1", ..one },
            KeyParts { route: b"l/s", ..one },
            KeyParts { target: b"u", ..one },
            KeyParts { route: b"l/rt", target: b"", ..one },
        ];
        let mut all: Vec<CacheKey> = others.iter().chain([&one]).map(|parts| key(parts, &rules)).collect();
        for key in &all {
            assert_eq!(all.iter().filter(|other| *other == key).count(), 1, "{key:?}");
            assert_eq!(all.iter().filter(|other| other.hash(7) == key.hash(7)).count(), 1);
        }
        let again = all.pop().unwrap();
        assert_eq!(
            (again.hash(7), again.url_hash(7)),
            (key(&one, &rules).hash(7), key(&one, &rules).url_hash(7))
        );
        assert_ne!(again.hash(7), again.hash(8));
    }

    #[test]
    fn rfc9110_4_2_3_hosts_are_compared_in_their_normal_form() {
        let of = |authority| key(&parts(authority, "/"), &KeyRules::default());
        for same in ["A.Example", "a.example:443", "a.example.", "a.example:", "a.example.:443"] {
            assert_eq!(of(same).url(), of("a.example").url(), "{same}");
            assert_ne!(of(same), of("a.example"), "{same}: it is forwarded as it is written");
        }
        for other in ["a.example:80", "a.example.b", "[::1]:443x"] {
            assert_ne!(of(other).url(), of("a.example").url(), "{other}");
        }
        assert_eq!(of("[::1]:443").url(), of("[::1]").url());
        let told = |host: &'static [u8]| {
            key(&KeyParts { told_host: host, ..parts("a.example", "/") }, &KeyRules::default())
        };
        assert!(told(b"one") != told(b"two") && told(b"one").url() == told(b"two").url());
    }

    #[test]
    fn named_parameters_count_in_any_order() {
        let rules = named(&["q", "page"]);
        let of = |path| key(&parts("a", path), &rules);
        assert_eq!(of("/?page=2&q=x"), of("/?q=x&utm=9&page=2"));
        assert_eq!(of("/?utm=9"), of("/"));
        assert_eq!(of("/?&&q=1&"), of("/?q=1"));
        assert_ne!(of("/?q=1&q=2"), of("/?q=2&q=1"), "of one name in their order");
        assert_ne!(of("/?q"), of("/?q="));
        assert_ne!(of("/?q=1"), of("/"));
        // Whoever decodes sees the same name; its spelling still counts.
        let mut out = Vec::new();
        write_query(b"p%61ge=2&%71=1&pag=3&x%zz=1&pages=4", &rules.query, &mut out);
        assert_eq!(out, b"?p%61ge=2&%71=1");
        assert!(
            is_named(b"a+b=1", b"a b")
                && is_named(b"%", b"%")
                && is_named(b"%4", b"%4")
                && !is_named(b"%4", b"%")
        );
    }

    #[test]
    fn header_lines_count_that_the_route_names() {
        let rules = KeyRules { query: QueryRule::Whole, headers: vec!["Accept-Language".into(), "X".into()] };
        let of = |lines: &[(&str, &str)]| {
            let mut head = Head::request("GET", "/", "x");
            lines.iter().for_each(|(name, value)| head.push(name.as_bytes(), value.as_bytes()));
            CacheKey::of(&parts("a", "/"), &head, &rules)
        };
        assert_eq!(of(&[("accept-language", "de"), ("Y", "1")]), of(&[("Accept-Language", "de")]));
        let all = [
            of(&[]),
            of(&[("X", "")]),
            of(&[("X", "de")]),
            of(&[("Accept-Language", "de")]),
            of(&[("X", "d"), ("X", "e")]),
            of(&[("X", "e"), ("X", "d")]),
        ];
        for key in &all {
            assert_eq!(all.iter().filter(|other| *other == key).count(), 1, "{key:?}");
        }
        assert!(all.iter().all(|key| key.url() == url_key(true, b"A", b"/", &QueryRule::Whole)));
    }

    proptest! {
        /// What a writer has written before is seen in nothing that it writes.
        #[test]
        fn a_writer_forgets(all in prop::collection::vec(("[aA]?[.]?(:443|:80)?", "/[a?]{0,3}", any::<bool>()), 1..8)) {
            let mut writer = KeyWriter::default();
            let rules = named(&["a"]);
            for (authority, path, is_https) in &all {
                let parts = KeyParts { is_https: *is_https, ..parts(authority, path) };
                let request = Head::request("GET", "/", "x");
                prop_assert_eq!(writer.write(&parts, &request, &rules), &CacheKey::of(&parts, &request, &rules));
            }
        }

        /// Selecting twice is selecting once, and nothing of the rest is left.
        #[test]
        fn a_selected_query_is_its_own_selection(query in "[abq%61&=+]{0,24}") {
            let rule = named(&["a", "q"]).query;
            let mut once = Vec::new();
            write_query(query.as_bytes(), &rule, &mut once);
            let mut twice = Vec::new();
            write_query(once.strip_prefix(b"?").unwrap_or_default(), &rule, &mut twice);
            prop_assert_eq!(once, twice);
        }
    }
}
