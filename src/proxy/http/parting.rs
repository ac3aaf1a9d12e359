//! Closing a client's connection so that its last answer arrives.

use std::future::poll_fn;
use std::task::{Poll, ready};
use std::time::Duration;

use super::client::Client;
use crate::proxy::client_timer::ClientWait;

/// What a client may still send after its last answer.
const LINGER_BYTES: usize = 256 * 1024;
/// For how long.
const LINGER: Duration = Duration::from_secs(2);

/// Reads the rest of a request's body that nobody wants, within bounds. True: the connection may go on.
pub(super) async fn discard_body(client: &Client) -> bool {
    let mut room = LINGER_BYTES;
    client.writing.set(LINGER);
    let outcome = poll_fn(|cx| {
        loop {
            if client.writing.poll(cx).is_ready() {
                return Poll::Ready(false);
            }
            match ready!(client.poll_piece(cx)) {
                Ok(Some(piece)) if piece.len() <= room => room -= piece.len(),
                Ok(None) => return Poll::Ready(true),
                Ok(Some(_)) | Err(_) => return Poll::Ready(false),
            }
        }
    })
    .await;
    client.writing.clear();
    outcome
}

/// Closes without resetting the answer away: says that we are done, then reads for a while what the client had
/// already sent (RFC 9112 §9.6). When nothing is there a plain close does the same and costs nothing.
pub(super) async fn linger(client: &Client) {
    if !client.is_body_done() || client.stream().has_unread() {
        return discard_input(client).await;
    }
    close(client).await;
}

/// The same for a client of which nothing more is expected: the kernel is not asked.
pub(super) async fn close(client: &Client) {
    if client.has_held() {
        return discard_input(client).await;
    }
    // Under TLS the end is bytes too, and a client that reads slowly may have no room for them yet. Without them
    // a whole answer looks cut.
    poll_fn(|cx| {
        if client.stream().poll_close_notify(cx).is_ready() {
            return Poll::Ready(());
        }
        client.writing.set_if_clear(client.timeouts().idle);
        client.writing.poll(cx)
    })
    .await;
}

/// Says that we are done, then reads and forgets what the client sends, within bounds.
pub(super) async fn discard_input(client: &Client) {
    client.timer().begin(ClientWait::Rest, LINGER);
    let mut room = LINGER_BYTES;
    let mut shut = false;
    poll_fn(|cx| {
        if !shut {
            match client.stream().poll_shutdown(cx) {
                Poll::Ready(Ok(())) => shut = true,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                // There is no room for close_notify, and perhaps there never will be.
                Poll::Pending => return client.timer().poll(ClientWait::Rest, cx),
            }
        }
        loop {
            client.with_held(|held| *held = None);
            match client.poll_fill(cx) {
                Poll::Ready(Ok(count)) if count > 0 && count <= room => room -= count,
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return client.timer().poll(ClientWait::Rest, cx),
            }
        }
    })
    .await;
}
