//! A terminal that a program runs in: a real one to the program, and a screen that a test can read.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::eventually;

/// What the program has drawn.
struct Drawn {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

/// A running program with a terminal of its own; killed when dropped.
pub struct Terminal {
    child: Child,
    /// The end of whoever types and looks.
    desk: File,
    /// The end of the program: as long as we have it too, nothing that was written gets lost.
    line: OwnedFd,
    drawn: Arc<Mutex<Drawn>>,
}

impl Terminal {
    /// Runs evenkeel with these words in `folder`, on a terminal of this size.
    pub fn start(folder: &Path, words: &[&str], size: (u16, u16), variables: &[(&str, &str)]) -> Terminal {
        // A session whose terminal this is, as a login has.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(env!("CARGO_BIN_EXE_evenkeel"))
            .args(words)
            .current_dir(folder)
            .env("XDG_RUNTIME_DIR", folder)
            .env("XDG_STATE_HOME", folder.join("state"))
            .env("TMPDIR", folder)
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .env_remove("RUNTIME_DIRECTORY")
            .env_remove("STATE_DIRECTORY")
            .env_remove("EVENKEEL_SOCKET")
            .envs(variables.iter().copied());
        Terminal::run(command, size)
    }

    /// Runs a command on a terminal of this size.
    pub fn run(mut command: Command, size: (u16, u16)) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let desk = openpt(flags).unwrap();
        grantpt(&desk).unwrap();
        unlockpt(&desk).unwrap();
        let line = ioctl_tiocgptpeer(&desk, flags).unwrap();
        tcsetwinsize(&desk, winsize(size)).unwrap();
        let own = || line.try_clone().unwrap();
        let child = command.stdin(own()).stdout(own()).stderr(own()).spawn().unwrap();
        let [columns, rows] = [size.0, size.1].map(|side| NonZeroU16::new(side).unwrap());
        let drawn = Drawn { screen: vt100::Parser::new(rows, columns, 0), bytes: Vec::new() };
        let drawn = Arc::new(Mutex::new(drawn));
        let desk = File::from(desk);
        let (mut looks, into) = (desk.try_clone().unwrap(), Arc::clone(&drawn));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // It fails when nobody has the other end any more.
            while let Ok(count) = looks.read(&mut piece) {
                let mut drawn = into.lock().unwrap();
                drawn.screen.process(&piece[..count]);
                drawn.bytes.extend(&piece[..count]);
            }
        });
        Terminal { child, desk, line, drawn }
    }

    /// Types this.
    pub fn press(&self, keys: &str) {
        (&self.desk).write_all(keys.as_bytes()).unwrap();
    }

    /// Gives it another size, as when a window is drawn larger.
    pub fn resize(&self, size: (u16, u16)) {
        let [columns, rows] = [size.0, size.1].map(|side| NonZeroU16::new(side).unwrap());
        self.drawn.lock().unwrap().screen.set_size(rows, columns);
        tcsetwinsize(&self.desk, winsize(size)).unwrap();
    }

    /// What can be read now.
    pub fn text(&self) -> String {
        self.drawn.lock().unwrap().screen.screen().contents()
    }

    /// The first line with this in it.
    pub fn line_with(&self, text: &str) -> Option<String> {
        self.text().lines().find(|line| line.contains(text)).map(str::to_owned)
    }

    /// All that was ever written to it.
    pub fn bytes(&self) -> Vec<u8> {
        self.drawn.lock().unwrap().bytes.clone()
    }

    /// Whether anything on it has a colour.
    pub fn has_colours(&self) -> bool {
        let drawn = self.drawn.lock().unwrap();
        let screen = drawn.screen.screen();
        let (rows, columns) = screen.size();
        let mut places = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
        places.any(|(row, column)| {
            screen.cell(row, column).is_some_and(|cell| {
                cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default
            })
        })
    }

    /// Waits until this is to be read.
    #[track_caller]
    pub fn shows(&self, text: &str) {
        self.eventually(text, |shown| shown.contains(text));
    }

    /// Waits until what is to be read is as wanted.
    #[track_caller]
    pub fn eventually(&self, what: &str, mut is_so: impl FnMut(&str) -> bool) {
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(what, || is_so(&self.text()));
        }));
        assert!(waited.is_ok(), "not in time: {what}\n{}", self.text());
    }

    /// Whether it is as a shell expects it: lines are edited, keys are echoed, the cursor is there, and so is what was there before.
    pub fn is_given_back(&self) -> bool {
        let modes = tcgetattr(&self.line).unwrap().local_modes;
        let drawn = self.drawn.lock().unwrap();
        let screen = drawn.screen.screen();
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
            && !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end.
    pub fn end(&mut self) -> ExitStatus {
        let mut ended = None;
        eventually("it ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap()
    }
}

fn winsize((columns, rows): (u16, u16)) -> Winsize {
    Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
