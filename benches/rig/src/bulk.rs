//! As many bytes as go through, in both directions. What is received is thrown away inside the kernel, so the
//! load costs less than whatever stands in between.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, Result};
use clap::Args;
use rustix::net::{RecvFlags, recv};

use crate::clock::{now, pause};
use crate::say::say;

/// Bytes given to, or asked of the kernel at once.
const PIECE: usize = 256 * 1024;
/// The first byte of a connection says what its client wants.
const SEND_TO_ME: u8 = b'd';
const TAKE_FROM_ME: u8 = b'u';

#[derive(Args)]
pub(crate) struct Options {
    /// Be the other side instead: listen here, and send or take as each client wants
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "connect")]
    serve: Option<SocketAddr>,
    /// Where to connect to
    #[arg(long, value_name = "ADDRESS:PORT", required_unless_present = "serve")]
    connect: Option<SocketAddr>,
    /// Connections that receive
    #[arg(long, value_name = "N", default_value_t = 2)]
    down: usize,
    /// Connections that send
    #[arg(long, value_name = "N", default_value_t = 2)]
    up: usize,
    /// Seconds before the measured time
    #[arg(long, value_name = "SECONDS", default_value_t = 0.2)]
    warm: f64,
    /// Seconds of the measured time
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
}

/// Prints `start` when the measured time begins and `stop` and a line of JSON when it ends.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(address) = options.serve {
        return serve(address);
    }
    let address = options.connect.context("--connect is missing")?;
    let count = Arc::new(Count::default());
    for number in 0..options.down + options.up {
        let wish = if number < options.down { SEND_TO_ME } else { TAKE_FROM_ME };
        let mut socket = TcpStream::connect(address).with_context(|| format!("connection {number}"))?;
        socket.write_all(&[wish])?;
        let count = Arc::clone(&count);
        thread::spawn(move || {
            if wish == SEND_TO_ME {
                take(&socket, &count.down);
            } else {
                send(&socket, &count.up);
            }
            if !count.over.load(Ordering::Relaxed) {
                count.errors.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    pause(options.warm);
    let (down, up) = (count.down.load(Ordering::Relaxed), count.up.load(Ordering::Relaxed));
    say("start")?;
    let began = now();
    pause(options.seconds);
    let (down, up) = (count.down.load(Ordering::Relaxed) - down, count.up.load(Ordering::Relaxed) - up);
    let seconds = (now() - began).as_secs_f64();
    say("stop")?;
    // The end of the process ends the connections.
    count.over.store(true, Ordering::Relaxed);
    let errors = count.errors.load(Ordering::Relaxed);
    say(&format!("{{\"down_bytes\":{down},\"up_bytes\":{up},\"seconds\":{seconds:.6},\"errors\":{errors}}}"))
}

/// What went through so far.
#[derive(Default)]
struct Count {
    down: AtomicU64,
    up: AtomicU64,
    /// Connections that ended before their time.
    errors: AtomicU64,
    over: AtomicBool,
}

fn serve(address: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    say(&listener.local_addr()?.to_string())?;
    accept_from(&listener)
}

fn accept_from(listener: &TcpListener) -> Result<()> {
    loop {
        let (mut socket, _) = listener.accept().context("accept")?;
        // A thread each: there are as few connections as it takes to fill a core.
        thread::spawn(move || {
            let mut wish = [0];
            let uncounted = AtomicU64::new(0);
            match socket.read_exact(&mut wish) {
                Ok(()) if wish[0] == SEND_TO_ME => send(&socket, &uncounted),
                Ok(()) if wish[0] == TAKE_FROM_ME => take(&socket, &uncounted),
                _ => {}
            }
        });
    }
}

/// Sends until the connection ends.
fn send(mut socket: &TcpStream, sent: &AtomicU64) {
    let piece = vec![b'x'; PIECE];
    while let Ok(count) = socket.write(&piece) {
        sent.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// Receives until the connection ends. MSG_TRUNC: TCP counts the bytes and copies none (tcp(7)).
fn take(socket: &TcpStream, taken: &AtomicU64) {
    let mut room = vec![0; PIECE];
    while let Ok((_, count)) = recv(socket, &mut room[..], RecvFlags::TRUNC)
        && count > 0
    {
        taken.fetch_add(count as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_says_who_sends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Ends with the tests.
        thread::spawn(move || accept_from(&listener));
        let mut down = TcpStream::connect(address).unwrap();
        down.write_all(&[SEND_TO_ME]).unwrap();
        let mut received = vec![0; 3 * PIECE];
        down.read_exact(&mut received).unwrap();
        assert!(received.iter().all(|&byte| byte == b'x'));
        let mut up = TcpStream::connect(address).unwrap();
        up.write_all(&[TAKE_FROM_ME]).unwrap();
        // More than any socket buffer holds: somebody has to take it.
        for _ in 0..64 {
            up.write_all(&received).unwrap();
        }
    }

    #[test]
    fn bytes_are_counted_without_being_copied() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (taker, _) = listener.accept().unwrap();
        sender.write_all(&vec![1; 100_000]).unwrap();
        drop(sender);
        let count = AtomicU64::new(0);
        take(&taker, &count);
        assert_eq!(count.load(Ordering::Relaxed), 100_000);
    }
}
