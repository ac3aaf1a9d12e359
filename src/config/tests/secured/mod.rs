//! TLS in a config file.

pub(super) mod certificate_folders;
pub(super) mod certificates;
pub(super) mod offers;
pub(super) mod ordered;

use super::*;
