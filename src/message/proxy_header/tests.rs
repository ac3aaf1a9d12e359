use std::fmt::Write as _;
use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::config::model::SendProxy;

/// Undoes the escapes of the file.
fn bytes_of(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b'r') => b'\r',
                Some(b'n') => b'\n',
                Some(b'\\') => b'\\',
                Some(b'x') => {
                    let digits = [rest.next(), rest.next()].map(|digit| char::from(digit.expect("a digit")));
                    u8::from_str_radix(&String::from_iter(digits), 16).expect("a byte")
                }
                other => panic!("no escape: {other:?} in {text}"),
            },
            _ => byte,
        });
    }
    bytes
}

/// What a header says, as the file has it.
fn said(header: &ProxyHeader) -> String {
    let mut text = match header.addresses {
        _ if header.is_local => "local".to_owned(),
        None => "unknown".to_owned(),
        Some((source, destination)) => format!("{source} {destination}"),
    };
    let told = &header.told;
    let tls = told.tls().filter(|tls| tls.is_tls);
    let of_tls = |kind| tls.and_then(|tls| tls.find(kind));
    let parts = [
        ("alpn", told.alpn()),
        ("authority", told.authority()),
        ("id", told.unique_id()),
        ("tls", of_tls(told::SSL_VERSION)),
        ("cn", of_tls(told::SSL_CN)),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            write!(text, " {name}={}", value.escape_ascii()).expect("a String takes everything");
        }
    }
    assert_eq!(tls.is_some_and(|tls| tls.has_certificate), of_tls(told::SSL_CN).is_some());
    text
}

fn fault(name: &str) -> ProxyFault {
    match name {
        "long_line" => ProxyFault::LongLine,
        "line" => ProxyFault::Line,
        "address" => ProxyFault::Address,
        "version" => ProxyFault::Version,
        "command" => ProxyFault::Command,
        "family" => ProxyFault::Family,
        "short" => ProxyFault::Short,
        "long" => ProxyFault::Long,
        "tlv" => ProxyFault::Tlv,
        "checksum" => ProxyFault::Checksum,
        other => panic!("no fault: {other}"),
    }
}

#[test]
fn headers_are_what_they_are_however_they_come() {
    let text = include_str!("../../../fixtures/proxy_headers.txt");
    let (mut headers, mut others, mut faults) = (0, 0, std::collections::HashSet::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [kind, says, name, bytes] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let bytes = bytes_of(bytes);
        // Byte by byte, until it is clear.
        let (end, outcome) = (0..=bytes.len())
            .map(|end| (end, read(&bytes[..end])))
            .find(|(_, outcome)| *outcome != ProxyRead::More)
            .unwrap_or_else(|| panic!("{name}: never clear"));
        match &outcome {
            ProxyRead::Header(header, length) => {
                assert_eq!((kind, says), ("header", &*said(header)), "{name}");
                assert_eq!((end, bytes.len()), (*length, *length), "{name}: no sooner and no later");
                headers += 1;
            }
            ProxyRead::None => assert_eq!(kind, "none", "{name}"),
            ProxyRead::Fault(why) => {
                assert_eq!((kind, *why), ("fault", fault(says)), "{name}");
                faults.insert(*why);
            }
            ProxyRead::More => unreachable!(),
        }
        others += usize::from(!matches!(outcome, ProxyRead::Header(..)));
        assert_eq!(read(&bytes), outcome, "{name}: whole");
        assert_eq!(read(&[&bytes[..], b"GET / HTTP/1.1\r\n"].concat()), outcome, "{name}: with what follows");
    }
    assert!(headers >= 38 && others >= 80 && faults.len() == 10, "{headers} {others} {faults:?}");
}

fn addresses() -> impl Strategy<Value = Option<(SocketAddr, SocketAddr)>> {
    let ip = prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from),
        any::<[u8; 4]>().prop_map(|v4| std::net::Ipv4Addr::from(v4).to_ipv6_mapped().into()),
    ];
    let address = (ip, any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port));
    prop::option::of((address.clone(), address))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(
        addresses in addresses(),
        alpn in prop::option::of("[a-z0-9/.]{1,9}"),
        sni in prop::option::of("[a-z.]{1,30}"),
        name in prop::option::of("[ -~]{0,40}"),
        is_resumed: bool,
        tls in prop::option::of("TLSv1\\.[23]"),
        id in "[a-f0-9]{0,32}",
    ) {
        let bytes = |text: &'_ Option<String>| text.clone().map(String::into_bytes);
        let (alpn, sni, name) = (bytes(&alpn), bytes(&sni), bytes(&name));
        let passed = PassedOn {
            addresses, tls: tls.as_deref(), certificate: name.as_deref(), is_resumed,
            alpn: alpn.as_deref(), sni: sni.as_deref(), id: id.as_bytes(),
        };
        let canonical = addresses.map(|(source, destination)| {
            [source, destination].map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()))
        });
        for version in [1, 2] {
            let mut out = b"x".to_vec();
            if version == 1 { write_v1(&mut out, &passed) } else { write_v2(&mut out, &passed) };
            let ProxyRead::Header(header, length) = read(&out[1..]) else {
                panic!("{:?}", read(&out[1..]))
            };
            prop_assert_eq!((length, header.version, header.is_local), (out.len() - 1, version, false));
            let read = header.addresses.map(|(source, destination)| {
                [source, destination].map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()))
            });
            prop_assert_eq!(read, canonical);
            if version == 1 || addresses.is_none() {
                prop_assert!(header.told.is_empty());
                continue;
            }
            prop_assert_eq!(header.told.alpn(), alpn.as_deref());
            prop_assert_eq!(header.told.authority(), sni.as_deref());
            prop_assert_eq!(header.told.unique_id(), Some(id.as_bytes()).filter(|id| !id.is_empty()));
            let told = header.told.tls();
            prop_assert_eq!(told.is_some(), tls.is_some());
            if let Some(told) = told {
                prop_assert_eq!((told.is_tls, told.has_certificate), (true, name.is_some()));
                prop_assert_eq!(told.find(told::SSL_VERSION), tls.as_ref().map(|tls| tls.as_bytes()));
                prop_assert_eq!(told.find(told::SSL_CN), name.as_deref().filter(|name| !name.is_empty()));
            }
        }
        let ProxyRead::Header(unknown, 15) = read(&of_nobody(SendProxy::V1)) else { panic!("none") };
        prop_assert!(!unknown.is_local && unknown.addresses.is_none());
        let local = of_nobody(SendProxy::V2);
        let ProxyRead::Header(header, 16) = read(&local) else { panic!("{local:?}") };
        prop_assert!(header.is_local && header.addresses.is_none());
    }

    #[test]
    fn whatever_comes_is_told_from_a_header_and_no_part_of_it_twice(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        start in 0usize..4,
        fixed in any::<[u8; 4]>(),
    ) {
        let start: &[u8] = [&b""[..], SIGNATURE, b"PROXY TCP4 ", b"PROXY UNKNOWN"][start];
        let small = [fixed[0] & 0x23, fixed[1] & 0x33, 0, fixed[3]];
        let bytes = [start, if start == SIGNATURE { &small } else { b"" }, &bytes].concat();
        let whole = read(&bytes);
        for end in 0..bytes.len() {
            let part = read(&bytes[..end]);
            prop_assert!(part == ProxyRead::More || part == whole, "{part:?} of {whole:?} at {end}");
        }
        if let ProxyRead::Header(_, length) = whole {
            prop_assert!(length <= bytes.len() && length <= MOST);
        }
    }
}
