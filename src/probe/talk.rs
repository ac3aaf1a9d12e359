//! What a probe says in bytes, and what it waits for: for protocols that we do not speak.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use memchr::memmem::Finder;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::fault;
use super::finding::Finding;
use crate::targets::Verdict;

/// The most bytes that are looked at.
const MOST: usize = 64 * 1024;
/// Bytes of what is missing, and of what came, that are shown.
const SHOWN: usize = 24;

/// What is sent, and what a good backend then says.
pub(super) struct Talk {
    send: Vec<u8>,
    receive: Finder<'static>,
    /// The beginning of what has come this time: who has to give up can still tell it.
    heard: Mutex<Vec<u8>>,
}

impl Talk {
    pub(super) fn new(send: Option<Vec<u8>>, receive: Vec<u8>) -> Talk {
        Talk {
            send: send.unwrap_or_default(),
            receive: Finder::new(&receive).into_owned(),
            heard: Mutex::default(),
        }
    }

    /// Talks on `stream` until what is waited for has come, or can't come any more.
    pub(super) async fn hold<S: AsyncRead + AsyncWrite + Unpin>(&self, mut stream: S) -> Finding {
        self.hear(&[]);
        if let Err(error) = stream.write_all(&self.send).await {
            return fault::of_io(&error);
        }
        // TLS keeps back what was written.
        if let Err(error) = stream.flush().await {
            return fault::of_io(&error);
        }
        let mut read = vec![0; 4096];
        let mut held = 0;
        loop {
            match stream.read(&mut read[held..]).await {
                Ok(0) => return Finding::bad(format!("{}, it closed", self.lacks(&read[..held]))),
                Ok(count) => held += count,
                Err(error) => return fault::of_io(&error),
            }
            self.hear(&read[..held.min(SHOWN + 1)]);
            if self.receive.find(&read[..held]).is_some() {
                return Finding::Verdict(Verdict::Good);
            }
            if held == MOST {
                return Finding::bad(format!("the first 64 KiB lack {}", shown(self.receive.needle())));
            }
            if held == read.len() {
                read.resize((held * 2).min(MOST), 0);
            }
        }
    }

    /// What a talk is worth that did not end in time: a backend that keeps the connection open has perhaps said why.
    pub(super) fn late(&self, timeout: Duration) -> String {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let timeout = humantime::format_duration(timeout);
        if heard.is_empty() {
            format!("timeout after {timeout}")
        } else {
            format!("{} within {timeout}", self.lacks(&heard))
        }
    }

    fn hear(&self, bytes: &[u8]) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.clear();
        heard.extend_from_slice(bytes);
    }

    fn lacks(&self, said: &[u8]) -> String {
        let wanted = shown(self.receive.needle());
        if said.is_empty() {
            format!("it did not say {wanted}")
        } else {
            format!("it said {}, not {wanted}", shown(said))
        }
    }
}

pub(super) fn shown(bytes: &[u8]) -> String {
    let more = if bytes.len() > SHOWN { "…" } else { "" };
    format!("\"{}{more}\"", bytes[..bytes.len().min(SHOWN)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    /// What becomes of a talk in which the backend says `pieces`, each after it has read what was sent, and then closes.
    async fn held(send: Option<&[u8]>, receive: &[u8], pieces: &[&[u8]]) -> (Finding, Vec<u8>) {
        let (ours, mut theirs) = duplex(1 << 20);
        let talk = Talk::new(send.map(<[u8]>::to_vec), receive.to_vec());
        let expected = send.map_or(0, <[u8]>::len);
        let backend = async {
            let mut heard = vec![0; expected];
            theirs.read_exact(&mut heard).await.expect("what is sent");
            for piece in pieces {
                // The asker may have heard enough.
                let _ = theirs.write_all(piece).await;
                tokio::task::yield_now().await;
            }
            drop(theirs);
            heard
        };
        tokio::join!(talk.hold(ours), backend)
    }

    #[tokio::test]
    async fn a_good_answer_may_come_in_pieces_and_after_a_banner() {
        let (finding, heard) = held(Some(b"PING\r\n"), b"+PONG", &[b"-LOADING\r\n+PO", b"NG\r\n"]).await;
        assert_eq!((finding, &*heard), (Finding::Verdict(Verdict::Good), &b"PING\r\n"[..]));
        let (finding, _) = held(None, b"220 ", &[b"220 mail.internal ESMTP\r\n"]).await;
        assert_eq!(finding, Finding::Verdict(Verdict::Good));
    }

    /// As Redis does that wants a password: it says so, and waits.
    #[tokio::test(start_paused = true)]
    async fn who_says_something_else_and_stays_is_told_with_what_it_said() {
        let (ours, mut theirs) = duplex(1 << 10);
        let talk = Talk::new(Some(b"PING".to_vec()), b"+PONG".to_vec());
        let second = Duration::from_secs(1);
        assert_eq!(talk.late(second), "timeout after 1s");
        theirs.write_all(b"-NOAUTH Authentication required.").await.expect("there is room");
        assert!(tokio::time::timeout(second, talk.hold(ours)).await.is_err());
        assert_eq!(talk.late(second), "it said \"-NOAUTH Authentication r…\", not \"+PONG\" within 1s");
        let (ours, _theirs) = duplex(1 << 10);
        assert!(tokio::time::timeout(second, talk.hold(ours)).await.is_err());
        assert_eq!(talk.late(second), "timeout after 1s", "what was said the last time is not told again");
    }

    #[tokio::test]
    async fn what_is_missing_is_told_with_what_came() {
        let (finding, _) = held(Some(b"PING\r\n"), b"+PONG", &[b"-NOAUTH\r\n"]).await;
        assert_eq!(finding, Finding::bad("it said \"-NOAUTH\\r\\n\", not \"+PONG\", it closed"));
        let (finding, _) = held(Some(b"x"), b"+PONG", &[]).await;
        assert_eq!(finding, Finding::bad("it did not say \"+PONG\", it closed"));
        let (finding, _) = held(None, b"x", &[&vec![b'a'; MOST + 1]]).await;
        assert_eq!(finding, Finding::bad("the first 64 KiB lack \"x\""));
    }
}
