//! Another service says who may come in, over real sockets.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc;

use super::auth_lab::{Door, Service, cause, request};
use super::support::eventually;
use super::support::port::Reserved;

const ALL: &str = "    auth: sso\n    routes: [{target: web}]\n";
const YES: &str = "HTTP/1.1 200 OK\r\nX-User: anna\r\nx-groups: a\r\nX-Groups: b\r\nX-Other: c\r\n\
                   Set-Cookie: s=1\r\nSet-Cookie: t=2\r\nContent-Length: 3\r\n\r\nyes";

fn door(service: &Service, more: &str, keys: &str) -> Door {
    Door::new(&service.rule(more), keys, Some(service.address))
}

#[test]
fn whom_the_service_lets_in_the_backend_is_told_of_and_its_cookies_reach_the_client() {
    let service = Service::saying(YES);
    let door = door(&service, "", ALL);
    let lines = "X-User: root\r\nX_User: root\r\nx-user: root\r\nX-Groups: admin\r\nConnection: X-User\r\n\
                 Cookie: s=0\r\nX-Forwarded-Uri: /other\r\nX-Forwarded-For: 9.9.9.9\r\nIf-None-Match: x\r\n";
    let answer = door.client().ask(&format!(
        "{}hello",
        request(
            "POST",
            "/a/x/%2e%2E/%62?c=d",
            &format!("{lines}Content-Type: text/plain\r\nContent-Length: 5\r\n")
        )
    ));
    assert_eq!((answer.status, &*answer.text()), (200, "Hello from web"));
    let cookies: Vec<&str> = answer.head.lines().filter(|line| line.starts_with("Set-Cookie")).collect();
    assert_eq!(cookies, ["Set-Cookie: s=1", "Set-Cookie: t=2"]);
    let sent = door.web.take_requests().remove(0);
    assert_eq!(
        (sent.header("X-User"), sent.header("X-Groups")),
        (vec!["anna".to_owned()], vec!["a".to_owned(), "b".to_owned()])
    );
    assert!(sent.header("X_User").is_empty() && sent.header("X-Other").is_empty());
    assert_eq!(&*sent.body, b"hello");
    assert!(sent.head.starts_with(b"POST /a/b?c=d HTTP/1.1\r\n"));
    let asked = service.asked().remove(0);
    assert!(asked.starts_with("GET /verify?a=b HTTP/1.1\r\n"), "{asked}");
    for line in [
        "X-Forwarded-Method: POST\r\n",
        // What the backend gets, and not what was sent.
        "X-Forwarded-Uri: /a/b?c=d\r\n",
        "X-Forwarded-Host: h.example\r\n",
        "X-Forwarded-Proto: http\r\n",
        "X-Forwarded-For: 127.0.0.1\r\n",
        "Cookie: s=0\r\n",
    ] {
        assert!(asked.contains(line), "{line} in {asked}");
    }
    for name in ["Content-Length", "Content-Type", "If-None-Match", "/other", "9.9.9.9", "root", "hello"] {
        assert!(!asked.contains(name), "{name} in {asked}");
    }
}

#[test]
fn any_other_answer_is_the_clients() {
    let answers = [
        ("302 Found", "Location: https://login.example/\r\nSet-Cookie: n=1\r\nContent-Length: 0\r\n\r\n"),
        ("401 Unauthorized", "WWW-Authenticate: Bearer\r\nX-User: anna\r\nContent-Length: 4\r\n\r\nnope"),
        ("403 Forbidden", "Connection: close, X-Hop\r\nX-Hop: 1\r\n\r\nclosed"),
        ("404 Not Found", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n"),
        ("500 Internal Server Error", "Content-Length: 0\r\n\r\n"),
    ];
    let service = Service::new(move |head| {
        let place: usize = head.lines().find_map(|line| line.strip_prefix("X-Case: ")?.parse().ok()).unwrap();
        let (status, rest) = answers[place];
        format!("HTTP/1.1 {status}\r\n{rest}").into_bytes()
    });
    let door = door(&service, "", ALL);
    let mut client = door.client();
    // The one that ends with its connection is delimited by that.
    for (place, status, body) in
        [(0, 302, ""), (1, 401, "nope"), (3, 404, "abc"), (4, 500, ""), (1, 401, "nope")]
    {
        let lines = format!("X-Case: {place}\r\n");
        let answer = client.ask(&request("GET", "/", &lines));
        assert_eq!((answer.status, &*answer.text()), (status, body), "{}", answer.head);
        assert!(cause(&answer).is_empty() && answer.header("Transfer-Encoding").is_none());
        match place {
            0 => assert_eq!(answer.header("Set-Cookie"), Some("n=1")),
            1 => assert_eq!(answer.header("WWW-Authenticate"), Some("Bearer")),
            _ => {}
        }
        client.send(request("HEAD", "/", &lines));
        let head = client.answer_to_head();
        assert_eq!((head.status, head.header("Content-Length").unwrap()), (status, &*body.len().to_string()));
    }
    assert!(door.web.take_requests().is_empty());
}

#[test]
fn a_service_that_is_dead_slow_or_talks_nonsense_lets_nobody_in() {
    let reserved = Reserved::new();
    let gone = SocketAddr::from(([127, 0, 0, 1], reserved.number()));
    let long = vec![b'x'; 300 * 1024];
    let service = Service::new(move |head| {
        let case = head.lines().find_map(|line| line.strip_prefix("X-Case: ")).unwrap_or_default();
        match case {
            "huge" => format!("HTTP/1.1 200 OK\r\nX-User: {}\r\n\r\n", "x".repeat(200_000)).into_bytes(),
            "nonsense" => b"nonsense\r\n\r\n".to_vec(),
            "long" => {
                [format!("HTTP/1.1 403 No\r\nContent-Length: {}\r\n\r\n", long.len()).as_bytes(), &long]
                    .concat()
            }
            "cut" => Vec::new(),
            _ => b"HTTP/1.1 ".to_vec(),
        }
    });
    for (at, case, status, told) in [
        (gone, "", 503, "auth_unavailable"),
        (service.address, "huge", 502, "auth_answer"),
        (service.address, "nonsense", 502, "auth_answer"),
        (service.address, "long", 502, "auth_answer"),
        (service.address, "cut", 503, "auth_unavailable"),
        (service.address, "slow", 504, "auth_timeout"),
    ] {
        let rule = service.rule(if case == "slow" { ", timeout: 300ms" } else { ", timeout: 20s" });
        let door = Door::new(&rule, ALL, Some(at));
        let mut client = door.client();
        let post =
            format!("{}hello", request("POST", "/", &format!("X-Case: {case}\r\nContent-Length: 5\r\n")));
        let answer = client.ask(&post);
        assert_eq!((answer.status, cause(&answer)), (status, told), "{case}");
        assert_eq!(client.ask(&post).status, status, "the connection goes on: {case}");
        assert!(door.web.take_requests().is_empty(), "{case}");
    }
}

#[test]
fn nothing_of_a_body_is_sent_before_the_answer() {
    let (let_go, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let service = Service::new(move |_| {
        held.lock().unwrap().recv().unwrap();
        YES.as_bytes().to_vec()
    });
    let door = door(&service, "", ALL);
    let mut client = door.client();
    client.send(format!("{}hello", request("POST", "/", "Content-Length: 5\r\n")));
    eventually("it is asked", || service.asked().len() == 1);
    assert_eq!((door.web.connections(), door.web.take_requests().len()), (0, 0));
    let_go.send(()).unwrap();
    assert_eq!(client.answer().status, 200);
    assert_eq!(&*door.web.take_requests().remove(0).body, b"hello");
}

#[test]
fn an_open_route_takes_away_what_only_the_service_may_say() {
    let service = Service::saying(YES);
    let routes =
        "    routes:\n    - {match: {path_prefix: /in}, auth: sso, target: web}\n    - {target: web}\n";
    let door = door(&service, "", routes);
    assert_eq!(
        door.get("/open", "X-User: root\r\nX_User: root\r\nX-User-Id: 7\r\nX-GROUPS: a\r\n").status,
        200
    );
    let sent = door.web.take_requests().remove(0);
    assert!(sent.header("X-User").is_empty() && sent.header("X_User").is_empty());
    assert!(sent.header("X-Groups").is_empty() && sent.header("X-User-Id") == ["7"]);
    assert!(service.asked().is_empty());
}

#[test]
fn every_answer_of_a_route_has_the_cookies_and_copies_are_made_of_those_who_are_let_in() {
    let service = Service::new(|head| match head.contains("X-Let: in") {
        true => YES.as_bytes().to_vec(),
        false => b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n".to_vec(),
    });
    let routes = "    auth: sso\n    routes:\n    \
        - {match: {path: /r}, redirect: {to: 'https://x.example/'}}\n    \
        - {match: {path: /s}, respond: {status: 200, body: here}}\n    \
        - {match: {path: /m}, target: web, mirror: {target: shadow}}\n    \
        - {match: {path: /x}, split: {targets: {web: 1, shadow: 0}, by: {header: X-User}}}\n    - {target: web}\n";
    let door = door(&service, "", routes);
    for path in ["/r", "/s", "/m", "/x", "/"] {
        assert_eq!(door.get(path, "").status, 403, "{path}");
    }
    assert!(door.web.take_requests().is_empty() && door.shadow.take_requests().is_empty());
    for (path, status) in [("/r", 308), ("/s", 200), ("/x", 200), ("/m", 200), ("/", 200)] {
        let answer = door.get(path, "X-Let: in\r\n");
        assert_eq!((answer.status, answer.header("Set-Cookie")), (status, Some("s=1")), "{path}");
    }
    eventually("one copy comes", || !door.shadow.last_requests().is_empty());
    let copies = door.shadow.take_requests();
    assert_eq!((copies.len(), copies[0].header("X-User")), (1, vec!["anna".to_owned()]));
}
