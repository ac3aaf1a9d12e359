//! Certificates to measure TLS with.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

#[derive(Args)]
pub(crate) struct Options {
    /// Folder for cert.pem and key.pem
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Name that the certificate is for
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    host: Vec<String>,
    /// Make so many sets instead, in folders named 0 and on, each with NAME.pem and NAME.key for every --host; ca.pem has signed
    /// them all
    #[arg(long, value_name = "N")]
    sets: Option<u32>,
}

/// Writes a certificate that is signed by its own key (ECDSA, P-256): a client trusts it by trusting the file. Or sets of
/// them, with an authority.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = &options.folder;
    match options.sets {
        Some(count) => sets(folder, &options.host, count),
        None => {
            let made = rcgen::generate_simple_self_signed(options.host.clone())?;
            write(&folder.join("cert.pem"), &made.cert.pem())?;
            write(&folder.join("key.pem"), &made.signing_key.serialize_pem())
        }
    }
}

fn sets(folder: &Path, hosts: &[String], count: u32) -> Result<()> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "rig");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    write(&folder.join("ca.pem"), &authority.pem())?;
    for number in 0..count {
        let set = folder.join(number.to_string());
        std::fs::create_dir_all(&set).with_context(|| format!("cannot make {}", set.display()))?;
        for host in hosts {
            let key = KeyPair::generate()?;
            let certificate = CertificateParams::new([host.clone()])?.signed_by(&key, &authority)?;
            write(&set.join(format!("{host}.pem")), &certificate.pem())?;
            write(&set.join(format!("{host}.key")), &key.serialize_pem())?;
        }
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
