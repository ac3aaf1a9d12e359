//! What the load asks for: mostly the pages of a shop and its API.

use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// Out of a hundred, how many are asked for; `#` is a number below ten.
const MIX: &[(u32, Method, &str)] = &[
    (26, Method::GET, "/"),
    (11, Method::GET, "/products/#"),
    (2, Method::GET, "/bytes/20000"),
    (1, Method::GET, "/status/404"),
    (10, Method::GET, "/assets/#.svg"),
    (24, Method::GET, "/api/products?page=#"),
    (14, Method::GET, "/api/users/#"),
    (8, Method::POST, "/api/orders"),
    (3, Method::PUT, "/api/carts/#"),
    (1, Method::DELETE, "/api/carts/#"),
];
/// The body of those that have one.
const ORDER: &str = r#"{"product": 17, "count": 1}"#;
/// Who asks.
const AGENTS: &[&str] = &[
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
    "shop-app/4.2 (Android 16)",
    "curl/8.14.1",
];

/// By which of the demo's listeners a request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DemoWay {
    Http,
    Https,
    Tcp,
    Udp,
}

/// One draw after the other.
#[derive(Debug)]
pub(super) struct Mix {
    chance: StdRng,
    host: String,
}

impl Mix {
    /// For a host of this name.
    pub(super) fn new(host: String, seed: u64) -> Mix {
        Mix { chance: StdRng::seed_from_u64(seed), host }
    }

    /// The next request, and by which way it comes. By TCP nothing is sent, and by UDP a greeting.
    pub(super) fn draw(&mut self) -> (DemoWay, Request<Full<Bytes>>) {
        let way = match self.chance.random_range(0..100) {
            0..5 => DemoWay::Tcp,
            5..15 => DemoWay::Https,
            15..20 => DemoWay::Udp,
            _ => DemoWay::Http,
        };
        let mut left = self.chance.random_range(0..100);
        let wanted = MIX.iter().find(|(share, ..)| {
            let is_it = left < *share;
            left = left.saturating_sub(*share);
            is_it
        });
        let (_, method, path) = wanted.unwrap_or(&MIX[0]);
        let path = path.replace('#', &self.chance.random_range(0..10).to_string());
        let agent = AGENTS.choose(&mut self.chance).copied().unwrap_or_default();
        let body = if matches!(*method, Method::POST | Method::PUT) { ORDER } else { "" };
        let mut request =
            Request::builder().method(method).uri(path).header(HOST, &self.host).header(USER_AGENT, agent);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::from(body)).expect("all of it is written here");
        (way, request)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn all_ways_paths_and_clients_come_in_their_shares() {
        assert_eq!(MIX.iter().map(|(share, ..)| share).sum::<u32>(), 100);
        let mut mix = Mix::new("localhost:8080".to_owned(), 3);
        let (mut ways, mut kinds, mut agents) = (HashMap::new(), HashMap::new(), HashMap::new());
        for _ in 0..10_000 {
            let (way, request) = mix.draw();
            *ways.entry(way).or_insert(0) += 1;
            let path = request.uri().path().trim_end_matches(|last: char| last.is_ascii_digit());
            *kinds.entry((request.method().clone(), path.to_owned())).or_insert(0) += 1;
            *agents.entry(request.headers()[USER_AGENT].clone()).or_insert(0) += 1;
            assert_eq!(request.headers()[HOST], "localhost:8080");
        }
        assert!(
            [DemoWay::Tcp, DemoWay::Udp].iter().all(|way| (350..650).contains(&ways[way]))
                && (800..1_200).contains(&ways[&DemoWay::Https]),
            "{ways:?}"
        );
        let home = kinds[&(Method::GET, "/".to_owned())];
        assert!((2_400..2_800).contains(&home), "{kinds:?}");
        assert!(kinds.contains_key(&(Method::DELETE, "/api/carts/".to_owned())), "{kinds:?}");
        assert_eq!(agents.len(), AGENTS.len());
    }
}
