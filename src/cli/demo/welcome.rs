//! What the demo says of itself: where the page is first.

use fake_backend::Running;

use super::config::{BackendPool, DemoPorts};
use crate::cli::args::demo::DemoOptions;

/// No line is longer than a terminal of 80 columns.
pub(super) fn text(options: &DemoOptions, ports: &DemoPorts, token: &str, pools: &[BackendPool]) -> String {
    let DemoPorts { http, https, tcp, udp, admin } = ports;
    let count = |protocol: &str| -> usize {
        let spoken =
            |name: &str| if matches!(name, "tcp" | "udp") { name.to_owned() } else { "http".to_owned() };
        pools.iter().filter(|(name, _)| spoken(name) == protocol).map(|(_, pool)| pool.len()).sum()
    };
    let first = pools.first().and_then(|(_, pool)| pool.first()).map_or(0, Running::port);
    let tries = [
        ("requests go round", format!("curl 127.0.0.1:{http}")),
        ("over TLS (-k: made up)", format!("curl -k https://127.0.0.1:{https}")),
        ("TCP goes round", format!("curl telnet://127.0.0.1:{tcp}")),
        ("what a backend is told", format!("curl 127.0.0.1:{http}/head")),
        ("make fake-1 ill", format!("curl -X POST '127.0.0.1:{first}/_fake?health=down'")),
        ("and well again", format!("curl -X POST '127.0.0.1:{first}/_fake?health=up'")),
    ];
    let tries: String = tries.iter().map(|(about, line)| format!("  {about:<24}{line}\n")).collect();
    let itself = by_itself(options);
    format!(
        "See it: http://127.0.0.1:{admin}/\n\
         Token:  {token} (the page and /api/v1 ask for it)\n\n\
         evenkeel demo: {} HTTP, {} TCP and {} UDP backends inside this process\n\
         HTTP http://127.0.0.1:{http}  HTTPS https://127.0.0.1:{https}  TCP 127.0.0.1:{tcp}\n\
         UDP 127.0.0.1:{udp}\n\
         {itself}\
         In another terminal (the log and `evenkeel status` tell when one falls ill):\n{tries}\
         Ctrl-C ends it.\n",
        count("http"),
        count("tcp"),
        count("udp"),
    )
}

/// What happens without anybody's doing.
fn by_itself(options: &DemoOptions) -> String {
    match (options.quiet, options.load) {
        (true, _) => String::new(),
        (false, 0) => {
            "Once a minute a backend falls ill for a while, and a line here tells of it.\n".to_owned()
        }
        (false, load) => format!(
            "It sends itself {load} requests a second (--load, --quiet). Once a minute a\n\
             backend falls ill for a while, and a line here says what there is to see.\n"
        ),
    }
}
