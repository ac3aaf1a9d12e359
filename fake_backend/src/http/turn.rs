//! One request and its answer: what is read of it, how long it is waited, what is sent, and whether the connection goes on.
//! `dispatch` says which of that is done; every way a well-behaved answer takes is here, the others are in `fault` and
//! `upgrade`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::answer::{Answer, Content, Shape};
use super::body::{Body, Framing};
use super::login;
use super::path::Wish;
use super::request::Request;
use crate::behaviour::{Behaviour, Ending, Fault};
use crate::state::State;
use crate::wire::Wire;

/// What comes after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next request.
    Again,
    /// The connection's end.
    End(Ending),
}

/// One request, from its head to the end of its answer.
pub(crate) struct Turn<'a> {
    pub(crate) wire: &'a mut Wire,
    pub(crate) state: &'a Arc<State>,
    pub(crate) request: Request,
    pub(crate) behaviour: Arc<Behaviour>,
    pub(super) body: Body,
    /// The request's number in the record.
    pub(super) recorded: Option<u64>,
    pub(super) health: bool,
}

impl Turn<'_> {
    /// Reads whatever comes until the client leaves. That counts as a request it did not wait for.
    pub(super) async fn hang(&mut self) -> io::Result<Next> {
        self.read_body().await?;
        let _waiting = (!self.health).then(|| self.state.waits());
        self.wire.drain().await?;
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    pub(super) fn answer_to(&mut self, wish: Wish) -> Answer {
        let behaviour = &self.behaviour;
        match wish {
            Wish::Answer(answer) => *answer,
            Wish::Count => Answer::text(200, self.body.received.to_string()),
            Wish::Login => login::answer(&mut self.wire.login, &self.request),
            Wish::Greeting | Wish::Echo | Wish::Upgrade { .. } => {
                let mut answer = Answer::text(behaviour.status, self.greeting());
                if let Some(size) = behaviour.size {
                    answer.content = Content::Pattern(self.state.draw_size(size));
                }
                answer
            }
        }
    }

    /// What an ordinary answer says.
    pub(crate) fn greeting(&self) -> String {
        format!("Hello from {}", self.state.id)
    }

    /// Waits for a slot where they are few, then for the behaviour's latency, its stall and this delay.
    pub(super) async fn wait(&self, delay: Duration) {
        // Over before the answer's first byte: who has that byte may send the next request at once.
        let _waiting = (!self.health).then(|| self.state.waits());
        // The semaphore is never closed, so there is always one to get.
        let slot = match &self.state.slots {
            Some(slots) if !self.health => slots.acquire().await.ok(),
            _ => None,
        };
        let _working = slot.is_some().then(|| self.state.work.begin());
        let latency = self.state.draw_latency(self.behaviour.latency).unwrap_or_default();
        let stall = self.state.draw_stall(self.behaviour.stall).unwrap_or_default();
        let whole = latency.saturating_add(stall).saturating_add(delay);
        if !whole.is_zero() {
            tokio::time::sleep(whole).await;
        }
    }

    /// Sends `100 Continue` when the client waits for it.
    async fn invite(&mut self) -> io::Result<()> {
        let waits = self.request.expects_continue && !self.request.old && !self.body.is_complete();
        if waits && self.behaviour.sends_continue && self.body.received == 0 && self.wire.pending().is_empty()
        {
            self.wire.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        Ok(())
    }

    /// Reads the body to its end.
    pub(super) async fn read_body(&mut self) -> io::Result<()> {
        if !self.behaviour.answers_early {
            self.invite().await?;
        }
        let mut data = Vec::new();
        loop {
            data.clear();
            self.read_piece(&mut data).await?;
            if self.body.is_complete() {
                return Ok(());
            }
        }
    }

    /// Reads some of the body and records it.
    async fn read_piece(&mut self, data: &mut Vec<u8>) -> io::Result<()> {
        self.body.read(self.wire, data).await?;
        if let (Some(recorder), Some(number)) = (&self.state.recorder, self.recorded) {
            recorder.extend(number, data);
            if self.body.is_complete() {
                recorder.finish(number, &self.body.trailers);
            }
        }
        Ok(())
    }

    /// Whether the connection may go on after an answer of this shape.
    fn goes_on(&self, shape: Shape) -> bool {
        let unsure_of_body =
            self.behaviour.answers_early && self.request.expects_continue && !self.body.is_complete();
        self.request.keep_alive && !self.behaviour.close && shape != Shape::UntilClose && !unsure_of_body
    }

    /// The header lines about the connection.
    pub(crate) fn connection_lines(&self, goes_on: bool) -> String {
        match (goes_on, self.behaviour.keep_alive_timeout) {
            (false, _) => "Connection: close\r\n".to_owned(),
            (true, Some(seconds)) => format!("Keep-Alive: timeout={seconds}\r\nConnection: keep-alive\r\n"),
            (true, None) if self.request.old => "Connection: keep-alive\r\n".to_owned(),
            (true, None) => String::new(),
        }
    }

    /// Sends the answer, or with a fault in its middle the first half of it.
    pub(super) async fn send(&mut self, answer: &Answer) -> io::Result<Next> {
        let goes_on = self.goes_on(answer.shape);
        let mut bytes = answer.before.clone();
        bytes.extend_from_slice(answer.head(&self.state.id, &self.connection_lines(goes_on)).as_bytes());
        let ending = match self.behaviour.fault {
            Some(Fault::CloseMidBody) => Some(Ending::Close),
            Some(Fault::ResetMidBody) => Some(Ending::Reset),
            Some(_) | None => None,
        };
        let bodiless = answer.is_bodiless() || self.request.method == "HEAD";
        let length = match (bodiless, ending) {
            (true, _) => 0,
            (false, None) => answer.content.length(),
            (false, Some(_)) => answer.content.length() / 2,
        };
        let chunked = matches!(answer.shape, Shape::Chunked { .. });
        let pace = answer.pace.or(self.behaviour.pace);
        match &answer.content {
            // One write for the whole answer, as real servers do.
            Content::Bytes(text) if pace.is_none() && !chunked => {
                bytes.extend_from_slice(
                    &text[..usize::try_from(length).unwrap_or(text.len()).min(text.len())],
                );
                self.wire.send(&bytes).await?;
            }
            Content::Bytes(text) => {
                self.wire.send(&bytes).await?;
                self.send_paced(
                    &text[..usize::try_from(length).unwrap_or(text.len()).min(text.len())],
                    pace,
                    chunked,
                )
                .await?;
            }
            Content::Pattern(_) => {
                self.wire.send(&bytes).await?;
                self.wire.send_pattern(0, length, pace, chunked).await?;
            }
        }
        if let Some(ending) = ending {
            return Ok(Next::End(ending));
        }
        if let (Shape::Chunked { trailer }, false) = (answer.shape, bodiless) {
            let trailer = if trailer { format!("X-Trailer: {}\r\n", self.state.id) } else { String::new() };
            self.wire.send(format!("0\r\n{trailer}\r\n").as_bytes()).await?;
        }
        Ok(if goes_on { Next::Again } else { Next::End(Ending::Close) })
    }

    async fn send_paced(
        &mut self,
        text: &[u8],
        pace: Option<crate::behaviour::Pace>,
        chunked: bool,
    ) -> io::Result<()> {
        let most = pace.map_or(usize::MAX, |pace| usize::try_from(pace.bytes).unwrap_or(usize::MAX)).max(1);
        for piece in text.chunks(most.min(text.len().max(1))) {
            self.wire.send_piece(piece, chunked).await?;
            if let Some(pace) = pace {
                tokio::time::sleep(pace.every).await;
            }
        }
        Ok(())
    }

    /// Sends the request's body back as it comes, framed as it came.
    pub(super) async fn echo(&mut self) -> io::Result<Next> {
        let goes_on = self.goes_on(Shape::Length);
        let framing = match self.request.framing {
            Framing::Length(length) => format!("Content-Length: {length}\r\n"),
            Framing::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
        };
        self.invite().await?;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n{framing}X-Backend: {}\r\n{}\r\n",
            self.state.id,
            self.connection_lines(goes_on)
        );
        self.wire.send(head.as_bytes()).await?;
        let silent = self.request.method == "HEAD";
        let chunked = self.request.framing == Framing::Chunked;
        let mut data = Vec::new();
        loop {
            data.clear();
            self.read_piece(&mut data).await?;
            if !data.is_empty() && !silent {
                self.wire.send_piece(&data, chunked).await?;
            }
            if self.body.is_complete() {
                break;
            }
        }
        if chunked && !silent {
            let mut end = b"0\r\n".to_vec();
            end.extend_from_slice(&self.body.trailers);
            end.extend_from_slice(b"\r\n");
            self.wire.send(&end).await?;
        }
        Ok(if goes_on { Next::Again } else { Next::End(Ending::Close) })
    }
}
