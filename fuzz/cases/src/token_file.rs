//! Any bytes as a file of the admin API's tokens.

use evenkeel::config::token_file_faults;

/// Any bytes as a token file: what is said of them repeats no word of them that could be a token.
pub fn token_file(bytes: &[u8]) {
    let faults = token_file_faults(bytes);
    assert_eq!(faults, token_file_faults(bytes));
    let text = String::from_utf8_lossy(bytes);
    for word in text.split_whitespace().filter(|word| word.len() >= 16) {
        assert!(!faults.iter().any(|fault| fault.contains(word)), "{word:?} in {faults:?}");
    }
}
