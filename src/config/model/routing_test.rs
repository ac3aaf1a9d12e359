//! `tests`: requests, and what is to become of each. Also the form in which a request is given to whoever asks what would become of it.

use std::net::{IpAddr, Ipv4Addr};

use super::route::FieldMatch;

/// One of `tests`.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingTest {
    /// What is asked.
    pub request: SampleRequest,
    /// What is to become of it.
    pub expect: Expectation,
}

/// A request that nobody sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleRequest {
    /// Its method, as it is written.
    pub method: String,
    /// Its URL begins with `https`.
    pub is_tls: bool,
    /// The host, and the port if there is one, as it is written.
    pub authority: String,
    /// The port that the URL says or implies.
    pub port: u16,
    /// Path and query, as they are written.
    pub target: String,
    /// The listener that gets it; `None`: the only one that fits.
    pub listener: Option<String>,
    /// The address that the connection comes from.
    pub from: IpAddr,
    /// Further header lines, in their order.
    pub headers: Vec<(String, String)>,
    /// The verified certificate that its client has shown; `None`: none.
    pub certificate: Option<SampleCertificate>,
}

/// What a certificate says of whoever shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleCertificate {
    /// Its subject, as RFC 4514 writes it.
    pub subject: String,
    /// Its other names.
    pub names: Vec<String>,
}

impl SampleRequest {
    /// Where a request comes from of which nobody says it: an address that is nobody's (RFC 5737).
    pub const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    /// The request with this method and URL.
    ///
    /// # Errors
    /// What is wrong with them, behind "is `…`, ".
    pub fn new(method: &str, url: &str) -> Result<SampleRequest, &'static str> {
        let (scheme, rest) = url.split_once("://").ok_or("which has no `http://` or `https://`")?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err("which is neither `http://` nor `https://`"),
        };
        if url.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err("with characters that no URL has");
        }
        if rest.contains('#') {
            return Err("with a `#`, and nothing from there on is ever sent");
        }
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("with a user, and that is never sent in a URL");
        }
        let bracket = authority.rfind(']').unwrap_or(0);
        let colon = authority.rfind(':').filter(|colon| *colon >= bracket);
        let port = match colon.map(|colon| &authority[colon + 1..]) {
            Some(port) => port.parse().map_err(|_| "with a port that is none")?,
            None if is_tls => 443,
            None => 80,
        };
        if colon.unwrap_or(authority.len()) == 0 {
            return Err("which has no host");
        }
        let root = if target.starts_with('/') { "" } else { "/" };
        Ok(SampleRequest {
            method: method.to_owned(),
            is_tls,
            authority: authority.to_owned(),
            port,
            target: format!("{root}{target}"),
            listener: None,
            from: SampleRequest::FROM,
            headers: Vec::new(),
            certificate: None,
        })
    }

    /// Adds a header line, `Name: value`.
    ///
    /// # Errors
    /// It is none that could be sent.
    pub fn add_line(&mut self, line: &str) -> Result<(), &'static str> {
        let (name, value) = line.split_once(':').ok_or("a header line is `Name: value`")?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(fits) {
            return Err("the name of a header line has neither blanks nor other signs");
        }
        if name.eq_ignore_ascii_case("host") {
            return Err("the host is what the URL says");
        }
        if value.chars().any(|c| c.is_control() && c != '\t') {
            return Err("the value of a header line has no control characters");
        }
        self.headers.push((name.to_owned(), value.trim().to_owned()));
        Ok(())
    }
}

impl std::fmt::Display for SampleRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{} {scheme}://{}{}", self.method, self.authority, self.target)
    }
}

/// What is to become of a request; what is not said may be anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expectation {
    /// It goes to a backend of one of these targets, and nowhere else; none: nothing is said.
    pub targets: Vec<String>,
    /// It belongs to this route.
    pub route: Option<String>,
    /// The backend gets this path; the query too, where this has one.
    pub path: Option<String>,
    /// What holds for the header lines that the backend gets.
    pub headers: Vec<FieldMatch>,
    /// It is answered here.
    pub answer: Option<ExpectedAnswer>,
    /// The `Location` of that answer.
    pub location: Option<String>,
    /// Whether its client is asked who it is.
    pub auth: Option<ExpectedAuth>,
}

/// Whether a client is asked who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedAuth {
    /// By the rule of this name.
    Rule(String),
    /// It is not, and comes to its route all the same.
    Off,
}

/// An answer of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedAnswer {
    /// With this status.
    Status(u16),
    /// None: the connection is closed.
    Drop,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_nothing_of_it_is_changed() {
        for (url, told) in [
            ("http://a", (false, "a", 80, "/")),
            ("HTTPS://A.Example:8443/x/../%61?b=%20", (true, "A.Example:8443", 8443, "/x/../%61?b=%20")),
            ("https://[::1]?x", (true, "[::1]", 443, "/?x")),
            ("http://[::1]:81//", (false, "[::1]:81", 81, "//")),
        ] {
            let SampleRequest { is_tls, authority, port, target, .. } =
                SampleRequest::new("GET", url).expect("a URL");
            assert_eq!((is_tls, authority.as_str(), port, target.as_str()), told, "{url}");
        }
        for url in ["a/b", "ftp://a", "http://", "http://:80/", "http://a:b/", "http://a:70000/"] {
            assert!(SampleRequest::new("GET", url).is_err(), "{url}");
        }
        for url in ["http://a/#b", "http://me@a/", "http://a/ä", "http://a/b c", "http://a/\r\n"] {
            assert!(SampleRequest::new("GET", url).is_err(), "{url}");
        }
    }
}
