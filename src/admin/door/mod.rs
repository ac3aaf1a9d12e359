//! How connections come in: who may, how many at once, and how patiently they are listened to.

pub mod arrival;
pub mod conversation;
pub mod cookie;
pub mod entry;
pub mod guest_list;
pub mod patient;
pub mod revocable;
pub mod sessions;
pub mod tcp;
