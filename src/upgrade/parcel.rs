//! Messages with descriptors from one process to another, over a pair of connected unix sockets.
//!
//! A message is eight bytes (how long the rest is, how many descriptors come with it, zeros), with the descriptors as `SCM_RIGHTS` of the first of
//! them (unix(7)), and then that many bytes.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Descriptors that one message may have; the system takes 253 at once.
pub const MOST_DESCRIPTORS: usize = 200;
/// Bytes that one message may have.
pub const MOST_BYTES: usize = 16 * 1024 * 1024;
const HEAD: usize = 8;

/// A message that has come.
#[derive(Debug, Default)]
pub struct Parcel {
    /// What it says.
    pub bytes: Vec<u8>,
    /// What came with it. They close at exec.
    pub descriptors: Vec<OwnedFd>,
}

/// Sends one message.
///
/// # Errors
/// `InvalidInput`: it is too large; or what the system reports, such as that the other one is gone or takes too long.
pub fn send(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    if bytes.len() > MOST_BYTES || descriptors.len() > MOST_DESCRIPTORS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&(bytes.len() as u32).to_be_bytes());
    head[4..6].copy_from_slice(&(descriptors.len() as u16).to_be_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut sent = 0;
    while sent < HEAD {
        // They go with the first byte.
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let has_some = sent == 0 && !descriptors.is_empty();
        if has_some && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        match sendmsg(socket, &[IoSlice::new(&head[sent..])], &mut beside, SendFlags::NOSIGNAL) {
            Ok(count) => sent += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    (&mut &*socket).write_all(bytes)
}

/// Waits for one message.
///
/// # Errors
/// `UnexpectedEof`: the other one is gone; `InvalidData`: this is no message, or its descriptors did not come through; or what the system reports, such
/// as that it takes too long.
pub fn receive(socket: &UnixStream) -> io::Result<Parcel> {
    let mut head = [0; HEAD];
    let mut parcel = Parcel::default();
    let mut there = 0;
    while there < HEAD {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut head[there..])];
        let count = match recvmsg(socket, &mut into, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => received.bytes,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        there += count;
        for one in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = one {
                parcel.descriptors.extend(descriptors);
            }
        }
    }
    let [a, b, c, d, e, f, ..] = head;
    let (length, count) =
        (u32::from_be_bytes([a, b, c, d]) as usize, usize::from(u16::from_be_bytes([e, f])));
    if length > MOST_BYTES || count != parcel.descriptors.len() || head[6..] != [0; 2] {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Room is made as bytes come: who announces many and sends none takes none.
    let read = (&mut &*socket).take(length as u64).read_to_end(&mut parcel.bytes)?;
    if read < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(parcel) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Seek as _;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn bytes_and_descriptors_arrive_in_order_and_close_at_exec() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut files: Vec<File> = (0..MOST_DESCRIPTORS).map(|_| tempfile::tempfile().unwrap()).collect();
        files.iter_mut().enumerate().for_each(|(number, file)| write!(file, "{number}").unwrap());
        let fds: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
        let long = vec![7; 300_000];
        let sender = std::thread::spawn({
            let long = long.clone();
            let fds: Vec<OwnedFd> = fds.iter().map(|fd| fd.try_clone_to_owned().unwrap()).collect();
            move || {
                let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
                send(&one, b"first", &fds).unwrap();
                send(&one, &long, &fds[..1]).unwrap();
                send(&one, b"", &[]).unwrap();
                one
            }
        });
        let first = receive(&other).unwrap();
        assert_eq!((first.bytes.as_slice(), first.descriptors.len()), (&b"first"[..], MOST_DESCRIPTORS));
        for (number, fd) in first.descriptors.into_iter().enumerate() {
            assert!(rustix::io::fcntl_getfd(&fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
            let (mut file, mut text) = (File::from(fd), String::new());
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, number.to_string());
        }
        let second = receive(&other).unwrap();
        assert!(second.bytes == long && second.descriptors.len() == 1);
        let third = receive(&other).unwrap();
        assert!(third.bytes.is_empty() && third.descriptors.is_empty());
        drop(sender.join().unwrap());
        assert_eq!(receive(&other).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let said = |bytes: &[u8]| {
            let (one, other) = UnixStream::pair().unwrap();
            (&one).write_all(bytes).unwrap();
            drop(one);
            receive(&other).map(drop).map_err(|error| error.kind())
        };
        assert_eq!(said(&[0, 0, 0, 1, 0, 0, 0, 0, 9]), Ok(()));
        assert_eq!(said(&[0, 0, 0, 2, 0, 0, 0, 0, 9]), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(said(&[0, 0, 0]), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(said(&[0, 0, 0, 1, 0, 1, 0, 0, 9]), Err(io::ErrorKind::InvalidData), "no descriptor came");
        assert_eq!(said(&[255; 9]), Err(io::ErrorKind::InvalidData));
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(
            send(&one, &vec![0; MOST_BYTES + 1], &[]).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }
}
