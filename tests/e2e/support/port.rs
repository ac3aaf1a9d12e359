//! A port for a process that can't be told "any" and asked for it afterwards.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use socket2::{Domain, Socket, Type};

/// A port that is bound and not listened on. The system gives it to nobody who asks for any, neither to listen nor to connect from; who asks for it
/// by its number with `SO_REUSEADDR`, as those who listen do, gets it.
#[derive(Debug)]
pub struct Reserved(Socket);

impl Reserved {
    /// One on 127.0.0.1.
    pub fn new() -> Reserved {
        Reserved::on(Ipv4Addr::LOCALHOST)
    }

    /// One at this address. At 0.0.0.0 nobody gets its number at any other.
    pub fn on(ip: Ipv4Addr) -> Reserved {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&SocketAddr::from((ip, 0)).into()).unwrap();
        Reserved(socket)
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.0.local_addr().unwrap().as_socket().unwrap().port()
    }
}

/// An address for datagrams at which nobody is until somebody binds it by name, as long as what comes with it lives. Who asks for any port at all
/// addresses, as processes do that send, does not get its number.
pub fn unused_udp() -> (UdpSocket, SocketAddr) {
    let guard = UdpSocket::bind("127.0.0.78:0").unwrap();
    let address = SocketAddr::from(([127, 0, 0, 77], guard.local_addr().unwrap().port()));
    (guard, address)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_reserved_port_is_for_who_knows_its_number_and_for_no_other() {
        let reserved = Reserved::new();
        let listener = TcpListener::bind(("127.0.0.1", reserved.number())).unwrap();
        drop(listener);
        // Three times as many as there are: all of them come, but this one.
        let any = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert!((0..40_000).all(|_| any() != reserved.number()));
        assert!(Reserved::new().number() != reserved.number());
    }
}
