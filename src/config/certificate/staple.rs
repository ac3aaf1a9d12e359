//! Answers of an authority about a certificate that are shown with it (OCSP stapling; RFC 6960, RFC 6066 §8).
//!
//! What is in a file is shown as it is while it is valid. It is read only to know for which certificate it is, until when, and that it says nothing
//! bad: who signed it the client finds out.

use std::path::Path;
use std::sync::Arc;

use rustls::sign::CertifiedKey;
use x509_parser::asn1_rs::{Any, Class, FromDer as _, GeneralizedTime, Tag};
use x509_parser::prelude::X509Certificate;

use super::{read, wrong};
use crate::config::error::Wrong;
use crate::config::model::tls::Staple;

const ANSWER: &str = "an OCSP response in DER about this certificate";

/// Reads the answer in a file, which is to be about `leaf`.
pub(in crate::config) fn staple(file: &Path, certified: &CertifiedKey) -> Result<Staple, Wrong> {
    let bytes = read(file, ANSWER)?;
    let refuse = |why: &str| wrong(file, why, ANSWER);
    let answer = match answer(&bytes) {
        Some(Ok(answer)) => answer,
        Some(Err(status)) => {
            let status = match status {
                1 => "malformed request",
                2 => "internal error",
                3 => "try later",
                5 => "signature required",
                6 => "unauthorized",
                _ => "an unknown status",
            };
            return Err(refuse(&format!("is no answer: the authority has said {status:?}")));
        }
        None => return Err(refuse("is no OCSP response")),
    };
    let leaf = certified.cert.first().and_then(|leaf| X509Certificate::from_der(leaf).ok());
    let serial = leaf.map(|(_, leaf)| leaf.raw_serial().to_vec());
    let of_leaf = answer.into_iter().find(|one| Some(one.serial) == serial.as_deref());
    let Some(Single { says, next_update, .. }) = of_leaf else {
        return Err(refuse("is an answer about another certificate"));
    };
    match says {
        Says::Good => {
            let until = next_update.unwrap_or(i64::MAX);
            let certified = Arc::new(CertifiedKey { ocsp: Some(bytes), ..certified.clone() });
            Ok(Staple { file: file.to_owned(), until, certified })
        }
        Says::Revoked => Err(refuse("says that the certificate is revoked")
            .note("clients that ask for it would refuse this certificate: renew it")),
        Says::Unknown => Err(refuse("says that its authority does not know the certificate")),
    }
}

/// What is said of one certificate.
#[derive(Debug, PartialEq, Eq)]
struct Single<'a> {
    serial: &'a [u8],
    says: Says,
    /// In seconds since 1970.
    next_update: Option<i64>,
}

#[derive(Debug, PartialEq, Eq)]
enum Says {
    Good,
    Revoked,
    Unknown,
}

/// Values one behind the other.
struct Values<'a>(&'a [u8]);

impl<'a> Values<'a> {
    fn next(&mut self) -> Option<Any<'a>> {
        let (rest, any) = Any::from_der(self.0).ok()?;
        self.0 = rest;
        Some(any)
    }

    /// The next one, where it is a sequence.
    fn inside(&mut self) -> Option<Values<'a>> {
        let any = self.next()?;
        (any.header.tag() == Tag::Sequence).then_some(Values(any.data))
    }

    /// The next one that is no `[number]`, of which there may be one before.
    fn behind(&mut self, number: u32) -> Option<Any<'a>> {
        let any = self.next()?;
        if is_context(&any, number) { self.next() } else { Some(any) }
    }
}

fn is_context(any: &Any<'_>, number: u32) -> bool {
    any.header.class() == Class::ContextSpecific && any.header.tag().0 == number
}

/// What a response says of which certificates; in `Err` its status, where it is none of success. `None`: it is none.
fn answer(bytes: &[u8]) -> Option<Result<Vec<Single<'_>>, u8>> {
    let mut whole = Values(bytes);
    let mut response = whole.inside().filter(|_| whole.0.is_empty())?;
    let status = response.next().filter(|any| any.header.tag() == Tag::Enumerated)?;
    match status.data {
        [0] => {}
        [status] => return Some(Err(*status)),
        _ => return None,
    }
    let held = response.next().filter(|any| is_context(any, 0))?;
    let mut held = Values(held.data).inside()?;
    // Which form it has: there is one in use.
    held.next()?;
    let basic = held.next().filter(|any| any.header.tag() == Tag::OctetString)?;
    let mut data = Values(basic.data).inside()?.inside()?;
    // The version, who has answered, and when.
    data.behind(0)?;
    data.next()?;
    let mut all = data.inside()?;
    let mut singles = Vec::new();
    while !all.0.is_empty() {
        let mut single = all.inside()?;
        let mut id = single.inside()?;
        // How the issuer is hashed, its name, and its key.
        (0..3).try_for_each(|_| id.next().map(|_| ()))?;
        let serial = id.next().filter(|any| any.header.tag() == Tag::Integer)?.data;
        let says = single.next().filter(|any| any.header.class() == Class::ContextSpecific)?;
        let says = match says.header.tag().0 {
            0 => Says::Good,
            1 => Says::Revoked,
            2 => Says::Unknown,
            _ => return None,
        };
        // Since when.
        single.next()?;
        let next = single.next().filter(|any| is_context(any, 0));
        let next_update = match next {
            Some(next) => Some(time(next.data)?),
            None => None,
        };
        singles.push(Single { serial, says, next_update });
    }
    Some(Ok(singles))
}

fn time(bytes: &[u8]) -> Option<i64> {
    let (_, time) = GeneralizedTime::from_der(bytes).ok()?;
    Some(time.utc_datetime().ok()?.unix_timestamp())
}

#[cfg(test)]
pub(in crate::config) mod tests;
