//! Running programs, each with a deadline, and reading what those of Python and Node say.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::scene::Scene;
use super::{judge, tell};

/// Nothing takes longer, not even a hundred checks on a busy machine.
const DEADLINE: Duration = Duration::from_secs(300);

/// A program that has ended.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// A program that is killed when the test is done with it.
pub struct Program(Child);

impl Program {
    /// Starts it without what a developer's environment says about proxies.
    pub fn start(command: &mut Command) -> Program {
        for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
            command.env_remove(name).env_remove(name.to_uppercase());
        }
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Program(piped.spawn().unwrap())
    }

    /// Writes to its standard input, which stays open.
    pub fn write(&mut self, bytes: &[u8]) {
        self.0.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Reads so many bytes of its standard output.
    pub fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.stdout.as_mut().unwrap().read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Waits for its end, with this much on its standard input.
    pub fn end(mut self, input: Vec<u8>) -> Ended {
        let mut stdin = self.0.stdin.take().unwrap();
        // On a thread of its own: a program may want its output read before it takes more. One that ends
        // without having read it all closes the pipe, which is its business.
        thread::spawn(move || drop(stdin.write_all(&input)));
        let (stdout, stderr) =
            (collect(self.0.stdout.take().unwrap()), collect(self.0.stderr.take().unwrap()));
        let stdout = stdout.recv_timeout(DEADLINE);
        let stderr = stderr.recv_timeout(Duration::from_secs(5)).unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let stdout = stdout.unwrap_or_else(|_| panic!("a program did not end; it said {stderr}"));
        // Its output has ended, so it has or is about to.
        Ended { status: self.0.wait().unwrap(), stdout, stderr }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that has ended cannot be killed, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Everything up to the end, read on a thread of its own: a full pipe would stop the program.
fn collect(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // Cut short by a kill, it is still worth showing.
        let _ = from.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

/// The first line of what it says when it goes well; `None`: it does not, or is not there.
pub fn said(name: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(name).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
}

/// The first line of what it says about its version; when it is not installed that is told.
pub fn version(name: &str, arguments: &[&str]) -> Option<String> {
    let version = said(name, arguments);
    if version.is_none() {
        tell(&format!("SKIPPED {name}: it is not installed"));
    }
    version
}

/// What Go makes of the program beside this file. Built and not just run: a program that `go run` has started outlives it.
pub fn built_by_go(scene: &Scene) -> Command {
    let client = scene.folder().join("client");
    let mut go = Command::new("go");
    // Nothing of what a developer has set, no module, and no other version of Go, which would be fetched.
    go.env_remove("GOFLAGS").env("GO111MODULE", "off").env("GOTOOLCHAIN", "local").env("GOPROXY", "off");
    go.args(["build", "-o"]).arg(&client).args(["harness.go", "rows.go"].map(|name| beside("go").join(name)));
    let Ended { status, stderr, .. } = Program::start(&mut go).end(Vec::new());
    assert!(status.success(), "{stderr}");
    Command::new(client)
}

/// The path of a file beside this one.
pub fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/clients").join(name)
}

/// Runs one of the programs beside this file and judges its rows.
pub fn matrix(version: &str, runtime: &str, program: &str, scene: &Scene, at_least: usize) {
    let mut command = Command::new(runtime);
    // The second is where fetch finds whom to trust; the first keeps Python from writing beside its sources.
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("NODE_EXTRA_CA_CERTS", scene.ca()).arg(beside(program));
    run(version, command, scene, at_least);
}

/// Runs a program that writes a line for each row, and judges them.
pub fn run(version: &str, mut command: Command, scene: &Scene, at_least: usize) {
    let ports = [scene.port(), scene.backend.port()].map(|port| port.to_string());
    command.arg(scene.scheme.name()).args(ports).arg(scene.ca());
    let ended = Program::start(&mut command).end(Vec::new());
    let text = String::from_utf8(ended.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let done = lines.last().is_some_and(|line| line["done"] == true);
    assert!(done && ended.status.success(), "{version} did not get to its end: {text}\n{}", ended.stderr);
    let rows: Vec<_> = lines
        .iter()
        .filter_map(|line| {
            let outcome = if line["ok"] == true { Ok(()) } else { Err(line["why"].as_str()?.to_owned()) };
            Some((line["check"].as_str()?.to_owned(), outcome))
        })
        .collect();
    judge(version, scene.scheme, &rows, at_least);
}
