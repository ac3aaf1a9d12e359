//! One question to DNS, and what is made of the answer.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::answer::{HeardAddress, NameAnswer, UnheardHost};
use super::servers;
use crate::config::model::discovery::{AddressFamily, DnsKind, DnsQuestion, ResolverConfig};

/// Hosts of a service that are asked for at a time.
const HOSTS_AT_ONCE: usize = 16;

/// A function that answers.
type Given = dyn Fn(&DnsQuestion) -> Result<NameAnswer, String> + Send + Sync;

/// Who asks.
#[derive(Clone)]
pub enum NameAsker {
    /// DNS is asked.
    Dns {
        /// Through this.
        resolver: Box<TokioResolver>,
        /// Longer than this nobody waits for one question.
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

    /// Asks once.
    ///
    /// # Errors
    /// There is no good answer, and why: no address, or nobody knows.
    pub async fn ask(&self, question: &DnsQuestion) -> Result<NameAnswer, String> {
        match self {
            NameAsker::Nobody(why) => Err(why.to_string()),
            NameAsker::Given(answer) => answer(question),
            NameAsker::Dns { resolver, patience } => {
                let asking = async {
                    match question.kind {
                        DnsKind::Addresses => addresses(resolver, question).await,
                        DnsKind::Services => services(resolver, question).await,
                    }
                };
                let late = || format!("no answer within {}", humantime::format_duration(*patience));
                timeout(*patience, asking).await.unwrap_or_else(|_| Err(late()))
            }
        }
    }
}

/// A and AAAA.
async fn addresses(resolver: &TokioResolver, question: &DnsQuestion) -> Result<NameAnswer, String> {
    let host = of_host(resolver, &question.name, question.family).await;
    if host.addresses.is_empty() {
        return Err(host.why.unwrap_or_else(|| "the name has no addresses".to_owned()));
    }
    let heard = host.addresses.iter().map(|address| HeardAddress {
        address: SocketAddr::new(*address, 0),
        host: Arc::clone(&question.name),
        priority: 0,
        weight: 0,
    });
    Ok(NameAnswer { heard: heard.collect(), unheard: host.unheard, ttl: host.ttl })
}

/// SRV, and the addresses of all hosts that those name.
async fn services(resolver: &TokioResolver, question: &DnsQuestion) -> Result<NameAnswer, String> {
    let records = match look_up(resolver, &question.name, RecordType::SRV).await {
        Found::Some(records) => records,
        Found::None => return Err("the name has no services".to_owned()),
        Found::Failed(why) => return Err(why),
    };
    let mut ttl = shortest(&records);
    let mut wanted: BTreeMap<Arc<str>, Vec<(u16, u16, u16)>> = BTreeMap::new();
    for record in records.answers() {
        if let RData::SRV(service) = &record.data
            // RFC 2782: the root says that the service is not to be had here.
            && !service.target.is_root()
        {
            let host: Arc<str> = service.target.to_ascii().into();
            wanted.entry(host).or_default().push((service.port, service.priority, service.weight));
        }
    }
    if wanted.is_empty() {
        return Err("the service is said to be nowhere".to_owned());
    }
    let mut answer = NameAnswer::default();
    let (mut asked, mut tasks, mut why) = (wanted.keys().cloned(), JoinSet::new(), None);
    loop {
        while tasks.len() < HOSTS_AT_ONCE {
            let Some(host) = asked.next() else { break };
            let (resolver, family) = (resolver.clone(), question.family);
            tasks.spawn(async move { (of_host(&resolver, &host, family).await, host) });
        }
        let Some(done) = tasks.join_next().await else { break };
        let (found, host) = done.map_err(|error| error.to_string())?;
        if !found.addresses.is_empty() {
            ttl = ttl.min(found.ttl);
        } else {
            why = why.or_else(|| found.why.map(|why| format!("{host}: {why}")));
            // Named, and not there: it is as it was.
            answer.unheard.push(UnheardHost { host: Arc::clone(&host), family: AddressFamily::Any });
        }
        answer.unheard.extend(found.unheard);
        for address in found.addresses {
            for (port, priority, weight) in wanted.get(&host).into_iter().flatten() {
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
        return Err(why.unwrap_or_else(|| "no host of the service has an address".to_owned()));
    }
    Ok(NameAnswer { ttl, ..answer })
}

/// The addresses of one host.
struct OfHost {
    addresses: Vec<std::net::IpAddr>,
    unheard: Vec<UnheardHost>,
    ttl: Duration,
    /// Why there are none.
    why: Option<String>,
}

async fn of_host(resolver: &TokioResolver, host: &Arc<str>, family: AddressFamily) -> OfHost {
    let of = async |wanted: AddressFamily, kind: RecordType| {
        let is_asked = family == AddressFamily::Any || family == wanted;
        if is_asked { look_up(resolver, host, kind).await } else { Found::None }
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
                let addresses = records.answers().iter().filter_map(|record| record.data.ip_addr());
                all.addresses.extend(
                    addresses.map(|ip| ip.to_canonical()).filter(|ip| is_usable(*ip) && seen.insert(*ip)),
                );
            }
        }
    }
    all
}

/// Whether anybody could be connected to there. Block lists answer with 0.0.0.0.
fn is_usable(ip: std::net::IpAddr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast()
}

async fn look_up(resolver: &TokioResolver, name: &str, kind: RecordType) -> Found {
    let parsed = match Name::from_ascii(name) {
        Ok(parsed) => parsed,
        Err(error) => return Found::Failed(error.to_string()),
    };
    match resolver.lookup(parsed, kind).await {
        Ok(records) if records.answers().iter().any(|record| record.record_type() == kind) => {
            Found::Some(records)
        }
        // A chain of other names that ends nowhere.
        Ok(_) => Found::None,
        Err(NetError::Dns(DnsError::NoRecordsFound(none))) => match none.response_code {
            ResponseCode::NoError if none.soa.is_none() && none.ns.is_some() => {
                Found::Failed("the server knows nothing of the name and refers to others (lame)".to_owned())
            }
            ResponseCode::NoError => Found::None,
            ResponseCode::NXDomain => Found::Failed("the name does not exist (NXDOMAIN)".to_owned()),
            code => Found::Failed(refused(code)),
        },
        Err(NetError::Dns(DnsError::ResponseCode(code))) => Found::Failed(refused(code)),
        Err(NetError::Timeout) => Found::Failed("no server has answered in time".to_owned()),
        Err(NetError::NoConnections) => Found::Failed("no server can be reached".to_owned()),
        Err(NetError::Io(error)) => Found::Failed(error.to_string()),
        Err(error) => Found::Failed(error.to_string()),
    }
}

fn refused(code: ResponseCode) -> String {
    match code {
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
