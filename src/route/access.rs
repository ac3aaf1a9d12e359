//! Whom the `access` of a route lets in.

use std::net::IpAddr;

use crate::config::model::route::InlineAccess;

/// Whether a client may have the route. Of both lists the longest prefix decides, `deny` at a tie; who is in neither may, unless somebody
/// is allowed. A client without an address (on a unix socket) is in none.
#[must_use]
pub fn lets_in(access: &InlineAccess, client: Option<IpAddr>) -> bool {
    let longest = |networks: &[ipnet::IpNet]| {
        let client = client?.to_canonical();
        networks.iter().filter(|network| network.contains(&client)).map(ipnet::IpNet::prefix_len).max()
    };
    match (longest(&access.allow), longest(&access.deny)) {
        (Some(allow), Some(deny)) => allow > deny,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => access.allow.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides_and_deny_at_a_tie() {
        let networks = |list: &[&str]| list.iter().map(|text| text.parse().expect("a network")).collect();
        let access = |allow: &[&str], deny: &[&str]| InlineAccess {
            allow: networks(allow),
            deny: networks(deny),
            status: Some(403),
        };
        for (allow, deny, client, may) in [
            (&[][..], &["10.0.0.0/8"][..], "10.1.2.3", false),
            (&[], &["10.0.0.0/8"], "11.1.2.3", true),
            (&["10.0.0.0/8"], &[], "10.1.2.3", true),
            (&["10.0.0.0/8"], &[], "11.1.2.3", false),
            (&["10.0.0.0/8"], &["10.1.0.0/16"], "10.1.2.3", false),
            (&["10.1.2.0/24"], &["10.1.0.0/16"], "10.1.2.3", true),
            (&["10.0.0.0/8"], &["10.0.0.0/8"], "10.1.2.3", false),
            (&["10.0.0.0/8"], &[], "::ffff:10.1.2.3", true),
            (&["2001:db8::/32"], &[], "2001:db8::1", true),
            (&["2001:db8::/32"], &[], "10.1.2.3", false),
        ] {
            assert_eq!(
                lets_in(&access(allow, deny), client.parse().ok()),
                may,
                "{allow:?} {deny:?} {client}"
            );
        }
        assert!(lets_in(&access(&[], &["0.0.0.0/0"]), None) && !lets_in(&access(&["0.0.0.0/0"], &[]), None));
    }
}
