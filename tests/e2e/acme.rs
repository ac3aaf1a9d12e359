//! Certificates that are ordered: by each challenge, over restarts and reloads, from authorities that misbehave.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::AlertDescription;
use rustls::pki_types::CertificateDer;
use serde_json::Value;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::support::acme::AcmeAuthority;
use super::support::process::Process;
use super::support::tls::{BOTH, TlsSocket, alert, client_config, credulous};
use super::support::{Client, Stop, eventually, eventually_within, fakes};

/// An address that is known when somebody listens there.
pub type Place = Arc<Mutex<Option<SocketAddr>>>;

pub fn known(place: &Place) -> SocketAddr {
    eventually("somebody listens", || place.lock().unwrap().is_some());
    place.lock().unwrap().unwrap()
}

/// A listener in plain text that nobody may use, and one that orders what `entries` say.
fn config(authority: &AcmeAuthority, more: &str, entries: &str) -> String {
    format!(
        "state_dir: state\nacme: {{directory: \"{}\"{more}}}\nlisteners:\n  plain: {{bind: 127.0.0.1:0, access: {{allow: [192.0.2.0/24]}}, \
         routes: [{{redirect: {{to: \"https://x.example/\"}}}}]}}\n  front:\n    bind: 127.0.0.1:0\n    protocol: https\n    \
         tls: {{certificates: [{entries}]}}\n    routes: [{{respond: {{status: 200, body: hello}}}}]\n",
        authority.directory(),
    )
}

fn start(text: &str) -> Process {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("evenkeel.yaml"), text).unwrap();
    Process::start_in(folder, 2)
}

/// Who has issued the certificate for a name.
fn issuer(process: &Process, name: &str) -> String {
    let config = Arc::new(credulous(BOTH));
    let leaf = TlsSocket::open(process.address("front"), &config, name).unwrap().leaf();
    let (_, leaf) = X509Certificate::from_der(&leaf).unwrap();
    leaf.issuer().to_string()
}

/// Whether a client that trusts the authority is content.
pub fn is_trusted(process: &Process, authority: &AcmeAuthority, name: &str) -> bool {
    let config = Arc::new(client_config(&[&authority.pem()], BOTH, None));
    TlsSocket::open(process.address("front"), &config, name).is_ok()
}

fn certificates(process: &Process) -> Vec<Value> {
    let (status, report) = process.ask("GET /api/v1/status", b"");
    assert_eq!(status, 200, "{report}");
    let front = report["listeners"].as_array().unwrap().iter().find(|one| one["name"] == "front").unwrap();
    front["certificates"].as_array().unwrap().clone()
}

pub fn order_of(process: &Process, name: &str) -> Value {
    let all = certificates(process);
    let one = all.iter().find(|one| one["names"].as_array().unwrap().iter().any(|known| known == name));
    one.unwrap_or_else(|| panic!("no certificate for {name}: {all:?}"))["order"].clone()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// All words that a process has said to anybody.
fn all_said(process: &Process) -> String {
    let mut said = process.said().join("\n");
    for path in ["status", "config", "events", "listeners/front"] {
        said.push_str(&process.ask(&format!("GET /api/v1/{path}"), b"").1.to_string());
    }
    for words in [&["status", "--json"][..], &["check", "--all", "--config", "evenkeel.yaml"]] {
        let output = process.command(words);
        said.push_str(&String::from_utf8_lossy(&output.stdout));
        said.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    said
}

#[test]
fn an_answer_that_no_list_and_no_redirect_stops_proves_a_name_and_what_is_issued_is_kept() {
    let (plain, seen) = (Place::default(), Arc::new(Mutex::new(Vec::new())));
    let (place, notes) = (Arc::clone(&plain), Arc::clone(&seen));
    let authority = AcmeAuthority::start(Box::new(move |kind, name, token, proof| {
        assert_eq!((kind, name), ("http-01", "a.example"));
        let address = known(&place);
        let ask = |request: &str| {
            let answer = Client::connect(address).ask(request);
            (answer.status, answer.text())
        };
        let of = |path: &str| ask(&format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n"));
        let path = format!("/.well-known/acme-challenge/{token}");
        let others = [
            of("/"),
            of("/.well-known/acme-challenge/other"),
            of(&format!("{path}?a")),
            of(&format!("{path}/")),
            ask(&format!("POST {path} HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n")),
        ];
        notes.lock().unwrap().extend(others.map(|(status, _)| status));
        let got = of(&path);
        if got == (200, proof.to_owned()) { Ok(()) } else { Err(format!("{got:?}")) }
    }));
    // The client itself asks again three times; an authority may refuse more.
    authority.behave(|manners| manners.bad_nonces = 7);
    let text = config(&authority, ", contact: [ops@example.com]", "{acme: a.example}");
    let process = start(&text);
    let before = issuer(&process, "a.example");
    assert!(before.contains("evenkeel, until the authority has issued one"), "{before}");
    assert_eq!(order_of(&process, "a.example")["state"], "self_signed");
    eventually("it says which certificate is missing", || {
        process.said().iter().any(|line| line.contains("no certificate for a.example was issued yet"))
    });
    *plain.lock().unwrap() = Some(process.address("plain"));
    eventually("it is issued", || is_trusted(&process, &authority, "a.example"));
    // The list refuses everybody else as it does while no order waits.
    assert_eq!(*seen.lock().unwrap(), [403; 5]);
    assert_eq!(Client::connect(process.address("plain")).get("/.well-known/acme-challenge/x").status, 403);
    assert_eq!(authority.accounts()[0]["contact"][0], "mailto:ops@example.com");
    eventually("it is told", || order_of(&process, "a.example")["next_ms"].as_u64().is_some());
    let order = order_of(&process, "a.example");
    assert_eq!((&order["state"], &order["challenge"]), (&"issued".into(), &"http-01".into()));
    let days = (order["next_ms"].as_u64().unwrap() / 1000)
        .saturating_sub(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs())
        / (24 * 3_600);
    assert!((56..=60).contains(&days), "two thirds of 90 days: {days}");
    // What is kept is for this user alone, and no word of it is anywhere else.
    let kept: Vec<PathBuf> = files(&process.folder().join("state/acme"));
    assert_eq!(kept.len(), 2, "{kept:?}");
    let said = all_said(&process);
    for path in &kept {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
        let text = std::fs::read_to_string(path).unwrap();
        let secret = match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => {
                let kept: Value = serde_json::from_str(&text).unwrap();
                kept["credentials"]["key_pkcs8"].as_str().unwrap().to_owned()
            }
            _ => text.lines().nth(1).unwrap().to_owned(),
        };
        assert!(secret.len() > 40 && !said.contains(&secret[20..40]), "{}", path.display());
    }
    // Whoever comes after it shows the same at once, and asks for nothing.
    let orders = authority.orders().len();
    let process = Process::start_in(process.kill(), 2);
    assert!(is_trusted(&process, &authority, "a.example"));
    eventually("it knows when to renew it", || order_of(&process, "a.example")["next_ms"].is_u64());
    assert_eq!(authority.orders().len(), orders);
    assert!(!process.said().iter().any(|line| line.contains("was issued yet")));
}

/// The digest that a certificate proves a name by (RFC 8737 §3).
fn proven(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let (_, certificate) = X509Certificate::from_der(certificate).unwrap();
    let extension =
        certificate.extensions().iter().find(|one| one.oid.to_id_string() == "1.3.6.1.5.5.7.1.31")?;
    assert!(extension.critical);
    Some(extension.value[2..].to_vec())
}

#[test]
fn a_handshake_proves_a_name_while_an_order_waits_and_never_one_that_passes_through() {
    let (front, asked) = (Place::default(), Arc::new(AtomicUsize::new(0)));
    let (place, count) = (Arc::clone(&front), Arc::clone(&asked));
    let through = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = through.local_addr().unwrap();
    let speaking = |protocols: &[&str]| {
        let mut config = credulous(BOTH);
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    };
    let open = move |address, name: &str, protocols: &[&str]| {
        let socket = TlsSocket::open(address, &speaking(protocols), name);
        socket.map(|socket| (socket.session.alpn_protocol().map(<[u8]>::to_vec), socket.leaf()))
    };
    let authority = AcmeAuthority::start(Box::new(move |kind, name, _, proof| {
        assert_eq!(kind, "tls-alpn-01");
        count.fetch_add(1, Ordering::Relaxed);
        let address = known(&place);
        if name == "p.example" {
            // It goes on undecrypted, whatever it asks for.
            let hello = speaking(&["acme-tls/1"]);
            let _ = std::thread::spawn(move || TlsSocket::open(address, &hello, "p.example"));
            let (mut stream, _) = through.accept().unwrap();
            let mut first = [0];
            std::io::Read::read_exact(&mut stream, &mut first).unwrap();
            return if first == [22] { Err("it went on".to_owned()) } else { Ok(()) };
        }
        // Whoever asks for anything else beside it gets what everybody gets.
        let (agreed, leaf) = open(address, name, &["acme-tls/1", "http/1.1"]).unwrap();
        assert!(agreed.as_deref() == Some(b"http/1.1") && proven(&leaf).is_none());
        let (agreed, leaf) = open(address, name, &["acme-tls/1"]).map_err(|error| error.to_string())?;
        assert_eq!(agreed.as_deref(), Some(&b"acme-tls/1"[..]));
        match proven(&leaf) {
            Some(seen) if seen == digest(&SHA256, proof.as_bytes()).as_ref() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }));
    let text =
        config(&authority, ", challenge: tls-alpn-01", "{acme: a.example}, {acme: p.example}").replace(
            "    routes: [{respond",
            "    routes: [{match: {host: p.example}, passthrough: true, target: mail}, {respond",
        ) + &format!(
            "targets:\n  mail: {{health_check: off, backends: [{{host: 127.0.0.1, port: {}}}]}}\n",
            backend.port()
        );
    let process = start(&text);
    let address = process.address("front");
    *front.lock().unwrap() = Some(address);
    eventually("it is issued", || is_trusted(&process, &authority, "a.example"));
    let said = || process.said().join("\n");
    eventually("of the other it is told why not", || said().contains("no certificate for p.example"));
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    // Nothing waits any more: nobody may ask.
    let error = open(address, "a.example", &["acme-tls/1"]).expect_err("nobody is proven");
    assert_eq!(alert(&error), Some(AlertDescription::NoApplicationProtocol));
}

#[test]
fn a_program_proves_names_with_a_star_in_dns() {
    let folder = tempfile::tempdir().unwrap();
    let zone = folder.path().join("zone");
    let script = format!(
        "#!/bin/sh\ncase $1 in\nadd) echo \"$2 $3\" >> {0} ;;\nremove) sed -i \"/ $3$/d\" {0} ;;\nesac\n",
        zone.display()
    );
    let hook = folder.path().join("hook");
    std::fs::write(&hook, script).unwrap();
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    let looked = zone.clone();
    let authority = AcmeAuthority::start(Box::new(move |kind, name, _, proof| {
        assert_eq!(kind, "dns-01");
        let value = URL_SAFE_NO_PAD.encode(digest(&SHA256, proof.as_bytes()));
        let record = format!("_acme-challenge.{} {value}", name.trim_start_matches("*."));
        let zone = std::fs::read_to_string(&looked).unwrap_or_default();
        if zone.lines().any(|line| line == record) { Ok(()) } else { Err(format!("no {record} in {zone}")) }
    }));
    let more = format!(", dns_hook: {}, dns_wait: 0s", hook.display());
    let process = start(&config(&authority, &more, "{acme: ['*.a.example', a.example], key_type: rsa-2048}"));
    eventually("it is issued", || is_trusted(&process, &authority, "x.a.example"));
    assert!(is_trusted(&process, &authority, "a.example"));
    eventually("what was added is taken away", || std::fs::read_to_string(&zone).unwrap().is_empty());
    assert_eq!(certificates(&process)[0]["key"], "RSA 2048");
}

#[test]
fn renewals_come_in_time_and_no_handshake_notices() {
    let plain = Place::default();
    let authority = AcmeAuthority::looking_at(Arc::clone(&plain));
    authority.behave(|manners| manners.life = Duration::from_secs(10));
    let process = start(&config(&authority, "", "{acme: a.example}"));
    *plain.lock().unwrap() = Some(process.address("plain"));
    eventually("it is issued", || is_trusted(&process, &authority, "a.example"));
    let (stop, handshakes) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let stop_it = Stop(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert!(is_trusted(&process, &authority, "a.example"), "{:#?}", process.said());
                    handshakes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        eventually_within(Duration::from_secs(60), "it is renewed twice", || authority.issued() >= 3);
        drop(stop_it);
    });
    assert!(handshakes.load(Ordering::Relaxed) > 100);
    let replaced = authority.orders().into_iter().map(|(_, replaces)| replaces.is_some()).collect::<Vec<_>>();
    assert_eq!(replaced[..3], [false, true, true], "each names the one that it comes after");
    assert!(process.reloads().is_empty(), "nothing is loaded again");
}

#[test]
fn an_authority_says_when_to_renew_and_is_obeyed() {
    let plain = Place::default();
    let authority = AcmeAuthority::looking_at(Arc::clone(&plain));
    let process = start(&config(&authority, "", "{acme: a.example}"));
    // Of the first one it will say that its time is over.
    authority.behave(|manners| manners.window = Some((-200, 0)));
    *plain.lock().unwrap() = Some(process.address("plain"));
    eventually("it is renewed at once", || authority.issued() == 2);
    eventually("the new one holds", || {
        let order = order_of(&process, "a.example");
        order["is_busy"] == false && order["next_ms"].as_u64() > Some(1)
    });
    assert_eq!(authority.issued(), 2, "and no more than once");
}

#[test]
fn an_authority_that_refuses_is_told_of_and_left_alone() {
    let plain = Place::default();
    let authority = AcmeAuthority::looking_at(Arc::clone(&plain));
    authority.behave(|manners| manners.refuses_orders = Some((429, "rateLimited", Some(4_000))));
    let process = start(&config(&authority, "", "{acme: [a.example, b.example]}"));
    eventually("it is told", || order_of(&process, "a.example")["failures"] == 1);
    let order = order_of(&process, "a.example");
    let error = order["last_error"].as_str().unwrap();
    assert_eq!(error, "the order was refused: not now (rateLimited)");
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let wait = order["next_ms"].as_u64().unwrap().saturating_sub(now) / 1000;
    assert!((3_500..=4_000).contains(&wait), "as it wants: {wait}");
    let is_it = |line: &String| line.contains("no certificate for a.example, b.example: ");
    eventually("it is said", || process.said().iter().any(is_it));
    let (status, metrics) = (process.ask("GET /metrics", b"").0, text_of(&process, "/metrics"));
    assert_eq!(status, 200);
    let overdue = metrics.lines().find(|line| line.starts_with("evenkeel_certificate_renewal_overdue{"));
    assert!(overdue.is_some_and(|line| line.ends_with(" 1")), "{overdue:?}");
    assert!(issuer(&process, "a.example").contains("until the authority"));
    // Whoever is started anew waits as long as before the authority is asked again.
    let orders = authority.orders().len();
    let process = Process::start_in(process.kill(), 2);
    eventually("it knows when", || order_of(&process, "a.example")["next_ms"].is_u64());
    let wait = order_of(&process, "a.example")["next_ms"].as_u64().unwrap().saturating_sub(now) / 1000;
    assert!(wait >= 50, "{wait}");
    assert_eq!(authority.orders().len(), orders);
}

fn text_of(process: &Process, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::os::unix::net::UnixStream::connect(process.socket()).unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn reloads_begin_orders_and_end_them_and_what_was_issued_stays() {
    let (plain, held) = (Place::default(), Arc::new(AtomicBool::new(false)));
    let (place, holding) = (Arc::clone(&plain), Arc::clone(&held));
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&tokens);
    let authority = AcmeAuthority::start(Box::new(move |_, name, token, proof| {
        let address = known(&place);
        let path = format!("/.well-known/acme-challenge/{token}");
        let of = || Client::connect(address).get(&path);
        let got = of();
        seen.lock().unwrap().push((name.to_owned(), path.clone()));
        if name == "slow.example" {
            eventually("it is let go", || holding.load(Ordering::Relaxed));
        }
        if got.text() == proof { Ok(()) } else { Err(format!("{}", got.status)) }
    }));
    let text = |entries: &str| config(&authority, "", entries) + "watch: off\n";
    let process = start(&text("{acme: a.example}"));
    let address = process.address("plain");
    *plain.lock().unwrap() = Some(address);
    eventually("it is issued", || is_trusted(&process, &authority, "a.example"));
    let reload = |entries: &str| {
        std::fs::write(process.folder().join("evenkeel.yaml"), text(entries)).unwrap();
        process.hang_up()
    };
    // Another one beside it; the first is not ordered again.
    reload("{acme: slow.example}, {acme: a.example}");
    eventually("its proof is asked for", || {
        tokens.lock().unwrap().iter().any(|(name, _)| name == "slow.example")
    });
    assert!(is_trusted(&process, &authority, "a.example"));
    let path = tokens.lock().unwrap().iter().find(|(name, _)| name == "slow.example").unwrap().1.clone();
    assert_eq!(Client::connect(address).get(&path).status, 200, "as long as the order waits");
    // Whoever is not wanted any more takes his proof along.
    reload("{acme: a.example}");
    eventually("the proof is gone", || Client::connect(address).get(&path).status == 403);
    held.store(true, Ordering::Relaxed);
    assert!(is_trusted(&process, &authority, "a.example"));
    // An account that is not known any more is made anew.
    authority.forget_accounts();
    reload("{acme: a.example}, {acme: b.example}");
    eventually("it is issued", || is_trusted(&process, &authority, "b.example"));
    assert!(
        files(&process.folder().join("state/acme")).iter().any(|path| path.ends_with("account.json.lost"))
    );
    let names: Vec<String> = authority.orders().into_iter().map(|(names, _)| names[0].clone()).collect();
    assert_eq!(names, ["a.example", "slow.example", "b.example"]);
}

#[test]
fn a_listener_with_one_route_and_nothing_else_gives_proofs_too_and_all_else_to_its_backend() {
    let (plain, others) = (Place::default(), Arc::new(Mutex::new(Vec::new())));
    let (place, notes) = (Arc::clone(&plain), Arc::clone(&others));
    let authority = AcmeAuthority::start(Box::new(move |_, _, token, proof| {
        let address = known(&place);
        let of = |path: &str| Client::connect(address).get(path);
        notes.lock().unwrap().push(of("/.well-known/acme-challenge/other").text());
        let got = of(&format!("/.well-known/acme-challenge/{token}"));
        if got.text() == proof { Ok(()) } else { Err(got.text()) }
    }));
    let backend = &fakes(1)[0];
    let text = config(&authority, "", "{acme: a.example}").replace(
        "access: {allow: [192.0.2.0/24]}, routes: [{redirect: {to: \"https://x.example/\"}}]",
        "routes: [{target: web}]",
    ) + &format!(
        "targets:\n  web: {{health_check: off, backends: [{{host: 127.0.0.1, port: {}}}]}}\n",
        backend.port()
    );
    let process = start(&text);
    *plain.lock().unwrap() = Some(process.address("plain"));
    eventually("it is issued", || is_trusted(&process, &authority, "a.example"));
    assert!(others.lock().unwrap()[0].contains("fake-1"), "{others:?}");
}

/// Whoever no list lets in takes no place of those whom one does.
#[test]
fn who_may_ask_for_a_proof_takes_nobodys_place_and_gets_one_answer() {
    let (plain, done) = (Place::default(), Arc::new(AtomicBool::new(false)));
    let (place, seen) = (Arc::clone(&plain), Arc::clone(&done));
    let authority = AcmeAuthority::start(Box::new(move |_, _, token, proof| {
        let address = known(&place);
        let mut strangers: Vec<Client> = (0..8).map(|_| Client::connect(address)).collect();
        for stranger in &mut strangers {
            assert_eq!(stranger.get("/").status, 403);
            assert!(stranger.is_closed(), "one answer, and no more");
        }
        let held: Vec<Client> = (0..8).map(|_| Client::connect(address)).collect();
        let mut friend = Client::connect_from([127, 0, 0, 2].into(), address);
        assert_eq!(friend.get("/").status, 302, "there is room for those who may come in");
        drop(held);
        seen.store(true, Ordering::Relaxed);
        let got = Client::connect(address).get(&format!("/.well-known/acme-challenge/{token}"));
        if got.text() == proof { Ok(()) } else { Err(got.text()) }
    }));
    let text = config(&authority, "", "{acme: a.example}")
        .replace("allow: [192.0.2.0/24]}", "allow: [127.0.0.2]}, limits: {connections: 4}")
        .replace("redirect: {to:", "redirect: {status: 302, to:");
    let process = start(&text);
    *plain.lock().unwrap() = Some(process.address("plain"));
    eventually("it is issued", || is_trusted(&process, &authority, "a.example"));
    assert!(done.load(Ordering::Relaxed));
}

#[test]
fn what_was_issued_is_shown_for_its_names_until_another_certificate_for_them_is_there() {
    let (plain, refusing) = (Place::default(), Arc::new(AtomicBool::new(false)));
    let (place, refuses) = (Arc::clone(&plain), Arc::clone(&refusing));
    let authority = AcmeAuthority::start(Box::new(move |_, _, token, proof| {
        let got = Client::connect(known(&place)).get(&format!("/.well-known/acme-challenge/{token}"));
        let is_right = got.text() == proof && !refuses.load(Ordering::Relaxed);
        if is_right { Ok(()) } else { Err("no".to_owned()) }
    }));
    let text = |entries: &str| config(&authority, "", entries) + "watch: off\n";
    let process = start(&text("{acme: [a.example, b.example]}"));
    *plain.lock().unwrap() = Some(process.address("plain"));
    eventually("it is issued", || is_trusted(&process, &authority, "a.example"));
    refusing.store(true, Ordering::Relaxed);
    let reload = |entries: &str| {
        std::fs::write(process.folder().join("evenkeel.yaml"), text(entries)).unwrap();
        process.hang_up();
    };
    // In another order it is the same one.
    reload("{acme: [b.example, a.example]}");
    assert!(is_trusted(&process, &authority, "a.example") && authority.orders().len() == 1);
    for (entries, orders) in
        [("{acme: [a.example, new.example]}", 2), ("{acme: a.example, key_type: ecdsa-p384}", 3)]
    {
        reload(entries);
        assert!(is_trusted(&process, &authority, "a.example"), "{entries}");
        // Whatever is wanted no more before it is ordered never is.
        eventually("it is ordered", || authority.orders().len() == orders);
    }
    // Over a restart, too.
    let process = Process::start_in(process.kill(), 2);
    assert!(is_trusted(&process, &authority, "a.example"));
}

/// An authority may ask about whatever it likes: what is proven is what was ordered.
#[test]
fn names_that_were_not_ordered_are_not_proven() {
    let authority = AcmeAuthority::start(Box::new(|_, _, _, _| Ok(())));
    authority.behave(|manners| manners.asks_about = Some("other.example\nupdate delete x"));
    let process = start(&config(&authority, "", "{acme: a.example}"));
    eventually("it is told", || order_of(&process, "a.example")["failures"] == 1);
    let order = order_of(&process, "a.example");
    assert_eq!(order["last_error"], "the authority asks about a name that was not ordered");
}
