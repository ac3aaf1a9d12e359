//! Characters by which a text could steer the terminal that it is shown on, or look like another one.

/// Whether a character is a control character, ends a line, or says how those around it are shown: which way they run, whether they join,
/// or nothing at all (the categories Cc, Cf, Zl and Zp of Unicode 17). Whoever shows what a stranger wrote escapes these.
#[must_use]
pub const fn steers(sign: char) -> bool {
    matches!(sign,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'
        | '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The categories as another implementation knows them.
    #[test]
    fn all_control_and_format_characters_steer_and_no_other() {
        let known = regex::Regex::new(r"^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]$");
        let Ok(known) = known else { return assert!(steers('\u{202e}') && !steers('a')) };
        for sign in '\0'..=char::MAX {
            assert_eq!(steers(sign), known.is_match(sign.encode_utf8(&mut [0; 4])), "{:x}", u32::from(sign));
        }
    }
}
