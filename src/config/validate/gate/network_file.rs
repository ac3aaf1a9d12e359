//! Files of networks: an address or a network in each line, with comments behind `#`.

use std::collections::HashSet;
use std::path::PathBuf;

use ipnet::IpNet;

use crate::config::effective::number_of;
use crate::config::error::Wrong;
use crate::config::files::whole;
use crate::config::origin::{Place, SourceFile, Written};
use crate::config::raw::network;
use crate::config::report::Report;

/// Most networks in one file.
const NETWORKS_MAX: usize = 100_000;
/// A file larger than this, in MiB, is another file: comments have room, too.
const FILE_MAX: u64 = 16;
/// Problems that are told of one file; whoever has more has named another file.
const TOLD: usize = 20;

const EXPECTED: &str = "a file with an address or a network in each line";

/// What is in a file.
pub(super) struct FileOfNetworks {
    pub(super) networks: Vec<IpNet>,
    /// A number for its content.
    pub(super) content: u64,
}

/// Reads the file behind `key`; `None`: there are faults, which have been reported.
pub(super) fn read(key: &str, file: &Written<PathBuf>, report: &mut Report) -> Option<FileOfNetworks> {
    let text = match whole::text(&file.value, FILE_MAX, EXPECTED) {
        Ok(text) => text,
        Err(wrong) => {
            report.wrong(&file.spot, &format!("`{key}`"), wrong);
            return None;
        }
    };
    let (networks, wrong) = parse(&text);
    if wrong.is_empty() {
        return Some(FileOfNetworks { networks, content: number_of([text.as_bytes()]) });
    }
    let number = report.add(SourceFile::new(&file.value, &text));
    if let Some(place) = file.spot.place {
        report.bring(number, place);
    }
    let more = wrong.len().saturating_sub(TOLD);
    for (count, (place, wrong)) in wrong.into_iter().take(TOLD).enumerate() {
        let place = Place { file: number, ..place };
        let problem = report.at(place, format!("this line {}", wrong.message));
        problem.expected = wrong.expected;
        problem.note = wrong.hint.or(wrong.note);
        if more > 0 && count + 1 == TOLD {
            problem.note(format!("{more} more lines of this file are wrong"));
        }
    }
    None
}

/// The networks in a text, each once, and what is wrong with its lines. A network that is there twice is none of that: lists are
/// often put together of several.
fn parse(text: &str) -> (Vec<IpNet>, Vec<(Place, Wrong)>) {
    let (mut networks, mut known, mut wrong) = (Vec::new(), HashSet::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = if number == 1 { line.trim_start_matches('\u{feff}') } else { line };
        let written = line.split('#').next().unwrap_or(line);
        let word = written.trim();
        if word.is_empty() {
            continue;
        }
        let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let before = written.chars().take_while(|c| c.is_whitespace()).count();
        let place = Place::new(number, small(before) + 1, small(word.chars().count()));
        match network(word) {
            Ok(_) if networks.len() >= NETWORKS_MAX => {
                let message = format!("is one too many: a file has at most {NETWORKS_MAX} networks");
                wrong.push((place, Wrong::bare(message).note("put the others into a list of their own")));
                break;
            }
            Ok(network) => {
                if known.insert(network) {
                    networks.push(network);
                }
            }
            Err(fault) => wrong.push((place, fault)),
        }
    }
    (networks, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_network_or_a_comment() {
        let text = "\u{feff}10.0.0.0/8\r\n# none\n\n  192.0.2.7 # one\n::ffff:10.0.0.0/104\n2001:db8::/32\n";
        let (networks, wrong) = parse(text);
        let shown: Vec<String> = networks.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"]);
        assert_eq!(wrong.len(), 0);
        assert_eq!(parse(""), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_line_that_is_none_is_told_where_it_stands() {
        let (networks, wrong) =
            parse("10.0.0.1/8\n\t10.0.0.256 # x\n10.0.0.1 10.0.0.2\n10.0.0.1;\n10.0.0.9\n");
        let at: Vec<(u32, u32, u32)> =
            wrong.iter().map(|(place, _)| (place.line, place.column, place.width)).collect();
        assert_eq!(at, [(1, 1, 10), (2, 2, 10), (3, 1, 17), (4, 1, 9)]);
        assert_eq!(networks.len(), 1);
    }

    #[test]
    fn one_too_many_is_told_and_nothing_behind_it() {
        let lines = |count: usize| -> String {
            (0..count).map(|n| format!("10.{}.{}.{}\n", n >> 16, n >> 8 & 255, n & 255)).collect()
        };
        let (networks, wrong) = parse(&lines(NETWORKS_MAX));
        assert_eq!((networks.len(), wrong.len()), (NETWORKS_MAX, 0));
        let (_, wrong) = parse(&lines(NETWORKS_MAX + 2));
        assert_eq!(wrong.iter().map(|(place, _)| place.line).collect::<Vec<_>>(), [100_001]);
    }
}
