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

fn is_of_users(text: &str) -> bool {
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
