//! Memory of answers that one worker has lately sent from the store: see `recent`.

use std::rc::Rc;

use crate::cache::store::Recalled;
use crate::message::Head;
use crate::proxy::http::routing::recently_found::RecentlyFound;
use crate::tick::Tick;

/// Answers that one worker has lately sent from the store.
#[derive(Debug, Default)]
pub struct RecentAnswers(pub RecentlyFound<RecentAnswer, 512>);

/// One of them.
#[derive(Debug, Default)]
pub struct RecentAnswer {
    /// Its head.
    pub head: Rc<Head>,
    /// How it is found again; `None`: not at all.
    pub facts: Option<Recallable>,
}

/// How an answer is found again.
#[derive(Debug)]
pub struct Recallable {
    /// Its object.
    pub object: Recalled,
    /// The place of its route.
    pub route: usize,
    /// Bytes of its body.
    pub length: u64,
    /// From when on its head would be another one.
    pub until: Tick,
    /// Those who have cookies get it as well.
    pub with_cookies: bool,
}
