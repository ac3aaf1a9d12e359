//! Headers of the PROXY protocol, read by us and by another reader, the crate `proxy-header`.

use evenkeel::message::proxy_header::{ProxyFault, ProxyHeader, ProxyRead, read};
use proxy_header::{ParseConfig, Protocol, ProxiedAddress};

/// What the other reader makes of it.
fn theirs(bytes: &[u8]) -> Result<(proxy_header::ProxyHeader<'_>, usize), proxy_header::Error> {
    proxy_header::ProxyHeader::parse(bytes, ParseConfig::default())
}

/// A header is read the same however its bytes come, and as another reader reads it, which is more lenient in ways that are known.
pub fn proxy_header(data: &[u8]) {
    let ours = read(data);
    // Of long ones some places are enough.
    let step = (data.len() / 64).max(1);
    for end in (0..data.len()).step_by(step) {
        let part = read(&data[..end]);
        assert!(part == ProxyRead::More || part == ours, "{part:?} of {ours:?} at {end}");
    }
    match (&ours, theirs(data)) {
        (ProxyRead::Header(header, length), Ok((other, other_length))) => {
            assert_eq!(*length, other_length);
            is_same(header, &other);
        }
        (ProxyRead::Header(header, _), Err(error)) => {
            // LOCAL may say anything, and a family without a transport, or a transport without a family, says nothing.
            let family = data[13];
            let says_nothing =
                header.is_local || header.version == 2 && (family & 0x0f == 0 || family >> 4 == 0);
            assert!(says_nothing, "{header:?}, and they: {error:?}");
            assert!(header.addresses.is_none());
        }
        (ProxyRead::Fault(fault), Ok(_)) => assert!(is_stricter(*fault, data), "{fault:?}, and they take it"),
        (ProxyRead::None, Ok(_)) => {
            assert_ne!(data.get(5), Some(&b' '), "they look at no space behind the word")
        }
        (ProxyRead::More, Ok(_)) => panic!("they need no more"),
        (ProxyRead::Fault(_) | ProxyRead::None | ProxyRead::More, Err(_)) => {}
    }
}

fn is_same(ours: &ProxyHeader, theirs: &proxy_header::ProxyHeader<'_>) {
    let stream = |address: &&ProxiedAddress| address.protocol == Protocol::Stream;
    let addresses =
        theirs.proxied_address().filter(stream).map(|address| (address.source, address.destination));
    assert_eq!(ours.addresses, addresses);
    if ours.told.is_empty() {
        return;
    }
    assert_eq!(ours.told.all().count(), theirs.tlvs().count());
    // Of two of one kind the first counts, here as there; one of theirs that is no text is none.
    assert_eq!(ours.told.alpn(), theirs.alpn());
    assert_eq!(ours.told.unique_id(), theirs.unique_id());
    if let (Some(ours), Some(theirs)) = (ours.told.tls(), theirs.ssl()) {
        assert_eq!(ours.is_tls, theirs.client_ssl());
        let version = ours.find(0x21).map(std::str::from_utf8);
        // They pass over what is no text, to the next of the kind.
        if !matches!(version, Some(Err(_))) {
            assert_eq!(version.and_then(Result::ok), theirs.version());
        }
    }
}

/// What they take and we do not.
fn is_stricter(fault: ProxyFault, data: &[u8]) -> bool {
    match fault {
        // Signs and zeros before a port; more than one space.
        ProxyFault::Address | ProxyFault::LongLine | ProxyFault::Line => data.starts_with(b"PROXY"),
        // They look at lines when they are asked for them, and never at the checksum.
        ProxyFault::Tlv | ProxyFault::Checksum | ProxyFault::Long => data.starts_with(b"\r\n"),
        ProxyFault::Version | ProxyFault::Command | ProxyFault::Family | ProxyFault::Short => false,
    }
}
