//! Who is asked: servers that the config names, or those of `/etc/resolv.conf` as it is now.

use std::path::Path;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::parse_resolv_conf;

use crate::config::model::discovery::ResolverConfig as AskedConfig;

/// Where the system says who is asked.
pub(super) const RESOLV_CONF: &str = "/etc/resolv.conf";
/// How often it is looked at.
pub(super) const LOOK: Duration = Duration::from_secs(5);
/// More than this is no such file.
const LONGEST: u64 = 1 << 20;

/// What the system says; `None`: nothing that can be read.
pub(super) fn system_text(path: &Path) -> Option<Vec<u8>> {
    let facts = std::fs::metadata(path).ok()?;
    if !facts.is_file() || facts.len() > LONGEST {
        return None;
    }
    std::fs::read(path).ok()
}

/// Who asks as `config` says; `system`: what the system says.
///
/// # Errors
/// Nobody is known who could be asked.
pub(super) fn resolver(config: &AskedConfig, system: Option<&[u8]>) -> Result<TokioResolver, String> {
    let (servers, mut options) = if config.servers.is_empty() {
        let text = system.ok_or_else(|| format!("{RESOLV_CONF} can't be read"))?;
        parse_resolv_conf(text).map_err(|error| format!("{RESOLV_CONF} names nobody to ask: {error}"))?
    } else {
        let server = |address: &std::net::SocketAddr| {
            let at = |mut connection: ConnectionConfig| {
                connection.port = address.port();
                connection
            };
            let connections = vec![at(ConnectionConfig::udp()), at(ConnectionConfig::tcp())];
            NameServerConfig::new(address.ip(), true, connections)
        };
        let servers = config.servers.iter().map(server).collect();
        (ResolverConfig::from_parts(None, Vec::new(), servers), ResolverOpts::default())
    };
    options.timeout = config.timeout;
    // Beside the first one.
    options.attempts = config.attempts.saturating_sub(1) as usize;
    // What is said is merged with what was known; nobody else is to keep anything.
    options.cache_size = 0;
    // A name in the hosts file has one address, and no TTL: it stands under `host`.
    options.use_hosts_file = ResolveHosts::Never;
    let mut builder = TokioResolver::builder_with_config(servers, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    builder.build().map_err(|error| error.to_string())
}
