//! Keys of tokens that stand behind a URL: fetched, and fetched again. `follow` asks `access::jwt::KeyRefresh` when; `fetch` is one
//! attempt. Whoever verifies tokens reads what is there (`snapshot::KnownKeys`) and waits for none of this.

mod fetch;
mod follow;

pub use fetch::{KeySource, fetch};
pub use follow::follow;
