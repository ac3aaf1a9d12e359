//! Keys of tokens that stand behind a URL: fetched, and fetched again. `service` has a task for each URL, `follow`
//! asks `access::jwt::KeyRefresh` when, and `fetch` is one attempt. Whoever verifies tokens reads what is there (`snapshot::KnownKeys`) and waits for none of this.

mod fetch;
mod follow;
mod service;

use fetch::{fetch, source};
use follow::follow;

pub use service::keep;
