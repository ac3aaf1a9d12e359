//! Where one of `tests` stands, kept until it is known whether it passes: that is not asked here.

use super::error::{Problem, Problems};
use super::files::Files;
use super::origin::Spot;
use super::report::Report;

/// What is wrong with a config where one of its `tests` fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTest {
    /// The place of the test in `tests`, from 0.
    pub number: usize,
    /// What becomes of the request.
    pub instead: String,
    /// What was expected.
    pub expected: String,
    /// Why it is so, line by line.
    pub chain: Vec<String>,
}

/// The place of a test in its file, dressed as the problem that it may become.
#[derive(Clone, Debug, PartialEq)]
pub struct TestPlace {
    problem: Problem,
    /// It came from afar, with files of this machine: nothing of those is told.
    is_guarded: bool,
}

impl TestPlace {
    /// Those of tests that stand at these spots.
    pub(super) fn all<'s>(spots: impl Iterator<Item = &'s Spot>, report: &Report) -> Vec<TestPlace> {
        let is_guarded = report.is_guarded() && report.sources().len() > 1;
        report.dressed(spots).into_iter().map(|problem| TestPlace { problem, is_guarded }).collect()
    }

    fn failed(&self, failed: FailedTest) -> Problem {
        let mut problem = self.problem.clone();
        if !problem.message.is_empty() {
            return problem;
        }
        problem.expected = Some(failed.expected);
        problem.message = "this test fails".to_owned();
        if self.is_guarded {
            problem.note("why is told on the machine itself: `evenkeel check FILE`");
        } else {
            problem.message = format!("this test fails: {}", failed.instead);
            let chain = Some(failed.chain).filter(|chain| !chain.is_empty());
            problem.note = chain.map(|chain| format!("decided so:\n    {}", chain.join("\n    ")));
        }
        problem
    }
}

/// The problems of a config whose tests at these `places` fail. `files`: what was read for it.
pub(super) fn problems(places: &[TestPlace], failed: Vec<FailedTest>, files: &Files) -> Problems {
    let list = failed.into_iter().filter_map(|one| Some(places.get(one.number)?.failed(one))).collect();
    Problems { list, files: files.clone(), sources: Vec::new() }
}
