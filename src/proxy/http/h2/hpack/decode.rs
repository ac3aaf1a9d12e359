//! Blocks to lines (RFC 7541 §3, §6).

use super::line::{FieldLine, HpackError, LineKind, OVERHEAD};
use super::table::LineTable;
use super::{huffman, integer, judge, statics};

/// Changes of the table's size that a block may begin with: to the least size since the last block, and to the last one
/// (RFC 7541 §4.2).
const UPDATES: usize = 2;
/// Most memory that is kept from one block to the next for building lines, in bytes.
const KEPT: usize = 2048;

/// How far a block is read.
#[derive(Clone, Copy, Debug)]
pub struct BlockReading<'b> {
    rest: &'b [u8],
    /// What its lines may still count.
    left: usize,
}

impl<'b> BlockReading<'b> {
    /// What was not read yet: it begins with a line.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'b [u8] {
        self.rest
    }

    /// What its lines may still count, in bytes.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left
    }

    #[inline(always)]
    fn count(&mut self, line: &FieldLine<'_>) -> Result<(), HpackError> {
        self.left = self.left.checked_sub(line.size()).ok_or(HpackError::TooLarge)?;
        Ok(())
    }
}

/// One direction of a connection: what its peer's encoder says is read here.
#[derive(Debug)]
pub struct HpackDecoder {
    table: LineTable,
    /// Largest size that the peer may give the table, in bytes.
    limit: usize,
    /// Where literals are built.
    scratch: Vec<u8>,
}

impl HpackDecoder {
    /// A decoder with an empty table, which may count `table` bytes (RFC 7541 §4.1): what SETTINGS_HEADER_TABLE_SIZE says
    /// that we announced and the peer has acknowledged, or 4096 (RFC 9113 §6.5.2). It holds no memory but its own.
    #[must_use]
    pub fn new(table: usize) -> HpackDecoder {
        HpackDecoder { table: LineTable::new(table), limit: table, scratch: Vec::new() }
    }

    /// Decodes one whole field block and hands its lines to `sink`, in their order, each as soon as it is known.
    ///
    /// # Errors
    /// The block breaks RFC 7541, or its lines count more than `most` bytes together (name, value and 32 for each, RFC 9113
    /// §6.5.2), so that there are at most `most / 32` of them. Nothing is decoded behind that place, and of a literal that is too
    /// long nothing at all. Lines before it have been handed out. The connection must end.
    pub fn decode(
        &mut self,
        block: &[u8],
        most: usize,
        mut sink: impl FnMut(&FieldLine<'_>),
    ) -> Result<(), HpackError> {
        let decoded = self.lines(block, most, &mut sink);
        self.end();
        decoded
    }

    fn lines(
        &mut self,
        block: &[u8],
        most: usize,
        sink: &mut impl FnMut(&FieldLine<'_>),
    ) -> Result<(), HpackError> {
        let mut reading = self.begin(block, most)?;
        while self.next(&mut reading, &mut *sink)? {}
        Ok(())
    }

    /// Begins to decode a whole field block, line by line: [`HpackDecoder::next`] is to be called to its end, or
    /// [`HpackDecoder::end`].
    ///
    /// # Errors
    /// As of [`HpackDecoder::decode`].
    pub fn begin<'b>(&mut self, block: &'b [u8], most: usize) -> Result<BlockReading<'b>, HpackError> {
        let mut reading = BlockReading { rest: block, left: most };
        self.change_size(&mut reading.rest)?;
        Ok(reading)
    }

    /// Hands out the next line. False: there is none.
    ///
    /// # Errors
    /// As of [`HpackDecoder::decode`].
    #[inline(always)]
    pub fn next(
        &mut self,
        reading: &mut BlockReading<'_>,
        sink: impl FnOnce(&FieldLine<'_>),
    ) -> Result<bool, HpackError> {
        let [first, ..] = *reading.rest else {
            self.end();
            return Ok(false);
        };
        if first < 0x80 {
            sink(&self.literal(first, reading)?);
            return Ok(true);
        }
        let index = integer::read(&mut reading.rest, 7)?;
        // Those of the static table are not even copied.
        if let Some(line) = statics::get(index) {
            reading.count(line)?;
            sink(line);
        } else {
            let line = find(&self.table, index)?;
            reading.count(&line)?;
            sink(&line);
        }
        Ok(true)
    }

    /// Gives memory back: the rest of a block is not read, because it is known what it says.
    #[inline]
    pub fn end(&mut self) {
        if self.scratch.capacity() > KEPT {
            self.scratch = Vec::new();
        }
    }

    /// How often its table was changed: what a piece of a block says stays the same as long as this does, if that piece changes nothing.
    #[inline]
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.table.changes()
    }

    /// Bytes that it holds, itself among them: its own few, those of the table (at most twice what that may count, and 64), and 2 KiB
    /// at most for building lines.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<HpackDecoder>() + self.table.memory() + self.scratch.capacity()
    }

    /// Reads the changes of the table's size that a block begins with (RFC 7541 §6.3).
    fn change_size(&mut self, rest: &mut &[u8]) -> Result<(), HpackError> {
        for _ in 0..UPDATES {
            let [0x20..=0x3f, ..] = *rest else { break };
            let size = integer::read(rest, 5)?;
            if size > self.limit {
                return Err(HpackError::Malformed);
            }
            self.table.resize(size);
        }
        Ok(())
    }

    /// A line that is written out.
    #[inline(never)]
    fn literal(&mut self, first: u8, reading: &mut BlockReading<'_>) -> Result<FieldLine<'_>, HpackError> {
        let BlockReading { rest, left } = reading;
        match first {
            0x40.. => {
                let line = literal(&self.table, &mut self.scratch, rest, 6, left)?;
                self.table.insert(&line);
                Ok(line)
            }
            // A change of the size behind a line, or one too many.
            0x20.. => Err(HpackError::Malformed),
            _ => literal(&self.table, &mut self.scratch, rest, 4, left),
        }
    }

    /// Its table, to be looked at.
    #[cfg(test)]
    pub(super) fn table(&self) -> &LineTable {
        &self.table
    }
}

/// The line of an index (RFC 7541 §2.3.3).
#[inline]
fn find(table: &LineTable, index: usize) -> Result<FieldLine<'_>, HpackError> {
    match statics::get(index) {
        Some(line) => Ok(*line),
        None => {
            let age = index.checked_sub(statics::LINES.len() + 1);
            age.and_then(|age| table.get(age)).ok_or(HpackError::Malformed)
        }
    }
}

/// Builds the literal that `rest` begins with in `scratch`, and steps over it. Its name, or the index of that in `prefix` bits,
/// comes first. What the line counts is taken from `left`.
#[inline(always)]
fn literal<'a>(
    table: &LineTable,
    scratch: &'a mut Vec<u8>,
    rest: &mut &[u8],
    prefix: u32,
    left: &mut usize,
) -> Result<FieldLine<'a>, HpackError> {
    let index = integer::read(rest, prefix)?;
    scratch.clear();
    *left = left.checked_sub(OVERHEAD).ok_or(HpackError::TooLarge)?;
    let mut verdict = None;
    if index == 0 {
        string(rest, *left, scratch)?;
        scratch.extend_from_slice(b": ");
    } else {
        let line = find(table, index)?;
        // With what stands between name and value.
        scratch.extend_from_slice(line.bytes.get(..line.name + 2).unwrap_or_default());
        // It may be malformed for its value alone.
        verdict = Some((line.kind, line.known)).filter(|(kind, _)| *kind != LineKind::Malformed);
    }
    let name = scratch.len() - 2;
    *left = left.checked_sub(name).ok_or(HpackError::TooLarge)?;
    string(rest, *left, scratch)?;
    *left -= scratch.len() - (name + 2);
    let (kind, known) = verdict.unwrap_or_else(|| judge::name(&scratch[..name]));
    let kind = if judge::is_value(&scratch[name + 2..]) { kind } else { LineKind::Malformed };
    scratch.extend_from_slice(b"\r\n");
    Ok(FieldLine { bytes: scratch, name, kind, known })
}

/// Appends the string that `rest` begins with to `out`, and steps over it (RFC 7541 §5.2). It may have `most` bytes.
#[inline]
fn string(rest: &mut &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer::read(rest, 7)?;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(HpackError::Malformed)?;
    *rest = behind;
    if is_coded {
        return huffman::decode(bytes, most, out);
    }
    if length > most {
        return Err(HpackError::TooLarge);
    }
    out.extend_from_slice(bytes);
    Ok(())
}
