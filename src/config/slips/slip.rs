//! One slip, with the edit that mends it.

use crate::config::edit::Fix;
use crate::config::origin::Place;
use crate::config::report::Report;

/// How many problems a text has; the largest number for one that is no YAML.
pub(in crate::config) type Burden<'b> = &'b dyn Fn(&str) -> usize;

/// One slip.
pub(in crate::config) struct Slip {
    pub(super) place: Place,
    pub(super) message: String,
    pub(super) expected: Option<&'static str>,
    pub(super) hint: String,
    pub(super) fix: Fix,
    /// What may be a secret.
    pub(super) secret: Option<Place>,
}

impl Slip {
    /// Reports it of the file of this number.
    pub(in crate::config) fn tell(self, file: u16, report: &mut Report) {
        if let Some(place) = self.secret {
            report.hide(Place { file, ..place });
        }
        let problem = report.at(Place { file, ..self.place }, self.message);
        problem.expected = self.expected.map(str::to_owned);
        problem.hint(self.hint, self.fix);
    }
}

/// A number of lines or columns.
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
