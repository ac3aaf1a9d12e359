//! Passwords: compared with hashes that are slow to compute on purpose, off the workers.
//!
//! Whoever has shown a good password once is known afterwards by a digest of it, which costs what any other request costs. All others
//! wait for one thread of low priority, at most two of each client, so that a flood of wrong passwords takes nothing from those
//! who are known, and little from those who come for the first time.

mod known;
mod line;
mod pool;
mod verify;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use tokio::sync::oneshot::Receiver;

use crate::config::model::{BasicAuth, PasswordHash};
use known::{KnownDigests, PasswordDigest};
pub use line::Crowded;
use pool::LoginPool;

/// What is known of passwords, and who waits. One for all workers, over any number of configs.
#[derive(Debug, Default)]
pub struct Passwords {
    secrets: OnceLock<Secrets>,
    pool: LoginPool,
}

/// Made when the first password comes.
#[derive(Debug)]
struct Secrets {
    key: Key,
    known: KnownDigests,
}

/// A name and a password that somebody has sent.
pub struct Credentials<'a> {
    /// Without a colon.
    pub name: &'a [u8],
    /// What stands behind the colon.
    pub password: &'a [u8],
}

/// What is known of credentials without computing a hash.
pub enum Acquaintance {
    /// They were good before.
    Known,
    /// That takes a hash.
    Unknown(Login),
}

/// Credentials that are still to be compared.
pub struct Login {
    digest: PasswordDigest,
    hash: PasswordHash,
    password: Vec<u8>,
    /// There is such a user; else a hash is computed for nothing, so that nobody can tell by the time.
    is_user: bool,
}

impl Passwords {
    /// What is known of these credentials.
    #[must_use]
    pub fn meet(&self, basic: &BasicAuth, credentials: &Credentials<'_>) -> Acquaintance {
        let secrets = self.secrets();
        let found = basic.users.binary_search_by(|user| user.name.as_bytes().cmp(credentials.name));
        let (user, is_user) = match found {
            Ok(place) => (&basic.users[place], true),
            // Always the same one for a name: it costs what that one costs.
            Err(_) => {
                let tag = sign(&secrets.key, credentials.name);
                let number = tag.as_ref().iter().take(4).fold(0, |sum, &byte| sum << 8 | usize::from(byte));
                match basic.users.get(number % basic.users.len().max(1)) {
                    Some(user) => (user, false),
                    None => return Acquaintance::Unknown(Login::hopeless()),
                }
            }
        };
        let digest = secrets.digest(credentials, &user.hash);
        if is_user && secrets.known.has(&digest) {
            return Acquaintance::Known;
        }
        let (hash, password) = (user.hash.clone(), credentials.password.to_vec());
        Acquaintance::Unknown(Login { digest, hash, password, is_user })
    }

    /// Has credentials of a client compared. What comes says whether they are good; nothing comes where that failed.
    ///
    /// # Errors
    /// Too many wait already, of this client or of all.
    pub fn compare(
        self: &Arc<Self>,
        client: Option<IpAddr>,
        login: Login,
    ) -> Result<Receiver<bool>, Crowded> {
        let passwords = Arc::downgrade(self);
        self.pool.submit(client, login.digest, move || {
            let is_good = verify::is_good(&login.password, &login.hash) && login.is_user;
            if is_good && let Some(passwords) = passwords.upgrade() {
                passwords.secrets().known.note(&login.digest);
            }
            is_good
        })
    }

    fn secrets(&self) -> &Secrets {
        self.secrets.get_or_init(|| Secrets { key: random_key(), known: KnownDigests::default() })
    }
}

impl Login {
    /// Nobody is let in by it.
    fn hopeless() -> Login {
        Login { digest: [0; 32], hash: PasswordHash::Bcrypt("".into()), password: Vec::new(), is_user: false }
    }
}

impl Secrets {
    fn digest(&self, credentials: &Credentials<'_>, hash: &PasswordHash) -> PasswordDigest {
        // A name has no colon and a hash no zero byte, so no two of these are the same text.
        let text = [hash.text().as_bytes(), b"\0", credentials.name, b":", credentials.password].concat();
        let mut digest = [0; 32];
        digest.copy_from_slice(sign(&self.key, &text).as_ref());
        digest
    }
}

/// Nobody outside knows it. Where the system has no chance to give, nobody is known by it either: see [`KnownDigests`].
fn random_key() -> Key {
    let mut bytes: [u8; 32] = rand::random();
    // A second source costs nothing.
    let mut more = [0; 32];
    if aws_lc_rs::rand::fill(&mut more).is_ok() {
        bytes.iter_mut().zip(more).for_each(|(byte, more)| *byte ^= more);
    }
    Key::new(HMAC_SHA256, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::User;

    /// `pw` of bcrypt at cost 4, and of argon2id with 8 KiB.
    fn users() -> BasicAuth {
        let bcrypt = PasswordHash::Bcrypt(bcrypt::hash("pw", 4).expect("a hash").into());
        let users = ["anna", "bert"].map(|name| User { name: name.into(), hash: bcrypt.clone() });
        BasicAuth { realm: "r".into(), users: users.into() }
    }

    fn compare(passwords: &Arc<Passwords>, basic: &BasicAuth, name: &str, password: &str) -> Option<bool> {
        let sent = Credentials { name: name.as_bytes(), password: password.as_bytes() };
        match passwords.meet(basic, &sent) {
            Acquaintance::Known => None,
            Acquaintance::Unknown(login) => {
                Some(passwords.compare(None, login).expect("room").blocking_recv().expect("an outcome"))
            }
        }
    }

    #[test]
    fn whoever_was_good_once_is_known_until_the_hash_in_the_file_is_another() {
        let passwords = Arc::new(Passwords::default());
        let mut basic = users();
        assert_eq!(compare(&passwords, &basic, "anna", "pw"), Some(true));
        assert_eq!(compare(&passwords, &basic, "anna", "pw"), None);
        assert_eq!(compare(&passwords, &basic, "anna", "pw "), Some(false));
        assert_eq!(compare(&passwords, &basic, "bert", "pw"), Some(true), "the same hash is another user's");
        // The password of nobody, again and again.
        for name in ["carl", "", "anna:", "ANNA"] {
            assert_eq!(compare(&passwords, &basic, name, "pw"), Some(false), "{name}");
            assert_eq!(compare(&passwords, &basic, name, "pw"), Some(false), "{name}");
        }
        let other = PasswordHash::Bcrypt(bcrypt::hash("other", 4).expect("a hash").into());
        basic.users = [User { name: "anna".into(), hash: other }].into();
        assert_eq!(compare(&passwords, &basic, "anna", "pw"), Some(false));
        assert_eq!(
            compare(&passwords, &basic, "bert", "pw"),
            Some(false),
            "who is gone from the file is unknown"
        );
        assert_eq!(compare(&passwords, &basic, "anna", "other"), Some(true));
        assert_eq!(compare(&passwords, &users(), "anna", "other"), Some(false));
    }
}
