//! Another process in the place of this one: who may ask for it, and what is answered.

pub mod desk;
pub(super) mod routes;
