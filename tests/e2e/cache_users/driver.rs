//! Asks in a world, and holds each answer to the model.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use evenkeel::cache::store::{PurgeKind, PurgeOf};

use super::super::support::tls::TlsSocket;
use super::super::support::{self, Answer, Client, Keel};
use super::asks::{Case, Wanted};
use super::chance::Draws;
use super::model::{MadeFor, Rule, fits, is_same_object, may_be_shared};
use super::origin::{Ledger, Made, first_case};
use super::worlds::{Ground, Kind, World};

const CONNECTIONS: usize = 10;
const ROUNDS: usize = 24;

pub trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

/// What has been seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub pairs: u64,
    /// Answered from what was stored.
    pub hits: u64,
    /// Answered by what another has asked for at the same time.
    pub collapsed: u64,
    /// Answered with what was made for another user.
    pub others: u64,
    /// Confirmed by a 304.
    pub confirmed: u64,
}

struct Connection {
    client: Client<Box<dyn Wire>>,
    certificate: Option<&'static str>,
}

pub struct Driver<'a> {
    ground: &'a Ground,
    world: Arc<World>,
    keel: Keel,
    chance: Draws,
    connections: Vec<Connection>,
    next: u64,
    /// What most of them want at the time.
    common: Wanted,
    /// Where a value leads that a split goes by.
    targets: BTreeMap<&'static str, &'static str>,
    tags: BTreeMap<&'static str, Vec<String>>,
    seen: Seen,
}

/// Asks in this world.
pub fn drive(ground: &Ground, seed: u64) -> (Kind, Seen) {
    let world = Arc::new(World::new(seed));
    let text = ground.config(&world);
    *ground.book.ledger.lock().unwrap() =
        Ledger { world: Some(Arc::clone(&world)), is_sent: true, ..Ledger::default() };
    let keel = Keel::start(&support::load(&text));
    let (kind, mut chance) = (world.kind, Draws(!seed));
    let common = Wanted::some(&mut chance);
    let mut driver = Driver {
        ground,
        world,
        keel,
        chance,
        connections: Vec::new(),
        next: first_case(seed),
        common,
        targets: BTreeMap::new(),
        tags: BTreeMap::new(),
        seen: Seen::default(),
    };
    driver.connections = (0..CONNECTIONS).map(|_| driver.connect()).collect();
    driver.find_targets();
    for _ in 0..ROUNDS {
        driver.round();
    }
    let odd = std::mem::take(&mut ground.book.ledger.lock().unwrap().odd);
    assert!(odd.is_empty(), "{}\n{}", driver.world, odd[0]);
    (kind, driver.seen)
}

impl Driver<'_> {
    fn connect(&mut self) -> Connection {
        if self.world.kind != Kind::Certificate {
            let client = Client::over(Box::new(self.keel.client().socket) as Box<dyn Wire>);
            return Connection { client, certificate: None };
        }
        let (certificate, config) = self.chance.of(&self.ground.clients);
        let socket = TlsSocket::open(self.keel.address(), &config, "localhost").unwrap();
        Connection { client: Client::over(Box::new(socket)), certificate }
    }

    fn case(&mut self, certificate: Option<&'static str>, wanted: &Wanted) -> Arc<Case> {
        let tags = self.tags.get(wanted.path).map_or(&[][..], |tags| tags);
        let case = Case::some(&self.world, &mut self.chance, self.next, certificate, wanted, tags);
        self.next += 1;
        let case = Arc::new(case);
        self.ground.book.ledger.lock().unwrap().cases.insert(case.number, Arc::clone(&case));
        case
    }

    /// Learns where a split leads each request, by requests that no cache answers.
    fn find_targets(&mut self) {
        while self.world.kind == Kind::Split && self.targets.len() < 4 {
            let wanted = Wanted::some(&mut self.chance);
            let case = self.case(None, &wanted);
            if case.method != "POST" || case.route != "all" {
                continue;
            }
            let answer = self.connections[0].client.ask(&case.text());
            let ledger = self.ground.book.ledger.lock().unwrap();
            self.targets.insert(case.shard, ledger.made[number(&answer, "x-made").unwrap()].target);
            drop(ledger);
            if is_over(&answer) {
                self.connections[0] = self.connect();
            }
        }
    }

    fn target(&self, case: &Case) -> Option<&'static str> {
        if self.world.kind != Kind::Split || case.route == "open" {
            return Some("web");
        }
        self.targets.get(case.shard).copied()
    }

    /// Asks on all connections at the same time, often for the same; then reads what comes.
    fn round(&mut self) {
        self.ground.book.ledger.lock().unwrap().is_sent = false;
        if self.chance.one_in(3) {
            self.common = Wanted::some(&mut self.chance);
        }
        let mut asked = Vec::new();
        for place in 0..CONNECTIONS {
            let mut cases = Vec::new();
            // Sometimes two behind one another: the second begins where the first has ended.
            for _ in 0..self.chance.of(&[0, 1, 1, 1, 1, 2]) {
                let wanted = if self.chance.below(4) > 0 {
                    self.common.clone()
                } else {
                    Wanted::some(&mut self.chance)
                };
                cases.push(self.case(self.connections[place].certificate, &wanted));
            }
            let text: String = cases.iter().map(|case| case.text()).collect();
            self.connections[place].client.send(text);
            asked.push(cases);
        }
        self.ground.book.ledger.lock().unwrap().is_sent = true;
        self.ground.book.sent.notify_all();
        for (place, cases) in asked.into_iter().enumerate() {
            if !cases.is_empty() && self.chance.one_in(60) {
                self.connections[place] = self.connect();
                continue;
            }
            for case in cases {
                let client = &mut self.connections[place].client;
                let answer =
                    if case.method == "HEAD" { client.answer_to_head() } else { client.final_answer() };
                self.check(&case, &answer);
                if is_over(&answer) {
                    self.connections[place] = self.connect();
                    break;
                }
            }
        }
        if self.chance.one_in(15) {
            self.purge();
        }
    }

    fn purge(&mut self) {
        let kind = self.chance.of(&[PurgeKind::Soft, PurgeKind::Hard]);
        let of = if self.chance.one_in(2) { PurgeOf::All } else { PurgeOf::Tag(b"odd"[..].into()) };
        self.keel.server.reloader().snapshots.current().unwrap().store.purge(of, kind);
    }

    /// Holds an answer to the model.
    fn check(&mut self, case: &Case, answer: &Answer) {
        if answer.status == 0 {
            return;
        }
        self.seen.pairs += 1;
        let said = answer.header("cache-status").unwrap_or_default();
        self.seen.hits += u64::from(said.contains("; hit"));
        self.seen.collapsed += u64::from(said.contains("; collapsed"));
        self.seen.confirmed += u64::from(said.contains("fwd-status=304"));
        let ledger = self.ground.book.ledger.lock().unwrap();
        let tag = answer.header("etag");
        let own = |made: &Made| made.case.number == case.number;
        // A 304 out of the store does not say by which answer; if there is one to this request, by that.
        let is_tagged = |made: &Made| tag.is_some() && made.etag.as_deref() == tag;
        let by_own = ledger.made.iter().rposition(|made| is_tagged(made) && own(made));
        let by_tag = by_own.or(ledger.made.iter().position(is_tagged));
        let head = number(answer, "x-made").or(by_tag);
        if let (Some(tag), Some(_)) = (tag, by_tag) {
            self.tags.entry(case.path).or_default().push(tag.to_owned());
        }
        let body = self.body(&ledger, case, answer);
        let Some(head) = head.or(body) else {
            // Evenkeel's own, or one of which too little is left.
            return;
        };
        let made = &ledger.made[head];
        let root = &ledger.made[body.unwrap_or(made.root)];
        let (policy, target) = (self.world.policy(case.route), self.target(case));
        let of = |made: &'_ Made| (Arc::clone(&made.case), made.target, made.meaning.clone());
        let mut rules: Vec<(Rule, &Made)> = Vec::new();
        let mut take = |more: Vec<Rule>, made| rules.extend(more.into_iter().map(|rule| (rule, made)));
        take(vec![("head and body of one answer", made.root == body.unwrap_or(made.root))], made);
        if !own(made) {
            let (case_of, target_of, meaning) = of(made);
            let made_for = MadeFor { case: &case_of, target: target_of, meaning: &meaning };
            take(may_be_shared(policy, &made_for), made);
            take(is_same_object(policy, &made_for, case, target), made);
            let updates = ledger.made.iter().filter(|other| other.root == made.root).count();
            if number(answer, "x-made").is_some() || updates == 1 {
                take(fits(policy, &made_for, case), made);
            }
            self.seen.others += u64::from(made.case.user != case.user);
        }
        // That what its client has is still right its origin may say of what it likes.
        if !own(root) && (body.is_some() || !own(made)) {
            let (case_of, target_of, meaning) = of(root);
            let made_for = MadeFor { case: &case_of, target: target_of, meaning: &meaning };
            take(vec![("method of its request", root.method == "GET" || body.is_none())], root);
            take(may_be_shared(policy, &made_for), root);
            take(is_same_object(policy, &made_for, case, target), root);
        }
        // Lines that are for one alone.
        for line in answer.head.lines() {
            let line = line.to_ascii_lowercase();
            let of = |name: &str| line.strip_prefix(name)?.split(';').next()?.parse::<usize>().ok();
            if let Some(cookie) = of("set-cookie: made=") {
                take(vec![("another's cookie", own(&ledger.made[cookie]))], made);
            }
            if let Some(user) = line.strip_prefix("set-cookie: sso=") {
                take(vec![("another's session", user == case.user)], made);
            }
            if let Some(secret) = of("x-secret: ") {
                let made = &ledger.made[secret];
                let is_excepted = made.meaning.excepted.contains("x-secret");
                take(vec![("another's line", own(made) || !is_excepted)], made);
            }
        }
        if let Some(((rule, _), made)) = rules.into_iter().find(|((_, holds), _)| !holds) {
            let text = format!("{}", made);
            drop(ledger);
            panic!("{}{rule}\n\n{}\ngot {}\nmade as {text}", self.world, case.text(), answer.head);
        }
    }

    /// The number that the body says, if there is enough of it.
    fn body(&self, ledger: &Ledger, case: &Case, answer: &Answer) -> Option<usize> {
        let text = answer.text();
        let begin = text.find("S=")?;
        let token = &text[begin..=begin + text[begin..].find(';')?];
        let serial: usize = token[2..].split(',').next()?.parse().ok()?;
        let whole = &ledger.made[serial].body;
        let is_right = match answer.status {
            206 => whole.contains(&text),
            _ if answer.cut => whole.starts_with(&text),
            _ => *whole == text,
        };
        assert!(is_right, "{}{}{}{text}\nis not of\n{whole}", self.world, case.text(), answer.head);
        Some(serial)
    }
}

fn number(answer: &Answer, name: &str) -> Option<usize> {
    answer.header(name)?.parse().ok()
}

/// Nothing more comes on its connection.
fn is_over(answer: &Answer) -> bool {
    answer.cut || answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
}
