//! Which keys exist where. The walker refuses every other key; `config::keys` hands the list to the tests
//! that keep the documentation complete.

/// One kind of mapping in the file.
#[derive(Debug)]
pub(in crate::config) struct Shape {
    /// How a message calls it.
    pub(super) title: &'static str,
    /// Where it stands: empty at the top, else with a dot at its end.
    pub(super) path: &'static str,
    /// Its keys in the order of the documentation.
    pub(super) keys: &'static [&'static str],
}

/// The file itself.
pub(super) const TOP: Shape = Shape {
    title: "at the top level",
    path: "",
    keys: &[
        "address",
        "workers",
        "max_connections",
        "shutdown_timeout",
        "graceful_shutdown",
        "logging",
        "access_log",
        "trusted_proxies",
        "health_check_interval",
        "health_check_frequency_in_seconds",
        "health_check_max_retries",
        "algorithm",
        "servers",
        "targets",
    ],
};

/// `access_log`.
pub(super) const ACCESS_LOG: Shape =
    Shape { title: "in `access_log`", path: "access_log.", keys: &["path", "format"] };

/// One target.
pub(super) const TARGET: Shape = Shape {
    title: "in a target",
    path: "targets.<name>.",
    keys: &[
        "protocol",
        "listener",
        "tls",
        "upstream_tls",
        "balance",
        "health_check",
        "timeouts",
        "limits",
        "forwarded",
        "upgrade",
        "backends",
    ],
};

/// A target's `tls`.
pub(super) const TLS: Shape = Shape {
    title: "in `tls`",
    path: "targets.<name>.tls.",
    keys: &["cert_file", "cert_key", "certificates", "client_ca", "client_auth", "min_version"],
};

/// One of the certificates of `tls`.
pub(super) const CERTIFICATE: Shape = Shape {
    title: "in a certificate",
    path: "targets.<name>.tls.certificates[].",
    keys: &["cert_file", "cert_key"],
};

/// A target's `upstream_tls`.
pub(super) const UPSTREAM_TLS: Shape = Shape {
    title: "in `upstream_tls`",
    path: "targets.<name>.upstream_tls.",
    keys: &["ca_file", "server_name", "client_cert", "client_key", "insecure"],
};

/// A target's `health_check`.
pub(super) const HEALTH_CHECK: Shape = Shape {
    title: "in `health_check`",
    path: "targets.<name>.health_check.",
    keys: &["interval", "timeout", "rise", "fall", "path", "expect", "host"],
};

/// A target's `timeouts`.
pub(super) const TIMEOUTS: Shape = Shape {
    title: "in `timeouts`",
    path: "targets.<name>.timeouts.",
    keys: &["connect", "tls", "first_byte", "idle", "tunnel", "head", "keep_alive"],
};

/// A target's `limits`.
pub(super) const LIMITS: Shape = Shape {
    title: "in `limits`",
    path: "targets.<name>.limits.",
    keys: &["head_size", "headers", "body", "body_rate"],
};

/// One backend.
pub(super) const BACKEND: Shape = Shape {
    title: "in a backend",
    path: "targets.<name>.backends[].",
    keys: &["host", "port", "url", "name", "health_path"],
};

/// Every shape, outermost first.
pub(in crate::config) const ALL: &[Shape] =
    &[TOP, ACCESS_LOG, TARGET, TLS, CERTIFICATE, UPSTREAM_TLS, HEALTH_CHECK, TIMEOUTS, LIMITS, BACKEND];

/// What other load balancers call our keys.
const FOREIGN: &[(&str, &str)] = &[
    ("bind", "listener"),
    ("frontend", "listener"),
    ("listen", "listener"),
    ("upstream", "targets"),
    ("upstreams", "targets"),
    ("clusters", "targets"),
    ("pools", "targets"),
    ("services", "targets"),
    ("server", "backends"),
    ("servers", "backends"),
    ("endpoints", "backends"),
    ("nodes", "backends"),
    ("members", "backends"),
    ("lb_policy", "balance"),
    ("policy", "balance"),
    ("strategy", "balance"),
    ("algorithm", "balance"),
    ("check", "health_check"),
    ("timeout", "timeouts"),
    ("threads", "workers"),
    ("worker_processes", "workers"),
    ("maxconn", "max_connections"),
    ("worker_connections", "max_connections"),
    ("log_level", "logging"),
    ("level", "logging"),
    ("ssl", "tls"),
    ("certificate", "cert_file"),
    ("cert", "cert_file"),
    ("crt", "cert_file"),
    ("ssl_certificate", "cert_file"),
    ("key", "cert_key"),
    ("key_file", "cert_key"),
    ("ssl_certificate_key", "cert_key"),
    ("ca", "client_ca"),
    ("sni", "server_name"),
    ("backend_tls", "upstream_tls"),
    ("verify", "insecure"),
    ("address", "host"),
    ("ip", "host"),
    ("uri", "url"),
    ("id", "name"),
    ("healthcheck_path", "health_path"),
];

impl Shape {
    /// Where it stands: empty at the top, else with a dot at its end.
    pub(in crate::config) const fn path(&self) -> &'static str {
        self.path
    }

    /// Its keys in the order of the documentation.
    pub(in crate::config) const fn keys(&self) -> &'static [&'static str] {
        self.keys
    }

    /// The key of this shape that somebody who wrote `key` probably meant.
    pub(super) fn meant(&self, key: &str) -> Option<&'static str> {
        let lower = key.to_lowercase().replace('-', "_");
        let foreign = FOREIGN.iter().find(|(word, ours)| *word == lower && self.keys.contains(ours));
        foreign.map(|(_, ours)| *ours).or_else(|| nearest(&lower, self.keys.iter().copied()))
    }
}

/// Where a key stands that is known, but not where it was written.
pub(super) fn elsewhere(key: &str) -> Option<String> {
    let lower = key.to_lowercase().replace('-', "_");
    let shape = ALL.iter().find(|shape| shape.keys.contains(&lower.as_str()))?;
    Some(format!("`{lower}` exists, but as `{}{lower}`; check the indentation", shape.path))
}

/// The word that `written` is a slip of, if there is one.
pub(super) fn nearest<'w>(written: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let slips = (written.chars().count() / 3).clamp(1, 3);
    words
        .map(|word| (strsim::damerau_levenshtein(written, word), word))
        .filter(|(distance, _)| *distance <= slips)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_foreign_words_are_understood() {
        let table = [
            (&TOP, "wokers", "workers"),
            (&TOP, "upstreams", "targets"),
            (&TARGET, "servers", "backends"),
            (&TARGET, "health-check", "health_check"),
            (&BACKEND, "prot", "port"),
        ];
        for (shape, key, ours) in table {
            assert_eq!(shape.meant(key), Some(ours), "{key}");
        }
        assert!(elsewhere("backends").is_some_and(|hint| hint.contains("`targets.<name>.backends`")));
        assert_eq!(TOP.meant("zebra"), None);
    }

    #[test]
    fn no_planned_key_hides_a_key_that_exists() {
        for shape in ALL {
            for key in shape.keys {
                let both = super::super::later::key(key).is_some();
                // `headers` is a limit here and a table of header edits there; known keys are looked up first.
                assert!(!both || *key == "headers", "{key}");
            }
        }
    }
}
