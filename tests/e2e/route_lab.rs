//! Routes put together by hand, in front of two backends that keep what they receive.

use std::sync::Arc;

use evenkeel::config::model::route::{
    Action, HeaderEdit, PathPattern, Redirect, Respond, Rewrite, Split, SplitBy, SplitSide,
};
use evenkeel::config::model::text::TextPlace;
use evenkeel::config::model::{Config, HashKey, RouteConfig, Text};
use fake_backend::{Fake, Recorded, Running};

use super::support::{self, Answer, Client, Keel};

/// A text with variables; groups as there may be in any route.
pub fn text(source: &str) -> Text {
    Text::parse(source, TextPlace::ANSWER.with_groups(Some(9))).unwrap()
}

/// A route in the making.
pub struct At(pub RouteConfig);

/// One for the paths below a prefix, to the target `one`.
pub fn at(prefix: &str) -> At {
    let mut route = RouteConfig::catch_all("one");
    route.name = prefix.to_owned();
    route.matches.path = PathPattern::Prefix(prefix.to_owned());
    At(route)
}

/// One for the paths that an expression finds, to the target `one`.
pub fn matching(expression: &str) -> At {
    at(expression).with(|route| route.matches.path = PathPattern::Regex(expression.parse().unwrap()))
}

impl At {
    pub fn with(mut self, change: impl FnOnce(&mut RouteConfig)) -> At {
        change(&mut self.0);
        self
    }

    pub fn to(self, target: &str) -> At {
        self.with(|route| route.action = Action::Forward(target.into()))
    }

    pub fn split(self, weights: [u32; 2], by: Option<HashKey>) -> At {
        let side = |target: &str, weight| SplitSide { target: target.into(), weight };
        let sides = vec![side("one", weights[0]), side("two", weights[1])];
        let by = by.map_or(SplitBy::Chance, SplitBy::Key);
        self.with(|route| route.action = Action::Split(Split { sides, by }))
    }

    pub fn redirect(self, status: u16, to: &str) -> At {
        self.with(|route| route.action = Action::Redirect(Redirect { to: text(to), status }))
    }

    pub fn respond(self, status: u16, body: &str, headers: &[(&str, &str)]) -> At {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), text(value)));
        let respond = Respond {
            status,
            body: body.as_bytes().to_vec(),
            content_type: Some("text/html".to_owned()),
            headers: headers.collect(),
        };
        self.with(|route| route.action = Action::Respond(Arc::new(respond)))
    }

    pub fn prefix(self, strip: &str, add: &str) -> At {
        let rewrite = Rewrite::Prefix { strip: strip.to_owned(), add: add.to_owned() };
        self.with(|route| route.rewrite = Some(rewrite))
    }

    pub fn path(self, path: &str) -> At {
        self.with(|route| route.rewrite = Some(Rewrite::Path(text(path))))
    }

    /// Edits of requests: `Name: value` sets, `+Name: value` adds, `-Name` removes.
    pub fn request(self, edits: &[&str]) -> At {
        self.with(|route| route.headers.request.extend(edits.iter().map(|edit| edited(edit))))
    }

    /// The same of answers.
    pub fn answer(self, edits: &[&str]) -> At {
        self.with(|route| route.headers.response.extend(edits.iter().map(|edit| edited(edit))))
    }
}

fn edited(edit: &str) -> HeaderEdit {
    if let Some(name) = edit.strip_prefix('-') {
        return HeaderEdit::Remove(name.to_owned());
    }
    let (name, value) = edit.split_once(": ").unwrap();
    match name.strip_prefix('+') {
        Some(name) => HeaderEdit::Add(name.to_owned(), text(value)),
        None => HeaderEdit::Set(name.to_owned(), text(value)),
    }
}

/// A listener with routes, and the backends of the targets `one` and `two`.
pub struct Front {
    pub keel: Keel,
    pub one: Running,
    pub two: Running,
}

pub fn front(routes: Vec<At>) -> Front {
    front_with(routes, |_| ())
}

pub fn front_with(routes: Vec<At>, change: impl FnOnce(&mut Config)) -> Front {
    let [one, two] = ["one", "two"].map(|name| Fake::http(name).record().start_in_thread().unwrap());
    let mut config = support::load(&format!(
        "listeners: {{front: {{bind: '127.0.0.1:0', routes: [target: one]}}}}\n\
         targets:\n  one: {{health_check: off, backends: [{{url: 'http://{}'}}]}}\n  \
         two: {{health_check: off, backends: [{{url: 'http://{}'}}]}}\n",
        one.addr(),
        two.addr()
    ));
    config.listeners[0].routes = routes.into_iter().map(|At(route)| Arc::new(route)).collect();
    change(&mut config);
    Front { keel: Keel::start(&config), one, two }
}

impl Front {
    pub fn client(&self) -> Client {
        self.keel.client()
    }

    /// `GET path` with these further header lines, on a connection of its own.
    pub fn get(&self, path: &str, lines: &str) -> Answer {
        self.client().ask(&format!("GET {path} HTTP/1.1\r\nHost: h.example:81\r\n{lines}\r\n"))
    }

    /// The same, and what the backend `one` has received of it.
    pub fn sent(&self, path: &str, lines: &str) -> Recorded {
        let answer = self.get(path, lines);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        self.one.take_requests().pop().unwrap()
    }
}

/// Names and values of the header lines of a head, in order.
pub fn lines(head: &str) -> Vec<(&str, &str)> {
    head.lines().skip(1).filter_map(|line| line.split_once(": ")).collect()
}

/// The values of all lines of a name.
pub fn values<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    let all = lines(&answer.head).into_iter();
    all.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

/// The request target of what a backend has received.
pub fn target(recorded: &Recorded) -> String {
    recorded.head_text().split(' ').nth(1).unwrap().to_owned()
}
