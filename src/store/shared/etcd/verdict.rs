//! What an error of etcd means.

use std::error::Error as _;

use tonic::{Code, Status};

use super::line::of_http;
use crate::store::shared::{Revision, StoreFault};

/// What is done about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EtcdVerdict {
    /// Asking another member may help.
    Again {
        /// Nobody has done anything about what was asked.
        is_unheard: bool,
        /// In words.
        why: String,
    },
    /// It is told.
    Final(StoreFault),
}

/// What `status` means.
pub(super) fn verdict(status: &Status) -> EtcdVerdict {
    let text = words(status);
    let again = |is_unheard: bool| EtcdVerdict::Again { is_unheard, why: text.clone() };
    match status.code() {
        Code::PermissionDenied | Code::Unauthenticated => EtcdVerdict::Final(StoreFault::Refused(text)),
        Code::NotFound if text.contains("lease") => EtcdVerdict::Final(StoreFault::LeaseOver),
        Code::OutOfRange if text.contains("compacted") => EtcdVerdict::Final(StoreFault::Compacted(0)),
        Code::ResourceExhausted if text.contains("space") => EtcdVerdict::Final(StoreFault::Full(text)),
        // It says so before it begins.
        Code::ResourceExhausted => again(true),
        // Rights of users are told as this where there are users, and we come without a certificate.
        Code::InvalidArgument | Code::FailedPrecondition if is_of_users(&text) => {
            EtcdVerdict::Final(StoreFault::Refused(text))
        }
        Code::InvalidArgument | Code::FailedPrecondition | Code::Unimplemented | Code::AlreadyExists => {
            EtcdVerdict::Final(StoreFault::Unfit(text))
        }
        // Nobody was connected to: there is no one who could have heard.
        Code::Unavailable if status.source().is_none() && !text.starts_with("etcdserver") => again(true),
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::NotFound
        | Code::Aborted
        | Code::OutOfRange
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => again(false),
    }
}

pub(super) fn is_of_users(text: &str) -> bool {
    text.contains("user name") || text.contains("auth")
}

/// Changes up to here are not known any more.
pub(super) fn compacted(revision: Revision) -> StoreFault {
    StoreFault::Compacted(revision)
}

fn words(status: &Status) -> String {
    match status.source() {
        Some(source) if status.message().is_empty() || status.code() == Code::Unknown => of_http(source),
        _ => status.message().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_etcd_are_told_apart() {
        let of = |code: Code, text: &str| verdict(&Status::new(code, text));
        let fault = |code: Code, text: &str| match of(code, text) {
            EtcdVerdict::Final(fault) => fault,
            again @ EtcdVerdict::Again { .. } => panic!("{text}: {again:?}"),
        };
        assert!(matches!(
            fault(Code::PermissionDenied, "etcdserver: permission denied"),
            StoreFault::Refused(_)
        ));
        assert!(matches!(
            fault(Code::InvalidArgument, "etcdserver: user name is empty"),
            StoreFault::Refused(_)
        ));
        assert!(matches!(
            fault(Code::Unauthenticated, "etcdserver: invalid auth token"),
            StoreFault::Refused(_)
        ));
        assert_eq!(fault(Code::NotFound, "etcdserver: requested lease not found"), StoreFault::LeaseOver);
        assert!(matches!(
            fault(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
            StoreFault::Full(_)
        ));
        assert!(matches!(
            fault(Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted"),
            StoreFault::Compacted(_)
        ));
        assert!(matches!(
            fault(Code::InvalidArgument, "etcdserver: duplicate key given in txn request"),
            StoreFault::Unfit(_)
        ));
        // Whoever was asked may have done it, unless there was nobody, or he says that he has not begun.
        for (code, text, is_unheard) in [
            (Code::Unavailable, "etcdserver: leader changed", false),
            (Code::Unavailable, "connection refused", true),
            (Code::DeadlineExceeded, "no answer in time", false),
            (Code::Unknown, "connection reset", false),
            (Code::ResourceExhausted, "etcdserver: too many requests", true),
        ] {
            assert_eq!(of(code, text), EtcdVerdict::Again { is_unheard, why: text.to_owned() });
        }
    }
}
