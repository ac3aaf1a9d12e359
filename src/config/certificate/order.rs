//! Whether the certificates of a chain belong together, in their order.
//!
//! A client that knows the root has to find its way there: each certificate is followed by that of its issuer (RFC 5246 §7.4.2; RFC 8446 §4.4.2
//! forgives another order, and many clients don't). What a client may know nobody can tell here, so only what is certain is
//! wrong: an order in which issuers come before those whom they have issued, a gap, and a certificate without its
//! intermediate that says itself where that is.

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, GeneralName, ParsedExtension, X509Certificate};
use x509_parser::x509::X509Name;

use super::name::shown_name;
use crate::config::error::quoted;

/// The place of an issuer's certificate: caIssuers (RFC 5280 §4.2.2.1).
const CA_ISSUERS: &str = "1.3.6.1.5.5.7.48.2";

/// SignedCertificateTimestampList.
const LOGGED: &str = "1.3.6.1.4.1.11129.2.4.2";

/// What is wrong with a chain, as a predicate, and what would be right.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Disorder {
    pub(super) why: String,
    pub(super) cure: String,
    /// It may be meant like this.
    pub(super) is_doubtful: bool,
}

/// Looks for it. `is_root`: whether clients of this machine know a root of this name (in DER).
pub(super) fn disorder(
    chain: &[CertificateDer<'_>],
    is_root: impl FnOnce(&[u8]) -> bool,
) -> Option<Disorder> {
    let parsed: Vec<X509Certificate<'_>> =
        chain.iter().filter_map(|one| Some(X509Certificate::from_der(one).ok()?.1)).collect();
    let first = parsed.first().filter(|_| parsed.len() == chain.len())?;
    if parsed.len() == 1 {
        let place = ca_issuers(first).filter(|_| !is_self_issued(first))?;
        // What public logs have seen a public authority has issued, and none of those does so without an intermediate. Another one may
        // well be a root that clients know.
        let is_doubtful = !is_logged(first);
        let found = || Disorder { is_doubtful, ..without(1, first, Some(place)) };
        return (!is_root(first.issuer().as_raw())).then(found);
    }
    // From the first one on, each behind those that it has issued.
    let mut order = vec![0];
    let mut at = 0;
    while let Some(&child) = order.get(at) {
        let next = (1..parsed.len()).filter(|place| has_issued(&parsed[*place], &parsed[child]));
        let next: Vec<usize> = next.filter(|place| !order.contains(place)).collect();
        order.extend(next);
        at += 1;
    }
    let strange = (1..parsed.len()).find(|place| !order.contains(place));
    let open = order.iter().find(|place| {
        let one = &parsed[**place];
        !is_self_issued(one) && !parsed.iter().any(|other| has_issued(other, one))
    });
    if let Some(strange) = strange {
        // Behind a root nothing is looked for.
        let open = *open?;
        if is_root(parsed[open].issuer().as_raw()) {
            let name = shown(parsed[strange].subject());
            return Some(Disorder {
                why: format!("has {name} (certificate {}), which has issued none of the others", strange + 1),
                cure: "remove it: nobody needs it".to_owned(),
                is_doubtful: true,
            });
        }
        return Some(match ca_issuers(&parsed[open]) {
            place @ Some(_) => without(open + 1, &parsed[open], place),
            None => {
                let missing = without(open + 1, &parsed[open], None);
                let name = shown(parsed[strange].subject());
                let why = format!("{}, and has {name} (certificate {}) instead", missing.why, strange + 1);
                Disorder { why, ..missing }
            }
        });
    }
    let early = (1..parsed.len())
        .find(|&place| !parsed[..place].iter().any(|earlier| has_issued(&parsed[place], earlier)))?;
    let child = (early + 1..parsed.len()).find(|&place| has_issued(&parsed[early], &parsed[place]))?;
    let right: Vec<String> = order.iter().map(|place| (place + 1).to_string()).collect();
    Some(Disorder {
        why: format!(
            "has its chain in the wrong order: certificate {} is followed by certificate {}, which it has issued",
            early + 1,
            child + 1
        ),
        cure: format!("each certificate is followed by that of its issuer: {}", right.join(", ")),
        is_doubtful: false,
    })
}

/// A chain in which the certificate of this number has no issuer.
fn without(number: usize, one: &X509Certificate<'_>, place: Option<String>) -> Disorder {
    let issuer = shown(one.issuer());
    let cure = match place {
        Some(place) => format!("its certificate is at {place}: add it behind the others, as PEM"),
        None => "add its certificate behind the one that it has issued".to_owned(),
    };
    let which = if number == 1 { "its certificate".to_owned() } else { format!("certificate {number}") };
    let why = format!("lacks the intermediate {issuer}, which has issued {which}");
    Disorder { why, cure, is_doubtful: false }
}

/// It bears the marks of public logs (RFC 6962 §3.3).
fn is_logged(one: &X509Certificate<'_>) -> bool {
    one.extensions().iter().any(|extension| extension.oid.to_id_string() == LOGGED)
}

fn is_self_issued(one: &X509Certificate<'_>) -> bool {
    one.subject().as_raw() == one.issuer().as_raw()
}

/// By names, and by the numbers of keys where both say them.
fn has_issued(issuer: &X509Certificate<'_>, one: &X509Certificate<'_>) -> bool {
    if one.issuer().as_raw() != issuer.subject().as_raw() || std::ptr::eq(issuer, one) {
        return false;
    }
    let own = issuer.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0),
        _ => None,
    });
    let wanted = one.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(key) => key.key_identifier.as_ref().map(|key| key.0),
        _ => None,
    });
    match (own, wanted) {
        (Some(own), Some(wanted)) => own == wanted,
        _ => true,
    }
}

/// Where it says that its issuer's certificate is.
fn ca_issuers(one: &X509Certificate<'_>) -> Option<String> {
    one.extensions().iter().find_map(|extension| {
        let ParsedExtension::AuthorityInfoAccess(access) = extension.parsed_extension() else { return None };
        access.accessdescs.iter().find_map(|access| match &access.access_location {
            GeneralName::URI(uri) if access.access_method.to_id_string() == CA_ISSUERS => {
                let is_plain = uri.starts_with("http")
                    && uri.len() <= 300
                    && uri.bytes().all(|byte| byte.is_ascii_graphic());
                is_plain.then(|| (*uri).to_owned())
            }
            _ => None,
        })
    })
}

fn shown(name: &X509Name<'_>) -> String {
    quoted(&shown_name(name))
}

#[cfg(test)]
mod tests;
