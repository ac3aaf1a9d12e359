//! Tells of certificates and of lists of revoked ones that come to their end while the process runs.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::runtime::Runtime;

use crate::config::model::tls::{Ending, ExpiredList, Identity, RevocationList};
use crate::config::model::{AdminAccess, Config};
use crate::events;
use crate::lasting::again;
use crate::reload::Reloader;
use crate::snapshot::Snapshot;
use crate::tls::ServedCertificate;

/// From one look to the next: of a life of six hours a twentieth is eighteen minutes.
const LOOK: Duration = Duration::from_secs(600);

/// What was told of: whose it is, where it was read, when it ends, and how near that was.
type Told = HashSet<(String, PathBuf, i64, Near)>;

/// How near its end something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Near {
    /// A certificate that is ordered should have been renewed by now.
    Overdue,
    /// A certificate comes to its end.
    Ending(Ending),
    /// A list has.
    Over,
}

/// Tells of what is near its end when the process starts.
pub(super) fn warn(config: &Config) {
    let now = SystemTime::now();
    for (owner, identity, _) in config.expiring(now) {
        expires(owner, identity, now);
    }
    for (owner, list, expired) in config.overdue_lists(now) {
        overdue(owner, list, expired);
    }
}

fn expires(owner: &str, identity: &Identity, now: SystemTime) {
    let warning = if identity.ending(now) == Some(Ending::Twentieth) { 2 } else { 1 };
    events::certificate_expires(owner, &identity.file, identity.days_left(now), identity.expires, warning);
}

fn overdue(owner: &str, list: &RevocationList, expired: ExpiredList) {
    events::revocation_list_overdue(owner, &list.file, &list.issuer, expired == ExpiredList::Keep);
}

/// Goes on looking until the process ends. What is near its end at the start is told of there.
pub(super) fn watch(control: &Runtime, reloader: &Arc<Reloader>) {
    let (told, reloader) = (Arc::<Mutex<Told>>::default(), Arc::clone(reloader));
    let looks = async move || {
        let mut looks = tokio::time::interval(LOOK);
        let mut is_first = true;
        loop {
            looks.tick().await;
            if let Some(snapshot) = reloader.snapshots.current() {
                let admin = reloader.admin.borrow().clone();
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                look(&snapshot, admin.as_deref(), SystemTime::now(), &mut told, is_first);
            }
            is_first = false;
        }
    };
    control.spawn(again("what comes to its end", looks));
}

/// Tells of what has come near its end since the last look; gives how much that is. `is_known`: it was told of elsewhere.
fn look(
    snapshot: &Snapshot,
    admin: Option<&AdminAccess>,
    now: SystemTime,
    told: &mut Told,
    is_known: bool,
) -> usize {
    let (mut all, mut count) = (Told::new(), 0);
    let to_backends = snapshot.targets.iter().filter_map(|target| {
        // One target has one `upstream_tls`.
        let tls = target.config.backends.iter().find_map(|backend| backend.tls.as_ref())?;
        Some((&*target.name, tls.identity.as_deref()?))
    });
    let to_admins = admin.and_then(|admin| admin.tls.as_ref()).into_iter().flat_map(|tls| &tls.identities);
    for (owner, identity) in to_backends.chain(to_admins.map(|identity| ("admin", &**identity))) {
        let Some(ending) = identity.ending(now) else { continue };
        let one = (owner.to_owned(), identity.file.clone(), identity.expires, Near::Ending(ending));
        if !told.contains(&one) && !is_known {
            expires(owner, identity, now);
            count += 1;
        }
        all.insert(one);
    }
    for listener in &snapshot.listeners {
        let name = &listener.config.name;
        for certificate in listener.certificates() {
            let identity = certificate.identity();
            for near in nearness(certificate, &identity, now) {
                let one = (name.clone(), identity.file.clone(), identity.expires, near);
                // Of what is ordered nothing was told elsewhere.
                let is_known = is_known && matches!(certificate, ServedCertificate::Read(_));
                if !told.contains(&one) && !is_known {
                    match near {
                        Near::Overdue => {
                            let days = identity.days_left(now);
                            events::renewal_overdue(name, &identity.file, days, identity.expires);
                        }
                        Near::Ending(_) | Near::Over => expires(name, &identity, now),
                    }
                    count += 1;
                }
                all.insert(one);
            }
        }
        for (list, expired) in listener.config.overdue_lists(now) {
            let one = (name.clone(), list.file.clone(), list.next_update.unwrap_or_default(), Near::Over);
            if !told.contains(&one) && !is_known {
                overdue(name, list, expired);
                count += 1;
            }
            all.insert(one);
        }
    }
    // What has been renewed is told of anew when it ends.
    *told = all;
    count
}

/// What is to be told of a certificate now.
fn nearness(certificate: &ServedCertificate, identity: &Identity, now: SystemTime) -> Vec<Near> {
    let is_overdue = match certificate {
        ServedCertificate::Read(_) => false,
        // That there is none yet was told.
        ServedCertificate::Live(live) if !live.shown().is_issued => return Vec::new(),
        ServedCertificate::Live(live) => live.is_overdue(now),
    };
    let ending = identity.ending(now).map(Near::Ending);
    is_overdue.then_some(Near::Overdue).into_iter().chain(ending).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Flags, load_text};
    use crate::snapshot::Snapshots;

    #[test]
    fn what_ends_is_told_of_once_and_again_when_it_was_renewed() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = rcgen::KeyPair::generate().expect("a key");
        let snapshots = Snapshots::new();
        let draft = |days: u64| {
            let mut params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).expect("a name");
            params.not_before = SystemTime::now().into();
            params.not_after = (SystemTime::now() + Duration::from_secs(days * 86_400 + 60)).into();
            let certificate = params.self_signed(&key).expect("a certificate");
            let text = format!("{}{}", certificate.pem(), key.serialize_pem());
            std::fs::write(folder.path().join("a.pem"), text).expect("written");
            let text = "targets: {web: {protocol: https, listener: 1, tls: {cert_file: a.pem}, backends: [{host: a, port: 1}]}}";
            let loaded = load_text(text, "t.yaml", folder.path(), &Flags::default(), &|_| None);
            snapshots.prepare(&loaded.unwrap_or_else(|problems| panic!("{problems}")).config)
        };
        let mut told = Told::new();
        let now = SystemTime::now();
        let later = |days: u64| now + Duration::from_secs(days * 86_400);
        let first = draft(30);
        // Of 30 days six are a fifth, and one and a half a twentieth.
        let counts: Vec<usize> = [(0, true), (1, false), (23, false), (25, false), (26, false), (29, false)]
            .into_iter()
            .map(|(days, is_known)| look(first.snapshot(), None, later(days), &mut told, is_known))
            .collect();
        assert_eq!(counts, [0, 0, 0, 1, 0, 1]);
        let renewed = draft(90);
        let counts =
            [29, 71, 73, 80, 86].map(|days| look(renewed.snapshot(), None, later(days), &mut told, false));
        assert_eq!(counts, [0, 0, 1, 0, 1]);
        let known = draft(0);
        assert_eq!(look(known.snapshot(), None, now, &mut told, true), 0, "the start has told it");
    }
}
