//! The Huffman code (RFC 7541 Appendix B), and the tables that are made of it.
//!
//! The code is canonical: sorted by length and then by symbol, each code is the one before it and one more. So the lengths say all.

/// Symbols: all bytes, and the end of a string.
pub(super) const SYMBOLS: usize = 257;
/// The longest code, in bits.
const LONGEST: usize = 30;
/// Codes of at most so many bits are found in one step.
pub(super) const SHORT: u32 = 8;

/// Bits of the code of each symbol.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The code of a symbol: its lowest `length` bits.
#[derive(Clone, Copy)]
pub(super) struct Code {
    /// The code.
    pub(super) bits: u32,
    /// Its length in bits, 5 to 30.
    pub(super) length: u8,
}

/// A symbol whose code was found, and the length of that code in bits; 0: the code is longer than [`SHORT`].
#[derive(Clone, Copy)]
pub(super) struct ShortCode {
    /// The byte.
    pub(super) symbol: u8,
    /// Bits of its code.
    pub(super) length: u8,
}

/// The codes of one length.
#[derive(Clone, Copy)]
pub(super) struct CodesOfLength {
    /// Bits of each.
    pub(super) length: u32,
    /// The first one, followed by zeros, as the high bits of a word.
    pub(super) first: u32,
    /// The last one, followed by ones.
    pub(super) last: u32,
    /// Where the symbol of the first one stands in [`SORTED`].
    pub(super) place: usize,
}

/// All symbols, sorted by the length of their codes and then by themselves.
pub(super) static SORTED: [u16; SYMBOLS] = sorted();
/// The code of each symbol.
pub(super) static CODES: [Code; SYMBOLS] = codes();
/// The symbol whose code a byte begins with.
pub(super) static SHORT_CODES: [ShortCode; 1 << SHORT] = short_codes();
/// The codes longer than [`SHORT`], the shortest first.
pub(super) static LONG_CODES: [CodesOfLength; LONG_LENGTHS] = long_codes();

const fn sorted() -> [u16; SYMBOLS] {
    let mut sorted = [0; SYMBOLS];
    let (mut place, mut length) = (0, 0);
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                sorted[place] = symbol as u16;
                place += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    assert!(place == SYMBOLS);
    sorted
}

const fn codes() -> [Code; SYMBOLS] {
    let sorted = sorted();
    let mut codes = [Code { bits: 0, length: 0 }; SYMBOLS];
    let (mut next, mut before, mut place) = (0, 0, 0);
    while place < SYMBOLS {
        let symbol = sorted[place] as usize;
        next <<= LENGTHS[symbol] - before;
        before = LENGTHS[symbol];
        codes[symbol] = Code { bits: next, length: before };
        next += 1;
        place += 1;
    }
    // The last code is all ones: every string of bits begins with a code.
    assert!(next == 1 << LONGEST);
    codes
}

const fn short_codes() -> [ShortCode; 1 << SHORT] {
    let codes = codes();
    let mut short = [ShortCode { symbol: 0, length: 0 }; 1 << SHORT];
    let mut symbol = 0;
    while symbol < 256 {
        let Code { bits, length } = codes[symbol];
        if length as u32 <= SHORT {
            let behind = SHORT - length as u32;
            let mut rest = 0;
            while rest < 1 << behind {
                short[(bits << behind) as usize + rest] = ShortCode { symbol: symbol as u8, length };
                rest += 1;
            }
        }
        symbol += 1;
    }
    short
}

/// How many lengths codes have that are longer than [`SHORT`].
const LONG_LENGTHS: usize = {
    let (mut count, mut length) = (0, SHORT as usize + 1);
    while length <= LONGEST {
        count += (of_length(length) > 0) as usize;
        length += 1;
    }
    count
};

/// How many codes have this length.
const fn of_length(length: usize) -> usize {
    let (mut count, mut symbol) = (0, 0);
    while symbol < SYMBOLS {
        count += (LENGTHS[symbol] as usize == length) as usize;
        symbol += 1;
    }
    count
}

const fn long_codes() -> [CodesOfLength; LONG_LENGTHS] {
    let (codes, sorted) = (codes(), sorted());
    let mut long = [CodesOfLength { length: 0, first: 0, last: 0, place: 0 }; LONG_LENGTHS];
    let (mut at, mut place, mut length) = (0, 0, 1);
    while length <= LONGEST {
        let count = of_length(length);
        if length > SHORT as usize && count > 0 {
            let behind = 32 - length as u32;
            let first = codes[sorted[place] as usize].bits << behind;
            let last = codes[sorted[place + count - 1] as usize].bits << behind | ((1 << behind) - 1);
            long[at] = CodesOfLength { length: length as u32, first, last, place };
            at += 1;
        }
        place += count;
        length += 1;
    }
    long
}
