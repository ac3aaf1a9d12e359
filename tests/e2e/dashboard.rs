//! The dashboard in a real browser, and its stream as it is.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fake_backend::{Fake, Running};
use serde_json::Value;

use super::door_lab::{CONFIGURE, READ, ask, bearer, door, guarded, of};
use super::support::browser::Browser;
use super::support::process::Process;
use super::support::{Client, PATIENCE, fakes};

/// Two targets with probes, and the admin API over TCP.
fn shop(backends: &[Running]) -> Process {
    let each = |range: std::ops::Range<usize>| -> String {
        let lines = range.map(|number| {
            format!("      - {{name: b{number}, host: 127.0.0.1, port: {}}}\n", backends[number].port())
        });
        lines.collect()
    };
    let probed = "health_check: {path: /, interval: 100ms, timeout: 2s, fall: 1}";
    let config = format!(
        "workers: 1\nadmin: {{listener: 127.0.0.1:0}}\nlisteners:\n  front:\n    bind: 127.0.0.1:0\n    routes:\n      \
         - {{name: api, match: {{path_prefix: /api}}, target: api}}\n      - {{name: web, target: web}}\ntargets:\n  \
         web:\n    {probed}\n    backends:\n{}  api:\n    {probed}\n    backends:\n{}",
        each(0..2),
        each(2..3)
    );
    Process::start(&config, 1)
}

/// Events of a stream, until it ends.
fn events(process: &Process, more: &str) -> impl Iterator<Item = (String, String, Value)> + use<> {
    let mut stream = TcpStream::connect(door(process)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head =
        format!("GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{more}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    std::iter::from_fn(move || {
        let id = lines.find_map(|line| line.strip_prefix("id: ").map(str::to_owned))?;
        let kind = lines.next()?.strip_prefix("event: ")?.to_owned();
        let data = lines.next()?.strip_prefix("data: ").and_then(|data| serde_json::from_str(data).ok())?;
        Some((id, kind, data))
    })
}

#[test]
fn a_page_gets_everything_once_and_then_what_changes() {
    let backends = fakes(3);
    let process = shop(&backends);
    let mut stream = events(&process, "");
    let (first, kind, whole) = stream.next().unwrap();
    assert_eq!(kind, "whole");
    assert_eq!(whole["rows"]["target/web"]["of"], 2, "{whole}");
    let (second, kind, _) = stream.next().unwrap();
    assert_eq!(kind, "changes");
    let mut client = Client::connect(process.address("front"));
    for _ in 0..5 {
        assert_eq!(client.get("/api/x").status, 200);
    }
    assert_eq!(client.get("/").status, 200, "what went before is counted by then");
    let (mut seen, mut all) = (second, whole["rows"].as_object().unwrap().clone());
    while all["backend/api/b2"]["requests"] != 5 {
        let (id, kind, changes) = stream.next().unwrap();
        assert_eq!(kind, "changes");
        all.extend(changes["rows"].as_object().unwrap().clone());
        seen = id;
    }
    assert_eq!(all["target/api"]["requests"], 5);
    let number = |id: &str| id.rsplit('-').next().unwrap().parse::<u64>().unwrap();
    assert!(number(&seen) > number(&first));
    // Who missed nothing but the latest goes on; anybody else gets everything again.
    let (_, kind, _) = events(&process, "Last-Event-ID: 0badcafe-1\r\n").next().unwrap();
    assert_eq!(kind, "whole");
    // The same without a stream.
    let heard = ask(door(&process), "GET /api/v1/stream", "", b"");
    assert_eq!(heard.body["rows"]["target/api"]["requests"], 5, "{heard:?}");
    process.terminate();
    assert!(stream.all(|(_, kind, _)| kind == "changes"), "and it ends");
}

#[test]
fn the_page_is_for_everybody_and_what_it_shows_is_not() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let page = super::door_lab::raw(
        door(&process),
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    let page = String::from_utf8(page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("<title>evenkeel</title>"), "{page}");
    assert!(!page.contains("web") || !page.contains(&backends[0].port().to_string()), "{page}");
    let tag = page.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag");
    let again = |tag: &str| ask(door(&process), "GET /", &format!("If-None-Match: {tag}"), b"").status;
    assert_eq!((again(tag), again("\"other\"")), (304, 200), "who has it needs it no more");
    assert_eq!(ask(door(&process), "GET /api/v1/stream", "", b"").status, 401);
    assert_eq!(ask(door(&process), "GET /api/v1/stream", &bearer(READ), b"").status, 200);
    // A page that goes by another name is none of ours (DNS rebinding).
    let open = Process::start(&of(&backends[0], "listener: 127.0.0.1:0"), 1);
    for line in ["GET /", "GET /api/v1/stream"] {
        assert_eq!(ask(door(&open), line, "Host: evil.example", b"").status, 421, "{line}");
        assert_eq!(ask(door(&open), line, "", b"").status, 200, "{line}");
    }
}

#[test]
fn a_browser_is_told_of_a_backend_that_falls_and_comes_back() {
    let Some(browser) = Browser::start() else { return };
    let backends: Vec<Running> = (0..3).map(|_| Fake::http("b").start_in_thread().unwrap()).collect();
    let process = shop(&backends);
    browser.open(&format!("http://{}/", door(&process)));
    browser.until("all is well", "document.querySelector('#says')?.innerText.includes('All is well')");
    assert!(browser.text("#more").starts_with("3 of 3 backends get requests"), "{}", browser.text("#more"));
    backends[0].stop();
    browser.until("it is told", "document.querySelector('#says')?.innerText.includes('web/b0 is down')");
    assert_eq!(browser.eval("document.querySelector('#verdict').dataset.weight"), "hurt");
    // A probe that was under way has another reason.
    browser.until(
        "it says why",
        "document.querySelector(\"[id='backend/web/b0']\").innerText.includes('connection refused')",
    );
    backends[2].stop();
    browser.until(
        "the worst is first",
        "document.querySelector('#says')?.innerText.includes('api has no backend left')",
    );
    assert!(browser.text("#others").contains("web/b0 is down"), "{}", browser.text("#others"));
    browser.eval("document.querySelector('#more a').click()");
    assert_eq!(browser.eval("document.querySelector(':target')?.id"), "target/api");
    backends.iter().for_each(|backend| drop(backend.restart()));
    browser.until("it is over", "document.querySelector('#says')?.innerText.includes('All is well')");
    let mut client = Client::connect(process.address("front"));
    for _ in 0..6 {
        assert_eq!(client.get("/api/x").status, 200);
    }
    browser.until(
        "what came is drawn",
        "document.querySelector(\"[id='backend/api/b2'] svg path\")?.getAttribute('d')?.length > 9",
    );
    assert_eq!(browser.complaints(&[]), [""; 0]);
}

/// Where pictures of the page are put that people look at.
const PICTURES: &str = "EVENKEEL_PICTURES";

/// Once it is dropped something is over.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A town with some traffic: three routes, two targets, seven backends that take their time.
fn town(backends: &[Running]) -> Process {
    let each = |front: &str, range: std::ops::Range<usize>| -> String {
        let line = |(number, backend): (usize, &Running)| {
            format!("      - {{name: {front}-{}, host: 127.0.0.1, port: {}}}\n", number + 1, backend.port())
        };
        backends[range].iter().enumerate().map(line).collect()
    };
    let probed = "health_check: {path: /health, interval: 100ms, timeout: 2s, fall: 1}";
    let config = format!(
        "name: edge-1\nworkers: 2\nadmin: {{listener: 127.0.0.1:0}}\nlisteners:\n  front:\n    bind: 127.0.0.1:0\n    routes:\n      \
         - {{name: api, match: {{path_prefix: /api}}, target: api}}\n      \
         - {{name: assets, match: {{path_prefix: /assets}}, target: web, cache: {{ttl: 1h}}}}\n      - {{name: pages, target: web}}\n\
         targets:\n  web:\n    {probed}\n    backends:\n{}  api:\n    {probed}\n    backends:\n{}",
        each("web", 0..4),
        each("api", 4..7)
    );
    Process::start(&config, 1)
}

#[test]
fn the_page_fits_from_400_pixels_on_and_is_light_or_dark_as_the_system_is() {
    let Some(browser) = Browser::start() else { return };
    let takes =
        |number: u64| fake_backend::Behaviour::status(200).latency(Duration::from_millis(6 + 5 * number));
    let backends: Vec<Running> = (0..7).map(|_| Fake::http("b").start_in_thread().unwrap()).collect();
    (0..).zip(&backends).for_each(|(number, backend)| backend.behave(takes(number).sparing_health()));
    let process = town(&backends);
    let is_over = AtomicBool::new(false);
    let mut paper = Vec::new();
    std::thread::scope(|scope| {
        for paths in [["/shop", "/assets/a.css"], ["/cart", "/"], ["/api/orders", "/api/users"]] {
            let (is_over, address) = (&is_over, process.address("front"));
            scope.spawn(move || {
                let mut client = Client::connect(address);
                while !is_over.load(Ordering::Relaxed) {
                    paths.iter().for_each(|path| drop(client.get(path)));
                }
            });
        }
        let _over = Over(&is_over);
        browser.open(&format!("http://{}/", door(&process)));
        for state in ["calm", "outage"] {
            if state == "outage" {
                [0, 4, 5, 6].into_iter().for_each(|number: usize| backends[number].stop());
            }
            let says = if state == "calm" { "All is well" } else { "api has no backend left" };
            let script = format!("document.querySelector('#says')?.innerText.includes('{says}')");
            browser.until(state, &script);
            browser.until("some seconds are drawn", "(tracks => tracks >= 8)(document.querySelector('#vitals .line')?.getAttribute('d')?.split('L').length)");
            for (width, is_dark) in
                [400, 800, 1600].into_iter().flat_map(|width| [(width, false), (width, true)])
            {
                browser.shape(width, 900, is_dark);
                let script = "new Promise(done => setTimeout(() => requestAnimationFrame(() => \
                    done([document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor])), 300))";
                let found = browser.eval(script);
                paper.push(found[1].clone());
                assert_eq!(found[0], width, "{state}: it scrolls sideways");
                let scheme = if is_dark { "dark" } else { "light" };
                if let Some(folder) = std::env::var_os(PICTURES) {
                    let file = std::path::Path::new(&folder).join(format!("{state}-{width}-{scheme}.png"));
                    std::fs::write(file, browser.picture()).unwrap();
                }
            }
        }
    });
    assert!(paper.chunks(2).all(|pair| pair[0] != pair[1] && pair == &paper[..2]), "{paper:?}");
    assert_eq!(browser.complaints(&[]), [""; 0]);
}

/// Asks the page's own address from within the page, as a script in it would: status and body.
fn fetched(browser: &Browser, script: &str) -> Value {
    browser.eval(&format!("(async () => {{ const answer = await {script}; return answer.status; }})()"))
}

#[test]
fn who_has_a_token_logs_in_looks_and_logs_out() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let door = door(&process);
    browser.open(&format!("http://{door}/"));
    browser.until("it asks for a token", "document.querySelector('#login')?.hidden === false");
    assert_eq!(browser.eval("document.activeElement.id"), "token", "the keyboard is enough");
    assert_eq!(browser.eval("document.querySelector('#shown').checkVisibility()"), false);
    let log_in = |token: &str| {
        browser.order("Input.insertText", serde_json::json!({"text": token}));
        for kind in ["keyDown", "keyUp"] {
            let key = serde_json::json!({"type": kind, "key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13});
            browser.order("Input.dispatchKeyEvent", key);
        }
    };
    log_in("0123456789abcdef0123456789abcdee");
    browser.until("it is refused", "document.querySelector('#refused').innerText.includes('none of those')");
    log_in(READ);
    browser.until("it looks", "document.querySelector('#says')?.innerText.includes('All is well')");
    assert_eq!(browser.eval("document.querySelector('#login').hidden"), true);
    assert_eq!(browser.eval("document.cookie"), "", "no script reads it");
    assert_eq!(fetched(&browser, "fetch('api/v1/status')"), 200);
    assert_eq!(fetched(&browser, "fetch('api/v1/config/reload', {method: 'POST'})"), 403, "it may only look");
    browser.open(&format!("http://{door}/"));
    browser.until("it is known again", "document.querySelector('#says')?.innerText.includes('All is well')");
    // It is loaded anew, and shows the form already before it goes.
    browser.eval("window.isOld = true; document.querySelector('#leave').click()");
    browser.until("it asks again", "!window.isOld && document.querySelector('#login').hidden === false");
    assert_eq!(fetched(&browser, "fetch('api/v1/status')"), 401);
    assert!(!process.said().join("\n").contains(READ));
    // A refusal is an error to a browser.
    let complaints = browser.complaints(&[
        "the server responded with a status of 401",
        "the server responded with a status of 403",
    ]);
    assert_eq!(complaints, [""; 0]);
}

#[test]
fn a_cookie_is_as_good_as_its_token_where_it_comes_from_our_page_and_until_it_logs_out() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let door = door(&process);
    let log_in = |token: &str, more: &str| {
        let body = serde_json::json!({ "token": token }).to_string();
        ask(door, "POST /api/v1/session", &format!("Content-Type: application/json{more}"), body.as_bytes())
    };
    assert_eq!(log_in("0123456789abcdef0123456789abcdee", "").status, 401);
    assert_eq!(log_in(CONFIGURE, "|Origin: http://evil.example").status, 403);
    let heard = log_in(CONFIGURE, "");
    assert_eq!((heard.status, heard.body["who"].as_str()), (200, Some("token head")), "{heard:?}");
    let line = heard.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let (cookie, traits) = line.split_once("; ").unwrap();
    assert_eq!(traits, "Path=/; HttpOnly; SameSite=Strict; Max-Age=43200");
    assert!(!line.contains(CONFIGURE));
    let cookie = format!("Cookie: {cookie}");
    let with = |line: &str, more: &str| ask(door, line, &format!("{cookie}{more}"), b"").status;
    assert_eq!(with("GET /api/v1/status", ""), 200);
    assert_eq!(ask(door, "GET /api/v1/status", "", b"").status, 401);
    assert_eq!(with("POST /api/v1/config/reload", ""), 403, "from no page");
    assert_eq!(with("POST /api/v1/config/reload", "|Origin: http://evil.example"), 403);
    assert_eq!(with("POST /api/v1/config/reload", "|Sec-Fetch-Site: same-site"), 403, "another port");
    assert_eq!(with("POST /api/v1/config/reload", "|Sec-Fetch-Site: same-origin"), 200);
    assert_eq!(with("GET /api/v1/status", "|Host: evil.example"), 421);
    let mut stream = events(&process, &format!("{cookie}\r\n"));
    assert_eq!(stream.next().unwrap().1, "whole");
    assert_eq!(with("DELETE /api/v1/session", "|Sec-Fetch-Site: same-origin"), 200);
    assert_eq!(with("GET /api/v1/status", ""), 401, "whoever has a copy of it is out as well");
    assert!(stream.all(|(_, kind, _)| kind == "changes"), "and what it read has ended");
}

#[test]
fn a_backend_that_passes_its_probe_and_fails_its_requests_is_no_good_news() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(1);
    let config = format!(
        "workers: 1\nadmin: {{listener: 127.0.0.1:0}}\nlisteners:\n  front: {{bind: 127.0.0.1:0, routes: [{{target: api}}]}}\ntargets:\n  \
         api:\n    health_check: {{path: /health, interval: 100ms, timeout: 2s, fall: 1}}\n    \
         backends: [{{name: b0, host: 127.0.0.1, port: {}}}]\n",
        backends[0].port()
    );
    let process = Process::start(&config, 1);
    browser.open(&format!("http://{}/", door(&process)));
    browser.until("all is well", "document.querySelector('#says')?.innerText.includes('All is well')");
    let mut client = Client::connect(process.address("front"));
    backends[0].behave(fake_backend::Behaviour::status(500).sparing_health());
    for _ in 0..5 {
        client.get("/x");
    }
    let told = "document.querySelector('#says').innerText.includes('of the answers of api are errors')";
    browser.until("it is told", told);
    assert!(process.said().iter().all(|line| !line.contains("b0 is down")), "{:?}", process.said());
    // One that is gone leaves no good news behind.
    process.terminate();
    browser.until("it is told", "document.querySelector('#says').innerText.includes('Nothing is heard')");
    assert!(browser.eval("document.title").as_str().unwrap().contains("no news"));
}

/// What names and requests may have in them, so that each can be found again by its number.
fn hostile(number: usize) -> String {
    const PARTS: [&str; 10] = [
        "<img src=x onerror=window.hit=1>",
        "<script>window.hit=1</script>",
        "\u{202e}gnp.exe",
        "\u{1b}[31mred",
        "'\"><svg onload=window.hit=1>",
        "&lt;b&gt;&amp;",
        "javascript:window.hit=1",
        "\u{2066}x\u{2069}\u{200b}",
        "${window.hit=1}{{7*7}}",
        "\u{feff}\u{ad}%00%0a",
    ];
    format!("{number}{}", PARTS[number % PARTS.len()])
}

#[test]
fn what_others_have_written_is_text_everywhere() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(10);
    // No name has a blank, a slash or ESC in it.
    let names: Vec<String> =
        (0..10).map(|number| hostile(number).replace([' ', '/', '$', '\u{1b}'], "_")).collect();
    let backend = |(name, backend): (&String, &Running)| {
        let (name, port) = (serde_json::to_string(name).unwrap(), backend.port());
        format!("      - {{name: {name}, host: 127.0.0.1, port: {port}}}\n")
    };
    let config = format!(
        "workers: 1\nadmin: {{listener: 127.0.0.1:0}}\nlisteners:\n  front: {{bind: 127.0.0.1:0, routes: [{{target: web}}]}}\ntargets:\n  \
         web:\n    health_check: off\n    outlier: off\n    breaker: off\n    backends:\n{}",
        names.iter().zip(&backends).map(backend).collect::<String>()
    );
    let process = Process::start(&config, 1);
    backends.iter().for_each(|backend| backend.behave(fake_backend::Behaviour::status(500)));
    for number in 0..200 {
        let text = hostile(number);
        // Some of these can stand in a request line, and some can't: who sends them is refused, and that is told too.
        let path: String = text.bytes().filter(|byte| byte.is_ascii_graphic()).map(char::from).collect();
        let path = if number < 100 {
            path
        } else {
            path.replace(['<', '>', '"', '{', '}', '\\', '^', '`', '|', '['], "%3C")
        };
        let plain: String = text.chars().filter(|one| !one.is_control()).collect();
        let mut client = Client::connect(process.address("front"));
        let head = format!("GET /{path} HTTP/1.1\r\nHost: h{number}\r\nX-Request-Id: id-{number}\r\n");
        client.send(format!("{head}X-A: {plain}\r\nUser-Agent: {plain}\r\nConnection: close\r\n\r\n"));
        client.answer();
    }
    browser.open(&format!("http://{}/", door(&process)));
    browser.until("requests are there", "document.querySelectorAll('#requests li').length === 5");
    let known = browser.eval("document.querySelectorAll('*').length").as_u64().unwrap();
    let list = "fetch('api/v1/requests?last=300').then(answer => answer.json()).then(said => said.requests.map(one => [one.id, one.path ?? '']))";
    let listed: Vec<(String, String)> = serde_json::from_value(browser.eval(list)).unwrap();
    assert!(listed.len() >= 150, "{} of 200", listed.len());
    let mut seen = 0;
    for (id, path) in &listed {
        browser.eval(&format!(
            "location.hash = '#request%2F' + encodeURIComponent({})",
            serde_json::to_string(id).unwrap()
        ));
        let script = format!(
            "document.querySelector('#detailname')?.innerText.includes({})",
            serde_json::to_string(id).unwrap()
        );
        browser.until("it is shown", &script);
        let told = browser.text("#detail");
        seen +=
            usize::from(told.contains("<img src=x onerror=window.hit=1>") || told.contains("<svg onload"));
        assert!(told.contains(path.as_str()), "{path}: {told}");
        let bad = |one: char| {
            one.is_control() && one != '\n' && one != '\t'
                || matches!(one, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}')
        };
        assert!(!told.contains(bad), "{told:?}");
    }
    assert!(seen >= 20, "markup is shown as it was written: {seen}");
    assert_eq!(
        browser.eval("[window.hit ?? 0, document.querySelectorAll('img, svg[onload], script').length]"),
        serde_json::json!([0, 1])
    );
    browser.press("Escape");
    let shown = browser.text("#backends");
    for name in &names {
        let parts = name.split(|one: char| !one.is_ascii_graphic());
        let readable = parts.max_by_key(|part| part.len()).unwrap();
        assert!(shown.contains(readable), "{readable}: {shown}");
    }
    assert!(shown.contains("⟨U+202E⟩") && !shown.contains('\u{202e}'), "{shown}");
    assert!(browser.eval("document.querySelectorAll('*').length").as_u64().unwrap() < known + 200);
    assert_eq!(browser.complaints(&[]), [""; 0]);
}

#[test]
fn a_hundred_pages_are_told_the_same_at_once() {
    let backends = fakes(3);
    let process = shop(&backends);
    let mut pages: Vec<_> = (0..100).map(|_| events(&process, "")).collect();
    for page in &mut pages {
        assert_eq!(page.next().unwrap().1, "whole");
    }
    let mut client = Client::connect(process.address("front"));
    assert_eq!(client.get("/api/x").status, 200);
    for page in &mut pages {
        let told = page.find(|(_, _, changes)| changes["rows"]["target/api"]["requests"] == 1);
        assert_eq!(told.expect("it is told").1, "changes");
    }
}
