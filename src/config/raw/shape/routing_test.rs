//! The keys of one of `tests`.

use crate::config::raw::kind::Kind::{Conditions, Group, OneOrItems, OrOff, Text, Values, WholeOr, Word};
use crate::config::raw::kind::{BODY, DROP, NAME, NETWORK, ROUTE_NAME, SAMPLE, SENT_PATH, Shape, key};

/// One of `tests`.
pub(in crate::config::raw) const ROUTING_TEST: Shape = Shape {
    title: "in a test",
    path: "tests[].",
    needs: &[&["request", "expect"]],
    keys: &[
        key("request", Text(SAMPLE), "Method and URL: `GET https://shop.example/api/x`."),
        key("listener", Word(NAME), "The listener that gets it; by default the only one that fits."),
        key("from", Word(NETWORK), "The address that the connection comes from.").or("192.0.2.1"),
        key("headers", Values, "Its header lines: `{X-Beta: yes}`."),
        key("cookies", Values, "Its cookies: `{user: a}`."),
        key("client_cert", Group(&SAMPLE_CERTIFICATE), "The certificate that its client shows."),
        key("expect", Group(&EXPECT), "What is to become of it."),
    ],
};

/// The `client_cert` of a test.
pub(in crate::config::raw) const SAMPLE_CERTIFICATE: Shape = Shape {
    title: "in the `client_cert` of a test",
    path: "tests[].client_cert.",
    needs: &[],
    keys: &[
        key("subject", Word(BODY), "Its subject: `CN=robot`."),
        key("san", OneOrItems(&Word(BODY)), "Its other names: `r2.robots.example`."),
    ],
};

/// The `expect` of a test.
pub(in crate::config::raw) const EXPECT: Shape = Shape {
    title: "in `expect`",
    path: "tests[].expect.",
    needs: &[],
    keys: &[
        key("target", OneOrItems(&Word(NAME)), "It goes to this target, or to one of these."),
        key("route", Word(ROUTE_NAME), "It belongs to this route."),
        key("path", Text(SENT_PATH), "The backend gets this path."),
        key("headers", Conditions, "What holds for the header lines that the backend gets."),
        key(
            "status",
            WholeOr(100, 599, DROP),
            "It is answered here, with this status; `drop`: its connection is closed.",
        ),
        key(
            "auth",
            OrOff(&Word(NAME)),
            "Its client is asked who it is by this rule of `auth`; `off`: it is not asked.",
        ),
        key("location", Text(".+"), "The `Location` of that answer."),
    ],
};
