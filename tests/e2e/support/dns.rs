//! A DNS server that says what a test wants, over UDP and TCP at one port.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::rdata::{CNAME, SRV};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};

/// What is said about a name.
#[derive(Clone, Debug)]
pub enum Says {
    /// These, of whichever kind they are.
    Records(Vec<(u32, RData)>),
    /// Nothing but this code.
    Code(ResponseCode),
    /// There is such a name, and nothing of this kind.
    Nothing,
    /// Nobody answers.
    Silence,
    /// Others are to be asked.
    Lame,
}

/// The server; it ends when this is dropped.
pub struct FakeDns {
    pub address: SocketAddr,
    zone: Arc<Zone>,
}

#[derive(Default)]
struct Zone {
    names: Mutex<HashMap<String, Says>>,
    asked: AtomicU64,
    asked_over_tcp: AtomicU64,
    is_over: AtomicBool,
}

/// Records of addresses.
pub fn addresses<A: ToString>(ttl: u32, all: impl IntoIterator<Item = A>) -> Says {
    let record = |address: A| (ttl, RData::from(address.to_string().parse::<IpAddr>().unwrap()));
    Says::Records(all.into_iter().map(record).collect())
}

/// Another name for it.
pub fn alias(ttl: u32, name: &str) -> Says {
    Says::Records(vec![(ttl, RData::CNAME(CNAME(Name::from_ascii(format!("{name}.")).unwrap())))])
}

/// Records of services: priority, weight, port, host.
pub fn services(ttl: u32, all: &[(u16, u16, u16, &str)]) -> Says {
    let record = |(priority, weight, port, host): &(u16, u16, u16, &str)| {
        let host = Name::from_ascii(format!("{host}.")).unwrap();
        (ttl, RData::SRV(SRV::new(*priority, *weight, *port, host)))
    };
    Says::Records(all.iter().map(record).collect())
}

impl FakeDns {
    pub fn start() -> FakeDns {
        loop {
            let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = datagrams.local_addr().unwrap();
            // Somebody else may have the port there.
            let Ok(streams) = TcpListener::bind(address) else { continue };
            return FakeDns::serve(datagrams, streams);
        }
    }

    fn serve(datagrams: UdpSocket, streams: TcpListener) -> FakeDns {
        let address = datagrams.local_addr().unwrap();
        let zone = Arc::<Zone>::default();
        datagrams.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (over_udp, over_tcp) = (Arc::clone(&zone), Arc::clone(&zone));
        std::thread::spawn(move || {
            let mut room = [0; 4096];
            while !over_udp.is_over.load(Ordering::Relaxed) {
                let Ok((length, from)) = datagrams.recv_from(&mut room) else { continue };
                if let Some(answer) = over_udp.answer(&room[..length], Some(1232)) {
                    let _ = datagrams.send_to(&answer, from);
                }
            }
        });
        std::thread::spawn(move || {
            for stream in streams.incoming() {
                if over_tcp.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(mut stream), zone) = (stream, Arc::clone(&over_tcp)) else { continue };
                std::thread::spawn(move || {
                    let _ = stream.set_read_timeout(Some(super::PATIENCE));
                    let mut length = [0; 2];
                    while stream.read_exact(&mut length).is_ok() {
                        let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
                        if stream.read_exact(&mut question).is_err() {
                            return;
                        }
                        zone.asked_over_tcp.fetch_add(1, Ordering::Relaxed);
                        let Some(answer) = zone.answer(&question, None) else { continue };
                        let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
                        if stream.write_all(&[&length[..], &answer].concat()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        FakeDns { address, zone }
    }

    /// What is said of a name from now on.
    pub fn say(&self, name: &str, says: Says) {
        self.zone.names.lock().unwrap().insert(name.to_ascii_lowercase(), says);
    }

    /// Questions so far.
    pub fn asked(&self) -> u64 {
        self.zone.asked.load(Ordering::Relaxed)
    }

    /// Those of them over TCP.
    pub fn asked_over_tcp(&self) -> u64 {
        self.zone.asked_over_tcp.load(Ordering::Relaxed)
    }
}

impl Drop for FakeDns {
    fn drop(&mut self) {
        self.zone.is_over.store(true, Ordering::Relaxed);
        let _ = std::net::TcpStream::connect(self.address);
    }
}

impl Zone {
    /// The answer to a question; `most`: what is longer is cut.
    fn answer(&self, question: &[u8], most: Option<usize>) -> Option<Vec<u8>> {
        let asked = Message::from_vec(question).ok()?;
        self.asked.fetch_add(1, Ordering::Relaxed);
        let query = asked.queries.first()?.clone();
        let mut answer = Message::new(asked.metadata.id, MessageType::Response, asked.metadata.op_code);
        answer.metadata.recursion_desired = true;
        answer.metadata.recursion_available = true;
        answer.add_query(query.clone());
        let names = self.names.lock().unwrap();
        let mut name = query.name().clone();
        // A chain of names, which a server follows.
        for _ in 0..16 {
            let text = name.to_ascii().trim_end_matches('.').to_ascii_lowercase();
            let alias = match names.get(&text) {
                None => {
                    answer.metadata.response_code = ResponseCode::NXDomain;
                    None
                }
                Some(Says::Code(code)) => {
                    answer.metadata.response_code = *code;
                    None
                }
                Some(Says::Silence) => return None,
                Some(Says::Nothing) => None,
                Some(Says::Lame) => {
                    let server = RData::NS(hickory_resolver::proto::rr::rdata::NS(Name::root()));
                    answer.add_authority(Record::from_rdata(Name::root(), 60, server));
                    None
                }
                Some(Says::Records(records)) => {
                    let mut alias = None;
                    for (ttl, data) in records {
                        if let RData::CNAME(other) = data {
                            alias = Some(other.0.clone());
                        }
                        if data.record_type() == query.query_type() || data.record_type() == RecordType::CNAME
                        {
                            answer.add_answer(Record::from_rdata(name.clone(), *ttl, data.clone()));
                        }
                    }
                    alias
                }
            };
            match alias {
                Some(next) => name = next,
                None => break,
            }
        }
        drop(names);
        let whole = answer.to_vec().ok()?;
        if most.is_some_and(|most| whole.len() > most) {
            return answer.truncate().to_vec().ok();
        }
        Some(whole)
    }
}
