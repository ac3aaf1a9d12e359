//! The points of one row.

use std::collections::VecDeque;

use super::point::Point;
use super::{SECONDS, TENS};

/// The points of one row, the latest last.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) seconds: VecDeque<Point>,
    pub(super) tens: VecDeque<Point>,
}

impl Series {
    /// What a row takes, in bytes.
    pub(super) const BYTES: usize = (SECONDS + TENS) * size_of::<Point>();

    pub(super) fn new() -> Series {
        Series { seconds: VecDeque::with_capacity(SECONDS), tens: VecDeque::with_capacity(TENS) }
    }
}

/// Adds a point behind the others, over `steps` steps.
pub(super) fn put(points: &mut VecDeque<Point>, most: usize, point: Point, steps: u32) {
    for number in 0..steps {
        if points.len() == most {
            points.pop_front();
        }
        points.push_back(point.part(number, steps));
    }
}
