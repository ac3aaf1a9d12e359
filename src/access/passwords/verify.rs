//! A password and a hash.

use argon2::{Argon2, PasswordVerifier};

use crate::config::model::PasswordHash;

/// Whether a password is the one that a hash was made of. It takes as long as whoever made the hash wanted, also where it is not.
pub(super) fn is_good(password: &[u8], hash: &PasswordHash) -> bool {
    match hash {
        // Of a password of more than 72 bytes bcrypt looks at those, as every program does that writes such files.
        PasswordHash::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
        PasswordHash::Argon2(hash) => Argon2::default().verify_password(password, &**hash).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the system's crypt makes of `secret`, and a vector of the reference implementation of argon2.
    #[test]
    fn hashes_that_others_made_are_understood() {
        let bcrypt = "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";
        for prefix in ["$2y$", "$2b$", "$2a$"] {
            let hash = PasswordHash::Bcrypt(format!("{prefix}{}", &bcrypt[4..]).into());
            assert!(
                is_good(b"secret", &hash) && !is_good(b"Secret", &hash) && !is_good(b"", &hash),
                "{prefix}"
            );
        }
        let hash = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let hash = PasswordHash::Argon2(hash.into());
        assert!(is_good(b"password", &hash) && !is_good(b"Password", &hash));
        for broken in ["", "$2y$", "$2y$10$short"] {
            assert!(!is_good(b"", &PasswordHash::Bcrypt(broken.into())), "{broken}");
        }
    }
}
