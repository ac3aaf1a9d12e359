//! What is kept of one authority: the account, and what it has issued. Each file has a secret in it, and is for this user alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use xxhash_rust::xxh3::xxh3_64;

use super::desk::seconds;
use crate::config::identity_in;
use crate::config::model::tls::Identity;
use crate::config::model::tls::acme::{AcmeConfig, OrderedCertificate};
use crate::instance::make_private;
use crate::tls::KeptCertificates;

/// Below the folder of the state.
const FOLDER: &str = "acme";
/// Of a name of people's this much is in the name of a file.
const SHOWN: usize = 64;
/// Files that are looked at for what is near.
const LOOKED_AT: usize = 1_000;
/// Behind the name of what is about to take its place.
const NEXT: &str = ".new";
/// Behind the name of an account that its authority does not know any more.
const LOST: &str = ".lost";
/// What is written to find out whether that is possible: as much as a certificate with its chain.
const TRIAL: &str = ".trial";
const TRIAL_BYTES: usize = 16 << 10;

/// A folder of one authority.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    folder: PathBuf,
    account: PathBuf,
}

impl Shelf {
    /// That of the authority of `config`, below the folder of the state.
    pub(super) fn of(state: &Path, config: &AcmeConfig) -> Shelf {
        let directory = &config.directory;
        let folder = state.join(FOLDER).join(named(&directory.host, directory.identity().as_bytes()));
        let account = match &config.external_account {
            Some(external) => format!("account-{:08x}.json", short(external.id.as_bytes())),
            None => "account.json".to_owned(),
        };
        Shelf { account: folder.join(account), folder }
    }

    /// What it is called: no other authority is called so.
    pub(super) fn name(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Where a certificate is kept.
    pub(super) fn place(&self, order: &OrderedCertificate) -> PathBuf {
        let mut what = order.sorted().join(" ").into_bytes();
        what.extend_from_slice(order.key.name().as_bytes());
        let names = order.sorted();
        let first = names.first().map_or("", String::as_str);
        self.folder.join(format!("{}.pem", named(first, &what)))
    }

    /// The name of that file.
    pub(super) fn file(&self, order: &OrderedCertificate) -> String {
        self.place(order).file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The name of the file of the account.
    pub(super) fn account_file(&self) -> String {
        self.account.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What is kept of a certificate: the private key, and behind it the chain.
    ///
    /// # Errors
    /// It can't be read, or there is none.
    pub(super) fn text(&self, order: &OrderedCertificate) -> io::Result<String> {
        fs::read_to_string(self.place(order))
    }

    /// Whether it has issued this one.
    pub(super) fn holds(&self, identity: &Identity) -> bool {
        identity.file.starts_with(&self.folder)
    }

    /// What was issued before. It may have ended: even so it tells clients more than one that signs itself.
    pub(super) fn read(&self, order: &OrderedCertificate) -> Option<Identity> {
        let place = self.place(order);
        let kept = identity_in(&place).ok()?;
        // What somebody else has put there is for other names, perhaps.
        order.names.iter().all(|name| kept.names.contains(name)).then_some(kept)
    }

    /// Keeps what was issued: the private key, and behind it the chain. Gives it as it is read from there.
    ///
    /// # Errors
    /// It can't be kept, or is of no use; what was kept before still is.
    pub(super) fn keep(&self, order: &OrderedCertificate, pem: &str) -> Result<Identity, String> {
        let place = self.place(order);
        let told = |error: io::Error| format!("{}: {error}", place.display());
        let next = self.write(&place, pem.as_bytes()).map_err(told)?;
        let identity = identity_in(&next).and_then(|identity| {
            let missing = order.names.iter().find(|name| !identity.names.contains(name));
            missing.map_or(Ok(identity), |name| Err(format!("it is not for {name}")))
        });
        let identity = match identity {
            Ok(identity) => identity,
            Err(why) => {
                let _ = fs::remove_file(&next);
                return Err(format!("what was issued is of no use: {why}"));
            }
        };
        self.put(&next, &place).map_err(told)?;
        Ok(Identity { file: place, ..identity })
    }

    /// What is known of the account; `None`: nothing.
    ///
    /// # Errors
    /// There is something, and it can't be read.
    pub(super) fn account(&self) -> Result<Option<Vec<u8>>, String> {
        match fs::read(&self.account) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", self.account.display())),
        }
    }

    /// Keeps that.
    ///
    /// # Errors
    /// It can't be kept.
    pub(super) fn keep_account(&self, bytes: &[u8]) -> Result<(), String> {
        let kept = self.write(&self.account, bytes).and_then(|next| self.put(&next, &self.account));
        kept.map_err(|error| format!("{}: {error}", self.account.display()))
    }

    /// Puts an account aside that its authority does not know any more.
    ///
    /// # Errors
    /// It can't be.
    pub(super) fn lose_account(&self) -> Result<(), String> {
        let lost = with_ending(&self.account, LOST);
        fs::rename(&self.account, lost).map_err(|error| format!("{}: {error}", self.account.display()))
    }

    /// Finds out whether something could be kept.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn try_out(&self) -> io::Result<()> {
        make_private(&self.folder)?;
        let place = self.folder.join(TRIAL);
        let tried = fs::write(&place, [b' '; TRIAL_BYTES]);
        let _ = fs::remove_file(&place);
        tried
    }

    /// Writes what is to take a place; gives where it is until then.
    fn write(&self, place: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
        make_private(&self.folder)?;
        let next = with_ending(place, NEXT);
        // What a killed process has left may be somebody else's by its rights.
        let _ = fs::remove_file(&next);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(next)
    }

    fn put(&self, next: &Path, place: &Path) -> io::Result<()> {
        fs::rename(next, place)?;
        File::open(&self.folder)?.sync_all()
    }
}

/// What all authorities have issued before.
pub struct KeptShelves {
    /// Of the authority of the config that the process has begun with.
    shelf: Shelf,
    state: PathBuf,
}

impl KeptShelves {
    /// What is kept below the folder of the state.
    #[must_use]
    pub fn of(state: &Path, config: &AcmeConfig) -> KeptShelves {
        KeptShelves { shelf: Shelf::of(state, config), state: state.to_owned() }
    }
}

impl KeptCertificates for KeptShelves {
    fn same(&self, order: &OrderedCertificate) -> Option<Identity> {
        self.shelf.read(order)
    }

    fn near(&self, order: &OrderedCertificate) -> Vec<Arc<Identity>> {
        let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let files =
            entries(self.state.join(FOLDER)).flat_map(|shelf| entries(shelf.path())).map(|file| file.path());
        let pem = files.filter(|file| file.extension().is_some_and(|ending| ending == "pem"));
        let now = seconds(SystemTime::now());
        let identities = pem.take(LOOKED_AT).filter_map(|file| identity_in(&file).ok());
        let is_near = |one: &Identity| {
            (one.begins..one.expires).contains(&now) && order.names.iter().any(|name| one.is_for(name))
        };
        identities.filter(is_near).map(Arc::new).collect()
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut whole = path.as_os_str().to_owned();
    whole.push(ending);
    PathBuf::from(whole)
}

fn short(what: &[u8]) -> u32 {
    u32::try_from(xxh3_64(what) >> 32).unwrap_or_default()
}

/// A name of a file that people recognise, and that nothing else has.
fn named(shown: &str, what: &[u8]) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let shown: String = shown.chars().take(SHOWN).map(|c| if fits(c) { c } else { '_' }).collect();
    format!("{shown}-{:08x}", short(what))
}
