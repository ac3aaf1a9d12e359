//! `evenkeel demo`: the main job on backends inside this process, with a load of its own and backends that fall ill, so that there
//! is something to see.

mod calendar;
mod config;
mod illness;
mod life;
mod load;
mod terminal;
mod welcome;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use fake_backend::{Authority, Behaviour, Fake, Running, Spread, TcpMode};

use self::calendar::IllnessCalendar;
use self::config::{BackendPool, DemoPorts, load_own, token};
use self::life::{DemoLife, patients};
use self::load::DemoLoad;
use self::terminal::Terminal;
use super::args::demo::DemoOptions;
use super::serve::{ConfigSource, Inheritance};
use super::{logging, serve};
use crate::admin::TextLoader;
use crate::reload::running::Loader;

/// How soon the backends of `web` and of `api` answer, in milliseconds: most near this, none much later.
const WEB_ANSWERS: Spread = Spread::Weibull { shape: 3.0, scale: 5.0 };
const API_ANSWERS: Spread = Spread::Weibull { shape: 2.0, scale: 12.0 };

/// Runs the demo until a signal ends it.
pub(super) fn run(options: &DemoOptions) -> anyhow::Result<ExitCode> {
    let http = |name: &str, count, latency| {
        let usual = Behaviour::default().latency_spread(latency);
        start(name, count, |id| Fake::http(id).behave(usual.clone()).control())
    };
    let echo = Behaviour::tcp(TcpMode::GreetAndEcho);
    let pools: Arc<[BackendPool]> = Arc::new([
        ("web", http("fake", 3, WEB_ANSWERS)?),
        ("api", http("api", 4, API_ANSWERS)?),
        ("tcp", start("tcp-fake", 2, Fake::tcp)?),
        ("udp", start("udp-fake", 2, |id| Fake::udp(id).behave(echo.clone()))?),
    ]);
    let ports = DemoPorts::find(options)?;
    let (authority, token) = (Authority::new("evenkeel demo"), token()?);
    let loaded = load_own(&ports, &pools, &authority, &token)?;
    let config = loaded.config.clone();
    logging::during(&config, |tune| {
        let server = serve::start(loaded, never(), tune, Inheritance::default())?;
        let welcome = welcome::text(options, &ports, &token, &pools);
        let terminal = Terminal::open(welcome, server.targets().to_vec(), server.shutdown())?;
        if !options.quiet {
            let load = DemoLoad::new(options.load, &ports, &authority)?;
            let calendar = IllnessCalendar { every: options.illness_every, backends: patients(&pools).len() };
            let (pools, shutdown) = (Arc::clone(&pools), server.shutdown());
            DemoLife { load, pools, calendar, terminal, shutdown }.begin()?;
        }
        serve::wait(server)
    })
}

fn start(name: &str, count: usize, make: impl Fn(String) -> Fake) -> anyhow::Result<Vec<Running>> {
    (1..=count)
        .map(|number| make(format!("{name}-{number}")).start_in_thread().context("a demo backend"))
        .collect()
}

/// There is no file.
fn never() -> ConfigSource {
    let loader: Loader = Arc::new(|| anyhow::bail!("the demo has no config file to read again"));
    let text: TextLoader = Arc::new(|_, _, _| anyhow::bail!("the demo serves its own config and no other"));
    let unable =
        Some("the demo has backends of its own in this process, which another one can't have".to_owned());
    ConfigSource { file: None, unable, loader, text, shared: None, texts: None }
}
