//! What clients ask: each user with secrets of its own, of which a request shows some.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::chance::Draws;
use super::worlds::{Kind, World};

pub const USERS: [&str; 4] = ["alice", "bob", "carol", "dave"];
/// Languages in spellings that mean the same.
const LANGUAGES: [&[&str]; 3] =
    [&["de, en;q=0.5", "de,en;q=0.500", "en;q=0.5 , de"], &["en", "EN"], &["de;q=0.9"]];
const HOSTS: [&str; 5] = ["a.example", "a.example", "a.example", "b.example", "A.example"];
/// The form of a path, and how it may be written.
const PATHS: [(&str, &[&str]); 3] =
    [("/a", &["/a"]), ("/b/c", &["/b/c", "/b/./c", "/%62/c"]), ("/d", &["/d"])];
/// Fields that `Vary` names and a backend gets.
pub const TOLD: [&str; 8] =
    ["authorization", "cookie", "accept-language", "x-api-key", "user-agent", "x-user", "x-who", "x-zone"];

/// A host, the form of a path, and a query.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub host: &'static str,
    pub path: &'static str,
    pub query: String,
}

impl Wanted {
    pub fn some(chance: &mut Draws) -> Wanted {
        let user = chance.of(&USERS);
        let queries = ["", "", "", "", "", "q=1", "q=2", "q=1&u=", "u=&q=1", "q=1&q=2", "q=2&q=1"];
        let query = chance.of(&queries).replace("u=", &format!("u={user}"));
        Wanted { host: chance.of(&HOSTS), path: chance.of(&PATHS).0, query }
    }
}

/// One request, as its client sends it and as its backend gets it.
#[derive(Clone, Debug)]
pub struct Case {
    pub number: u64,
    pub user: &'static str,
    pub method: &'static str,
    pub host: &'static str,
    pub path: &'static str,
    pub query: String,
    written: &'static str,
    /// The lines beside `Host` and `X-Case`.
    pub lines: Vec<(&'static str, String)>,
    pub body: Option<&'static str>,
    is_chunked: bool,
    pub wants: &'static str,
    pub route: &'static str,
    /// What a split goes by.
    pub shard: &'static str,
    /// Evenkeel has asked who it is.
    pub is_known: bool,
    /// It has not said who it is, where it must.
    pub is_refused: bool,
    pub is_conditional: bool,
    pub has_range: bool,
    /// `Connection` names lines.
    pub names_lines: bool,
    /// What its backend gets, in a normal form.
    told: BTreeMap<&'static str, String>,
}

impl Case {
    /// A request on a connection whose client has shown this certificate.
    pub fn some(
        world: &World,
        chance: &mut Draws,
        number: u64,
        certificate: Option<&'static str>,
        wanted: &Wanted,
        tags: &[String],
    ) -> Case {
        let user = certificate.unwrap_or_else(|| chance.of(&USERS));
        let methods = ["GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST"];
        let written = PATHS.iter().find(|(form, _)| *form == wanted.path).unwrap().1;
        let mut case = Case {
            number,
            user,
            method: chance.of(&methods),
            host: wanted.host,
            path: wanted.path,
            query: wanted.query.clone(),
            written: chance.of(written),
            lines: Vec::new(),
            body: None,
            is_chunked: chance.one_in(2),
            wants: "",
            route: if chance.one_in(4) { "open" } else { "all" },
            shard: chance.of(&["one", "two", "three", "four"]),
            is_known: certificate.is_some(),
            is_refused: false,
            is_conditional: false,
            has_range: false,
            names_lines: false,
            told: BTreeMap::new(),
        };
        case.show(world, chance);
        case.condition(chance, tags);
        let inside = "GET /d HTTP/1.1\r\nHost: a.example\r\n\r\n";
        if case.method == "POST" || case.method == "GET" && chance.one_in(15) {
            case.body = Some(chance.of(&[inside, "hello"]));
        }
        case.tell(world);
        case
    }

    /// The lines that say who it is and what it likes.
    fn show(&mut self, world: &World, chance: &mut Draws) {
        let user = self.user;
        let mut push = |name, value: String| self.lines.push((name, value));
        if self.route == "open" {
            push("X-Route", "open".to_owned());
        }
        if world.kind == Kind::Split {
            push("X-Shard", self.shard.to_owned());
        }
        let mut shows = true;
        if self.route == "all" && world.kind.asks_by_lines() {
            (self.is_known, shows) = (true, chance.below(12) > 0);
            self.is_refused = !shows;
        }
        let by_cookie = world.kind == Kind::Forward && chance.one_in(2);
        if self.is_known && world.kind.asks_by_lines() {
            if shows && !by_cookie {
                push("Authorization", world.kind.credentials(user));
            } else if shows {
                push("Cookie", format!("session={user}"));
            }
        } else if chance.one_in(6) {
            push("Authorization", format!("Bearer tok-{user}"));
        }
        if !by_cookie && chance.one_in(3) {
            push("Cookie", format!("sid={user}"));
        }
        if chance.one_in(2) {
            let spellings = chance.of(&LANGUAGES);
            push("Accept-Language", chance.of(spellings).to_owned());
        }
        if chance.one_in(3) {
            push(
                "X-Api-Key",
                chance.of(&[format!("key-{user}, b"), format!("key-{user},b"), "all".to_owned()]),
            );
        }
        if chance.one_in(3) {
            push("User-Agent", chance.of(&["agent/1", "agent/2"]).to_owned());
        }
        if chance.one_in(10) {
            // A lie, wherever evenkeel itself says so.
            push("X-User", chance.of(&USERS).to_owned());
        }
        if chance.one_in(40) {
            self.names_lines = true;
            push("Connection", "X-Api-Key".to_owned());
        }
        if chance.one_in(9) {
            let wants = ["no-cache", "no-store", "max-age=0", "only-if-cached", "max-stale", "min-fresh=5"];
            self.wants = chance.of(&wants);
            push("Cache-Control", self.wants.to_owned());
        }
    }

    /// The lines about what it has already.
    fn condition(&mut self, chance: &mut Draws, tags: &[String]) {
        if self.method == "POST" {
            return;
        }
        let tag = |chance: &mut Draws| if tags.is_empty() { "\"none\"".to_owned() } else { chance.of(tags) };
        let mut push = |name, value| self.lines.push((name, value));
        let before = chance.below(45);
        match before {
            0 | 1 => push("If-None-Match", tag(chance)),
            2 => push("If-Modified-Since", "Sat, 01 Jan 2090 00:00:00 GMT".to_owned()),
            3 => push("If-Match", tag(chance)),
            4 => push("If-None-Match", format!("\"other\", {}", tag(chance))),
            5 | 6 => {
                self.has_range = true;
                push(
                    "Range",
                    chance.of(&["bytes=0-60", "bytes=7-80", "bytes=-60", "bytes=9999999-"]).to_owned(),
                );
                if chance.one_in(3) {
                    push("If-Range", tag(chance));
                }
            }
            _ => {}
        }
        self.is_conditional = before <= 6;
    }

    /// What its backend gets of it.
    fn tell(&mut self, world: &World) {
        for name in TOLD {
            let is_dropped = self.names_lines && name == "x-api-key";
            if let Some(value) = self.came(name).filter(|_| !is_dropped) {
                self.told.insert(name, normal(name, &value));
            }
        }
        if world.kind.says_user() {
            self.told.remove("x-user");
        }
        if self.route == "all" {
            match world.kind {
                Kind::Basic => drop(self.told.insert("x-who", self.user.to_owned())),
                Kind::Forward | Kind::Token => drop(self.told.insert("x-user", self.user.to_owned())),
                _ => {}
            }
        }
        self.told.insert("x-zone", self.route.to_owned());
        self.told.insert("host", self.host.to_owned());
    }

    /// What its client says in this field; `None`: nothing.
    pub fn came(&self, name: &str) -> Option<String> {
        let lines = self.lines.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.clone()).reduce(|one, other| format!("{one}, {other}"))
    }

    pub fn has(&self, name: &str) -> bool {
        self.came(name).is_some()
    }

    /// What its backend gets in this field.
    pub fn told(&self, name: &str) -> Option<&String> {
        self.told.get(name)
    }

    /// It as it is sent.
    pub fn text(&self) -> String {
        let question = if self.query.is_empty() { "" } else { "?" };
        let (method, path, query) = (self.method, self.written, &self.query);
        let mut text = format!("{method} {path}{question}{query} HTTP/1.1\r\nHost: {}\r\n", self.host);
        let _ = write!(text, "X-Case: {}\r\n", self.number);
        for (name, value) in &self.lines {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        match self.body {
            None => text + "\r\n",
            Some(body) if self.is_chunked => {
                let length = body.len();
                text + &format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n")
            }
            Some(body) => text + &format!("Content-Length: {}\r\n\r\n{body}", body.len()),
        }
    }
}

/// What two values have in common that mean the same.
pub fn normal(name: &str, value: &str) -> String {
    match name {
        "accept-language" => LANGUAGES.iter().position(|all| all.contains(&value)).unwrap().to_string(),
        "x-api-key" => value.split(',').map(str::trim).collect::<Vec<_>>().join(","),
        _ => value.to_owned(),
    }
}
