//! What happens in the demo by itself, on a thread of its own beside the workers: a load, and one illness after the other.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::Context as _;
use fake_backend::Running;
use tokio::runtime;
use tokio::time::{Instant, sleep_until};

use super::calendar::IllnessCalendar;
use super::config::BackendPool;
use super::load::DemoLoad;
use super::terminal::Terminal;
use crate::net::wall::unix_seconds;
use crate::shutdown::Shutdown;

/// What happens by itself.
pub(super) struct DemoLife {
    pub(super) load: DemoLoad,
    pub(super) pools: Arc<[BackendPool]>,
    pub(super) calendar: IllnessCalendar,
    pub(super) terminal: Terminal,
    pub(super) shutdown: Shutdown,
}

impl DemoLife {
    /// Goes on until the demo drains, and ends at once then, with all requests that are under way.
    pub(super) fn begin(self) -> anyhow::Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let live = move || {
            let DemoLife { load, pools, calendar, terminal, shutdown } = self;
            let all = async { tokio::join!(load.run(&terminal), fall_ill(calendar, &pools, &terminal)) };
            runtime.block_on(shutdown.drain.run_until_cancelled(all));
        };
        std::thread::Builder::new().name("demo".to_owned()).spawn(live).context("the demo's own life")?;
        Ok(())
    }
}

/// Those who may fall ill, with the names of their targets: by turns one of each target, the last of it first, so that those after
/// one another are no neighbours and the one that the welcome tells of comes late.
pub(super) fn patients(pools: &[BackendPool]) -> Vec<(&'static str, &Running)> {
    let most = pools.iter().map(|(_, pool)| pool.len()).max().unwrap_or_default();
    let http = || pools.iter().filter(|(name, _)| !matches!(*name, "tcp" | "udp"));
    (0..most)
        .flat_map(|nth| http().filter_map(move |(name, pool)| Some((*name, pool.iter().rev().nth(nth)?))))
        .collect()
}

/// One after the other, for ever. Whoever is ill when this is dropped is well again.
async fn fall_ill(calendar: IllnessCalendar, pools: &[BackendPool], terminal: &Terminal) -> Infallible {
    let (begun, patients) = (Instant::now(), patients(pools));
    loop {
        let bout = calendar.next(begun.elapsed());
        sleep_until(begun + bout.from).await;
        let (target, backend) = patients[bout.backend];
        let name = format!("{target}/{}", backend.id());
        terminal.say(&line(&name, bout.illness.told()));
        let ill = bout.illness.befall(backend);
        sleep_until(begun + bout.until).await;
        drop(ill);
        terminal.say(&line(&name, bout.illness.over()));
    }
}

/// With the time of day, as the events have it.
fn line(name: &str, said: &str) -> String {
    let second = unix_seconds() % 86_400;
    format!("{:02}:{:02}:{:02}Z  {name} {said}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use fake_backend::Fake;

    use super::*;

    #[test]
    fn targets_take_turns_and_tcp_stays_well() {
        let start = |name: &str, count: usize| -> Vec<Running> {
            (1..=count).map(|nth| Fake::http(format!("{name}{nth}")).start_in_thread().unwrap()).collect()
        };
        let pools = [("web", start("w", 2)), ("api", start("a", 3)), ("tcp", start("t", 1))];
        let names: Vec<String> =
            patients(&pools).iter().map(|(target, backend)| format!("{target}/{}", backend.id())).collect();
        assert_eq!(names, ["web/w2", "api/a3", "web/w1", "api/a2", "api/a1"]);
    }
}
