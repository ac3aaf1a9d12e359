//! What a client says first under TLS, read by us and by rustls.

use std::io::Read as _;

use evenkeel::tls::hello::{ClientHello, HelloFault, HelloRead, HelloReader};
use rustls::server::Acceptor;

/// A first message is read the same however its bytes come; whatever rustls takes we take, and find the same name and the same protocols in it.
pub fn client_hello(data: &[u8]) {
    let ours = HelloReader::default().read(data);
    let mut reader = HelloReader::default();
    // Of long ones some places are enough.
    let step = (data.len() / 64).max(1);
    for end in (0..data.len()).step_by(step) {
        match reader.read(&data[..end]) {
            HelloRead::More => {}
            part => return assert_eq!(part, ours, "at {end}"),
        }
    }
    assert_eq!(reader.read(data), ours, "in pieces");
    let Some(theirs) = theirs(data) else { return };
    match ours {
        HelloRead::Whole(ours) => {
            assert_eq!(ours.protocols, theirs.protocols);
            // What is no host name is none for us, and a dot at the end of one says nothing.
            let name = theirs.name.as_deref().map(|name| name.strip_suffix('.').unwrap_or(name));
            assert!(ours.name.is_none() || ours.name.as_deref() == name, "{:?} {name:?}", ours.name);
        }
        // They look at no lengths beyond what they can hold, and forgive what is said twice where they know nothing of it.
        HelloRead::Fault(HelloFault::Long | HelloFault::Twice) => {}
        // What stands beside the one name they pass over.
        HelloRead::Fault(HelloFault::Malformed) if !is_one_name(data, theirs.name.as_deref()) => {}
        other => panic!("{other:?}, and they take it: {theirs:?}"),
    }
}

/// Whether this name stands in a list by itself.
fn is_one_name(data: &[u8], name: Option<&str>) -> bool {
    let Some(name) = name else { return true };
    let (list, length) = ((name.len() + 3) as u16, name.len() as u16);
    let alone = [&list.to_be_bytes()[..], &[0], &length.to_be_bytes(), name.as_bytes()].concat();
    data.windows(alone.len()).any(|bytes| bytes.eq_ignore_ascii_case(&alone))
}

/// What rustls makes of it, if it takes it.
fn theirs(mut data: &[u8]) -> Option<ClientHello> {
    let mut acceptor = Acceptor::default();
    loop {
        let before = data.len();
        // A piece at a time: it holds no more.
        acceptor.read_tls(&mut data.by_ref().take(4096)).ok()?;
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let hello = accepted.client_hello();
                return Some(ClientHello {
                    name: hello.server_name().map(|name| name.to_ascii_lowercase().into()),
                    protocols: hello.alpn().into_iter().flatten().map(Into::into).collect(),
                });
            }
            Ok(None) if data.len() < before => {}
            Ok(None) | Err(_) => return None,
        }
    }
}
