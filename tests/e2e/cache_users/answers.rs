//! What origins say of caches: made up, in many spellings, with what it means beside it. The meaning is never read out of the lines.

use std::collections::BTreeSet;

use super::chance::Draws;

/// What an answer says, as far as it matters for who may have it.
#[derive(Clone, Debug, Default)]
pub struct Meaning {
    pub status: u16,
    pub no_store: bool,
    pub private: bool,
    pub public: bool,
    pub no_cache: bool,
    pub must_revalidate: bool,
    pub must_understand: bool,
    pub max_age: Option<u32>,
    pub s_maxage: Option<u32>,
    /// `Expires` counts, and whether it lies in the future.
    pub expires: Option<bool>,
    /// Fields that `private` or `no-cache` names.
    pub excepted: BTreeSet<&'static str>,
    pub vary: Vec<&'static str>,
    /// `Vary` is `*`, or no list of names.
    pub varies_by_anything: bool,
    pub sets_cookie: bool,
}

/// One way in which an origin answers. In its lines `{n}` stands for the number of the answer.
#[derive(Clone, Debug)]
pub struct Spec {
    pub meaning: Meaning,
    pub lines: Vec<String>,
    /// The lines that a later 304 must have as well if it is to say the same of all that matters.
    pub names: BTreeSet<&'static str>,
    pub etag: Option<&'static str>,
    pub is_chunked: bool,
    /// It waits until all that is asked at the same time is on its way.
    pub waits: bool,
    /// It breaks off in its body.
    pub breaks: bool,
    /// How often the body says whose it is.
    pub repeats: usize,
}

/// A directive, its value, and whether it is quoted.
type Directive = (&'static str, Option<&'static str>);

const SAYINGS: &[&[Directive]] = &[
    &[("max-age", Some("100"))],
    &[("max-age", Some("100"))],
    &[("max-age", Some("100"))],
    &[("max-age", Some("100"))],
    &[("max-age", Some("100"))],
    &[("public", None), ("max-age", Some("100"))],
    &[("s-maxage", Some("100"))],
    &[("max-age", Some("100")), ("must-revalidate", None)],
    &[("max-age", Some("100")), ("stale-while-revalidate", Some("60"))],
    &[("public", None)],
    &[("public", None), ("max-age", Some("100"))],
    &[("public", None), ("max-age", Some("0"))],
    &[("s-maxage", Some("100"))],
    &[("s-maxage", Some("100")), ("max-age", Some("0"))],
    &[("private", None)],
    &[("private", None), ("max-age", Some("100"))],
    &[("max-age", Some("100")), ("private", Some("\"set-cookie\""))],
    &[("max-age", Some("100")), ("private", Some("\"X-Secret\""))],
    &[("max-age", Some("100")), ("no-cache", Some("\"Set-Cookie, x-secret\""))],
    &[("no-store", None)],
    &[("no-store", None), ("max-age", Some("100"))],
    &[("no-cache", None)],
    &[("no-cache", None), ("public", None)],
    &[("max-age", Some("0"))],
    &[("max-age", Some("0")), ("must-revalidate", None)],
    &[("max-age", Some("0")), ("stale-while-revalidate", Some("60"))],
    &[("max-age", Some("0")), ("stale-if-error", Some("60"))],
    &[("must-revalidate", None)],
    &[("must-understand", None), ("no-store", None), ("max-age", Some("100"))],
    &[("public", None), ("private", None), ("max-age", Some("100"))],
    &[("public", None), ("no-store", None), ("s-maxage", Some("100"))],
];

/// What means nothing for who may have it.
const NOISE: &[Directive] = &[
    ("immutable", None),
    ("no-transform", None),
    ("x-private", None),
    ("ext", Some("\"a, private, no-store\"")),
    ("publicity", None),
    ("ext", Some("public")),
    ("proxy-revalidate", None),
];

/// `Vary`: its lines, and the names in it.
const VARIES: &[(&[&str], &[&str])] = &[
    (&["Accept-Language"], &["accept-language"]),
    (&["ACCEPT-language, , X-Api-Key"], &["accept-language", "x-api-key"]),
    (&["X-Api-Key"], &["x-api-key"]),
    (&["x-api-key", "Cookie"], &["x-api-key", "cookie"]),
    (&["Cookie"], &["cookie"]),
    (&["Authorization"], &["authorization"]),
    (&["X-User"], &["x-user"]),
    (&["X-Who, User-Agent"], &["x-who", "user-agent"]),
    (&["X-Who"], &["x-who"]),
    (&["x-user, x-who"], &["x-user", "x-who"]),
    (&["X-Zone"], &["x-zone"]),
    (&["Host"], &["host"]),
    (&[" , "], &[]),
    (&["X-Forwarded-For"], &["x-forwarded-for"]),
    (&["Accept-Language, Client-Cert"], &["accept-language", "client-cert"]),
    (&["X-Forwarded-Client-Cert"], &["x-forwarded-client-cert"]),
];

const BROKEN_VARIES: &[&[&str]] = &[&["*"], &["X-Api-Key, *"], &["X-Api-Key Cookie"], &["Cookie", "*"]];

impl Meaning {
    fn take(&mut self, &(name, value): &Directive) {
        let seconds = value.and_then(|value| value.trim_matches('"').parse().ok());
        match (name, value) {
            ("private" | "no-cache", Some(names)) => {
                for field in ["set-cookie", "x-secret"] {
                    if names.to_ascii_lowercase().contains(field) {
                        self.excepted.insert(field);
                    }
                }
            }
            ("private", None) => self.private = true,
            ("no-cache", None) => self.no_cache = true,
            ("no-store", _) => self.no_store = true,
            ("public", _) => self.public = true,
            ("must-revalidate", _) => self.must_revalidate = true,
            ("must-understand", _) => self.must_understand = true,
            ("max-age", _) => self.max_age = seconds,
            ("s-maxage", _) => self.s_maxage = seconds,
            _ => {}
        }
    }
}

impl Spec {
    /// `often_public`: as many say so where nothing else may be shared.
    pub fn some(chance: &mut Draws, often_public: bool) -> Spec {
        let mut meaning = Meaning::default();
        let mut lines = Vec::new();
        let mut names = BTreeSet::new();
        meaning.status =
            chance.of(&[200, 200, 200, 200, 200, 200, 200, 203, 301, 404, 410, 299, 299, 500, 503]);
        let expires = chance.of(&[None, None, None, None, Some(true), Some(false)]);
        // RFC 9213: where it is there, nothing else counts.
        let is_targeted = chance.one_in(10);
        if is_targeted {
            let said = chance.of(SAYINGS);
            said.iter().for_each(|one| meaning.take(one));
            let text: Vec<String> = said.iter().map(|(name, value)| member(name, *value)).collect();
            lines.push(format!("CDN-Cache-Control: {}", text.join(", ")));
            names.insert("cdn-cache-control");
        } else if chance.one_in(30) {
            lines.push("CDN-Cache-Control: Public, max-age=100".to_owned());
            names.insert("cdn-cache-control");
        }
        if chance.below(6) > 0 {
            let mut said = chance.of(SAYINGS).to_vec();
            if often_public && chance.one_in(2) {
                said.push(("public", None));
            }
            while chance.one_in(3) {
                let place = chance.below(said.len() + 1);
                said.insert(place, chance.of(NOISE));
            }
            let mut also = Meaning::default();
            let of = if is_targeted { &mut also } else { &mut meaning };
            said.iter().for_each(|one| of.take(one));
            // What one of the two keeps from others is kept from them.
            meaning.excepted.append(&mut also.excepted);
            lines.extend(spelt(&said, chance));
            names.insert("cache-control");
        }
        if let Some(future) = expires {
            let year = if future { 2090 } else { 1999 };
            lines.push(format!("Expires: Sat, 01 Jan {year} 00:00:00 GMT"));
            names.insert("expires");
            meaning.expires = (!is_targeted).then_some(future);
        }
        if chance.one_in(3) {
            let (said, by) = chance.of(VARIES);
            lines.extend(said.iter().map(|line| format!("Vary: {line}")));
            names.insert("vary");
            meaning.vary = by.to_vec();
        } else if chance.one_in(20) {
            let said = chance.of(BROKEN_VARIES);
            lines.extend(said.iter().map(|line| format!("Vary: {line}")));
            names.insert("vary");
            meaning.varies_by_anything = true;
        }
        meaning.sets_cookie = chance.one_in(5);
        if meaning.sets_cookie {
            lines.push("Set-Cookie: made={n}; HttpOnly".to_owned());
            names.insert("set-cookie");
        }
        if chance.one_in(4) || meaning.excepted.contains("x-secret") {
            lines.push("X-Secret: {n}".to_owned());
            names.insert("x-secret");
        }
        if chance.one_in(4) {
            lines.push("Cache-Tag: all, odd".to_owned());
        }
        Spec {
            meaning,
            lines,
            names,
            etag: chance.of(&[None, Some(""), Some(""), Some("W/")]),
            is_chunked: chance.one_in(3),
            waits: chance.below(4) > 0,
            breaks: chance.one_in(40),
            repeats: chance.of(&[1, 3, 40, 4_000]),
        }
    }
}

/// A member of a structured dictionary (RFC 9651 §3.2).
fn member(name: &str, value: Option<&str>) -> String {
    value.map_or_else(|| name.to_owned(), |value| format!("{name}={value}"))
}

/// `Cache-Control` in some of its spellings.
fn spelt(said: &[Directive], chance: &mut Draws) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for (name, value) in said {
        let mut text = match chance.below(6) {
            0 => name.to_ascii_uppercase(),
            1 => name[..1].to_ascii_uppercase() + &name[1..],
            _ => (*name).to_owned(),
        };
        if let Some(value) = value {
            let is_quoted = !value.starts_with('"') && chance.one_in(8);
            text += &if is_quoted { format!("=\"{value}\"") } else { format!("={value}") };
        }
        if line.is_empty() {
            line = text;
        } else if chance.one_in(5) {
            lines.push(std::mem::replace(&mut line, text));
        } else {
            line = line + chance.of(&[", ", ",", " ,\t", ",, ,"]) + &text;
        }
    }
    lines.push(line);
    let name = chance.of(&["Cache-Control", "cache-control", "CACHE-CONTROL"]);
    lines.iter().map(|line| format!("{name}: {line}")).collect()
}
