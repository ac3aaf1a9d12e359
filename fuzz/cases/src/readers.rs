//! What backends make of a path: each of the usual ways to read one, byte by byte.

/// Where parameters end, or slashes are merged, beside the other steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Not at all.
    Never,
    /// Before the next step (decoding, or resolving dots).
    Before,
    /// Behind it.
    After,
}

/// A way to read a path. Letters are told apart by case.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// How often `%XX` is decoded.
    pub decodings: usize,
    /// Whether parameters are cut off; after decoding what comes behind `?` and `#` goes as well.
    pub cuts: When,
    /// Whether a backslash is a slash.
    pub backslashes: bool,
    /// Whether slashes in a row are one.
    pub merges: When,
}

impl Reader {
    /// All there are.
    pub fn all() -> Vec<Reader> {
        let mut all = Vec::new();
        for decodings in 0..=2 {
            for cuts in [When::Never, When::Before, When::After] {
                for backslashes in [false, true] {
                    for merges in [When::Never, When::Before, When::After] {
                        all.push(Reader { decodings, cuts, backslashes, merges });
                    }
                }
            }
        }
        all
    }

    /// The path that it reads, without dot segments.
    pub fn read(&self, path: &[u8]) -> Vec<u8> {
        let mut path = path.to_vec();
        if self.cuts == When::Before {
            path = cut(&path);
        }
        for _ in 0..self.decodings {
            path = decoded(&path);
        }
        if self.cuts == When::After {
            let end = path.iter().position(|byte| self.decodings > 0 && matches!(byte, b'?' | b'#'));
            path.truncate(end.unwrap_or(path.len()));
            path = cut(&path);
        }
        if self.backslashes {
            path.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
        }
        if self.merges == When::Before {
            path = merged(&path);
        }
        path = resolved(&path);
        if self.merges == When::After {
            path = merged(&path);
        }
        path
    }
}

/// With each `%XX` as the byte that it stands for.
pub fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let digits = text.get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let value = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match value.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| text[at] == b'%') {
            Some(value) => {
                out.push(value);
                at += 3;
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    out
}

fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.strip_prefix(b"/").unwrap_or(path).split(|&byte| byte == b'/')
}

fn written<'a>(segments: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    segments.into_iter().flat_map(|segment| [b"/", segment].concat()).collect()
}

fn cut(path: &[u8]) -> Vec<u8> {
    written(segments(path).map(|segment| segment.split(|&byte| byte == b';').next().unwrap_or_default()))
}

fn merged(path: &[u8]) -> Vec<u8> {
    let all: Vec<&[u8]> = segments(path).collect();
    let last = all.len() - 1;
    let kept = all.iter().enumerate().filter(|(at, segment)| !segment.is_empty() || *at == last);
    written(kept.map(|(_, segment)| *segment))
}

fn resolved(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut ends_open = false;
    for segment in segments(path) {
        ends_open = matches!(segment, b"." | b"..");
        match segment {
            b"." => {}
            b".." => drop(kept.pop()),
            name => kept.push(name),
        }
    }
    if ends_open {
        kept.push(b"");
    }
    written(kept)
}
