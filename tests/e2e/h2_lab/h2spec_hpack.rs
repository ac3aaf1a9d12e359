//! Header blocks: `generic/5` and `hpack` of h2spec, after RFC 7541.

use super::case::{H2Case, case};
use super::expect::Outcome;
use super::fields::integer;
use super::frames::{code, flag, setting};
use super::peer::Peer;

/// A literal with the name `user-agent`, and the value `h2spec`.
const PLAIN_AGENT: &[u8] = b"\x0auser-agent\x06h2spec";
/// The same in Huffman's code.
const CODED_AGENT: &[u8] = b"\x87\xb5\x05\xb1\x61\xcc\x5a\x93\x84\x9c\x48\xac\xa4";
/// The same with the name `x-test`.
const PLAIN_TEST: &[u8] = b"\x06x-test\x06h2spec";
const CODED_TEST: &[u8] = b"\x85\xf2\xb2\x4a\x84\xff\x84\x9c\x48\xac\xa4";
/// How a literal begins whose name is not in a table.
const INDEXED: u8 = 0x40;
const NOT_INDEXED: u8 = 0x00;
const NEVER_INDEXED: u8 = 0x10;

/// A GET whose block goes on with these octets is answered.
fn taken(peer: &mut Peer, parts: &[&[u8]]) -> Outcome {
    get(peer, &[], &parts.concat()).answer(1)
}

/// It can't be decoded.
fn refused(peer: &mut Peer, octets: &[u8]) -> Outcome {
    get(peer, &[], octets).connection_error(&[code::COMPRESSION])
}

fn get<'a>(peer: &'a mut Peer, before: &[u8], behind: &[u8]) -> &'a mut Peer {
    let block = peer.request("GET", &[]);
    peer.headers(1, flag::WHOLE, &[before, &block, behind].concat())
}

pub const CASES: &[H2Case] = &[
    case("generic/5/1", "an indexed line: user-agent", |peer| taken(peer, &[&[0xba]])),
    // Those that the original calls "indexed name" have the name as a literal too, in some of them what it calls
    // Huffman-coded is the plain one, and the last two are the same.
    case("generic/5/2", "a literal to be indexed, in Huffman's code", |peer| {
        taken(peer, &[&[INDEXED], CODED_AGENT])
    }),
    case("generic/5/3", "a literal to be indexed", |peer| taken(peer, &[&[INDEXED], PLAIN_AGENT])),
    case("generic/5/4", "a literal to be indexed, an unknown name", |peer| {
        taken(peer, &[&[INDEXED], PLAIN_TEST])
    }),
    case("generic/5/5", "a literal to be indexed, an unknown name, in Huffman's code", |peer| {
        taken(peer, &[&[INDEXED], CODED_TEST])
    }),
    case("generic/5/6", "a literal not to be indexed", |peer| taken(peer, &[&[NOT_INDEXED], PLAIN_AGENT])),
    case("generic/5/7", "a literal not to be indexed, in Huffman's code", |peer| {
        taken(peer, &[&[NOT_INDEXED], CODED_AGENT])
    }),
    case("generic/5/8", "a literal not to be indexed, an unknown name", |peer| {
        taken(peer, &[&[NOT_INDEXED], PLAIN_TEST])
    }),
    case("generic/5/9", "a literal not to be indexed, an unknown name, in Huffman's code", |peer| {
        taken(peer, &[&[NOT_INDEXED], CODED_TEST])
    }),
    case("generic/5/10", "a literal never to be indexed", |peer| {
        taken(peer, &[&[NEVER_INDEXED], PLAIN_AGENT])
    }),
    case("generic/5/11", "a literal never to be indexed, in Huffman's code", |peer| {
        taken(peer, &[&[NEVER_INDEXED], CODED_AGENT])
    }),
    case("generic/5/12", "a literal never to be indexed, an unknown name", |peer| {
        taken(peer, &[&[NEVER_INDEXED], CODED_TEST])
    }),
    case("generic/5/13", "a literal never to be indexed, an unknown name, in Huffman's code", |peer| {
        taken(peer, &[&[NEVER_INDEXED], CODED_TEST])
    }),
    case("generic/5/14", "a new size of the dynamic table", |peer| {
        peer.resize(128);
        peer.get(1).answer(1)
    }),
    case("generic/5/15", "two new sizes of the dynamic table", |peer| {
        // 128, then 4096.
        get(peer, b"\x3f\x61\x3f\xe1\x1f", b"").answer(1)
    }),
    case("hpack/2.3.3/1", "an indexed line that is not there", |peer| refused(peer, &[0xc6])),
    case("hpack/2.3.3/2", "a literal with the name of an entry that is not there", |peer| {
        refused(peer, b"\x7f\x07\x00")
    }),
    case("hpack/4.2/1", "a new size of the dynamic table at the end of the block", |peer| {
        refused(peer, &[0x21])
    }),
    case("hpack/5.2/1", "padding of more than 7 bits behind Huffman's code", |peer| {
        refused(peer, b"\x00\x85\xf2\xb2\x4a\x84\xff\x84\x49\x50\x9f\xff")
    }),
    case("hpack/5.2/2", "padding of zeroes behind Huffman's code", |peer| {
        refused(peer, b"\x00\x85\xf2\xb2\x4a\x84\xff\x83\x49\x50\x90")
    }),
    case("hpack/5.2/3", "EOS in Huffman's code", |peer| {
        refused(peer, b"\x00\x85\xf2\xb2\x4a\x87\xff\xff\xff\xfd\x25\x42\x7f")
    }),
    case("hpack/6.1/1", "an indexed line with index 0", |peer| refused(peer, &[0x80])),
    case("hpack/6.3/1", "a new size of the dynamic table above what the server has set", |peer| {
        let most = *peer.settings.get(&setting::HEADER_TABLE_SIZE).unwrap_or(&4096);
        let mut size = Vec::new();
        integer(&mut size, 0x20, 5, usize::try_from(most).unwrap() + 1);
        get(peer, &size, b"").connection_error(&[code::COMPRESSION])
    }),
];
