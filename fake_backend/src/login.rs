//! Who a connection belongs to; `http::login` has the conversation.

/// What a connection knows of its client.
#[derive(Debug, Default)]
pub(crate) struct Login {
    /// Who has said hello, and has not proved it.
    pub(crate) claimed: Option<String>,
    /// Who has logged in.
    pub(crate) name: Option<String>,
}
