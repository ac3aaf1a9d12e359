//! Reading a header, strictly: whoever is trusted to tell addresses writes them as they are to be written.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use super::told::{CRC32C, ToldLines};
use super::{MOST, ProxyHeader, SIGNATURE};

/// Bytes of a header of version 1 at most, with the end of its line.
const LINE: usize = 107;
/// The first bytes of version 2, behind which the length says how many follow.
const FIXED: usize = 16;

/// What bytes amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyRead {
    /// What there is may become a header: more bytes tell.
    More,
    /// No header, from the first bytes on.
    None,
    /// A header, which takes so many bytes.
    Header(Box<ProxyHeader>, usize),
    /// It begins as one and is none.
    Fault(ProxyFault),
}

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyFault {
    /// A line of version 1 that has no end where it must have.
    LongLine,
    /// A line of version 1 that is not written as one.
    Line,
    /// Addresses or ports of version 1 that are none, or of two kinds.
    Address,
    /// Not version 2.
    Version,
    /// Neither LOCAL nor PROXY.
    Command,
    /// A family or transport that is not known.
    Family,
    /// Shorter than its addresses.
    Short,
    /// Longer than any sender has to say.
    Long,
    /// Behind the addresses is what is not type, length and value.
    Tlv,
    /// The checksum is another one.
    Checksum,
}

impl Display for ProxyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProxyFault::LongLine => "its line has no end within 107 bytes",
            ProxyFault::Line => "its line is not written as version 1 has it",
            ProxyFault::Address => "its addresses or ports are none",
            ProxyFault::Version => "it is neither version 1 nor 2",
            ProxyFault::Command => "its command is neither LOCAL nor PROXY",
            ProxyFault::Family => "its address family or transport is not known",
            ProxyFault::Short => "it is shorter than its addresses",
            ProxyFault::Long => "it is longer than 16 KiB",
            ProxyFault::Tlv => "what stands behind its addresses is malformed",
            ProxyFault::Checksum => "its checksum is wrong",
        })
    }
}

/// Reads the header that `bytes` begin with. It is asked again with all of them and more for [`ProxyRead::More`], and what it says does not
/// depend on how they came.
#[must_use]
pub fn read(bytes: &[u8]) -> ProxyRead {
    let begins = |start: &[u8]| bytes.starts_with(start) || start.starts_with(bytes);
    let outcome = if begins(SIGNATURE) {
        read_v2(bytes)
    } else if [&b"PROXY TCP4 "[..], b"PROXY TCP6 ", b"PROXY UNKNOWN"].iter().any(|start| begins(start)) {
        read_v1(bytes)
    } else {
        return ProxyRead::None;
    };
    match outcome {
        Ok(Some((header, length))) => ProxyRead::Header(Box::new(header), length),
        Ok(None) => ProxyRead::More,
        Err(fault) => ProxyRead::Fault(fault),
    }
}

type Outcome = Result<Option<(ProxyHeader, usize)>, ProxyFault>;

fn read_v1(bytes: &[u8]) -> Outcome {
    let line = &bytes[..bytes.len().min(LINE)];
    let Some(end) = line.iter().position(|&byte| byte == b'\r' || byte == b'\n') else {
        return if line.len() == LINE { Err(ProxyFault::LongLine) } else { Ok(None) };
    };
    match line[end..] {
        [b'\r', b'\n', ..] => {}
        [b'\r'] if line.len() < LINE => return Ok(None),
        [b'\r'] => return Err(ProxyFault::LongLine),
        _ => return Err(ProxyFault::Line),
    }
    let mut header = ProxyHeader { version: 1, ..ProxyHeader::default() };
    if let Some(rest) = line[..end].strip_prefix(b"PROXY UNKNOWN") {
        // What stands behind it is to be ignored.
        return if rest.is_empty() || rest.starts_with(b" ") {
            Ok(Some((header, end + 2)))
        } else {
            Err(ProxyFault::Line)
        };
    }
    let text = std::str::from_utf8(&line[..end]).map_err(|_| ProxyFault::Line)?;
    let mut words = text.split(' ').skip(1);
    let mut word = || words.next().ok_or(ProxyFault::Line);
    let is_v6 = word()? == "TCP6";
    let (source, destination) = (ip(word()?, is_v6)?, ip(word()?, is_v6)?);
    let (source_port, destination_port) = (port(word()?)?, port(word()?)?);
    if words.next().is_some() {
        return Err(ProxyFault::Line);
    }
    let addresses = (SocketAddr::new(source, source_port), SocketAddr::new(destination, destination_port));
    header.addresses = Some(addresses);
    Ok(Some((header, end + 2)))
}

fn ip(text: &str, is_v6: bool) -> Result<IpAddr, ProxyFault> {
    let ip = if is_v6 {
        Ipv6Addr::from_str(text).map(IpAddr::V6)
    } else {
        Ipv4Addr::from_str(text).map(IpAddr::V4)
    };
    ip.map_err(|_| ProxyFault::Address)
}

fn port(text: &str) -> Result<u16, ProxyFault> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain).ok_or(ProxyFault::Address)
}

fn read_v2(bytes: &[u8]) -> Outcome {
    // What is wrong is told as soon as it can be seen: whoever writes it waits for nothing.
    let command = match bytes.get(12) {
        None => return Ok(None),
        Some(byte) if byte >> 4 != 2 => return Err(ProxyFault::Version),
        Some(byte) => byte & 0x0f,
    };
    if command > 1 {
        return Err(ProxyFault::Command);
    }
    let is_local = command == 0;
    let Some(&family) = bytes.get(13) else { return Ok(None) };
    // LOCAL may say anything here, and none of it counts.
    if !is_local && (family >> 4 > 3 || family & 0x0f > 2) {
        return Err(ProxyFault::Family);
    }
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length > MOST - FIXED {
        return Err(ProxyFault::Long);
    }
    let size = match family >> 4 {
        _ if is_local => 0,
        1 => 12,
        2 => 36,
        3 => 216,
        _ => 0,
    };
    if length < size {
        return Err(ProxyFault::Short);
    }
    let Some(rest) = rest.get(..length) else { return Ok(None) };
    let end = FIXED + length;
    let mut header = ProxyHeader { version: 2, is_local, ..ProxyHeader::default() };
    if is_local {
        return Ok(Some((header, end)));
    }
    let (addresses, lines) = rest.split_at(size);
    // Datagrams don't come on a connection: who says so means something else than we could make of it.
    let is_stream = family & 0x0f == 1;
    header.addresses = addresses_of(addresses).filter(|_| is_stream);
    // An unspecified family says nothing of what follows.
    if family >> 4 != 0 {
        header.told = ToldLines::new(lines).ok_or(ProxyFault::Tlv)?;
        check(&bytes[..end], &header.told)?;
    }
    Ok(Some((header, end)))
}

fn addresses_of(bytes: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let (ips, ports) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
    let (source, destination) = ips.split_at(ips.len() / 2);
    let ip = |bytes: &[u8]| match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        // A path.
        _ => None,
    };
    let port = |place: usize| u16::from_be_bytes([ports[place], ports[place + 1]]);
    Some((SocketAddr::new(ip(source)?, port(0)), SocketAddr::new(ip(destination)?, port(2))))
}

/// Holds a header to the checksum that it says, which is that of itself with zeros in place of the checksum.
fn check(bytes: &[u8], told: &ToldLines) -> Result<(), ProxyFault> {
    let Some(said) = told.find(CRC32C) else { return Ok(()) };
    // It begins as far before the end as the lines from its value on are long.
    let behind: usize =
        told.all().skip_while(|tlv| tlv.kind != CRC32C).skip(1).map(|tlv| tlv.value.len() + 3).sum();
    let end = bytes.len() - behind;
    let sum = crc32c::crc32c(&bytes[..end - 4]);
    let sum = crc32c::crc32c_append(sum, &[0; 4]);
    let sum = crc32c::crc32c_append(sum, &bytes[end..]);
    if said == sum.to_be_bytes() { Ok(()) } else { Err(ProxyFault::Checksum) }
}
