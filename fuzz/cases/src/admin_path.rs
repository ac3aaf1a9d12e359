//! Any text as the path of a request to the admin API.

use evenkeel::admin::routes::{Led, lead};

/// Where a path leads: it is told alike with and without a slash behind it, and whatever is taken out of it stands in it.
pub fn admin_path(bytes: &[u8]) {
    let Ok(path) = std::str::from_utf8(bytes) else { return };
    for method in ["GET", "POST", "PATCH", "DELETE"] {
        match lead(method, path) {
            Led::To(route, values) => {
                assert_eq!(route.method, method);
                assert_eq!(values.len(), route.parameters().count());
                assert!(values.iter().all(|(_, value)| !value.is_empty() && value.len() <= path.len()));
                assert_eq!(route.values(path.strip_suffix('/').unwrap_or(path)), Some(values));
            }
            Led::NotSo(allowed) => assert!(!allowed.is_empty() && !allowed.contains(&method)),
            Led::Nowhere(problem) => {
                let status = if path.split('/').all(is_encoded) { 404 } else { 400 };
                assert!(problem.status == status && problem.detail.len() < 2_000);
            }
        }
    }
}

/// Whether two digits stand behind each `%`, and UTF-8 behind them.
fn is_encoded(segment: &str) -> bool {
    let mut decoded = Vec::new();
    let mut rest = segment.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first != b'%' {
            decoded.push(*first);
            rest = behind;
            continue;
        }
        let digits = behind.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let Some(byte) = byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else { return false };
        decoded.push(byte);
        rest = &behind[2..];
    }
    std::str::from_utf8(&decoded).is_ok()
}
