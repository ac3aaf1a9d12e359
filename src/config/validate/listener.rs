//! The listener of an entry of `listeners`, or of a target in the short form, without its routes.

mod proxy_protocol;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::gate::access;
use super::owner::KeyOwner;
use super::show::name_of;
use super::top_level::TopLevel;
use super::{bounds, folder, http2, tls};
use crate::config::effective::EffectiveRows;
use crate::config::model::route::{DotSegments, EncodedSlash};
use crate::config::model::{Bind, ClientTimeouts, Forwarded, ListenerConfig, Normalize, Protocol};
use crate::config::origin::Field;
use crate::config::raw::{BindHost, RawListener, Spoken};
use crate::config::report::Report;

/// Makes the listener of `owner`, on which `spoken` is spoken. `client`: how long its clients may take.
pub(super) fn accept(
    owner: &KeyOwner<'_>,
    spoken: Option<Spoken>,
    client: ClientTimeouts,
    binds: Vec<Bind>,
    top: &TopLevel<'_>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> ListenerConfig {
    let is_http = spoken.is_some_and(|spoken| spoken.protocol == Protocol::Http);
    let of_connections = spoken != Some(Spoken::UDP);
    let tls = if of_connections { tls::listener(owner, spoken, &top.acme, report, rows) } else { None };
    let spoken_http = spoken.filter(|spoken| spoken.protocol == Protocol::Http);
    let http2 = spoken_http.and_then(|spoken| http2::accept(owner, spoken, report, rows));
    let proxy_protocol =
        if of_connections { proxy_protocol::accept(owner, spoken, &binds, report, rows) } else { None };
    let access = access::accept(&owner.own.access, &owner.path("access"), &top.lists, report, rows);
    let limits = bounds::limits(owner, spoken, report, rows);
    let (mut forwarded, mut x_real_ip, mut normalize) = (Forwarded::default(), false, Normalize::default());
    let mut default_host = None;
    if is_http {
        let own = owner.own;
        forwarded = rows.settle(owner.path("forwarded"), own.forwarded.as_ref(), forwarded, |forwarded| {
            name_of(Forwarded::ALL, *forwarded).to_owned()
        });
        x_real_ip = rows.settle(owner.path("x_real_ip"), own.x_real_ip.as_ref(), false, ToString::to_string);
        normalize = forms(owner, rows);
        if let Some(host) = &own.default_host {
            rows.note(owner.path("default_host"), host.value.clone(), host.spot.origin.clone());
            default_host = Some(host.value.clone());
        }
    }
    ListenerConfig {
        name: owner.name.value.clone(),
        // A fault in `protocol` has been reported, so what stands here instead is never used.
        protocol: spoken.map_or(Protocol::Tcp, |spoken| spoken.protocol),
        tls,
        http2,
        proxy_protocol,
        binds,
        access: access.unwrap_or_default(),
        auth: None,
        told: [].into(),
        rate_limits: Vec::new(),
        routes: Vec::new(),
        normalize,
        default_host,
        limits,
        client_timeouts: client,
        forwarded,
        x_real_ip,
    }
}

/// What is done about the forms of paths. Where nobody says anything about it nothing is noted.
fn forms(owner: &KeyOwner<'_>, rows: &mut EffectiveRows) -> Normalize {
    let (written, default) = (&owner.own.normalize, Normalize::default());
    let is_written =
        written.dot_segments.is_some() || written.encoded_slash.is_some() || written.merge_slashes.is_some();
    if !is_written && owner.is_target {
        return default;
    }
    let path = |key: &str| owner.path(&format!("normalize.{key}"));
    let dots = |dots: &DotSegments| name_of(DotSegments::ALL, *dots).to_owned();
    let slash = |slash: &EncodedSlash| name_of(EncodedSlash::ALL, *slash).to_owned();
    let merge = |merge: &bool| if *merge { "on" } else { "off" }.to_owned();
    Normalize {
        dot_segments: rows.settle(
            path("dot_segments"),
            written.dot_segments.as_ref(),
            default.dot_segments,
            dots,
        ),
        encoded_slash: rows.settle(
            path("encoded_slash"),
            written.encoded_slash.as_ref(),
            default.encoded_slash,
            slash,
        ),
        merge_slashes: rows.settle(
            path("merge_slashes"),
            written.merge_slashes.as_ref(),
            default.merge_slashes,
            merge,
        ),
    }
}

/// Where it is bound.
pub(super) fn binds(
    owner: &KeyOwner<'_>,
    spoken: Option<Spoken>,
    top: &TopLevel<'_>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Vec<Bind> {
    let key = owner.bind_key;
    let written = match owner.binds {
        Field::Given(written) => written,
        Field::Faulty => return Vec::new(),
        Field::Absent => {
            report
                .spot(&owner.name.spot, format!("{} has no `{key}`", owner.told()))
                .expected(format!("`{key}: 8080`, or an address with port"));
            return Vec::new();
        }
    };
    let bind = if spoken == Some(Spoken::UDP) { Bind::Udp } else { Bind::Tcp };
    let at = |host: BindHost, port: u16| match host {
        BindHost::Ip(ip) => vec![bind(SocketAddr::new(ip, port))],
        BindHost::Any => vec![
            bind(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)),
            bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)),
        ],
    };
    let mut all = Vec::new();
    for (index, one) in written.value.iter().enumerate() {
        let (binds, shown) = match &one.value {
            RawListener::Port(port) => {
                let host = top.address.value;
                (at(host, *port), format!("{host}:{port}"))
            }
            RawListener::At(host, port) => (at(*host, *port), format!("{host}:{port}")),
            RawListener::Unix(path) => {
                folder::check(path, "the socket", &one.spot, report);
                (vec![Bind::Unix(path.clone())], format!("unix:{}", path.display()))
            }
        };
        let place = if written.value.len() > 1 { format!("[{index}]") } else { String::new() };
        rows.note(owner.path(&format!("{key}{place}")), shown, one.spot.origin.clone());
        all.extend(binds);
    }
    all
}
