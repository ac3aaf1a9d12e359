//! Which word somebody meant who wrote another.

/// The word that `written` is a slip of, if there is one.
pub(in crate::config::raw) fn nearest<'w>(
    written: &str,
    words: impl Iterator<Item = &'w str>,
) -> Option<&'w str> {
    let slips = (written.chars().count() / 3).clamp(1, 3);
    words
        .map(|word| (strsim::damerau_levenshtein(written, word), word))
        .filter(|(distance, _)| *distance <= slips)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}
