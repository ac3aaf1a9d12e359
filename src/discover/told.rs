//! Addresses of names as one process tells the one that comes into its place.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answer::HeardAddress;
use super::shared::{NameFinding, ToldAddresses};
use crate::config::model::discovery::{AddressFamily, DnsKind, DnsQuestion};

/// All names of which addresses are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldNames(Vec<ToldName>);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ToldName {
    name: String,
    is_service: bool,
    family: String,
    addresses: Vec<ToldNameAddress>,
    ttl_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ToldNameAddress {
    address: SocketAddr,
    host: String,
    priority: u16,
    weight: u16,
    /// For how long good answers have lacked it.
    absent_ms: Option<u64>,
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl ToldNames {
    /// Of what they have come to.
    #[must_use]
    pub fn of(findings: Vec<NameFinding>) -> ToldNames {
        let told = |NameFinding { question, known, .. }: NameFinding| {
            let address = |(heard, absent): (HeardAddress, Option<Duration>)| ToldNameAddress {
                address: heard.address,
                host: heard.host.to_string(),
                priority: heard.priority,
                weight: heard.weight,
                absent_ms: absent.map(millis),
            };
            ToldName {
                name: question.name.to_string(),
                is_service: question.kind == DnsKind::Services,
                family: question.family.as_str().to_owned(),
                addresses: known.heard.into_iter().map(address).collect(),
                ttl_ms: millis(known.ttl),
            }
        };
        let known = findings.into_iter().filter(|finding| !finding.known.heard.is_empty());
        ToldNames(known.map(told).collect())
    }

    /// Each of them, with what is known.
    pub(super) fn into_known(self) -> impl Iterator<Item = (DnsQuestion, ToldAddresses)> {
        self.0.into_iter().filter_map(|told| {
            let (_, family) = *AddressFamily::ALL.iter().find(|(name, _)| *name == told.family)?;
            let kind = if told.is_service { DnsKind::Services } else { DnsKind::Addresses };
            let heard = |one: ToldNameAddress| {
                let ToldNameAddress { address, host, priority, weight, absent_ms } = one;
                let heard = HeardAddress { address, host: host.into(), priority, weight };
                (heard, absent_ms.map(Duration::from_millis))
            };
            let heard = told.addresses.into_iter().map(heard).collect();
            let known = ToldAddresses { heard, ttl: Duration::from_millis(told.ttl_ms) };
            Some((DnsQuestion { name: told.name.into(), kind, family }, known))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::shared::NameAsked;

    #[test]
    fn what_is_told_of_a_name_is_what_is_known() {
        let question = DnsQuestion {
            name: "_web._tcp.a.test".into(),
            kind: DnsKind::Services,
            family: AddressFamily::V4,
        };
        let heard = |address: &str, absent| {
            let (address, host) = (address.parse().unwrap(), "b.test".into());
            (HeardAddress { address, host, priority: 1, weight: 7 }, absent)
        };
        let known = ToldAddresses {
            heard: vec![heard("192.0.2.1:80", None), heard("192.0.2.2:80", Some(Duration::from_secs(3)))],
            ttl: Duration::from_secs(30),
        };
        let unknown = NameFinding {
            question: DnsQuestion::default(),
            known: ToldAddresses::default(),
            asked: NameAsked::NotYet,
        };
        let finding =
            NameFinding { question: question.clone(), known: known.clone(), asked: NameAsked::Good };
        let told = ToldNames::of(vec![finding, unknown]);
        let told: ToldNames = serde_json::from_str(&serde_json::to_string(&told).unwrap()).unwrap();
        assert_eq!(told.into_known().collect::<Vec<_>>(), [(question, known)]);
    }
}
