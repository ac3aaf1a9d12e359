//! Who clients are: rules by name, and where they hold.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::json;

use super::every_key::{Check, target};
use super::listeners::{POOL, front, of, route};
use super::*;
use crate::config::model::{Auth, AuthKind, BasicAuth, ForwardAuth};

/// A file of two users.
pub(super) fn users() -> String {
    // Written once: others read it meanwhile.
    static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let hash = "$2y$10$abcdefghijklmnopqrstuuabcdefghijklmnopqrstuvwxyzABCDE";
        std::fs::write(folder.path().join("users"), format!("# ours\nbert:{hash}\nanna:{hash}\n")).unwrap();
        folder
    });
    FOLDER.path().join("users").display().to_string()
}

/// Makes of `config` one in which a key of `auth` can stand.
pub(super) fn set_up(path: &str, config: &mut serde_json::Value) {
    if path.starts_with("auth.<name>.forward.") {
        config["auth"]["web"]["forward"]["target"] = "web".into();
    } else if path.starts_with("auth.<name>.jwt.") {
        config["auth"]["web"]["jwt"]["jwks_url"] = "https://a".into();
    } else if path.starts_with("auth.<name>.basic.") || path.ends_with(".auth") {
        config["auth"]["web"]["basic"]["users_file"] = users().into();
    }
}

/// Values that keys of `auth` take.
pub(super) fn values() -> [serde_json::Value; 7] {
    [
        json!({ "web": { "forward": { "target": "web" } } }),
        json!(users()),
        json!({ "users_file": users() }),
        json!("X-User"),
        json!({ "jwks_url": "http://a" }),
        json!(tokens::keys()),
        json!("ES256"),
    ]
}

/// The rule `staff`, and a text behind it.
fn staff(more: &str, text: &str) -> String {
    format!("auth: {{staff: {{basic: {{users_file: {}{more}}}}}}}\n{text}", users())
}

/// The rule `sso`, which every route of a listener has.
fn sso(more: &str) -> String {
    format!("auth: {{sso: {{forward: {{target: web{more}}}}}}}\n{}", front("auth: sso"))
}

fn of_route(config: &Config) -> Option<&Auth> {
    of(config).routes[0].auth.as_deref()
}

fn basic(config: &Config) -> Option<&BasicAuth> {
    match &of_route(config)?.kind {
        AuthKind::Basic(basic) => Some(basic),
        AuthKind::Jwt(_) | AuthKind::Forward(_) => None,
    }
}

fn forward(config: &Config) -> Option<&ForwardAuth> {
    match &of_route(config)?.kind {
        AuthKind::Forward(forward) => Some(forward),
        AuthKind::Basic(_) | AuthKind::Jwt(_) => None,
    }
}

/// Keys of `auth`, each with a text in which it stands and what it changes.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    let on_all = |more: &str| staff(more, &front("auth: staff"));
    vec![
        ("auth", on_all(""), |c| of_route(c).is_some_and(|auth| auth.name == "staff")),
        ("auth.<name>.basic", on_all(""), |c| basic(c).is_some_and(|basic| basic.realm == "Restricted")),
        ("auth.<name>.basic.users_file", on_all(""), |c| {
            basic(c)
                .is_some_and(|basic| basic.users.iter().map(|user| user.name.as_str()).eq(["anna", "bert"]))
        }),
        ("auth.<name>.basic.realm", on_all(", realm: The staff"), |c| {
            basic(c).is_some_and(|basic| basic.realm == "The staff")
        }),
        ("auth.<name>.forward", sso(""), |c| {
            forward(c).is_some_and(|asked| asked.timeout == Duration::from_secs(5) && asked.path == "/")
        }),
        ("auth.<name>.forward.target", sso(""), |c| forward(c).is_some_and(|asked| &*asked.target == "web")),
        ("auth.<name>.forward.path", sso(", path: '/verify?a=b'"), |c| {
            forward(c).is_some_and(|asked| asked.path == "/verify?a=b")
        }),
        ("auth.<name>.forward.copy_headers", sso(", copy_headers: [X-User, X-Groups]"), |c| {
            forward(c).is_some_and(|asked| asked.copy_headers == ["X-User", "X-Groups"])
                && *of(c).told == ["X-Groups", "X-User"]
        }),
        ("auth.<name>.forward.timeout", sso(", timeout: 1s"), |c| {
            forward(c).is_some_and(|asked| asked.timeout == Duration::from_secs(1))
        }),
        ("listeners.<name>.auth", on_all(""), |c| of(c).auth.is_some()),
        ("listeners.<name>.routes[].auth", staff("", &route("auth: staff")), |c| {
            of(c).auth.is_none() && of_route(c).is_some()
        }),
        ("targets.<name>.auth", staff("", &target("auth: staff")), |c| of_route(c).is_some()),
    ]
}

#[test]
fn a_route_has_what_its_listener_says_unless_it_says_otherwise() {
    let text = staff(
        "",
        &format!(
            "listeners: {{front: {{bind: 8080, auth: staff, routes: [{{target: web}}, \
             {{match: {{path: /open}}, auth: off, target: web}}, {{match: {{path: /in}}, auth: staff, target: web}}]}}}}\n{POOL}\n"
        ),
    );
    let loaded = load_with(&text, &Flags::default()).unwrap();
    let rules: Vec<bool> = of(&loaded.config).routes.iter().map(|route| route.auth.is_some()).collect();
    assert_eq!(rules, [true, false, true]);
    let (one, other) = (&of(&loaded.config).routes[0].auth, &of(&loaded.config).routes[2].auth);
    assert!(Arc::ptr_eq(one.as_ref().unwrap(), other.as_ref().unwrap()));
    assert!(
        loaded.warnings.iter().any(|warning| warning
            .ends_with("this route of the listener `front` has `auth: off`: `staff` does not hold for it")),
        "{:?}",
        loaded.warnings
    );
    assert!(loaded.files.paths().any(|path| path.display().to_string() == users()), "it is watched");
}

#[test]
fn what_is_wrong_is_told_with_what_would_be_right() {
    let pool = front("protocol: http");
    for (text, told) in [
        (front("auth: staff"), "there is no auth rule `staff`"),
        (staff("", &front("auth: stuff")), "did you mean `staff`?"),
        (staff("", &front("auth: [staff]")), "`auth` is a list"),
        (staff("", &front("protocol: tcp, auth: staff")), "`auth` belongs to HTTP"),
        (staff("", &target("auth: staff").replace("protocol: http, ", "")), "`auth` belongs to HTTP"),
        (format!("auth: [staff]\n{pool}"), "a mapping from names to rules"),
        (format!("auth: {{staff: {{}}}}\n{pool}"), "says nothing of how clients show who they are"),
        (format!("auth: {{staff: {{basic: {{}}}}}}\n{pool}"), "`basic` has no `users_file`"),
        (format!("auth: {{staff: {{basic: {{users_file: /no/such}}}}}}\n{pool}"), "which does not exist"),
        (staff(", realm: 'a\"b'", &pool), "without quotes and backslashes"),
        (format!("auth: {{sso: {{forward: {{path: /x}}}}}}\n{pool}"), "`forward` has no `target`"),
        (sso(", target: web").replace("target: web, target: web", "target: wob"), "there is no target `wob`"),
        (sso(", path: verify"), "`path`"),
        (sso("").replace("sso:", "'off':").replace("auth: sso", "auth: off"), "the name `off` is taken"),
        (sso(", copy_headers: Authorization"), "which requests have for other reasons"),
        (sso(", copy_headers: [X-User, x-user]"), "which is there already"),
        (sso(", copy_headers: 'a b'"), "no name of a header"),
        (sso(", timeout: 0s"), "`timeout`"),
        (
            format!("auth: {{a: {{basic: {{users_file: {}}}, forward: {{target: web}}}}}}\n{pool}", users()),
            "`basic` and `forward` exclude each other",
        ),
    ] {
        let problems = load_with(&text, &Flags::default()).unwrap_err().to_string();
        assert!(problems.contains(told), "{text}: {problems}");
    }
}

#[test]
fn a_wrong_line_of_a_file_of_users_is_told_with_its_place_and_the_cure_and_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users");
    std::fs::write(&file, "# ours\nanna:$apr1$abc$secret\nbert:hunter2secret\n").unwrap();
    let text =
        format!("auth: {{staff: {{basic: {{users_file: {}}}}}}}\n{}", file.display(), front("auth: staff"));
    let told = load_with(&text, &Flags::default()).unwrap_err().to_string();
    let at = file.display();
    assert!(
        told.contains(&format!("{at}:2:1: the password in this line is a hash of MD5 (`$apr1$`)")),
        "{told}"
    );
    assert!(told.contains(&format!("{at}:3:1: the password in this line is")), "{told}");
    assert!(told.contains("htpasswd -B") && !told.contains("secret"), "{told}");
}
