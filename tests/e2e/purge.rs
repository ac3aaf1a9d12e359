//! Purging by hand, over the API and by the command.

use super::cache_lab::{Origin, get};
use super::support::Client;
use super::support::process::Process;

#[test]
fn what_is_purged_is_asked_for_anew() {
    let origin = Origin::with(&["Cache-Control: max-age=100", "Cache-Tag: every, odd"]);
    let config = format!(
        "listeners:\n  front:\n    bind: 127.0.0.1:0\n    routes: [{{target: web, cache: {{ttl: off}}}}]\n\
         targets:\n  web: {{health_check: off, backends: [{{host: 127.0.0.1, port: {}}}]}}\n",
        origin.address.port()
    );
    let process = Process::start(&config, 1);
    let mut client = Client::connect(process.address("front"));
    let ask = |client: &mut Client| get(client, "/a/b?c=d", &[]).1;
    let mut expected = 0;
    for body in [
        r#"{"url": "http://A.example/a/./b?c=d"}"#,
        r#"{"prefix": "http://a.example/a/"}"#,
        r#"{"prefix": "http://a.example"}"#,
        r#"{"tag": "odd"}"#,
        r#"{"all": true}"#,
        r#"{"all": true, "soft": true}"#,
        r#"{"url": "http://a.example/a/b?c=d", "soft": true}"#,
    ] {
        expected += 1;
        assert_eq!(ask(&mut client), format!("body {expected}"), "before {body}");
        assert_eq!(ask(&mut client), format!("body {expected}"), "before {body}");
        let (status, report) = process.ask("POST /api/v1/cache/purge", body.as_bytes());
        assert_eq!(status, 200, "{report}");
        if body.contains("url") {
            assert_eq!(report["objects"], 1, "{report}");
        }
    }
    assert_eq!(ask(&mut client), format!("body {}", expected + 1));
    for body in
        [r#"{"tag": "even"}"#, r#"{"prefix": "https://a.example/"}"#, r#"{"url": "http://a.example/a/b"}"#]
    {
        assert_eq!(process.ask("POST /api/v1/cache/purge", body.as_bytes()).0, 200);
        assert_eq!(ask(&mut client), format!("body {}", expected + 1), "{body} is about something else");
    }
    for wrong in ["{}", r#"{"url": "/a"}"#, r#"{"tag": "a", "all": true}"#, r#"{"all": true, "sof": true}"#] {
        assert!((400..500).contains(&process.ask("POST /api/v1/cache/purge", wrong.as_bytes()).0), "{wrong}");
    }
}
