//! The command: starts fakes as its flags say, tells where they listen, and stops at SIGINT or SIGTERM.

mod options;

use std::io::Write;

use anyhow::{Context, Result};
use fake_backend::{Running, raise_descriptor_limit};
use tokio::signal::unix::{SignalKind, signal};

fn main() -> Result<()> {
    let arguments = options::command().get_matches();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Before the first line is printed: who reads it may send a signal at once.
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        raise_descriptor_limit();
        let mut running = Vec::new();
        for (fake, place) in options::fakes(&arguments)? {
            running.push(fake.start().await.with_context(|| format!("cannot start on {place}"))?);
        }
        options::write_ca(&arguments, &running)?;
        tell(&running, arguments.get_flag("list"))?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}

/// Says where the fakes listen: a line for each, or one for all when there are several.
fn tell(running: &[Running], list: bool) -> Result<()> {
    let mut output = std::io::stdout().lock();
    match running {
        [first, .., last] if !list => {
            let (from, to) = (first.url(), last.url());
            writeln!(output, "{} to {} listen on {from} to {to}", first.id(), last.id())?;
        }
        all => {
            for fake in all {
                writeln!(output, "{} listens on {}", fake.id(), fake.url())?;
            }
        }
    }
    output.flush()?;
    Ok(())
}
