//! Files that change are loaded by themselves: once they have come to rest, as one change, and never the half of one.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use evenkeel::net::now;
use fake_backend::{Authority, Running};

use super::support::process::Process;
use super::support::tls::{BOTH, TlsSocket, client_config, first_der};
use super::support::{Client, PATIENCE, Stop, eventually, fakes};

/// A config with one target that leads to `backend`.
fn web(backend: &Running) -> String {
    target("web", backend)
}

fn target(name: &str, backend: &Running) -> String {
    format!(
        "targets:\n  {name}:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    \
         backends: [{{host: 127.0.0.1, port: {}}}]\n",
        backend.port()
    )
}

/// As editors write: beside it, and then in its place.
fn save(file: &Path, text: &str) {
    let beside = file.with_extension("tmp");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, file).unwrap();
}

/// Each in the place of the other, at once.
fn swap(one: &Path, other: &Path) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

struct Lab {
    process: Process,
}

impl Lab {
    /// Runs with this config and these files beside it.
    fn start(config: &str, files: &[(&str, &str)], listeners: usize) -> Lab {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("evenkeel.yaml"), config).unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Lab { process: Process::start_in(folder, listeners) }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.process.folder().join(name)
    }

    fn config(&self) -> PathBuf {
        self.at("evenkeel.yaml")
    }

    fn address(&self) -> SocketAddr {
        self.process.address("web")
    }

    /// Who answers a request.
    fn answers(&self) -> String {
        Client::connect(self.address()).get("/").text()
    }

    /// What it says of the reload that is number `count`.
    fn told(&self, count: usize) -> String {
        eventually("it tells of a reload", || self.process.reloads().len() >= count);
        self.process.reloads()[count - 1].clone()
    }
}

#[test]
fn a_config_that_an_editor_saves_is_in_force_and_a_log_beside_it_is_nothing() {
    let backends = fakes(2);
    let logged = |backend: &Running| format!("access_log: {{path: access.log}}\n{}", web(backend));
    let lab = Lab::start(&logged(&backends[0]), &[], 1);
    assert_eq!(lab.answers(), "Hello from fake-1");
    save(&lab.config(), &logged(&backends[1]));
    for _ in 0..50 {
        lab.answers();
        fs::write(lab.at("notes"), "written beside it").unwrap();
    }
    assert!(
        lab.told(1).contains(&format!("+ backend web/127.0.0.1:{}", backends[1].port())),
        "{}",
        lab.told(1)
    );
    assert_eq!(lab.answers(), "Hello from fake-2");
    // In place, as `echo >` does it.
    fs::write(lab.config(), logged(&backends[0])).unwrap();
    assert!(lab.told(2).contains("reloaded: "));
    assert_eq!(lab.answers(), "Hello from fake-1");
    assert_eq!(lab.process.reloads().len(), 2);
}

#[test]
fn links_that_are_swapped_as_kubernetes_does_it_are_followed() {
    let backends = fakes(2);
    let folder = tempfile::tempdir().unwrap();
    let volume = folder.path().join("volume");
    let publish = |revision: &str, text: &str| {
        let inside = volume.join(revision);
        fs::create_dir_all(&inside).unwrap();
        fs::write(inside.join("evenkeel.yaml"), text).unwrap();
        symlink(revision, volume.join("..data_tmp")).unwrap();
        fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    };
    publish("..2026_1", &web(&backends[0]));
    symlink("..data/evenkeel.yaml", volume.join("evenkeel.yaml")).unwrap();
    symlink("volume/evenkeel.yaml", folder.path().join("evenkeel.yaml")).unwrap();
    let lab = Lab { process: Process::start_in(folder, 1) };
    assert_eq!(lab.answers(), "Hello from fake-1");
    publish("..2026_2", &web(&backends[1]));
    fs::remove_dir_all(volume.join("..2026_1")).unwrap();
    assert!(lab.told(1).contains("reloaded: "));
    assert_eq!(lab.answers(), "Hello from fake-2");
    publish("..2026_3", &web(&backends[0]));
    assert!(lab.told(2).contains("reloaded: "));
    assert_eq!(lab.answers(), "Hello from fake-1");
}

#[test]
fn a_config_that_is_gone_empty_a_folder_secret_or_far_too_large_changes_nothing_and_comes_back() {
    let backends = fakes(2);
    let lab = Lab::start(&web(&backends[0]), &[], 1);
    let file = lab.config();
    let mut count = 0;
    let mut refused = |reason: &str| {
        count += 1;
        let told = lab.told(count);
        assert!(told.contains("reload refused, nothing has changed: "), "{told}");
        assert!(told.contains(reason), "{reason}: {told}");
        assert_eq!(lab.answers(), "Hello from fake-1");
    };
    fs::remove_file(&file).unwrap();
    refused("this config file does not exist");
    save(&file, "");
    refused("this file is empty");
    fs::create_dir(lab.at("folder")).unwrap();
    swap(&file, &lab.at("folder"));
    refused("this is a folder");
    swap(&file, &lab.at("folder"));
    refused("this file is empty");
    let large = fs::File::create(lab.at("large")).unwrap();
    large.set_len(50 << 20).unwrap();
    fs::rename(lab.at("large"), &file).unwrap();
    refused("this file is larger than 16MiB");
    save(&file, "\u{1}");
    refused("evenkeel.yaml");
    // Whoever may read everything is not kept from it.
    if !rustix::process::geteuid().is_root() {
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
        refused("can't be read");
    }
    save(&file, &web(&backends[1]));
    let told = lab.told(count + 1);
    assert!(told.contains("reloaded: "), "{told}");
    assert_eq!(lab.answers(), "Hello from fake-2");
    assert_eq!(lab.process.reloads().len(), count + 1, "one line each");
}

#[test]
fn a_folder_that_is_taken_away_is_told_once_and_noticed_when_it_is_back() {
    let backends = fakes(1);
    let authority = Authority::new("test authority");
    let (one, other) = (authority.issue(["localhost"]), authority.issue(["localhost"]));
    let config = web(&backends[0]).replace("http\n", "https\n    tls: {cert_file: tls/a.pem}\n");
    let both = |issued: &fake_backend::Issued| format!("{}{}", issued.cert_pem, issued.key_pem);
    let lab = Lab::start(&config, &[("tls/a.pem", &both(&one))], 1);
    fs::rename(lab.at("tls"), lab.at("away")).unwrap();
    assert!(lab.told(1).contains("a.pem`, which does not exist"), "{}", lab.told(1));
    fs::create_dir(lab.at("tls")).unwrap();
    fs::write(lab.at("tls/a.pem"), both(&other)).unwrap();
    assert!(lab.told(2).contains("tls.cert_file: "), "{}", lab.told(2));
    let fallbacks = lab.process.said().iter().filter(|line| line.contains("are looked at every 2s")).count();
    assert_eq!(fallbacks, 1, "{:#?}", lab.process.said());
}

#[test]
fn a_certificate_and_its_key_are_swapped_as_a_pair_under_handshakes() {
    let backends = fakes(1);
    let authority = Authority::new("test authority");
    let (one, other) = (authority.issue(["localhost"]), authority.issue(["localhost"]));
    let config =
        web(&backends[0]).replace("http\n", "https\n    tls: {cert_file: tls.crt, cert_key: tls.key}\n");
    let lab = Lab::start(&config, &[("tls.crt", &one.cert_pem), ("tls.key", &one.key_pem)], 1);
    let (address, client) = (lab.address(), Arc::new(client_config(&[authority.ca_pem()], BOTH, None)));
    let leaf = move || TlsSocket::open(address, &client, "localhost").unwrap().leaf();
    let (is_over, shaken) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let end = Stop(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                leaf();
                shaken.fetch_add(1, Ordering::Relaxed);
            }
        });
        save(&lab.at("tls.crt"), &other.cert_pem);
        let told = lab.told(1);
        assert!(told.contains("reload refused, nothing has changed: "), "{told}");
        assert!(told.contains("evenkeel.yaml:4:"), "at its line: {told}");
        assert_eq!(leaf(), first_der(&one.cert_pem));
        save(&lab.at("tls.key"), &other.key_pem);
        let told = lab.told(2);
        assert!(
            told.contains("reloaded: ~ listener web tls.cert_file: ") && told.contains("tls.crt has changed"),
            "{told}"
        );
        assert!(told.contains("tls.key has changed"), "{told}");
        assert_eq!(leaf(), first_der(&other.cert_pem));
        let before = shaken.load(Ordering::Relaxed);
        eventually("handshakes go on", || shaken.load(Ordering::Relaxed) > before);
        drop(end);
    });
    assert_eq!(lab.process.reloads().len(), 2);
}

#[test]
fn a_config_that_never_rests_is_loaded_now_and_then_and_the_newest_wins() {
    let backends = fakes(2);
    let lab = Lab::start(&web(&backends[0]), &[], 1);
    let (begun, mut turns) = (now(), 0_u32);
    while lab.process.reloads().is_empty() {
        save(&lab.config(), &format!("# {turns}\n{}", web(&backends[1 - turns as usize % 2])));
        turns += 1;
        assert!(now().since(begun) < Duration::from_secs(60), "never loaded in {turns} turns");
    }
    // A second of quiet, or five: whatever the pace of this machine, no more than one in a second.
    let most = usize::try_from(now().since(begun).as_secs()).unwrap() + 1;
    assert!(lab.process.reloads().len() <= most, "{:#?}", lab.process.reloads());
    save(&lab.config(), &web(&backends[1]));
    eventually("the newest is in force", || lab.answers() == "Hello from fake-2");
}

#[test]
fn watching_is_switched_off_and_on_again_by_the_config() {
    let backends = fakes(2);
    let lab = Lab::start(&format!("watch: off\n{}", web(&backends[0])), &[], 1);
    fs::write(lab.config(), format!("watch: on\n{}", web(&backends[0]))).unwrap();
    assert!(lab.process.hang_up().contains("watch: off -> on"));
    save(&lab.config(), &format!("watch: files\n{}", web(&backends[1])));
    assert!(lab.told(2).contains("watch: on -> files"));
    assert_eq!(lab.answers(), "Hello from fake-2");
}

#[test]
fn several_files_are_one_change_and_a_pattern_notices_what_comes_and_goes() {
    let backends = fakes(2);
    let config = format!("include: conf.d/*.yaml\n{}", web(&backends[0]));
    // Each listens beside the file that it is written in.
    let other = |name: &str, backend: usize| {
        target(name, &backends[backend]).replace("127.0.0.1:0", &format!("unix:{name}.sock"))
    };
    // There is no such folder yet, and nothing is wrong with that.
    let lab = Lab::start(&config, &[], 1);
    let mut count = 0;
    let mut told = |parts: &[&str]| {
        count += 1;
        let told = lab.told(count);
        parts.iter().for_each(|part| assert!(told.contains(part), "{part}: {told}"));
    };
    fs::create_dir(lab.at("conf.d")).unwrap();
    save(&lab.at("conf.d/b.yaml"), &other("b", 0));
    told(&["reloaded: + target b: 1 backend", "conf.d/b.yaml:"]);
    let answers = |name: &str| {
        let mut socket = UnixStream::connect(lab.at(&format!("conf.d/{name}.sock"))).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer.lines().last().unwrap().to_owned()
    };
    assert_eq!(answers("b"), "Hello from fake-1");
    // As a `git pull` does it: one after the other, and one that is new.
    let begun = now();
    save(&lab.at("conf.d/b.yaml"), &other("b", 1));
    save(&lab.at("conf.d/a.yaml"), &other("a", 1));
    save(&lab.config(), &config.replace(&backends[0].port().to_string(), &backends[1].port().to_string()));
    let is_at_once = now().since(begun) < Duration::from_millis(900);
    if is_at_once {
        told(&["reloaded: ", "; and ", " more"]);
    }
    eventually("all are in force", || {
        lab.at("conf.d/a.sock").exists() && lab.answers() == "Hello from fake-2"
    });
    assert_eq!((answers("a"), answers("b")), ("Hello from fake-2".into(), "Hello from fake-2".into()));
    // A problem stands at its place in its file, and the others are as they were.
    let before = lab.process.reloads().len();
    save(&lab.at("conf.d/a.yaml"), &other("a", 0).replace("http", "htp"));
    let refused = lab.told(before + 1);
    assert!(refused.contains("conf.d/a.yaml:3:15: `protocol` is `htp`"), "{refused}");
    fs::remove_file(lab.at("conf.d/a.yaml")).unwrap();
    let gone = lab.told(before + 2);
    assert!(gone.contains("reloaded: - target a: 1 backend"), "{gone}");
    if is_at_once {
        assert_eq!(lab.process.reloads().len(), 4, "{:#?}", lab.process.reloads());
    }
}

#[test]
fn an_include_that_is_missing_refuses_the_config_until_it_is_there() {
    let backends = fakes(2);
    let lab = Lab::start(&web(&backends[0]), &[], 1);
    save(&lab.config(), &format!("include: [more.yaml]\n{}", web(&backends[1])));
    let told = lab.told(1);
    assert!(told.contains("evenkeel.yaml:1:11: `") && told.contains("more.yaml` does not exist"), "{told}");
    assert_eq!(lab.answers(), "Hello from fake-1");
    fs::write(lab.at("more.yaml"), "max_connections: 77\n").unwrap();
    let told = lab.told(2);
    assert!(told.contains("reloaded: ") && told.contains("more.yaml:1"), "{told}");
    assert_eq!(lab.answers(), "Hello from fake-2");
}
