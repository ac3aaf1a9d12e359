//! The router against the naive one, and rows of requests.

use std::sync::Arc;

use proptest::prelude::*;
use regex::bytes::Regex;

use super::*;
use crate::config::model::route::{FieldMatch, FieldTest, HostPattern, PathPattern, RouteMatch};
use crate::message::Head;

fn host(text: &str) -> HostPattern {
    let (text, port) = match text.rsplit_once(':') {
        Some((text, port)) if !text.contains(':') => (text, port.parse().ok()),
        _ => (text, None),
    };
    let suffix = text.strip_prefix("*.");
    HostPattern { name: suffix.unwrap_or(text).to_owned(), is_suffix: suffix.is_some(), port }
}

fn path(text: &str) -> PathPattern {
    match (text.strip_prefix('='), text.strip_prefix('~')) {
        (Some(exact), _) => PathPattern::Exact(exact.to_owned()),
        (_, Some(regex)) => PathPattern::Regex(Regex::new(regex).expect("an expression")),
        _ if text.is_empty() => PathPattern::Any,
        _ => PathPattern::Prefix(text.to_owned()),
    }
}

fn route(name: &str, hosts: &[&str], at: &str) -> RouteConfig {
    let hosts = hosts.iter().copied().map(host).collect();
    let matches = RouteMatch { hosts, path: path(at), ..RouteMatch::default() };
    RouteConfig { name: name.to_owned(), matches, ..RouteConfig::catch_all("t") }
}

fn field(name: &str, test: FieldTest) -> FieldMatch {
    FieldMatch { name: name.to_owned(), test }
}

/// Whose a request is.
fn owner(routes: &[RouteConfig], default: Option<&str>, method: &str, host: &str, path: &str) -> String {
    let routes: Vec<_> = routes.iter().cloned().map(Arc::new).collect();
    let head = Head::request(method, path, host);
    let only = path.split('?').next().unwrap_or_default();
    let asked = Asked { head: &head, path: only.as_bytes(), client: "10.1.2.3".parse().ok() };
    let router = Router::new(&routes, default);
    let found = router.find(&asked);
    assert_eq!(found, naive::find(&routes, default, &asked), "{host}{path}");
    router.nearer(&asked, found);
    found.map_or_else(|| "-".to_owned(), |place| routes[place].name.clone())
}

#[test]
fn hosts_and_paths_go_from_near_to_far() {
    let routes = [
        route("any", &[], ""),
        route("root", &[], "/"),
        route("api", &[], "/api"),
        route("deep", &[], "/api/v1"),
        route("exact", &[], "=/api/v1"),
        route("regex", &[], "~^/v[0-9]+/"),
        route("later", &[], "~^/v1/"),
        route("shop", &["shop.example"], "/"),
        route("admin", &["shop.example:8443"], "/"),
        route("sub", &["*.shop.example"], "/"),
        route("subsub", &["*.b.shop.example"], "/sub"),
        route("v6", &["[::1]"], "=/six"),
    ];
    for (host, path, name) in [
        ("other", "/", "root"),
        ("other", "/x", "root"),
        ("other", "/api", "api"),
        ("other", "/api/", "api"),
        ("other", "/api/x", "api"),
        ("other", "/apiary", "root"),
        ("other", "/Api", "root"),
        ("other", "/api/v1", "exact"),
        ("other", "/api/v1/", "deep"),
        ("other", "/api/v1/x", "deep"),
        ("other", "/api/v10", "api"),
        ("other", "/v1/x", "regex"),
        ("other", "/v1?a=/api", "root"),
        ("other", "/api?x", "api"),
        ("shop.example", "/api", "shop"),
        ("SHOP.Example.", "/", "shop"),
        ("shop.example:80", "/", "shop"),
        ("shop.example:8443", "/", "admin"),
        ("a.shop.example", "/", "sub"),
        ("a.b.shop.example", "/", "sub"),
        ("a.b.shop.example", "/sub/x", "subsub"),
        ("b.shop.example", "/sub/x", "sub"),
        ("xshop.example", "/api", "api"),
        ("[::1]:80", "/six", "v6"),
        ("[::1]", "/seven", "root"),
    ] {
        assert_eq!(owner(&routes, None, "GET", host, path), name, "{host}{path}");
    }
}

#[test]
fn an_asterisk_goes_to_the_root_and_nothing_goes_where_no_route_is() {
    let with_root = [route("api", &[], "/api"), route("root", &[], "/")];
    assert_eq!(owner(&with_root, None, "OPTIONS", "h", "*"), "root");
    assert_eq!(owner(&with_root[..1], None, "OPTIONS", "h", "*"), "-");
    assert_eq!(owner(&with_root[..1], None, "GET", "h", "/"), "-");
}

#[test]
fn more_conditions_go_first_and_who_fails_one_goes_on_to_the_next() {
    let mut beta = route("beta", &[], "/api");
    beta.matches.queries = vec![field("v", FieldTest::Is(vec!["2".into()]))];
    let mut posts = route("posts", &[], "/api");
    posts.matches.methods = vec!["POST".into()];
    posts.matches.queries = vec![field("v", FieldTest::Present(true))];
    let mut near = route("near", &[], "/api/x");
    near.matches.clients = vec!["192.0.2.0/24".parse().unwrap()];
    let routes = [route("api", &[], "/api"), beta, posts, near];
    for (method, path, name) in [
        ("GET", "/api", "api"),
        ("GET", "/api?v=2", "beta"),
        ("GET", "/api?w=1&v=2", "beta"),
        ("GET", "/api?v=3&v=2", "beta"),
        ("GET", "/api?xv=2", "api"),
        ("GET", "/api?v=%32", "api"),
        ("POST", "/api?v=2", "posts"),
        ("POST", "/api?v", "posts"),
        ("POST", "/api", "api"),
        ("post", "/api?v=9", "api"),
        ("GET", "/api/x", "api"),
    ] {
        assert_eq!(owner(&routes, None, method, "h", path), name, "{method} {path}");
    }
}

#[test]
fn an_order_goes_before_everything() {
    let mut routes = [route("exact", &["a"], "=/x"), route("ten", &[], "/"), route("two", &["a"], "/x/y")];
    (routes[1].order, routes[2].order) = (Some(10), Some(2));
    assert_eq!(owner(&routes, None, "GET", "a", "/x"), "ten");
    assert_eq!(owner(&routes, None, "GET", "a", "/x/y"), "two");
}

#[test]
fn the_default_host_stands_in_for_hosts_that_no_route_names() {
    let routes = [route("shop", &["shop.example"], ""), route("blog", &["*.blog.example"], "/a")];
    let default = Some("shop.example");
    assert_eq!(owner(&routes, default, "GET", "other", "/"), "shop");
    assert_eq!(owner(&routes, default, "GET", "", "/"), "shop");
    assert_eq!(owner(&routes, default, "GET", "x.blog.example", "/a"), "blog");
    assert_eq!(owner(&routes, default, "GET", "x.blog.example", "/b"), "-", "it is named");
    assert_eq!(owner(&routes, None, "GET", "other", "/"), "-");
}

fn any_route() -> impl Strategy<Value = RouteConfig> {
    let host = prop::sample::select(vec!["a", "b.a", "*.a", "*.b.a", "a:80", "*.a:80", "c"]);
    let path = prop::sample::select(vec!["", "/", "/x", "/x/y", "/xy", "=/x", "=/x/y", "~^/x", "~y$", "=/"]);
    let method = prop::sample::select(vec!["", "GET", "POST"]);
    let query = prop::sample::select(vec!["", "q", "r"]);
    let parts =
        (prop::collection::vec(host, 0..3), path, method, query, prop::option::weighted(0.2, 0..3_u32));
    parts.prop_map(|(hosts, path, method, query, order)| {
        let mut route = route("r", &hosts, path);
        route.order = order;
        route.matches.methods = [method].into_iter().filter(|one| !one.is_empty()).map(Into::into).collect();
        let queries = [query].into_iter().filter(|one| !one.is_empty());
        route.matches.queries = queries.map(|name| field(name, FieldTest::Present(true))).collect();
        route
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_router_finds_what_the_naive_one_finds(
        routes in prop::collection::vec(any_route(), 0..12),
        asked in prop::collection::vec((
            prop::sample::select(vec!["a", "A.", "b.a", "c.b.a", "a:80", "x.a:80", "x.a:81", "c", "", "[::1]", "d.c"]),
            prop::sample::select(vec!["/", "/x", "/x/", "/x/y", "/x/y/z", "/xy", "/y", "//x", "*", "/x?q", "/x/y?q=1&r"]),
            prop::sample::select(vec!["GET", "POST", "get"]),
        ), 1..20),
        default in prop::option::of(prop::sample::select(vec!["a", "b.a", "z"])),
    ) {
        for (host, path, method) in asked {
            owner(&routes, default, method, host, path);
        }
    }
}
