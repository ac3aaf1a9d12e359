//! Caching and compression, in the accepted form.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How much is kept for all routes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStoreConfig {
    /// Bytes of memory, 1 MiB to 1 TiB. Default: 256 MiB.
    pub memory: u64,
    /// Bytes of the largest body that is kept, at most an eighth of `memory`. Default: 16 MiB, or an eighth of `memory` if that is less.
    pub object: u64,
}

impl Default for CacheStoreConfig {
    fn default() -> CacheStoreConfig {
        CacheStoreConfig { memory: 256 << 20, object: 16 << 20 }
    }
}

/// What a route answers from what is stored, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// How long answers are fresh that say nothing about it; `None` (`ttl: off`): those are not stored. Default: 10 s.
    pub ttl: Option<Duration>,
    /// How long all answers are fresh that may be stored, whatever they say. Default: `None`.
    pub ttl_override: Option<Duration>,
    /// What `ttl` is for 404, 405, 410, 414 and 501. Default: `None`, they are not stored unless they say so.
    pub negative_ttl: Option<Duration>,
    /// Whether answers that say nothing but when they were last modified are fresh for a tenth of their age. Default: no.
    pub heuristic: bool,
    /// How long an answer that says nothing about it is sent stale while the backend is asked. Default: 0.
    pub stale_while_revalidate: Duration,
    /// How long an answer that says nothing about it stands in for a backend that fails. Default: 0.
    pub stale_if_error: Duration,
    /// Whether answers that say nothing are shared also among requests with cookies. Default: no.
    pub ignore_cookies: bool,
    /// The parameters of the query that tell objects apart; `None`: the whole query. Default: `None`.
    pub query: Option<Vec<String>>,
    /// The header lines of requests that tell objects apart, beside those of `Vary`. Default: none.
    pub headers: Vec<String>,
    /// How often a second clients may have an object asked for again that is fresh (`Cache-Control: no-cache`, `max-age`, `min-fresh`);
    /// 0: never. Default: 10.
    pub reloads: u32,
    /// Whether an answer is read to its end and stored though the client that asked for it has left, and nobody else waits for it.
    /// Default: no.
    pub fill: bool,
}

impl Default for CachePolicy {
    fn default() -> CachePolicy {
        CachePolicy {
            ttl: Some(Duration::from_secs(10)),
            ttl_override: None,
            negative_ttl: None,
            heuristic: false,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            ignore_cookies: false,
            query: None,
            headers: Vec::new(),
            reloads: 10,
            fill: false,
        }
    }
}

/// Which answers of a route are compressed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressPolicy {
    /// The codings that are offered, the preferred one first, each with its level.
    pub codings: Vec<(Coding, u32)>,
    /// Shorter bodies are sent as they are, in bytes. Default: 1 KiB.
    pub at_least: u64,
    /// Whether answers that set cookies are compressed too (see BREACH). Default: no.
    pub cookies: bool,
}

impl Default for CompressPolicy {
    fn default() -> CompressPolicy {
        CompressPolicy {
            codings: Coding::ALL.map(|coding| (coding, coding.usual_level())).to_vec(),
            at_least: 1 << 10,
            cookies: false,
        }
    }
}

/// A way to compress a body (RFC 9110 §8.4.1, RFC 7932, RFC 8878).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `zstd`, with a window that every client must be able to hold: 8 MiB (RFC 9659). Levels 1 to 19, usually 3.
    Zstd,
    /// `br`. Levels 0 to 11, usually 4.
    Brotli,
    /// `gzip`. Levels 1 to 9, usually 6.
    Gzip,
}

impl Coding {
    /// All of them, the one first that is preferred where a client likes them alike.
    pub const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    /// Each with the name that it has in a config file.
    pub const NAMED: &'static [(&'static str, Coding)] =
        &[("zstd", Coding::Zstd), ("br", Coding::Brotli), ("gzip", Coding::Gzip)];

    /// The levels that it has: the higher, the shorter and the slower.
    #[must_use]
    pub const fn levels(self) -> RangeInclusive<u32> {
        match self {
            Coding::Zstd => 1..=19,
            Coding::Brotli => 0..=11,
            Coding::Gzip => 1..=9,
        }
    }

    /// The level where nobody says another one.
    #[must_use]
    pub const fn usual_level(self) -> u32 {
        match self {
            Coding::Zstd => 3,
            Coding::Brotli => 4,
            Coding::Gzip => 6,
        }
    }

    /// What it is called in lines.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// The coding that `name` spells, in any case.
    #[must_use]
    pub fn of(name: &[u8]) -> Option<Coding> {
        // RFC 9110 §8.4.1.3.
        let name = if name.eq_ignore_ascii_case(b"x-gzip") { b"gzip" } else { name };
        Coding::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.token().as_bytes()))
    }
}
