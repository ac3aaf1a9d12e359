//! `cluster`: which processes act as one.

use std::path::PathBuf;
use std::time::Duration;

use super::instance;
use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::HttpUrl;
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::bounds::CLUSTER_LEASE;
use crate::config::raw::group::{items, there_already};
use crate::config::raw::reader::{Reader, found, subject};
use crate::config::raw::shape;
use crate::config::raw::tls::{RawIdentity, client_identity, pem_file};
use crate::config::raw::vocabulary::http_url::endpoint;
use crate::config::yaml::{Entry, Node, Typed};

const NAME_FORM: &str = "`name: prod`, what the cluster is called on each of its nodes";
const ENDPOINTS_FORM: &str = "URLs of members such as `https://10.0.0.1:2379`";
const PREFIX_FORM: &str = "a text such as `/evenkeel/prod`";
const FILE_FORM: &str = "the path of a file";

/// `cluster`.
#[derive(Debug)]
pub(in crate::config) struct RawCluster {
    pub(in crate::config) name: Field<String>,
    pub(in crate::config) node: Option<Written<String>>,
    pub(in crate::config) etcd: Option<RawEtcd>,
    pub(in crate::config) lease: Option<Written<Duration>>,
    pub(in crate::config) key_file: Option<Written<PathBuf>>,
}

/// `cluster.etcd`.
#[derive(Debug)]
pub(in crate::config) struct RawEtcd {
    /// Those that are right.
    pub(in crate::config) endpoints: Vec<Written<HttpUrl>>,
    pub(in crate::config) ca_file: Option<Written<PathBuf>>,
    pub(in crate::config) identity: RawIdentity,
    pub(in crate::config) prefix: Option<Written<String>>,
}

/// Walks it.
pub(in crate::config::raw) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawCluster> {
    let spot = reader.key_spot(entry);
    let section = reader.section("`cluster`", &entry.node, &shape::CLUSTER)?;
    let name = match section.find("name") {
        Some(entry) => Field::read(reader.word(entry, instance::NAME_FORM, instance::name)),
        None if section.is_misspelt("name") => Field::Faulty,
        None => {
            reader.report.spot(&spot, "`cluster` has no `name`").expected(NAME_FORM);
            Field::Faulty
        }
    };
    let node = section.find("node").and_then(|entry| reader.word(entry, instance::NAME_FORM, instance::name));
    let lease =
        section.find("lease").and_then(|entry| reader.duration(entry, CLUSTER_LEASE.0..=CLUSTER_LEASE.1));
    let key_file = section.find("secrets_key_file").and_then(|entry| {
        let read = reader.word(entry, FILE_FORM, |text| some(text, FILE_FORM))?;
        Some(Written::new(reader.read_path(&read.value, PathUse::ClusterKey, &read.spot), read.spot))
    });
    let etcd = section.find("etcd").and_then(|entry| etcd(entry, reader));
    Some(RawCluster { name, node, etcd, lease, key_file })
}

fn etcd(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawEtcd> {
    let spot = reader.key_spot(entry);
    let section = reader.section("`cluster.etcd`", &entry.node, &shape::ETCD)?;
    let endpoints = match section.find("endpoints") {
        Some(entry) => endpoints(entry, reader),
        None => {
            if !section.is_misspelt("endpoints") {
                let expected = format!("`endpoints`: {ENDPOINTS_FORM}");
                reader.report.spot(&spot, "`etcd` has no `endpoints`").expected(expected);
            }
            Vec::new()
        }
    };
    let ca_file = section.find("ca_file").and_then(|entry| pem_file(entry, PathUse::Certificates, reader));
    let identity = client_identity(&section, spot, reader);
    let prefix = section.find("prefix").and_then(|entry| reader.parsed(entry, PREFIX_FORM, prefix));
    Some(RawEtcd { endpoints, ca_file, identity, prefix })
}

fn endpoints(entry: &Entry, reader: &mut Reader<'_>) -> Vec<Written<HttpUrl>> {
    let mut all: Vec<Written<HttpUrl>> = Vec::new();
    for item in items(entry, reader, ENDPOINTS_FORM).unwrap_or_default() {
        // A URL may have a password.
        reader.report.hide(item.place);
        let spot = spot_of(entry, item, reader);
        let wrong = match (item.typed(), item.text()) {
            (Typed::Text(_), Some(text)) => match endpoint(text, ENDPOINTS_FORM) {
                Ok(url) if all.iter().any(|other| other.value == url) => there_already(item, text),
                Ok(url) => {
                    all.push(Written::new(url, spot));
                    continue;
                }
                Err(wrong) => wrong,
            },
            _ => Wrong::new(found(item), ENDPOINTS_FORM),
        };
        reader.report.wrong(&spot, &subject(&entry.key), wrong);
    }
    all
}

fn spot_of(entry: &Entry, item: &Node, reader: &Reader<'_>) -> Spot {
    if item.is_null() { reader.spot(entry) } else { reader.spot_of(item) }
}

fn prefix(text: &str) -> Result<String, Wrong> {
    let wrong = |why: String| Wrong::new(why, PREFIX_FORM);
    let whole = text.trim_end_matches('/');
    if !text.starts_with('/') {
        return Err(wrong(format!("is {}, which does not begin with `/`", quoted(text))));
    }
    if whole.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) || text.len() > 200 {
        return Err(wrong(format!("is {}", quoted(text))));
    }
    Ok(whole.to_owned())
}

fn some(text: &str, form: &str) -> Result<String, Wrong> {
    if text.is_empty() { Err(Wrong::new("is empty", form)) } else { Ok(text.to_owned()) }
}
