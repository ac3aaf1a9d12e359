//! The cookie of a session. Cookies know no ports, so its name has the port: two processes of one machine don't log each other out.

use http::uri::Authority;
use hyper::header::{COOKIE, HOST, HeaderMap};

/// What browsers are to do with it: no script reads it, and no page of another site has it sent (RFC 6265bis §5.4).
pub const COOKIE_TRAITS: &str = "Path=/; HttpOnly; SameSite=Strict";

/// Its name for who asks like this.
#[must_use]
pub fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|line| Authority::try_from(line.as_bytes()).ok());
    match host.and_then(|host| host.port_u16()) {
        Some(port) => format!("evenkeel-{port}"),
        None => "evenkeel".to_owned(),
    }
}

/// What it says; `None`: there is none, or there are several.
#[must_use]
pub fn session_cookie(headers: &HeaderMap) -> Option<&[u8]> {
    let name = cookie_name(headers);
    let pairs = headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let mut values = pairs.filter_map(|pair| {
        let (own, value) = pair.trim_ascii().split_at_checked(name.len())?;
        (own == name.as_bytes()).then(|| value.strip_prefix(b"=")).flatten()
    });
    let value = values.next().filter(|value| !value.is_empty())?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cookie_of_its_name_counts() {
        let of = |host: &'static str, lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect("a value"));
            for line in lines {
                headers.append(COOKIE, line.parse().expect("a value"));
            }
            session_cookie(&headers).map(|value| String::from_utf8(value.to_vec()).expect("text"))
        };
        assert_eq!(of("a:9900", &["evenkeel-9900=x"]).as_deref(), Some("x"));
        assert_eq!(of("a", &["b=c; evenkeel=x;d=e"]).as_deref(), Some("x"));
        assert_eq!(of("[::1]:9900", &["b=c", "d=e; evenkeel-9900=x"]).as_deref(), Some("x"));
        for wrong in [
            &["evenkeel-9901=x"][..],
            &["evenkeel-9900=x; evenkeel-9900=y"],
            &["evenkeel-9900=x", "evenkeel-9900=x"],
            &["evenkeel-99000=x"],
            &["evenkeel-9900"],
            &["evenkeel-9900="],
            &["Evenkeel-9900=x"],
            &[],
        ] {
            assert_eq!(of("a:9900", wrong), None, "{wrong:?}");
        }
    }
}
