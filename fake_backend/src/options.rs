//! The command line: clap's definitions and their way into fakes. The flags about behaviour are made from
//! [`SETTINGS`], so flags, control requests and their texts cannot part. The flags about TLS are in [`tls`].

mod tls;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, ensure};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use fake_backend::{Behaviour, FAULTS, Fake, Protocol, SETTINGS, TLS_FAULTS};

pub(crate) use tls::write_ca;

const AFTER: &str = "\
An HTTP fake answers `Hello from <id>` to everything but the paths /health, /ping, /echo, /count, /head,
/login, /bytes/N, /chunked/N[?trailer=1], /close/N, /status/NNN, /delay/MS, /early-hints and /upgrade;
WebSocket messages are echoed on every path.

While it runs, POST /_fake?KEY=VALUE&... changes its behaviour, where KEY is a flag from `Behaviour` without its
dashes, or reset=1 (back to the default first), health=up|down, close-idle=1, refuse=1. GET /_fake tells the
counters. --no-control makes /_fake a path like any other. Under hang-unread, close-on-accept, reset-on-accept
and every --tls-fault but no-close-notify no request is read, to /_fake neither: set them with `times`, or
restart.

With --tls the certificate is made at the start, for localhost, 127.0.0.1, ::1 and --address, by an authority
made then too; --tls-ca-out FILE is what `curl --cacert FILE` wants.";

/// The command's definition.
pub(crate) fn command() -> Command {
    let command = Command::new("fake_backend")
        .about("Backends that behave, or misbehave, on request")
        .after_long_help(AFTER)
        .arg(Arg::new("id").long("id").default_value("fake").help("The name in `Hello from <id>`"))
        .arg(
            Arg::new("protocol")
                .long("protocol")
                .value_parser(PossibleValuesParser::new(["http", "tcp", "udp"]))
                .default_value("http")
                .help("What it speaks"),
        )
        .arg(
            Arg::new("address")
                .long("address")
                .value_parser(value_parser!(IpAddr))
                .default_value("127.0.0.1")
                .help("The address it listens on"),
        )
        .arg(
            Arg::new("port")
                .long("port")
                .value_parser(value_parser!(u16))
                .required(true)
                .help("The port it listens on; 0 lets the system choose"),
        )
        .arg(
            Arg::new("count")
                .long("count")
                .value_parser(value_parser!(u32).range(1..))
                .help("Starts so many, named <id>-1 and on, on the ports from --port on"),
        )
        .arg(flag("spread-addresses", "With --count: one port, on the IPv4 addresses from --address on"))
        .arg(flag("list", "With --count: a line for each instead of one for all"))
        .arg(flag("unhealthy", "Health is down from the start"))
        .arg(
            Arg::new("health-path")
                .long("health-path")
                .help("The path of health, instead of /health and /ping"),
        )
        .arg(flag("no-control", "Requests to /_fake do not change the behaviour"))
        .arg(
            Arg::new("slots")
                .long("slots")
                .value_parser(value_parser!(u32).range(1..))
                .help("Works on so many requests at once, each for its latency; the others wait in order"),
        )
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_parser(value_parser!(u64))
                .help("Makes drawn latencies and sizes repeatable"),
        );
    let command = tls::arguments().into_iter().fold(command, Command::arg);
    SETTINGS.iter().fold(command, |command, (key, help)| {
        let mut help = capitalised(help);
        let names: Vec<_> = match *key {
            "fault" => FAULTS.iter().map(|(name, _)| *name).collect(),
            "tls-fault" => TLS_FAULTS.iter().map(|(name, _)| *name).collect(),
            _ => Vec::new(),
        };
        if !names.is_empty() {
            help = format!("{help}: {}", names.join(", "));
        }
        command.arg(Arg::new(*key).long(*key).value_name("VALUE").help(help).help_heading("Behaviour"))
    })
}

/// The texts of [`SETTINGS`] begin small, for lists; clap's begin with a capital.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// The fakes these arguments ask for, each with where it will listen.
pub(crate) fn fakes(arguments: &ArgMatches) -> Result<Vec<(Fake, SocketAddr)>> {
    let behaviour = behaviour(arguments)?;
    let id: &String = arguments.get_one("id").context("--id has a default")?;
    let protocol = match arguments.get_one::<String>("protocol").map(String::as_str) {
        Some("tcp") => Protocol::Tcp,
        Some("udp") => Protocol::Udp,
        Some(_) | None => Protocol::Http,
    };
    let base = *arguments.get_one::<IpAddr>("address").context("--address has a default")?;
    let port = *arguments.get_one::<u16>("port").context("--port is required")?;
    let count = arguments.get_one::<u32>("count").copied();
    let spread = arguments.get_flag("spread-addresses");
    let tls = tls::options(arguments)?;
    let mut fakes = Vec::new();
    for number in 0..count.unwrap_or(1) {
        let name = count.map_or_else(|| id.clone(), |_| format!("{id}-{}", number + 1));
        let place = place(base, port, number, spread)?;
        let mut fake = Fake::new(name, protocol).bind_addr(place).behave(behaviour.clone());
        if let Some(seed) = arguments.get_one::<u64>("seed") {
            fake = fake.seed(seed.wrapping_add(u64::from(number)));
        }
        if let Some(slots) = arguments.get_one::<u32>("slots") {
            fake = fake.slots(*slots as usize);
        }
        if let Some(path) = arguments.get_one::<String>("health-path") {
            fake = fake.health_path(path);
        }
        if arguments.get_flag("unhealthy") {
            fake = fake.unhealthy();
        }
        if let Some(tls) = &tls {
            fake = fake.tls(tls.clone());
        }
        if !arguments.get_flag("no-control") {
            fake = fake.control();
        }
        fakes.push((fake, place));
    }
    Ok(fakes)
}

fn behaviour(arguments: &ArgMatches) -> Result<Behaviour> {
    let mut behaviour = Behaviour::default();
    for (key, _) in SETTINGS {
        if let Some(value) = arguments.get_one::<String>(key) {
            behaviour.set(key, value)?;
        }
    }
    Ok(behaviour)
}

/// Where the fake of this number (from 0) listens.
fn place(base: IpAddr, port: u16, number: u32, spread: bool) -> Result<SocketAddr> {
    if spread {
        let IpAddr::V4(first) = base else { anyhow::bail!("--spread-addresses needs an IPv4 --address") };
        ensure!(port != 0, "--spread-addresses needs a --port other than 0");
        let address =
            u32::from(first).checked_add(number).context("--count: there are not so many addresses")?;
        return Ok((Ipv4Addr::from(address), port).into());
    }
    if port == 0 {
        return Ok((base, 0).into());
    }
    let port = u32::from(port) + number;
    let port = u16::try_from(port).context("--count: there are not so many ports from --port on")?;
    Ok((base, port).into())
}
