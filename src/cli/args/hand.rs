//! Options of the commands that change something by hand.

use std::time::Duration;

use clap::Args as ClapArgs;
use ipnet::IpNet;

use super::running::AskOptions;
use crate::admin::wire::LASTS_MAX;
use crate::overlay::blocked::network_of;

macro_rules! examples {
    ($name:ident, $lines:literal) => {
        pub(in crate::cli) const $name: &str = concat!(
            "Examples:\n",
            $lines,
            "\n\nIt holds over reloads, restarts and crashes, until the file says something else of the same thing; `evenkeel diff` shows it.

Exit status:
  0  it is done
  1  it was refused and nothing has changed; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer"
        );
    };
}

examples!(
    DRAIN_EXAMPLES,
    "  evenkeel drain web/10.0.0.2:8080
  evenkeel drain web/b2 --wait
  evenkeel drain web/b2 --for 5m"
);
examples!(
    DOWN_EXAMPLES,
    "  evenkeel down web/b2
  evenkeel down web/b2 --for 1h"
);
examples!(READY_EXAMPLES, "  evenkeel ready web/b2");
examples!(
    WEIGHT_EXAMPLES,
    "  evenkeel weight web/b2 10
  evenkeel weight web/b2 0 --for 10m
  evenkeel weight web/b2 file"
);
examples!(
    ADD_EXAMPLES,
    "  evenkeel add web http://10.0.0.9:8080
  evenkeel add web https://10.0.0.9 --name b9 --weight 2
  evenkeel add web unix:/run/app.sock --for 1h"
);
examples!(
    REMOVE_EXAMPLES,
    "  evenkeel remove web/b2
  evenkeel remove web/b2 --now"
);

pub(in crate::cli) const BLOCK_EXAMPLES: &str = "Examples:
  evenkeel block 192.0.2.7
  evenkeel block 192.0.2.0/24 --for 1h
  evenkeel block 2001:db8::/32 --keep

New connections and requests are refused (403), what is under way and tunnels are cut, on all listeners and at once. It holds over
reloads, restarts and crashes until its time is over or `evenkeel unblock` takes it back; `evenkeel diff` shows it.

Exit status:
  0  it is done
  1  it was refused and nothing has changed; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

pub(in crate::cli) const UNBLOCK_EXAMPLES: &str = "Examples:
  evenkeel unblock 192.0.2.0/24

Exit status:
  0  it is done
  1  it is not blocked; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

pub(in crate::cli) const PURGE_EXAMPLES: &str = "Examples:
  evenkeel purge --url https://shop.example/offers?page=2
  evenkeel purge --prefix https://shop.example/static/
  evenkeel purge --tag product-17 --soft
  evenkeel purge --all

What is asked for from now on is asked for anew, on all workers; what is under way is not stored any more. With --soft it stays and is
stale: it may still stand in for a backend that fails.

Exit status:
  0  it is done
  1  it was refused; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

pub(in crate::cli) const DIFF_EXAMPLES: &str = "Examples:
  evenkeel diff
  evenkeel diff --json

What the lines begin with:
  +  a backend that is in no file
  -  a backend of the file that is removed
  ~  a value in the place of the one in the file
  !  a network that is kept out

Exit status:
  0  nothing is changed by hand
  1  something is; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

pub(in crate::cli) const SAVE_EXAMPLES: &str = "Examples:
  evenkeel save
  evenkeel save --json

It prints the lines of the files that differ: `-` as they were, `+` as they are now. Comments, order and all other lines stay.

Exit status:
  0  it is saved, or there was nothing to save
  1  nothing has changed, and what to write where is printed; or the output could not be written
  2  a wrong command line, or no process, several, or one that does not answer";

/// What every one of them has.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct HandOptions {
    /// For how long, such as `5m`; then it is as if it had not been said [default: until something else is said]
    #[arg(long = "for", value_name = "TIME", value_parser = lasting)]
    pub(in crate::cli) lasts: Option<Duration>,
    /// On a node of a cluster that is detached: on this node alone, until it is none any more
    #[arg(long)]
    pub(in crate::cli) local: bool,
    /// Which process.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}

/// A backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct BackendWord {
    /// What stands in front of the first slash.
    pub(in crate::cli) target: String,
    /// What stands behind it.
    pub(in crate::cli) backend: String,
}

/// Options of `drain`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct DrainOptions {
    /// The backend, as `evenkeel status` shows it
    #[arg(value_name = "TARGET/BACKEND", value_parser = backend)]
    pub(in crate::cli) backend: BackendWord,
    /// Return when nothing is under way on it any more
    #[arg(long)]
    pub(in crate::cli) wait: bool,
    /// For how long, and where.
    #[command(flatten)]
    pub(in crate::cli) hand: HandOptions,
}

/// Options of `down`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct StateOptions {
    /// The backend, as `evenkeel status` shows it
    #[arg(value_name = "TARGET/BACKEND", value_parser = backend)]
    pub(in crate::cli) backend: BackendWord,
    /// For how long, and where.
    #[command(flatten)]
    pub(in crate::cli) hand: HandOptions,
}

/// Options of `ready`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ReadyOptions {
    /// The backend, as `evenkeel status` shows it
    #[arg(value_name = "TARGET/BACKEND", value_parser = backend)]
    pub(in crate::cli) backend: BackendWord,
    /// On a node of a cluster that is detached: on this node alone, until it is none any more
    #[arg(long)]
    pub(in crate::cli) local: bool,
    /// Where.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}

/// Options of `weight`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct WeightOptions {
    /// The backend, as `evenkeel status` shows it
    #[arg(value_name = "TARGET/BACKEND", value_parser = backend)]
    pub(in crate::cli) backend: BackendWord,
    /// 0 to 256; `file` is what the file says
    #[arg(value_name = "WEIGHT", value_parser = weight)]
    pub(in crate::cli) weight: WeightWord,
    /// For how long, and where.
    #[command(flatten)]
    pub(in crate::cli) hand: HandOptions,
}

/// A weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum WeightWord {
    /// What the file says.
    File,
    /// This.
    Number(u16),
}

/// Options of `add`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct AddOptions {
    /// The target
    #[arg(value_name = "TARGET")]
    pub(in crate::cli) target: String,
    /// The backend: http://HOST:PORT, https://, tcp://, tls:// or unix:/PATH
    #[arg(value_name = "URL")]
    pub(in crate::cli) url: String,
    /// Its name [default: host and port]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) name: Option<String>,
    /// How much it gets beside its siblings, 0 to 256 [default: 1]
    #[arg(long, value_name = "WEIGHT", value_parser = clap::value_parser!(u16).range(0..=256))]
    pub(in crate::cli) weight: Option<u16>,
    /// For how long, and where.
    #[command(flatten)]
    pub(in crate::cli) hand: HandOptions,
}

/// Options of `remove`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct RemoveOptions {
    /// The backend, as `evenkeel status` shows it
    #[arg(value_name = "TARGET/BACKEND", value_parser = backend)]
    pub(in crate::cli) backend: BackendWord,
    /// Cut its tunnels at once, instead of within the target's `drain_timeout`
    #[arg(long)]
    pub(in crate::cli) now: bool,
    /// For how long, and where.
    #[command(flatten)]
    pub(in crate::cli) hand: HandOptions,
}

/// Options of `block`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct BlockOptions {
    /// An address or a network
    #[arg(value_name = "CIDR", value_parser = network)]
    pub(in crate::cli) network: IpNet,
    /// Leave what is under way, and tunnels; the next request is refused
    #[arg(long)]
    pub(in crate::cli) keep: bool,
    /// Also where it has addresses of a trusted proxy
    #[arg(long)]
    pub(in crate::cli) force: bool,
    /// For how long, and where.
    #[command(flatten)]
    pub(in crate::cli) hand: HandOptions,
}

/// Options of `unblock`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct UnblockOptions {
    /// The network, as it was blocked
    #[arg(value_name = "CIDR", value_parser = network)]
    pub(in crate::cli) network: IpNet,
    /// On a node of a cluster that is detached: on this node alone, until it is none any more
    #[arg(long)]
    pub(in crate::cli) local: bool,
    /// Where.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}

/// Options of `purge`.
#[derive(Debug, ClapArgs)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["url", "prefix", "tag", "all"])))]
pub(in crate::cli) struct PurgeOptions {
    /// All that is stored for this URL, of all routes and variants
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) url: Option<String>,
    /// All whose URL begins so
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) prefix: Option<String>,
    /// All that came with this tag in Cache-Tag or Surrogate-Key
    #[arg(long, value_name = "TAG")]
    pub(in crate::cli) tag: Option<String>,
    /// All that is stored
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// Declare it stale instead of taking it out
    #[arg(long)]
    pub(in crate::cli) soft: bool,
    /// In a cluster: on this node alone
    #[arg(long)]
    pub(in crate::cli) local: bool,
    /// Where.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}

/// Options of `diff`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct DiffOptions {
    /// Where.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}

/// Options of `save`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct SaveOptions {
    /// Where.
    #[command(flatten)]
    pub(in crate::cli) asking: AskOptions,
}

fn backend(text: &str) -> Result<BackendWord, String> {
    match text.split_once('/') {
        Some((target, backend)) if !target.is_empty() && !backend.is_empty() => {
            Ok(BackendWord { target: target.to_owned(), backend: backend.to_owned() })
        }
        _ => Err("a backend is TARGET/BACKEND, such as web/10.0.0.2:8080".to_owned()),
    }
}

fn weight(text: &str) -> Result<WeightWord, String> {
    if text == "file" {
        return Ok(WeightWord::File);
    }
    let number = text.parse().ok().filter(|number| *number <= 256);
    number.map(WeightWord::Number).ok_or_else(|| "a whole number from 0 to 256, or `file`".to_owned())
}

fn network(text: &str) -> Result<IpNet, String> {
    network_of(text)
}

fn lasting(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    let read = seconds.or_else(|| humantime::parse_duration(text).ok());
    let longest = Duration::from_secs(LASTS_MAX);
    let expected = "a time from `1s` to `366days`, such as `30s`, `5m` or `2h`";
    read.filter(|span| span.as_secs() > 0 && *span <= longest).ok_or_else(|| expected.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_people_write_them() {
        let word = backend("web/unix:/run/a.sock").expect("right");
        assert_eq!((word.target.as_str(), word.backend.as_str()), ("web", "unix:/run/a.sock"));
        assert!(backend("web").is_err() && backend("/a").is_err() && backend("a/").is_err());
        assert_eq!((weight("file"), weight("256")), (Ok(WeightWord::File), Ok(WeightWord::Number(256))));
        for wrong in ["0", "0s", "367days", "x"] {
            let said = lasting(wrong).expect_err(wrong);
            assert_eq!(said, "a time from `1s` to `366days`, such as `30s`, `5m` or `2h`");
        }
        assert!(weight("257").is_err() && weight("x").is_err());
        assert_eq!(
            (lasting("90"), lasting("5m")),
            (Ok(Duration::from_secs(90)), Ok(Duration::from_secs(300)))
        );
        assert!(lasting("0s").is_err() && lasting("soon").is_err());
    }
}
