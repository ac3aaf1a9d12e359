//! Who is told of events by HTTP. A receiver's path, user and secret are known here and shown by nothing.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};

/// A receiver: where it is, and what it wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Where it is.
    pub url: HttpUrl,
    /// What it is told, each once, in the order of [`WebhookEvent::ALL`].
    pub events: Vec<WebhookEvent>,
    /// What messages are signed with; `None`: they are not.
    pub secret: Option<WebhookSecret>,
}

/// What a receiver can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WebhookEvent {
    /// A backend gets no requests any more.
    BackendDown,
    /// It gets some again.
    BackendUp,
    /// A target has no backend left.
    TargetDown,
    /// It has one again.
    TargetUp,
    /// Another config is in force.
    Reload,
    /// A config on trial was taken back.
    Rollback,
    /// A certificate ends soon.
    CertificateExpires,
    /// A certificate should have been renewed by now.
    RenewalOverdue,
    /// A target needs more backends.
    ScaleOut,
    /// It would do with fewer.
    ScaleIn,
}

impl WebhookEvent {
    /// All of them, with their names in a config and in messages.
    pub const ALL: &'static [(&'static str, WebhookEvent)] = &[
        ("backend_down", WebhookEvent::BackendDown),
        ("backend_up", WebhookEvent::BackendUp),
        ("target_down", WebhookEvent::TargetDown),
        ("target_up", WebhookEvent::TargetUp),
        ("reload", WebhookEvent::Reload),
        ("rollback", WebhookEvent::Rollback),
        ("certificate_expires", WebhookEvent::CertificateExpires),
        ("renewal_overdue", WebhookEvent::RenewalOverdue),
        ("scale_out", WebhookEvent::ScaleOut),
        ("scale_in", WebhookEvent::ScaleIn),
    ];
    /// What a receiver is told that asks for nothing in particular.
    pub const USUAL: [WebhookEvent; 4] = [
        WebhookEvent::BackendDown,
        WebhookEvent::BackendUp,
        WebhookEvent::TargetDown,
        WebhookEvent::TargetUp,
    ];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, event)| *event == self).map_or("", |(name, _)| name)
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<WebhookEvent> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, event)| *event)
    }
}

/// Where a receiver is. Shown as `https://host/…`: whoever knows the rest can speak to it.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpUrl {
    /// Over TLS.
    pub is_tls: bool,
    /// An IP address (v6 without brackets) or a DNS name.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// Path and query, beginning with `/`.
    pub path: Arc<str>,
    /// `user:password`, as bytes of a Basic authorization; `None`: there is none.
    pub user: Option<Arc<[u8]>>,
}

impl HttpUrl {
    /// `host:port`, without the port where the scheme implies it: what stands in the Host line, and all that is shown of it.
    #[must_use]
    pub fn authority(&self) -> String {
        let implied = if self.is_tls { 443 } else { 80 };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == implied { host } else { format!("{host}:{}", self.port) }
    }

    /// A name for this receiver that says nothing about its path: messages are kept under it.
    #[must_use]
    pub fn identity(&self) -> String {
        let mut bytes = self.to_string().into_bytes();
        for part in [self.path.as_bytes(), self.user.as_deref().unwrap_or_default()] {
            bytes.push(0);
            bytes.extend_from_slice(part);
        }
        let digest = digest(&SHA256, &bytes);
        digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/…", if self.is_tls { "https" } else { "http" }, self.authority())
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What messages to a receiver are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Arc<[u8]>);

impl WebhookSecret {
    /// These bytes.
    #[must_use]
    pub fn new(bytes: Arc<[u8]>) -> WebhookSecret {
        WebhookSecret(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_scheme_and_host_is_shown_and_all_of_it_counts() {
        let url = HttpUrl {
            is_tls: true,
            host: "::1".to_owned(),
            port: 8443,
            path: "/T0/hush?k=hush".into(),
            user: Some(b"me:hush"[..].into()),
        };
        assert_eq!(format!("{url} {url:?}"), "https://[::1]:8443/… https://[::1]:8443/…");
        assert_eq!(HttpUrl { port: 443, ..url.clone() }.to_string(), "https://[::1]/…");
        let others = [
            HttpUrl { is_tls: false, ..url.clone() },
            HttpUrl { host: "::2".to_owned(), ..url.clone() },
            HttpUrl { port: 1, ..url.clone() },
            HttpUrl { path: "/T0".into(), ..url.clone() },
            HttpUrl { user: None, ..url.clone() },
        ];
        assert!(others.iter().all(|other| other.identity() != url.identity()));
        let webhook =
            Webhook { url, events: Vec::new(), secret: Some(WebhookSecret::new(b"hush"[..].into())) };
        assert!(!format!("{webhook:?}").contains("hush"));
    }

    #[test]
    fn names_lead_to_events_and_back() {
        for (name, event) in WebhookEvent::ALL {
            assert_eq!((event.name(), WebhookEvent::named(name)), (*name, Some(*event)));
        }
        assert!(WebhookEvent::ALL.iter().map(|(_, event)| event).is_sorted());
    }
}
