//! A client that always does the same: it sends one request on each of its connections, over HTTP/2 as many as were asked for,
//! before it reads any answer, and sends exactly as many as it was told.

mod connection;
mod options;
mod request;
mod streams;
mod tls;
mod transport;

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::clock::now;

use connection::{Connection, Expected};
pub(crate) use options::Options;
use request::Request;
pub(crate) use tls::Sessions;

/// Errors that are described; more are only counted.
const MOST_TOLD: usize = 3;

/// Sends the requests and prints one line of JSON. Fails when any of them did.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut driver = Driver::new(options)?;
    let begun = now();
    driver.waves();
    let report = driver.report(now() - begun);
    writeln!(std::io::stdout().lock(), "{report}")?;
    if driver.errors > 0 {
        bail!("{} of {} requests failed", driver.errors, options.requests);
    }
    Ok(())
}

/// One place for a connection.
struct Place {
    connection: Option<Connection>,
    /// Each place has sessions of its own, so that no ticket is missing while another place uses it.
    sessions: Option<Sessions>,
    sent: Instant,
    /// Requests of the wave that have no answer yet.
    waiting: u64,
}

struct Driver<'a> {
    options: &'a Options,
    request: Request,
    expected: Expected,
    places: Vec<Place>,
    times: Vec<Duration>,
    connects: u64,
    resumed: u64,
    errors: u64,
    /// Times that something failed, for one request or several.
    failures: usize,
}

impl<'a> Driver<'a> {
    fn new(options: &'a Options) -> Result<Driver<'a>> {
        let place = || -> Result<Place> {
            let sessions = options.tls.as_ref();
            let sessions = sessions.map(|file| Sessions::new(file, &options.host, options.resume));
            let mut sessions = sessions.transpose()?;
            if options.streams.is_some() {
                sessions = sessions.map(|sessions| sessions.speaking(b"h2"));
            }
            Ok(Place { connection: None, sessions, sent: now(), waiting: 0 })
        };
        Ok(Driver {
            options,
            request: Request::new(options),
            expected: Expected { content: options.body, close: options.close },
            places: (0..options.connections).map(|_| place()).collect::<Result<_>>()?,
            times: Vec::with_capacity(usize::try_from(options.requests)?),
            connects: 0,
            resumed: 0,
            errors: 0,
            failures: 0,
        })
    }

    /// Everything that is to be sent.
    fn waves(&mut self) {
        let each = self.options.streams.unwrap_or(1);
        let mut left = self.options.requests;
        while left > 0 {
            let mut count = 0;
            for place in &mut self.places {
                place.waiting = left.min(each);
                left -= place.waiting;
                count += usize::from(place.waiting > 0);
            }
            self.wave(count);
        }
    }

    /// The requests of the first `count` places, and then all of their answers.
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

    /// Does one step for a place. A failure is one of each request that has no answer, and counted once: the steps that follow find
    /// no connection.
    fn step(&mut self, key: usize, step: impl FnOnce(&mut Self, usize) -> Result<()>) {
        if let Err(error) = step(self, key) {
            let place = &mut self.places[key];
            place.connection = None;
            self.errors += std::mem::take(&mut place.waiting);
            self.failures += 1;
            if self.failures <= MOST_TOLD {
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
        let place = &mut self.places[key];
        let Some(connection) = &mut place.connection else { return Ok(()) };
        self.resumed += u64::from(connection.shake_hands()?);
        connection.send(&self.request, place.waiting)
    }

    fn receive(&mut self, key: usize) -> Result<()> {
        let place = &mut self.places[key];
        let Some(connection) = &mut place.connection else { return Ok(()) };
        let goes_on = connection.receive(self.expected, || {
            self.times.push(now() - place.sent);
            place.waiting -= 1;
        })?;
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

#[cfg(test)]
mod tests;
