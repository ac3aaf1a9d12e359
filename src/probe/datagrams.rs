//! What a probe asks over UDP: bytes that the config has, or a question of DNS.

use std::io;
use std::net::SocketAddr;

use hickory_resolver::proto::op::{Message, MessageType, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use memchr::memmem;
use tokio::net::UdpSocket;

use super::fault;
use super::finding::Finding;
use super::talk::shown;
use crate::config::model::Dialing;
use crate::net::connect::first_of;
use crate::net::datagrams::{UDP_MAX, to_peer};
use crate::targets::{Endpoint, Verdict};

/// What is sent in one datagram, and which answer is a good one.
pub(super) enum DatagramQuestion {
    /// Bytes, and others that stand in a good answer.
    Bytes {
        /// The question.
        send: Vec<u8>,
        /// What a good answer contains.
        receive: Vec<u8>,
    },
    /// The address of a name; `None`: the name servers of the root.
    Dns(Option<Name>),
}

impl DatagramQuestion {
    /// By the rules of a target. A name is one: the config was asked.
    pub(super) fn dns(name: &str) -> DatagramQuestion {
        DatagramQuestion::Dns(Some(name).filter(|name| !name.is_empty()).and_then(|name| {
            let mut name = Name::from_ascii(name).ok()?;
            name.set_fqdn(true);
            Some(name)
        }))
    }

    /// Asks the first of `endpoints` that answers well.
    pub(super) async fn put(&self, endpoints: &[Endpoint], dialing: &Dialing) -> Finding {
        let addresses = endpoints.iter().filter_map(|endpoint| match endpoint {
            Endpoint::Tcp(address) => Some(*address),
            Endpoint::Unix(_) => None,
        });
        let attempts = addresses.map(|address| async move {
            match self.ask(address, dialing).await {
                Ok(Finding::Verdict(Verdict::Good)) => Ok(()),
                Ok(finding) => Err(finding),
                Err(error) => Err(fault::of_io(&error)),
            }
        });
        let mut failed = None;
        match first_of(attempts, |finding| failed = Some(finding)).await {
            Some(()) => Finding::Verdict(Verdict::Good),
            None => failed.unwrap_or_else(|| Finding::bad("no address")),
        }
    }

    async fn ask(&self, address: SocketAddr, dialing: &Dialing) -> io::Result<Finding> {
        let socket = UdpSocket::from_std(to_peer(address, dialing)?)?;
        let (question, id) = self.question()?;
        socket.send(&question).await?;
        let mut space = vec![0; UDP_MAX];
        loop {
            let length = socket.recv(&mut space).await?;
            // Of what is no answer to this question nothing is learned.
            if let Some(finding) = self.judge(&space[..length], id) {
                return Ok(finding);
            }
        }
    }

    fn question(&self) -> io::Result<(Vec<u8>, u16)> {
        let name = match self {
            DatagramQuestion::Bytes { send, .. } => return Ok((send.clone(), 0)),
            DatagramQuestion::Dns(name) => name,
        };
        let mut message = Message::query();
        message.metadata.recursion_desired = true;
        message.add_query(match name {
            Some(name) => Query::query(name.clone(), RecordType::A),
            None => Query::query(Name::root(), RecordType::NS),
        });
        let bytes = message.to_vec().map_err(io::Error::other)?;
        Ok((bytes, message.metadata.id))
    }

    /// What an answer is worth; `None`: it is none to this question.
    fn judge(&self, answer: &[u8], id: u16) -> Option<Finding> {
        let good = Finding::Verdict(Verdict::Good);
        match self {
            DatagramQuestion::Bytes { receive, .. } if memmem::find(answer, receive).is_some() => Some(good),
            DatagramQuestion::Bytes { receive, .. } => {
                let message = format!("it said {}, not {}", shown(answer), shown(receive));
                Some(Finding::bad(message))
            }
            DatagramQuestion::Dns(name) => {
                let Ok(message) = Message::from_vec(answer) else {
                    return Some(Finding::bad(format!("it said {}, which is no DNS", shown(answer))));
                };
                if message.metadata.id != id || message.metadata.message_type != MessageType::Response {
                    return None;
                }
                let code = message.metadata.response_code;
                let is_good = match name {
                    Some(_) => code == ResponseCode::NoError,
                    None => !matches!(code, ResponseCode::ServFail | ResponseCode::Refused),
                };
                Some(if is_good { good } else { Finding::bad(format!("it answered {code}")) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What is found about a backend that answers the first question with what `answer` makes of it.
    async fn found(
        question: DatagramQuestion,
        answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Finding {
        let backend = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = Endpoint::Tcp(backend.local_addr().expect("it is bound"));
        let serving = tokio::spawn(async move {
            let mut space = [0; 2048];
            let (length, from) = backend.recv_from(&mut space).await.expect("a question");
            for one in answer(&space[..length]) {
                backend.send_to(&one, from).await.expect("it is sent");
            }
        });
        let (endpoints, dialing) = ([endpoint], Dialing::default());
        let asking = question.put(&endpoints, &dialing);
        let finding = tokio::time::timeout(Duration::from_secs(20), asking).await.expect("an end");
        serving.await.expect("it ends");
        finding
    }

    fn talk() -> DatagramQuestion {
        DatagramQuestion::Bytes { send: b"ping".to_vec(), receive: b"pong".to_vec() }
    }

    fn answered(question: &[u8], code: ResponseCode) -> Vec<u8> {
        let mut message = Message::from_vec(question).expect("a question of DNS");
        message.metadata.message_type = MessageType::Response;
        message.metadata.response_code = code;
        message.to_vec().expect("an answer")
    }

    fn is_good(finding: &Finding) -> bool {
        matches!(finding, Finding::Verdict(Verdict::Good))
    }

    #[tokio::test]
    async fn bytes_are_asked_and_looked_for() {
        let said = found(talk(), |question| {
            assert_eq!(question, b"ping");
            vec![b"xx pong".to_vec()]
        });
        assert!(is_good(&said.await));
        let said = found(talk(), |_| vec![b"go away\n".to_vec()]).await;
        assert!(format!("{said:?}").contains("go away"), "{said:?}");
    }

    #[tokio::test]
    async fn a_question_of_dns_is_answered_well_unless_the_server_can_not() {
        for (name, code, good) in [
            ("", ResponseCode::NoError, true),
            ("", ResponseCode::NXDomain, true),
            ("", ResponseCode::ServFail, false),
            ("", ResponseCode::Refused, false),
            ("a.example", ResponseCode::NoError, true),
            ("a.example", ResponseCode::NXDomain, false),
        ] {
            let said = found(DatagramQuestion::dns(name), move |question| {
                let asked = Message::from_vec(question).expect("DNS");
                let query = asked.queries.first().expect("one question");
                assert_eq!(query.name().to_ascii(), format!("{name}."));
                let mut other = answered(question, ResponseCode::NoError);
                other[0] ^= 0x55;
                vec![other, question.to_vec(), answered(question, code)]
            });
            assert_eq!(is_good(&said.await), good, "{name} {code}");
        }
        let said = found(DatagramQuestion::dns(""), |_| vec![b"hello".to_vec()]).await;
        assert!(format!("{said:?}").contains("no DNS"), "{said:?}");
    }

    #[tokio::test]
    async fn where_nobody_listens_the_machine_says_so() {
        // Whoever asks for any port at all addresses does not get this number, and nobody is at this one.
        let guard = std::net::UdpSocket::bind("127.0.0.78:0").expect("a port");
        let address = SocketAddr::from(([127, 0, 0, 79], guard.local_addr().expect("it is bound").port()));
        let finding = talk().put(&[Endpoint::Tcp(address)], &Dialing::default()).await;
        assert!(format!("{finding:?}").contains("refused"), "{finding:?}");
    }
}
