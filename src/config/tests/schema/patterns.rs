//! Patterns of the JSON Schema take what the readers of units take.

use proptest::prelude::*;

use super::schema_of;
use super::validator::matches;
use crate::config::units;

proptest! {
    /// The schema's idea of a time or a size is the reader's.
    #[test]
    fn read_what_the_units_read(text in "[0-9]{0,3}[.]?[0-9]{0,2}( |ms|s|m|h|d|k|K|kB|KiB|mib|B|x){0,2}[0-9]{0,2}(s|m|)") {
        let time = schema_of("shutdown_timeout");
        let size = schema_of("targets.<name>.limits.head_size");
        prop_assert_eq!(matches(&time["pattern"], &text), units::duration(&text).is_ok());
        prop_assert_eq!(matches(&size["pattern"], &text), units::size(&text).is_ok());
    }
}
