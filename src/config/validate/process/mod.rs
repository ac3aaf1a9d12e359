//! Which process this is, and which others it acts with.

pub(super) mod cluster;
pub(super) mod instance;
