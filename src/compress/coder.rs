//! Compressing as bytes come: what goes in comes out coded, at the latest when it is flushed.

use std::io::{self, Write as _};

use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use flate2::write::GzEncoder;

use crate::config::model::cache::Coding;

/// Bits of zstd's window: a client must be able to hold 8 MiB (RFC 9659).
const ZSTD_WINDOW: u32 = 23;
/// Bits of brotli's window, 256 KiB: what one answer takes of our memory.
const BROTLI_WINDOW: i32 = 18;
/// Bytes that brotli collects before it writes.
const BROTLI_BUFFER: usize = 4096;

/// A body that is being compressed.
pub struct Coder(Encoder);

enum Encoder {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Coder {
    /// One for this coding, at one of its [levels](Coding::levels).
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(coding: Coding, level: u32) -> io::Result<Coder> {
        let encoder = match coding {
            Coding::Zstd => {
                let level = i32::try_from(level).unwrap_or(i32::MAX);
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), level)?;
                encoder.window_log(ZSTD_WINDOW.min(if level > 9 { ZSTD_WINDOW } else { 21 }))?;
                Encoder::Zstd(encoder)
            }
            Coding::Brotli => {
                let quality = i32::try_from(level).unwrap_or(i32::MAX);
                let params =
                    BrotliEncoderParams { quality, lgwin: BROTLI_WINDOW, ..BrotliEncoderParams::default() };
                Encoder::Brotli(Box::new(CompressorWriter::with_params(Vec::new(), BROTLI_BUFFER, &params)))
            }
            Coding::Gzip => Encoder::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::new(level))),
        };
        Ok(Coder(encoder))
    }

    /// Takes in more; what is finished of it is appended to `out`.
    ///
    /// # Errors
    /// The library fails, which it does for want of memory only.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match &mut self.0 {
            Encoder::Zstd(encoder) => encoder.write_all(bytes)?,
            Encoder::Brotli(encoder) => encoder.write_all(bytes)?,
            Encoder::Gzip(encoder) => encoder.write_all(bytes)?,
        }
        self.take(out);
        Ok(())
    }

    /// Appends all that is in it, so that whoever reads `out` can read all that went in.
    ///
    /// # Errors
    /// See [`Coder::push`].
    pub fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match &mut self.0 {
            Encoder::Zstd(encoder) => encoder.flush()?,
            Encoder::Brotli(encoder) => encoder.flush()?,
            Encoder::Gzip(encoder) => encoder.flush()?,
        }
        self.take(out);
        Ok(())
    }

    /// Ends it; the rest is appended.
    ///
    /// # Errors
    /// See [`Coder::push`].
    pub fn end(self, out: &mut Vec<u8>) -> io::Result<()> {
        let rest = match self.0 {
            Encoder::Zstd(encoder) => encoder.finish()?,
            Encoder::Brotli(encoder) => encoder.into_inner(),
            Encoder::Gzip(encoder) => encoder.finish()?,
        };
        out.extend_from_slice(&rest);
        Ok(())
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        let here = match &mut self.0 {
            Encoder::Zstd(encoder) => encoder.get_mut(),
            Encoder::Brotli(encoder) => encoder.get_mut(),
            Encoder::Gzip(encoder) => encoder.get_mut(),
        };
        out.append(here);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use proptest::prelude::*;

    use super::*;

    fn decoded(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match coding {
            Coding::Zstd => zstd::stream::read::Decoder::new(bytes).expect("a frame").read_to_end(&mut out),
            Coding::Brotli => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out),
            Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out),
        }
        .expect("it is whole");
        out
    }

    /// Runs of text, of one byte, and of noise.
    fn piece() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            "[a-z ]{0,2000}".prop_map(String::into_bytes),
            (any::<u8>(), 0usize..70_000).prop_map(|(byte, count)| vec![byte; count]),
            prop::collection::vec(any::<u8>(), 0..4_000),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

        /// 500 bodies in each coding, of up to eight pieces, with flushes anywhere; what is flushed can be read at once.
        #[test]
        fn what_goes_in_comes_out(pieces in prop::collection::vec((piece(), any::<bool>()), 0..8), high: bool) {
            for coding in Coding::ALL {
                let level = if high { 6 } else { *coding.levels().start() };
                let mut coder = Coder::new(coding, level).expect("memory");
                let (mut sent, mut out) = (Vec::new(), Vec::new());
                for (piece, flushes) in &pieces {
                    coder.push(piece, &mut out).expect("memory");
                    sent.extend_from_slice(piece);
                    if *flushes {
                        coder.flush(&mut out).expect("memory");
                    }
                }
                coder.end(&mut out).expect("memory");
                prop_assert!(decoded(coding, &out) == sent, "{coding:?}");
            }
        }
    }

    #[test]
    fn what_was_flushed_is_there_before_the_end() {
        for coding in Coding::ALL {
            let mut coder = Coder::new(coding, coding.usual_level()).expect("memory");
            let mut out = Vec::new();
            coder.push(b"data: one\n\n", &mut out).expect("memory");
            coder.flush(&mut out).expect("memory");
            let mut read = vec![0; 11];
            match coding {
                Coding::Zstd => {
                    zstd::stream::read::Decoder::new(&*out)
                        .expect("a frame")
                        .read_exact(&mut read)
                        .expect("all");
                }
                Coding::Brotli => brotli::Decompressor::new(&*out, 64).read_exact(&mut read).expect("all"),
                Coding::Gzip => flate2::read::GzDecoder::new(&*out).read_exact(&mut read).expect("all"),
            }
            assert_eq!(read, b"data: one\n\n", "{coding:?}");
        }
    }
}
