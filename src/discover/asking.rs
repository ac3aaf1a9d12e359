//! One question to DNS, and what is made of the answer.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer::{HeardAddress, NameAnswer, UnheardHost};
use super::servers;
use crate::config::model::discovery::{AddressFamily, DnsKind, DnsQuestion, ResolverConfig};

/// Hosts of a service that are asked for at a time.
const HOSTS_AT_ONCE: usize = 16;
/// How many times more addresses are looked at than a name may have: some of them may be those that it has.
const ROOM: usize = 4;

/// A function that answers.
type Given = dyn Fn(&DnsQuestion) -> Result<NameAnswer, String> + Send + Sync;

/// Who asks.
#[derive(Clone)]
pub enum NameAsker {
    /// DNS is asked.
    Dns {
        /// Through this.
        resolver: Box<TokioResolver>,
        /// Longer than this nobody waits for one kind of records of one host.
        patience: Duration,
    },
    /// Nobody can be asked, and why.
    Nobody(Arc<str>),
    /// This function, which must not block.
    Given(Arc<Given>),
}

impl fmt::Debug for NameAsker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameAsker::Dns { .. } => "Dns",
            NameAsker::Nobody(_) => "Nobody",
            NameAsker::Given(_) => "Given(..)",
        })
    }
}

/// What came of one lookup of one kind of records.
enum Found {
    /// There are some.
    Some(Lookup),
    /// The name has none of that kind.
    None,
    /// Nobody knows.
    Failed(String),
}

impl NameAsker {
    /// As a config and the system say.
    pub(super) fn new(config: &ResolverConfig, system: Option<&[u8]>) -> NameAsker {
        match servers::resolver(config, system) {
            Ok(resolver) => {
                // Several servers are asked, two at a time, and over TCP what is too long.
                let asked = u32::try_from(config.servers.len().max(3)).unwrap_or(u32::MAX);
                let patience = config.timeout.saturating_mul(config.attempts).saturating_mul(asked);
                NameAsker::Dns {
                    resolver: Box::new(resolver),
                    patience: patience.min(Duration::from_mins(1)),
                }
            }
            Err(why) => NameAsker::Nobody(why.into()),
        }
    }

    /// Asks once. Of a service, and of each of its hosts, `most` records count.
    ///
    /// # Errors
    /// There is no good answer, and why: no address, or nobody knows.
    pub async fn ask(&self, question: &DnsQuestion, most: usize) -> Result<NameAnswer, String> {
        match self {
            NameAsker::Nobody(why) => Err(why.to_string()),
            NameAsker::Given(answer) => answer(question),
            NameAsker::Dns { resolver, patience } => match question.kind {
                DnsKind::Addresses => addresses(resolver, question, *patience, most).await,
                DnsKind::Services => services(resolver, question, *patience, most).await,
            },
        }
    }
}

/// A and AAAA.
async fn addresses(
    resolver: &TokioResolver,
    question: &DnsQuestion,
    patience: Duration,
    most: usize,
) -> Result<NameAnswer, String> {
    let host = of_host(resolver, &question.name, question.family, patience).await;
    if host.addresses.is_empty() {
        return Err(host.why.unwrap_or_else(|| "the name has no addresses".to_owned()));
    }
    // Which of them count is said where it is known which there were; here only what is absurd ends.
    let shown = host.addresses.len().min(most.saturating_mul(ROOM));
    let heard = host.addresses.iter().take(shown).map(|address| HeardAddress {
        address: SocketAddr::new(*address, 0),
        host: Arc::clone(&question.name),
        priority: 0,
        weight: 0,
    });
    let omitted = host.addresses.len() - shown;
    Ok(NameAnswer { heard: heard.collect(), unheard: host.unheard, ttl: host.ttl, omitted })
}

/// SRV, and the addresses of all hosts that those name.
async fn services(
    resolver: &TokioResolver,
    question: &DnsQuestion,
    patience: Duration,
    most: usize,
) -> Result<NameAnswer, String> {
    let records = match look_up(resolver, &question.name, RecordType::SRV, patience).await {
        Found::Some(records) => records,
        Found::None => return Err("the name has no services".to_owned()),
        Found::Failed(why) => return Err(why),
    };
    let mut answer = NameAnswer { ttl: shortest(&records), ..NameAnswer::default() };
    let (wanted, omitted) = hosts(&records, most);
    answer.omitted = omitted;
    if wanted.is_empty() {
        return Err("the service is said to be nowhere".to_owned());
    }
    let mut unfinished: BTreeSet<Arc<str>> = wanted.keys().cloned().collect();
    let (mut asked, mut tasks, mut why) = (wanted.keys().cloned(), JoinSet::new(), None);
    // Hosts that are silent take nothing from the others.
    let deadline = Instant::now() + patience.saturating_mul(2);
    loop {
        while tasks.len() < HOSTS_AT_ONCE {
            let Some(host) = asked.next() else { break };
            let (resolver, family) = (resolver.clone(), question.family);
            tasks.spawn(async move { (of_host(&resolver, &host, family, patience).await, host) });
        }
        let Ok(Some(done)) = timeout_at(deadline, tasks.join_next()).await else { break };
        let (found, host) = done.map_err(|error| error.to_string())?;
        unfinished.remove(&host);
        if found.addresses.is_empty() {
            why = why.or_else(|| found.why.map(|why| format!("{host}: {why}")));
            // Named, and not there: it is as it was.
            answer.unheard.push(UnheardHost { host, family: AddressFamily::Any });
            continue;
        }
        answer.ttl = answer.ttl.min(found.ttl);
        answer.unheard.extend(found.unheard);
        for address in found.addresses {
            for (port, priority, weight) in wanted.get(&host).into_iter().flatten() {
                if answer.heard.len() >= most.saturating_mul(ROOM) {
                    answer.omitted += 1;
                    continue;
                }
                let address = SocketAddr::new(address, *port);
                answer.heard.push(HeardAddress {
                    address,
                    host: Arc::clone(&host),
                    priority: *priority,
                    weight: *weight,
                });
            }
        }
    }
    let unfinished = unfinished.into_iter();
    answer.unheard.extend(unfinished.map(|host| UnheardHost { host, family: AddressFamily::Any }));
    // The preferred one of several records with one address.
    answer.heard.sort_by(|one, other| {
        (one.address, one.priority, other.weight, &one.host).cmp(&(
            other.address,
            other.priority,
            one.weight,
            &other.host,
        ))
    });
    answer.heard.dedup_by(|one, first| one.address == first.address);
    if answer.heard.is_empty() {
        return Err(why.unwrap_or_else(|| "no host of the service has answered in time".to_owned()));
    }
    Ok(answer)
}

/// Port, priority and weight of the services on each host.
type ByHost = BTreeMap<Arc<str>, Vec<(u16, u16, u16)>>;

/// The hosts of a service, at most so many records; and how many there are more.
fn hosts(records: &Lookup, most: usize) -> (ByHost, usize) {
    let mut all = Vec::new();
    for record in records.answers() {
        if let RData::SRV(service) = &record.data
            // RFC 2782: the root says that the service is not to be had here. Nobody listens at port 0.
            && !service.target.is_root()
            && service.port != 0
        {
            let host: Arc<str> = service.target.to_ascii().to_ascii_lowercase().into();
            all.push((service.priority, std::cmp::Reverse(service.weight), host, service.port));
        }
    }
    all.sort_unstable();
    all.dedup();
    let omitted = all.len().saturating_sub(most);
    let mut by_host = ByHost::new();
    for (priority, std::cmp::Reverse(weight), host, port) in all.into_iter().take(most) {
        by_host.entry(host).or_default().push((port, priority, weight));
    }
    (by_host, omitted)
}

/// The addresses of one host.
struct OfHost {
    addresses: Vec<IpAddr>,
    unheard: Vec<UnheardHost>,
    ttl: Duration,
    /// Why there are none.
    why: Option<String>,
}

async fn of_host(
    resolver: &TokioResolver,
    host: &Arc<str>,
    family: AddressFamily,
    patience: Duration,
) -> OfHost {
    let of = async |wanted: AddressFamily, kind: RecordType| {
        let is_asked = family == AddressFamily::Any || family == wanted;
        if is_asked { look_up(resolver, host, kind, patience).await } else { Found::None }
    };
    let (v4, v6) =
        tokio::join!(of(AddressFamily::V4, RecordType::A), of(AddressFamily::V6, RecordType::AAAA));
    let mut all = OfHost { addresses: Vec::new(), unheard: Vec::new(), ttl: Duration::MAX, why: None };
    let mut seen = HashSet::new();
    for (family, found) in [(AddressFamily::V4, v4), (AddressFamily::V6, v6)] {
        match found {
            Found::None => {}
            Found::Failed(why) => {
                all.why.get_or_insert(why);
                all.unheard.push(UnheardHost { host: Arc::clone(host), family });
            }
            Found::Some(records) => {
                all.ttl = all.ttl.min(shortest(&records));
                // Of the kind that was asked for and of no other.
                let addresses = records.answers().iter().filter_map(|record| match (&record.data, family) {
                    (RData::A(address), AddressFamily::V4) => Some(IpAddr::V4(address.0)),
                    (RData::AAAA(address), AddressFamily::V6) => Some(IpAddr::V6(address.0)),
                    _ => None,
                });
                all.addresses.extend(addresses.filter(|ip| is_usable(*ip) && seen.insert(*ip)));
            }
        }
    }
    all
}

/// Whether a server could be there. Block lists answer with 0.0.0.0; an address of a link says nothing without its link.
fn is_usable(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => {
            let [first, ..] = v4.octets();
            first != 0 && first < 224
        }
        IpAddr::V6(v6) => {
            let is_of_a_link = v6.segments()[0] & 0xffc0 == 0xfe80;
            !v6.is_unspecified() && !v6.is_multicast() && !is_of_a_link && v6.to_ipv4_mapped().is_none()
        }
    }
}

async fn look_up(resolver: &TokioResolver, name: &str, kind: RecordType, patience: Duration) -> Found {
    let Ok(parsed) = Name::from_ascii(name) else {
        return Found::Failed("it is no name that DNS could know".to_owned());
    };
    let Ok(answer) = timeout(patience, resolver.lookup(parsed, kind)).await else {
        return Found::Failed(SILENCE.to_owned());
    };
    match answer {
        Ok(records) => match records.message().metadata.response_code {
            // A chain of other names that ends nowhere has none of that kind.
            ResponseCode::NoError if records.answers().iter().any(|record| record.record_type() == kind) => {
                Found::Some(records)
            }
            ResponseCode::NoError => Found::None,
            code => Found::Failed(refused(code)),
        },
        Err(NetError::Dns(DnsError::NoRecordsFound(none))) => match none.response_code {
            ResponseCode::NoError if none.soa.is_none() && none.ns.is_some() => {
                Found::Failed("the server knows nothing of the name and refers to others (lame)".to_owned())
            }
            ResponseCode::NoError => Found::None,
            code => Found::Failed(refused(code)),
        },
        Err(NetError::Dns(DnsError::ResponseCode(code))) => Found::Failed(refused(code)),
        Err(NetError::Timeout) => Found::Failed(SILENCE.to_owned()),
        Err(NetError::NoConnections) => Found::Failed("no server can be reached".to_owned()),
        Err(NetError::Io(error)) => Found::Failed(format!("no server can be reached: {}", error.kind())),
        // What exactly is wrong with it is up to whoever sends it.
        Err(_) => Found::Failed("what the server says makes no sense".to_owned()),
    }
}

const SILENCE: &str = "no server has answered in time";

fn refused(code: ResponseCode) -> String {
    match code {
        ResponseCode::NXDomain => "the name does not exist (NXDOMAIN)".to_owned(),
        ResponseCode::ServFail => "the server has failed (SERVFAIL)".to_owned(),
        ResponseCode::Refused => "the server refuses (REFUSED)".to_owned(),
        other => format!("the server answers {other}"),
    }
}

/// The shortest TTL, also of the other names that it leads to.
fn shortest(records: &Lookup) -> Duration {
    let seconds = records.answers().iter().map(|record| record.ttl).min();
    Duration::from_secs(seconds.unwrap_or_default().into())
}
