//! Addresses as people write them: what a listener binds and where a backend is. Pure text → value.

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::{IpNet, Ipv4Net};

use super::vocabulary::nearest::nearest;
use crate::config::edit::Fix;
use crate::config::error::{Wrong, quoted};
use crate::config::hidden;
use crate::config::model::Protocol;
use crate::config::yaml::integer;

/// Longest path of a unix socket, in bytes; the kernel's `sun_path` has 108 with its final zero.
const UNIX_PATH_MAX: usize = 107;

const LISTENER_FORM: &str = "a port such as `8080`, or an address with port such as `127.0.0.1:8080`, `\"[::1]:8080\"` or `\"*:8080\"`, or `unix:/path`";
const ADDRESS_FORM: &str =
    "an IP address such as `127.0.0.1`, `0.0.0.0` or `\"::1\"`, or `\"*\"` for every address";
const HOST_FORM: &str = "an IP address such as `10.0.0.7`, or a host name such as `app.internal`";

/// The address part of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum BindHost {
    /// One address.
    Ip(IpAddr),
    /// `*`: every IPv6 and every IPv4 address.
    Any,
}

impl std::fmt::Display for BindHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BindHost::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            BindHost::Ip(IpAddr::V4(ip)) => write!(f, "{ip}"),
            BindHost::Any => f.write_str("*"),
        }
    }
}

/// A listener as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) enum RawListener {
    /// Only a port; it is bound at the top level's `address`.
    Port(u16),
    /// An address with port.
    At(BindHost, u16),
    /// A unix socket.
    Unix(PathBuf),
}

/// Reads a listener. A unix path is returned as written.
pub(in crate::config) fn listener(text: &str) -> Result<RawListener, Wrong> {
    let wrong = |why: &str| Wrong::new(format!("is {}, {why}", quoted(text)), LISTENER_FORM);
    if let Some(path) = text.strip_prefix("unix:") {
        return unix_path(path).map(RawListener::Unix).map_err(|why| wrong(&why));
    }
    if let Some(number) = integer(text) {
        return u16::try_from(number)
            .map(RawListener::Port)
            .map_err(|_| wrong("which is no port: ports end at 65535"));
    }
    if let Some(range) = ports(text) {
        return Err(a_range(wrong("a range of ports"), range));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        let number = text.trim_end_matches([',', ';', ' ']).trim_end_matches("/tcp");
        return Err(if bind_host(text).is_ok() {
            wrong("an address without a port")
        } else if number != text && listener(number).is_ok() {
            wrong("which is no address").instead(spelt(number))
        } else {
            wrong("which is no address")
        });
    };
    if host.is_empty() {
        let hint = format!("write `{port}` for this machine only, or `\"*:{port}\"` for every address");
        return Err(wrong("which does not say where to listen").hint(hint, port));
    }
    if text.contains("://") {
        let bare = text.split_once("://").map_or(text, |(_, rest)| rest).trim_end_matches('/');
        let wrong =
            wrong("which is a URL").note("a listener has no scheme: `protocol` says what is spoken there");
        return Err(match listener(bare) {
            Ok(_) => wrong.instead(spelt(bare)),
            Err(inner) => wrong.advised_by(inner),
        });
    }
    let whole_is_v6 = text.parse::<std::net::Ipv6Addr>().is_ok();
    if whole_is_v6 || (host.contains(':') && !host.starts_with('[')) {
        let wrong = wrong("an IPv6 address without brackets");
        return Err(match host.parse::<std::net::Ipv6Addr>() {
            Ok(host) => wrong.instead(format!("\"[{host}]:{port}\"")),
            Err(_) => wrong.note("an IPv6 address with port is written `\"[address]:port\"`"),
        });
    }
    let port = digits(port)
        .and_then(|port| u16::try_from(port).ok())
        .ok_or_else(|| wrong("whose port is no number from 0 to 65535"))?;
    let host =
        bind_host(host).map_err(|inner| whole(wrong("whose address is no IP address"), inner, port))?;
    Ok(RawListener::At(host, port))
}

/// A listener as it is written in YAML.
fn spelt(text: &str) -> String {
    if text.starts_with(['*', '[']) { format!("\"{text}\"") } else { text.to_owned() }
}

/// Advice for an address alone as advice for the same with its port.
fn whole(wrong: Wrong, inner: Wrong, port: impl std::fmt::Display) -> Wrong {
    match inner.fix.as_deref() {
        Some(Fix::Value(host)) => wrong.instead(match host.trim_matches('"') {
            "*" => format!("\"*:{port}\""),
            host => format!("{host}:{port}"),
        }),
        _ => wrong,
    }
}

/// `8000-8010` and its like.
pub(super) fn ports(text: &str) -> Option<(u16, u16)> {
    let text = text.trim_start_matches("*:");
    let (first, last) = text.split_once("..").or_else(|| text.split_once('-'))?;
    let port = |text: &str| digits(text.trim()).and_then(|port| u16::try_from(port).ok());
    Some((port(first)?, port(last)?)).filter(|(first, last)| first < last)
}

/// A listener takes several ports, one by one.
fn a_range(wrong: Wrong, (first, last): (u16, u16)) -> Wrong {
    const MOST: u16 = 8;
    if last - first >= MOST {
        return wrong.note("every port is written out: `listener: [8000, 8001, …]`");
    }
    let ports: Vec<String> = (first..=last).map(|port| port.to_string()).collect();
    wrong.instead(format!("[{}]", ports.join(", ")))
}

/// Words for all addresses of a machine.
const EVERY: &[&str] = &["all", "any", "every", "everywhere", "public", "0", "0.0.0.0/0", "::/0"];

/// Reads an address to bind.
pub(in crate::config) fn bind_host(text: &str) -> Result<BindHost, Wrong> {
    if text == "*" {
        return Ok(BindHost::Any);
    }
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = inner.parse() {
        return Ok(BindHost::Ip(ip));
    }
    let wrong = Wrong::new(format!("is {}, which is no IP address", quoted(text)), ADDRESS_FORM);
    Err(if text == "localhost" {
        wrong.instead("127.0.0.1")
    } else if EVERY.contains(&text.to_lowercase().as_str()) {
        wrong.instead("\"*\"")
    } else if let Some((host, port)) =
        text.rsplit_once(':').filter(|(host, _)| host.parse::<IpAddr>().is_ok())
    {
        wrong.hint(format!("write `{host}`: the port `{port}` belongs to each target's `listener`"), host)
    } else {
        wrong
    })
}

/// Where a URL points: host and port, or a unix path as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) enum Url {
    /// `http://host[:port]` and its like.
    Host(Scheme, String, u16),
    /// `unix:/path`.
    Unix(PathBuf),
}

/// What is spoken at a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Scheme {
    pub(in crate::config) name: &'static str,
    pub(in crate::config) protocol: Protocol,
    pub(in crate::config) tls: bool,
    /// What a missing port means.
    port: Option<u16>,
}

const SCHEMES: [Scheme; 5] = [
    Scheme { name: "http", protocol: Protocol::Http, tls: false, port: Some(80) },
    Scheme { name: "https", protocol: Protocol::Http, tls: true, port: Some(443) },
    Scheme { name: "tcp", protocol: Protocol::Tcp, tls: false, port: None },
    Scheme { name: "tls", protocol: Protocol::Tcp, tls: true, port: None },
    Scheme { name: "udp", protocol: Protocol::Udp, tls: false, port: None },
];

/// Reads a backend's URL. `usual` is the scheme that somebody who wrote none probably means.
pub(in crate::config) fn url(text: &str, usual: &str) -> Result<Url, Wrong> {
    const FORM: &str = "`http://host:port`, `https://host:port`, `tcp://host:port`, `tls://host:port`, `udp://host:port` or `unix:/path`";
    let shown = hidden::without_user(text);
    let wrong = |why: &str| Wrong::new(format!("is {}, {why}", quoted(&shown)), FORM);
    if let Some(path) = text.strip_prefix("unix:") {
        return unix_path(path).map(Url::Unix).map_err(|why| wrong(&why));
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        let wrong = wrong("which has no scheme");
        let meant = format!("{usual}://{text}");
        return Err(if url(&meant, usual).is_ok() { wrong.instead(meant) } else { wrong });
    };
    if rest.contains('@') {
        return Err(wrong("which has a user in it").note("credentials are not sent to backends"));
    }
    let scheme = scheme.to_ascii_lowercase();
    let Some(scheme) = SCHEMES.into_iter().find(|known| known.name == scheme) else {
        let meant = match scheme.as_str() {
            "ws" | "h2" | "h2c" | "fcgi" | "fastcgi" | "uwsgi" | "ajp" => "http",
            "wss" => "https",
            "ssl" => "tls",
            other => nearest(other, SCHEMES.iter().map(|known| known.name)).unwrap_or_default(),
        };
        let wrong = wrong("whose scheme does not exist");
        return Err(if meant.is_empty() { wrong } else { wrong.instead(format!("{meant}://{rest}")) });
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains(['/', '?', '#']) {
        let bare = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        return Err(wrong("which has a path")
            .instead(format!("{}://{bare}", scheme.name))
            .note("each request keeps its own path; the one of health checks is `health_path`"));
    }
    let (written_host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let port = match port {
        Some(written) => {
            self::port(written).ok_or_else(|| wrong("whose port is no number from 1 to 65535"))?
        }
        None => scheme.port.ok_or_else(|| wrong("which has no port"))?,
    };
    if written_host.contains(':') && !written_host.starts_with('[') {
        let wrong = wrong("an IPv6 address without brackets");
        return Err(match written_host.parse::<std::net::Ipv6Addr>() {
            Ok(host) => wrong.instead(format!("{}://[{host}]:{port}", scheme.name)),
            Err(_) => wrong.note(format!("it is written `{}://[address]:port`", scheme.name)),
        });
    }
    let host = host(written_host).map_err(|inner| {
        let wrong = wrong("whose host is neither an IP address nor a host name");
        match inner.fix.as_deref() {
            Some(Fix::Value(host)) => wrong.instead(format!("{}://{host}:{port}", scheme.name)),
            _ => wrong,
        }
    })?;
    Ok(Url::Host(scheme, host, port))
}

/// Reads a backend's host: an IP address (IPv6 with or without brackets) or a DNS name.
pub(in crate::config) fn host(text: &str) -> Result<String, Wrong> {
    let wrong = || {
        Wrong::new(format!("is {}, which is neither an IP address nor a host name", quoted(text)), HOST_FORM)
    };
    let bracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = bracketed.unwrap_or(text);
    if let Ok(ip) = inner.parse::<IpAddr>() {
        if ip.is_unspecified() {
            return Err(Wrong::new(
                format!("is {}, which is no address to connect to", quoted(text)),
                HOST_FORM,
            )
            .hint("write `127.0.0.1` for this machine", "127.0.0.1"));
        }
        return if bracketed.is_some() && ip.is_ipv4() { Err(wrong()) } else { Ok(inner.to_owned()) };
    }
    if text.contains("://") {
        let bare = text.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        return Err(match bare.filter(|bare| host(bare).is_ok()) {
            Some(bare) => wrong().instead(bare),
            None => wrong().note("a URL goes under `url`, in place of `host` and `port`"),
        });
    }
    if text.matches(':').count() == 1 {
        let wrong = wrong().note("the port goes under its own key `port`");
        let bare = text.split(':').next().unwrap_or_default();
        return Err(if host(bare).is_ok() { wrong.instead(bare) } else { wrong });
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // RFC 1123 §2.1: a name whose last label is a number can only be a mistyped address.
    let numeric_end = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    if name.len() > 253 || numeric_end || !name.split('.').all(label) {
        return Err(wrong());
    }
    Ok(text.to_owned())
}

/// Reads an address or a network. IPv4 addresses inside IPv6 (`::ffff:10.0.0.1`) become plain IPv4.
pub(in crate::config) fn network(text: &str) -> Result<IpNet, Wrong> {
    let wrong = || {
        Wrong::new(
            format!("is {}, which is neither an IP address nor a network", quoted(text)),
            "an address such as `10.0.0.7` or `\"::1\"`, or a network such as `10.0.0.0/8`",
        )
    };
    let network = match text.parse::<IpAddr>() {
        Ok(ip) => IpNet::from(ip),
        Err(_) if text == "localhost" => return Err(wrong().instead("127.0.0.1")),
        Err(_) => text.parse::<IpNet>().map_err(|_| wrong())?,
    };
    if network.trunc() != network {
        let hint = format!(
            "write `{}` for the network or `{}` for the one address",
            network.trunc(),
            network.addr()
        );
        let wrong = Wrong::bare(format!("is {}, an address inside a network", quoted(text)));
        return Err(wrong.hint(hint, network.trunc().to_string()));
    }
    Ok(match network {
        IpNet::V6(v6) => match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96)) {
            (Some(v4), Some(prefix)) => Ipv4Net::new(v4, prefix).map_or(network, IpNet::V4),
            _ => network,
        },
        IpNet::V4(_) => network,
    })
}

pub(super) fn unix_path(path: &str) -> Result<PathBuf, String> {
    if path.is_empty() {
        Err("which has no path".into())
    } else if path.len() > UNIX_PATH_MAX {
        Err(format!("whose path is longer than {UNIX_PATH_MAX} bytes, the most a unix socket can have"))
    } else if path.contains('\0') {
        Err("whose path has a zero byte in it".into())
    } else {
        Ok(PathBuf::from(path))
    }
}

/// A port to connect to.
pub(super) fn port(text: &str) -> Option<u16> {
    digits(text).and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
}

/// A number that is digits only.
fn digits(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn listeners() {
        let ip = |text: &str| BindHost::Ip(text.parse().unwrap());
        let table = [
            ("8080", RawListener::Port(8080)),
            ("0", RawListener::Port(0)),
            ("127.0.0.1:80", RawListener::At(ip("127.0.0.1"), 80)),
            ("[::1]:80", RawListener::At(ip("::1"), 80)),
            ("*:80", RawListener::At(BindHost::Any, 80)),
            ("unix:/run/a.sock", RawListener::Unix("/run/a.sock".into())),
        ];
        for (text, value) in table {
            assert_eq!(listener(text).unwrap(), value, "{text}");
        }
        let long = format!("unix:/{}", "x".repeat(UNIX_PATH_MAX));
        for text in [
            "",
            ":8080",
            "::1:80",
            "::1",
            "localhost:80",
            "1.2.3.4",
            "*",
            "70000",
            "-1",
            "a:b",
            "*:",
            "unix:",
            "http://a:80",
            "[::1]",
            "*:+80",
            &long,
        ] {
            assert!(listener(text).is_err(), "{text}");
        }
        assert!(listener(":8080").unwrap_err().hint.unwrap().contains("\"*:8080\""));
        assert_eq!(listener("localhost:80").unwrap_err().hint.unwrap(), "write `127.0.0.1:80`");
    }

    #[test]
    fn urls() {
        let [http, https, tcp, tls, _] = SCHEMES;
        let table = [
            ("http://a", Url::Host(http, "a".into(), 80)),
            ("http://a:8001/", Url::Host(http, "a".into(), 8001)),
            ("HTTP://[::1]:8001", Url::Host(http, "::1".into(), 8001)),
            ("http://[::1]", Url::Host(http, "::1".into(), 80)),
            ("https://a", Url::Host(https, "a".into(), 443)),
            ("tcp://10.0.0.7:5432", Url::Host(tcp, "10.0.0.7".into(), 5432)),
            ("tls://a:5432", Url::Host(tls, "a".into(), 5432)),
            ("unix:/run/a.sock", Url::Unix("/run/a.sock".into())),
        ];
        for (text, value) in table {
            assert_eq!(url(text, "http").unwrap(), value, "{text}");
        }
        for text in [
            "",
            "a:80",
            "tls://a",
            "ftp://a",
            "http://",
            "http://a:0",
            "http://a:65536",
            "http://a/b",
            "http://u@a",
            "http://a?b",
            "tcp://a",
            "http://a b",
            "http://a:+80",
            "unix:",
            "http://:80",
            "http://::1:80",
        ] {
            assert!(url(text, "http").is_err(), "{text}");
        }
        for text in ["http://me:hush@a:80", "ftp://me:hush@a", "http://me:hu@sh@a/b"] {
            let wrong = url(text, "http").unwrap_err();
            let said = format!("{} {:?} {:?}", wrong.message, wrong.hint, wrong.note);
            assert!(said.contains("://***@a") && !said.contains("hu") && !said.contains("me:"), "{said}");
        }
    }

    #[test]
    fn hosts() {
        for text in ["a", "a.b.", "x_y.example", "10.0.0.1", "::1", "[::1]", "1a.example", "xn--a.example"] {
            assert!(host(text).is_ok(), "{text}");
        }
        let long = "a".repeat(64);
        for text in [
            "",
            ".",
            "a..b",
            "-a",
            "a-",
            "127.0.0.256",
            "127.1",
            "0.0.0.0",
            "::",
            "a b",
            "a:80",
            "[10.0.0.1]",
            "fe80::1%eth0",
            "ä.example",
            "a/b",
            &long,
        ] {
            assert!(host(text).is_err(), "{text}");
        }
    }

    #[test]
    fn networks() {
        for (text, value) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("::1", "::1/128"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:10.0.0.1", "10.0.0.1/32"),
        ] {
            assert_eq!(network(text).unwrap().to_string(), value, "{text}");
        }
        for text in ["", "10.0.0.0/33", "10.0.0.1/8", "a", "10.0.0", "::/129"] {
            assert!(network(text).is_err(), "{text}");
        }
    }
}
