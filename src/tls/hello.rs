//! What a client says first under TLS, read without a session: the host name that it asks for (SNI, RFC 6066 §3) and what it offers to speak
//! (ALPN, RFC 7301). By these a connection is routed that is not decrypted.
//!
//! Bytes in, an answer out. The message may come in any number of segments and records (RFC 8446 §5.1), and each byte is looked at once, however
//! they drip. What is read here is what the backend reads: nothing of it is changed, and what is malformed is refused instead of guessed at. Values that nobody
//! knows (GREASE, RFC 8701) and an encrypted hello inside (ECH) are passed over: the outer name is the one that counts.

use std::fmt::{self, Display};

/// Bytes of the message at most. With a post-quantum key share it has about 2,000.
const MOST: usize = 32 * 1024;
/// Bytes of all records at most that carry it.
pub const MOST_HELD: usize = 64 * 1024;
/// Content of a record at most (RFC 8446 §5.1).
const RECORD: usize = 1 << 14;
/// The content type of a handshake, and the message in it.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
/// The kind of a server name that is a host name.
const HOST_NAME: u8 = 0;

/// What a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The host name, in lower case; `None`: it names none, or something that is no host name.
    pub name: Option<Box<str>>,
    /// What it offers to speak, in its order.
    pub protocols: Vec<Box<[u8]>>,
}

/// What was read amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelloRead {
    /// The message is not whole.
    More,
    /// It is.
    Whole(ClientHello),
    /// It never will be.
    Fault(HelloFault),
}

/// What is wrong with a client's first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HelloFault {
    /// Not a handshake record of TLS, or an empty or too long one.
    Record,
    /// Another message than ClientHello.
    Message,
    /// Longer than any client has to say.
    Long,
    /// Lengths in it do not fit one another.
    Malformed,
    /// It says something twice.
    Twice,
}

impl Display for HelloFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HelloFault::Record => "it is no handshake record of TLS",
            HelloFault::Message => "it does not begin with a ClientHello",
            HelloFault::Long => "its ClientHello is longer than 32 KiB",
            HelloFault::Malformed => "its ClientHello is malformed",
            HelloFault::Twice => "its ClientHello has an extension twice",
        })
    }
}

/// Reads one client's first message.
#[derive(Debug, Default)]
pub struct HelloReader {
    /// So many bytes were looked at.
    seen: usize,
    /// So many are left of the record that has begun.
    left: usize,
    message: Vec<u8>,
}

impl HelloReader {
    /// Reads on. `held`: all that has come, from the first byte on; what was there before must not have changed.
    pub fn read(&mut self, held: &[u8]) -> HelloRead {
        match self.step(held) {
            Ok(Some(hello)) => HelloRead::Whole(hello),
            Ok(None) if held.len() > MOST_HELD => HelloRead::Fault(HelloFault::Long),
            Ok(None) => HelloRead::More,
            Err(fault) => HelloRead::Fault(fault),
        }
    }

    fn step(&mut self, held: &[u8]) -> Result<Option<ClientHello>, HelloFault> {
        while let Some(rest) = held.get(self.seen..).filter(|rest| !rest.is_empty()) {
            if self.left == 0 {
                // What is wrong is told as soon as it can be seen.
                if rest[0] != HANDSHAKE || rest.get(1).is_some_and(|&major| major != 3) {
                    return Err(HelloFault::Record);
                }
                let Some(&[_, _, _, high, low]) = rest.first_chunk() else { return Ok(None) };
                self.left = usize::from(u16::from_be_bytes([high, low]));
                if self.left == 0 || self.left > RECORD {
                    return Err(HelloFault::Record);
                }
                self.seen += 5;
                continue;
            }
            let piece = &rest[..rest.len().min(self.left)];
            self.message.extend_from_slice(piece);
            (self.seen, self.left) = (self.seen + piece.len(), self.left - piece.len());
            if self.message[0] != CLIENT_HELLO {
                return Err(HelloFault::Message);
            }
            let Some(&[_, high, middle, low]) = self.message.first_chunk() else { continue };
            let length = u32::from_be_bytes([0, high, middle, low]) as usize;
            if length > MOST {
                return Err(HelloFault::Long);
            }
            if let Some(body) = self.message.get(4..4 + length) {
                return parse(body).map(Some);
            }
        }
        Ok(None)
    }
}

/// Takes `count` bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], HelloFault> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or(HelloFault::Malformed)?;
    *bytes = rest;
    Ok(taken)
}

fn byte(bytes: &mut &[u8]) -> Result<u8, HelloFault> {
    take(bytes, 1).map(|taken| taken[0])
}

fn pair(bytes: &mut &[u8]) -> Result<u16, HelloFault> {
    take(bytes, 2).map(|taken| u16::from_be_bytes([taken[0], taken[1]]))
}

/// What stands behind a length of one byte, or of two.
fn short<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], HelloFault> {
    let length = byte(bytes)?;
    take(bytes, length.into())
}

fn long<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], HelloFault> {
    let length = pair(bytes)?;
    take(bytes, length.into())
}

/// The whole message without its head (RFC 8446 §4.1.2; RFC 5246 §7.4.1.2 for those without extensions).
fn parse(mut body: &[u8]) -> Result<ClientHello, HelloFault> {
    let rest = &mut body;
    let mut hello = ClientHello::default();
    // The version and the random.
    take(rest, 34)?;
    let session = short(rest)?;
    let suites = long(rest)?;
    let compressions = short(rest)?;
    if session.len() > 32 || suites.is_empty() || suites.len() % 2 != 0 || compressions.is_empty() {
        return Err(HelloFault::Malformed);
    }
    if rest.is_empty() {
        return Ok(hello);
    }
    let mut extensions = long(rest)?;
    if !rest.is_empty() {
        return Err(HelloFault::Malformed);
    }
    let mut kinds = Vec::with_capacity(24);
    while !extensions.is_empty() {
        let kind = pair(&mut extensions)?;
        let content = long(&mut extensions)?;
        kinds.push(kind);
        match kind {
            SERVER_NAME => hello.name = server_name(content)?,
            ALPN => hello.protocols = protocols(content)?,
            _ => {}
        }
    }
    kinds.sort_unstable();
    if kinds.windows(2).any(|two| two[0] == two[1]) {
        return Err(HelloFault::Twice);
    }
    Ok(hello)
}

/// One name, of the one kind that there is: what stands behind another kind two servers could read differently, and OpenSSL takes no other either.
fn server_name(mut content: &[u8]) -> Result<Option<Box<str>>, HelloFault> {
    let mut list = long(&mut content)?;
    let kind = byte(&mut list)?;
    let name = long(&mut list)?;
    let is_one = kind == HOST_NAME && list.is_empty() && content.is_empty();
    if is_one { Ok(host_name(name)) } else { Err(HelloFault::Malformed) }
}

/// A host name in lower case and without a dot at its end, which says nothing; `None`: it is none. An address is none here either (RFC 6066 §3).
fn host_name(name: &[u8]) -> Option<Box<str>> {
    let name = name.strip_suffix(b".").unwrap_or(name);
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let labels = || name.split(|&byte| byte == b'.');
    let is_name = (1..=253).contains(&name.len())
        && name.iter().all(is_plain)
        && labels().all(|label| (1..=63).contains(&label.len()))
        // The last one of an address is a number, and that of a name never is.
        && !labels().next_back().is_some_and(|label| label.iter().all(u8::is_ascii_digit));
    let text = std::str::from_utf8(name).ok().filter(|_| is_name)?;
    Some(text.to_ascii_lowercase().into())
}

fn protocols(mut content: &[u8]) -> Result<Vec<Box<[u8]>>, HelloFault> {
    let mut list = long(&mut content)?;
    if !content.is_empty() || list.is_empty() {
        return Err(HelloFault::Malformed);
    }
    let mut all = Vec::new();
    while !list.is_empty() {
        let name = short(&mut list)?;
        if name.is_empty() {
            return Err(HelloFault::Malformed);
        }
        all.push(name.into());
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
