//! The new process, as the running one sees it: started, given everything, then in its place; or gone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::Instant;

use super::binary::TrustedBinary;
use super::fault::UpgradeFault;
use super::legacy::{Legacy, say_state};
use super::steps::pass;
use super::words::{NewSays, PROTOCOL, RunningSays, VARIABLE, hear, say};
use crate::net::supervisor::OF_ONE_PROCESS;

/// How long it may take until it serves.
pub const TIME: Duration = Duration::from_secs(10);
/// How long it may take to end once its end of the pair is closed.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long whoever is at its end waits to be heard.
const LAST_TIME: Duration = Duration::from_secs(2);

/// Waits until the process in whose favour this one drains wants it to cut what is under way; false: that one is gone. Blocks the thread.
#[must_use]
pub fn wait_for_cut(from: &UnixStream) -> bool {
    loop {
        match hear::<NewSays>(from) {
            Ok((NewSays::Cut, _)) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// Tells the process in whose favour this one has drained what was known only at the end, if that one listens.
///
/// # Errors
/// It does not, or is gone.
pub fn say_rest(to: &UnixStream, part: &str, text: &str) -> io::Result<()> {
    to.set_write_timeout(Some(LAST_TIME))?;
    say_state(to, part, text)?;
    say(to, &RunningSays::Given, &[])
}

/// What a new process is started with.
#[derive(Clone, Debug)]
pub struct Start {
    /// What it is called in lists of processes.
    pub name: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// A new process that is to take the place of this one. Dropping it ends it.
#[derive(Debug)]
pub struct Candidate {
    child: Option<Child>,
    socket: Arc<UnixStream>,
    due: Instant,
    version: String,
    is_node: bool,
}

/// By which whoever does not wait ends a new process, and with it all that waits for its words.
#[derive(Clone, Debug)]
pub struct Leash(Arc<UnixStream>, Option<Arc<OwnedFd>>);

impl Leash {
    /// Ends the process, and then what is said between the two: else it could take the silence for the end of this one, and itself for alone.
    pub fn cut(&self) {
        if let Some(process) = &self.1 {
            // It may have ended by itself.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Candidate {
    /// Starts it.
    ///
    /// # Errors
    /// It can't be run.
    pub fn start(binary: &TrustedBinary, start: &Start) -> Result<Candidate, UpgradeFault> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = Command::new(binary.runnable());
        command.arg0(&start.name).args(&start.arguments).stdin(Stdio::from(OwnedFd::from(theirs)));
        for variable in OF_ONE_PROCESS {
            command.env_remove(variable);
        }
        let child = command.env(VARIABLE, std::process::id().to_string()).spawn();
        // It holds the other end of the pair.
        drop(command);
        let child = child.map_err(|error| UpgradeFault::Binary {
            path: binary.path.clone(),
            why: format!("it can't be run: {error}"),
        })?;
        let due = Instant::now() + TIME;
        Ok(Candidate {
            child: Some(child),
            socket: Arc::new(socket),
            due,
            version: String::new(),
            is_node: false,
        })
    }

    /// By which it is ended.
    #[must_use]
    pub fn leash(&self) -> Leash {
        let process = self.child.as_ref().and_then(|child| {
            let process = Pid::from_child(child);
            pidfd_open(process, PidfdFlags::empty()).ok()
        });
        Leash(Arc::clone(&self.socket), process.map(Arc::new))
    }

    /// When it is to serve at the latest.
    #[must_use]
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Waits until it has found its config good, and greets it as the `generation`th of its row. Blocks the thread.
    ///
    /// # Errors
    /// It has refused; it is not there in time.
    pub fn greet(&mut self, generation: u32) -> Result<(), UpgradeFault> {
        match self.hear()? {
            NewSays::Greeting { protocol: theirs, version } => {
                let spoken = PROTOCOL[1].min(theirs[1]);
                if spoken < PROTOCOL[0].max(theirs[0]) {
                    return Err(UpgradeFault::Strangers { version, theirs, ours: PROTOCOL });
                }
                self.version = version;
                let version = env!("CARGO_PKG_VERSION").to_owned();
                let greeting = RunningSays::Greeting { protocol: spoken, version, generation };
                say(&self.socket, &greeting, &[]).map_err(|error| self.gone(&error))
            }
            other => Err(unexpected(other)),
        }
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether it goes on as the node of its cluster that this process is.
    #[must_use]
    pub fn is_node(&self) -> bool {
        self.is_node
    }

    /// Its number.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Gives it everything, and waits until it serves. Blocks the thread.
    ///
    /// # Errors
    /// It has refused, is gone, or is not there in time.
    pub fn give(&mut self, legacy: &Legacy) -> Result<(), UpgradeFault> {
        // Whoever does not listen any more may have said why.
        let _ = legacy.give(&self.socket);
        pass("old:given");
        match self.hear()? {
            NewSays::Ready { is_node } => {
                self.is_node = is_node;
                Ok(())
            }
            other => Err(unexpected(other)),
        }
    }

    /// Why it can't be in the place of this one after all; `None`: it is still there.
    pub fn is_gone(&mut self) -> Option<UpgradeFault> {
        let ended = self.child.as_mut()?.try_wait().ok()??;
        Some(UpgradeFault::Ended(format!("has ended as soon as it was ready ({ended}); the log says more")))
    }

    /// Tells it that it is alone from now on, and the parts of the state that could not be told before: it is in the place of this one in any case. By what
    /// is given it may still be [heard](wait_for_cut), and [told](say_rest) the rest.
    #[must_use]
    pub fn over(mut self, late: &BTreeMap<&'static str, String>) -> Arc<UnixStream> {
        self.child.take();
        // If it has gone meanwhile nobody is left who serves, and the supervisor starts another one.
        let told = late.iter().try_for_each(|(part, text)| say_state(&self.socket, part, text));
        let _ = told.and_then(|()| say(&self.socket, &RunningSays::Over, &[]));
        pass("old:told");
        Arc::clone(&self.socket)
    }

    fn hear(&mut self) -> Result<NewSays, UpgradeFault> {
        hear(&self.socket).map(|(what, _)| what).map_err(|error| self.gone(&error))
    }

    /// What it means that it can't be heard.
    fn gone(&mut self, error: &io::Error) -> UpgradeFault {
        UpgradeFault::Ended(match (error.kind(), self.ended()) {
            (io::ErrorKind::InvalidData, None) => {
                format!("says what nobody understands: {error}; is it evenkeel?")
            }
            (_, Some(how)) => format!("has ended before it was ready ({how}); the log says more"),
            (_, None) => format!("does not listen: {error}"),
        })
    }

    /// How it has ended, if it has.
    fn ended(&mut self) -> Option<ExitStatus> {
        let (child, due) = (self.child.as_mut()?, Instant::now() + LAST_WORDS);
        loop {
            match child.try_wait() {
                Ok(None) if Instant::now() < due => {
                    // A wait that nothing ends before.
                    let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 5_000_000 }));
                }
                outcome => return outcome.ok().flatten(),
            }
        }
    }
}

fn unexpected(says: NewSays) -> UpgradeFault {
    match says {
        NewSays::Refused { why } => UpgradeFault::Refused(why),
        other => UpgradeFault::Ended(format!("says {other:?}, which nobody has asked")),
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
