//! Certificates that are ordered while the process serves, and what of each is shown now.
//!
//! Invariants:
//!
//! 1. There is something to be shown at any moment: until an authority has issued the first, what it has issued before for some of the names
//!    to whoever asks for one of these, and a stand-in to everybody else; and from then on always one that was issued. What was issued gives
//!    way only to another one that was.
//! 2. Two configs that order the same certificate (names and key) share one object, as long as any of them is in use: a reload neither
//!    orders anew nor shows the stand-in again.
//! 3. Readers never wait: a handshake loads a pointer. Whoever writes is the one who orders, or the one who reads what was kept.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;

use crate::config::model::tls::Identity;
use crate::config::model::tls::acme::OrderedCertificate;

/// One of them.
pub struct LiveCertificate {
    order: Arc<OrderedCertificate>,
    /// Others that were issued for some of the names.
    near: Vec<Arc<Identity>>,
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
    /// When what is shown is to be renewed, whether that works or not; `None`: nobody has said yet.
    pub renewal: Option<SystemTime>,
    /// The node that orders it; `None`: this one, or nobody now.
    pub by: Option<String>,
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
    fn new(
        order: &Arc<OrderedCertificate>,
        kept: Option<Arc<Identity>>,
        near: Vec<Arc<Identity>>,
    ) -> LiveCertificate {
        let is_issued = kept.is_some();
        let identity = kept.unwrap_or_else(|| Arc::clone(&order.stand_in));
        LiveCertificate {
            order: Arc::clone(order),
            near,
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

    /// What a client is shown now that asks for this name (`None`: for none).
    #[must_use]
    pub fn shown_to(&self, name: Option<&str>) -> Arc<Identity> {
        let shown = self.shown.load();
        let near = || self.near.iter().find(|identity| name.is_some_and(|name| identity.is_for(name)));
        let identity = if shown.is_issued { None } else { near() };
        Arc::clone(identity.unwrap_or(&shown.identity))
    }

    /// Whether it should have been renewed by now: when it was to be, and a tenth of its life more. One that was never issued is overdue
    /// when its first order has failed.
    #[must_use]
    pub fn is_overdue(&self, now: SystemTime) -> bool {
        let (shown, news) = (self.shown(), self.news());
        if !shown.is_issued {
            return news.failures > 0;
        }
        let seconds = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let life = shown.identity.expires.saturating_sub(shown.identity.begins);
        // Where nobody orders anything: a third of its life before its end.
        let usual = || SystemTime::UNIX_EPOCH + seconds(shown.identity.expires.saturating_sub(life / 3));
        now > news.renewal.unwrap_or_else(usual) + seconds(life / 10)
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

/// What was issued before.
pub trait KeptCertificates: Send + Sync {
    /// This very certificate; it may have ended.
    fn same(&self, order: &OrderedCertificate) -> Option<Identity>;

    /// Others that are in force, for some of its names.
    fn near(&self, order: &OrderedCertificate) -> Vec<Arc<Identity>>;
}

/// All that configs in use order.
#[derive(Default)]
pub struct LiveCertificates {
    all: Mutex<Vec<Weak<LiveCertificate>>>,
    kept: OnceLock<Box<dyn KeptCertificates>>,
}

impl fmt::Debug for LiveCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveCertificates").finish_non_exhaustive()
    }
}

impl LiveCertificates {
    /// From now on `kept` is asked for what was issued before. Only the first is.
    pub fn read_from(&self, kept: Box<dyn KeptCertificates>) {
        let _ = self.kept.set(kept);
    }

    /// What was issued for some of the names: shown by others, or kept.
    fn near(&self, order: &OrderedCertificate, all: &[Weak<LiveCertificate>]) -> Vec<Arc<Identity>> {
        let shown = all.iter().filter_map(Weak::upgrade).map(|other| other.shown());
        let shown = shown.filter(|shown| shown.is_issued).map(|shown| Arc::clone(&shown.identity));
        let kept = self.kept.get().map(|kept| kept.near(order)).unwrap_or_default();
        let is_near = |one: &Arc<Identity>| order.names.iter().any(|name| one.is_for(name));
        shown.chain(kept).filter(is_near).collect()
    }

    /// The one that is like `order`, which is made if there is none.
    #[must_use]
    pub fn get(&self, order: &Arc<OrderedCertificate>) -> Arc<LiveCertificate> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        let known = all.iter().filter_map(Weak::upgrade).find(|one| one.order.is_like(order));
        known.unwrap_or_else(|| {
            let kept = self.kept.get().and_then(|kept| kept.same(order));
            let near = if kept.is_some() { Vec::new() } else { self.near(order, &all) };
            let made = Arc::new(LiveCertificate::new(order, kept.map(Arc::new), near));
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

    /// Keeps one certificate.
    struct OnlyB;

    impl KeptCertificates for OnlyB {
        fn same(&self, order: &OrderedCertificate) -> Option<Identity> {
            (order.names == ["b"]).then(|| identity(&["b"]))
        }

        fn near(&self, _: &OrderedCertificate) -> Vec<Arc<Identity>> {
            Vec::new()
        }
    }

    #[test]
    fn a_renewal_is_overdue_a_tenth_of_the_life_behind_its_moment() {
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let live = LiveCertificates::default().get(&order("a", AcmeChallenge::Http01));
        assert!(!live.is_overdue(at(1)));
        live.tell(|news| news.failures = 1);
        assert!(live.is_overdue(at(1)), "there is none, and the first order has failed");
        live.issue(Arc::new(Identity { begins: 0, expires: 900, ..identity(&["a"]) }));
        assert!(!live.is_overdue(at(690)) && live.is_overdue(at(691)));
        live.tell(|news| news.renewal = Some(at(100)));
        assert!(!live.is_overdue(at(190)) && live.is_overdue(at(191)), "as the authority has said");
    }

    #[test]
    fn configs_share_what_they_order_and_what_was_kept_is_shown_at_once() {
        let live = LiveCertificates::default();
        live.read_from(Box::new(OnlyB));
        let first = live.get(&order("a", AcmeChallenge::Http01));
        let again = live.get(&order("a", AcmeChallenge::TlsAlpn01));
        assert!(Arc::ptr_eq(&first, &again), "how it is proven does not make it another one");
        assert!(!first.shown().is_issued && first.shown().identity.names == ["stand-in"]);
        let issued = Arc::new(identity(&["a"]));
        first.issue(Arc::clone(&issued));
        assert!(again.shown().is_issued && Arc::ptr_eq(&again.shown().identity, &issued));
        assert!(live.get(&order("b", AcmeChallenge::Http01)).shown().is_issued);
        // Another one that is for it, too, shows what there is until it has its own.
        let names = vec!["new".to_owned(), "a".to_owned()];
        let more = live.get(&Arc::new(OrderedCertificate {
            names,
            ..OrderedCertificate::clone(&order("a", AcmeChallenge::Http01))
        }));
        assert!(Arc::ptr_eq(&more.shown_to(Some("a")), &issued) && !more.shown().is_issued);
        for name in [Some("new"), None] {
            assert_eq!(more.shown_to(name).names, ["stand-in"], "{name:?}");
        }
        more.issue(Arc::new(identity(&["new", "a"])));
        assert_eq!(more.shown_to(Some("a")).names, ["new", "a"]);
        drop(more);
        drop((first, again));
        assert!(!live.get(&order("a", AcmeChallenge::Http01)).shown().is_issued, "nobody uses it any more");
    }
}
