//! The new process: it finds the running one, inherits, and takes its place.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use tokio::time::Instant;

use super::elder::Elder;
use super::legacy::Legacy;
use super::steps::pass;
use super::words::{NewSays, PROTOCOL, RunningSays, VARIABLE, hear, say};

/// How long the running process may take for its next word.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take until it lets go of what only one may have: it may wait for others who drain.
const LET_GO: Duration = Duration::from_secs(30);
/// How long a process takes at most from when its sockets close until it is gone.
const GONE: Duration = Duration::from_secs(1);

/// A process that was started to take the place of another one, and reads its config.
#[derive(Debug)]
pub struct HeirStart {
    socket: UnixStream,
    running: u32,
}

/// The same once it has inherited.
#[derive(Debug)]
pub struct Heir {
    socket: UnixStream,
    running: u32,
    /// Where it comes from.
    pub origin: HeirOrigin,
}

/// Where a process comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeirOrigin {
    /// The version of the process before; empty: there was none.
    pub version: String,
    /// The how manieth process of its row it is, from 1.
    pub generation: u32,
}

impl HeirStart {
    /// Whether this process is to take the place of another one. `said`: what [`VARIABLE`] says. From then on its standard input is empty.
    ///
    /// # Errors
    /// The variable is set, but nobody is at standard input who could be that process.
    pub fn here(said: Option<&str>) -> io::Result<Option<HeirStart>> {
        let Some(said) = said.filter(|said| !said.is_empty()) else { return Ok(None) };
        let stranger = || {
            let text = format!(
                "{VARIABLE} is set, but standard input is no socket of the process `{said}`\n  hint: `evenkeel upgrade` alone sets it; unset it"
            );
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let input = rustix::stdio::stdin();
        let peer = socket_peercred(input).map_err(|_| stranger())?;
        let running = said.parse::<u32>().ok().filter(|running| *running > 0).ok_or_else(stranger)?;
        let is_trusted = peer.uid.is_root() || peer.uid == rustix::process::geteuid();
        if !is_trusted || peer.pid.as_raw_nonzero().get() as u32 != running {
            return Err(stranger());
        }
        let socket = UnixStream::from(input.try_clone_to_owned()?);
        // It was run by a descriptor, whose number it would be called by in lists of processes.
        if let Some(name) = std::env::current_exe().ok().as_deref().and_then(Path::file_name)
            && let Ok(name) = CString::new(name.as_bytes())
        {
            let _ = rustix::thread::set_name(&name);
        }
        rustix::stdio::dup2_stdin(File::open("/dev/null")?.as_fd())?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Some(HeirStart { socket, running }))
    }

    /// Says why it can't.
    pub fn refuse(&self, why: &str) {
        // Whoever has gone does not care.
        let _ = say(&self.socket, &NewSays::Refused { why: why.to_owned() }, &[]);
    }

    /// Says that the config is good, and takes what is given.
    ///
    /// # Errors
    /// The running one has given up, or says what nobody understands.
    pub fn inherit(self) -> io::Result<(Heir, Legacy)> {
        let HeirStart { socket, running } = self;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        pass("new:started");
        say(&socket, &NewSays::Greeting { protocol: PROTOCOL, version }, &[])?;
        pass("new:greeted");
        let (RunningSays::Greeting { version, generation, .. }, _) = hear(&socket)? else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let legacy = Legacy::take(&socket)?;
        pass("new:taken");
        let origin = HeirOrigin { version, generation: generation.saturating_add(1) };
        Ok((Heir { socket, running, origin }, legacy))
    }
}

impl Heir {
    /// Says why it can't after all.
    pub fn refuse(&self, why: &str) {
        let _ = say(&self.socket, &NewSays::Refused { why: why.to_owned() }, &[]);
    }

    /// Says that it serves, and whether as the `is_node` of its cluster that the one before was, and waits until it is alone. Blocks the thread. What is known only
    /// now comes to the `legacy`, and so does the one before, unless it has ended meanwhile, which is as good: then false.
    ///
    /// # Errors
    /// The one before has given it up, and serves on.
    pub fn succeed(&self, is_node: bool, now_ms: u64, legacy: &mut Legacy) -> io::Result<bool> {
        let Some(elder) = self.wait_for_end(is_node, now_ms, legacy) else {
            return if self.is_given_up() { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(false) };
        };
        legacy.elders.push(elder);
        Ok(true)
    }

    fn wait_for_end(&self, is_node: bool, now_ms: u64, legacy: &mut Legacy) -> Option<Elder> {
        pass("new:serving");
        say(&self.socket, &NewSays::Ready { is_node }, &[]).ok()?;
        pass("new:ready");
        self.socket.set_read_timeout(Some(LET_GO)).ok()?;
        let mut late = BTreeMap::<String, String>::new();
        loop {
            // It may be stuck: then it is as good as gone, and is not waited for.
            match hear(&self.socket).ok()? {
                (RunningSays::State { part, text }, _) => late.entry(part).or_default().push_str(&text),
                (RunningSays::Over, _) => {
                    pass("new:alone");
                    break;
                }
                _ => return None,
            }
        }
        legacy.state.extend(late);
        self.socket.set_read_timeout(Some(PATIENCE)).ok()?;
        let socket = self.socket.try_clone().ok()?;
        Some(Elder { process: self.running, since_ms: now_ms, socket })
    }

    /// Nothing is to be heard any more, though the process before is there: it has closed its end. One that is stuck has not.
    fn is_given_up(&self) -> bool {
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        let is_closed = poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        let is_parent = || {
            let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get() as u32);
            parent == Some(self.running)
        };
        // One that is being killed closes its end a little before it is gone.
        let due = Instant::now() + GONE;
        while is_closed && is_parent() && Instant::now() < due {
            let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 5_000_000 }));
        }
        is_closed && is_parent()
    }

    /// The number of the process before.
    #[must_use]
    pub fn running(&self) -> u32 {
        self.running
    }
}
