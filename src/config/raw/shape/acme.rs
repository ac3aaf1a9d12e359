//! The keys of certificates that are ordered.

use std::time::Duration;

use crate::config::model::tls::acme::{AcmeChallenge, OrderedKey};
use crate::config::raw::bounds::HOUR;
use crate::config::raw::kind::Kind::{Choice, Group, OneOrItems, Text, Time, Word};
use crate::config::raw::kind::{CERTIFICATE_NAME, DIRECTORY, FILE, Key, MAIL, Shape, key, names};

/// `acme` of a certificate.
pub(super) const ORDERED_NAMES: Key = key(
    "acme",
    OneOrItems(&Text(CERTIFICATE_NAME)),
    "The names of a certificate that is ordered from the authority of the top level's `acme`, and renewed.",
);
/// `challenge` of one.
pub(super) const ORDERED_CHALLENGE: Key = key(
    "challenge",
    Choice(|| names(AcmeChallenge::ALL)),
    "How the authority is shown whose the names are; by default as the top level's `acme` says.",
);
/// `key_type` of one.
pub(super) const ORDERED_KEY: Key = key(
    "key_type",
    Choice(|| names(OrderedKey::ALL)),
    "The kind of its key; by default as the top level's `acme` says.",
);

/// `acme`.
pub(in crate::config::raw) const ACME: Shape = Shape {
    title: "in `acme`",
    path: "acme.",
    needs: &[],
    keys: &[
        key(
            "directory",
            Text(DIRECTORY),
            "The authority: `letsencrypt`, `letsencrypt-staging`, `zerossl`, `google`, or the URL of its directory.",
        )
        .or("letsencrypt"),
        key("ca_file", Word(FILE), "Who issues the certificate of `directory`: a PEM file."),
        key("contact", OneOrItems(&Text(MAIL)), "Mail addresses by which the authority reaches people."),
        key("eab", Group(&EAB), "The account with the authority that this one belongs to."),
        key(
            "challenge",
            Choice(|| names(AcmeChallenge::ALL)),
            "How the authority is shown whose a name is; by default what the config can answer.",
        ),
        key("key_type", Choice(|| names(OrderedKey::ALL)), "The kind of keys of certificates.")
            .or("ecdsa-p256"),
        key("dns_hook", Word(FILE), "A program that adds records to DNS and takes them away, for `dns-01`."),
        key(
            "dns_wait",
            Time(Duration::ZERO, HOUR),
            "How long what `dns_hook` has done may take to be seen everywhere.",
        )
        .or("30s"),
    ],
};

/// `acme.eab`.
pub(in crate::config::raw) const EAB: Shape = Shape {
    title: "in `eab`",
    path: "acme.eab.",
    needs: &[&["key_id", "hmac_key_file"]],
    keys: &[
        key("key_id", Word(FILE), "What the authority calls the account."),
        key("hmac_key_file", Word(FILE), "A file with the key that shows whose it is, in base64url."),
    ],
};
