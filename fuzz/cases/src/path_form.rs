//! Any bytes as the path of a request, in front of backends that read paths in ways of their own.

use std::sync::Arc;

use evenkeel::config::model::route::{DotSegments, EncodedSlash, PathPattern};
use evenkeel::config::model::{Normalize, RouteConfig};
use evenkeel::message::Head;
use evenkeel::route::{Asked, Router, path_form as forms};

use crate::readers::Reader;

/// Whoever is let through by a route for the rest is not read as somebody of `/admin` by any backend, and the one form of a path is its
/// own. The first byte says how paths are normalized.
pub fn path_form(bytes: &[u8]) {
    let Some((options, path)) = bytes.split_first() else { return };
    let path = path.split(|&byte| byte == b'?').next().unwrap_or_default();
    let rules = Normalize {
        dot_segments: if options & 1 == 0 { DotSegments::Resolve } else { DotSegments::Refuse },
        encoded_slash: if options & 2 == 0 { EncodedSlash::Keep } else { EncodedSlash::Refuse },
        merge_slashes: options & 4 != 0,
    };
    let Ok(once) = forms::form(path, &rules) else { return };
    assert_eq!(forms::form(&once, &rules).expect("it has its form"), once);
    if *once == *b"*" {
        return;
    }
    assert!(once.starts_with(b"/") && once.iter().all(|&byte| PathPattern::may_have(byte)));
    assert!(!once.contains(&b'\\') && !once.contains(&b'#'));
    for (pattern, is_protected) in protected() {
        let mut route = RouteConfig::catch_all("t");
        route.matches.path = pattern;
        let router = Router::new(&[Arc::new(route), Arc::new(RouteConfig::catch_all("t"))], None);
        let head = Head::request("GET", "/", "h");
        let Ok(found) = router.find(&Asked { head: &head, path: &once, client: None, certificate: None })
        else {
            continue;
        };
        assert_eq!(found == Some(0), is_protected(&once));
        for reader in Reader::all() {
            let read = reader.read(&once);
            assert_eq!(found == Some(0), is_protected(&read), "{reader:?} reads {}", read.escape_ascii());
        }
    }
}

/// Whether a path is a pattern's own.
type IsOwn = fn(&[u8]) -> bool;

/// Patterns, and what a path must be like to be theirs.
fn protected() -> [(PathPattern, IsOwn); 2] {
    let below: IsOwn =
        |path| path.strip_prefix(b"/admin").is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
    [
        (PathPattern::Prefix("/admin".to_owned()), below),
        (PathPattern::Exact("/admin".to_owned()), |path| path == b"/admin"),
    ]
}
