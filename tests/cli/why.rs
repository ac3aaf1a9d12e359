//! `evenkeel why`, as somebody asks who was shown an error.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::{Started, evenkeel, outcome};

#[test]
fn an_error_is_explained_by_its_id_in_eighty_columns() {
    let folder = tempfile::tempdir().unwrap();
    let (config, socket) = (folder.path().join("evenkeel.yaml"), folder.path().join("admin.sock"));
    let text = format!(
        "watch: off\nstate_dir: {}\nadmin: {{socket: {}}}\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    \
         health_check: off\n    backends: [{{name: b1, host: 127.0.0.1, port: 1}}]\n",
        folder.path().join("state").display(),
        socket.display()
    );
    std::fs::write(&config, text).unwrap();
    let mut process = Started::new(evenkeel(&["--config", config.to_str().unwrap()]));
    let line = process.wait_for("listening ");
    let address = line.split("listening ").nth(1).unwrap().split([',', ' ']).next().unwrap().to_owned();
    let why = |words: &[&str]| outcome(&[&["why", "--socket", socket.to_str().unwrap()], words].concat());
    assert_eq!(why(&["--last"]), (Some(1), String::new(), "nothing that fits is kept\n".into()));

    let mut client = TcpStream::connect(&address).unwrap();
    client.write_all(b"GET /shop?user=secret HTTP/1.1\r\nHost: a.example\r\nUser-Agent: me\x1b[2J\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    // A control byte in a header line: refused before any of it counts.
    assert!(answer.contains("cause: bad_head"), "{answer}");
    let mut client = TcpStream::connect(&address).unwrap();
    client.write_all(b"GET /shop?user=secret HTTP/1.1\r\nHost: a.example\r\nUser-Agent: me\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    let id = answer.split("request: ").nth(1).unwrap().trim().to_owned();

    let (code, text, said) = why(&[&id]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    for part in [
        "GET a.example/shop?user=*\n503 connect_failed after ",
        "No backend could be reached. It was tried on `b1` (connect_failed).\n",
        &format!("id {id}\n"),
        "User-Agent: me\n",
        "evenkeel.yaml:7)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains("secret"));
    assert_eq!(why(&["--last", "--target", "web"]), (code, text.clone(), said));
    assert_eq!(why(&["--last", "--cause", "connect_failed"]).1, text);
    let (code, listed, _) = why(&["--cause", "connect_failed"]);
    assert!(code == Some(0) && listed.starts_with(&id) && listed.lines().count() == 3, "{listed}");
    let (code, json, _) = why(&["--json", &id]);
    let story: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &story["cause"]), (Some(0), &"connect_failed".into()));

    let (code, _, said) = why(&["--cause", "conect_failed"]);
    assert_eq!(
        (code, said.as_str()),
        (Some(2), "there is no cause `conect_failed`; did you mean `connect_failed`?\n")
    );
    let (code, _, said) = why(&[&"0".repeat(32)]);
    assert!(code == Some(1) && said.starts_with("nothing is kept of 0000"), "{said}");
    assert_eq!(why(&["--cause", "upstream_tls_name"]).0, Some(1));
    assert_eq!(why(&[&id, "--last"]).0, Some(2));
}

#[test]
fn an_empty_id_and_no_count_at_all_are_wrong_command_lines() {
    for (words, told) in
        [(&["why", ""][..], "a value is required"), (&["why", "-n", "0"], "0 is not in 1..=1000")]
    {
        let (code, out, said) = outcome(words);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{words:?}: {said}");
        assert!(said.contains(told), "{said}");
    }
}
