//! Behaviours in words: `key=value` pairs as flags and control requests write them. The one place that knows
//! the keys, so that both accept the same and explain the same.

use std::time::Duration;

use crate::behaviour::{Behaviour, FAULTS, Pace, Stall, TLS_FAULTS, TcpMode};
use crate::spread::Spread;

/// Why a pair was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}={value}: {expected}")]
pub struct SettingError {
    /// The key as given.
    pub key: String,
    /// The value as given.
    pub value: String,
    /// What would have been right.
    pub expected: String,
}

/// Every key of [`Behaviour::set`], with what it takes.
pub const SETTINGS: &[(&str, &str)] = &[
    ("status", "the status of every answer, 200-999"),
    ("times", "for how many requests this holds; afterwards the last behaviour without a limit is back"),
    ("latency", "milliseconds before each answer"),
    ("latency-shape", "draws the latency from a Weibull distribution of this shape"),
    ("latency-scale", "the scale of that distribution in milliseconds"),
    ("stall", "milliseconds more before some of the answers: all of them without stall-share"),
    ("stall-share", "how many of them stall, in percent"),
    ("size", "bytes of each body"),
    ("size-shape", "draws the size from a Weibull distribution of this shape"),
    ("size-scale", "the scale of that distribution in bytes"),
    ("piece", "sends bodies so many bytes at a time"),
    ("every", "milliseconds between two pieces"),
    ("fault", "the name of a fault, or `none`"),
    ("tls-fault", "the name of a way to spoil TLS, or `none`"),
    ("close", "1: each answer ends its connection"),
    ("keep-alive", "advertises `Keep-Alive: timeout=` with so many seconds"),
    ("idle-close", "closes connections that are silent for so many milliseconds"),
    ("continue", "0: never sends `100 Continue`"),
    ("early", "1: answers before the request's body is read"),
    ("spare-health", "1: health paths are left alone"),
    ("tcp", "greet, greet-and-echo, echo, sink, greet-at-end, or a number of bytes to send"),
];

impl Behaviour {
    /// Changes one aspect, by its name in [`SETTINGS`].
    ///
    /// # Errors
    /// When the key is unknown or the value does not fit.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        let wrong = |expected: &str| SettingError {
            key: key.to_owned(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        };
        let whole = || value.parse::<u64>().map_err(|_| wrong("a whole number is expected"));
        let number = || {
            let parsed = value.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
            parsed.ok_or_else(|| wrong("a number, 0 or more, is expected"))
        };
        let positive =
            || number().and_then(|n| if n > 0.0 { Ok(n) } else { Err(wrong("it must be above 0")) });
        let switch = || match value {
            "1" | "true" | "on" | "yes" => Ok(true),
            "0" | "false" | "off" | "no" => Ok(false),
            _ => Err(wrong("1 or 0 is expected")),
        };
        match key {
            "status" => {
                let status = value.parse().ok().filter(|status| (200..=999).contains(status));
                self.status = status.ok_or_else(|| wrong("a status from 200 to 999 is expected"))?;
            }
            "times" => self.times = Some(value.parse().map_err(|_| wrong("a whole number is expected"))?),
            "latency" => self.latency = Some(Spread::Fixed(number()?)),
            "latency-shape" => self.latency = Some(reshaped(self.latency, Some(positive()?), None)),
            "latency-scale" => self.latency = Some(reshaped(self.latency, None, Some(positive()?))),
            "stall" => {
                let share = self.stall.map_or(1.0, |stall| stall.share);
                self.stall = Some(Stall { share, time: Duration::from_millis(whole()?) });
            }
            "stall-share" => {
                let percent = value.strip_suffix('%').unwrap_or(value).parse::<f64>().ok();
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                let share = percent.ok_or_else(|| wrong("0 to 100 is expected"))? / 100.0;
                let time = self.stall.map_or(Duration::ZERO, |stall| stall.time);
                self.stall = Some(Stall { share, time });
            }
            "size" => self.size = Some(Spread::Fixed(number()?)),
            "size-shape" => self.size = Some(reshaped(self.size, Some(positive()?), None)),
            "size-scale" => self.size = Some(reshaped(self.size, None, Some(positive()?))),
            "piece" => {
                let every = self.pace.map_or(Duration::ZERO, |pace| pace.every);
                self.pace = Some(Pace { bytes: whole()?, every });
            }
            "every" => {
                let bytes = self.pace.map_or(1, |pace| pace.bytes);
                self.pace = Some(Pace { bytes, every: Duration::from_millis(whole()?) });
            }
            "fault" => self.fault = named(FAULTS, value).map_err(|expected| wrong(&expected))?,
            "tls-fault" => self.tls_fault = named(TLS_FAULTS, value).map_err(|expected| wrong(&expected))?,
            "close" => self.close = switch()?,
            "keep-alive" => self.keep_alive_timeout = Some(whole()?),
            "idle-close" => self.idle_close = Some(Duration::from_millis(whole()?)),
            "continue" => self.sends_continue = switch()?,
            "early" => self.answers_early = switch()?,
            "spare-health" => self.spares_health = switch()?,
            "tcp" => {
                let mode = TcpMode::from_name(value);
                self.tcp = mode.ok_or_else(|| {
                    wrong("one of greet, greet-and-echo, echo, sink, greet-at-end, or a number of bytes")
                })?;
            }
            _ => {
                let keys = SETTINGS.iter().map(|(key, _)| *key).collect::<Vec<_>>().join(", ");
                return Err(wrong(&format!("unknown; the keys are {keys}")));
            }
        }
        Ok(())
    }
}

/// The one of this name, `none` of them, or what would have been right.
fn named<T: Clone>(known: &[(&str, T)], value: &str) -> Result<Option<T>, String> {
    if value == "none" {
        return Ok(None);
    }
    let found = known.iter().find(|(name, _)| *name == value).map(|(_, one)| one.clone());
    let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.map(Some).ok_or_else(|| format!("none or one of: {}", names()))
}

/// The distribution with one of its numbers changed; the other starts at 1.
fn reshaped(before: Option<Spread>, new_shape: Option<f64>, new_scale: Option<f64>) -> Spread {
    let (shape, scale) = match before {
        Some(Spread::Weibull { shape, scale }) => (shape, scale),
        Some(Spread::Fixed(_)) | None => (1.0, 1.0),
    };
    Spread::Weibull { shape: new_shape.unwrap_or(shape), scale: new_scale.unwrap_or(scale) }
}

impl TcpMode {
    /// The mode of this name; a number is a source of so many bytes.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "greet" => Some(Self::Greet),
            "greet-and-echo" => Some(Self::GreetAndEcho),
            "echo" => Some(Self::Echo),
            "sink" => Some(Self::Sink),
            "greet-at-end" => Some(Self::GreetAtEnd),
            number => number.parse().ok().map(Self::Source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fault;

    #[test]
    fn every_key_is_known_and_explains_a_wrong_value() {
        for (key, _) in SETTINGS {
            let error = Behaviour::default().set(key, "certainly wrong").expect_err(key);
            assert!(!error.expected.starts_with("unknown"), "{error}");
        }
        let error = Behaviour::default().set("statsu", "500").expect_err("it is misspelt");
        assert!(error.to_string().starts_with("statsu=500: unknown; the keys are status, times"), "{error}");
    }

    #[test]
    fn values_arrive_where_they_belong() {
        let mut behaviour = Behaviour::default();
        for (key, value) in [
            ("status", "503"),
            ("times", "3"),
            ("latency-scale", "40"),
            ("latency-shape", "0.5"),
            ("stall", "1000"),
            ("stall-share", "5%"),
            ("size", "10"),
            ("piece", "2"),
            ("every", "5"),
            ("fault", "reset-mid-body"),
            ("continue", "0"),
            ("tcp", "1000"),
        ] {
            behaviour.set(key, value).expect(key);
        }
        let expected = Behaviour::status(503)
            .times(3)
            .latency_spread(Spread::Weibull { shape: 0.5, scale: 40.0 })
            .stall(0.05, Duration::from_secs(1))
            .size(10)
            .pace(2, Duration::from_millis(5))
            .without_continue();
        let expected = Behaviour { fault: Some(Fault::ResetMidBody), tcp: TcpMode::Source(1000), ..expected };
        assert_eq!(behaviour, expected);
    }
}
