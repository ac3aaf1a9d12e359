//! A folder of certificates: which of its files are one, and where each has its key.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::config::error::{Wrong, quoted};
use crate::config::files::FileRole;
use crate::config::files::fence::PathUse;
use crate::config::origin::{Spot, Written};
use crate::config::pattern::Pattern;
use crate::config::raw::reader::Reader;

/// Certificates of one folder, at most.
const MOST: usize = 10_000;
/// Files that are certificates by their names.
const CERTIFICATES: [&str; 3] = ["*.pem", "*.crt", "*.cer"];
/// Certificates in folders of their own, with their keys: what certbot makes, and what Kubernetes mounts.
const PAIRS: [(&str, &str); 2] = [("fullchain.pem", "privkey.pem"), ("tls.crt", "tls.key")];
/// What the path of a certificate ends in whose key stands beside it.
const KEY_ENDING: &str = "-key";

/// A certificate that was found in a folder.
#[derive(Debug)]
pub(in crate::config) struct FoundCertificate {
    pub(in crate::config) cert: PathBuf,
    /// `None`: in the same file, if anywhere.
    pub(in crate::config) key: Option<PathBuf>,
    /// An answer about it to be stapled; `None`: there is none.
    pub(in crate::config) ocsp: Option<PathBuf>,
}

/// `dir`.
#[derive(Debug)]
pub(in crate::config) struct RawFolder {
    pub(in crate::config) path: Written<PathBuf>,
    /// In the order of their paths.
    pub(in crate::config) found: Vec<FoundCertificate>,
}

/// Looks through the folder `text`; `None`: it is of no use, which has been said. From now on it is watched.
pub(super) fn look(text: &str, spot: &Spot, reader: &mut Reader<'_>) -> Option<RawFolder> {
    let (path, is_fine) = reader.named_path(text, PathUse::CertificateFolder, spot);
    if !is_fine {
        return None;
    }
    let mut names = BTreeSet::new();
    let mut fault = None;
    // What stands beside a certificate is a reason to look again, too.
    let beside = ["*.key", "*.ocsp"];
    for text in CERTIFICATES.into_iter().chain(beside) {
        fault = find(&path, text, &mut names, reader).or(fault);
    }
    for (cert, key) in PAIRS {
        for name in [cert, key] {
            fault = find(&path, &format!("*/{name}"), &mut names, reader).or(fault);
        }
    }
    // Of a folder inside that nobody may look into (`lost+found`) nobody knows what is in it, and that is nobody's concern.
    names.retain(|name| {
        let is_closed = |error: &std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
        !name.symlink_metadata().is_err_and(|error| is_closed(&error))
    });
    let wrong = |why: String| {
        let name = quoted(&path.display().to_string());
        Wrong::new(format!("is {name}, which {why}"), "a folder with certificates and their keys")
    };
    let fault = fault.map(|why| format!("can't be read: {why}")).or_else(|| match std::fs::metadata(&path) {
        Ok(facts) if facts.is_dir() => None,
        Ok(_) => Some("is no folder".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("does not exist".to_owned()),
        Err(error) => Some(format!("can't be read: {error}")),
    });
    if let Some(why) = fault {
        reader.report.wrong(spot, "`dir`", wrong(why));
        return None;
    }
    let found: Vec<FoundCertificate> = names.iter().filter_map(|name| certificate(name, &names)).collect();
    if found.is_empty() {
        let wrong = wrong("has no certificates in it".to_owned())
            .note("files `NAME.pem`, `.crt` or `.cer`, each with its key in it, in `NAME.key` or in `NAME-key.pem`, or folders with `fullchain.pem` and `privkey.pem`");
        reader.report.wrong(spot, "`dir`", wrong);
        return None;
    }
    if found.len() > MOST {
        reader.report.wrong(spot, "`dir`", wrong(format!("has more than {MOST} certificates")));
        return None;
    }
    for FoundCertificate { cert, key, ocsp } in &found {
        let key_file = key.as_ref().unwrap_or(cert);
        reader.report.note_name(PathUse::PrivateKey, key_file);
        for file in [Some(cert), key.as_ref(), ocsp.as_ref()].into_iter().flatten() {
            reader.report.files.add(file, FileRole::Named);
        }
    }
    Some(RawFolder { path: Written::new(path, spot.clone()), found })
}

/// Adds the files that a pattern stands for; gives why they can't all be known.
fn find(folder: &Path, text: &str, names: &mut BTreeSet<PathBuf>, reader: &mut Reader<'_>) -> Option<String> {
    let pattern = Pattern::new(folder, text).ok()?;
    let found = reader.report.files.add_pattern(pattern, FileRole::Named);
    names.extend(found.files);
    found.unread.map(|(_, why)| why)
}

/// What one of the files is a certificate of; `None`: of none.
fn certificate(cert: &Path, names: &BTreeSet<PathBuf>) -> Option<FoundCertificate> {
    let beside = |name: String| Some(cert.with_file_name(name)).filter(|path| names.contains(path));
    let whole = cert.file_name()?.to_str()?;
    let (stem, ending) = whole.rsplit_once('.')?;
    if !CERTIFICATES.iter().any(|pattern| pattern[2..] == *ending) {
        return None;
    }
    let pair = PAIRS.iter().find(|(name, key)| *name == whole && names.contains(&cert.with_file_name(key)));
    let key = match pair {
        Some((_, key)) => Some(cert.with_file_name(key)),
        None => beside(format!("{stem}.key"))
            .or_else(|| beside(format!("{whole}.key")))
            .or_else(|| beside(format!("{stem}{KEY_ENDING}.pem"))),
    };
    // The key of another one.
    let of =
        |stem: &str| CERTIFICATES.iter().any(|pattern| beside(format!("{stem}{}", &pattern[1..])).is_some());
    let is_key = PAIRS.iter().any(|(cert, key)| *key == whole && beside((*cert).to_owned()).is_some())
        || stem.strip_suffix(KEY_ENDING).is_some_and(of);
    let ocsp = beside(format!("{stem}.ocsp")).or_else(|| beside(format!("{whole}.ocsp")));
    (!is_key).then(|| FoundCertificate { cert: cert.to_owned(), key, ocsp })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_certificate_of_a_folder_finds_its_key() {
        let names = [
            "a.pem",
            "b.crt",
            "b.key",
            "c.pem",
            "c-key.pem",
            "d.pem",
            "d.pem.key",
            "d.ocsp",
            "e.key",
            "f-key.pem",
            "live/x/fullchain.pem",
            "live/x/privkey.pem",
            "live/y/tls.crt",
            "live/y/tls.key",
            "privkey.pem",
        ];
        let names: BTreeSet<PathBuf> = names.iter().map(PathBuf::from).collect();
        let found: Vec<String> = names
            .iter()
            .filter_map(|name| certificate(name, &names))
            .map(|FoundCertificate { cert, key, ocsp }| {
                let told =
                    |path: Option<PathBuf>| path.map_or("-".to_owned(), |path| path.display().to_string());
                format!("{} {} {}", cert.display(), told(key), told(ocsp))
            })
            .collect();
        assert_eq!(
            found,
            [
                "a.pem - -",
                "b.crt b.key -",
                "c.pem c-key.pem -",
                "d.pem d.pem.key d.ocsp",
                // Its certificate is not there: what is in it will be told.
                "f-key.pem - -",
                "live/x/fullchain.pem live/x/privkey.pem -",
                "live/y/tls.crt live/y/tls.key -",
                "privkey.pem - -",
            ]
        );
    }
}
