//! `Cache-Control`: what is read of it (RFC 9111 §5.2, RFC 5861, RFC 8246), and how it is read where it is broken.
//!
//! * Names in any case, values as tokens or quoted strings; unknown directives are passed over.
//! * Of several values for an age the first counts (RFC 9111 §4.2.1: "either the first occurrence should be used or …"), and if that is
//!   none the answer is stale: a value that nobody understands must not make an answer live longer than its origin meant.
//! * A directive that forbids counts with any value and any number of times: conflicts go to the most restrictive (§4.2.1).
//! * White space beside `=`, or anything behind a value, spoils the directive: as an age it is 0, as a permission it is none, as
//!   a prohibition it counts.
//! * An argument where none is defined (`public=1`, `must-revalidate="x"`) means something that we do not know. RFC 9111 §5.2 does not say
//!   what then, so the same holds: as a permission it is none, as a prohibition it counts. `must-revalidate` is both, and `s-maxage` permits
//!   only where it is an age. Of `immutable` the RFC says that arguments are passed over (RFC 8246 §2).
//! * A quoted string that never ends quotes nothing, so that it hides no prohibition, and nothing of that answer is fresh.

use crate::message::Head;

use super::fields::{is, is_token, items, quote_end, values};
use super::structured::{SfValue, dictionary};

/// The greatest age: what does not fit counts as this (RFC 9111 §1.2.2).
pub const MOST_SECONDS: u32 = 1 << 31;

/// An age in seconds: [`MOST_SECONDS`] at most. `None`: something that is none (RFC 9111 §1.2.2).
#[must_use]
pub(super) fn delta_seconds(text: &[u8]) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    let mut seconds = 0u32;
    for &byte in text {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        seconds = seconds.saturating_mul(10).saturating_add(u32::from(digit)).min(MOST_SECONDS);
    }
    Some(seconds)
}

/// What an answer says about caches that many clients share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerDirectives {
    /// It was said by `CDN-Cache-Control`, so Cache-Control and Expires say nothing (RFC 9213 §2.2).
    pub is_targeted: bool,
    /// Something of it is broken: nothing is fresh by it.
    pub is_broken: bool,
    /// `no-store`.
    pub no_store: bool,
    /// `private` without names of fields.
    pub private: bool,
    /// `no-cache` without names of fields.
    pub no_cache: bool,
    /// `private` or `no-cache` names fields: see `names_field`.
    pub names_fields: bool,
    /// `public`.
    pub public: bool,
    /// `must-revalidate`.
    pub must_revalidate: bool,
    /// It is there as it is defined, without an argument: so it is a permission too (RFC 9111 §3.5).
    must_revalidate_permits: bool,
    /// `proxy-revalidate`.
    pub proxy_revalidate: bool,
    /// `must-understand`.
    pub must_understand: bool,
    /// `no-transform`.
    pub no_transform: bool,
    /// `immutable`.
    pub immutable: bool,
    /// `max-age`; a broken one is 0.
    pub max_age: Option<u32>,
    /// `s-maxage`; a broken one is 0.
    pub s_maxage: Option<u32>,
    /// It is there and not broken: so it is a permission too (RFC 9111 §3.5).
    s_maxage_permits: bool,
    /// `stale-while-revalidate`; a broken one is 0.
    pub stale_while_revalidate: Option<u32>,
    /// `stale-if-error`; a broken one is 0.
    pub stale_if_error: Option<u32>,
}

impl AnswerDirectives {
    /// Those of an answer: of `CDN-Cache-Control` where that is valid and says something, else of Cache-Control.
    #[must_use]
    pub fn of(answer: &Head) -> AnswerDirectives {
        AnswerDirectives::targeted(answer).unwrap_or_else(|| {
            let mut all = AnswerDirectives::default();
            for value in values(answer, "cache-control") {
                for directive in directives(value) {
                    all.take(&directive);
                }
            }
            all
        })
    }

    /// Those of `CDN-Cache-Control`; `None`: there is none, or it is none (RFC 9213 §2.1).
    fn targeted(answer: &Head) -> Option<AnswerDirectives> {
        let mut all = AnswerDirectives { is_targeted: true, ..AnswerDirectives::default() };
        let mut count = 0;
        for line in values(answer, "cdn-cache-control") {
            dictionary(line, |key, member| {
                count += 1;
                all.take_member(key, member)
            })?;
        }
        (count > 0).then_some(all)
    }

    fn take(&mut self, directive: &Directive<'_>) {
        let name = directive.name;
        self.is_broken |= directive.is_open;
        let permits = !directive.is_spoilt && !directive.has_value;
        let seconds = || if directive.is_spoilt { 0 } else { delta_seconds(directive.value).unwrap_or(0) };
        let names = !directive.is_spoilt && items(directive.value).next().is_some();
        let (flag, value) = match name.len() {
            6 if is(name, "public") => (Some(&mut self.public), permits),
            7 if is(name, "private") => {
                (Some(if names { &mut self.names_fields } else { &mut self.private }), true)
            }
            7 if is(name, "max-age") => return keep_first(&mut self.max_age, seconds()),
            8 if is(name, "no-store") => (Some(&mut self.no_store), true),
            8 if is(name, "no-cache") => {
                (Some(if names { &mut self.names_fields } else { &mut self.no_cache }), true)
            }
            8 if is(name, "s-maxage") => {
                if self.s_maxage.is_none() {
                    self.s_maxage_permits = !directive.is_spoilt && delta_seconds(directive.value).is_some();
                }
                return keep_first(&mut self.s_maxage, seconds());
            }
            9 if is(name, "immutable") => (Some(&mut self.immutable), !directive.is_spoilt),
            12 if is(name, "no-transform") => (Some(&mut self.no_transform), true),
            14 if is(name, "stale-if-error") => return keep_first(&mut self.stale_if_error, seconds()),
            15 if is(name, "must-revalidate") => {
                self.must_revalidate_permits |= permits;
                (Some(&mut self.must_revalidate), true)
            }
            15 if is(name, "must-understand") => (Some(&mut self.must_understand), true),
            16 if is(name, "proxy-revalidate") => (Some(&mut self.proxy_revalidate), true),
            22 if is(name, "stale-while-revalidate") => {
                return keep_first(&mut self.stale_while_revalidate, seconds());
            }
            _ => (None, false),
        };
        if let Some(flag) = flag {
            *flag |= value;
        }
    }

    /// A member of the targeted field. Of several with one key the last counts (RFC 9651 §3.2); `None`: its type is another one than
    /// the directive's, so the whole field is not understood.
    fn take_member(&mut self, key: &[u8], member: SfValue<'_>) -> Option<()> {
        let seconds = |member| match member {
            SfValue::Integer(number) => {
                Some(Some(u32::try_from(number.max(0)).unwrap_or(MOST_SECONDS).min(MOST_SECONDS)))
            }
            _ => None,
        };
        let names = |text: &[u8]| items(text).next().is_some();
        match key {
            b"max-age" => self.max_age = seconds(member)?,
            b"s-maxage" => (self.s_maxage, self.s_maxage_permits) = (seconds(member)?, true),
            b"stale-while-revalidate" => self.stale_while_revalidate = seconds(member)?,
            b"stale-if-error" => self.stale_if_error = seconds(member)?,
            b"private" | b"no-cache" => {
                let (plain, named) = match member {
                    SfValue::Boolean(is) => (is, false),
                    SfValue::Text(text) => (!names(text), names(text)),
                    _ => return None,
                };
                *(if key == b"private" { &mut self.private } else { &mut self.no_cache }) = plain;
                self.names_fields |= named;
            }
            b"must-revalidate" => {
                let SfValue::Boolean(is) = member else { return None };
                (self.must_revalidate, self.must_revalidate_permits) = (is, is);
            }
            _ => {
                let flag = match key {
                    b"public" => &mut self.public,
                    b"no-store" => &mut self.no_store,
                    b"immutable" => &mut self.immutable,
                    b"no-transform" => &mut self.no_transform,
                    b"must-understand" => &mut self.must_understand,
                    b"proxy-revalidate" => &mut self.proxy_revalidate,
                    _ => return Some(()),
                };
                let SfValue::Boolean(is) = member else { return None };
                *flag = is;
            }
        }
        Some(())
    }

    /// Whether it says that others may have it, whoever asked for it. What is broken says no such thing.
    #[must_use]
    pub fn is_for_others(&self) -> bool {
        !self.is_broken && (self.public || self.s_maxage_permits)
    }

    /// Whether others may have it though it was asked for with `Authorization` (RFC 9111 §3.5).
    #[must_use]
    pub fn is_for_others_than_authorized(&self) -> bool {
        self.is_for_others() || !self.is_broken && self.must_revalidate_permits
    }

    /// How long it says that it is fresh; `None`: it says nothing. `s-maxage` goes before `max-age` (RFC 9111 §4.2.1).
    #[must_use]
    pub fn lifetime(&self) -> Option<u32> {
        self.s_maxage.or(self.max_age).map(|seconds| if self.is_broken { 0 } else { seconds })
    }
}

/// Whether `private` or `no-cache` of an answer names this field (RFC 9111 §5.2.2.4, §5.2.2.7), in whichever field said it.
#[must_use]
pub(super) fn names_field(answer: &Head, field: &[u8]) -> bool {
    let lists = |value: &[u8]| items(value).any(|item| item.eq_ignore_ascii_case(field));
    let one = |name: &str| {
        values(answer, name).flat_map(directives).any(|directive| {
            matches!(directive.name.len(), 7 | 8) && directive.names() && lists(directive.value)
        })
    };
    one("cache-control") || one("cdn-cache-control")
}

/// What a request says about how old an answer may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// `no-cache`, or `Pragma: no-cache` where there is no Cache-Control (RFC 9111 §5.4).
    pub no_cache: bool,
    /// `no-store`.
    pub no_store: bool,
    /// `only-if-cached`.
    pub only_if_cached: bool,
    /// `no-transform`.
    pub no_transform: bool,
    /// `max-age`; a broken one is 0.
    pub max_age: Option<u32>,
    /// `min-fresh`; a broken one is [`MOST_SECONDS`].
    pub min_fresh: Option<u32>,
    /// `max-stale`; without a value [`MOST_SECONDS`], a broken one is 0.
    pub max_stale: Option<u32>,
    /// `stale-if-error`; a broken one is 0.
    pub stale_if_error: Option<u32>,
}

impl RequestDirectives {
    /// Takes in one line of Cache-Control.
    pub(super) fn take_line(&mut self, value: &[u8]) {
        for directive in directives(value) {
            self.take(&directive);
        }
    }

    fn take(&mut self, directive: &Directive<'_>) {
        let name = directive.name;
        let seconds = |broken: u32| {
            if directive.is_spoilt || directive.is_open {
                return broken;
            }
            delta_seconds(directive.value).unwrap_or(broken)
        };
        match name.len() {
            7 if is(name, "max-age") => keep_first(&mut self.max_age, seconds(0)),
            8 if is(name, "no-cache") => self.no_cache = true,
            8 if is(name, "no-store") => self.no_store = true,
            9 if is(name, "min-fresh") => keep_first(&mut self.min_fresh, seconds(MOST_SECONDS)),
            9 if is(name, "max-stale") => {
                let any = !directive.has_value && !directive.is_spoilt;
                keep_first(&mut self.max_stale, if any { MOST_SECONDS } else { seconds(0) });
            }
            12 if is(name, "no-transform") => self.no_transform = true,
            14 if is(name, "only-if-cached") => self.only_if_cached = true,
            14 if is(name, "stale-if-error") => keep_first(&mut self.stale_if_error, seconds(0)),
            _ => {}
        }
    }
}

fn keep_first(slot: &mut Option<u32>, seconds: u32) {
    slot.get_or_insert(seconds);
}

/// One directive as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Directive<'v> {
    name: &'v [u8],
    /// Behind `=`, without quotes.
    value: &'v [u8],
    has_value: bool,
    /// It breaks the grammar.
    is_spoilt: bool,
    /// A quoted string begins in it and never ends.
    is_open: bool,
}

impl Directive<'_> {
    fn names(&self) -> bool {
        !self.is_spoilt && (is(self.name, "private") || is(self.name, "no-cache"))
    }
}

/// The directives of one line.
fn directives(line: &[u8]) -> impl Iterator<Item = Directive<'_>> {
    items(line).map(|item| {
        let end = item.iter().position(|byte| !is_token(*byte)).unwrap_or(item.len());
        let (name, rest) = item.split_at(end);
        let mut one = Directive { name, value: &[], has_value: false, is_spoilt: false, is_open: false };
        let Some((b'=', value)) = rest.split_first() else {
            one.is_spoilt = !rest.is_empty();
            one.is_open = has_open_quote(rest);
            return one;
        };
        one.has_value = true;
        match value.first() {
            Some(b'"') => match quote_end(value, 0) {
                Some(last) => {
                    one.value = &value[1..last];
                    one.is_spoilt = last + 1 != value.len();
                }
                None => (one.is_spoilt, one.is_open) = (true, true),
            },
            _ => {
                one.value = value;
                one.is_spoilt = value.is_empty() || !value.iter().all(|byte| is_token(*byte));
                one.is_open = has_open_quote(value);
            }
        }
        one
    })
}

fn has_open_quote(bytes: &[u8]) -> bool {
    let mut at = 0;
    while let Some(quote) = bytes.get(at..).and_then(|rest| memchr::memchr(b'"', rest)) {
        match quote_end(bytes, at + quote) {
            Some(last) => at = last + 1,
            None => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests;
