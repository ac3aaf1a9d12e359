//! A certificate that is ordered.

use std::sync::Arc;

use super::acme::{AcmeTerms, is_private};
use crate::config::certificate::stand_in::stand_in;
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::tls::acme::{AcmeChallenge, OrderedCertificate};
use crate::config::origin::{Origin, Spot};
use crate::config::raw::RawOrdered;
use crate::config::report::Report;

/// Makes it; `None`: there is a fault, which has been reported.
pub(super) fn accept(
    raw: &RawOrdered,
    terms: &AcmeTerms,
    report: &mut Report,
    rows: &mut EffectiveRows,
    path: &str,
) -> Option<Arc<OrderedCertificate>> {
    let names = &raw.names.value;
    let spot = &raw.names.spot;
    rows.note(format!("{path}acme"), format!("[{}]", names.join(", ")), spot.origin.clone());
    let wildcard = names.iter().find(|name| name.starts_with("*."));
    let usual = terms.usual_challenge(wildcard.is_some());
    let challenge = raw.challenge.as_ref().map_or(usual, |written| written.value);
    let origin = |spot: Option<&Spot>| spot.map_or(Origin::Default, |spot| spot.origin.clone());
    let of_challenge = raw.challenge.as_ref().map(|written| &written.spot);
    rows.note(format!("{path}challenge"), challenge.name(), origin(of_challenge));
    let key = raw.key.as_ref().map_or(terms.key, |written| written.value);
    let of_key = raw.key.as_ref().map(|written| &written.spot);
    rows.note(format!("{path}key_type"), key.name(), origin(of_key));
    let at = of_challenge.unwrap_or(spot);
    match (challenge, wildcard) {
        (AcmeChallenge::Dns01, _) if terms.has_hook => {}
        (AcmeChallenge::Dns01, Some(wildcard)) => {
            let message =
                format!("{} is proven by `dns-01` alone, and nothing adds records to DNS", quoted(wildcard));
            report.spot(at, message).expected("`dns_hook: PROGRAM` in the top level's `acme`");
        }
        (AcmeChallenge::Dns01, None) => {
            report
                .spot(at, "`challenge: dns-01` needs somebody who adds records to DNS")
                .expected("`dns_hook: PROGRAM` in the top level's `acme`");
        }
        (AcmeChallenge::Http01 | AcmeChallenge::TlsAlpn01, Some(wildcard)) => {
            let message = format!("{} can't be proven by `{}`", quoted(wildcard), challenge.name());
            report.spot(at, message).note("names with a star are proven by `challenge: dns-01` alone");
        }
        (AcmeChallenge::Http01, None) if !terms.has_plain_http => {
            let message = "`http-01` is answered where plain HTTP is spoken, and no listener speaks it";
            report.spot(at, message).expected(
                "a listener with `protocol: http` that port 80 leads to, or `challenge: tls-alpn-01`",
            );
        }
        (AcmeChallenge::Http01 | AcmeChallenge::TlsAlpn01, None) => {}
    }
    let mut is_issued = true;
    if let Some(authority) = terms.public {
        for name in names {
            let Some(why) = is_private(name) else { continue };
            is_issued = false;
            let message = format!("{authority} issues no certificate for {}, which {why}", quoted(name));
            report.spot(spot, message).note(
                "an authority of your own does: `acme: {directory: https://ca.internal/acme/directory}`",
            );
        }
    }
    is_issued.then(|| {
        let stand_in = stand_in(names);
        Arc::new(OrderedCertificate { names: names.clone(), key, challenge, stand_in })
    })
}
