//! What is changed by hand while it serves, as a list of entries beside the config, and what becomes of them when the file is
//! another one.
//!
//! A change is a reload of the file with the overlay laid over it. Everything here is a pure function: of what was read, of the
//! entries, and of a time that is given.

pub mod blocked;
pub mod change;
pub mod entry;
pub mod lay;
pub mod reconcile;
pub mod report;
mod rough;
pub mod saving;
mod view;

#[cfg(test)]
mod tests;

pub use blocked::{BlockDeclined, BlockWish, BlockedEntry, BlockedReport, block, unblock};
pub use change::{Changed, Declined, Wish, WishList, change};
pub use entry::{AddedBackend, Author, EntryChange, EntryField, LaterFields, ObjectName, OverlayEntry};
pub use lay::{Aside, Laid, lay};
pub use reconcile::{EntryEnd, KEPT, Reconciled, next_end, reconcile};
pub use report::{EntryReport, OverlayReport, report};
pub use saving::{LeftReason, Saving, is_same, saving};
