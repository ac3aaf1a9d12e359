//! One task for each URL that a config in force names.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::{fetch, follow, source};
use crate::config::model::jwt::KeySet;
use crate::events;
use crate::lasting::again;
use crate::net::now;
use crate::outgoing::OtherSide;
use crate::reload::Reloader;
use crate::snapshot::FetchedKeys;
use crate::tls::Roots;

/// Has the keys fetched that configs name, from the one in force on; it ends with those who change configs.
pub async fn keep(reloader: &Reloader) {
    let mut wanted = reloader.token_keys.subscribe();
    let mut tasks: Vec<(FetchedKeys, JoinSet<()>)> = Vec::new();
    let roots = Roots::default();
    loop {
        let all = wanted.borrow_and_update().clone();
        // Whoever is not wanted any more ends.
        tasks.retain(|(one, _)| all.iter().any(|other| Arc::ptr_eq(&one.known, &other.known)));
        for one in all.iter() {
            if tasks.iter().any(|(other, _)| Arc::ptr_eq(&one.known, &other.known)) {
                continue;
            }
            let mut task = JoinSet::new();
            let place = source(one.from.clone(), &roots);
            let (what, keys) = (format!("fetching the keys of `{}`", one.rule), one.clone());
            task.spawn(again(what, async move || one_set(&keys, &place).await));
            tasks.push((one.clone(), task));
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}

async fn one_set(keys: &FetchedKeys, source: &OtherSide) {
    let (rule, from) = (&*keys.rule, keys.from.url.to_string());
    let (mut held, mut trouble): (Option<Arc<KeySet>>, Option<String>) = (None, None);
    let tell = |brought: Result<&Arc<KeySet>, &str>| match brought {
        Ok(keys) => {
            // The same as before need not be told, unless nobody could know that.
            if held.as_ref() != Some(keys) || trouble.is_some() {
                events::keys_fetched(rule, &from, keys.len());
            }
            (held, trouble) = (Some(Arc::clone(keys)), None);
        }
        Err(reason) => {
            if trouble.as_deref() != Some(reason) {
                events::keys_not_fetched(rule, &from, reason, held.is_some());
            }
            trouble = Some(reason.to_owned());
        }
    };
    follow(Arc::clone(&keys.known), keys.algorithms.clone(), now, || fetch(source), tell).await;
}
