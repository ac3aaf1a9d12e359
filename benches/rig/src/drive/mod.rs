//! A client that always does the same: it sends one request on each of its connections before it reads any
//! answer, and sends exactly as many as it was told.

mod connection;
mod tls;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

use connection::{Connection, Expected};
pub(crate) use tls::Sessions;

/// Errors that are described; more are only counted.
const MOST_TOLD: usize = 3;

#[derive(Args)]
pub(crate) struct Options {
    /// Where to connect to
    #[arg(value_name = "ADDRESS:PORT")]
    to: SocketAddr,
    /// Connections at a time; each has at most one request under way
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Requests in all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    requests: u64,
    /// A new connection for each request
    #[arg(long)]
    close: bool,
    /// Speak TLS 1.3 and trust the certificates in this PEM file
    #[arg(long, value_name = "FILE")]
    tls: Option<PathBuf>,
    /// With --close and --tls: resume the session of the connection before. Each connection's first is a full
    /// handshake
    #[arg(long, requires = "tls")]
    resume: bool,
    /// The host that is asked for, and named in the TLS handshake
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    host: String,
    /// Bytes of content that every answer must have
    #[arg(long, value_name = "BYTES", default_value_t = 12)]
    body: u64,
    /// Send so much content with each request
    #[arg(long, value_name = "BYTES")]
    upload: Option<usize>,
}

/// Sends the requests and prints one line of JSON. Fails when any of them did.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut driver = Driver::new(options)?;
    let begun = now();
    let mut left = options.requests;
    while left > 0 {
        let wave = left.min(u64::from(options.connections));
        driver.wave(usize::try_from(wave)?);
        left -= wave;
    }
    let report = driver.report(now() - begun);
    writeln!(std::io::stdout().lock(), "{report}")?;
    if driver.errors > 0 {
        bail!("{} of {} requests failed", driver.errors, options.requests);
    }
    Ok(())
}

/// The one place that reads the clock.
#[expect(clippy::disallowed_methods, reason = "no test pauses the time of a measurement")]
fn now() -> Instant {
    Instant::now()
}

/// One place for a connection.
struct Place {
    connection: Option<Connection>,
    /// Each place has sessions of its own, so that no ticket is missing while another place uses it.
    sessions: Option<Sessions>,
    sent: Instant,
}

struct Driver<'a> {
    options: &'a Options,
    request: Vec<u8>,
    expected: Expected,
    places: Vec<Place>,
    times: Vec<Duration>,
    connects: u64,
    resumed: u64,
    errors: u64,
}

impl<'a> Driver<'a> {
    fn new(options: &'a Options) -> Result<Driver<'a>> {
        let place = || -> Result<Place> {
            let sessions = options.tls.as_ref();
            let sessions = sessions.map(|file| Sessions::new(file, &options.host, options.resume));
            Ok(Place { connection: None, sessions: sessions.transpose()?, sent: now() })
        };
        Ok(Driver {
            options,
            request: request(options),
            expected: Expected { content: options.body, close: options.close },
            places: (0..options.connections).map(|_| place()).collect::<Result<_>>()?,
            times: Vec::with_capacity(usize::try_from(options.requests)?),
            connects: 0,
            resumed: 0,
            errors: 0,
        })
    }

    /// One request on each of the first `count` places, and then all of their answers.
    fn wave(&mut self, count: usize) {
        let secure = self.options.tls.is_some();
        for key in 0..count {
            self.places[key].sent = now();
            self.step(key, |driver, key| driver.open(key));
            // A handshake comes first, and all connections begin theirs before any goes on.
            if !secure {
                self.step(key, |driver, key| driver.send(key));
            }
        }
        for key in (0..count).filter(|_| secure) {
            self.step(key, |driver, key| driver.send(key));
        }
        for key in 0..count {
            self.step(key, |driver, key| driver.receive(key));
        }
    }

    /// Does one step for a place. A failure is counted once: the steps that follow find no connection.
    fn step(&mut self, key: usize, step: impl FnOnce(&mut Self, usize) -> Result<()>) {
        if let Err(error) = step(self, key) {
            self.places[key].connection = None;
            self.errors += 1;
            if self.errors <= MOST_TOLD as u64 {
                // Nobody to tell when even that fails.
                let _ = writeln!(std::io::stderr().lock(), "rig: request {}: {error:#}", self.times.len());
            }
        }
    }

    fn open(&mut self, key: usize) -> Result<()> {
        let place = &mut self.places[key];
        if place.connection.is_none() {
            self.connects += 1;
            place.connection = Some(Connection::open(self.options.to, place.sessions.as_ref())?);
        }
        Ok(())
    }

    fn send(&mut self, key: usize) -> Result<()> {
        let Some(connection) = &mut self.places[key].connection else { return Ok(()) };
        self.resumed += u64::from(connection.shake_hands()?);
        connection.send(&self.request)
    }

    fn receive(&mut self, key: usize) -> Result<()> {
        let place = &mut self.places[key];
        let Some(connection) = &mut place.connection else { return Ok(()) };
        let goes_on = connection.receive(self.expected)?;
        self.times.push(now() - place.sent);
        if !goes_on {
            place.connection = None;
        }
        Ok(())
    }

    fn report(&mut self, took: Duration) -> String {
        self.times.sort_unstable();
        let part = |per_cent: usize| {
            let last = self.times.len().saturating_sub(1);
            self.times.get(last * per_cent / 100).map_or(0, Duration::as_micros)
        };
        format!(
            "{{\"requests\":{},\"errors\":{},\"seconds\":{:.6},\"p50_us\":{},\"p99_us\":{},\"connects\":{},\"resumed\":{}}}",
            self.options.requests,
            self.errors,
            took.as_secs_f64(),
            part(50),
            part(99),
            self.connects,
            self.resumed,
        )
    }
}

/// A request with the fields that a program sends which is neither a browser nor a benchmark.
fn request(options: &Options) -> Vec<u8> {
    let (method, length) = match options.upload {
        Some(bytes) => ("POST", format!("Content-Length: {bytes}\r\n")),
        None => ("GET", String::new()),
    };
    let close = if options.close { "Connection: close\r\n" } else { "" };
    let head = format!(
        "{method} /api/items?page=2 HTTP/1.1\r\nHost: {}\r\nUser-Agent: rig/1.0\r\nAccept: */*\r\n\
         Accept-Encoding: gzip, deflate\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n\
         X-Request-Source: measurement\r\n{length}{close}\r\n",
        options.host
    );
    let mut request = head.into_bytes();
    request.resize(request.len() + options.upload.unwrap_or_default(), b'u');
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend;

    /// Runs the driver against a backend in a thread of this process, which ends with the tests.
    fn drive(backend: &[&str], client: &[&str]) -> String {
        let address = backend::start(backend);
        let mut arguments = vec!["drive".to_owned(), address.to_string()];
        arguments.extend(client.iter().map(|&argument| argument.to_owned()));
        let options = parse::<Options>(&arguments);
        let mut driver = Driver::new(&options).unwrap();
        let mut left = options.requests;
        while left > 0 {
            let wave = left.min(u64::from(options.connections));
            driver.wave(usize::try_from(wave).unwrap());
            left -= wave;
        }
        let report = driver.report(Duration::ZERO);
        report[..report.find(",\"seconds").unwrap()].to_owned()
            + &report[report.find(",\"connects").unwrap()..]
    }

    fn parse<T: Args>(arguments: &[String]) -> T {
        let command = T::augment_args(clap::Command::new("rig"));
        T::from_arg_matches(&command.get_matches_from(arguments)).unwrap()
    }

    #[test]
    fn exactly_so_many_requests_go_over_so_many_connections() {
        let report = drive(&[], &["--connections", "4", "--requests", "10"]);
        assert_eq!(report, r#"{"requests":10,"errors":0,"connects":4,"resumed":0}"#);
    }

    #[test]
    fn a_closing_client_connects_for_each_request() {
        let report = drive(&[], &["--connections", "4", "--requests", "10", "--close"]);
        assert_eq!(report, r#"{"requests":10,"errors":0,"connects":10,"resumed":0}"#);
    }

    #[test]
    fn content_is_counted_however_it_is_framed_and_in_both_directions() {
        let client = ["--connections", "2", "--requests", "6", "--body", "100000", "--upload", "300000"];
        for backend in [&["--body", "100000"][..], &["--body", "100000", "--chunked"]] {
            let report = drive(backend, &client);
            assert_eq!(report, r#"{"requests":6,"errors":0,"connects":2,"resumed":0}"#, "{backend:?}");
        }
    }

    #[test]
    fn a_wrong_length_is_an_error_and_costs_the_connection() {
        let report = drive(&["--body", "11"], &["--connections", "2", "--requests", "4"]);
        assert_eq!(report, r#"{"requests":4,"errors":4,"connects":4,"resumed":0}"#);
    }

    #[test]
    fn a_connection_that_the_backend_closes_is_opened_anew() {
        let report = drive(&["--close"], &["--connections", "2", "--requests", "4"]);
        assert_eq!(report, r#"{"requests":4,"errors":0,"connects":4,"resumed":0}"#);
    }
}
