//! A certificate to measure TLS with.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

#[derive(Args)]
pub(crate) struct Options {
    /// Folder for cert.pem and key.pem
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Name that the certificate is for
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    host: String,
}

/// Writes a certificate that is signed by its own key (ECDSA, P-256): a client trusts it by trusting the file.
pub(crate) fn run(options: &Options) -> Result<()> {
    let made = rcgen::generate_simple_self_signed([options.host.clone()])?;
    for (name, text) in [("cert.pem", made.cert.pem()), ("key.pem", made.signing_key.serialize_pem())] {
        let file = options.folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
