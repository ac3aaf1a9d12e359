//! Files of other programs, recognised by a line or two, and templates: one problem says so, instead of one for each line.

use super::origin::Place;
use super::report::Report;

/// The smallest file there is, to begin with.
pub(super) const SMALLEST: &str = "`targets:` with at least one target, for example\n    targets:\n      web:\n        protocol: http\n        listener: 8080\n        backends:\n          - {host: 127.0.0.1, port: 8001}";

/// What a file is instead of ours.
pub(super) struct Stranger {
    message: String,
    expected: Option<&'static str>,
    words: &'static str,
    place: Place,
}

impl Stranger {
    /// Reports it of the file of this number.
    pub(super) fn tell(&self, file: u16, report: &mut Report) {
        let problem = report.at(Place { file, ..self.place }, self.message.as_str());
        problem.expected = self.expected.map(str::to_owned);
        if !self.words.is_empty() {
            problem.note(self.words);
        }
    }
}

/// How one kind of file is recognised: by a line of the first kind and, if there is a second, by one of that too.
struct Sign {
    program: &'static str,
    /// What its words are here.
    words: &'static str,
    first: fn(&str) -> bool,
    second: Option<fn(&str) -> bool>,
}

const SIGNS: &[Sign] = &[
    Sign {
        program: "a PEM file",
        words: "certificates and keys are named by `tls: {cert_file: server.pem, cert_key: server.key}`",
        first: |line| line.starts_with("-----BEGIN "),
        second: None,
    },
    Sign {
        program: "an HTML or XML page",
        words: "",
        first: |line| {
            ["<!DOCTYPE", "<!doctype", "<html", "<?xml"].iter().any(|start| line.starts_with(start))
        },
        second: None,
    },
    Sign {
        program: "a configuration of Traefik",
        words: "an entry point is a `listener`, a service a target, and one of its servers a backend",
        first: |line| line.trim() == "routers:",
        second: Some(|line| line.trim() == "services:"),
    },
    Sign {
        program: "a configuration of Traefik",
        words: "an entry point is a `listener`, a service a target, and one of its servers a backend",
        first: |line| {
            line.trim_start().trim_start_matches('[').starts_with("entryPoints")
                || line.trim() == "loadBalancer:"
        },
        second: None,
    },
    Sign {
        program: "a configuration of Envoy",
        words: "a cluster is a target, one of its endpoints a backend, `lb_policy` is `balance`",
        first: |line| line.starts_with("static_resources:") || line.starts_with("dynamic_resources:"),
        second: None,
    },
    Sign {
        program: "an object of Kubernetes",
        words: "",
        first: |line| line.starts_with("apiVersion:"),
        second: Some(|line| line.starts_with("kind:")),
    },
    Sign {
        program: "a file of Docker Compose",
        words: "",
        first: |line| line.starts_with("services:"),
        second: Some(|line| line.trim_start().starts_with("image:")),
    },
    Sign {
        program: "a Caddyfile",
        words: "the address of a site is a `listener`, and what follows `reverse_proxy` are `backends`",
        first: |line| line.trim_start().starts_with("reverse_proxy "),
        second: None,
    },
    Sign {
        program: "a configuration of nginx",
        words: "an `upstream` is a target, a `server` in it a backend, `listen` is `listener`",
        first: |line| line.trim_start().starts_with("proxy_pass ") || is_nginx_block(line),
        second: Some(|line| line.trim_end().ends_with(';')),
    },
    Sign {
        program: "a configuration of HAProxy",
        words: "a `backend` with its `frontend` is a target, a `server` is a backend, `bind` is `listener`",
        first: |line| {
            let mut words = line.split_whitespace();
            let section = words.next().is_some_and(|word| ["frontend", "backend", "listen"].contains(&word));
            section && !line.starts_with(' ') && words.next().is_some() && !line.contains(':')
        },
        second: None,
    },
    Sign {
        program: "a configuration of HAProxy",
        words: "a `backend` with its `frontend` is a target, a `server` is a backend, `bind` is `listener`",
        first: |line| ["global", "defaults"].contains(&line.trim_end()) && !line.starts_with(' '),
        second: Some(|line| {
            ["mode ", "timeout ", "server ", "maxconn "]
                .iter()
                .any(|word| line.trim_start().starts_with(word))
        }),
    },
    Sign {
        program: "TOML",
        words: "in YAML `key = value` is `key: value`, and a `[section]` is a key with deeper lines below it",
        first: |line| {
            let name = line.trim().trim_start_matches('[').trim_end_matches(']');
            line.starts_with('[') && line.trim_end().ends_with(']') && is_path(name)
        },
        second: Some(|line| line.split_once('=').is_some_and(|(key, _)| is_path(key.trim()))),
    },
];

fn is_path(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "._-\"".contains(c))
}

fn is_nginx_block(line: &str) -> bool {
    let Some(head) = line.trim().strip_suffix('{') else { return false };
    let word = head.split_whitespace().next().unwrap_or_default();
    ["server", "upstream", "http", "location", "events", "stream"].contains(&word) && !head.contains(':')
}

/// What `text` is, if it is known and not ours, or not yet.
pub(super) fn recognised(text: &str) -> Option<Stranger> {
    if let Some(template) = template(text) {
        return Some(template);
    }
    // Whatever else it has, such a file is meant for us.
    if text.lines().any(|line| line.starts_with("targets:")) {
        return None;
    }
    SIGNS.iter().find_map(|sign| {
        let is_text = |line: &&str| !line.trim_start().starts_with(['#', ';']);
        let found =
            text.lines().enumerate().filter(|(_, line)| is_text(line)).find(|(_, line)| (sign.first)(line));
        let (index, line) = found?;
        if let Some(second) = sign.second
            && !text.lines().filter(is_text).any(second)
        {
            return None;
        }
        let lead = line.chars().take_while(|c| c.is_whitespace()).count();
        Some(Stranger {
            message: format!("this is {}, which evenkeel does not read", sign.program),
            expected: Some(SMALLEST),
            words: sign.words,
            place: place(index, lead, line.trim()),
        })
    })
}

fn place(index: usize, before: usize, what: &str) -> Place {
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Place::new(small(index + 1), small(before + 1), small(what.chars().count().max(1)))
}

/// A file that Helm, Jinja or the like were to make ours: it has a statement of theirs, or several placeholders. A single one
/// is a slip (`slips`), and a format of the access log may have double braces of its own.
fn template(text: &str) -> Option<Stranger> {
    let is_ours = |line: &str| line.trim_start().starts_with('#') || line.contains("format:");
    let mut first = None;
    let (mut placeholders, mut is_certain) = (0, false);
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !is_ours(line)) {
        for (open, close) in [("{%", "%}"), ("{{", "}}")] {
            let mut rest = line;
            while let Some((_, (inside, behind))) =
                rest.split_once(open).and_then(|(head, tail)| Some((head, tail.split_once(close)?)))
            {
                let start = line.len() - rest.len() + rest.find(open).unwrap_or(0);
                rest = behind;
                // A mapping with a brace too many.
                if inside.contains(": ") {
                    continue;
                }
                let words = inside.trim_start_matches('-').trim_start();
                placeholders += 1;
                is_certain |= open == "{%" || words.starts_with('.') || line.trim_start().starts_with(open);
                let whole = &line[start..line.len() - behind.len()];
                first.get_or_insert_with(|| place(index, line[..start].chars().count(), whole));
            }
        }
    }
    let place = first.filter(|_| is_certain || placeholders > 1)?;
    Some(Stranger {
        message: "this is a template that has not been rendered".to_owned(),
        expected: None,
        words: "render it with the program that it was written for (Helm, Ansible, Jinja), and give evenkeel what comes out",
        place,
    })
}
