//! A cache that many clients share: its rules (RFC 9111), as decisions without I/O and without a clock.
//!
//! How a request passes through them:
//!
//! 1. [`CacheRequest::read`] says whether it has to do with the cache at all. If not it goes past; if then its answer
//!    [`invalidates`], what is stored under its URL goes, and under those that [`invalidated`] names, of all routes ([`url_key`]).
//! 2. [`KeyWriter::write`] makes its key, [`CacheKey::hash`] finds what is stored. Of the stored answers whose key has the same *bytes* and
//!    whose [`Variant::fits`] the request as it would be sent, the one that came last counts. None: a miss, or 504 where the client says
//!    `only-if-cached`.
//! 3. [`may_use`] says what is done with it. Where it is sent, [`answer_of`] says what of it: all of it, a part ([`partial`]), or that the
//!    client has it ([`not_modified`]); `Age` is [`Freshness::age_seconds`].
//! 4. Where the backend is asked first, [`conditions`] is the request. A 304 goes through [`freshen`], which says what takes the
//!    place of the stored one and what head the client is answered with, as in 3, whatever it asked by itself. An answer that [`is_backend_error`], or none, lets
//!    the stored one stand in until the time that [`Use::Revalidate`] has named. Any other takes the way of a miss.
//! 5. On a miss the request goes out as it is, and [`may_store`] says whether its answer is kept, of which the body is then stored as it
//!    passes. If it is stored, it takes the place of the stored one that its variant [replaces](Variant::replaces). Of an answer to HEAD
//!    [`head_effect`] says what it makes of the stored one.
//! 6. [`CacheStatus`] is written for all of them, and lines that are [for caches only](is_for_caches_only) are taken away.
//!
//! What is stored is a [`Storable`] and a body, under a key. Nothing in it belongs to the connection it came by.

mod arrival;
mod cache_status;
mod date;
mod directives;
mod etag;
mod fields;
mod freshness;
mod invalidation;
mod key;
mod preconditions;
mod range;
mod request;
pub mod store;
mod storing;
mod structured;
mod using;
mod validation;
mod vary;

#[cfg(test)]
mod tests;

pub use arrival::{Arrival, KnownClient};
pub use cache_status::{CacheStatus, WhyForwarded};
pub use date::{HttpSeconds, http_date};
pub use directives::{AnswerDirectives, MOST_SECONDS, RequestDirectives};
pub use freshness::{Basis, Freshness};
pub use invalidation::{invalidated, invalidates};
pub use key::{CacheKey, KeyParts, KeyRules, KeyWriter, QueryRule, url_key, url_prefix, write_query};
pub use preconditions::{Served, answer_of, not_modified, partial, unsatisfiable};
pub use range::{ByteRange, byte_range};
pub use request::{CacheRequest, is_plain};
pub use storing::{AskedBy, Storable, is_for_caches_only, may_store};
pub use using::{AskAgain, Use, is_backend_error, may_use};
pub use validation::{Freshened, HeadEffect, conditions, freshen, head_effect, is_condition};
pub use vary::Variant;
