//! What of an accepted config is to be told though nothing is wrong with it.

use std::time::{SystemTime, UNIX_EPOCH};

use super::tls::{Ending, ExpiredList, Identity, RevocationList};
use super::{BackendConfig, Config, ListenerConfig, TargetConfig};

impl ListenerConfig {
    /// Lists of revoked certificates that should have been renewed, and what they are worth by now.
    #[must_use]
    pub fn overdue_lists(&self, now: SystemTime) -> Vec<(&RevocationList, ExpiredList)> {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let clients = self.tls.as_ref().and_then(|tls| tls.clients.as_ref());
        let Some(revoked) = clients.and_then(|clients| clients.revoked.as_ref()) else { return Vec::new() };
        let end = |list: &RevocationList| list.next_update.map(|next| u64::try_from(next).unwrap_or(0));
        let overdue = revoked.newest().filter(|list| end(list).is_some_and(|end| end < now));
        overdue.map(|list| (list, revoked.expired)).collect()
    }
}

impl Config {
    /// Our own certificates that were read and are near their end, each with the listener or target that shows it, or `admin`: a night
    /// without sleep that can still be had by day.
    #[must_use]
    pub fn expiring(&self, now: SystemTime) -> Vec<(&str, &Identity, Ending)> {
        let to_clients = self.listeners.iter().flat_map(|listener| {
            let identities = listener.tls.iter().flat_map(|tls| &tls.identities);
            identities.map(|identity| (listener.name.as_str(), &**identity))
        });
        let to_backends = self.targets.iter().filter_map(|target| {
            // One target has one `upstream_tls`.
            let tls = target.backends.iter().find_map(|backend| backend.tls.as_ref())?;
            Some((target.name.as_str(), tls.identity.as_deref()?))
        });
        let to_admins =
            self.admin.iter().filter_map(|admin| admin.tls.as_ref()).flat_map(|tls| &tls.identities);
        let to_admins = to_admins.map(|identity| ("admin", &**identity));
        to_clients
            .chain(to_backends)
            .chain(to_admins)
            .filter_map(|(owner, identity)| Some((owner, identity, identity.ending(now)?)))
            .collect()
    }

    /// Certificates whose chain may not be what is meant, each with the listener that shows it, and why.
    pub fn doubtful_chains(&self) -> impl Iterator<Item = (&str, &Identity, &str)> {
        let all = self.listeners.iter().flat_map(|listener| {
            let identities = listener.tls.iter().flat_map(|tls| &tls.identities);
            identities.map(|identity| (listener.name.as_str(), &**identity))
        });
        all.filter_map(|(owner, identity)| Some((owner, identity, identity.facts.doubt.as_deref()?)))
    }

    /// Lists of revoked certificates that should have been renewed, each with the listener that asks it, and what it is worth by now.
    #[must_use]
    pub fn overdue_lists(&self, now: SystemTime) -> Vec<(&str, &RevocationList, ExpiredList)> {
        let all = self.listeners.iter().flat_map(|listener| {
            let overdue = listener.overdue_lists(now).into_iter();
            overdue.map(|(list, expired)| (listener.name.as_str(), list, expired))
        });
        all.collect()
    }

    /// Names of the targets that take any certificate from their backends.
    pub fn unverified(&self) -> impl Iterator<Item = &str> {
        let is_open = |backend: &BackendConfig| backend.tls.as_ref().is_some_and(|tls| tls.insecure);
        let open = self.targets.iter().filter(move |target| target.backends.iter().any(is_open));
        open.map(|target| target.name.as_str())
    }

    /// Names of the targets whose sticky cookies are made with a key that nobody gave: they last until the restart.
    pub fn fleeting(&self) -> impl Iterator<Item = &str> {
        let is_fleeting =
            |target: &&TargetConfig| target.sticky.as_ref().is_some_and(|sticky| sticky.is_fleeting);
        self.targets.iter().filter(is_fleeting).map(|target| target.name.as_str())
    }
}
