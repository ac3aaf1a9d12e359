//! `cluster`: reads the files that it names.

use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};

use crate::config::effective::{EffectiveRows, number_of};
use crate::config::error::{Wrong, quoted};
use crate::config::files::whole;
use crate::config::model::{ClusterConfig, ClusterKey, EtcdConfig};
use crate::config::origin::{Field, Origin};
use crate::config::raw::{RawCluster, RawEtcd};
use crate::config::report::Report;
use crate::config::units::show_duration;
use crate::config::validate::tls::{authorities, client_identity};

const KEY_FORM: &str = "a file of 32 random bytes or more, such as `head -c 32 /dev/urandom` makes";
/// In MiB.
const KEY_FILE_MAX: u64 = 1;

/// Makes it; `None`: this process stands alone.
pub(in crate::config::validate) fn accept(
    raw: Option<&RawCluster>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Arc<ClusterConfig>> {
    let Some(raw) = raw else {
        rows.note("cluster", "none", Origin::Default);
        return None;
    };
    let Field::Given(name) = &raw.name else { return None };
    rows.note("cluster.name", name.value.clone(), name.spot.origin.clone());
    let node = raw.node.as_ref().map(|node| node.value.clone());
    match &raw.node {
        Some(node) => rows.note("cluster.node", node.value.clone(), node.spot.origin.clone()),
        None => rows.note("cluster.node", "the name of this host", Origin::Default),
    }
    let etcd = match &raw.etcd {
        Some(raw) => Some(etcd(raw, &name.value, report, rows)?),
        None => {
            rows.note("cluster.etcd", "none: a cluster of one, in `state_dir`", Origin::Default);
            None
        }
    };
    let lease =
        rows.settle("cluster.lease", raw.lease.as_ref(), ClusterConfig::LEASE, |time| show_duration(*time));
    if let Some(written) = raw.lease.as_ref().filter(|lease| lease.value.subsec_nanos() > 0) {
        let message = format!("`lease` is {}, and etcd counts in whole seconds", show_duration(lease));
        report.spot(&written.spot, message).expected("whole seconds, such as `10s`");
    }
    let key = match &raw.key_file {
        None => {
            rows.note("cluster.secrets_key_file", "none: nothing secret is shared", Origin::Default);
            None
        }
        Some(file) => match key(&file.value) {
            Ok(key) => {
                let content = number_of([&key.0[..]]);
                let path = "cluster.secrets_key_file".to_owned();
                rows.note_file(path, &file.value, file.spot.origin.clone(), Some(content));
                Some(Arc::new(key))
            }
            Err(wrong) => {
                report.wrong(&file.spot, "`secrets_key_file`", wrong);
                None
            }
        },
    };
    Some(Arc::new(ClusterConfig { name: name.value.clone(), node, etcd, lease, key }))
}

fn etcd(raw: &RawEtcd, name: &str, report: &mut Report, rows: &mut EffectiveRows) -> Option<EtcdConfig> {
    let first = raw.endpoints.first()?;
    let shown: Vec<String> = raw.endpoints.iter().map(|url| url.value.to_string()).collect();
    rows.note("cluster.etcd.endpoints", format!("[{}]", shown.join(", ")), first.spot.origin.clone());
    let has_tls = raw.endpoints.iter().any(|url| url.value.is_tls);
    for (key, spot) in [
        ("ca_file", raw.ca_file.as_ref().map(|file| &file.spot)),
        ("client_cert", raw.identity.is_written().then_some(&raw.identity.spot)),
    ] {
        if let (Some(spot), false) = (spot, has_tls) {
            let message = format!("`{key}` has no effect, because no endpoint is https");
            report.spot(spot, message).note(format!("write `https://`, or remove `{key}`"));
        }
    }
    let authorities = match &raw.ca_file {
        Some(file) => authorities(file, "`ca_file`", report, rows, "cluster.etcd.ca_file".to_owned()),
        None => {
            rows.note("cluster.etcd.ca_file", "the system's", Origin::Default);
            None
        }
    };
    let identity = if raw.identity.is_written() {
        client_identity(&raw.identity, report, rows, "cluster.etcd.")
    } else {
        rows.note("cluster.etcd.client_cert", "none", Origin::Default);
        rows.note("cluster.etcd.client_key", "none", Origin::Default);
        None
    };
    let prefix =
        rows.settle("cluster.etcd.prefix", raw.prefix.as_ref(), format!("/evenkeel/{name}"), |prefix| {
            prefix.clone()
        });
    let endpoints = raw.endpoints.iter().map(|url| url.value.clone()).collect();
    Some(EtcdConfig { endpoints, authorities, identity, prefix })
}

/// Of a file with enough in it. A line end behind it does not count, since editors add one.
fn key(file: &Path) -> Result<ClusterKey, Wrong> {
    let bytes = whole::bytes(file, KEY_FILE_MAX, KEY_FORM)?;
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    if bytes.len() < ClusterKey::LENGTH {
        let name = quoted(&file.display().to_string());
        let message = format!("is {name}, which has {} bytes", bytes.len());
        return Err(Wrong::new(message, KEY_FORM));
    }
    let mut key = [0; ClusterKey::LENGTH];
    key.copy_from_slice(digest(&SHA256, bytes).as_ref());
    Ok(ClusterKey(key))
}
