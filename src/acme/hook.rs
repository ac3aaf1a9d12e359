//! Records in DNS, which a program of the people who run this adds and takes away.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::config::model::tls::acme::{AcmeConfig, DnsHook};

/// Of what a program says this much is told.
const WORDS: usize = 200;

/// What a program has said is read for so long after its end: what it has begun may hold its outputs open for ever.
const REST: Duration = Duration::from_millis(200);
/// Of what it says this much is read.
const OUTPUT: u64 = 16 * 1024;

/// One program runs at a time: whoever writes one need not think of several that change a zone at once.
static TURN: Mutex<()> = Mutex::const_new(());

/// A record that is in DNS as long as this is.
#[derive(Debug)]
pub(super) struct DnsRecord {
    hook: DnsHook,
    /// `_acme-challenge.example.com`.
    name: String,
    value: String,
}

impl DnsRecord {
    /// Adds one.
    ///
    /// # Errors
    /// What has gone wrong.
    pub(super) async fn add(hook: &DnsHook, domain: &str, value: String) -> Result<DnsRecord, String> {
        let name = format!("_acme-challenge.{}", domain.strip_prefix("*.").unwrap_or(domain));
        // From now on it may be there, whatever the program says.
        let record = DnsRecord { hook: hook.clone(), name, value };
        let _turn = TURN.lock().await;
        run(&record.hook, "add", &record.name, &record.value, AcmeConfig::HOOK_TIMEOUT).await?;
        Ok(record)
    }
}

impl Drop for DnsRecord {
    /// Takes it away. Nobody waits for that, and it does not need whoever has dropped it.
    fn drop(&mut self) {
        let (hook, name, value) = (self.hook.clone(), self.name.clone(), self.value.clone());
        let removing = move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            runtime.block_on(async {
                let _turn = TURN.lock().await;
                // Whoever can't be run now was run before; a record that stays does no harm.
                let _ = run(&hook, "remove", &name, &value, AcmeConfig::HOOK_TIMEOUT).await;
            });
        };
        let _ = std::thread::Builder::new().name("evenkeel-hook".to_owned()).spawn(removing);
    }
}

async fn run(hook: &DnsHook, what: &str, name: &str, value: &str, patience: Duration) -> Result<(), String> {
    let program = hook.program.display();
    let mut command = Command::new(&hook.program);
    // In a group of its own: what it has begun ends with it if it takes too long.
    command.args([what, name, value]).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{program} can't be run: {error}"))?;
    let group = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
    let outputs = (child.stderr.take(), child.stdout.take());
    let said = tokio::spawn(async move { tokio::join!(heard(outputs.0), heard(outputs.1)) });
    let Ok(ended) = timeout(patience, child.wait()).await else {
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let patience = humantime::format_duration(patience);
        return Err(format!("{program} {what} takes longer than {patience}"));
    };
    let status = ended.map_err(|error| format!("{program} can't be waited for: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let said = timeout(REST, said).await.ok().and_then(Result::ok).unwrap_or_default();
    let said = [said.0, said.1].map(|said| words(&said));
    let said = said.iter().find(|said| !said.is_empty()).map(|said| format!(": {said}"));
    let how = match status.code() {
        Some(code) => format!("has ended with {code}"),
        None => "was killed".to_owned(),
    };
    Err(format!("{program} {what} {how}{}", said.unwrap_or_default()))
}

/// What comes of an output, to its end.
async fn heard(output: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut said = Vec::new();
    if let Some(output) = output {
        // What was read counts, however it has ended.
        let _ = output.take(OUTPUT).read_to_end(&mut said).await;
    }
    said
}

/// The last line of what a program has said.
fn words(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    last.chars().filter(|c| !c.is_control()).take(WORDS).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn hook(folder: &Path, script: &str) -> DnsHook {
        let (program, text) = (folder.join("hook"), folder.join("text"));
        std::fs::write(&text, format!("#!/bin/sh\n{script}")).expect("written");
        // By another process: what is open for writing in this one is open in whatever another test begins at this moment, and can't be run as long.
        let made = std::process::Command::new("install").args(["-m", "700"]).args([&text, &program]).status();
        assert!(made.expect("it runs").success());
        DnsHook { program, wait: Duration::ZERO }
    }

    #[tokio::test]
    async fn a_record_is_added_and_taken_away_when_nobody_needs_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let hook = hook(folder.path(), &format!("echo \"$@\" >> {}", log.display()));
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let record = DnsRecord::add(&hook, "*.a.example", "value".to_owned()).await.expect("added");
        let name = "_acme-challenge.a.example";
        assert_eq!(said(), format!("add {name} value\n"));
        drop(record);
        while !said().ends_with(&format!("remove {name} value\n")) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_a_program_says_of_its_failure_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let hook = hook(folder.path(), "echo trying; echo first >&2; echo 'no such zone' >&2; exit 3");
        let why = DnsRecord::add(&hook, "a.example", "v".to_owned()).await.expect_err("it fails");
        assert!(why.ends_with("add has ended with 3: no such zone"), "{why}");
        let gone = DnsHook { program: folder.path().join("gone"), wait: Duration::ZERO };
        let why = DnsRecord::add(&gone, "a.example", "v".to_owned()).await.expect_err("nothing there");
        assert!(why.contains("can't be run"), "{why}");
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_ended_and_what_it_leaves_behind_holds_up_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let hanging = hook(folder.path(), "sleep 1000");
        let why = run(&hanging, "add", "n", "v", Duration::from_millis(50)).await.expect_err("it hangs");
        assert!(why.contains("takes longer than 50ms"), "{why}");
        // Its child holds the outputs open.
        let leaving = hook(folder.path(), "sleep 30 & echo done");
        assert_eq!(run(&leaving, "add", "n", "v", Duration::from_secs(10)).await, Ok(()));
    }
}
