//! `evenkeel demo`: the main job on backends inside this process.

use std::io::{ErrorKind, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fake_backend::{Authority, Fake, Running};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::args::DemoOptions;
use super::serve::ConfigSource;
use super::{logging, serve};
use crate::admin::TextLoader;
use crate::config::model::tls::{ListenerTls, TlsVersion};
use crate::config::model::{AdminAccess, AdminToken, Bind, Config, ListenerConfig, Scope};
use crate::config::{self, Flags};
use crate::events;
use crate::net;
use crate::reload::running::Loader;
use crate::shutdown::Shutdown;
use crate::targets::{Health, Target};

/// How long the greeting waits for the events of the start.
const EVENTS_MAX: Duration = Duration::from_secs(3);
/// How often it looks.
const GLANCE: Duration = Duration::from_millis(50);
/// How many ports behind the wanted one are tried.
const TRIES: u16 = 100;

/// Runs the demo until a signal ends it.
pub(super) fn run(options: &DemoOptions) -> anyhow::Result<ExitCode> {
    let web = start("fake", 3, |id| Fake::http(id).control())?;
    let tcp = start("tcp-fake", 2, Fake::tcp)?;
    let http_port = free_port(options.http_port, &[])?;
    let https_port = free_port(options.https_port, &[http_port])?;
    let tcp_port = free_port(options.tcp_port, &[http_port, https_port])?;
    let admin_port = free_port(options.admin_port, &[http_port, https_port, tcp_port])?;
    let token = token()?;
    let yaml = yaml(http_port, tcp_port, &web, &tcp);
    let mut loaded = config::load_text(&yaml, "demo.yaml", Path::new(""), &Flags::default(), &|_| None)?;
    add_https(&mut loaded.config, https_port)?;
    loaded.config.admin = Some(Arc::new(admin(admin_port, &token)));
    let config = loaded.config.clone();
    logging::during(&config, |tune| {
        let server = serve::start(loaded, never(), tune)?;
        let text = welcome([http_port, https_port, tcp_port, admin_port], &token, &web);
        greet(text, server.targets().to_vec(), server.shutdown());
        serve::wait(server)
    })
}

/// Prints lines for the person at the terminal, behind the events of the start, and ends the demo when nobody can read them any
/// more: as behind `| head`, and when the terminal is gone. What serves does not wait until somebody reads them.
fn greet(text: String, targets: Vec<Arc<Target>>, shutdown: Shutdown) {
    let _ = std::thread::Builder::new().name("greeting".to_owned()).spawn(move || {
        let begun = net::now();
        let is_judged =
            |target: &Arc<Target>| target.backends.iter().all(|backend| backend.health() != Health::Unknown);
        while !targets.iter().all(is_judged) && net::now().since(begun) < EVENTS_MAX {
            std::thread::park_timeout(GLANCE);
        }
        // The last of the events is on its way.
        std::thread::park_timeout(GLANCE);
        let written = writeln!(std::io::stdout(), "{text}");
        if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) || is_hung_up() {
            events::nobody_reads();
            shutdown.drain.cancel();
        }
    });
}

/// Waits until standard output leads to nobody; for ever where it leads to a file. False: that can't be told.
fn is_hung_up() -> bool {
    let out = std::io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    loop {
        match poll(&mut polled, None) {
            Ok(_) => return polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
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

/// A token of this run, which only the person at the terminal sees.
fn token() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| anyhow::anyhow!("the system gives no random bytes"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The admin API over TCP, for whoever has the token.
fn admin(port: u16, token: &str) -> AdminAccess {
    AdminAccess {
        binds: vec![(Ipv4Addr::LOCALHOST, port).into()],
        tokens: Some(vec![AdminToken::new("demo", Scope::Configure, token.as_bytes())]),
        hosts: Vec::new(),
        configure_over_tcp: false,
        tls: None,
    }
}

/// `wanted`, or the first free port after it that is none of `others`.
fn free_port(wanted: u16, others: &[u16]) -> anyhow::Result<u16> {
    if wanted == 0 {
        // Any: one that the system has to give.
        let given = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
        return Ok(given.local_addr()?.port());
    }
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

/// No line is longer than a terminal of 80 columns.
fn welcome([http_port, https_port, tcp_port, admin_port]: [u16; 4], token: &str, web: &[Running]) -> String {
    let first = web.first().map_or(0, Running::port);
    let tries = [
        ("requests go round", format!("curl 127.0.0.1:{http_port}")),
        ("over TLS (-k: made up)", format!("curl -k https://127.0.0.1:{https_port}")),
        ("TCP goes round", format!("curl telnet://127.0.0.1:{tcp_port}")),
        ("what a backend is told", format!("curl 127.0.0.1:{http_port}/head")),
        ("make fake-1 ill", format!("curl -X POST '127.0.0.1:{first}/_fake?health=down'")),
        ("and well again", format!("curl -X POST '127.0.0.1:{first}/_fake?health=up'")),
    ];
    let tries: String = tries.iter().map(|(about, line)| format!("  {about:<24}{line}\n")).collect();
    format!(
        "\nevenkeel demo: 3 HTTP and 2 TCP backends inside this process\n\
         HTTP http://127.0.0.1:{http_port}  HTTPS https://127.0.0.1:{https_port}  TCP 127.0.0.1:{tcp_port}\n\
         Admin http://127.0.0.1:{admin_port}/api/v1  token {token}\n\
         In another terminal (the log and `evenkeel status` tell when one falls ill):\n{tries}\
         Ctrl-C ends it."
    )
}

/// There is no file.
fn never() -> ConfigSource {
    let loader: Loader = Arc::new(|| anyhow::bail!("the demo has no config file to read again"));
    let text: TextLoader = Arc::new(|_, _, _| anyhow::bail!("the demo serves its own config and no other"));
    ConfigSource { file: None, loader, text, texts: None }
}
