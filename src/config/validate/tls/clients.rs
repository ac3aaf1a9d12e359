//! What is asked of clients' certificates.

use std::path::PathBuf;

use super::super::show::name_of;
use super::trusted::authorities;
use crate::config::certificate::revoked;
use crate::config::effective::{EffectiveRows, number_of};
use crate::config::error::{Wrong, quoted};
use crate::config::model::tls::{Authorities, ClientAuth, ClientCertificates, ExpiredList, Revoked};
use crate::config::origin::{Field, Written};
use crate::config::raw::RawTls;
use crate::config::report::Report;

/// What the keys of `tls` say about it; `None`: clients need none.
pub(super) fn accept(
    tls: &RawTls,
    report: &mut Report,
    rows: &mut EffectiveRows,
    path: &impl Fn(&str) -> String,
) -> Option<ClientCertificates> {
    let Some(file) = &tls.client_ca else {
        let auth = tls.client_auth.as_ref().map(|written| ("client_auth", &written.spot));
        let lists = match &tls.client_crl {
            Field::Given(written) => Some(("client_crl", &written.spot)),
            Field::Absent | Field::Faulty => None,
        };
        let expired = tls.client_crl_expired.as_ref().map(|written| ("client_crl_expired", &written.spot));
        for (key, spot) in [auth, lists, expired].into_iter().flatten() {
            report
                .spot(spot, format!("`{key}` has no effect without `client_ca`"))
                .note("add `client_ca: ca.pem`, the certificates of those who may issue client certificates");
        }
        return None;
    };
    let authorities = authorities(file, "`client_ca`", report, rows, path("client_ca"));
    let auth = rows.settle(path("client_auth"), tls.client_auth.as_ref(), ClientAuth::Required, |auth| {
        name_of(ClientAuth::ALL, *auth).to_owned()
    });
    let revoked = match &tls.client_crl {
        Field::Given(written) => revoked(tls, written, authorities.as_ref(), report, rows, path),
        Field::Faulty => None,
        Field::Absent => {
            if let Some(written) = &tls.client_crl_expired {
                report
                    .spot(&written.spot, "`client_crl_expired` has no effect without `client_crl`")
                    .note("add `client_crl: crl.pem`, or remove it");
            }
            None
        }
    };
    authorities.map(|authorities| ClientCertificates { authorities, auth, revoked })
}

/// Which of them are revoked.
fn revoked(
    tls: &RawTls,
    written: &Written<Vec<Written<PathBuf>>>,
    authorities: Option<&Authorities>,
    report: &mut Report,
    rows: &mut EffectiveRows,
    path: &impl Fn(&str) -> String,
) -> Option<Revoked> {
    let count = written.value.len();
    let (mut lists, mut is_whole) = (Vec::new(), true);
    for (index, file) in written.value.iter().enumerate() {
        let of_file = match revoked::lists(&file.value) {
            Ok(of_file) => of_file,
            Err(wrong) => {
                report.wrong(&file.spot, "`client_crl`", wrong);
                is_whole = false;
                continue;
            }
        };
        let place = if count > 1 { format!("[{index}]") } else { String::new() };
        let content = number_of(of_file.iter().map(|list| list.der.as_ref()));
        let path = path(&format!("client_crl{place}"));
        rows.note_file(path, &file.value, file.spot.origin.clone(), Some(content));
        let Some(authorities) = authorities else { continue };
        let name = quoted(&file.value.display().to_string());
        if let Some(forged) = of_file.iter().find(|list| revoked::is_forged(list, &authorities.certificates))
        {
            let wrong = Wrong::new(
                format!("is {name}, which does not bear the signature of {}", quoted(&forged.issuer)),
                "lists that authorities in `client_ca` have signed",
            );
            report.wrong(&file.spot, "`client_crl`", wrong);
            is_whole = false;
            continue;
        }
        for list in of_file.iter().filter(|list| !revoked::is_of(list, &authorities.certificates)) {
            let message = format!(
                "the revocation list {name} is one of {}, who is none of those in `client_ca`: it counts where clients send that one's certificate along with theirs",
                quoted(&list.issuer)
            );
            report.warn(&file.spot, &message);
        }
        lists.extend(of_file);
    }
    let expired = rows.settle(
        path("client_crl_expired"),
        tls.client_crl_expired.as_ref(),
        ExpiredList::Keep,
        |expired| name_of(ExpiredList::ALL, *expired).to_owned(),
    );
    is_whole.then_some(Revoked { lists, expired })
}
