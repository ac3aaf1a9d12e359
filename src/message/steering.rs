//! Characters by which a text could steer the terminal that it is shown on, or look like another one.

/// Whether a character is a control character, ends a line, says how those around it are shown (which way they run, whether they join),
/// or is one that nothing at all is shown for: the categories Cc, Cf, Zl and Zp, and the property Default_Ignorable_Code_Point, of
/// Unicode 17. Whoever shows what a stranger wrote escapes these.
#[must_use]
pub const fn steers(sign: char) -> bool {
    matches!(sign,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The categories and the property as another implementation knows them.
    #[test]
    fn all_control_format_and_invisible_characters_steer_and_no_other() {
        let known = regex::Regex::new(r"^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]$");
        let Ok(known) = known else { return assert!(steers('\u{202e}') && !steers('a')) };
        for sign in '\0'..=char::MAX {
            assert_eq!(steers(sign), known.is_match(sign.encode_utf8(&mut [0; 4])), "{:x}", u32::from(sign));
        }
    }
}
