//! Where clients are sent, and what they get from us.

use super::actions::{acting, first};
use super::*;
use crate::config::model::route::Action;
use crate::config::model::*;

#[test]
fn what_is_wrong_with_a_redirect_is_told() {
    for (redirect, told) in [
        ("https://a.example/", "a mapping with `to` and `status`"),
        ("{status: 301}", "does not say where `to`"),
        ("{to: '{host}/x'}", "the host stands behind `https://`"),
        ("{to: '{path}'}", "may begin with `//`"),
        ("{to: //a.example/}", "begins with `//`"),
        ("{to: a.example}", "neither a URL nor a path"),
        ("{to: 'javascript:alert(1)'}", "neither a URL nor a path"),
        ("{to: '/a b'}", "which no URL has as it is"),
        ("{to: \"/a\\r\\nSet-Cookie: b\"}", "has a line end"),
        ("{to: '/{target}'}", "nothing goes to a target"),
        ("{to: '/{hots}'}", "did you mean `{host}`?"),
        ("{to: '/$1'}", "there is no `path_regex`"),
        ("{to: /a, status: 304}", "301, 302, 303, 307 or 308"),
        ("{to: /a, status: 200}", "too small"),
        ("{to: /a, code: 301}", "unknown key `code`"),
        ("{to: {host}}", "needs quotes"),
    ] {
        let problems = load_with(&acting(&format!("redirect: {redirect}")), &Flags::default());
        let problems = problems.unwrap_err().to_string();
        assert!(problems.contains(told), "{redirect}: {problems}");
    }
    for to in ["https://{hostname}{path}", "{scheme}://{host}/a?b#c", "HTTP://a/", "/a/{path_only}?{query}"] {
        let loaded = config(&acting(&format!("redirect: {{to: '{to}'}}")));
        assert!(matches!(&first(&loaded).action, Action::Redirect(redirect) if redirect.to.source() == to));
    }
}

#[test]
fn what_is_wrong_with_an_answer_is_told() {
    for (respond, told) in [
        ("{status: 199}", "too small"),
        ("{status: 600}", "too large"),
        ("{body: a, body_file: README.md}", "exclude each other"),
        ("{body: ''}", "is empty"),
        ("{body_file: no_such_file}", "which does not exist"),
        ("{body_file: src}", "which is no file"),
        ("{status: 204, body: a}", "has no body"),
        ("{content_type: text/html}", "`content_type` has no effect"),
        ("{body: a, content_type: html}", "which is no type of a body"),
        ("{body: a, content_type: \"text/html\\nX: y\"}", "which is no type of a body"),
        ("{headers: {Content-Type: text/html}}", "`content_type` beside `headers`"),
        ("{headers: {Content-Length: 0}}", "no edit may touch it"),
        ("{headers: {X-A: '{backend}'}}", "no backend is chosen yet"),
    ] {
        let problems = load_with(&acting(&format!("respond: {respond}")), &Flags::default());
        let problems = problems.unwrap_err().to_string();
        assert!(problems.contains(told) && problems.contains("1 problem"), "{respond}: {problems}");
    }
    let long = "a".repeat((1 << 20) + 1);
    let problems = messages(&acting(&format!("respond: {{body: {long}}}")), &Flags::default());
    assert!(problems[0].contains("is larger than 1MiB"));
}

#[test]
fn a_body_is_of_the_type_that_its_file_is_named_for() {
    let folder = tempfile::tempdir().unwrap();
    let kind = |name: &str| {
        std::fs::write(folder.path().join(name), "b").unwrap();
        let text = acting(&format!("respond: {{body_file: {name}}}"));
        let loaded = load_text(&text, "t.yaml", folder.path(), &Flags::default(), &env).unwrap();
        assert!(loaded.files.named().paths().any(|path| path.ends_with(name)), "{name} is not watched");
        match &first(&loaded.config).action {
            Action::Respond(respond) => respond.content_type.clone().unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(kind("a.HTML"), "text/html; charset=utf-8");
    assert_eq!(kind("a.json"), "application/json");
    assert_eq!(kind("a"), "application/octet-stream");
    let Action::Respond(inline) = first(&config(&acting("respond: {body: a}"))).action.clone() else {
        panic!("an answer")
    };
    assert_eq!(inline.content_type.as_deref(), Some("text/plain; charset=utf-8"));
}

#[test]
fn a_file_that_changes_is_another_row() {
    let folder = tempfile::tempdir().unwrap();
    let load = |content: &str| {
        std::fs::write(folder.path().join("b.txt"), content).unwrap();
        let text = acting("respond: {body_file: b.txt}");
        load_text(&text, "t.yaml", folder.path(), &Flags::default(), &env).unwrap()
    };
    let (one, other) = (load("1"), load("2"));
    assert_ne!(one.effective, other.effective);
    assert_ne!(one.config, other.config);
}

#[test]
fn a_config_from_afar_names_no_new_body() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("main.yaml");
    std::fs::write(folder.path().join("b.txt"), "b").unwrap();
    std::fs::write(folder.path().join("c.txt"), "c").unwrap();
    let text = |name: &str| acting(&format!("respond: {{body_file: {name}}}"));
    std::fs::write(&file, text("b.txt")).unwrap();
    let here = load(Some(&file), &Flags::default(), &env).unwrap();
    let fence = Fence::around(here.named, Some(&file));
    let afar = |name: &str| load_fenced(&text(name), "text", Some(&file), &Flags::default(), &fence);
    assert!(afar("b.txt").is_ok());
    for name in ["c.txt", "no_such_file", "/etc/passwd", "../b.txt"] {
        let told = afar(name).unwrap_err().to_string();
        assert!(told.contains("this is a file that can't be used here"), "{name}: {told}");
    }
}

#[test]
fn texts_are_what_they_are_filled_with() {
    let loaded = config(&acting("match: {path_regex: '^/(.*)$'}, redirect: {to: 'https://a.example/$1'}"));
    let Action::Redirect(redirect) = &first(&loaded).action else { panic!("a redirect") };
    assert_eq!(
        redirect.to.pieces(),
        [
            text::TextPiece::Plain("https://a.example/".into()),
            text::TextPiece::Value(text::Variable::Group(1))
        ]
    );
}
