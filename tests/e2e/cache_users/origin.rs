//! Origins that know for whom they make each answer, and say so in it.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use super::super::support::PATIENCE;
use super::answers::{Meaning, Spec};
use super::asks::{Case, TOLD, normal};
use super::chance::Draws;
use super::worlds::World;

/// An answer that an origin has made.
#[derive(Clone)]
pub struct Made {
    pub case: Arc<Case>,
    /// How the backend was asked.
    pub method: String,
    pub target: &'static str,
    pub meaning: Meaning,
    /// The lines that say so, also those of what it was made of.
    names: HashSet<&'static str>,
    pub lines: Vec<String>,
    /// The answer whose body it speaks of: itself, or the one that it confirms.
    pub root: usize,
    pub etag: Option<String>,
    pub body: String,
}

impl Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Made { case, target, lines, root, .. } = self;
        writeln!(f, "{} {lines:?} of {root} by {target} for {}", self.meaning.status, case.user)?;
        write!(f, "{}", case.text())
    }
}

/// What is going on in a world.
#[derive(Default)]
pub struct Ledger {
    pub world: Option<Arc<World>>,
    pub cases: HashMap<u64, Arc<Case>>,
    pub made: Vec<Made>,
    /// All that is asked at the same time is on its way.
    pub is_sent: bool,
    /// What a backend got otherwise than it was to get it.
    pub odd: Vec<String>,
}

#[derive(Default)]
pub struct Book {
    pub ledger: Mutex<Ledger>,
    pub sent: Condvar,
}

/// The number of a world's first case. Cases of two worlds have no number in common: what a world asked for in the background may
/// be answered when the next one has begun.
pub fn first_case(seed: u64) -> u64 {
    seed * 100_000
}

/// Listens for the target with this name.
pub fn start(target: &'static str, book: &Arc<Book>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, book) = (listener.local_addr().unwrap(), Arc::clone(book));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let book = Arc::clone(&book);
            thread::spawn(move || serve(stream, target, &book));
        }
    });
    address
}

/// A request as it came.
struct Got {
    /// What is asked for again in the background, for one who has asked by HEAD, is asked for by GET.
    method: String,
    path: String,
    lines: Vec<(String, String)>,
}

impl Got {
    fn line(&self, name: &str) -> Option<String> {
        let lines = self.lines.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.clone()).reduce(|one, other| format!("{one}, {other}"))
    }
}

fn serve(mut stream: TcpStream, target: &'static str, book: &Book) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(got) = read(&mut reader) {
        let Some((head, body, breaks)) = answer(&got, target, book) else { break };
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).is_err() || breaks {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Got> {
    let line = |reader: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        (reader.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
    };
    let start = line(reader)?;
    let mut words = start.split(' ').map(str::to_owned);
    let mut got = Got { method: words.next()?, path: words.next()?, lines: Vec::new() };
    loop {
        let line = line(reader)?;
        let Some((name, value)) = line.split_once(':') else { break };
        got.lines.push((name.to_owned(), value.trim().to_owned()));
    }
    let skip = |reader: &mut BufReader<TcpStream>, length| reader.read_exact(&mut vec![0; length]).ok();
    if let Some(length) = got.line("content-length") {
        skip(reader, length.parse().unwrap())?;
    }
    while got.line("transfer-encoding").is_some() {
        let size = usize::from_str_radix(&line(reader)?, 16).unwrap();
        skip(reader, size + 2)?;
        if size == 0 {
            break;
        }
    }
    Some(got)
}

/// The head, the body, and whether the connection breaks off then; nothing for who asks in a world that is over.
fn answer(got: &Got, target: &'static str, book: &Book) -> Option<(String, Vec<u8>, bool)> {
    let mut ledger = book.ledger.lock().unwrap_or_else(PoisonError::into_inner);
    let number: u64 = got.line("x-case").unwrap().parse().unwrap();
    let world = Arc::clone(ledger.world.as_ref().unwrap());
    if number < first_case(world.seed) {
        return None;
    }
    let case = Arc::clone(&ledger.cases[&number]);
    if let Err(odd) = is_as_sent(got, &world, &case) {
        ledger.odd.push(odd);
    }
    let serial = ledger.made.len();
    let mut chance = Draws(world.seed ^ (serial as u64) << 32);
    let spec = chance.of(world.specs(&case));
    let known = basis((got, &case, target), &spec, &ledger, &mut chance);
    let base = known.map(|base| ledger.made[base].clone());
    let is_update = base.is_some() && got.method == "GET";
    let mut meaning = spec.meaning.clone();
    let token = format!("S={serial},C={number},U={};", case.user);
    let body = match &base {
        _ if is_update => String::new(),
        Some(base) => base.body.clone(),
        None => token.repeat(spec.repeats),
    };
    let mut names: HashSet<_> = spec.names.iter().copied().collect();
    let mut root = serial;
    let etag = if let Some(base) = &base {
        names.extend(&base.names);
        (root, meaning.status) = (base.root, ledger.made[base.root].meaning.status);
        base.etag.clone()
    } else {
        // What HEAD says of an object without a tag could be about any.
        let weak = if got.method == "HEAD" { Some("") } else { spec.etag };
        weak.map(|weak| format!("{weak}\"s{serial}\""))
    };
    if let Some(base) = known {
        // From now on whoever confirms it has to say as much.
        ledger.made[base].names.extend(&names);
    }
    let status = if is_update { 304 } else { meaning.status };
    let part = got.line("range").filter(|_| status == 200 && body.len() > 90 && chance.one_in(2));
    let status = if part.is_some() { 206 } else { status };
    let mut head = format!("HTTP/1.1 {status} Said\r\nX-Made: {serial}\r\n");
    let lines = spec.lines.iter().map(|line| line.replace("{n}", &serial.to_string()));
    let lines: Vec<String> = lines.chain(etag.iter().map(|etag| format!("ETag: {etag}"))).collect();
    lines.iter().for_each(|line| head += &format!("{line}\r\n"));
    let made = Made {
        case: Arc::clone(&case),
        method: got.method.clone(),
        target,
        meaning,
        names,
        lines,
        root,
        etag,
        body: body.clone(),
    };
    ledger.made.push(made);
    let mut sent = body.into_bytes();
    if part.is_some() {
        head += &format!("Content-Range: bytes 5-85/{}\r\n", sent.len());
        sent = sent[5..=85].to_vec();
    }
    let breaks = spec.breaks && sent.len() > 10 && got.method != "HEAD";
    let is_chunked = spec.is_chunked && status != 304;
    if is_chunked {
        head += "Transfer-Encoding: chunked\r\n";
        let (one, other) = sent.split_at(sent.len() / 2);
        let chunk = |piece: &[u8]| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        sent = [chunk(one), chunk(other), b"0\r\n\r\n".to_vec()].concat();
    } else if status != 304 {
        head += &format!("Content-Length: {}\r\n", sent.len());
    }
    head += "\r\n";
    if got.method == "HEAD" || status == 304 {
        sent.clear();
    }
    if breaks {
        sent.truncate(sent.len() - 8);
    }
    if spec.waits {
        drop(book.sent.wait_timeout_while(ledger, PATIENCE, |ledger| !ledger.is_sent));
    }
    Some((head, sent, breaks))
}

/// The answer that this one confirms (304), or that HEAD speaks of: only where it says all that matters anew.
fn basis(
    (got, case, target): (&Got, &Case, &str),
    spec: &Spec,
    ledger: &Ledger,
    chance: &mut Draws,
) -> Option<usize> {
    let world = ledger.world.as_ref()?;
    let asked = got.line("if-none-match").unwrap_or_default();
    let counted = |case: &Case| world.policy(case.route).counted(&case.query);
    let place = |case: &Case| (case.host, case.path, case.route, counted(case));
    let mut all = ledger.made.iter().enumerate().filter(|(_, made)| {
        let is_like = place(&made.case) == place(case) && made.target == target;
        is_like && made.method == "GET" && made.etag.is_some() && !made.body.is_empty()
    });
    let found = match got.method.as_str() {
        "HEAD" => all.next_back(),
        "GET" => all.find(|(_, made)| asked.contains(made.etag.as_deref().unwrap_or_default())),
        _ => None,
    };
    let (place, made) = found.filter(|_| chance.below(3) > 0)?;
    made.names.iter().all(|name| spec.names.contains(name)).then_some(place)
}

/// Whether a backend gets what it is to get: of the request of this client, and nothing of another's.
fn is_as_sent(got: &Got, world: &World, case: &Case) -> Result<(), String> {
    let policy = world.policy(case.route);
    let counted = policy.counted(&case.query);
    let query = if counted.is_empty() { String::new() } else { format!("?{counted}") };
    let mut pairs = vec![("path", Some(got.path.clone()), Some(format!("{}{query}", case.path)))];
    for name in TOLD.iter().chain(&["host"]) {
        let came = got.line(name).map(|value| normal(name, &value));
        pairs.push((name, came, case.told(name).cloned()));
    }
    if got.method != case.method && (got.method.as_str(), case.method) != ("GET", "HEAD") {
        return Err(format!("the backend got {} for {}", got.method, case.text()));
    }
    for (name, came, expected) in pairs {
        if came != expected {
            return Err(format!("{name}: the backend got {came:?} and not {expected:?} of {}", case.text()));
        }
    }
    Ok(())
}
