//! Names in certificates.

use x509_parser::x509::X509Name;

/// A name as people call it.
pub(super) fn shown_name(name: &X509Name<'_>) -> String {
    let common = name.iter_common_name().find_map(|name| name.as_str().ok());
    common.map_or_else(|| name.to_string(), str::to_owned)
}
