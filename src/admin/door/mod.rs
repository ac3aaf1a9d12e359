//! How connections come in: who may, how many at once, and how patiently they are listened to.

pub mod conversation;
pub mod crowd;
pub mod entry;
pub mod patient;
pub mod revocable;
pub mod tcp;
