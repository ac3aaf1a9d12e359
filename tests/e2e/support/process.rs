//! evenkeel as a process of its own: what only a process shows is what it costs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
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
        Process::start_with(folder, listeners, &[])
    }

    /// The same with these variables.
    pub fn start_with(folder: tempfile::TempDir, listeners: usize, variables: &[(&str, &Path)]) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        command.envs(variables.iter().copied());
        Process::begin(command, folder, listeners)
    }

    /// The same as a process that is given this socket as whoever supervises it gives one: sd_listen_fds(3).
    pub fn start_with_socket(folder: tempfile::TempDir, listeners: usize, socket: OwnedFd) -> Process {
        let mut shell = Command::new("sh");
        let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"";
        shell.args(["-c", script, env!("CARGO_BIN_EXE_evenkeel")]);
        Process::begin_with(shell, folder, listeners, socket.into())
    }

    /// The same as a process that a file as large as it may be does not end.
    pub fn start_with_bounded_files(folder: tempfile::TempDir, listeners: usize) -> Process {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_evenkeel")]);
        Process::begin(shell, folder, listeners)
    }

    /// The same with a config from standard input.
    pub fn start_from_input(config: &str, listeners: usize) -> Process {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("evenkeel.yaml"), whole(config)).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$1\" - <\"$2\"", env!("CARGO_BIN_EXE_evenkeel")]);
        // What such a config names is looked for where the process stands.
        shell.current_dir(folder.path());
        Process::begin(shell, folder, listeners)
    }

    fn begin(command: Command, folder: tempfile::TempDir, listeners: usize) -> Process {
        Process::begin_with(command, folder, listeners, Stdio::null())
    }

    fn begin_with(
        mut command: Command,
        folder: tempfile::TempDir,
        listeners: usize,
        input: Stdio,
    ) -> Process {
        let file = folder.path().join("evenkeel.yaml");
        let mut child = command
            .arg("--config")
            .arg(&file)
            .env("XDG_RUNTIME_DIR", folder.path())
            .env("XDG_STATE_HOME", folder.path().join("state"))
            .env_remove("RUNTIME_DIRECTORY")
            .env_remove("STATE_DIRECTORY")
            .stdin(input)
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

    /// Has it stand still, or go on.
    pub fn stand_still(&self, is_still: bool) {
        use rustix::process::{Pid, Signal, kill_process};
        let signal = if is_still { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&self.child), signal).unwrap();
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

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it without a word; gives the folder for the next one.
    pub fn kill(mut self) -> tempfile::TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    /// From now on none of its files grows beyond so many bytes; `None`: as large as they like.
    pub fn bound_files(&self, bytes: Option<u64>) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let limit = rustix::process::Rlimit { current: bytes, maximum: None };
        rustix::process::prlimit(Some(pid), rustix::process::Resource::Fsize, limit).unwrap();
    }

    /// Ends it with SIGTERM, and waits for that.
    pub fn end(mut self) {
        self.terminate();
        eventually("it ends", || self.has_ended());
    }

    /// Sends it a signal: `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status();
        assert!(done.unwrap().success(), "kill -{name}");
    }

    /// Tells it to drain and end.
    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// The folder of its config.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where its admin socket is.
    pub fn socket(&self) -> PathBuf {
        let said = self.said();
        let line = said.iter().find_map(|line| line.split("admin socket ").nth(1));
        line.unwrap_or_else(|| panic!("no admin socket: {said:#?}")).into()
    }

    /// Asks its admin API: status and body.
    pub fn ask(&self, request: &str, body: &[u8]) -> (u16, serde_json::Value) {
        ask(&self.socket(), request, body)
    }

    /// A hash over its running state.
    pub fn digest(&self) -> String {
        let (status, answer) = self.ask("GET /api/v1/config/digest", b"");
        assert_eq!(status, 200, "{answer}");
        answer["digest"].as_str().unwrap().to_owned()
    }

    /// Runs the program with these words, in the folder of the config and with its environment.
    pub fn command(&self, words: &[&str]) -> std::process::Output {
        Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(words)
            .current_dir(self.folder.path())
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .env("TMPDIR", self.folder.path())
            .env_remove("RUNTIME_DIRECTORY")
            .env_remove("STATE_DIRECTORY")
            .env_remove("EVENKEEL_SOCKET")
            .stdin(Stdio::null())
            .output()
            .unwrap()
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

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
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
    #[expect(clippy::print_stderr, reason = "why a test has failed is often said there")]
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let said = self.said();
            eprintln!(
                "what {} has said last:\n{}",
                self.folder.path().display(),
                said[said.len().saturating_sub(30)..].join("\n")
            );
        }
    }
}

/// A config with an access log, whose file is loaded when somebody asks.
pub fn whole(config: &str) -> String {
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

/// Asks whoever listens at a unix socket, `request` being method, path and perhaps more header lines: status and body.
pub fn ask(socket: &Path, request: &str, body: &[u8]) -> (u16, serde_json::Value) {
    let (line, more) = request.split_once('\n').unwrap_or((request, ""));
    let more: String = more.lines().map(|line| format!("{line}\r\n")).collect();
    let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{more}\r\n", body.len());
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(super::PATIENCE)).unwrap();
    // Whoever refuses a body need not read it.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let text = String::from_utf8(answer).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(serde_json::Value::Null))
}
