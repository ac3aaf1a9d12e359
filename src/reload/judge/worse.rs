//! What a change has made worse, in words.

use std::fmt;
use std::time::Duration;

use super::sample::JudgedObject;

/// What a change has made worse.
#[derive(Clone, Debug, PartialEq)]
pub struct Worse {
    /// Whom.
    pub object: JudgedObject,
    /// Within which time.
    pub over: Duration,
    /// In what way.
    pub how: Worsening,
}

/// In what way something is worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Worsening {
    /// Too much fails.
    Failing {
        /// Requests and connections that ended.
        ended: u64,
        /// Those that failed.
        bad: u64,
        /// The share that failed before, 0 to 1; `None`: there were no requests.
        before: Option<f64>,
    },
    /// Nothing ends.
    Hanging {
        /// What is under way.
        under_way: u64,
        /// How many ended in a second before.
        before: f64,
    },
}

impl fmt::Display for Worse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Worse { object, over, how } = self;
        let over = over.as_secs_f64();
        match *how {
            Worsening::Failing { ended, bad, before } => {
                write!(f, "{object}: {bad} of {ended} requests failed in {over:.1}s, ")?;
                match before {
                    Some(share) => write!(f, "{} before", Percent(share)),
                    None => f.write_str("there were none before"),
                }
            }
            Worsening::Hanging { under_way, before } => {
                write!(
                    f,
                    "{object}: none of {under_way} requests has ended in {over:.1}s, {before:.0} a second before"
                )
            }
        }
    }
}

/// With one digit behind the point.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 * 100.0 {
            0.0 => f.write_str("none"),
            few if few < 0.05 => f.write_str("under 0.1%"),
            share => write!(f, "{share:.1}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_sentence() {
        let said = |how, over| {
            let object = JudgedObject::Target("web".into());
            Worse { object, over: Duration::from_millis(over), how }.to_string()
        };
        let failing = |before| Worsening::Failing { ended: 230, bad: 212, before };
        assert_eq!(
            said(failing(Some(0.001)), 400),
            "target web: 212 of 230 requests failed in 0.4s, 0.1% before"
        );
        assert_eq!(
            said(failing(Some(0.0)), 400),
            "target web: 212 of 230 requests failed in 0.4s, none before"
        );
        assert_eq!(
            said(failing(None), 400),
            "target web: 212 of 230 requests failed in 0.4s, there were none before"
        );
        assert_eq!(
            said(failing(Some(0.0002)), 2_040),
            "target web: 212 of 230 requests failed in 2.0s, under 0.1% before"
        );
        assert_eq!(
            said(Worsening::Hanging { under_way: 912, before: 299.6 }, 3_100),
            "target web: none of 912 requests has ended in 3.1s, 300 a second before"
        );
    }
}
