//! Where in the config something stands that can't be done.

use std::path::Path;

use super::Refused;
use super::bound::{Bound, Unbound};
use super::fault::Fault;
use crate::config::{Effective, Origin};

impl Refused {
    /// Who has written what is refused, if anybody has.
    #[must_use]
    pub fn origin<'a>(&self, rows: &'a [Effective]) -> Option<&'a Origin> {
        match self {
            Refused::Bind(unbound) => unbound.origin(rows),
            Refused::Restart { key } => {
                // Some keys have rows for their parts only.
                let is_of_it = |path: &str| {
                    path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                said(rows.iter().find(|row| is_of_it(&row.path))?)
            }
            Refused::AccessLog(_) => said(rows.iter().find(|row| row.path == "access_log.path")?),
            Refused::System(_) | Refused::Ending => None,
        }
    }

    /// The same as a fault of the config whose rows these are.
    #[must_use]
    pub fn fault(&self, rows: &[Effective]) -> Fault {
        let message = self.to_string();
        let origin = self.origin(rows);
        let place = origin.map_or_else(String::new, |origin| format!("{origin}: "));
        let (file, line) = match origin {
            Some(Origin::File { file, line } | Origin::Environment { file, line, .. }) => {
                (Some(file.to_string()), Some(*line))
            }
            Some(Origin::Flag(_) | Origin::Hand { .. } | Origin::Default) | None => (None, None),
        };
        Fault { file, line, text: format!("{place}{message}"), message, ..Fault::default() }
    }
}

impl Unbound {
    /// Who has written where this listener listens, if anybody has.
    #[must_use]
    pub fn origin<'a>(&self, rows: &'a [Effective]) -> Option<&'a Origin> {
        let path = format!("targets.{}.listener", self.listener);
        let is_own = |row: &&Effective| row.path == path || row.path.starts_with(&format!("{path}["));
        let own: Vec<&Effective> = rows.iter().filter(is_own).collect();
        let fits = |row: &&&Effective| match &self.address {
            Bound::Tcp(address) | Bound::Udp(address) => row.value.ends_with(&format!(":{}", address.port())),
            Bound::Unix(path) => {
                row.value.strip_prefix("unix:").is_some_and(|other| Path::new(other) == path)
            }
        };
        // Of several with the port the one that says the address, too.
        let is_exact = |row: &&&Effective| row.value == self.address.to_string();
        said(own.iter().find(is_exact).or(own.iter().find(fits)).or(own.first()).copied()?)
    }
}

/// Who has said a row, if anybody has.
#[must_use]
pub fn said(row: &Effective) -> Option<&Origin> {
    match &row.origin {
        Origin::File { .. } | Origin::Environment { .. } | Origin::Flag(_) | Origin::Hand { .. } => {
            Some(&row.origin)
        }
        Origin::Default => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::SocketAddr;

    use super::*;
    use crate::config::model::Bind;

    #[test]
    fn of_several_addresses_with_one_port_the_line_of_the_one_that_is_taken_is_told() {
        let row = |place: usize, value: &str| Effective {
            path: format!("targets.web.listener[{place}]"),
            value: value.into(),
            origin: Origin::File { file: "a.yaml".into(), line: place + 4 },
            content: None,
        };
        let rows = [row(0, "127.0.0.1:80"), row(1, "127.0.0.2:80"), row(2, "*:81")];
        let line = |address: &str| {
            let address: SocketAddr = address.parse().expect("an address");
            let unbound = Unbound::new("web", &Bind::Tcp(address), io::ErrorKind::PermissionDenied.into());
            unbound.origin(&rows).map(ToString::to_string)
        };
        assert_eq!(line("127.0.0.2:80").as_deref(), Some("a.yaml:5"));
        assert_eq!(line("127.0.0.1:80").as_deref(), Some("a.yaml:4"));
        assert_eq!(line("[::]:81").as_deref(), Some("a.yaml:6"));
    }
}
