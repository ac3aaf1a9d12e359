//! How a target chooses a backend: its algorithm, what belongs to that, stickiness, and how much each backend gets.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::show::name_of;
use super::top_level::TopLevel;
use crate::config::effective::{EffectiveRows, number_of};
use crate::config::error::{Wrong, quoted};
use crate::config::model::{Balance, HashKey, OwnerMode, Policy, Portion, Protocol, Sticky};
use crate::config::origin::{Field, Origin, Spot, Written};
use crate::config::raw::{InFlight, RawBackend, RawSticky, RawTarget, Secret, strong};
use crate::config::report::Report;
use crate::config::units::show_duration;

/// Without a name the cookie is called like the program.
const COOKIE: &str = "evenkeel";
/// A key larger than this is another file.
const KEY_FILE_MAX: u64 = 64 * 1024;
/// How long a key is that nobody gave: as long as what SHA-256 gives.
const MADE_LENGTH: usize = 32;

/// How the target chooses.
pub(super) fn policy(
    raw: &RawTarget,
    protocol: Option<Protocol>,
    top: &TopLevel<'_>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Policy {
    let path = |key: &str| format!("targets.{}.{key}", raw.name.value);
    let written = match (&raw.policy.algorithm, &top.algorithm) {
        (Field::Given(written), _) | (Field::Absent, Field::Given(written)) => Some(written),
        (Field::Absent, Field::Absent) => None,
        // Nobody knows what would have an effect.
        (Field::Faulty, _) | (Field::Absent, Field::Faulty) => return Policy::default(),
    };
    let default = Policy { zone: top.zone.clone(), ..Policy::default() };
    let algorithm = rows.settle(path("balance"), written, default.algorithm, |balance| {
        name_of(Balance::ALL, *balance).to_owned()
    });
    // An algorithm that was tried by flag says nothing about the file.
    if !written.is_some_and(|written| matches!(written.spot.origin, Origin::Flag(_))) {
        refuse_idle(raw, algorithm, report);
    }
    let (mut hash_key, mut bounded_load) = (default.hash_key, default.bounded_load);
    if algorithm.is_hash() {
        refuse_http_hash(raw, protocol, report);
        hash_key = rows.settle(path("hash_key"), raw.policy.hash_key.as_ref(), hash_key, show_hash_key);
    }
    if algorithm == Balance::RingHash {
        let written = raw.policy.bounded_load.as_ref();
        bounded_load = rows.settle(path("bounded_load"), written, bounded_load, |bound| {
            bound.map_or_else(|| "off".to_owned(), |percent| format!("{percent}%"))
        });
    }
    let slow_start = raw.policy.slow_start.as_ref();
    let slow_start = rows.settle(path("slow_start"), slow_start, default.slow_start, |time| {
        if *time == Duration::ZERO { "off".to_owned() } else { show_duration(*time) }
    });
    let owner = rows.settle(path("owner"), raw.policy.owner.as_ref(), default.owner, |owner| {
        name_of(OwnerMode::ALL, *owner).to_owned()
    });
    refuse_ownerless(raw, algorithm, report);
    Policy { algorithm, hash_key, bounded_load, slow_start, owner, zone: default.zone }
}

/// Who prefers a backend that is never full never takes another one.
fn refuse_ownerless(raw: &RawTarget, algorithm: Balance, report: &mut Report) {
    let Some(written) = raw.policy.owner.as_ref().filter(|owner| owner.value == OwnerMode::Soft) else {
        return;
    };
    let limit = raw.resilience.max_in_flight.as_ref().and_then(|limit| limit.value.as_ref());
    if algorithm.is_hash() || algorithm == Balance::First {
        let message = format!(
            "`owner: soft` has no use with `balance: {}`: each node would choose among its own backends",
            name_of(Balance::ALL, algorithm)
        );
        report.spot(&written.spot, message).note("set `balance: least_connections`, or `owner: shared`");
    }
    if matches!(limit, Some(InFlight::Adaptive)) {
        let message = "`owner: soft` needs a number for `max_in_flight`: what each node finds out by itself says nothing of the others";
        report
            .spot(&written.spot, message)
            .note("set `max_in_flight` to how many requests a backend takes at once");
    } else if limit.is_none() {
        let message = format!(
            "`owner: soft` is for targets with `max_in_flight`, and {} has none",
            quoted(&raw.name.value)
        );
        report
            .spot(&written.spot, message)
            .note("a node takes other backends than its own when these are full: set `max_in_flight`, or `owner: shared`");
    }
}

/// A key without effect is a misunderstanding, so it is refused.
fn refuse_idle(raw: &RawTarget, algorithm: Balance, report: &mut Report) {
    let (target, balance) = (quoted(&raw.name.value), name_of(Balance::ALL, algorithm));
    let mut refuse = |key: &str, spot: &Spot, hint: &str| {
        let message = format!("`{key}` has no effect: the target {target} is balanced by {balance}");
        report.spot(spot, message).note(hint);
    };
    if let (false, Some(written)) = (algorithm.is_hash(), &raw.policy.hash_key) {
        refuse(
            "hash_key",
            &written.spot,
            "set `balance: maglev` or `balance: ring_hash`, or remove `hash_key`",
        );
    }
    if let (false, Some(written)) = (algorithm == Balance::RingHash, &raw.policy.bounded_load) {
        refuse("bounded_load", &written.spot, "set `balance: ring_hash`, or remove `bounded_load`");
    }
}

/// A TCP connection has no path, and neither has a flow.
fn refuse_http_hash(raw: &RawTarget, protocol: Option<Protocol>, report: &mut Report) {
    let Some(written) = &raw.policy.hash_key else { return };
    let Some(spoken) = protocol.filter(|protocol| *protocol != Protocol::Http) else { return };
    if written.value != HashKey::ClientIp {
        let message = format!(
            "`hash_key` is `{}`, which belongs to HTTP, but the target {} speaks {}",
            show_hash_key(&written.value),
            quoted(&raw.name.value),
            spoken.as_str()
        );
        report
            .spot(&written.spot, message)
            .expected("`client_ip`")
            .note("set `protocol: http`, or remove `hash_key`");
    }
}

fn show_hash_key(key: &HashKey) -> String {
    match key {
        HashKey::ClientIp | HashKey::Path | HashKey::Query => name_of(HashKey::NAMED, key.clone()).to_owned(),
        HashKey::Parameter(name) => format!("{{query: {name}}}"),
        HashKey::Header(name) => format!("{{header: {name}}}"),
        HashKey::Cookie(name) => format!("{{cookie: {name}}}"),
    }
}

/// The cookie that keeps a client on one backend. For HTTP only; that it is has been checked.
/// `of_cluster`: the key where nobody gives one, the same on all nodes.
pub(super) fn sticky(
    raw: &RawTarget,
    of_cluster: Option<&Arc<[u8]>>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Sticky> {
    let path = |key: &str| format!("targets.{}.sticky{key}", raw.name.value);
    let (sticky, origin) = match &raw.sticky {
        None => (None, Origin::Default),
        Some(written) => (written.value.as_ref(), written.spot.origin.clone()),
    };
    let Some(sticky) = sticky else {
        rows.note(path(""), "off", origin);
        return None;
    };
    let cookie = rows.settle(path(".cookie"), sticky.cookie.as_ref(), COOKIE.to_owned(), String::clone);
    let (key, is_fleeting) = match key(sticky, &path, report, rows)? {
        Some(key) => (key, false),
        None if let Some(key) = of_cluster => {
            rows.note(path(".key"), "made of the cluster's key", Origin::Default);
            (Arc::clone(key), false)
        }
        None => {
            rows.note(path(".key"), "made at the start, lasts until the restart", Origin::Default);
            (Arc::clone(made()), true)
        }
    };
    Some(Sticky { cookie, key, is_fleeting })
}

/// The key that is written; `None` outside: its fault has been reported, inside: there is none.
fn key(
    sticky: &RawSticky,
    path: &impl Fn(&str) -> String,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Option<Arc<[u8]>>> {
    match (&sticky.key, &sticky.key_file) {
        (Field::Given(Written { value: Secret(key), spot }), _) => {
            rows.note_secret(path(".key"), key, spot.origin.clone());
            Some(Some(Arc::clone(key)))
        }
        (Field::Absent, Field::Given(Written { value: file, spot })) => match key_in(file) {
            Ok(key) => {
                let content = number_of([&*key]);
                rows.note_file(path(".key_file"), file, spot.origin.clone(), Some(content));
                Some(Some(key))
            }
            Err(wrong) => {
                report.wrong(spot, "`key_file`", wrong);
                None
            }
        },
        (Field::Absent, Field::Absent) => Some(None),
        (Field::Faulty, _) | (Field::Absent, Field::Faulty) => None,
    }
}

/// The whole content of a file without the line end that editors put behind it.
pub(super) fn key_in(file: &Path) -> Result<Arc<[u8]>, Wrong> {
    const EXPECTED: &str = "a file that is a key of at least 16 bytes";
    let name = quoted(&file.display().to_string());
    let wrong = |why: String| Wrong::new(format!("is {name}, which {why}"), EXPECTED);
    let facts = std::fs::metadata(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => wrong("does not exist".to_owned())
            .note("a relative path counts from the folder of the config file"),
        _ => wrong(format!("can't be read: {error}")),
    })?;
    if !facts.is_file() {
        return Err(wrong("is no file".to_owned()));
    }
    if facts.len() > KEY_FILE_MAX {
        return Err(wrong(format!("is larger than {}KiB", KEY_FILE_MAX / 1024)));
    }
    let bytes = std::fs::read(file).map_err(|error| wrong(format!("can't be read: {error}")))?;
    let key = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let key = key.strip_suffix(b"\r").unwrap_or(key);
    strong(key).map_err(|short| Wrong { message: format!("is {name}, which {}", short.message), ..short })
}

/// The key of targets that have none: one for the whole process, so that loading a file again keeps its cookies.
/// What they stand for names the target, so no target takes another's.
fn made() -> &'static Arc<[u8]> {
    static MADE: OnceLock<Arc<[u8]>> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut key = [0; MADE_LENGTH];
        // There is no safe key without them, and no system that has none.
        aws_lc_rs::rand::fill(&mut key).expect("the system gives random bytes");
        Arc::from(key)
    })
}

/// How much the backend at `index` gets.
pub(super) fn portion(
    target: &str,
    index: usize,
    backend: &RawBackend,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Portion {
    let path = |key: &str| format!("targets.{target}.backends[{index}].{key}");
    let raw = &backend.portion;
    let weight = rows.settle(path("weight"), raw.weight.as_ref(), 1, ToString::to_string);
    let priority = match (&raw.backup, &raw.priority) {
        (Some(backup @ Written { value: true, .. }), priority) => {
            if let Some(priority) = priority {
                let later =
                    if priority.spot.place > backup.spot.place { &priority.spot } else { &backup.spot };
                report
                    .spot(later, "`backup` and `priority` in one backend")
                    .note("keep one of them; a backup comes behind every `priority`");
            }
            rows.note(path("backup"), "true", backup.spot.origin.clone());
            Portion::BACKUP
        }
        (_, priority) => {
            let number = rows.settle(path("priority"), priority.as_ref(), 0, ToString::to_string);
            u8::try_from(number).unwrap_or(Portion::BACKUP)
        }
    };
    if let Some(zone) = &raw.zone {
        rows.note(path("zone"), zone.value.to_string(), zone.spot.origin.clone());
    }
    Portion {
        weight: u16::try_from(weight).unwrap_or(Portion::WEIGHT_MAX),
        priority,
        zone: raw.zone.as_ref().map(|zone| Arc::clone(&zone.value)),
    }
}

/// Reports a target none of whose backends would get anything.
pub(super) fn refuse_all_idle(target: &str, backends: &[RawBackend], report: &mut Report) {
    let weight = |backend: &'_ RawBackend| backend.portion.weight.as_ref().map(|weight| weight.value);
    if backends.iter().any(|backend| weight(backend) != Some(0)) {
        return;
    }
    if let Some(first) = backends.first().and_then(|backend| backend.portion.weight.as_ref()) {
        report
            .spot(&first.spot, format!("all backends of the target {} have the weight 0", quoted(target)))
            .expected("at least one backend with a weight from 1 to 256");
    }
}
