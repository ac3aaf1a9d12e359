//! x
pub mod h1;
