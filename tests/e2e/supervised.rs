//! What whoever supervises the process is told, and gives: the protocols of sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3).

use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fake_backend::{Behaviour, Running};
use serde_json::json;

use super::support::process::{Process, whole};
use super::support::{Client, PATIENCE, eventually, fakes};
use super::upgrade_lab::Heirs;

/// Whoever supervises.
struct Supervisor {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Supervisor {
    fn at(folder: &Path) -> Supervisor {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Supervisor { socket, path }
    }

    fn hear(&self) -> String {
        let mut said = [0; 500];
        let length = self.socket.recv(&mut said).expect("something is said");
        String::from_utf8(said[..length].to_vec()).unwrap()
    }

    /// Whether nothing is said for so long.
    fn is_quiet(&self, time: Duration) -> bool {
        self.socket.set_read_timeout(Some(time)).unwrap();
        let is_quiet = self.socket.recv(&mut [0; 500]).is_err();
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        is_quiet
    }
}

fn config(backends: &[Running], listener: &str) -> String {
    format!(
        "workers: 2\nshutdown_timeout: 5s\ntargets: {{web: {{protocol: http, listener: '{listener}', health_check: off, \
         backends: [{{url: 'http://{}'}}]}}}}\n",
        backends[0].addr()
    )
}

fn written(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(text)).unwrap();
    folder
}

#[test]
fn reloads_and_the_end_are_told_in_their_order() {
    let backends = fakes(1);
    let text = config(&backends, "127.0.0.1:0");
    let folder = written(&text);
    let supervisor = Supervisor::at(folder.path());
    let process = Process::start_with(folder, 1, &[("NOTIFY_SOCKET", &supervisor.path)]);
    assert_eq!(supervisor.hear(), "READY=1\n");
    let mut latest = 0;
    let mut reloaded = |text: &str, status: &str| {
        let told = process.reload(text);
        let begun = supervisor.hear();
        let moment = begun.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("it begins with that");
        let moment: u64 = moment.trim_end().parse().unwrap();
        assert!(moment > latest);
        latest = moment;
        let outcome = supervisor.hear();
        assert!(
            outcome.starts_with(&format!("STATUS={status}")) && outcome.ends_with('\n'),
            "{outcome} {told}"
        );
        assert_eq!(supervisor.hear(), "READY=1\n");
    };
    reloaded(&format!("{text}shutdown_delay: 0s\n"), "config 2 is in force");
    reloaded("targets: {web: {protocol: htp}}", "config 2 stays in force: ");
    process.terminate();
    assert_eq!(supervisor.hear(), "STOPPING=1\n");
}

#[test]
fn a_watchdog_is_fed_until_a_worker_is_stuck_and_by_the_next_process_after_an_upgrade() {
    let backends = fakes(1);
    let folder = written(&config(&backends, "127.0.0.1:0"));
    let (supervisor, stuck) = (Supervisor::at(folder.path()), folder.path().join("stuck"));
    let variables: [(&str, &Path); 3] = [
        ("NOTIFY_SOCKET", &supervisor.path),
        ("WATCHDOG_USEC", Path::new("200000")),
        ("EVENKEEL_STUCK_WHILE", &stuck),
    ];
    let process = Process::start_with(folder, 1, &variables);
    let fed = |times: usize| {
        (0..times).for_each(|_| assert_eq!(supervisor.hear(), "WATCHDOG=1\n"));
    };
    eventually("it serves", || supervisor.hear() == "READY=1\n");
    fed(4);
    std::fs::write(&stuck, "").unwrap();
    eventually("it is told", || {
        process.said().iter().any(|line| line.contains("does nothing any more: the watchdog is not fed"))
    });
    // What was sent before that.
    eventually("nothing comes any more", || supervisor.is_quiet(Duration::from_millis(400)));
    std::fs::remove_file(&stuck).unwrap();
    fed(4);
    let (socket, mut heirs) = (process.socket(), Heirs::default());
    let answer = heirs.upgrade(&socket, &json!({}));
    eventually("the process is told", || supervisor.hear() == format!("MAINPID={}\n", answer["process"]));
    eventually("it serves", || supervisor.hear() == "READY=1\n");
    fed(4);
}

#[test]
fn sockets_of_the_supervisor_outlast_the_process_with_all_that_waits_there() {
    let backends = fakes(1);
    let bound = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = bound.local_addr().unwrap();
    let folder = written(&config(&backends, &address.to_string()));
    let process = Process::start_with_socket(folder, 1, bound.try_clone().unwrap().into());
    assert_eq!(Client::connect(address).get("/").status, 200);
    assert!(!process.said().iter().any(|line| line.contains("WARN")), "{:#?}", process.said());
    // An upgrade hands it on as what it is.
    let (socket, mut heirs) = (process.socket(), Heirs::default());
    heirs.upgrade(&socket, &json!({}));
    let mut process = process;
    eventually("the first one has ended", || process.has_ended());
    assert_eq!(Client::connect(address).get("/").status, 200);
    heirs.terminate();
    // Nobody is there, and whoever comes waits for the next one.
    let mut waiting = TcpStream::connect(address).unwrap();
    waiting.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let folder = process.kill();
    let _next = Process::start_with_socket(folder, 1, bound.try_clone().unwrap().into());
    waiting.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(Client::connect(address).get("/").status, 200);
}

#[test]
fn one_socket_for_both_families_is_for_a_listener_that_wants_both() {
    let backends = fakes(1);
    // As `ListenStream=80` binds it.
    let bound = TcpListener::bind("[::]:0").unwrap();
    let port = bound.local_addr().unwrap().port();
    let folder = written(&config(&backends, &format!("*:{port}")));
    let process = Process::start_with_socket(folder, 1, bound.try_clone().unwrap().into());
    let serves = || {
        for address in
            [SocketAddr::from(([127, 0, 0, 1], port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))]
        {
            assert_eq!(Client::connect(address).get("/").status, 200, "{address}");
        }
    };
    serves();
    assert!(!process.said().iter().any(|line| line.contains("WARN")), "{:#?}", process.said());
    let mut heirs = Heirs::default();
    heirs.upgrade(&process.socket(), &json!({}));
    serves();
    heirs.terminate();
}

#[test]
fn a_socket_that_no_listener_has_is_told_of() {
    let backends = fakes(1);
    let bound = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = written(&config(&backends, "127.0.0.1:0"));
    let address = bound.local_addr().unwrap();
    let process = Process::start_with_socket(folder, 1, bound.into());
    let told = format!("the supervisor has bound {address}, which no listener has");
    eventually("it is told", || process.said().iter().any(|line| line.contains(&told)));
}

#[test]
fn a_health_check_says_by_its_exit_code_whether_the_process_is_to_get_traffic_and_why_not() {
    let backends = fakes(1);
    backends[0].behave(Behaviour::hang());
    let text = config(&backends, "127.0.0.1:0")
        .replace("health_check: off", "health_check: {path: /, interval: 50ms, timeout: 60s}");
    let process = Process::start(&text, 1);
    let checked = |more: &[&str]| {
        let done = process.command(&[&["healthcheck"], more].concat());
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    assert_eq!(checked(&["--alive"]), (Some(0), String::new()));
    let waits = "target web: 1 of 1 backends have no verdict yet\n".to_owned();
    assert_eq!(checked(&[]), (Some(1), waits));
    backends[0].behave(Behaviour::default());
    assert!(process.reload(&text.replace("timeout: 60s", "timeout: 1s")).contains("reloaded"));
    eventually("it is ready", || checked(&[]) == (Some(0), String::new()));
    let socket = process.socket();
    drop(process);
    let nobody = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["healthcheck", "--socket"])
        .arg(&socket)
        .output()
        .unwrap();
    assert_eq!(nobody.status.code(), Some(1), "2 is no code for containers");
}

/// Found by an attack: after an upgrade the file was taken for our own, and removed at the end.
#[test]
fn the_file_of_a_unix_socket_of_the_supervisor_is_not_removed() {
    let backends = fakes(1);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("web.sock");
    let bound = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let folder = written(&config(&backends, &format!("unix:{}", path.display())));
    let process = Process::start_with_socket(folder, 1, bound.into());
    let (socket, mut heirs) = (process.socket(), Heirs::default());
    let serves = || Client::over(std::os::unix::net::UnixStream::connect(&path).unwrap()).get("/").status;
    assert_eq!(serves(), 200);
    heirs.upgrade(&socket, &json!({}));
    assert_eq!(serves(), 200);
    heirs.terminate();
    assert!(path.exists());
}
