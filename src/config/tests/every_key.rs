//! Changing a key changes the configuration: one row per key, and no key without a row.

use super::certificates::Certs;
use super::*;
use super::{
    access, actions, auth, cache, certificate_folders, cluster, http2, listeners, offers, passthrough,
    proxy_protocol, rates, resilience, routing_tests,
};
use crate::config::model::tls::*;
use crate::config::model::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

pub(super) type Check = fn(&Config) -> bool;

/// `WEB` with something added to its target.
pub(super) fn target(added: &str) -> String {
    format!(
        "targets: {{web: {{protocol: http, listener: 8080, {added}, backends: [{{host: a, port: 1}}]}}}}\n"
    )
}

/// A key of `WEB`'s `health_check`, with a path so that HTTP is asked.
pub(super) fn health(key: &str) -> String {
    target(&format!("health_check: {{path: /h, {key}}}"))
}

/// `WEB` with another backend.
fn backend(backend: &str) -> String {
    format!("targets: {{web: {{protocol: http, listener: 8080, backends: [{{{backend}}}]}}}}\n")
}

fn top(line: &str) -> String {
    format!("{line}\n{WEB}")
}

pub(super) fn of(config: &Config) -> (&ListenerConfig, &TargetConfig) {
    (&config.listeners[0], &config.targets[0])
}

pub(super) fn probe(config: &Config) -> &HealthCheck {
    config.targets[0].health.as_ref().unwrap()
}

fn only_backend(config: &Config) -> &BackendConfig {
    &config.targets[0].backends[0]
}

fn is_host(config: &Config, host: &str, port: u16) -> bool {
    only_backend(config).address == BackendAddress::Host { host: host.into(), port }
}

const SECOND: Duration = Duration::from_secs(1);

/// `WEB` over TLS, with something added to `tls`.
fn https(added: &str) -> String {
    let certs = Certs::shared();
    let (cert, key) = (certs.path("a.pem"), certs.path("a.key"));
    target(&format!("tls: {{cert_file: {cert}, cert_key: {key}, {added}}}")).replace("http,", "https,")
}

/// A file that may be included.
fn included() -> String {
    static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
    let file = FOLDER.path().join("more.yaml");
    std::fs::write(&file, "workers: 999\n").unwrap();
    file.display().to_string()
}

fn upstream(added: &str) -> String {
    target(&format!("upstream_tls: {{{added}}}"))
}

fn names(config: &Config) -> Vec<Vec<String>> {
    let tls = of(config).0.tls.iter();
    tls.flat_map(|tls| &tls.identities).map(|identity| identity.names.clone()).collect()
}

fn clients(config: &Config) -> Option<&ClientCertificates> {
    of(config).0.tls.as_ref()?.clients.as_ref()
}

fn upstream_of(config: &Config) -> Option<&UpstreamTls> {
    only_backend(config).tls.as_deref()
}

fn over_tcp(config: &Config) -> Option<&AdminAccess> {
    config.admin.as_deref()
}

fn hook(more: &str) -> String {
    top(&format!("webhooks: [{{url: 'https://h.example/a'{more}}}]"))
}

fn statsd(more: &str) -> String {
    top(&format!("metrics: {{statsd: {{to: 'udp://[::1]:8125'{more}}}}}"))
}

fn sent(config: &Config) -> Option<&StatsdConfig> {
    config.metrics.statsd.as_ref()
}

fn hooks(config: &Config) -> Option<&Webhook> {
    config.webhooks.first()
}

fn otlp(more: &str) -> String {
    top(&format!("tracing: {{otlp: 'https://c.example:4318'{more}}}"))
}

fn admin_tls(more: &str) -> String {
    let certs = Certs::shared();
    let pair = format!("cert_file: {}, cert_key: {}", certs.path("a.pem"), certs.path("a.key"));
    top(&format!("admin: {{listener: 9900, tls: {{{pair}{more}}}}}"))
}

pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    let certs = Certs::shared();
    let more =
        format!("certificates: [{{cert_file: {}, cert_key: {}}}]", certs.path("b.pem"), certs.path("b.key"));
    let ca = format!("client_ca: {}", certs.path("ca.pem"));
    let identity = format!("client_cert: {}, client_key: {}", certs.path("a.pem"), certs.path("a.key"));
    let mut rows: Vec<(&'static str, String, Check)> = vec![
        ("include", top(&format!("include: {}", included())), |c| c.workers == 999),
        ("watch", top("watch: files"), |c| c.watch == WatchMode::Files),
        ("name", top("name: edge-1"), |c| c.instance.name.as_deref() == Some("edge-1")),
        ("state_dir", top("state_dir: s"), |c| c.instance.state_dir.as_deref() == Some(Path::new("./s"))),
        ("admin", top("admin: {socket: off}"), |c| c.instance.socket == AdminSocket::Off),
        ("admin.socket", top("admin: {socket: a.sock}"), |c| {
            c.instance.socket == AdminSocket::At("./a.sock".into())
        }),
        ("admin.listener", top("admin: {listener: 9900}"), |c| {
            over_tcp(c).is_some_and(|admin| admin.binds == ["127.0.0.1:9900".parse().unwrap()])
        }),
        (
            "admin.token_file",
            top(&format!("admin: {{listener: 9900, token_file: {}}}", certs.path("tokens"))),
            |c| over_tcp(c).is_some_and(|admin| admin.token(b"0123456789abcdef").is_some()),
        ),
        ("admin.hosts", top("admin: {listener: 9900, hosts: LB.internal}"), |c| {
            over_tcp(c).is_some_and(|admin| admin.hosts == ["lb.internal"])
        }),
        (
            "admin.configure_over_tcp",
            top(&format!(
                "admin: {{listener: 9900, token_file: {}, configure_over_tcp: on}}",
                certs.path("tokens")
            )),
            |c| over_tcp(c).is_some_and(|admin| admin.configure_over_tcp),
        ),
        ("recorder", top("recorder: off"), |c| c.recorder.is_none()),
        ("recorder.memory", top("recorder: {memory: 1MiB}"), |c| {
            c.recorder.as_ref().is_some_and(|recorder| recorder.memory == 1 << 20)
        }),
        ("recorder.show_headers", top("recorder: {show_headers: [Accept]}"), |c| {
            c.recorder.as_ref().is_some_and(|recorder| recorder.show_headers == ["Accept"])
        }),
        ("tracing", otlp(""), |c| c.tracing.is_some()),
        ("tracing.otlp", otlp(""), |c| c.tracing.as_ref().is_some_and(|to| to.otlp.host == "c.example")),
        ("tracing.sample", otlp(", sample: 5%"), |c| {
            c.tracing.as_ref().is_some_and(|to| to.sample == Share::from_millionths(50_000))
        }),
        ("tracing.headers_file", otlp(&format!(", headers_file: {}", certs.path("otlp.headers"))), |c| {
            c.tracing.as_ref().is_some_and(|to| to.headers.iter().count() == 1)
        }),
        ("tracing.service_name", otlp(", service_name: edge"), |c| {
            c.tracing.as_ref().is_some_and(|to| to.service_name == "edge")
        }),
        ("tracing.ca_file", otlp(&format!(", ca_file: {}", certs.path("a.pem"))), |c| {
            c.tracing.as_ref().is_some_and(|to| to.authorities.is_some())
        }),
        ("tracing.limit", otlp(", limit: 7/s"), |c| c.tracing.as_ref().is_some_and(|to| to.limit == 7)),
        ("admin.tls", admin_tls(""), |c| over_tcp(c).is_some_and(|admin| admin.tls.is_some())),
        ("admin.tls.cert_file", admin_tls(""), |c| {
            over_tcp(c).is_some_and(|admin| admin.tls.as_ref().is_some_and(|tls| tls.identities.len() == 1))
        }),
        ("admin.tls.cert_key", admin_tls(""), |c| over_tcp(c).is_some_and(|admin| admin.tls.is_some())),
        ("admin.tls.min_version", admin_tls(", min_version: 1.3"), |c| {
            over_tcp(c)
                .is_some_and(|admin| admin.tls.as_ref().is_some_and(|tls| tls.oldest == TlsVersion::V13))
        }),
        ("metrics", top("metrics: {listener: 9901}"), |c| c.metrics.binds.len() == 1),
        ("metrics.listener", top("metrics: {listener: '*:9901'}"), |c| c.metrics.binds.len() == 2),
        ("metrics.statsd", statsd(""), |c| c.metrics.statsd.is_some()),
        ("metrics.statsd.to", statsd(""), |c| {
            sent(c).is_some_and(|sent| sent.to.to_string() == "udp://[::1]:8125")
        }),
        ("metrics.statsd.format", statsd(", format: Datadog"), |c| {
            sent(c).is_some_and(|sent| sent.format == StatsdFormat::Datadog)
        }),
        ("metrics.statsd.interval", statsd(", interval: 10s"), |c| {
            sent(c).is_some_and(|sent| sent.interval == Duration::from_secs(10))
        }),
        ("metrics.statsd.timings", statsd(", timings: 0.5%"), |c| {
            sent(c).is_some_and(|sent| sent.timings == Share::from_millionths(5_000))
        }),
        ("webhooks", hook(""), |c| c.webhooks.len() == 1),
        ("webhooks[].url", hook(""), |c| hooks(c).is_some_and(|hook| hook.url.host == "h.example")),
        ("webhooks[].events", hook(", events: [reload, backend_up]"), |c| {
            hooks(c).is_some_and(|hook| hook.events == [WebhookEvent::BackendUp, WebhookEvent::Reload])
        }),
        ("webhooks[].secret_file", hook(&format!(", secret_file: {}", certs.path("a.key"))), |c| {
            hooks(c).is_some_and(|hook| {
                hook.secret.as_ref().is_some_and(|key| key.bytes().starts_with(b"-----BEGIN"))
            })
        }),
        ("webhooks[].format", hook(", format: JSON"), |c| c.webhooks.len() == 1),
        ("scale", top("scale: {out: {}}"), |c| c.scale != ScaleConfig::default()),
        ("scale.out", top("scale: {out: {}}"), |c| c.scale.out == Some(ScaleOut::default())),
        ("scale.out.queued", top("scale: {out: {queued: 7}}"), |c| {
            c.scale.out.is_some_and(|out| out.queued == 7)
        }),
        ("scale.out.for", top("scale: {out: {for: 2m}}"), |c| {
            c.scale.out.is_some_and(|out| out.hold == Duration::from_secs(120))
        }),
        ("scale.in", top("scale: {in: {}}"), |c| c.scale.into == Some(ScaleIn::default())),
        ("scale.in.busy", top("scale: {in: {busy: 7%}}"), |c| {
            c.scale.into.is_some_and(|into| into.busy == 7)
        }),
        ("scale.in.for", top("scale: {in: {for: 2m}}"), |c| {
            c.scale.into.is_some_and(|into| into.hold == Duration::from_secs(120))
        }),
        ("on_dead_server_webhook", top("on_dead_server_webhook: http://h.example/a"), |c| {
            hooks(c).is_some_and(|hook| hook.events == [WebhookEvent::BackendDown, WebhookEvent::BackendUp])
        }),
        ("address", top("address: 10.0.0.1"), |c| {
            of(c).0.binds == [Bind::Tcp("10.0.0.1:8080".parse().unwrap())]
        }),
        ("workers", top("workers: 1000"), |c| c.workers == 1000),
        ("max_connections", top("max_connections: 7"), |c| c.max_connections == Some(7)),
        ("shutdown_delay", top("shutdown_delay: 5s"), |c| c.shutdown_delay == 5 * SECOND),
        ("shutdown_timeout", top("shutdown_timeout: 1s"), |c| c.shutdown_timeout == SECOND),
        ("graceful_shutdown", top("graceful_shutdown: no"), |c| c.shutdown_timeout.is_zero()),
        ("logging", top("logging: trace"), |c| c.log_level == LogLevel::Trace),
        ("log_format", top("log_format: json"), |c| c.log_format == EventFormat::Json),
        ("access_log", top("access_log: {path: stdout}"), |c| c.access_log.is_some()),
        ("access_log.path", top("access_log: {path: a.log}"), |c| {
            c.access_log.as_ref().is_some_and(|log| matches!(log.path, LogPath::File(_)))
        }),
        ("access_log.format", top("access_log: {path: '-', format: json}"), |c| {
            c.access_log.as_ref().is_some_and(|log| log.format == LogFormat::Json)
        }),
        ("access_log.sample", top("access_log: {path: '-', sample: 5%}"), |c| {
            c.access_log.as_ref().is_some_and(|log| log.sample.millionths() == 50_000)
        }),
        ("trusted_proxies", top("trusted_proxies: [10.0.0.0/8]"), |c| {
            c.trusted_proxies == ["10.0.0.0/8".parse().unwrap()]
        }),
        ("health_check_interval", top("health_check_interval: 1"), |c| probe(c).interval == SECOND),
        ("health_check_frequency_in_seconds", top("health_check_frequency_in_seconds: 1"), |c| {
            probe(c).interval == SECOND
        }),
        ("health_check_max_retries", top("health_check_max_retries: 9"), |c| probe(c).fall == 9),
        ("algorithm", top("algorithm: random"), |c| of(c).1.balance.algorithm == Balance::Random),
        ("zone", top("zone: eu-1a"), |c| of(c).1.balance.zone.as_deref() == Some("eu-1a")),
        ("servers", "servers: [http://b:2]".into(), |c| of(c).1.name == "default" && is_host(c, "b", 2)),
        ("targets", WEB.replace("web", "other"), |c| of(c).1.name == "other" && of(c).0.name == "other"),
        ("targets.<name>.protocol", WEB.replace("http", "TCP"), |c| {
            of(c).0.protocol == Protocol::Tcp && of(c).1.protocol == Protocol::Tcp
        }),
        ("targets.<name>.listener", WEB.replace("8080", "'[::1]:81'"), |c| {
            of(c).0.binds == [Bind::Tcp("[::1]:81".parse().unwrap())]
        }),
        ("targets.<name>.tls", https(""), |c| of(c).0.tls.is_some()),
        ("targets.<name>.tls.cert_file", https(""), |c| names(c) == [["localhost"]]),
        ("targets.<name>.tls.cert_key", https(""), |c| names(c).len() == 1),
        ("targets.<name>.tls.certificates", https(&more), |c| names(c).len() == 2),
        ("targets.<name>.tls.certificates[].cert_file", https(&more), |c| {
            names(c).get(1).is_some_and(|names| names == &["shop.example"])
        }),
        ("targets.<name>.tls.certificates[].cert_key", https(&more), |c| names(c).len() == 2),
        ("targets.<name>.tls.client_ca", https(&ca), |c| {
            clients(c).is_some_and(|clients| clients.auth == ClientAuth::Required)
        }),
        ("targets.<name>.tls.client_auth", https(&format!("{ca}, client_auth: optional")), |c| {
            clients(c).is_some_and(|clients| clients.auth == ClientAuth::Optional)
        }),
        ("targets.<name>.tls.min_version", https("min_version: 1.3"), |c| {
            of(c).0.tls.as_ref().is_some_and(|tls| tls.oldest == TlsVersion::V13)
        }),
        ("targets.<name>.upstream_protocol", target("upstream_protocol: H2"), |c| {
            of(c).1.upstream == UpstreamProtocol::H2
        }),
        ("targets.<name>.upstream_tls", upstream(""), |c| upstream_of(c).is_some()),
        (
            "targets.<name>.upstream_tls.ca_file",
            upstream(&format!("ca_file: {}", certs.path("ca.pem"))),
            |c| upstream_of(c).is_some_and(|tls| tls.authorities.is_some()),
        ),
        ("targets.<name>.upstream_tls.server_name", upstream("server_name: b.example"), |c| {
            upstream_of(c).is_some_and(|tls| tls.name.to_str() == "b.example")
        }),
        ("targets.<name>.upstream_tls.client_cert", upstream(&identity), |c| {
            upstream_of(c).is_some_and(|tls| tls.identity.is_some())
        }),
        ("targets.<name>.upstream_tls.client_key", upstream(&identity), |c| {
            upstream_of(c).is_some_and(|tls| tls.identity.is_some())
        }),
        ("targets.<name>.upstream_tls.insecure", upstream("insecure: true"), |c| {
            upstream_of(c).is_some_and(|tls| tls.insecure)
        }),
        ("targets.<name>.timeouts.tls", target("upstream_tls: {}, timeouts: {tls: 1s}"), |c| {
            of(c).1.timeouts.tls == SECOND && of(c).0.client_timeouts.tls == SECOND
        }),
        ("targets.<name>.balance", target("balance: LeastConn"), |c| {
            of(c).1.balance.algorithm == Balance::LeastConnections
        }),
        ("targets.<name>.algorithm", target("algorithm: peak_ewma"), |c| {
            of(c).1.balance.algorithm == Balance::PeakEwma
        }),
        ("targets.<name>.hash_key", target("balance: maglev, hash_key: query"), |c| {
            of(c).1.balance.hash_key == HashKey::Query
        }),
        ("targets.<name>.hash_key.header", target("balance: maglev, hash_key: {header: X-User}"), |c| {
            of(c).1.balance.hash_key == HashKey::Header("x-user".into())
        }),
        ("targets.<name>.hash_key.cookie", target("balance: maglev, hash_key: {cookie: Id}"), |c| {
            of(c).1.balance.hash_key == HashKey::Cookie("Id".into())
        }),
        ("targets.<name>.hash_key.query", target("balance: ring_hash, hash_key: {query: 'u[]'}"), |c| {
            of(c).1.balance.hash_key == HashKey::Parameter("u[]".into())
        }),
        ("targets.<name>.bounded_load", target("balance: ring_hash, bounded_load: 110%"), |c| {
            of(c).1.balance.bounded_load == Some(110)
        }),
        ("targets.<name>.slow_start", target("slow_start: 1s"), |c| of(c).1.balance.slow_start == SECOND),
        ("targets.<name>.owner", target("owner: soft, max_in_flight: 1"), |c| {
            of(c).1.balance.owner == OwnerMode::Soft
        }),
        ("targets.<name>.sticky", target("sticky: {}"), |c| of(c).1.sticky.is_some()),
        ("targets.<name>.sticky.cookie", target("sticky: {cookie: app}"), |c| {
            of(c).1.sticky.as_ref().is_some_and(|sticky| sticky.cookie == "app")
        }),
        ("targets.<name>.sticky.key", target("sticky: {key: 0123456789abcdef}"), |c| {
            of(c).1.sticky.as_ref().is_some_and(|sticky| *sticky.key == *b"0123456789abcdef")
        }),
        (
            "targets.<name>.sticky.key_file",
            target(&format!("sticky: {{key_file: {}}}", certs.path("a.key"))),
            |c| of(c).1.sticky.as_ref().is_some_and(|sticky| sticky.key.starts_with(b"-----BEGIN")),
        ),
        ("targets.<name>.health_check", target("health_check: off"), |c| of(c).1.health.is_none()),
        ("targets.<name>.health_check.interval", health("interval: 1s"), |c| probe(c).interval == SECOND),
        ("targets.<name>.health_check.timeout", health("timeout: 5s"), |c| probe(c).timeout == 5 * SECOND),
        ("targets.<name>.health_check.rise", health("rise: 7"), |c| probe(c).rise == 7),
        ("targets.<name>.health_check.fall", health("fall: 7"), |c| probe(c).fall == 7),
        ("targets.<name>.health_check.path", health("rise: 2"), |c| {
            only_backend(c).probe_path.as_deref() == Some("/h")
        }),
        ("targets.<name>.health_check.expect", health("expect: [200, '301-302']"), |c| {
            probe(c).expect == [200..=200, 301..=302]
        }),
        ("targets.<name>.health_check.host", health("host: w.example"), |c| {
            probe(c).host.as_deref() == Some("w.example")
        }),
        (
            "targets.<name>.health_check.grpc",
            target("upstream_protocol: grpc, health_check: {grpc: a.B}"),
            |c| probe(c).grpc.as_deref() == Some("a.B"),
        ),
        ("targets.<name>.health_check.port", health("port: 9000"), |c| probe(c).port == Some(9000)),
        (
            "targets.<name>.health_check.send",
            target(r"health_check: {send: 'A\r\n\x00\0\xFF', receive: b}"),
            |c| probe(c).send.as_deref() == Some(b"A\r\n\0\0\xff"),
        ),
        ("targets.<name>.health_check.receive", target("health_check: {receive: +PONG}"), |c| {
            probe(c).receive.as_deref() == Some(b"+PONG")
        }),
        ("targets.<name>.timeouts", target("timeouts: {connect: 9s}"), |c| {
            of(c).1.timeouts.connect == 9 * SECOND
        }),
        ("targets.<name>.timeouts.connect", target("timeouts: {connect: 1s}"), |c| {
            of(c).1.timeouts.connect == SECOND
        }),
        ("targets.<name>.timeouts.first_byte", target("timeouts: {first_byte: 1s}"), |c| {
            of(c).1.timeouts.first_byte == SECOND
        }),
        ("targets.<name>.timeouts.idle", target("timeouts: {idle: 1s}"), |c| {
            of(c).1.timeouts.idle == SECOND && of(c).0.client_timeouts.idle == SECOND
        }),
        ("targets.<name>.timeouts.tunnel", target("timeouts: {tunnel: 1s}"), |c| {
            of(c).1.timeouts.tunnel == SECOND
        }),
        ("targets.<name>.timeouts.head", target("timeouts: {head: 1s}"), |c| {
            of(c).0.client_timeouts.head == SECOND
        }),
        ("targets.<name>.timeouts.keep_alive", target("timeouts: {keep_alive: 1s}"), |c| {
            of(c).0.client_timeouts.keep_alive == SECOND
        }),
        ("targets.<name>.timeouts.half_closed", target("timeouts: {half_closed: off}"), |c| {
            of(c).0.client_timeouts.half_closed.is_none()
        }),
        ("targets.<name>.drain_timeout", target("drain_timeout: 1s"), |c| of(c).1.drain_timeout == SECOND),
        ("targets.<name>.limits", target("limits: {headers: 51}"), |c| of(c).0.limits.headers == 51),
        ("targets.<name>.limits.head_size", target("limits: {head_size: 8KiB}"), |c| {
            of(c).0.limits.head_size == 8192
        }),
        ("targets.<name>.limits.headers", target("limits: {headers: 50}"), |c| of(c).0.limits.headers == 50),
        ("targets.<name>.normalize", target("normalize: {merge_slashes: on}"), |c| {
            of(c).0.normalize.merge_slashes
        }),
        ("targets.<name>.normalize.dot_segments", target("normalize: {dot_segments: refuse}"), |c| {
            of(c).0.normalize.dot_segments == route::DotSegments::Refuse
        }),
        ("targets.<name>.normalize.encoded_slash", target("normalize: {encoded_slash: refuse}"), |c| {
            of(c).0.normalize.encoded_slash == route::EncodedSlash::Refuse
        }),
        ("targets.<name>.normalize.merge_slashes", target("normalize: {merge_slashes: on}"), |c| {
            of(c).0.normalize.merge_slashes
        }),
        ("targets.<name>.limits.body", target("limits: {body: 1MB}"), |c| {
            of(c).0.limits.body == Some(1_000_000)
        }),
        ("targets.<name>.limits.body_rate", target("limits: {body_rate: 1KiB}"), |c| {
            of(c).0.limits.body_rate == 1024
        }),
        ("targets.<name>.forwarded", target("forwarded: rfc7239"), |c| {
            of(c).0.forwarded == Forwarded::Rfc7239
        }),
        ("targets.<name>.x_real_ip", target("x_real_ip: true"), |c| of(c).0.x_real_ip),
        ("targets.<name>.host", target("host: Backend"), |c| of(c).1.host == HostHeader::Backend),
        ("targets.<name>.upgrade", target("upgrade: [WebSocket, x/1]"), |c| {
            of(c).1.upgrade == ["websocket", "x/1"]
        }),
        ("targets.<name>.backends", WEB.replace("]", ", {host: b, port: 2}]"), |c| {
            of(c).1.backends.len() == 2
        }),
        ("targets.<name>.backends[].host", backend("host: '[::1]', port: 1"), |c| is_host(c, "::1", 1)),
        ("targets.<name>.backends[].port", backend("host: a, port: 2"), |c| is_host(c, "a", 2)),
        ("targets.<name>.backends[].url", backend("url: http://c:3/"), |c| is_host(c, "c", 3)),
        ("targets.<name>.backends[].name", backend("host: a, port: 1, name: 7"), |c| {
            only_backend(c).name == "7"
        }),
        ("targets.<name>.backends[].weight", backend("host: a, port: 1, weight: 256"), |c| {
            only_backend(c).portion.weight == 256
        }),
        ("targets.<name>.backends[].backup", backend("host: a, port: 1, backup: yes"), |c| {
            only_backend(c).portion.priority == Portion::BACKUP
        }),
        ("targets.<name>.backends[].priority", backend("host: a, port: 1, priority: 254"), |c| {
            only_backend(c).portion.priority == 254
        }),
        ("targets.<name>.backends[].zone", backend("host: a, port: 1, zone: eu-1b"), |c| {
            only_backend(c).portion.zone.as_deref() == Some("eu-1b")
        }),
        ("targets.<name>.backends[].state", backend("host: a, port: 1, state: Drain"), |c| {
            only_backend(c).state == BackendState::Drain
        }),
        ("targets.<name>.backends[].health_path", backend("host: a, port: 1, health_path: /p"), |c| {
            only_backend(c).probe_path.as_deref() == Some("/p")
        }),
    ];
    rows.extend(resilience::rows());
    rows.extend(listeners::rows());
    rows.extend(routing_tests::rows());
    rows.extend(access::rows());
    rows.extend(auth::rows());
    rows.extend(cache::rows());
    rows.extend(cluster::rows());
    rows.extend(tokens::rows());
    rows.extend(rates::rows());
    rows.extend(actions::rows());
    rows.extend(http2::rows());
    rows.extend(certificate_folders::rows());
    rows.extend(offers::rows());
    rows.extend(ordered::rows());
    rows.extend(dialing::rows());
    rows.extend(found::rows());
    rows.extend(passthrough::rows());
    rows.extend(proxy_protocol::rows());
    rows
}

#[test]
fn each_key_changes_the_configuration() {
    let base = config(WEB);
    for (key, text, check) in rows() {
        assert!(!check(&base), "the row of `{key}` holds without it");
        assert!(check(&config(&text)), "`{key}` changed nothing:\n{text}");
    }
}

#[test]
fn no_key_is_without_a_row() {
    let rows: BTreeSet<String> = rows().into_iter().map(|(key, ..)| key.to_owned()).collect();
    let keys: BTreeSet<String> = keys().into_iter().collect();
    assert_eq!(rows, keys);
}

#[test]
fn every_key_for_an_algorithm_is_read() {
    for text in [top("algorithm: fastest"), target("balance: fastest"), target("algorithm: fastest")] {
        assert!(
            messages(&text, &Flags::default())[0].ends_with("is `fastest`, which does not exist"),
            "{text}"
        );
    }
}
