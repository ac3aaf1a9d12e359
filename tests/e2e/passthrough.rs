//! TLS that is routed by what clients ask for, and not decrypted.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::Duration;

use evenkeel::config::model::{Config, LogFormat, SampleRequest, SendProxy};
use evenkeel::decision::decide;
use evenkeel::message::Cause;
use evenkeel::message::proxy_header::{ProxyRead, read};
use evenkeel::snapshot::Snapshots;
use fake_backend::{Authority, Behaviour, Fake, Running, TcpMode, TlsOptions, pattern};
use rustls::{AlertDescription, ClientConfig};

use super::life_lab::{LogFile, connect, read_to_end, until_ended};
use super::support::tls::{BOTH, TlsSocket, alert, client_config, first_der};
use super::support::{Keel, eventually, load};

/// Everybody's authority.
pub static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::new("test authority"));

/// First messages of programs, each for `mail.example`.
const HELLOS: [&str; 7] = [
    include_str!("../../fixtures/client_hellos/openssl.hex"),
    include_str!("../../fixtures/client_hellos/openssl-1.2.hex"),
    include_str!("../../fixtures/client_hellos/curl.hex"),
    include_str!("../../fixtures/client_hellos/python.hex"),
    include_str!("../../fixtures/client_hellos/node.hex"),
    include_str!("../../fixtures/client_hellos/go.hex"),
    include_str!("../../fixtures/client_hellos/chromium.hex"),
];

fn hello(hex: &str) -> Vec<u8> {
    let digits = hex.trim().as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// A backend that speaks TLS with a certificate for these names.
pub fn secure(id: &str, names: &[&str]) -> Running {
    let options = TlsOptions::new().authority(&AUTHORITY).names(names.iter().copied());
    Fake::http(id).tls(options).start_in_thread().unwrap()
}

/// A backend that says everything again.
pub fn echo(id: &str) -> Fake {
    Fake::tcp(id).behave(Behaviour::tcp(TcpMode::Echo))
}

/// A client that trusts the authority and offers these protocols.
pub fn offering(protocols: &[&str]) -> Arc<ClientConfig> {
    let mut config = client_config(&[AUTHORITY.ca_pem()], BOTH, None);
    config.alpn_protocols = protocols.iter().map(|one| one.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// A listener `front` with these keys, in which `TLS` stands for a certificate, and these routes, and its targets.
pub fn config_of(keys: &str, routes: &str, targets: &[(&str, SocketAddr)]) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let issued = AUTHORITY.issue(["shop.example", "*.both.example"]);
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (cert, key) = (file("a.pem", &issued.cert_pem), file("a.key", &issued.key_pem));
    let keys = keys.replace("TLS", &format!("tls: {{cert_file: {cert}, cert_key: {key}}}"));
    let target = |(name, at): &(&str, SocketAddr)| {
        let (host, port) = (at.ip(), at.port());
        format!("  {name}: {{health_check: off, backends: [{{host: {host}, port: {port}}}]}}\n")
    };
    let targets: String = targets.iter().map(target).collect();
    load(&format!(
        "listeners:\n  front:\n    bind: 127.0.0.1:0\n    {keys}\n    routes:\n{routes}\ntargets:\n{targets}rate_limits: {{few: {{rate: 1/h, burst: 2}}, some: {{rate: 1/h, burst: 4}}, of_users: {{rate: 1/h, burst: 2, by: user}}}}\nworkers: 2\n"
    ))
}

fn get(keel: &Keel, client: &Arc<ClientConfig>, name: &str) -> std::io::Result<(String, TlsSocket)> {
    let mut socket = TlsSocket::open(keel.address(), client, name)?;
    let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes())?;
    let mut text = String::new();
    socket.read_to_string(&mut text)?;
    Ok((text, socket))
}

/// Whose answer somebody gets who asks for `name`.
pub fn answer(keel: &Keel, client: &Arc<ClientConfig>, name: &str) -> String {
    let (text, _) = get(keel, client, name).unwrap();
    text.lines().last().unwrap_or_default().trim_start_matches("Hello from ").to_owned()
}

#[test]
fn each_name_goes_its_way_on_one_listener_decrypted_or_not() {
    let mail = secure("mail", &["mail.example", "x.mail.example", "x.both.example"]);
    let rest = secure("rest", &["other.example"]);
    let web = Fake::http("web").start_in_thread().unwrap();
    let routes = "
      - {match: {host: [shop.example, x.both.example]}, target: web}
      - {match: {host: [mail.example, '*.mail.example']}, passthrough: true, target: mail}
      - {match: {host: x.both.example, alpn: imap}, passthrough: true, target: mail}
      - {passthrough: true, target: rest}";
    let all = [("mail", mail.addr()), ("rest", rest.addr()), ("web", web.addr())];
    let mut config = config_of("protocol: https\n    TLS", routes, &all);
    let log = LogFile::of(&mut config, LogFormat::Json);
    let keel = Keel::start(&config);
    let client = offering(&["http/1.1"]);
    for (name, wanted) in [
        ("shop.example", "web"),
        ("mail.example", "mail"),
        ("x.mail.example", "mail"),
        ("other.example", "rest"),
        ("x.both.example", "web"),
    ] {
        assert_eq!(answer(&keel, &client, name), wanted, "{name}");
    }
    assert_eq!(answer(&keel, &offering(&["http/1.1", "imap"]), "x.both.example"), "mail");
    until_ended(&keel, Cause::Done, 6);
    drop(keel);
    let records = log.records();
    let of = |name: &str| records.iter().find(|one| one["tls_sni"] == name).unwrap();
    let mail = of("mail.example");
    assert_eq!(
        (&mail["kind"], &mail["target"], &mail["route"]),
        (&"tcp".into(), &"mail".into(), &"mail.example,*.mail.example;passthrough".into()),
        "{mail}"
    );
    assert!(mail["bytes_in"].as_u64() > Some(300) && mail["bytes_out"].as_u64() > Some(300), "{mail}");
    assert_eq!(records.iter().filter(|one| one["kind"] == "http").count(), 2);
}

#[test]
fn a_tcp_listener_passes_names_on_and_decrypts_the_rest() {
    let mail = secure("mail", &["mail.example"]);
    let echo = echo("echo").start_in_thread().unwrap();
    let routes = "
      - {match: {host: mail.example}, passthrough: true, target: mail}
      - {target: echo}";
    let tcp = [("mail", mail.addr()), ("echo", echo.addr())];
    let keel = Keel::start(&config_of("protocol: tcp\n    TLS", routes, &tcp));
    assert_eq!(answer(&keel, &offering(&["http/1.1"]), "mail.example"), "mail");
    let mut socket = TlsSocket::open(keel.address(), &offering(&[]), "shop.example").unwrap();
    let sent = pattern(100_000);
    assert_eq!(socket.exchange(&sent, |came| came.len() >= sent.len()), sent);
    assert!(socket.leaf() != first_der(AUTHORITY.ca_pem()));
}

#[test]
fn what_is_passed_through_is_whole_both_ways() {
    let options = TlsOptions::new().authority(&AUTHORITY).names(["mail.example"]);
    let echo = echo("echo").tls(options).start_in_thread().unwrap();
    let routes = "      - {passthrough: true, target: mail}";
    let keel = Keel::start(&config_of("protocol: tcp", routes, &[("mail", echo.addr())]));
    let sent = pattern(4 << 20);
    let mut first = TlsSocket::open(keel.address(), &offering(&[]), "mail.example").unwrap();
    assert!(first.exchange(&sent, |came| came.len() >= sent.len()) == sent);
    drop(first);
    until_ended(&keel, Cause::Done, 1);
}

/// A backend that keeps what it gets, of each connection until its client ends, and says one byte then.
pub struct Ear {
    pub address: SocketAddr,
    pub heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Ear {
    pub fn start() -> Ear {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, heard) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<Vec<u8>>>>::default());
        let all = Arc::clone(&heard);
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut came = Vec::new();
                let _ = stream.read_to_end(&mut came);
                all.lock().unwrap().push(came);
                let _ = stream.write_all(b"!");
            }
        });
        Ear { address, heard }
    }

    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }
}

fn whole(keel: &Keel, pieces: &[&[u8]]) {
    let mut socket = connect(keel.address());
    socket.set_nodelay(true).unwrap();
    pieces.iter().for_each(|piece| socket.write_all(piece).unwrap());
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut socket).unwrap(), b"!");
}

#[test]
fn recorded_hellos_arrive_byte_for_byte_wherever_they_are_split() {
    let ear = Ear::start();
    let routes = "      - {match: {host: mail.example}, passthrough: true, target: mail}";
    let keel = Keel::start(&config_of("protocol: tcp", routes, &[("mail", ear.address)]));
    for hex in HELLOS {
        let hello = hello(hex);
        // Behind a hello more may come at once, as with 0-RTT.
        let sent = [&hello[..], b"and what comes behind"].concat();
        for at in 1..hello.len() {
            whole(&keel, &[&sent[..at], &sent[at..]]);
        }
        let bytes: Vec<&[u8]> = sent.chunks(1).collect();
        whole(&keel, &bytes);
        let heard = ear.take();
        assert_eq!(heard.len(), hello.len());
        assert!(heard.iter().all(|one| *one == sent), "something else arrived");
    }
}

#[test]
fn a_name_that_nobody_has_gets_an_alert_of_its_own() {
    let ear = Ear::start();
    let routes = "      - {match: {host: mail.example, alpn: h2}, passthrough: true, target: mail}";
    for keys in ["protocol: tcp", "protocol: https"] {
        let keel = Keel::start(&config_of(keys, routes, &[("mail", ear.address)]));
        for (name, protocols) in [("other.example", ["h2"]), ("mail.example", ["http/1.1"])] {
            let error = TlsSocket::open(keel.address(), &offering(&protocols), name).err().unwrap();
            assert_eq!(alert(&error), Some(AlertDescription::UnrecognisedName), "{name}: {error}");
        }
        until_ended(&keel, Cause::UnknownSni, 2);
        assert_eq!(ear.take().len(), 0);
    }
}

#[test]
fn whoever_speaks_plain_http_to_a_listener_for_https_is_told_so() {
    let ear = Ear::start();
    let routes = "      - {passthrough: true, target: mail}";
    let keel = Keel::start(&config_of("protocol: https", routes, &[("mail", ear.address)]));
    let answer = keel.client().get("/");
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("plain_http"), "{}", answer.text());
    // To one for bytes it is no TLS like any other.
    let keel = Keel::start(&config_of("protocol: tcp", routes, &[("mail", ear.address)]));
    let mut socket = connect(keel.address());
    socket.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(read_to_end(&mut socket).unwrap(), [21, 3, 3, 0, 2, 2, 50]);
    until_ended(&keel, Cause::TlsHandshake, 1);
    assert_eq!(ear.take().len(), 0);
}

#[test]
fn hostile_hellos_end_by_a_limit_or_by_the_deadline() {
    let ear = Ear::start();
    let routes = "      - {passthrough: true, target: mail}";
    let mut config = config_of("protocol: tcp", routes, &[("mail", ear.address)]);
    let keel = Keel::start(&config);
    let decode_error = [21, 3, 3, 0, 2, 2, 50];
    let record = |content: &[u8]| [&[22, 3, 1][..], &(content.len() as u16).to_be_bytes(), content].concat();
    let zero_length = [22, 3, 1, 0, 0].repeat(10);
    let long_message = record(&[1, 0, 0x80, 1]);
    // Records that never say more than their head.
    let tiny: Vec<u8> = [&record(&[1, 0, 0x7f, 0xff])[..], &record(&[0]).repeat(12_000)].concat();
    let too_long_record = [22, 3, 1, 0x40, 1];
    let other_message = record(&[2, 0, 0, 1, 0]);
    let refused: [&[u8]; 5] = [&zero_length, &long_message, &tiny, &too_long_record, &other_message];
    for (place, bytes) in refused.iter().enumerate() {
        let mut socket = connect(keel.address());
        // It may be cut in the middle.
        let _ = socket.write_all(bytes);
        let came = read_to_end(&mut socket).unwrap_or_else(|came| came);
        assert!(came == decode_error, "{place}: {came:?}");
    }
    until_ended(&keel, Cause::TlsHandshake, 5);
    config.listeners[0].client_timeouts.tls = Duration::from_secs(2);
    let keel = Keel::start(&config);
    let whole = hello(HELLOS[6]);
    let half = &whole[..whole.len() / 2];
    let mut socket = connect(keel.address());
    socket.write_all(half).unwrap();
    assert_eq!(read_to_end(&mut socket), Ok(Vec::new()));
    until_ended(&keel, Cause::TlsTimeout, 1);
    // Gone in the middle.
    let mut socket = connect(keel.address());
    socket.write_all(half).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut socket), Ok(Vec::new()));
    until_ended(&keel, Cause::ClientGone, 1);
    // Silence leaves nothing, neither a record nor a connection.
    drop(connect(keel.address()));
    eventually("nobody is there", || keel.server.connections() == 0);
    assert_eq!(ear.take().len(), 0);
}

#[test]
fn a_backend_is_told_who_passes_through_and_what_for() {
    let ear = Ear::start();
    let routes = "      - {passthrough: true, target: mail}";
    let mut config = config_of("protocol: tcp", routes, &[("mail", ear.address)]);
    config.targets[0].send_proxy = Some(SendProxy::V2);
    let keel = Keel::start(&config);
    let sent = hello(HELLOS[6]);
    let mut socket = connect(keel.address());
    let own = socket.local_addr().unwrap();
    socket.write_all(&sent).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut socket).unwrap(), b"!");
    let heard = ear.take();
    let ProxyRead::Header(header, length) = read(&heard[0]) else { panic!("{heard:?}") };
    assert_eq!(header.addresses, Some((own, keel.address())));
    assert_eq!(header.told.authority(), Some(&b"mail.example"[..]));
    assert!(heard[0][length..] == sent);
}

/// Two at once on the same worker: while one drips, others are served.
#[test]
fn a_hello_that_drips_holds_up_nobody() {
    let mail = secure("mail", &["mail.example"]);
    let routes = "      - {passthrough: true, target: mail}";
    let mut config = config_of("protocol: tcp", routes, &[("mail", mail.addr())]);
    config.workers = 1;
    let keel = Keel::start(&config);
    let sent = hello(HELLOS[0]);
    let mut slow: Vec<TcpStream> = (0..20).map(|_| connect(keel.address())).collect();
    for byte in &sent[..100] {
        slow.iter_mut().for_each(|socket| socket.write_all(&[*byte]).unwrap());
    }
    let client = offering(&["http/1.1"]);
    for _ in 0..20 {
        assert_eq!(answer(&keel, &client, "mail.example"), "mail");
    }
}

#[test]
fn where_a_name_goes_can_be_asked_and_expected() {
    let at: SocketAddr = ([127, 0, 0, 1], 9).into();
    let routes = "
      - {match: {host: shop.example}, target: web}
      - {name: post, match: {host: mail.example}, passthrough: true, target: mail, access: {deny: 10.0.0.0/8}}
      - {match: {host: '*.example', alpn: h2}, passthrough: true, target: rest}";
    let all = [("mail", at), ("rest", at), ("web", at)];
    let config = config_of("protocol: https\n    TLS", routes, &all);
    let draft = Snapshots::new().prepare(&config);
    let explained = |url: &str, from: [u8; 4]| {
        let mut request = SampleRequest::new("GET", url).unwrap();
        request.from = from.into();
        let chain = decide(&draft.snapshot().listeners, &request).unwrap();
        format!("{:?} {}", chain.route, chain.verdict)
    };
    for (url, from, wanted) in [
        ("https://shop.example/a", [192, 0, 2, 1], "Some(\"shop.example\") goes to `web` as /a"),
        ("https://mail.example/a", [192, 0, 2, 1], "Some(\"post\") goes to `mail` undecrypted"),
        ("https://MAIL.example.:8443", [192, 0, 2, 1], "Some(\"post\") goes to `mail` undecrypted"),
        ("https://mail.example/", [10, 0, 0, 1], "Some(\"post\") gets no answer"),
        ("https://x.example/", [192, 0, 2, 1], "Some(\"*.example;alpn=h2;passthrough\") goes to `rest`"),
        ("https://other.test/", [192, 0, 2, 1], "None is answered with 404"),
    ] {
        let told = explained(url, from);
        assert!(told.starts_with(wanted), "{url}: {told}");
    }
}
