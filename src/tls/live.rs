//! Certificates that are ordered while the process serves, and what of each is shown now.
//!
//! Invariants:
//!
//! 1. There is something to be shown at any moment: a stand-in until an authority has issued the first, and from then on always one
//!    that was issued. What was issued gives way only to another one that was.
//! 2. Two configs that order the same certificate (names and key) share one object, as long as any of them is in use: a reload neither
//!    orders anew nor shows the stand-in again.
//! 3. Readers never wait: a handshake loads a pointer. Whoever writes is the one who orders, or the one who reads what was kept.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::SystemTime;

use arc_swap::ArcSwap;

use crate::config::model::tls::Identity;
use crate::config::model::tls::acme::OrderedCertificate;

/// One of them.
pub struct LiveCertificate {
    order: Arc<OrderedCertificate>,
    shown: ArcSwap<ShownNow>,
    news: Mutex<OrderNews>,
}

/// What is shown now.
#[derive(Clone, Debug)]
pub struct ShownNow {
    /// The certificate.
    pub identity: Arc<Identity>,
    /// An authority has issued it; otherwise it signs itself.
    pub is_issued: bool,
}

/// How it goes with the orders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderNews {
    /// An order is under way.
    pub is_busy: bool,
    /// When the next is due; `None`: nobody has said yet.
    pub next: Option<SystemTime>,
    /// Attempts in a row that have failed.
    pub failures: u32,
    /// Why the latest has; `None`: it has not.
    pub last_error: Option<String>,
}

impl fmt::Debug for LiveCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveCertificate").field("names", &self.order.names).finish_non_exhaustive()
    }
}

impl LiveCertificate {
    fn new(order: &Arc<OrderedCertificate>, kept: Option<Arc<Identity>>) -> LiveCertificate {
        let is_issued = kept.is_some();
        let identity = kept.unwrap_or_else(|| Arc::clone(&order.stand_in));
        LiveCertificate {
            order: Arc::clone(order),
            shown: ArcSwap::from_pointee(ShownNow { identity, is_issued }),
            news: Mutex::default(),
        }
    }

    /// What is ordered. How its names are proven may be another matter by now.
    #[must_use]
    pub fn order(&self) -> &Arc<OrderedCertificate> {
        &self.order
    }

    /// What is shown now.
    #[must_use]
    pub fn shown(&self) -> Arc<ShownNow> {
        self.shown.load_full()
    }

    /// Whether it should have been renewed by now: a third of its life before its end, and a tenth of it more. One that was never issued
    /// is overdue when its first order has failed.
    #[must_use]
    pub fn is_overdue(&self, now: SystemTime) -> bool {
        let shown = self.shown();
        if !shown.is_issued {
            return self.news().failures > 0;
        }
        let since = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let life = shown.identity.expires.saturating_sub(shown.identity.begins);
        let left = shown.identity.expires.saturating_sub(i64::try_from(since).unwrap_or(i64::MAX));
        // In thirtieths: 10 − 3.
        left < life * 7 / 30
    }

    /// From now on this is shown, which an authority has issued.
    pub fn issue(&self, identity: Arc<Identity>) {
        self.shown.store(Arc::new(ShownNow { identity, is_issued: true }));
    }

    /// How it goes.
    #[must_use]
    pub fn news(&self) -> OrderNews {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what is told of that.
    pub fn tell(&self, change: impl FnOnce(&mut OrderNews)) {
        change(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Finds what was issued before for a certificate.
pub type KeptCertificates = Box<dyn Fn(&OrderedCertificate) -> Option<Identity> + Send + Sync>;

/// All that configs in use order.
#[derive(Default)]
pub struct LiveCertificates {
    all: Mutex<Vec<Weak<LiveCertificate>>>,
    kept: OnceLock<KeptCertificates>,
}

impl fmt::Debug for LiveCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveCertificates").finish_non_exhaustive()
    }
}

impl LiveCertificates {
    /// From now on `kept` is asked for what was issued before. Only the first is.
    pub fn read_from(&self, kept: KeptCertificates) {
        let _ = self.kept.set(kept);
    }

    /// The one that is like `order`, which is made if there is none.
    #[must_use]
    pub fn get(&self, order: &Arc<OrderedCertificate>) -> Arc<LiveCertificate> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        let known = all.iter().filter_map(Weak::upgrade).find(|one| one.order.is_like(order));
        known.unwrap_or_else(|| {
            let kept = self.kept.get().and_then(|kept| kept(order));
            let made = Arc::new(LiveCertificate::new(order, kept.map(Arc::new)));
            all.push(Arc::downgrade(&made));
            made
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::tls::acme::{AcmeChallenge, OrderedKey};
    use crate::tls::fixtures::identity;

    fn order(name: &str, challenge: AcmeChallenge) -> Arc<OrderedCertificate> {
        let names = vec![name.to_owned()];
        let stand_in = Arc::new(identity(&["stand-in"]));
        Arc::new(OrderedCertificate { names, key: OrderedKey::default(), challenge, stand_in })
    }

    #[test]
    fn configs_share_what_they_order_and_what_was_kept_is_shown_at_once() {
        let live = LiveCertificates::default();
        let kept = |order: &OrderedCertificate| (order.names == ["b"]).then(|| identity(&["b"]));
        live.read_from(Box::new(kept));
        let first = live.get(&order("a", AcmeChallenge::Http01));
        let again = live.get(&order("a", AcmeChallenge::TlsAlpn01));
        assert!(Arc::ptr_eq(&first, &again), "how it is proven does not make it another one");
        assert!(!first.shown().is_issued && first.shown().identity.names == ["stand-in"]);
        let issued = Arc::new(identity(&["a"]));
        first.issue(Arc::clone(&issued));
        assert!(again.shown().is_issued && Arc::ptr_eq(&again.shown().identity, &issued));
        assert!(live.get(&order("b", AcmeChallenge::Http01)).shown().is_issued);
        drop((first, again));
        assert!(!live.get(&order("a", AcmeChallenge::Http01)).shown().is_issued, "nobody uses it any more");
    }
}
