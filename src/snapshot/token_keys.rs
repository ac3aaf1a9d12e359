//! The keys of tokens under one config: those that are fetched, which outlive configs, by the rule of `auth` that names their URL.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::known_keys::KnownKeys;
use crate::config::model::jwt::{JwtAlgorithm, JwtAuth, KeySet, KeysUrl};
use crate::config::model::{self, AuthKind, HttpUrl};
use crate::tick::Tick;

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

/// Keys as they are handed over to another process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldKeys(Vec<ToldKeySet>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ToldKeySet {
    rule: String,
    place: String,
    text: String,
    /// Both processes read one clock.
    until: u64,
}

/// Where keys are fetched, all of it: what is shown of a URL leaves things out.
fn place(from: &KeysUrl) -> String {
    let HttpUrl { is_tls, host, port, path, user } = &from.url;
    format!("{is_tls} {host} {port} {path} {user:?}")
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

    /// Those that count, for another process.
    #[must_use]
    pub fn tell(&self, now: Tick) -> ToldKeys {
        let told = |one: &FetchedKeys| {
            let (text, until) = one.known.fetched(now)?;
            let text = String::from_utf8(text.into()).ok()?;
            Some(ToldKeySet { rule: one.rule.clone(), place: place(&one.from), text, until: until.0 })
        };
        ToldKeys(self.0.values().filter_map(told).collect())
    }

    /// Begins with what the process before has told, of rules that have no keys yet: of the same place, as far as they are good for what they must be.
    pub fn take_over(&self, told: &ToldKeys, now: Tick) {
        for set in &told.0 {
            let own = self.0.get(&set.rule).filter(|own| place(&own.from) == set.place);
            if let Some(own) = own.filter(|own| own.known.at(now).is_none())
                && let Ok(keys) = KeySet::parse(set.text.as_bytes(), &own.algorithms)
            {
                own.known.put_fetched(Arc::new(keys), Tick(set.until), set.text.as_bytes().into());
            }
        }
    }

    /// All of them, in no order.
    #[must_use]
    pub fn all(&self) -> Arc<[FetchedKeys]> {
        self.0.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: &str) -> TokenKeys {
        let url =
            HttpUrl { is_tls: true, host: "id.test".to_owned(), port: 443, path: path.into(), user: None };
        let one = FetchedKeys {
            rule: "users".to_owned(),
            from: KeysUrl { url, authorities: None },
            algorithms: vec![JwtAlgorithm::Es256],
            known: Arc::default(),
        };
        TokenKeys([("users".to_owned(), one)].into())
    }

    #[test]
    fn keys_go_on_in_the_next_process_as_long_as_they_count_and_for_the_same_place_only() {
        let (before, text) = (rule("/keys"), include_bytes!("../../fixtures/jwt/keys.json"));
        assert_eq!(before.tell(Tick(1)), ToldKeys::default());
        let keys = Arc::new(KeySet::parse(text, &[JwtAlgorithm::Es256]).expect("a set of keys"));
        before.of("users").expect("the rule").put_fetched(Arc::clone(&keys), Tick(10), text[..].into());
        let told = serde_json::to_string(&before.tell(Tick(2))).expect("text");
        let told: ToldKeys = serde_json::from_str(&told).expect("what was told");
        let at = |keys: &TokenKeys, now| keys.of("users").expect("the rule").at(Tick(now));
        let (same, other) = (rule("/keys"), rule("/others"));
        for next in [&same, &other] {
            next.take_over(&told, Tick(3));
        }
        assert_eq!((at(&same, 9), at(&same, 10)), (Some(keys), None));
        assert_eq!(at(&other, 9), None, "keys of another place vouch for nothing");
        assert_eq!(before.tell(Tick(10)), ToldKeys::default(), "their time is over");
    }
}
