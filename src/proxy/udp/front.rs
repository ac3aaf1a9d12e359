//! The socket that clients send to, and the space that datagrams are read into.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::task::{Context, Poll, ready};

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::net::datagrams::{UDP_MAX, allow_fragments, watch};

use super::flows::FlowClient;

/// Datagrams, or rows of them, that are read at once.
pub const BATCH: usize = quinn_udp::BATCH_SIZE;

/// What datagrams are read into.
pub struct DatagramSpace {
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH],
}

impl Default for DatagramSpace {
    fn default() -> DatagramSpace {
        // Zeroes of the system's: what nobody writes to takes no memory.
        DatagramSpace { bytes: vec![0; BATCH * UDP_MAX], metas: [RecvMeta::default(); BATCH] }
    }
}

/// What was read at once: datagrams of one length, and perhaps a shorter one behind them.
#[derive(Clone, Copy, Debug)]
pub struct DatagramRow<'s> {
    /// Who has sent it.
    pub from: SocketAddr,
    /// To which address of ours.
    pub to: Option<IpAddr>,
    /// All of them.
    pub bytes: &'s [u8],
    /// The length of each but the last.
    pub length: usize,
}

impl DatagramRow<'_> {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        if self.length == 0 { 1 } else { self.bytes.len().div_ceil(self.length).max(1) }
    }

    /// What is to be said to the kernel about their length; `None`: there is one.
    #[must_use]
    fn segment(&self) -> Option<usize> {
        Some(self.length).filter(|length| *length > 0 && *length < self.bytes.len())
    }
}

impl DatagramSpace {
    /// Reads what `socket` has, up to `most` rows. Gives how many those are; fewer than `most`: it has no more.
    ///
    /// # Errors
    /// What the system reports; `WouldBlock`: it has none.
    pub fn read(&mut self, kernel: &UdpSocketState, socket: &UdpSocket, most: usize) -> io::Result<usize> {
        let mut pieces = self.bytes.chunks_exact_mut(UDP_MAX);
        let mut pieces: [IoSliceMut<'_>; BATCH] =
            std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
        let most = most.min(BATCH);
        kernel.recv(UdpSockRef::from(socket), &mut pieces[..most], &mut self.metas[..most])
    }

    /// Reads one datagram of a socket that is connected to `from`: most often there is one, and asking for more costs as much as reading it.
    ///
    /// # Errors
    /// What the system reports; `WouldBlock`: it has none.
    #[inline]
    pub fn read_one(&mut self, socket: &UdpSocket) -> io::Result<()> {
        let length = socket.recv(&mut self.bytes[..UDP_MAX])?;
        (self.metas[0].len, self.metas[0].stride) = (length, length);
        Ok(())
    }

    /// A row that was read.
    #[must_use]
    #[inline]
    pub fn row(&self, number: usize) -> DatagramRow<'_> {
        let meta = &self.metas[number];
        let start = number * UDP_MAX;
        DatagramRow {
            from: meta.addr,
            to: meta.dst_ip,
            bytes: &self.bytes[start..start + meta.len.min(UDP_MAX)],
            length: meta.stride,
        }
    }
}

/// The socket of one address.
pub struct Front {
    socket: AsyncFd<UdpSocket>,
    kernel: UdpSocketState,
    /// It is bound to all addresses of its family: what is sent back has to come from the one that was sent to.
    is_wild: bool,
}

impl Front {
    /// Has the event loop watch a bound socket.
    ///
    /// # Errors
    /// What the system reports.
    pub fn new(socket: UdpSocket) -> io::Result<Front> {
        let address = socket.local_addr()?;
        let kernel = UdpSocketState::new(UdpSockRef::from(&socket))?;
        allow_fragments(socket.as_fd(), address.is_ipv4());
        let socket = watch(socket, Interest::READABLE)?;
        Ok(Front { socket, kernel, is_wild: address.ip().is_unspecified() })
    }

    /// What the kernel can do.
    #[must_use]
    pub fn kernel(&self) -> &UdpSocketState {
        &self.kernel
    }

    /// Reads what clients have sent: see [`DatagramSpace::read`].
    pub fn poll_read(&self, cx: &mut Context<'_>, space: &mut DatagramSpace) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(cx))?;
            match ready.try_io(|socket| space.read(&self.kernel, socket.get_ref(), BATCH)) {
                Ok(Ok(count)) => {
                    if count < BATCH {
                        // There was no more. What has come since makes the event loop say so.
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(count));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_) => {}
            }
        }
    }

    /// Another descriptor of the socket.
    ///
    /// # Errors
    /// What the system reports.
    pub fn copy(&self) -> io::Result<OwnedFd> {
        self.socket.get_ref().try_clone().map(OwnedFd::from)
    }

    /// Whose flow a row belongs to.
    #[must_use]
    #[inline]
    pub fn client(&self, row: &DatagramRow<'_>) -> FlowClient {
        FlowClient { address: row.from, to: row.to.filter(|_| self.is_wild) }
    }

    /// Sends a row to a client.
    ///
    /// # Errors
    /// What the system reports; the kernel takes no part of a row of which it does not take all.
    #[inline]
    pub fn send(&self, client: &FlowClient, row: &DatagramRow<'_>) -> io::Result<()> {
        let socket = self.socket.get_ref();
        if client.to.is_none() && row.segment().is_none() {
            // Nothing has to be said beside it.
            return socket.send_to(row.bytes, client.address).map(drop);
        }
        let transmit = Transmit {
            destination: client.address,
            ecn: None,
            contents: row.bytes,
            segment_size: row.segment(),
            src_ip: client.to,
        };
        match self.kernel.try_send(UdpSockRef::from(self.socket.get_ref()), &transmit) {
            Err(_) if row.segment().is_some() => self.send_each(client, row),
            sent => sent,
        }
    }

    /// The same one by one, where the way to the client can't cut a row.
    #[cold]
    fn send_each(&self, client: &FlowClient, row: &DatagramRow<'_>) -> io::Result<()> {
        for bytes in row.bytes.chunks(row.length) {
            let transmit = Transmit {
                destination: client.address,
                ecn: None,
                contents: bytes,
                segment_size: None,
                src_ip: client.to,
            };
            self.kernel.try_send(UdpSockRef::from(self.socket.get_ref()), &transmit)?;
        }
        Ok(())
    }
}
