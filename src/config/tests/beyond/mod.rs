//! What is not on this machine: backends that are found, and nodes that act as one.

pub(super) mod cluster;
pub(super) mod found;

use super::*;
