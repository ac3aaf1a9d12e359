//! The keys of `auth`.

use crate::config::raw::bounds::{HOUR, MILLISECOND};
use crate::config::raw::kind::Kind::{Group, OneOrItems, Text, Time, Word};
use crate::config::raw::kind::{FILE, NAME, PATH, REALM, Shape, TOKEN, key};

/// One of `auth`.
pub(in crate::config::raw) const AUTH: Shape = Shape {
    title: "in an auth rule",
    path: "auth.<name>.",
    needs: &[&["basic"], &["forward"]],
    keys: &[
        key("basic", Group(&BASIC), "Clients show a name and a password."),
        key("forward", Group(&FORWARD), "Another service says who may come in."),
    ],
};

/// Names and passwords.
pub(in crate::config::raw) const BASIC: Shape = Shape {
    title: "in `basic`",
    path: "auth.<name>.basic.",
    needs: &[&["users_file"]],
    keys: &[
        key(
            "users_file",
            Word(FILE),
            "A file as `htpasswd -B` writes it: names, and hashes of bcrypt or argon2id.",
        ),
        key("realm", Word(REALM), "What users are asked for.").or("Restricted"),
    ],
};

/// A service that is asked.
pub(in crate::config::raw) const FORWARD: Shape = Shape {
    title: "in `forward`",
    path: "auth.<name>.forward.",
    needs: &[&["target"]],
    keys: &[
        key("target", Word(NAME), "The target that is asked."),
        key("path", Text(PATH), "What it is asked for, with GET.").or("/"),
        key("copy_headers", OneOrItems(&Word(TOKEN)), "Header lines of its answer that the backend gets."),
        key("timeout", Time(MILLISECOND, HOUR), "How long it may take.").or("5s"),
    ],
};
