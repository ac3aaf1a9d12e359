//! The keys of tokens under one config: those that are fetched, which outlive configs, by the rule of `auth` that names their URL.

use std::collections::HashMap;
use std::sync::Arc;

use super::known_keys::KnownKeys;
use crate::config::model::jwt::{JwtAlgorithm, JwtAuth, KeysUrl};
use crate::config::model::{self, AuthKind};

/// Keys that are fetched.
#[derive(Clone, Debug)]
pub struct FetchedKeys {
    /// The rule of `auth`.
    pub rule: String,
    /// Where they are.
    pub from: KeysUrl,
    /// What they must be good for.
    pub algorithms: Vec<JwtAlgorithm>,
    /// What came of it.
    pub known: Arc<KnownKeys>,
}

/// Those of one config, by rule.
#[derive(Debug, Default)]
pub struct TokenKeys(HashMap<String, FetchedKeys>);

impl TokenKeys {
    /// Those that a route in `config` needs, with what is known of them from `before`: under the same name, from the same place and for the
    /// same algorithms. Keys of another place vouch for nothing here.
    pub(super) fn new(config: &model::Config, before: Option<&TokenKeys>) -> TokenKeys {
        let routes = config.listeners.iter().flat_map(|listener| &listener.routes);
        let mut keys = TokenKeys::default();
        for auth in routes.filter_map(|route| route.auth.as_ref()) {
            let AuthKind::Jwt(JwtAuth { rules, keys_url: Some(from), .. }) = &auth.kind else { continue };
            if keys.0.contains_key(&auth.name) {
                continue;
            }
            let same = before.and_then(|before| before.0.get(&auth.name));
            let same = same.filter(|same| same.from == *from && same.algorithms == rules.algorithms);
            let fetched = same.cloned().unwrap_or_else(|| FetchedKeys {
                rule: auth.name.clone(),
                from: from.clone(),
                algorithms: rules.algorithms.clone(),
                known: Arc::default(),
            });
            keys.0.insert(auth.name.clone(), fetched);
        }
        keys
    }

    /// Those of the rule of this name; `None`: it fetches none.
    #[must_use]
    pub fn of(&self, rule: &str) -> Option<&Arc<KnownKeys>> {
        self.0.get(rule).map(|fetched| &fetched.known)
    }

    /// All of them, in no order.
    #[must_use]
    pub fn all(&self) -> Arc<[FetchedKeys]> {
        self.0.values().cloned().collect()
    }
}
