//! The keys of `admin`.

use crate::config::model::tls::TlsVersion;
use crate::config::raw::kind::Kind::{Group, Numeral, OneOrItems, OrOff, Switch, WholeOr, Word};
use crate::config::raw::kind::{FILE, HOST, LISTENER, Shape, VERSION, key, names};

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
        key(
            "configure_over_tcp",
            Switch,
            "Texts of configs are taken over TCP too, from a token with the scope `configure`.",
        )
        .or("false"),
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
