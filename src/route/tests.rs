//! Rows of requests; `fixtures/routing` has many more, and a fuzz target compares the router with a naive one.

use std::sync::Arc;

use regex::bytes::Regex;

use super::*;
use crate::config::model::Normalize;
use crate::config::model::route::{FieldMatch, FieldTest, HostPattern, PathPattern, Rewrite, RouteMatch};
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
    let asked =
        Asked { head: &head, path: only.as_bytes(), client: "10.1.2.3".parse().ok(), certificate: None };
    let router = Router::new(&routes, default);
    let found = router.find(&asked).expect("it has one reading");
    assert!(router.nearer(&asked, found).len() < routes.len() + usize::from(found.is_none()));
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
        ("GET", "/api?v=%32", "beta"),
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

#[test]
fn a_path_that_a_backend_could_take_for_one_of_another_route_is_nobodys() {
    let routes = [
        route("admin", &[], "/admin"),
        route("exact", &[], "=/exact"),
        route("at", &[], "/@team"),
        route("spelled", &[], "=/a%2Fb"),
        route("below", &[], "/p;q"),
        route("regex", &[], "~^/item(;.*)?$"),
        route("rest", &[], "/"),
    ];
    let routes = routes.map(Arc::new);
    let router = Router::new(&routes, None);
    let head = Head::request("GET", "/", "h");
    let asked = |path: &str| {
        let found = router
            .find(&Asked { head: &head, path: path.as_bytes(), client: None, certificate: None })
            .ok()?;
        Some(found.map_or("-", |place| &*routes[place].name))
    };
    for (path, name) in [
        ("/admin/x;y//%2Fz%25", Some("admin")),
        ("/exactly;x", Some("rest")),
        ("/x//y;z", Some("rest")),
        ("/a%2Fb", Some("spelled")),
        ("/p;q", Some("below")),
        ("/p;q/x", Some("below")),
        ("/item;v=1", Some("regex")),
        ("/%40other", Some("rest")),
        ("/p;q/%252e%252e/admin", None),
        ("/p;q/x;y", None),
        ("/%40team", None),
        ("/admin;x", None),
        ("/admin%3Bx", None),
        ("/admin%2Fx", None),
        ("/admin%252Fx", None),
        ("/admin%3Fx", None),
        ("/x%5C..%5C..", Some("rest")),
        ("/x/%252e%252e/admin", None),
        ("/admin/%252e%252e/x", None),
        ("//admin", None),
        ("/%2561dmin", None),
        ("/exact;x", None),
        ("//exact", None),
    ] {
        assert_eq!(asked(path), name, "{path}");
    }
}

#[test]
fn what_a_rewrite_makes_of_a_path_stays_below_its_prefix_however_it_is_read() {
    let routes = [route("admin", &[], "/admin"), route("rest", &[], "/")].map(Arc::new);
    let router = Router::new(&routes, None);
    let rule = Rewrite::Prefix { strip: "/admin".to_owned(), add: "/inner".to_owned() };
    let pieces =
        ["", "x", "/", "//", "..", "%2e%2e", "%252e%252e", "%2F", "%252F", "%5C", ";p", "%3B", "%3F", "%25"];
    let mut rewritten = 0;
    for number in 0..pieces.len().pow(4) {
        let rest: String = (0..4).map(|at| pieces[number / pieces.len().pow(at) % pieces.len()]).collect();
        let sent = format!("/admin/{rest}");
        let head = Head::request("GET", &sent, "h");
        let rules = Normalize::default();
        let Ok(path) = path_form::form(sent.as_bytes(), &rules) else { continue };
        if router.find(&Asked { head: &head, path: &path, client: None, certificate: None }) != Ok(Some(0)) {
            continue;
        }
        let facts = TextFacts {
            told: None,
            head: &head,
            groups: Groups::default(),
            client: None,
            scheme: "http",
            id: 1,
            target: "",
            backend: "",
            tls: "",
            subject: "",
            user: "",
        };
        let Ok(made) = rewrite(&rule, &path, &facts, &rules) else { continue };
        rewritten += 1;
        let stays = |path: &[u8]| {
            path.strip_prefix(b"/inner").is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
        };
        let all = readings::each(&made, |read| {
            if stays(read) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert!(stays(&made) && all.is_continue(), "{sent} becomes {}", made.escape_ascii());
    }
    assert!(rewritten > 2_000, "{rewritten}");
}
