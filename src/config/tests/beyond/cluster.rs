//! `cluster`.

use std::io::Write as _;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::json;

use super::super::certificates::Certs;
use super::super::every_key::Check;
use super::*;
use crate::config::model::{ClusterConfig, EtcdConfig};

fn with(keys: &str) -> String {
    format!("cluster: {{name: prod{keys}}}\n{WEB}")
}

fn etcd(keys: &str) -> String {
    with(&format!(", etcd: {{endpoints: 'https://10.0.0.1'{keys}}}"))
}

/// Values that keys of this take.
pub(in crate::config::tests) fn values() -> [serde_json::Value; 4] {
    [json!({ "name": "prod" }), json!({ "endpoints": "http://a:1" }), json!("https://a"), json!("/lb")]
}

/// What has to be there beside the key at `path`.
pub(in crate::config::tests) fn set_up(path: &str, web: &mut serde_json::Value) {
    if path.starts_with("cluster.") {
        web["cluster"] = json!({ "name": "prod" });
    }
    if path.starts_with("cluster.etcd.") {
        web["cluster"]["etcd"] = json!({ "endpoints": "https://a" });
    }
    if path == "cluster.etcd.client_key" {
        web["cluster"]["etcd"]["client_cert"] = Certs::shared().path("both.pem").into();
    }
}

fn cluster(config: &Config) -> Option<&ClusterConfig> {
    config.cluster.as_deref()
}

fn store(config: &Config) -> Option<&EtcdConfig> {
    cluster(config)?.etcd.as_ref()
}

/// A file of random bytes, the last of which an editor would take away.
fn key_file() -> &'static str {
    static FILE: LazyLock<tempfile::NamedTempFile> = LazyLock::new(|| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[[7; 31].as_slice(), b" "].concat()).unwrap();
        file
    });
    FILE.path().to_str().unwrap()
}

/// Keys of this, each with a text in which it stands and what it changes.
pub(in crate::config::tests) fn rows() -> Vec<(&'static str, String, Check)> {
    let certs = Certs::shared();
    let (cert, key) = (certs.path("a.pem"), certs.path("a.key"));
    let identity = format!(", client_cert: {cert}, client_key: {key}");
    let has_identity: Check = |c| store(c).is_some_and(|store| store.identity.is_some());
    vec![
        ("cluster", with(""), |c| cluster(c).is_some()),
        ("cluster.name", with(""), |c| cluster(c).is_some_and(|cluster| cluster.name == "prod")),
        ("cluster.node", with(", node: lb-1"), |c| {
            cluster(c).is_some_and(|cluster| cluster.node.as_deref() == Some("lb-1"))
        }),
        ("cluster.lease", with(", lease: 5s"), |c| {
            cluster(c).is_some_and(|cluster| cluster.lease == Duration::from_secs(5))
        }),
        ("cluster.secrets_key_file", with(&format!(", secrets_key_file: {}", key_file())), |c| {
            cluster(c).is_some_and(|cluster| cluster.key.is_some())
        }),
        ("cluster.etcd", etcd(""), |c| store(c).is_some()),
        ("cluster.etcd.endpoints", with(", etcd: {endpoints: ['http://a:1', 'https://b']}"), |c| {
            let at = |store: &EtcdConfig| -> Vec<(bool, u16)> {
                store.endpoints.iter().map(|url| (url.is_tls, url.port)).collect()
            };
            store(c).is_some_and(|store| at(store) == [(false, 1), (true, 2379)])
        }),
        ("cluster.etcd.ca_file", etcd(&format!(", ca_file: {cert}")), |c| {
            store(c).is_some_and(|store| store.authorities.is_some())
        }),
        ("cluster.etcd.client_cert", etcd(&identity), has_identity),
        ("cluster.etcd.client_key", etcd(&identity), has_identity),
        ("cluster.etcd.prefix", etcd(", prefix: /lb/a/"), |c| {
            store(c).is_some_and(|store| store.prefix == "/lb/a")
        }),
    ]
}

#[test]
fn what_is_kept_in_etcd_begins_with_the_name_of_the_cluster() {
    let loaded = config(&etcd(""));
    assert_eq!(store(&loaded).map(|store| store.prefix.as_str()), Some("/evenkeel/prod"));
    assert_eq!(cluster(&loaded).map(|cluster| cluster.lease), Some(Duration::from_secs(10)));
    assert_eq!(config(WEB).cluster, None);
}

#[test]
fn what_is_wrong_with_a_cluster_is_told_where_it_stands() {
    let short = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(short.path(), "secret\n").unwrap();
    let of_etcd = |keys: &str| with(&format!(", etcd: {{{keys}}}"));
    for (text, wanted) in [
        (format!("cluster: on\n{WEB}"), "`cluster` is `on`"),
        (format!("cluster: {{node: a}}\n{WEB}"), "`cluster` has no `name`"),
        (format!("cluster: {{name: a/b}}\n{WEB}"), "`name` is `a/b`, which names no file"),
        (with(", lease: 2s"), "`lease` is 2s, which is too small"),
        (with(", lease: 3500ms"), "`lease` is 3500ms, and etcd counts in whole seconds"),
        (with(&format!(", secrets_key_file: {}", short.path().display())), "which has 6 bytes"),
        (with(", etcd: {}"), "`etcd` has no `endpoints`"),
        (of_etcd("endpoints: []"), "`endpoints` is an empty list"),
        (of_etcd("endpoints: [1]"), "`endpoints` is the number `1`"),
        (of_etcd("endpoints: '10.0.0.1:2379'"), "`endpoints` has no scheme"),
        (of_etcd("endpoints: 'http://me:hush@a'"), "`endpoints` has a user"),
        (of_etcd("endpoints: 'http://a/b'"), "`endpoints` has a path"),
        (of_etcd("endpoints: ['http://a', 'http://a:2379']"), "which is there already"),
        (of_etcd("endpoints: 'http://a', ca_file: no.pem"), "`ca_file` has no effect"),
        (
            of_etcd("endpoints: 'https://a', client_key: no.pem"),
            "there is a `client_key` and no `client_cert`",
        ),
        (of_etcd("endpoints: 'http://a', prefix: lb"), "`prefix` is `lb`, which does not begin with `/`"),
        (of_etcd("endpoints: 'http://a', prefix: '/'"), "`prefix` is `/`"),
        (with(", etcdd: {}"), "unknown key `etcdd`"),
    ] {
        let said = messages(&text, &Flags::default());
        assert!(said.iter().any(|message| message.contains(wanted)), "{text}{said:#?}");
        assert!(!said.iter().any(|message| message.contains("hush")), "{said:#?}");
    }
}
