//! The groups of keys at the top level.

use crate::config::model::tls::TlsVersion;
use crate::config::model::{LogFormat, WebhookEvent};
use crate::config::raw::kind::Kind::{
    Choice, ChoiceOr, Group, Numeral, OneOrItems, OrOff, Text, WholeOr, Word,
};
use crate::config::raw::kind::{FILE, HOST, LISTENER, RECEIVER, SHARE, Shape, TEMPLATE, VERSION, key, names};
use crate::config::raw::vocabulary::spoken::MESSAGE_FORMATS;

/// `admin`.
pub(in crate::config::raw) const ADMIN: Shape = Shape {
    title: "in `admin`",
    path: "admin.",
    needs: &[],
    keys: &[
        key(
            "socket",
            OrOff(&Word(FILE)),
            "The unix socket that `evenkeel plan` and `evenkeel reload` talk to; for this user and root only.",
        ),
        key(
            "listener",
            OrOff(&WholeOr(0, 65_535, LISTENER)),
            "Where the admin API listens over TCP: a port on this machine, or `address:port`.",
        )
        .or("off"),
        key("token_file", Word(FILE), "Who may come over TCP: a file with lines `name scope token`."),
        key("hosts", OneOrItems(&Word(HOST)), "Names by which it may be addressed beside IP addresses."),
        key("tls", Group(&ADMIN_TLS), "TLS over TCP."),
    ],
};

/// `admin.tls`.
pub(in crate::config::raw) const ADMIN_TLS: Shape = Shape {
    title: "in the `tls` of `admin`",
    path: "admin.tls.",
    needs: &[&["cert_file"]],
    keys: &[
        key("cert_file", Word(FILE), "The certificate, and behind it those of its issuers: a PEM file."),
        key("cert_key", Word(FILE), "Its private key, unencrypted: a PEM file; by default in `cert_file`."),
        key("min_version", Numeral(|| names(TlsVersion::ALL), VERSION), "The oldest to speak.").or("1.2"),
    ],
};

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
