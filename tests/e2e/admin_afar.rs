//! Configs that come over TCP: that they are taken where the config in force says so, and what they learn of the machine: nothing.

use std::net::SocketAddr;
use std::os::unix::fs::symlink;

use fake_backend::{Authority, Running};
use serde_json::{Value, json};

use super::door_lab::{CONFIGURE, Heard, OPERATE, READ, ask, bearer, door, guarded, of, tokens};
use super::support::fakes;
use super::support::process::{Process, whole};

/// What stands in files that nobody is to learn of.
const SECRET: &str = "hunter2-never-shown";
const ADMIN: &str = "listener: 127.0.0.1:0, token_file: tokens, socket: own.sock, configure_over_tcp: on";

/// A process that takes configs over TCP, with files beside its config and outside of its folder.
struct Lab {
    process: Process,
    door: SocketAddr,
    outside: tempfile::TempDir,
    config: String,
}

fn lab(backend: &Running) -> Lab {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("tokens", &tokens());
    write("notes.yaml", &format!("{SECRET}: {SECRET}\n"));
    write("broken.yaml", &format!("password: [{SECRET}\n"));
    write("variable.yaml", "name: ${HOME}\n");
    write("more.yaml", "log_format: json\n");
    write("sneaky.yaml", &format!("include: {}/shadow\n", outside.path().display()));
    std::fs::write(outside.path().join("shadow"), format!("root:{SECRET}:1\n\tx: [\n")).unwrap();
    std::fs::write(outside.path().join("fine.yaml"), "workers: 1\n").unwrap();
    let issued = Authority::new("afar").issue(["localhost"]);
    write("a.pem", &issued.cert_pem);
    write("a.key", &issued.key_pem);
    std::fs::write(outside.path().join("a.pem"), &issued.cert_pem).unwrap();
    symlink(outside.path().join("shadow"), folder.path().join("link.yaml")).unwrap();
    symlink(outside.path().join("fine.yaml"), folder.path().join("fine-link.yaml")).unwrap();
    symlink("/proc/self/environ", folder.path().join("environ.yaml")).unwrap();
    symlink(outside.path(), folder.path().join("way")).unwrap();
    let config = whole(&of(backend, ADMIN));
    write("evenkeel.yaml", &config);
    let process = Process::start_in(folder, 1);
    Lab { door: door(&process), process, outside, config }
}

impl Lab {
    fn plan(&self, text: &str) -> Heard {
        let headers = format!("{}|Content-Type: application/yaml", bearer(CONFIGURE));
        ask(self.door, "POST /api/v1/config/plan", &headers, text.as_bytes())
    }

    /// The admin socket, which the config in force names.
    fn socket(&self) -> String {
        self.process.folder().join("own.sock").display().to_string()
    }

    /// The config in force with more at its top.
    fn with(&self, more: &str) -> String {
        format!("{more}\n{}", self.config)
    }

    fn with_target(&self, more: &str) -> String {
        self.config.replace("    health_check: off\n", &format!("    health_check: off\n    {more}\n"))
    }
}

fn before<'a>(text: &'a str, part: &str) -> &'a str {
    text.split(part).next().unwrap()
}

#[test]
fn the_text_of_a_config_is_taken_where_the_config_in_force_says_so() {
    let backends = fakes(1);
    let lab = lab(&backends[0]);
    let digest = lab.process.digest();
    let heard = lab.plan(&lab.config);
    assert_eq!((heard.status, heard.body["verdict"].as_str()), (200, Some("unchanged")), "{heard:?}");
    let heard = lab.plan(&lab.config.replace("health_check: off", "health_check: {interval: 9s}"));
    assert_eq!((heard.status, heard.body["verdict"].as_str()), (200, Some("taken")), "{heard:?}");
    // Files that lie beside the config may be included, and their certificates be named.
    let heard = lab.plan(&lab.with("include: more.yaml"));
    assert_ne!(heard.body["verdict"], "refused", "{heard:?}");
    let heard = lab.plan(&lab.with_target("upstream_tls: {ca_file: a.pem}"));
    assert_eq!(heard.body["verdict"], "taken", "{heard:?}");
    let headers = |token: &str| format!("{}|Content-Type: application/yaml", bearer(token));
    for (token, status) in [(READ, 403), (OPERATE, 403), ("0123456789abcdef", 401)] {
        let heard = ask(lab.door, "POST /api/v1/config/plan", &headers(token), lab.config.as_bytes());
        assert_eq!(heard.status, status, "{heard:?}");
    }
    assert_eq!(lab.process.digest(), digest);
    // It can be taken back while it serves.
    let log = lab.process.reload(&of(&backends[0], &ADMIN.replace(": on", ": off")));
    assert!(log.contains("admin.configure_over_tcp"), "{log}");
    assert_eq!(lab.plan(&lab.config).status, 403);
}

/// Each of these texts is refused in the same words as one that names a file which is not there.
#[test]
fn a_text_from_afar_learns_nothing_of_files() {
    let backends = fakes(1);
    let lab = lab(&backends[0]);
    let digest = lab.process.digest();
    let at = |name: &str| lab.outside.path().join(name).display().to_string();
    let included = |file: &str| lab.with(&format!("include: \"{file}\""));
    let served =
        |cert: &str, key: &str| lab.with_target(&format!("tls: {{cert_file: {cert}, cert_key: {key}}}"));
    let logged = |file: &str| lab.config.replace("path: access.log", &format!("path: {file}"));
    let token_file = |file: &str| lab.config.replace("token_file: tokens", &format!("token_file: {file}"));
    let keyed = |file: &str| lab.with_target(&format!("sticky: {{cookie: c, key_file: {file}}}"));
    let told = |text: &str| {
        let heard = lab.plan(text);
        assert_eq!(
            (heard.status, &heard.body["verdict"]),
            (200, &Value::from("refused")),
            "{text}: {heard:?}"
        );
        let all = heard.body.to_string();
        for secret in [SECRET, "root:", "hunter2", CONFIGURE, "PATH=", "No such file", "os error", "exist"] {
            assert!(!all.contains(secret), "{text} tells `{secret}`: {all}");
        }
        let problems = heard.body["problems"].as_array().unwrap();
        let messages: Vec<String> =
            problems.iter().map(|one| format!("{} {}", one["message"], one["note"])).collect();
        assert_eq!(messages.len(), 1, "{text}: {all}");
        assert!(messages[0].contains("a file that can't be used here"), "{text}: {all}");
        messages[0].clone()
    };
    let absent = told(&included("absent.yaml"));
    let texts = [
        included("/etc/shadow"),
        included("/etc/passwd"),
        included(&at("shadow")),
        included(&at("fine.yaml")),
        included(&at("absent")),
        included(&at("*")),
        included("/etc/pass*"),
        included("*.yaml"),
        included("way/fine.yaml"),
        included("way/*"),
        included("link.yaml"),
        included("fine-link.yaml"),
        included("environ.yaml"),
        included("/proc/self/environ"),
        included("/dev/fd/0"),
        included("notes.yaml"),
        included("broken.yaml"),
        included("variable.yaml"),
        included("sneaky.yaml"),
        included("tokens"),
        included("a.key"),
        included("../"),
        included("."),
        included(&format!("../{}/fine.yaml", lab.outside.path().file_name().unwrap().display())),
        lab.with_target("upstream_tls: {ca_file: /etc/shadow}"),
        lab.with_target("upstream_tls: {ca_file: /etc/ssl/certs/ca-certificates.crt}"),
        lab.with_target(&format!("upstream_tls: {{ca_file: {}}}", at("a.pem"))),
        lab.with_target("upstream_tls: {ca_file: tokens}"),
        lab.with_target("upstream_tls: {ca_file: notes.yaml}"),
        lab.with_target("upstream_tls: {ca_file: absent.pem}"),
        logged("/etc/shadow"),
        logged(&at("new.log")),
        logged("tokens"),
        logged("evenkeel.yaml"),
        logged("new.log"),
        token_file("/etc/shadow"),
        token_file("notes.yaml"),
        token_file("absent"),
        keyed("/etc/shadow"),
        keyed("tokens"),
        lab.with(&format!("state_dir: {}", at("fine.yaml"))),
        lab.config.replace("socket: own.sock", &format!("socket: {}", at("s"))),
        lab.config.replace("listener: 127.0.0.1:0\n", &format!("listener: unix:{}\n", at("s"))),
        lab.config.replace("backends: [", "backends: [{url: \"unix:/run/docker.sock\"}, "),
        // Of the process itself: who comes over it has every right.
        lab.config.replace("backends: [", &format!("backends: [{{url: \"unix:{}\"}}, ", lab.socket())),
        format!("{}servers: [\"unix:/run/docker.sock\"]\n", before(&lab.config, "targets:")),
    ];
    for text in texts {
        assert_eq!(told(&text), absent, "{text}");
    }
    let https = |text: String| text.replace("protocol: http\n", "protocol: https\n");
    for (cert, key) in
        [("/etc/shadow", "/etc/shadow"), ("a.pem", "a.key"), ("a.pem", "tokens"), ("a.pem", "/etc/shadow")]
    {
        let heard = lab.plan(&https(served(cert, key)));
        assert_eq!(heard.body["verdict"], "refused", "{cert} {key}: {heard:?}");
        let all = heard.body.to_string();
        assert!(!all.contains(SECRET) && !all.contains("PEM") && !all.contains("os error"), "{all}");
    }
    assert_eq!(lab.process.digest(), digest);
    let said = lab.process.said().join("\n");
    assert!(!said.contains(SECRET), "{said}");
}

#[test]
fn a_text_from_afar_has_nothing_to_do_with_the_environment() {
    let backends = fakes(1);
    let lab = lab(&backends[0]);
    let home = std::env::var("PATH").unwrap();
    for text in [
        lab.with("name: \"${PATH}\""),
        lab.with("name: \"${PATH:-x}\""),
        lab.with("zone: ${XDG_RUNTIME_DIR}"),
        lab.with("x-a: &a \"${PATH}\"\nname: *a"),
        lab.with_target("host: \"${PATH}\""),
        // Nor does it learn which variables there are.
        lab.with("name: \"${NO_SUCH_VARIABLE}\""),
    ] {
        let heard = lab.plan(&text);
        let all = heard.body.to_string();
        assert_eq!((heard.status, &heard.body["verdict"]), (200, &Value::from("refused")), "{text}: {all}");
        assert!(!all.contains(&home) && !all.contains("is not set"), "{text}: {all}");
        assert!(all.contains("are not filled in where a config comes from afar"), "{text}: {all}");
    }
    let heard = lab.plan(&lab.with("include: \"${PATH}\""));
    let all = heard.body.to_string();
    assert!(all.contains("a file that can't be used here") && !all.contains(&home), "{all}");
    // A name that messages are to have is no file that is read.
    let headers = format!("{}|Content-Type: application/yaml", bearer(CONFIGURE));
    let heard = ask(lab.door, "POST /api/v1/config/plan?file=/etc/shadow", &headers, b"workers: [\n");
    assert!(heard.body["problems"][0]["file"] == "/etc/shadow", "{heard:?}");
    assert!(!heard.body.to_string().contains("root"), "{heard:?}");
}

#[test]
fn a_text_that_is_applied_from_afar_meets_the_same_fence() {
    let backends = fakes(1);
    let off = guarded(&backends[0]);
    let yaml = |token: &str| format!("{}|Content-Type: application/yaml", bearer(token));
    let text = whole(&of(&backends[0], "listener: 127.0.0.1:0, token_file: tokens"));
    for path in ["/api/v1/config/apply", "/api/v1/config/apply?confirm=1h"] {
        let heard = ask(door(&off), &format!("POST {path}"), &yaml(CONFIGURE), text.as_bytes());
        let detail = heard.body["detail"].as_str().unwrap();
        assert!(heard.status == 403 && detail.contains("admin.configure_over_tcp"), "{path}: {heard:?}");
    }
    let lab = lab(&backends[0]);
    let digest = lab.process.digest();
    let apply = |path: &str, token: &str, text: &str| {
        ask(lab.door, &format!("POST /api/v1/config/apply{path}"), &yaml(token), text.as_bytes())
    };
    let trial = || lab.process.ask("GET /api/v1/status", b"").1["process"]["trial"].clone();
    let file = || std::fs::read_to_string(lab.process.folder().join("evenkeel.yaml")).unwrap();
    let unusable = "a file that can't be used here";
    for (text, told) in [
        (lab.with("include: /etc/shadow"), unusable),
        (lab.with("include: absent.yaml"), unusable),
        (lab.with("include: environ.yaml"), unusable),
        (lab.with_target("upstream_tls: {ca_file: tokens}"), unusable),
        (lab.config.replace("path: access.log", "path: new.log"), unusable),
        (lab.config.replace("backends: [", "backends: [{url: \"unix:/run/docker.sock\"}, "), unusable),
        (lab.with("name: \"${PATH}\""), "are not filled in where a config comes from afar"),
    ] {
        for path in ["", "?confirm=1h"] {
            let heard = apply(path, CONFIGURE, &text);
            let all = heard.body.to_string();
            assert!(heard.status == 422 && all.contains(told), "{text}: {heard:?}");
            assert!(!all.contains(SECRET) && !all.contains("os error"), "{text}: {all}");
        }
    }
    let slower = lab.config.replace("health_check: off", "health_check: {interval: 9s}");
    for (token, status) in [(READ, 403), (OPERATE, 403), ("0123456789abcdef", 401)] {
        assert_eq!(apply("?confirm=1h", token, &slower).status, status);
    }
    assert_eq!((lab.process.digest(), trial(), file()), (digest, Value::Null, lab.config.clone()));
    // What may be named is taken, stays out of the file until it is confirmed, and bears the name of its token.
    let heard = apply("?confirm=1h", CONFIGURE, &slower);
    assert_eq!((heard.status, heard.body["trial"]["who"].as_str()), (200, Some("token head")), "{heard:?}");
    assert_eq!((trial()["who"].as_str(), file()), (Some("token head"), lab.config.clone()));
    for (token, status) in [(OPERATE, 403), (CONFIGURE, 200), (CONFIGURE, 409)] {
        let heard = ask(lab.door, "POST /api/v1/config/confirm", &bearer(token), b"");
        assert_eq!(heard.status, status, "{heard:?}");
    }
    assert_eq!((trial(), file()), (Value::Null, slower));
}

#[test]
fn over_tcp_nobody_adds_a_unix_socket_that_the_file_does_not_name() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokens"), tokens()).unwrap();
    let admin = "listener: 127.0.0.1:0, token_file: tokens, socket: own.sock";
    let config =
        of(&backends[0], admin).replace("backends: [", "backends: [{name: app, url: \"unix:app.sock\"}, ");
    let other = "  other:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    \
                 backends: [{name: b, url: \"unix:other.sock\"}]\n";
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(&format!("{config}{other}"))).unwrap();
    let process = Process::start_in(folder, 2);
    let door = door(&process);
    let at = |name: &str| format!("unix:{}", process.folder().join(name).display());
    let digest = process.digest();
    let ways =
        [("POST /api/v1/targets/web/backends", "url"), ("POST /goloadbalance/add_server?target=web", "host")];
    let body = |key: &str, url: &str| json!({ key: url }).to_string();
    for (line, key) in ways {
        for url in [
            "unix:/run/docker.sock",
            "unix:/run/../run/docker.sock",
            "unix:docker.sock",
            "unix:app.sock",
            &at("own.sock"),
            &at("other.sock"),
            &at("x/../app.sock"),
        ] {
            let heard = ask(door, line, &bearer(CONFIGURE), body(key, url).as_bytes());
            let detail = heard.body["detail"].as_str().unwrap();
            assert!(heard.status == 403 && detail.contains("unix socket"), "{line} {url}: {heard:?}");
        }
    }
    assert_eq!(process.digest(), digest);
    // What the file names there can be taken away and brought back, and on the machine itself any can be added.
    for (line, key) in ways {
        let removed = ask(door, "DELETE /api/v1/targets/web/backends/app", &bearer(CONFIGURE), b"");
        assert_eq!(removed.status, 200, "{removed:?}");
        let back = ask(door, line, &bearer(CONFIGURE), body(key, &at("app.sock")).as_bytes());
        assert!(matches!(back.status, 200 | 201), "{back:?}");
    }
    let any = json!({"name": "engine", "url": "unix:/run/docker.sock"}).to_string();
    let added = ask(door, ways[0].0, &bearer(CONFIGURE), any.as_bytes());
    assert_eq!(added.status, 403, "{added:?}");
    let (status, answer) = process.ask(ways[0].0, any.as_bytes());
    assert_eq!(status, 201, "{answer}");
    let nowhere = body("url", "unix:/run/docker.sock");
    let heard = ask(door, "POST /api/v1/targets/nobody/backends", &bearer(CONFIGURE), nowhere.as_bytes());
    assert_eq!(heard.status, 404, "{heard:?}");
}
