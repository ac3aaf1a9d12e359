//! `proxy_protocol` of listeners and `send_proxy` of targets.

use serde_json::json;

use super::every_key::{Check, target};
use super::listeners::{front, of};
use super::*;
use crate::config::model::{ProxySenders, SendProxy};

/// Values that keys of this take.
pub(super) fn values() -> [serde_json::Value; 3] {
    [json!({ "from": "10.0.0.0/8" }), json!("unix"), json!("v2")]
}

fn senders(config: &Config) -> Option<&ProxySenders> {
    of(config).proxy_protocol.as_deref()
}

/// Keys of this, each with a text in which it stands and what it changes.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    let mut rows = Vec::new();
    for (path, text) in [
        ("listeners.<name>.proxy_protocol", front as fn(&str) -> String),
        ("targets.<name>.proxy_protocol", target),
    ] {
        let of_keys: [(&str, &str, Check); 3] = [
            ("", "{from: 10.0.0.0/8}", |c| senders(c).is_some_and(|senders| senders.required)),
            (".from", "{from: [10.0.0.7, unix]}", |c| {
                let network = "10.0.0.7/32".parse().unwrap();
                senders(c).is_some_and(|senders| senders.from == [network] && senders.from_unix)
            }),
            (".required", "{from: 10.0.0.0/8, required: false}", |c| {
                senders(c).is_some_and(|senders| !senders.required)
            }),
        ];
        rows.extend(of_keys.map(|(key, value, check)| {
            (&*format!("{path}{key}").leak(), text(&format!("proxy_protocol: {value}")), check)
        }));
    }
    let v2: Check = |c| c.targets[0].send_proxy == Some(SendProxy::V2);
    rows.push(("targets.<name>.send_proxy", target("send_proxy: V2"), v2));
    rows
}

#[test]
fn both_are_off_unless_somebody_says_otherwise() {
    for text in [
        target("x_real_ip: false"),
        target("proxy_protocol: off, send_proxy: no"),
        target("send_proxy: false"),
    ] {
        let config = config(&text);
        assert_eq!((senders(&config), config.targets[0].send_proxy), (None, None), "{text}");
    }
    let v1 = config(&target("send_proxy: v1"));
    assert_eq!(v1.targets[0].send_proxy, Some(SendProxy::V1));
}

#[test]
fn what_is_wrong_is_told_where_it_stands() {
    let listener = |keys: &str| front(&format!("proxy_protocol: {keys}"));
    let tcp = |keys: &str| {
        format!(
            "targets: {{mail: {{listener: 25, proxy_protocol: {keys}, backends: [{{host: a, port: 1}}]}}}}"
        )
    };
    for (text, wanted) in [
        (listener("on"), "`proxy_protocol` is `on`"),
        (listener("{}"), "`proxy_protocol` has no `from`"),
        (listener("{required: true}"), "`proxy_protocol` has no `from`"),
        (listener("{from: []}"), "`from` is an empty list"),
        (
            listener("{from: lb.internal}"),
            "`from` is `lb.internal`, which is neither an IP address nor a network",
        ),
        (listener("{from: 10.0.0.1/8}"), "`from` is `10.0.0.1/8`, an address inside a network"),
        (listener("{from: [10.0.0.0/8, 10.0.0.0/8]}"), "`from` is `10.0.0.0/8`, which is there already"),
        (listener("{from: [unix, unix, 1.2.3.4]}"), "`from` is `unix`, which is there already"),
        (listener("{from: {a: b}}"), "`from` is a mapping"),
        (listener("{from: unix}"), "nobody of these could connect to the listener `front`"),
        (listener("{from: 10.0.0.0/8, required: perhaps}"), "`required` is the text `perhaps`"),
        (listener("{from: 10.0.0.0/8, require: true}"), "unknown key `require` in `proxy_protocol`"),
        (listener("{form: 10.0.0.0/8}"), "unknown key `form` in `proxy_protocol`"),
        (tcp("{from: 10.0.0.0/8, required: false}"), "the server may speak first"),
        (target("send_proxy: v3"), "`send_proxy` is `v3`"),
        (target("send_proxy: on"), "`send_proxy` is `on`"),
        (front("send_proxy: v1"), "`send_proxy`"),
        (
            front("x_real_ip: on").replace("{web: {", "{web: {proxy_protocol: {from: 10.0.0.0/8}, "),
            "`proxy_protocol` belongs to a listener, and the target `web` has none",
        ),
    ] {
        let said = messages(&text, &Flags::default());
        assert!(said.iter().any(|message| message.contains(wanted)), "{text}: {said:#?}");
        assert_eq!(said.len(), 1, "{text}: {said:#?}");
    }
    config(&tcp("{from: 10.0.0.0/8}"));
    // Where a header is waited for it can be said for how long, also where no HTTP is spoken.
    let patient = tcp("{from: 10.0.0.0/8}, timeouts: {head: 3s}");
    assert_eq!(of(&config(&patient)).client_timeouts.head, std::time::Duration::from_secs(3));
    let said = messages(&tcp("off, timeouts: {head: 3s}"), &Flags::default());
    assert!(said.len() == 1 && said[0].contains("`head` belongs to HTTP"), "{said:#?}");
}
