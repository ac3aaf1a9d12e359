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
            Led::Nowhere(problem) => assert!(problem.status == 404 && problem.detail.len() < 2_000),
        }
    }
}
