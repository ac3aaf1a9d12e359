//! Why a request ended as it did, in words for whoever runs this, and which keys of the config had a say in it.

use crate::config::model::GrpcStatus;
use crate::message::{Cause, RecordKind};
use crate::telemetry::recorder::{KeptFor, KeptRequest};

use super::steps::{beginning, millis};

/// One or two sentences.
pub(super) fn verdict(kept: &KeptRequest) -> String {
    let record = &kept.record;
    let first = match record.cause {
        Cause::Done if record.status >= 400 && !kept.backends.is_empty() => {
            format!("The backend answered {}, which was passed on.", record.status)
        }
        Cause::Done => match record.grpc {
            Some(ended) if ended != GrpcStatus::Ok => {
                format!("The call ended with {} ({}), by the backend's word.", ended.name(), ended as u8)
            }
            _ => "It went well.".to_owned(),
        },
        cause => cause.text().to_owned(),
    };
    let tried = record.kept_attempts().iter().zip(&kept.backends);
    let failed: Vec<String> = tried
        .filter(|(attempt, _)| attempt.outcome != Cause::Done)
        .map(|(attempt, backend)| format!("`{backend}` ({})", attempt.outcome))
        .collect();
    let more = match (record.cause, &failed[..]) {
        (_, []) => String::new(),
        (Cause::Done, failed) => format!(" Before that it was tried on {}.", failed.join(", ")),
        (_, failed) => format!(" It was tried on {}.", failed.join(", ")),
    };
    let slow = match (kept.kept_for, record.kind) {
        (KeptFor::Slow, RecordKind::Http) => {
            let took = millis(beginning(record), record.done);
            format!(
                " With {took} ms it took longer than 99 of 100 requests to its target within the last minute."
            )
        }
        _ => String::new(),
    };
    first + &more + &slow
}

/// The keys that decide whether something ends for this cause, as they stand at a route, a listener or a target.
pub(super) const fn deciding(cause: Cause) -> &'static [&'static str] {
    match cause {
        Cause::HeadTooLarge | Cause::TargetTooLong => &["limits.head_size"],
        Cause::TooManyHeaders => &["limits.headers"],
        Cause::BodyTooLarge => &["limits.body"],
        Cause::HeadTimeout => &["timeouts.head"],
        Cause::ProxyProtocol | Cause::ProxySender | Cause::BadProxyHeader => &["proxy_protocol"],
        Cause::ProxyTimeout => &["timeouts.head", "proxy_protocol"],
        Cause::UnknownSni => &["passthrough", "tls.unknown_sni"],
        Cause::TlsTimeout | Cause::UpstreamTlsTimeout => &["timeouts.tls"],
        Cause::BodyTimeout => &["timeouts.idle", "limits.body_rate"],
        Cause::GrpcTimeout => &["upstream_protocol"],
        Cause::ClientStalled | Cause::AnswerStalled => &["timeouts.idle"],
        Cause::ClientCertificate => &["tls.client_auth", "tls.client_ca"],
        Cause::NeedsHttp11 => &["http2"],
        Cause::NoRoute => &["default_host"],
        Cause::MisdirectedRequest => &["tls.certificates", "http2"],
        Cause::OnlyIfCached => &["cache"],
        Cause::BadPath => &["normalize"],
        Cause::AccessDenied => &["access"],
        Cause::TokenMissing
        | Cause::TokenMalformed
        | Cause::TokenSignature
        | Cause::TokenExpired
        | Cause::TokenClaims
        | Cause::TokenKeys
        | Cause::AuthRequired
        | Cause::AuthMalformed
        | Cause::AuthFailed
        | Cause::AuthBusy
        | Cause::AuthDenied
        | Cause::AuthUnavailable
        | Cause::AuthTimeout
        | Cause::AuthAnswer => &["auth"],
        Cause::RateLimited => &["rate_limit"],
        Cause::NoBackend | Cause::NoVerdict => &["health_check"],
        Cause::BreakerOpen => &["breaker"],
        Cause::QueueFull => &["max_in_flight", "queue"],
        Cause::QueueTimeout => &["max_in_flight", "timeouts.queue"],
        Cause::TotalTimeout => &["timeouts.total"],
        Cause::TooManyFromClient => &["limits.connections_per_client"],
        Cause::TooManyConnections => &["limits.connections"],
        Cause::ConnectFailed => &["retries"],
        Cause::ConnectTimeout => &["timeouts.connect"],
        Cause::UpstreamTls
        | Cause::UpstreamTlsName
        | Cause::UpstreamTlsExpired
        | Cause::UpstreamTlsIssuer
        | Cause::UpstreamTlsRefused
        | Cause::UpstreamNotTls => &["upstream_tls"],
        Cause::FirstByteTimeout => &["timeouts.first_byte"],
        Cause::AttemptTimeout => &["timeouts.attempt"],
        Cause::ErrorStatus => &["retries.on"],
        Cause::BadUpgrade => &["upgrade"],
        Cause::TunnelIdle => &["timeouts.tunnel"],
        Cause::Drained => &["drain_timeout"],
        Cause::Done
        | Cause::BadHead
        | Cause::BadHost
        | Cause::BadLength
        | Cause::LengthConflict
        | Cause::BadTransferEncoding
        | Cause::UnknownTransferCoding
        | Cause::BadChunk
        | Cause::BadVersion
        | Cause::TlsHello
        | Cause::BadFrame
        | Cause::Http2Flood
        | Cause::Http2Preface
        | Cause::ConnectMethod
        | Cause::PlainHttp
        | Cause::TlsHandshake
        | Cause::ClientGone
        | Cause::Blocked
        | Cause::LocalShortage
        | Cause::NoLocalPort
        | Cause::Shutdown
        | Cause::Internal
        | Cause::BackendClosed
        | Cause::BadAnswer
        | Cause::BadAnswerBody
        | Cause::AnswerCut
        | Cause::FieldDropped
        | Cause::MirrorFull
        | Cause::MirrorTooLong
        | Cause::MirrorUnfinished
        | Cause::MirrorCut
        | Cause::Overtaken => &[],
    }
}
