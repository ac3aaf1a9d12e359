//! From single probes to a standing verdict.
//!
//! The first probe decides alone, so that a start does not wait for `rise` of them; after it `fall` bad
//! ones in a row take a backend out and `rise` good ones in a row bring it back.

/// What the probes of one backend amount to so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    /// The verdict in force; `None` before the first probe.
    standing: Option<bool>,
    /// Probes in a row that contradict it.
    against: u32,
}

impl Threshold {
    /// Takes in one probe and says whether the verdict changed: `Some(true)` to good, `Some(false)` to bad.
    ///
    /// `rise` and `fall` below 1 count as 1.
    pub fn judge(&mut self, good: bool, rise: u32, fall: u32) -> Option<bool> {
        match self.standing {
            Some(standing) if standing == good => {
                self.against = 0;
                return None;
            }
            Some(_) => {
                self.against = self.against.saturating_add(1);
                if self.against < if good { rise } else { fall } {
                    return None;
                }
            }
            None => {}
        }
        *self = Threshold { standing: Some(good), against: 0 };
        self.standing
    }

    /// Takes over what others have settled.
    pub fn settle(&mut self, good: bool) {
        *self = Threshold { standing: Some(good), against: 0 };
    }

    /// The verdict in force: `Some(true)` good, `Some(false)` bad, `None` before the first probe.
    #[must_use]
    pub fn standing(self) -> Option<bool> {
        self.standing
    }

    /// Whether the latest probe contradicted the verdict in force.
    #[must_use]
    pub fn in_doubt(self) -> bool {
        self.against > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(probes: &str, rise: u32, fall: u32) -> String {
        let mut threshold = Threshold::default();
        let judge = |probe| match threshold.judge(probe == '+', rise, fall) {
            Some(true) => 'U',
            Some(false) => 'D',
            None => '.',
        };
        probes.chars().map(judge).collect()
    }

    #[test]
    fn the_first_probe_decides_and_then_rows_count() {
        for (probes, rise, fall, expected) in [
            ("+", 2, 3, "U"),
            ("-", 2, 3, "D"),
            ("+---", 2, 3, "U..D"),
            ("+--+---", 2, 3, "U.....D"),
            ("-++", 2, 3, "D.U"),
            ("-+-++--", 2, 3, "D...U.."),
            ("-+-+", 1, 1, "DUDU"),
            ("-+-+", 0, 0, "DUDU"),
            ("+---+++", 3, 2, "U.D...U"),
        ] {
            assert_eq!(run(probes, rise, fall), expected, "{probes} rise {rise} fall {fall}");
        }
    }

    #[test]
    fn doubt_lasts_from_the_first_contradiction_to_the_change() {
        let mut threshold = Threshold::default();
        let doubts: Vec<bool> = [true, false, true, false, false, false]
            .map(|good| {
                threshold.judge(good, 2, 3);
                threshold.in_doubt()
            })
            .to_vec();
        assert_eq!(doubts, [false, true, false, true, true, false]);
        assert_eq!(threshold.standing(), Some(false));
    }
}
