//! Options of `demo`.

use std::time::Duration;

use clap::Args as ClapArgs;

pub(in crate::cli) const EXAMPLES: &str = "Examples:
  evenkeel demo
  evenkeel demo --load 500/s
  evenkeel demo --quiet
  evenkeel demo --http-port 8000 --tcp-port 9000 --admin-port 9901

What happens by itself:
  requests   come at random moments, as many a second as --load says, whatever answers take
  illnesses  fall on one backend a minute, each time in another way, for 20 seconds or so

It ends with Ctrl-C, and when nobody reads its output any more.";

/// The most requests that the demo sends itself in a second.
const MOST: u32 = 10_000;
/// Health checks need some time to notice anything.
const SOONEST: Duration = Duration::from_secs(2);
const LATEST: Duration = Duration::from_hours(1);

/// Options of the demo.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct DemoOptions {
    /// Requests that it sends itself, in a second; `off` sends none
    #[arg(long, value_name = "RATE", default_value = "50/s", value_parser = rate)]
    pub(in crate::cli) load: u32,
    /// Nothing happens by itself: no load, and no backend falls ill
    #[arg(long, conflicts_with = "load")]
    pub(in crate::cli) quiet: bool,
    /// Where HTTP listens; the next free port if it is taken
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub(in crate::cli) http_port: u16,
    /// Where HTTPS listens; the next free port if it is taken
    #[arg(long, value_name = "PORT", default_value_t = 8443)]
    pub(in crate::cli) https_port: u16,
    /// Where TCP listens; the next free port if it is taken
    #[arg(long, value_name = "PORT", default_value_t = 9090)]
    pub(in crate::cli) tcp_port: u16,
    /// Where UDP listens; the next free port if it is taken
    #[arg(long, value_name = "PORT", default_value_t = 5300)]
    pub(in crate::cli) udp_port: u16,
    /// Where the page and the admin API listen; the next free port if it is taken
    #[arg(long, value_name = "PORT", default_value_t = 9900)]
    pub(in crate::cli) admin_port: u16,
    /// From the begin of one illness to that of the next
    #[arg(long, hide = true, value_name = "TIME", default_value = "1m", value_parser = pause)]
    pub(in crate::cli) illness_every: Duration,
}

/// `50/s`, `50`, or `off`.
fn rate(text: &str) -> Result<u32, String> {
    if text == "off" {
        return Ok(0);
    }
    let number = text.strip_suffix("/s").unwrap_or(text);
    // No sign, as `parse` would take one.
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|&rate| is_plain && rate <= MOST).ok_or_else(|| {
        format!("requests a second are expected, up to {MOST}, such as 50/s; `off` or 0 for none")
    })
}

fn pause(text: &str) -> Result<Duration, String> {
    let pause = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let fits = (SOONEST..=LATEST).contains(&pause);
    fits.then_some(pause).ok_or_else(|| "a time from 2s to 1h is expected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_whole_number_a_second_or_none() {
        for (text, expected) in
            [("50/s", 50), ("50", 50), ("1/s", 1), ("0", 0), ("0/s", 0), ("off", 0), ("10000/s", 10_000)]
        {
            assert_eq!(rate(text), Ok(expected), "{text}");
        }
        for wrong in ["", "/s", "+5", "-1", "5/m", "5 /s", "1.5", "10001/s", "99999999999", "many", "OFF"] {
            let told = rate(wrong).expect_err(wrong);
            assert!(told.contains("up to 10000, such as 50/s"), "{wrong}: {told}");
        }
    }

    #[test]
    fn illnesses_leave_health_checks_the_time_to_notice() {
        assert_eq!(pause("2s"), Ok(SOONEST));
        assert!(["1s", "61m", "soon"].iter().all(|wrong| pause(wrong).is_err()));
    }
}
