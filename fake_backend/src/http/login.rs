//! Logins that belong to a connection and not to a request, as NTLM's do and Negotiate's may (RFC 4559 §6): whoever speaks
//! on the connection afterwards is taken for the one who has logged in.
//!
//! `NTLM hello-NAME` is answered 401 with a challenge, `NTLM proof-NAME` behind it on the same connection logs in;
//! `Negotiate NAME` logs in at once. Everybody else is greeted by the name of the connection's login, or sent away with 401.

use super::answer::Answer;
use super::request::Request;
use crate::login::Login;

/// The answer to `/login`.
pub(crate) fn answer(login: &mut Login, request: &Request) -> Answer {
    let offer = |lines: &str| Answer { headers: lines.to_owned(), ..Answer::text(401, "who are you?") };
    let given = authorization(request);
    let (scheme, word) = given.split_once(' ').unwrap_or((&given, ""));
    if scheme.eq_ignore_ascii_case("ntlm") {
        login.name = None;
        if let Some(name) = word.strip_prefix("hello-") {
            login.claimed = Some(name.to_owned());
            return offer("WWW-Authenticate: NTLM challenge\r\n");
        }
        let proof = word.strip_prefix("proof-").map(str::to_owned);
        login.name = login.claimed.take().filter(|claimed| proof.as_ref() == Some(claimed));
    } else if scheme.eq_ignore_ascii_case("negotiate") {
        login.name = Some(word.to_owned());
    }
    match &login.name {
        Some(name) => Answer::text(200, format!("hello {name}")),
        None => offer("WWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM\r\n"),
    }
}

/// The value of the request's last `Authorization` line.
fn authorization(request: &Request) -> String {
    let head = String::from_utf8_lossy(&request.head);
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("authorization").then(|| value.trim().to_owned())
    };
    head.lines().filter_map(value).next_back().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(login: &mut Login, line: &str) -> (u16, String) {
        let head = format!("GET /login HTTP/1.1\r\nHost: x\r\n{line}\r\n");
        let request = Request::parse(head.as_bytes()).expect("a request").expect("all of it");
        let answer = answer(login, &request);
        let super::super::answer::Content::Bytes(text) = answer.content else { panic!("a text") };
        (answer.status, String::from_utf8_lossy(&text).into_owned())
    }

    #[test]
    fn a_login_takes_two_steps_on_one_connection_and_holds_for_what_follows() {
        let mut login = Login::default();
        assert_eq!(ask(&mut login, "").0, 401);
        assert_eq!(ask(&mut login, "Authorization: NTLM proof-alice\r\n").0, 401, "not challenged");
        assert_eq!(ask(&mut login, "Authorization: NTLM hello-alice\r\n").0, 401);
        assert_eq!(ask(&mut login, "Authorization: ntlm proof-alice\r\n"), (200, "hello alice".to_owned()));
        assert_eq!(ask(&mut login, ""), (200, "hello alice".to_owned()));
        let negotiate = "authorization: Negotiate bob\r\n";
        assert_eq!(ask(&mut Login::default(), negotiate), (200, "hello bob".to_owned()));
    }
}
