//! evenkeel as a process of its own: what only a process shows is what it costs.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::eventually;

/// A running command with an access log; killed when dropped.
pub struct Process {
    child: Child,
    folder: tempfile::TempDir,
    said: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Runs with this config and waits until so many listeners are bound. It watches no files.
    pub fn start(config: &str, listeners: usize) -> Process {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("evenkeel.yaml"), whole(config)).unwrap();
        Process::start_in(folder, listeners)
    }

    /// The same with what is in this folder.
    pub fn start_in(folder: tempfile::TempDir, listeners: usize) -> Process {
        let file = folder.path().join("evenkeel.yaml");
        let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .arg("--config")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Arc::<Mutex<Vec<String>>>::default();
        let (lines, into) = (BufReader::new(child.stderr.take().unwrap()).lines(), Arc::clone(&said));
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| into.lock().unwrap().push(line))
        });
        let mut process = Process { child, folder, said };
        eventually("evenkeel listens", || {
            let ended = process.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {:#?}", process.said());
            process.said().iter().filter(|line| line.contains("listening ")).count() >= listeners
        });
        process
    }

    /// Writes another config and tells it to read that; gives what it says of it.
    pub fn reload(&self, config: &str) -> String {
        let file = self.folder.path().join("evenkeel.yaml");
        std::fs::write(&file, whole(config)).unwrap();
        self.hang_up()
    }

    /// Tells it to read its config again; gives what it says of it.
    pub fn hang_up(&self) -> String {
        let before = self.reloads().len();
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
        eventually("it tells of the reload", || self.reloads().len() > before);
        self.reloads().pop().unwrap()
    }

    /// What it has said of reloads, each in one line.
    pub fn reloads(&self) -> Vec<String> {
        self.said().into_iter().filter(|line| line.contains("reload")).collect()
    }

    /// The folder of its config.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// What it has said on standard error.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// Where this listener is bound.
    pub fn address(&self, listener: &str) -> SocketAddr {
        let name = format!(", listener {listener}");
        let said = self.said();
        // As text the sentence is the whole line, as JSON a quote follows.
        let is_it = |line: &&String| line.ends_with(&name) || line.contains(&format!("{name}\""));
        let line = said.iter().find(is_it).unwrap_or_else(|| panic!("no listener {listener}: {said:#?}"));
        let address = line.split("listening ").nth(1).unwrap();
        address.split([' ', ',']).next().unwrap().parse().unwrap()
    }

    /// The access log so far.
    pub fn records(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.folder.path().join("access.log")).unwrap_or_default();
        // The last line may still be under way.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Ends of pipes that it has open.
    pub fn pipes(&self) -> usize {
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap();
        let links = descriptors.filter_map(|link| std::fs::read_link(link.unwrap().path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("pipe:")).count()
    }

    /// What all of its threads have cost until now.
    pub fn cost(&self) -> Cost {
        let mut cost = Cost::default();
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap() {
            let task: PathBuf = task.unwrap().path();
            // A thread may end between the two looks.
            let status = std::fs::read_to_string(task.join("status")).unwrap_or_default();
            let switches = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            cost.wake_ups += switches.map_or(0, |count| count.trim().parse::<u64>().unwrap());
            let schedule = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            cost.cpu_nanoseconds += schedule
                .split(' ')
                .next()
                .filter(|ns| !ns.is_empty())
                .map_or(0, |ns| ns.parse::<u64>().unwrap());
        }
        cost
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A config with an access log, whose file is loaded when somebody asks.
fn whole(config: &str) -> String {
    format!("access_log: {{path: access.log, format: json}}\n{config}\nwatch: off\n")
}

/// What a process has cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// How often a thread went to sleep, which it can only do after it woke up.
    pub wake_ups: u64,
    /// Time on a processor.
    pub cpu_nanoseconds: u64,
}
