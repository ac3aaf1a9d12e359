//! What the servers of this process have logged. Tests run side by side: each looks for names of its own.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

static LINES: Mutex<String> = Mutex::new(String::new());
static START: Once = Once::new();

struct Sink;

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Begins to listen. What was logged before the first call of the process is lost.
pub fn listen() {
    START.call_once(|| {
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(|| Sink).finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

/// The lines with this text in them.
pub fn with(text: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}
