//! An event stream, taken apart as it comes.

/// One message of an event stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StreamMessage {
    /// Its place in the stream.
    pub(super) id: String,
    /// Its kind.
    pub(super) event: String,
    /// What it says.
    pub(super) data: String,
}

impl StreamMessage {
    /// Of lines as evenkeel writes them: a name, a colon, a blank and the value.
    fn of(text: &str) -> StreamMessage {
        let mut message = StreamMessage::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
            match name {
                "id" => value.clone_into(&mut message.id),
                "event" => value.clone_into(&mut message.event),
                "data" => value.clone_into(&mut message.data),
                _ => {}
            }
        }
        message
    }
}

/// A stream as it comes, in pieces of any length.
#[derive(Debug, Default)]
pub(super) struct StreamPieces(Vec<u8>);

impl StreamPieces {
    /// The messages that are whole with these bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Vec<StreamMessage> {
        let mut messages = Vec::new();
        for &byte in bytes {
            self.0.push(byte);
            if self.0.ends_with(b"\n\n") {
                messages.push(StreamMessage::of(&String::from_utf8_lossy(&std::mem::take(&mut self.0))));
            }
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_may_come_in_any_pieces() {
        let stream = "retry: 1000\nid: a-1\n\n: nothing new\nid: a-2\n\nid: a-3\nevent: reload\ndata: {\"ü\": \": \"}\n\nid: a";
        let message = |id: &str, event: &str, data: &str| StreamMessage {
            id: id.into(),
            event: event.into(),
            data: data.into(),
        };
        let expected =
            [message("a-1", "", ""), message("a-2", "", ""), message("a-3", "reload", "{\"ü\": \": \"}")];
        for size in [1, 2, 3, 7, stream.len()] {
            let mut pieces = StreamPieces::default();
            let messages: Vec<StreamMessage> =
                stream.as_bytes().chunks(size).flat_map(|chunk| pieces.add(chunk)).collect();
            assert_eq!(messages, expected, "{size}");
        }
    }
}
