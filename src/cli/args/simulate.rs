//! Options of `simulate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args as ClapArgs, ValueEnum, ValueHint};

use crate::config::model::Balance;
use crate::simulate::Workload;

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel simulate --workload one_slow
  evenkeel simulate --workload even --algorithm round_robin --algorithm power_of_two
  evenkeel simulate --rate 500 --backends 8 --slots 4 --service-mean 35ms
  evenkeel simulate --clients 9500 --backends 10 --slots 64 --service-mean 200ms
  evenkeel simulate --rate 900 --config evenkeel.yaml --target web --slots 16
  evenkeel simulate --rate 270 --backends 100 --slots 1 --service-mean 260ms --nodes 5

Figures:
  mean, p50, p99, max  from the request to the end of its answer, of requests that were no errors
  errors               requests that were answered with 5xx, or not at all
  imbalance            work per slot of the busiest backend, beside the average; 1.00 is even
  collided, moves      with several nodes: requests that met a backend without a free slot; backends that moved

Exit status:
  0  all went well
  1  a wrong config, or the output could not be written
  2  a wrong command line";

/// What to simulate.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("load").args(["rate", "clients"]))]
pub(in crate::cli) struct SimulateOptions {
    /// A stock workload, any number of times [default: all of them]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(workloads()), conflicts_with = "load")]
    pub(in crate::cli) workload: Vec<String>,
    /// An algorithm, any number of times [default: all of them, or the one of --config]
    #[arg(long, value_name = "NAME", value_parser = algorithm())]
    pub(in crate::cli) algorithm: Vec<Balance>,
    /// Requests in each run [default: 200000; 5000 where neither --workload nor a case of your own is given]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(in crate::cli) requests: Option<u64>,
    /// What chance begins with: the same seed, the same figures
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(in crate::cli) seed: u64,
    /// Backends that fail, or do worse than their siblings, get requests like any other: no breaker, no ejections
    #[arg(long)]
    pub(in crate::cli) no_resilience: bool,
    /// How the figures are printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub(in crate::cli) format: Format,
    /// A case of your own.
    #[command(flatten)]
    pub(in crate::cli) own: OwnCase,
}

/// A workload that is made of flags. It is asked for by saying how requests come.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "A case of your own")]
pub(in crate::cli) struct OwnCase {
    /// Requests come by themselves, so many a second
    #[arg(long, value_name = "PER_SECOND", value_parser = positive)]
    pub(in crate::cli) rate: Option<f64>,
    /// So many clients send the next request when they have the answer
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(in crate::cli) clients: Option<u32>,
    /// How long a client waits before the next request, on average [default: 0]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "clients")]
    pub(in crate::cli) think: Option<Duration>,
    /// How many backends there are
    #[arg(long, value_name = "COUNT", default_value_t = 3, requires = "load", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(in crate::cli) backends: u32,
    /// Their weights instead of their number, with commas between them
    #[arg(long, value_name = "WEIGHT,...", value_delimiter = ',', conflicts_with = "backends", requires = "load", value_parser = clap::value_parser!(u16).range(0..=256))]
    pub(in crate::cli) weights: Vec<u16>,
    /// Requests that a backend serves at once; the others wait there
    #[arg(long, value_name = "COUNT", default_value_t = 16, requires = "load", value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::cli) slots: u32,
    /// How long a backend works on a request, on average
    #[arg(long, value_name = "TIME", default_value = "20ms", requires = "load", value_parser = duration)]
    pub(in crate::cli) service_mean: Duration,
    /// How that time is spread (Weibull): below 1 a long tail, 1 exponential, above 1 a hump near the mean
    #[arg(long, value_name = "SHAPE", default_value_t = 1.0, requires = "load", value_parser = shape)]
    pub(in crate::cli) service_shape: f64,
    /// How many times as slow the first backend is
    #[arg(long, value_name = "FACTOR", requires = "load", value_parser = positive)]
    pub(in crate::cli) slow: Option<f64>,
    /// How many clients a hash tells apart where requests come by --rate
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, requires = "rate", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(in crate::cli) keys: u32,
    /// How much more the busiest of them send (Zipf's exponent); 0: all the same
    #[arg(long, value_name = "EXPONENT", default_value_t = 0.0, requires = "rate", value_parser = skew)]
    pub(in crate::cli) key_skew: f64,
    /// Several nodes in front of the same backends, each with `max_in_flight` at the slots: how good they are where they know nothing of each other, and with `owner: soft`,
    /// beside one that knows everything
    #[arg(long, value_name = "COUNT", requires = "rate", conflicts_with_all = ["config", "weights", "slow", "keys", "key_skew", "algorithm"], value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(in crate::cli) nodes: Option<u32>,
    /// Which part of all requests one of the nodes gets [default: as much as each]
    #[arg(long, value_name = "SHARE", requires = "nodes", value_parser = share)]
    pub(in crate::cli) heavy: Option<f64>,
    /// After how long that is another one [default: never]
    #[arg(long, value_name = "TIME", requires = "heavy", value_parser = duration)]
    pub(in crate::cli) flips: Option<Duration>,
    /// Takes algorithm, weights, priorities, zones, slow start, breaker and outlier detection of a target in this file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "load", conflicts_with_all = ["backends", "weights"])]
    pub(in crate::cli) config: Option<PathBuf>,
    /// Which target of the file [default: the only one]
    #[arg(long, value_name = "NAME", requires = "config")]
    pub(in crate::cli) target: Option<String>,
}

/// How figures are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// For a terminal
    Table,
    /// For a document
    Markdown,
    /// For a program: an array with an object for each run, times in seconds
    Json,
}

fn workloads() -> Vec<PossibleValue> {
    let stock = Workload::stock().into_iter();
    stock.map(|workload| PossibleValue::new(workload.name).help(workload.about)).collect()
}

fn algorithm() -> impl TypedValueParser<Value = Balance> {
    let named = |name: &'static str, balance| {
        let aliases = Balance::ALIASES.iter().filter(move |(_, other)| *other == balance);
        PossibleValue::new(name).aliases(aliases.map(|(alias, _)| *alias))
    };
    let values = Balance::ALL.iter().map(move |&(name, balance)| named(name, balance));
    PossibleValuesParser::new(values).map(|name| {
        let mut all = Balance::ALL.iter().chain(Balance::ALIASES);
        all.find(|(known, _)| *known == name).expect("the parser before this one knows only these").1
    })
}

fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text).map_err(|error| format!("{error}; a time is written as 20ms or 1s"))
}

fn number(text: &str, fits: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    text.parse().ok().filter(|&number| fits(number)).ok_or_else(|| expected.to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    number(text, |number| number > 0.0 && number <= 1e9, "a number above 0, up to a billion, is expected")
}

fn share(text: &str) -> Result<f64, String> {
    number(text, |number| (0.0..=1.0).contains(&number), "a number from 0 to 1 is expected")
}

fn shape(text: &str) -> Result<f64, String> {
    number(text, |number| (0.1..=100.0).contains(&number), "a number from 0.1 to 100 is expected")
}

fn skew(text: &str) -> Result<f64, String> {
    number(text, |number| (0.0..=10.0).contains(&number), "a number from 0 to 10 is expected")
}
