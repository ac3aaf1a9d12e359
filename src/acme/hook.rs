//! Records in DNS, which a program of the people who run this adds and takes away.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::config::model::tls::acme::{AcmeConfig, DnsHook};

/// Of what a program says this much is told.
const WORDS: usize = 200;

/// A record that is in DNS as long as this is.
#[derive(Debug)]
pub(super) struct DnsRecord {
    hook: DnsHook,
    /// `_acme-challenge.example.com`.
    name: String,
    value: String,
    is_there: bool,
}

impl DnsRecord {
    /// Adds one.
    ///
    /// # Errors
    /// What has gone wrong.
    pub(super) async fn add(hook: &DnsHook, domain: &str, value: String) -> Result<DnsRecord, String> {
        let name = format!("_acme-challenge.{}", domain.strip_prefix("*.").unwrap_or(domain));
        // From now on it may be there, whatever the program says.
        let record = DnsRecord { hook: hook.clone(), name, value, is_there: true };
        run(&record.hook, "add", &record.name, &record.value, AcmeConfig::HOOK_TIMEOUT).await?;
        Ok(record)
    }

    /// Takes it away. That this fails is no reason not to use what was issued.
    pub(super) async fn remove(mut self) -> Result<(), String> {
        self.is_there = false;
        run(&self.hook, "remove", &self.name, &self.value, AcmeConfig::HOOK_TIMEOUT).await
    }
}

impl Drop for DnsRecord {
    fn drop(&mut self) {
        if !self.is_there {
            return;
        }
        // Somebody has given up in the middle: what was added is taken away all the same.
        let Ok(control) = tokio::runtime::Handle::try_current() else { return };
        let (hook, name, value) =
            (self.hook.clone(), std::mem::take(&mut self.name), std::mem::take(&mut self.value));
        control.spawn(async move {
            let _ = run(&hook, "remove", &name, &value, AcmeConfig::HOOK_TIMEOUT).await;
        });
    }
}

async fn run(hook: &DnsHook, what: &str, name: &str, value: &str, patience: Duration) -> Result<(), String> {
    let program = hook.program.display();
    let mut command = Command::new(&hook.program);
    command.args([what, name, value]).stdin(Stdio::null()).kill_on_drop(true);
    let ended = timeout(patience, command.output()).await;
    let ended = ended.map_err(|_| {
        format!("{program} {what} takes longer than {}", humantime::format_duration(patience))
    })?;
    let ended = ended.map_err(|error| format!("{program} can't be run: {error}"))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = [ended.stderr, ended.stdout].map(|said| words(&said));
    let said = said.iter().find(|said| !said.is_empty()).map(|said| format!(": {said}"));
    let how = match ended.status.code() {
        Some(code) => format!("has ended with {code}"),
        None => "was killed".to_owned(),
    };
    Err(format!("{program} {what} {how}{}", said.unwrap_or_default()))
}

/// The last line of what a program has said.
fn words(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    last.chars().filter(|c| !c.is_control()).take(WORDS).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    fn hook(folder: &Path, script: &str) -> DnsHook {
        let program = folder.join("hook");
        std::fs::write(&program, format!("#!/bin/sh\n{script}")).expect("written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).expect("its rights");
        DnsHook { program, wait: Duration::ZERO }
    }

    #[tokio::test]
    async fn a_record_is_added_and_taken_away_also_by_who_gives_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let hook = hook(folder.path(), &format!("echo \"$@\" >> {}", log.display()));
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let record = DnsRecord::add(&hook, "*.a.example", "value".to_owned()).await.expect("added");
        record.remove().await.expect("removed");
        let name = "_acme-challenge.a.example";
        assert_eq!(said(), format!("add {name} value\nremove {name} value\n"));
        let record = DnsRecord::add(&hook, "b.example", "other".to_owned()).await.expect("added");
        drop(record);
        while !said().contains("remove _acme-challenge.b.example other") {
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
    async fn a_program_that_hangs_is_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let hook = hook(folder.path(), "sleep 1000");
        let why = run(&hook, "add", "n", "v", Duration::from_millis(50)).await.expect_err("it hangs");
        assert!(why.contains("takes longer than 50ms"), "{why}");
    }
}
