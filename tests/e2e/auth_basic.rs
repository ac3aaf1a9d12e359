//! Names and passwords, over real sockets.

use super::auth_lab::{Door, Users, cause, request, show};
use super::support::process::Process;

const ALL: &str = "    auth: staff\n    routes: [{target: web}]\n";

#[test]
fn only_a_good_password_lets_in_and_the_connection_goes_on() {
    let users = Users::new(&[("anna", "pw"), ("bert", "käse")]);
    let door = Door::new(&users.rule(), ALL, None);
    let mut client = door.client();
    for (lines, status, told) in [
        (String::new(), 401, "auth_required"),
        (show("anna", "pW"), 401, "auth_failed"),
        (show("nobody", "pw"), 401, "auth_failed"),
        (show("", ""), 401, "auth_failed"),
        ("Authorization: Basic !!!\r\n".to_owned(), 401, "auth_malformed"),
        ("Authorization: Basic YW5uYQ==\r\n".to_owned(), 401, "auth_malformed"),
        (show("anna", "pw") + &show("anna", "pw"), 401, "auth_malformed"),
        ("Authorization: Bearer x\r\n".to_owned(), 401, "auth_required"),
    ] {
        let answer = client.ask(&request("GET", "/", &lines));
        assert_eq!((answer.status, cause(&answer)), (status, told), "{lines}");
        assert_eq!(answer.header("WWW-Authenticate"), Some("Basic realm=\"Staff\", charset=\"UTF-8\""));
    }
    assert!(door.web.take_requests().is_empty());
    for (name, password) in [("anna", "pw"), ("anna", "pw"), ("bert", "käse")] {
        let answer = client.ask(&request("GET", "/", &show(name, password)));
        assert_eq!((answer.status, &*answer.text()), (200, "Hello from web"), "{name}");
    }
    let sent = door.web.take_requests();
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0].header("Authorization").len(), 1, "it goes on to the backend");
}

#[test]
fn who_is_gone_from_the_file_or_has_another_password_there_is_out_after_a_reload() {
    let users = Users::new(&[("anna", "pw"), ("bert", "pw")]);
    let door = Door::new(&users.rule(), ALL, None);
    let status = |name, password| door.get("/", &show(name, password)).status;
    assert_eq!([status("anna", "pw"), status("bert", "pw")], [200, 200]);
    users.write(&[("anna", "new"), ("carl", "pw")], 4);
    door.reload();
    assert_eq!([status("anna", "pw"), status("bert", "pw")], [401, 401]);
    assert_eq!([status("anna", "new"), status("carl", "pw")], [200, 200]);
}

#[test]
fn whatever_a_route_does_is_protected_and_off_opens_it() {
    let users = Users::new(&[("anna", "pw")]);
    let routes = "    auth: staff\n    routes:\n    \
        - {match: {path: /r}, redirect: {to: 'https://x.example/{user}'}}\n    \
        - {match: {path: /s}, respond: {status: 200, body: secret}}\n    \
        - {match: {path: /open}, auth: off, target: web}\n    \
        - {match: {path: /m}, target: web, mirror: {target: shadow}}\n    \
        - {match: {path: /w}, target: web, headers: {request: {set: {X-Who: '{user}'}}}}\n    \
        - {match: {path: /x}, split: {targets: {web: 1, shadow: 1}}}\n    - {target: web}\n";
    let door = Door::new(&users.rule(), routes, None);
    for path in ["/r", "/s", "/m", "/w", "/x", "/"] {
        let mut client = door.client();
        let answer = client.ask(&request("GET", path, ""));
        assert_eq!((answer.status, cause(&answer)), (401, "auth_required"), "{path}");
        client.send(request("HEAD", path, &show("anna", "no")));
        let head = client.answer_to_head();
        assert_eq!((head.status, cause(&head)), (401, "auth_failed"), "{path}");
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
        assert_eq!(client.ask(&request("GET", path, upgrade)).status, 401, "{path}");
    }
    assert!(door.web.take_requests().is_empty() && door.shadow.take_requests().is_empty());
    assert_eq!(door.get("/open", "").status, 200);
    let good = show("anna", "pw");
    assert_eq!(door.get("/r", &good).header("Location"), Some("https://x.example/anna"));
    assert_eq!(door.get("/s", &good).text(), "secret");
    let _ = door.web.take_requests();
    assert_eq!(door.get("/w", &(good.clone() + "X-Who: me\r\n")).status, 200);
    assert_eq!(door.web.take_requests().remove(0).header("X-Who"), ["anna"]);
    assert_eq!(door.get("/m", &good).status, 200);
    super::support::eventually("the copy comes", || door.shadow.requests() > 0);
}

#[test]
fn a_body_of_somebody_unknown_goes_nowhere_and_pipelined_requests_are_answered_in_order() {
    let users = Users::new(&[("anna", "pw")]);
    let door = Door::new(&users.rule(), ALL, None);
    let mut client = door.client();
    let post =
        |lines: &str| format!("{}hello", request("POST", "/p", &format!("{lines}Content-Length: 5\r\n")));
    client.send([post(""), post(&show("anna", "pw")), request("GET", "/g", &show("bert", "pw"))].concat());
    assert_eq!([client.answer().status, client.answer().status, client.answer().status], [401, 200, 401]);
    let sent = door.web.take_requests();
    assert_eq!((sent.len(), &*sent[0].body), (1, &b"hello"[..]));
}

#[test]
fn of_one_client_two_passwords_wait_and_the_others_are_told_to_come_again() {
    let users = Users::new(&[]);
    users.write(&[("anna", "pw")], 8);
    let door = Door::new(&users.rule(), ALL, None);
    let mut clients: Vec<_> = (0..16).map(|_| door.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(request("GET", "/", &show("anna", &format!("wrong {number}"))));
    }
    let answers: Vec<_> = clients.iter_mut().map(|client| client.answer()).collect();
    let busy: Vec<_> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(!busy.is_empty() && answers.iter().all(|answer| matches!(answer.status, 401 | 429)));
    assert!(
        busy.iter().all(|answer| cause(answer) == "auth_busy" && answer.header("Retry-After") == Some("1"))
    );
    assert_eq!(clients[0].ask(&request("GET", "/", &show("anna", "pw"))).status, 200);
}

#[test]
fn the_log_says_who_it_was() {
    let users = Users::new(&[("anna", "pw")]);
    let web = super::support::fakes(1).remove(0);
    let config = format!(
        "{}listeners: {{front: {{bind: '127.0.0.1:0', auth: staff, routes: [target: web]}}}}\n\
         targets: {{web: {{health_check: off, backends: [{{url: 'http://{}'}}]}}}}",
        users.rule(),
        web.addr()
    );
    let process = Process::start(&config, 1);
    let mut client = super::support::Client::connect(process.address("front"));
    assert_eq!(client.ask(&request("GET", "/", &show("anna", "no"))).status, 401);
    assert_eq!(client.ask(&request("GET", "/", &show("anna", "pw"))).status, 200);
    super::support::eventually("both are logged", || process.records().len() == 2);
    let records = process.records();
    assert_eq!(
        (&records[0]["user"], &records[0]["cause"]),
        (&serde_json::Value::Null, &"auth_failed".into())
    );
    assert_eq!(records[1]["user"], "anna");
}
