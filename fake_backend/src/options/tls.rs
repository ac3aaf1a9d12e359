//! The flags about TLS.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use fake_backend::{Authority, Running, TlsOptions, TlsVersion};

/// Their definitions.
pub(super) fn arguments() -> Vec<Arg> {
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf)).help(help)
    };
    let arguments = vec![
        Arg::new("tls").long("tls").action(ArgAction::SetTrue).help("Speaks TLS 1.2 and 1.3"),
        file("tls-cert", "A certificate and its chain in PEM, instead of one made at the start")
            .requires("tls-key"),
        file("tls-key", "The private key of --tls-cert in PEM").requires("tls-cert"),
        file("tls-ca-out", "Writes the certificate to trust, in PEM").conflicts_with("tls-cert"),
        Arg::new("tls-name")
            .long("tls-name")
            .value_name("NAME")
            .action(ArgAction::Append)
            .conflicts_with("tls-cert")
            .help("A DNS name or address in the certificate, instead of the usual ones; may be repeated"),
        file("tls-client-ca", "Refuses clients without a certificate from this CA"),
        Arg::new("tls-version")
            .long("tls-version")
            .value_parser(PossibleValuesParser::new(["1.2", "1.3"]))
            .help("Speaks this version and no other"),
    ];
    let wants_tls =
        |argument: Arg| if argument.get_id() == "tls" { argument } else { argument.requires("tls") };
    arguments.into_iter().map(|argument| wants_tls(argument).help_heading("TLS")).collect()
}

/// What they ask for; none without `--tls`. All fakes of one command share an authority.
pub(super) fn options(arguments: &ArgMatches) -> Result<Option<TlsOptions>> {
    if !arguments.get_flag("tls") {
        return Ok(None);
    }
    let read = |name: &str| -> Result<Option<String>> {
        let Some(path) = arguments.get_one::<PathBuf>(name) else { return Ok(None) };
        let text = std::fs::read_to_string(path);
        text.map(Some).with_context(|| format!("--{name}: cannot read {}", path.display()))
    };
    let mut options = match (read("tls-cert")?, read("tls-key")?) {
        (Some(certificate), Some(key)) => TlsOptions::new().pem(certificate, key),
        _ => TlsOptions::new().authority(&Authority::new("fake_backend")),
    };
    if let Some(names) = arguments.get_many::<String>("tls-name") {
        options = options.names(names.cloned());
    }
    if let Some(ca) = read("tls-client-ca")? {
        options = options.require_client(ca);
    }
    options = match arguments.get_one::<String>("tls-version").map(String::as_str) {
        Some("1.2") => options.versions(TlsVersion::Tls12, TlsVersion::Tls12),
        Some(_) => options.versions(TlsVersion::Tls13, TlsVersion::Tls13),
        None => options,
    };
    Ok(Some(options))
}

/// Writes what `--tls-ca-out` asks for.
pub(crate) fn write_ca(arguments: &ArgMatches, running: &[Running]) -> Result<()> {
    let Some(path) = arguments.get_one::<PathBuf>("tls-ca-out") else { return Ok(()) };
    let ca = running.iter().find_map(Running::ca_pem).context("--tls-ca-out: no certificate was made")?;
    std::fs::write(path, ca).with_context(|| format!("--tls-ca-out: cannot write {}", path.display()))
}
