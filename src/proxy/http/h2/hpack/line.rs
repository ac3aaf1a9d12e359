//! What a decoder hands out.

use crate::message::HeaderField;

/// What a line counts beside its name and value (RFC 7541 §4.1), in bytes.
pub(super) const OVERHEAD: usize = 32;
/// What stands in a line beside its name and value: colon, blank, CR and LF.
pub(super) const MARKS: usize = 4;

/// One of the pseudo-header fields (RFC 9113 §8.3, RFC 8441 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pseudo {
    /// `:method`, of a request.
    Method,
    /// `:scheme`, of a request.
    Scheme,
    /// `:authority`, of a request.
    Authority,
    /// `:path`, of a request.
    Path,
    /// `:status`, of an answer.
    Status,
    /// `:protocol`, of an extended CONNECT.
    Protocol,
}

/// What a decoded line is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// A pseudo-header field. Its value may stand in a header line; whether it is a method, a path and so on, nobody has looked.
    Pseudo(Pseudo),
    /// A field with a name and a value that HTTP/1.1 may carry as they are.
    Field(HeaderField),
    /// Neither: the message is malformed (RFC 9113 §8.2.1), and the line may hold any bytes.
    Malformed,
}

/// One decoded line, in the form in which HTTP/1.1 writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLine<'a> {
    /// `name: value\r\n`; of a pseudo-header field `:path: /x\r\n`.
    pub bytes: &'a [u8],
    /// Bytes of its name, which `bytes` begin with.
    pub name: usize,
    /// What it is.
    pub kind: LineKind,
    /// The first index that its name has in the static table (RFC 7541 Appendix A), 1 to 61; 0: it has none.
    pub known: u8,
}

impl FieldLine<'_> {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.bytes.get(..self.name).unwrap_or_default()
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.bytes.get(self.name + 2..self.bytes.len() - 2).unwrap_or_default()
    }

    /// What it counts in a table and in a list: the bytes of name and value, and 32 (RFC 7541 §4.1, RFC 9113 §6.5.2).
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len() - MARKS + OVERHEAD
    }
}

/// Why a block was not decoded to its end. The table is then out of step with the peer's: the connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// The block breaks RFC 7541: a connection error of type COMPRESSION_ERROR (RFC 9113 §4.3).
    Malformed,
    /// The list of its lines counts more than it may.
    TooLarge,
}
