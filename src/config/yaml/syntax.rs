//! The YAML crate's errors in words for somebody who does not know YAML's grammar.

use serde_yaml::granit_parser::ErrorKind;

use crate::config::error::Wrong;
use crate::config::origin::Place;
use crate::config::snippet::lines;

/// A key that stands deeper than the one above it, although that one has a value: the parser takes the line for more of
/// the value, up to its colon.
pub(super) fn deeper(text: &str, kind: &ErrorKind, place: Place) -> Option<(Place, Wrong)> {
    if !matches!(kind, ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement) {
        return None;
    }
    let number = place.line as usize;
    let lines: Vec<&str> = lines(text).take(number).collect();
    let (line, before) = lines.split_last()?;
    let written = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let (index, above) = before.iter().enumerate().rfind(|(_, line)| written(line))?;
    let lead = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let has_value = above.split_once(": ").is_some_and(|(_, value)| {
        !value.trim().is_empty() && !value.trim_start().starts_with(['#', '|', '>', '&', '"', '\'', '[', '{'])
    });
    let (key, _) = line.split_once(':')?;
    let at = lead(line);
    if !has_value || at <= lead(above) || key.chars().count() + 1 != place.column as usize {
        return None;
    }
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let place = Place { column: small(at + 1), width: small(key.len().saturating_sub(at).max(1)), ..place };
    let message = format!("line {number} stands deeper than line {}, which has a value already", index + 1);
    Some((place, Wrong::bare(message)))
}

/// What is wrong, what would be right, what to do. The message is a whole sentence.
pub(super) fn explain(kind: &ErrorKind) -> Wrong {
    match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar
        | ErrorKind::TabAtBlockScalarStart => {
            Wrong::new("a tab stands where YAML allows only spaces", "spaces, for example two per level")
        }
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => {
            Wrong::bare("a `:` is not allowed here")
                .note("look at the line above: is its `:` missing, or its indentation different? A value that contains `: ` needs quotes")
        }
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::InvalidIndentation
        | ErrorKind::MappingKeyNotAllowed
        | ErrorKind::BlockSequenceEntryNotAllowed => {
            Wrong::new(
                "this line does not fit the lines around it",
                "keys of one group start in the same column, and so do the `-` of one list",
            )
            .note("check the indentation")
        }
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            Wrong::new("this is not `key: value`", "a key, a colon, a space and a value")
                .note("a colon is missing, or the space after it")
        }
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent | ErrorKind::UnexpectedEof => {
            Wrong::bare("a quote that opens above is not closed")
                .note("look for a line above with a single \" or '")
        }
        ErrorKind::UnclosedFlowCollection { open } => {
            Wrong::bare(format!("the `{open}` that opens here is never closed"))
        }
        ErrorKind::UnexpectedEofFlowSequence | ErrorKind::ExpectedFlowSequenceSeparator => {
            Wrong::new("a list in `[…]` is broken here", "`,` between its items and `]` at its end")
        }
        ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::ExpectedFlowMappingSeparator => {
            Wrong::new("a mapping in `{…}` is broken here", "`,` between its entries and `}` at its end")
                .note("a value that contains `{`, `}`, `[`, `]` or `,` needs quotes there, also `${NAME}`")
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            Wrong::bare(format!("`{open}` is closed by `{close}`"))
        }
        ErrorKind::MisplacedFlowCollectionEnd => Wrong::bare("a bracket is closed here that was never opened"),
        ErrorKind::UnexpectedCharacter { character } => {
            Wrong::bare(format!("a value cannot begin with `{}`", character.escape_default()))
                .note("put the value in quotes")
        }
        ErrorKind::MissingAnchorOrAliasName => {
            Wrong::bare("`*` and `&` have a meaning of their own at the beginning of a value")
                .note("put the value in quotes, for example \"*:8080\"")
        }
        ErrorKind::InvalidTrailingDoubleQuotedScalar | ErrorKind::InvalidTrailingSingleQuotedScalar => {
            Wrong::bare("something follows the closing quote")
                .note("put the whole value in one pair of quotes")
        }
        ErrorKind::UnknownQuotedScalarEscape => {
            Wrong::bare("a backslash in double quotes begins an escape, and this one does not exist")
                .note("use single quotes, or write \\\\ for one backslash")
        }
        ErrorKind::RecursionLimitExceeded => Wrong::bare("this is nested too deeply"),
        ErrorKind::MultipleDocumentsUnsupported => Wrong::bare("a second document begins here"),
        // The crate's list is open (`non_exhaustive`), so a last arm has to be here.
        other => Wrong::bare(format!("this is not valid YAML: {other}")),
    }
}
