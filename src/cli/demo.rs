//! `evenkeel demo`: the main job on backends inside this process.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use fake_backend::{Authority, Fake, Running};

use super::args::DemoOptions;
use super::{logging, serve};
use crate::config::model::tls::{ListenerTls, TlsVersion};
use crate::config::model::{Bind, Config, ListenerConfig};
use crate::config::{self, Flags};

/// How many ports behind the wanted one are tried.
const TRIES: u16 = 100;

/// Runs the demo until a signal ends it.
pub(super) fn run(options: &DemoOptions) -> anyhow::Result<ExitCode> {
    let web = start("fake", 3, |id| Fake::http(id).control())?;
    let tcp = start("tcp-fake", 2, Fake::tcp)?;
    let http_port = free_port(options.http_port, &[])?;
    let https_port = free_port(options.https_port, &[http_port])?;
    let tcp_port = free_port(options.tcp_port, &[http_port, https_port])?;
    let yaml = yaml(http_port, tcp_port, &web, &tcp);
    let mut loaded = config::load_text(&yaml, "demo.yaml", Path::new(""), &Flags::default(), &|_| None)?;
    add_https(&mut loaded.config, https_port)?;
    logging::during(&loaded.config, || {
        let server = serve::start(&loaded.config)?;
        greet(welcome([http_port, https_port, tcp_port], &web));
        serve::wait(server)
    })
}

/// Prints lines for the person at the terminal. What serves does not wait until somebody reads them, and goes on without.
fn greet(text: String) {
    let _ = std::thread::Builder::new()
        .name("greeting".to_owned())
        .spawn(move || writeln!(std::io::stdout(), "{text}"));
}

fn start(name: &str, count: usize, make: impl Fn(String) -> Fake) -> anyhow::Result<Vec<Running>> {
    (1..=count)
        .map(|number| make(format!("{name}-{number}")).start_in_thread().context("a demo backend"))
        .collect()
}

/// The web target over TLS too, with a certificate that nobody but this process has ever seen.
fn add_https(config: &mut Config, port: u16) -> anyhow::Result<()> {
    let issued = Authority::new("evenkeel demo").issue(["localhost", "127.0.0.1", "::1"]);
    let identity = config::identity_of(&issued.cert_pem, &issued.key_pem).map_err(anyhow::Error::msg)?;
    let web = config.listeners.first().context("the demo has a web target")?;
    let tls = ListenerTls { identities: vec![Arc::new(identity)], clients: None, oldest: TlsVersion::V12 };
    let secured = ListenerConfig {
        name: "web-https".to_owned(),
        tls: Some(Arc::new(tls)),
        binds: vec![Bind::Tcp((Ipv4Addr::LOCALHOST, port).into())],
        ..web.clone()
    };
    config.listeners.push(secured);
    Ok(())
}

/// `wanted`, or the first free port after it that is none of `others`.
fn free_port(wanted: u16, others: &[u16]) -> anyhow::Result<u16> {
    (wanted..=wanted.saturating_add(TRIES))
        .filter(|port| !others.contains(port))
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .with_context(|| format!("no free port from {wanted} on"))
}

/// The demo's config is a config like any other.
fn yaml(http_port: u16, tcp_port: u16, web: &[Running], tcp: &[Running]) -> String {
    let backends = |running: &[Running], more: &str| -> String {
        let line = |fake: &Running| {
            format!("      - {{name: {}, host: 127.0.0.1, port: {}{more}}}\n", fake.id(), fake.port())
        };
        running.iter().map(line).collect()
    };
    format!(
        "health_check_interval: 1\nlogging: info\ntargets:\n  web:\n    protocol: http\n    listener: {http_port}\n    backends:\n{}  \
         tcp:\n    protocol: tcp\n    listener: {tcp_port}\n    backends:\n{}",
        backends(web, ", health_path: /health"),
        backends(tcp, ""),
    )
}

fn welcome([http_port, https_port, tcp_port]: [u16; 3], web: &[Running]) -> String {
    let first = web.first().map_or(0, Running::port);
    let lines = [
        (format!("for i in 1 2 3 4 5; do curl -s 127.0.0.1:{http_port}; echo; done"), "requests rotate"),
        (
            format!("curl -sk --proto-default https 127.0.0.1:{https_port}"),
            "the certificate is made up, hence -k",
        ),
        (format!("nc 127.0.0.1 {tcp_port}"), "TCP connections rotate too"),
        (format!("curl -X POST '127.0.0.1:{first}/_fake?health=down'"), "fake-1 falls ill: see the log"),
        (format!("curl -X POST '127.0.0.1:{first}/_fake?health=up'"), "and recovers"),
        (format!("curl -s 127.0.0.1:{http_port}/head"), "what a backend is told"),
    ];
    let lines: String = lines.iter().map(|(line, about)| format!("  {line:<64}{about}\n")).collect();
    format!(
        "evenkeel demo: 3 HTTP and 2 TCP backends inside this process\n\n  \
         HTTP   http://127.0.0.1:{http_port}\n  \
         HTTPS  https://127.0.0.1:{https_port}\n  \
         TCP    127.0.0.1:{tcp_port}\n\n\
         Try:\n{lines}\n\
         Ctrl-C ends it.\n"
    )
}
