//! Configuration: from YAML and flags to the accepted form.

pub mod model;
