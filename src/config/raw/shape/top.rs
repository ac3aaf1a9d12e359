//! The groups of keys at the top level.

use crate::config::model::{LogFormat, WebhookEvent};
use crate::config::raw::kind::Kind::{Choice, ChoiceOr, OneOrItems, Text, Word};
use crate::config::raw::kind::{FILE, RECEIVER, SHARE, Shape, TEMPLATE, key, names};
use crate::config::raw::vocabulary::spoken::MESSAGE_FORMATS;

/// One of `webhooks`.
pub(in crate::config::raw) const WEBHOOK: Shape = Shape {
    title: "in a webhook",
    path: "webhooks[].",
    needs: &[&["url"]],
    keys: &[
        key(
            "url",
            Text(RECEIVER),
            "Where messages are sent: `https://host/path` or `http://host:port/path`.",
        ),
        key("events", OneOrItems(&Choice(|| names(WebhookEvent::ALL))), "What it is told.")
            .or("[backend_down, backend_up, target_down, target_up]"),
        key("secret_file", Word(FILE), "A file that is the key which messages are signed with."),
        key("format", Choice(|| names(MESSAGE_FORMATS)), "How a message looks.").or("json"),
    ],
};

/// `access_log`.
pub(in crate::config::raw) const ACCESS_LOG: Shape = Shape {
    title: "in `access_log`",
    path: "access_log.",
    needs: &[&["path"]],
    keys: &[
        key("path", Text(FILE), "`stdout`, or a file to append to."),
        key(
            "format",
            ChoiceOr(|| names(LogFormat::NAMED), TEMPLATE),
            "How a record looks: a name, or a text with fields such as `{status}`.",
        )
        .or("text"),
        key("sample", Text(SHARE), "The share of records without errors that is kept.").or("100%"),
    ],
};
