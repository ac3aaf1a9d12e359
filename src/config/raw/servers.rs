//! GoLoadBalance's `servers`, and the one target that they and `--backends` stand for.

use super::address::RawListener;
use super::backend::{RawBackend, backend_url};
use super::group::list;
use super::reader::{Reader, found};
use super::target::RawTarget;
use super::vocabulary::spoken::Spoken;
use crate::config::error::Wrong;
use crate::config::files::fence::PathUse;
use crate::config::model::BackendAddress;
use crate::config::origin::{Field, Spot, Written};
use crate::config::yaml::{Entry, Typed};

/// Walks GoLoadBalance's `servers`: a list of URLs.
pub(super) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> RawTarget {
    let spot = reader.key_spot(entry);
    let Some(items) = list(entry, reader, "a list of URLs such as `[http://127.0.0.1:8001]`") else {
        return default_target(spot, Field::Faulty);
    };
    let mut backends = Vec::with_capacity(items.len());
    for item in items {
        let spot = reader.spot_of(item);
        let Typed::Text(text) = item.typed() else {
            let wrong = Wrong::new(found(item), "a URL such as `http://127.0.0.1:8001`");
            reader.report.wrong(&spot, "an entry of `servers`", wrong);
            continue;
        };
        match backend_url(text, "http") {
            Ok(mut place) => {
                let used = reader.spot_of_use(item);
                if let BackendAddress::Unix(path) = &mut place.address {
                    *path = reader.path(&path.to_string_lossy(), PathUse::BackendSocket, &used);
                }
                backends.push(RawBackend::at(Written::new(place, used)));
            }
            Err(wrong) => reader.report.wrong(&spot, "an entry of `servers`", wrong),
        }
    }
    let faulty = backends.len() < items.len();
    let backends = if faulty { Field::Faulty } else { Field::Given(Written::new(backends, spot.clone())) };
    default_target(spot, backends)
}

/// The target that `servers` or `--backends` stand for.
pub(in crate::config) fn default_target(spot: Spot, backends: Field<Vec<RawBackend>>) -> RawTarget {
    let mut target = RawTarget::empty(Written::new("default".to_owned(), spot));
    target.protocol = Field::Given(Written::new(Spoken::HTTP, Spot::NOWHERE));
    let port = Written::new(RawListener::Port(DEFAULT_PORT), Spot::NOWHERE);
    target.listener = Field::Given(Written::new(vec![port], Spot::NOWHERE));
    target.backends = backends;
    target
}

/// Where the target `default` listens.
const DEFAULT_PORT: u16 = 3030;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::files::fence::PathUse;
    use crate::config::{Flags, load_text};

    #[test]
    fn a_socket_counts_from_the_folder_and_is_one_that_the_config_names() {
        let text = "servers: [\"unix:a.sock\", \"unix:/run/b.sock\"]";
        let loaded = load_text(text, "t.yaml", Path::new("/etc/e"), &Flags::default(), &|_| None);
        let loaded = loaded.expect("valid");
        let backends = loaded.config.targets[0].backends.iter();
        let addresses: Vec<String> = backends.map(|backend| backend.address.to_string()).collect();
        assert_eq!(addresses, ["unix:/etc/e/a.sock", "unix:/run/b.sock"]);
        let named = ["/etc/e/a.sock", "/run/b.sock"].map(|path| (PathUse::BackendSocket, path.into()));
        assert_eq!(loaded.named, named.into());
    }
}
