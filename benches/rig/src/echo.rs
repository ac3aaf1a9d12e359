//! Sends back what comes: the other side of `pingpong`.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use slab::Slab;

use crate::say::say;

/// Events taken at once.
const MOST_EVENTS: usize = 512;
const LISTENER: u64 = u64::MAX;

/// Listens, prints the address and serves until the process is ended.
pub(crate) fn serve(address: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    say(&listener.local_addr()?.to_string())?;
    accept_from(&listener)
}

fn accept_from(listener: &TcpListener) -> Result<()> {
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut connections: Slab<TcpStream> = Slab::new();
    let mut events: Vec<Event> = Vec::with_capacity(MOST_EVENTS);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll_wait"),
        }
        for event in &events {
            let token = event.data.u64();
            if token == LISTENER {
                while let Ok((socket, _)) = listener.accept() {
                    socket.set_nodelay(true)?;
                    socket.set_nonblocking(true)?;
                    let entry = connections.vacant_entry();
                    epoll::add(&epoll, &socket, EventData::new_u64(entry.key() as u64), EventFlags::IN)?;
                    entry.insert(socket);
                }
            } else if connections.get(token as usize).is_some_and(|socket| !echo(socket, &mut buffer)) {
                connections.remove(token as usize);
            }
        }
    }
}

/// False: the connection has ended. Messages are small and one at a time, so they go out whole.
fn echo(mut socket: &TcpStream, buffer: &mut [u8]) -> bool {
    match socket.read(buffer) {
        Ok(0) => false,
        Ok(count) => matches!(socket.write(&buffer[..count]), Ok(written) if written == count),
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_goes_back_and_an_end_costs_nobody_else() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Ends with the tests.
        std::thread::spawn(move || accept_from(&listener));
        let mut one = TcpStream::connect(address).unwrap();
        let mut other = TcpStream::connect(address).unwrap();
        let mut back = [0; 5];
        for _ in 0..3 {
            one.write_all(b"hello").unwrap();
            one.read_exact(&mut back).unwrap();
            assert_eq!(&back, b"hello");
        }
        drop(one);
        other.write_all(b"again").unwrap();
        other.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"again");
    }
}
