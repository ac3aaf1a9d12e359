//! What came in one step.

/// What came in one step. What was not counted is no number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) requests: u32,
    pub(super) errors: u32,
    pub(super) active: u32,
    pub(super) p50_ms: f32,
    pub(super) p99_ms: f32,
}

impl Point {
    /// The part of this one that falls on step `number` of `steps`: in all of them together is what is in this one.
    pub(super) fn part(self, number: u32, steps: u32) -> Point {
        let of = |all: u32| all / steps + u32::from(number < all % steps);
        Point { requests: of(self.requests), errors: of(self.errors), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        let whole = Point { requests: 11, errors: 2, active: 5, p50_ms: 1.5, p99_ms: 2.5 };
        let parts: Vec<Point> = (0..4).map(|number| whole.part(number, 4)).collect();
        assert_eq!(parts.iter().map(|part| part.requests).collect::<Vec<_>>(), [3, 3, 3, 2]);
        assert_eq!(parts.iter().map(|part| part.errors).sum::<u32>(), 2);
        assert!(parts.iter().all(|part| (part.active, part.p99_ms) == (5, 2.5)));
    }
}
