//! Asking a backend's agent: a TCP connection to the backend's address at the agent's port, and one line.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::check::{ProbeStream, connect};
use super::fault;
use super::finding::Finding;
use crate::config::model::Dialing;
use crate::targets::state::health::agent::AgentReport;
use crate::targets::{Endpoint, Verdict};

/// The most bytes of a line.
const LINE: usize = 1024;

/// How the agent of one backend is asked.
pub(super) struct AgentReader {
    /// Where it listens.
    pub(super) port: u16,
    /// Who takes longer has said nothing.
    pub(super) timeout: Duration,
    /// How connections to it are made.
    pub(super) dialing: Arc<Dialing>,
}

impl AgentReader {
    /// Asks once: the first of `endpoints` that accepts at the agent's port. The report says something.
    ///
    /// # Errors
    /// Why there is nothing that counts, in a few words.
    pub(super) async fn ask(&self, endpoints: &[Endpoint]) -> Result<AgentReport, String> {
        let endpoints: Vec<Endpoint> =
            endpoints.iter().filter_map(|endpoint| endpoint.at(self.port)).collect();
        let late = || format!("timeout after {}", humantime::format_duration(self.timeout));
        let line = timeout(self.timeout, read(&endpoints, &self.dialing)).await.map_err(|_| late())??;
        let report = AgentReport::read(&line);
        match &report.strange {
            _ if !report.is_empty() => Ok(report),
            Some(word) => Err(unknown(word)),
            None => Err("an empty line".to_owned()),
        }
    }
}

/// The complaint about a word that is not understood.
pub(super) fn unknown(word: &str) -> String {
    format!("`{word}` is none of an agent's words")
}

/// A line, up to its end or that of the connection.
async fn read(endpoints: &[Endpoint], dialing: &Dialing) -> Result<Vec<u8>, String> {
    let mut stream = match connect(endpoints, dialing).await {
        Ok(ProbeStream::Tcp(stream)) => stream,
        Ok(ProbeStream::Unix(_)) => return Err("no address".to_owned()),
        Err(Finding::Starved(reason) | Finding::Verdict(Verdict::Bad(reason))) => {
            return Err(reason.to_string());
        }
        Err(Finding::Verdict(Verdict::Good)) => return Err("no connection".to_owned()),
    };
    let mut line = vec![0; LINE];
    let mut held = 0;
    loop {
        let count = stream.read(&mut line[held..]).await.map_err(|error| fault::words(&error))?;
        let ends = line[held..held + count].iter().any(|byte| matches!(byte, b'\r' | b'\n'));
        held += count;
        if ends || count == 0 {
            line.truncate(held);
            return Ok(line);
        }
        if held == LINE {
            return Err("a line of more than 1 KiB".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    /// Far above any answer on loopback.
    const PATIENT: Duration = Duration::from_secs(20);

    /// What is made of an agent that says `line` and then closes, or holds the connection.
    async fn asked(line: Vec<u8>, hold: bool, timeout: Duration) -> Result<AgentReport, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let port = listener.local_addr().expect("bound").port();
        let _server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("accept");
            // The asker may have heard enough.
            let _ = stream.write_all(&line).await;
            if hold {
                let _ = stream.read(&mut [0]).await;
            }
        });
        // The port of the backend itself counts for nothing.
        let endpoint = Endpoint::Tcp(([127, 0, 0, 1], 1).into());
        AgentReader { port, timeout, dialing: Arc::default() }.ask(&[endpoint]).await
    }

    #[tokio::test]
    async fn a_line_ends_at_its_end_or_at_the_close() {
        let wanted = Ok(AgentReport::read(b"up 75%"));
        assert_eq!(asked(b"up 75%\nmaint".to_vec(), true, PATIENT).await, wanted);
        assert_eq!(asked(b"up 75%\r".to_vec(), true, PATIENT).await, wanted);
        assert_eq!(asked(b"up 75%".to_vec(), false, PATIENT).await, wanted);
        let mut long = b"up 75%".to_vec();
        long.resize(LINE - 1, b' ');
        long.push(b'\n');
        assert_eq!(asked(long.clone(), true, PATIENT).await, wanted);
        long.insert(6, b' ');
        assert_eq!(asked(long, true, PATIENT).await, Err("a line of more than 1 KiB".to_owned()));
    }

    #[tokio::test]
    async fn who_says_nothing_that_counts_is_told_apart() {
        assert_eq!(asked(Vec::new(), false, PATIENT).await, Err("an empty line".to_owned()));
        assert_eq!(asked(b"#up\n".to_vec(), true, PATIENT).await, Err("an empty line".to_owned()));
        let banner = b"220 mail.internal ESMTP\r\n".to_vec();
        assert_eq!(asked(banner, true, PATIENT).await, Err(unknown("220")));
        let short = Duration::from_millis(80);
        assert_eq!(asked(b"drain".to_vec(), true, short).await, Err("timeout after 80ms".to_owned()));
        let strange = asked(b"maxconn:30 drain\n".to_vec(), true, PATIENT).await.expect("it says something");
        assert_eq!((strange.is_empty(), strange.strange.as_deref()), (false, Some("maxconn:30")));
    }

    #[tokio::test]
    async fn who_cannot_be_reached_is_no_agent() {
        let socket = tokio::net::TcpSocket::new_v4().expect("socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("bind");
        let port = socket.local_addr().expect("bound").port();
        let agent = AgentReader { port, timeout: PATIENT, dialing: Arc::default() };
        let endpoint = Endpoint::Tcp(([127, 0, 0, 1], 1).into());
        assert_eq!(agent.ask(&[endpoint]).await, Err("connection refused".to_owned()));
        let unix = Endpoint::Unix(std::path::Path::new("/run/app.sock").into());
        assert_eq!(agent.ask(&[unix]).await, Err("no address".to_owned()));
    }
}
