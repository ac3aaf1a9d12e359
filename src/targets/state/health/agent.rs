//! What a backend's agent says in one line, as HAProxy's `agent-check` reads it, and what of it holds until it says
//! otherwise. The socket is in `probe`.

use std::sync::Arc;

use crate::targets::state::input::Input;
use crate::tick::Tick;

/// The most percent of its weight that an agent may ask for: a weight of 1 becomes 256, the greatest there is.
pub const MOST_SHARE: u32 = 25_600;
/// The greatest weight.
const MOST_WEIGHT: u32 = 256;
/// Signs of a text of the agent's that are kept.
const REMARK: usize = 100;

/// Which requests a backend is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All.
    Ready,
    /// Those of clients whose sticky cookie names it.
    Drain,
    /// None.
    Maint,
}

/// Whether a backend works, by the word that said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// It does, if its probe says so too.
    Up,
    /// It does not.
    Down,
    /// It runs and is not well.
    Fail,
    /// Somebody has stopped it.
    Stopped,
}

impl Mode {
    const ALL: [Mode; 3] = [Mode::Ready, Mode::Drain, Mode::Maint];

    /// The agent's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Ready => "ready",
            Mode::Drain => "drain",
            Mode::Maint => "maint",
        }
    }
}

impl AgentState {
    const ALL: [AgentState; 4] = [AgentState::Up, AgentState::Down, AgentState::Fail, AgentState::Stopped];

    /// The agent's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            AgentState::Up => "up",
            AgentState::Down => "down",
            AgentState::Fail => "fail",
            AgentState::Stopped => "stopped",
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum AgentWord {
    Mode(Mode),
    Standing(AgentState),
    Share(u32),
}

impl AgentWord {
    /// Upper and lower case are alike.
    fn read(text: &str) -> Option<AgentWord> {
        if let Some(digits) = text.strip_suffix('%') {
            // A number without a sign.
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            return digits
                .parse()
                .ok()
                .filter(|_| plain)
                .map(|share: u32| AgentWord::Share(share.min(MOST_SHARE)));
        }
        let mode = Mode::ALL.into_iter().find(|mode| text.eq_ignore_ascii_case(mode.as_str()));
        let standing =
            || AgentState::ALL.into_iter().find(|standing| text.eq_ignore_ascii_case(standing.as_str()));
        mode.map(AgentWord::Mode).or_else(|| standing().map(AgentWord::Standing))
    }
}

/// What an agent says in one line. What it does not mention stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentReport {
    /// Percent of its configured weight that the backend gets, 0 to [`MOST_SHARE`]; 0: as [`Mode::Drain`].
    pub share: Option<u32>,
    /// Whether it works.
    pub standing: Option<AgentState>,
    /// Which requests it gets.
    pub mode: Option<Mode>,
    /// Its text for people, behind a `#`: at most 100 characters, none of them a control character.
    pub remark: Option<String>,
    /// The first word that is none of an agent's; the others count all the same.
    pub strange: Option<String>,
}

impl AgentReport {
    /// Reads a line: words between blanks and commas, up to a `#`, behind which stands text for people. Of words about
    /// the same the last one counts. Whatever stands behind the end of the line is not looked at.
    #[must_use]
    pub fn read(line: &[u8]) -> AgentReport {
        let line = line.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let (words, remark) = match line.split_once('#') {
            Some((words, remark)) => (words, plain(remark)),
            None => (&*line, None),
        };
        let mut report = AgentReport { remark, ..AgentReport::default() };
        for text in words.split([' ', '\t', ',']).filter(|text| !text.is_empty()) {
            match AgentWord::read(text) {
                Some(AgentWord::Mode(mode)) => report.mode = Some(mode),
                Some(AgentWord::Standing(standing)) => report.standing = Some(standing),
                Some(AgentWord::Share(share)) => report.share = Some(share),
                None => report.strange = report.strange.or_else(|| plain(text)),
            }
        }
        report
    }

    /// Whether it says nothing that counts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.share.is_none() && self.standing.is_none() && self.mode.is_none()
    }
}

/// `text` as it may stand in a log; `None`: nothing is left of it.
fn plain(text: &str) -> Option<String> {
    let kept: String = text.trim().chars().filter(|sign| !sign.is_control()).take(REMARK).collect();
    (!kept.is_empty()).then_some(kept)
}

/// What an agent has said so far, each word until it says another one about the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::targets) struct Agent {
    /// Which requests the backend gets.
    pub(in crate::targets) mode: Input<Mode>,
    /// Whether it works.
    pub(in crate::targets) standing: Input<AgentState>,
    /// Percent of its configured weight, 0 to [`MOST_SHARE`]; `since` is when it began or ceased to be 0.
    pub(in crate::targets) share: Input<u32>,
    /// When a time without requests, because of `maint` or of not working, last ended.
    pub(in crate::targets) back: Tick,
}

impl Default for Agent {
    /// One that has said nothing, or that does not exist.
    fn default() -> Agent {
        Agent {
            mode: Input::new(Mode::Ready, "", Tick::ZERO),
            standing: Input::new(AgentState::Up, "", Tick::ZERO),
            share: Input::new(100, "", Tick::ZERO),
            back: Tick::ZERO,
        }
    }
}

impl Agent {
    /// Takes in what it says at `now`.
    pub(in crate::targets) fn hear(&mut self, report: &AgentReport, now: Tick) {
        let says = |word: &str| -> Arc<str> {
            match &report.remark {
                Some(remark) => format!("the agent says {word}: {remark}").into(),
                None => format!("the agent says {word}").into(),
            }
        };
        let was_out = self.is_out();
        if let Some(standing) = report.standing {
            let since = if self.standing.word == standing { self.standing.since } else { now };
            self.standing = Input::new(standing, says(standing.as_str()), since);
        }
        if let Some(mode) = report.mode {
            let since = if self.mode.word == mode { self.mode.since } else { now };
            self.mode = Input::new(mode, says(mode.as_str()), since);
        }
        if let Some(share) = report.share {
            let since = if (self.share.word == 0) == (share == 0) { self.share.since } else { now };
            self.share = Input::new(share, says(&format!("{share}%")), since);
        }
        if was_out && !self.is_out() {
            self.back = now;
        }
    }

    /// Why the backend is to get no requests at all, if so, and since when.
    pub(in crate::targets) fn objection(&self) -> Option<(&Arc<str>, Tick)> {
        if self.mode.word == Mode::Maint {
            Some((&self.mode.reason, self.mode.since))
        } else if self.standing.word != AgentState::Up {
            Some((&self.standing.reason, self.standing.since))
        } else {
            None
        }
    }

    /// Why it is to get none but those of sticky clients, if so, and since when.
    pub(in crate::targets) fn reserve(&self) -> Option<(&Arc<str>, Tick)> {
        if self.mode.word == Mode::Drain {
            Some((&self.mode.reason, self.mode.since))
        } else if self.share.word == 0 {
            Some((&self.share.reason, self.share.since))
        } else {
            None
        }
    }

    /// What it says in the word that weighs most, with the reason, and since when; `nothing` of one that has said nothing.
    pub(in crate::targets) fn told(&self) -> (String, Arc<str>, Tick) {
        let Agent { mode, standing, share, .. } = self;
        let has_spoken =
            [&mode.reason, &standing.reason, &share.reason].iter().any(|reason| !reason.is_empty());
        if mode.word == Mode::Maint {
            (mode.word.as_str().to_owned(), Arc::clone(&mode.reason), mode.since)
        } else if standing.word != AgentState::Up {
            (standing.word.as_str().to_owned(), Arc::clone(&standing.reason), standing.since)
        } else if mode.word == Mode::Drain {
            (mode.word.as_str().to_owned(), Arc::clone(&mode.reason), mode.since)
        } else if share.word != 100 {
            (format!("{}%", share.word), Arc::clone(&share.reason), share.since)
        } else if has_spoken {
            (standing.word.as_str().to_owned(), Arc::clone(&standing.reason), self.since())
        } else {
            ("nothing".to_owned(), Arc::clone(&share.reason), Tick::ZERO)
        }
    }

    /// The latest of its words that has a say in whether the backend gets requests.
    pub(in crate::targets) fn since(&self) -> Tick {
        self.mode.since.max(self.standing.since).max(self.share.since)
    }

    /// What it makes of a configured `weight`. Never less than 1: at 0 % the backend is not picked for another reason.
    pub(in crate::targets) fn scaled(&self, weight: u16) -> u16 {
        if self.share.word == 0 {
            return weight;
        }
        let scaled = (u32::from(weight) * self.share.word / 100).clamp(1, MOST_WEIGHT);
        u16::try_from(scaled).unwrap_or(u16::MAX)
    }

    fn is_out(&self) -> bool {
        self.objection().is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(line: &str) -> AgentReport {
        AgentReport::read(line.as_bytes())
    }

    #[test]
    fn words_stand_between_blanks_and_commas_in_any_order_and_case() {
        for line in
            ["up 75% ready\n", "UP,75%,Ready\r\nmaint", "\tready , up\t75%  ,", "down up 1% 75% drain ready"]
        {
            let wanted = AgentReport {
                share: Some(75),
                standing: Some(AgentState::Up),
                mode: Some(Mode::Ready),
                ..AgentReport::default()
            };
            assert_eq!(read(line), wanted, "{line:?}");
        }
        assert_eq!(read("fail").standing, Some(AgentState::Fail));
        assert_eq!(read("stopped").standing, Some(AgentState::Stopped));
        assert_eq!(read("maint").mode, Some(Mode::Maint));
        assert!(read("").is_empty() && read(" , \nup").is_empty() && read("#up").is_empty());
    }

    #[test]
    fn behind_a_sharp_stands_text_for_people() {
        let report = read("down#out of\t space # in /var \n");
        assert_eq!(report.standing, Some(AgentState::Down));
        assert_eq!(report.remark.as_deref(), Some("out of space # in /var"), "no control characters");
        assert_eq!(read("drain # ").remark, None);
        let long = read(&format!("fail#{}", "é".repeat(300)));
        assert_eq!(long.remark.map(|remark| remark.chars().count()), Some(REMARK));
    }

    #[test]
    fn what_is_not_understood_is_told_and_the_rest_counts() {
        for (line, strange) in [
            ("up maxconn:30 75%", "maxconn:30"),
            ("75 up 75%", "75"),
            ("-5% up 75%", "-5%"),
            ("up % 75%", "%"),
        ] {
            let report = read(line);
            assert_eq!(report.strange.as_deref(), Some(strange));
            assert_eq!((report.standing, report.share), (Some(AgentState::Up), Some(75)), "{line}");
        }
        assert_eq!(read("99999999999999%").strange.as_deref(), Some("99999999999999%"));
        assert_eq!(read("99999%").share, Some(MOST_SHARE));
        assert!(read("HTTP/1.1 400 Bad Request").is_empty());
        assert_eq!(AgentReport::read(b"\xff up").standing, Some(AgentState::Up));
    }

    #[test]
    fn a_word_holds_until_another_one_about_the_same() {
        let mut agent = Agent::default();
        let mut hear = |line: &str, now| {
            agent.hear(&read(line), Tick(now));
            let out = agent.objection().map(|(reason, since)| (reason.to_string(), since.0));
            let reserved = agent.reserve().map(|(reason, since)| (reason.to_string(), since.0));
            (out, reserved, agent.share.word, agent.back.0)
        };
        let said = |word: &str, since| Some((format!("the agent says {word}"), since));
        assert_eq!(hear("75%", 1), (None, None, 75, 0));
        assert_eq!(hear("drain", 2), (None, said("drain", 2), 75, 0));
        assert_eq!(hear("up 0%", 3), (None, said("drain", 2), 0, 0));
        assert_eq!(hear("ready", 4), (None, said("0%", 3), 0, 0), "ready does not undo a weight");
        assert_eq!(hear("50%", 5), (None, None, 50, 0));
        assert_eq!(hear("down#disk", 6), (said("down: disk", 6), None, 50, 0));
        assert_eq!(hear("down", 7), (said("down", 6), None, 50, 0), "the latest reason, and since when");
        assert_eq!(hear("ready 10%", 8), (said("down", 6), None, 10, 0), "only up undoes it");
        assert_eq!(hear("maint", 9), (said("maint", 9), None, 10, 0));
        assert_eq!(hear("up", 10), (said("maint", 9), None, 10, 0), "only ready undoes it");
        assert_eq!(hear("ready", 11), (None, None, 10, 11));
        assert_eq!(hear("nonsense", 12), (None, None, 10, 11));
    }

    #[test]
    fn a_share_of_a_weight_is_at_least_1_and_at_most_256() {
        let scaled = |share, weight| {
            let mut agent = Agent::default();
            agent.hear(&AgentReport { share: Some(share), ..AgentReport::default() }, Tick(1));
            agent.scaled(weight)
        };
        for (share, weight, effective) in
            [(100, 1, 1), (75, 100, 75), (1, 1, 1), (50, 3, 1), (200, 5, 10), (300, 100, 256), (0, 7, 7)]
        {
            assert_eq!(scaled(share, weight), effective, "{share} % of {weight}");
        }
        assert_eq!(scaled(MOST_SHARE, 256), 256);
    }

    proptest! {
        #[test]
        fn what_is_said_of_a_line_can_be_said_again(
            mode in prop::option::of(prop::sample::select(&["ready", "drain", "maint"][..])),
            standing in prop::option::of(prop::sample::select(&["up", "down", "fail", "stopped"][..])),
            share in prop::option::of(0..=MOST_SHARE),
            remark in prop::option::of("[a-z0-9#][a-z #]{0,40}[a-z0-9#]"),
            blank in "[ ,\t]{1,3}",
            order in 0usize..6,
        ) {
            let mut words: Vec<String> =
                [mode.map(str::to_owned), standing.map(str::to_owned), share.map(|share| format!("{share}%"))]
                    .into_iter()
                    .flatten()
                    .collect();
            let count = words.len().max(1);
            words.rotate_left(order % count);
            let mut line = words.join(&blank);
            if let Some(remark) = &remark {
                line.push('#');
                line.push_str(remark);
            }
            let report = read(&line);
            prop_assert_eq!(report.mode.map(Mode::as_str), mode);
            prop_assert_eq!(report.standing.map(AgentState::as_str), standing);
            prop_assert_eq!(report.share, share);
            prop_assert_eq!(report.remark, remark);
            prop_assert_eq!(report.strange, None);
        }

        #[test]
        fn no_bytes_break_anything_and_what_is_kept_may_stand_in_a_log(line in prop::collection::vec(any::<u8>(), 0..300)) {
            let report = AgentReport::read(&line);
            for text in [&report.remark, &report.strange].into_iter().flatten() {
                prop_assert!(!text.is_empty() && text.chars().count() <= REMARK);
                prop_assert!(!text.chars().any(char::is_control));
            }
            prop_assert!(report.share.is_none_or(|share| share <= MOST_SHARE));
        }
    }
}
