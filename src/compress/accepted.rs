//! What a client accepts (RFC 9110 §12.5.3).

use crate::config::model::cache::Coding;
use crate::message::{Head, weighted};

/// More items than anybody means are not looked at, empty ones included.
const MOST_ITEMS: usize = 32;
/// Bytes of a line that are looked at, as far as the items in them are whole.
const MOST_BYTES: usize = 256;

/// The coding of those offered, each with its level, that a client likes best, of several the one that is offered first. `None`: it likes
/// none of them, or likes it better as it is. A client that says nothing gets it as it is.
#[must_use]
pub fn negotiated(request: &Head, offered: &[(Coding, u32)]) -> Option<(Coding, u32)> {
    // By coding; what is not named has the weight of `*`.
    let mut weights: [Option<u16>; 3] = [None; 3];
    let (mut others, mut plain) = (None, None);
    let is_it =
        |line: &&crate::message::HeadLine| request.at(line.name()).eq_ignore_ascii_case(b"accept-encoding");
    let lines = request.lines().iter().filter(is_it);
    let items = |value| beginning(value).split(|byte| *byte == b',');
    for item in lines.flat_map(|line| items(request.at(line.value()))).take(MOST_ITEMS) {
        let Some((name, weight)) = weighted(item.trim_ascii()) else { continue };
        let place = match Coding::of(name) {
            Some(coding) => &mut weights[coding as usize],
            None if name == b"*" => &mut others,
            None if name.eq_ignore_ascii_case(b"identity") => &mut plain,
            None => continue,
        };
        place.get_or_insert(weight);
    }
    let weight = |coding: Coding| weights[coding as usize].or(others).unwrap_or(0);
    let mut best: Option<(Coding, u32)> = None;
    for &(coding, level) in offered {
        if weight(coding) > best.map_or(0, |(best, _)| weight(best)) {
            best = Some((coding, level));
        }
    }
    best.filter(|&(coding, _)| weight(coding) >= plain.unwrap_or(0))
}

/// What is read of a line.
fn beginning(value: &[u8]) -> &[u8] {
    let Some(cut) = value.get(..=MOST_BYTES) else { return value };
    &cut[..memchr::memrchr(b',', cut).unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::tokens;

    fn among(head: &Head, offered: &[Coding]) -> Option<Coding> {
        let offered: Vec<_> = offered.iter().map(|coding| (*coding, coding.usual_level())).collect();
        let (coding, level) = negotiated(head, &offered)?;
        assert_eq!(level, coding.usual_level());
        Some(coding)
    }

    fn one(lines: &[&str]) -> Option<Coding> {
        let mut head = Head::request("GET", "/", "a");
        lines.iter().for_each(|line| head.push(b"Accept-Encoding", line.as_bytes()));
        among(&head, &Coding::ALL)
    }

    #[test]
    fn rfc9110_12_5_3_what_is_chosen() {
        use Coding::{Brotli, Gzip, Zstd};
        for (line, expected) in [
            ("gzip", Some(Gzip)),
            ("GZip", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("gzip, deflate, br, zstd", Some(Zstd)),
            ("gzip, deflate, br", Some(Brotli)),
            ("gzip;q=1.0, br;q=0.9", Some(Gzip)),
            ("gzip;q=0", None),
            ("gzip;q=0, *", Some(Zstd)),
            ("*", Some(Zstd)),
            ("*;q=0", None),
            ("br;q=0.1, *;q=0", Some(Brotli)),
            ("identity", None),
            ("identity, gzip;q=0.5", None),
            ("identity;q=0.5, gzip", Some(Gzip)),
            ("identity, gzip", Some(Gzip)),
            ("identity;q=0", None),
            ("deflate", None),
            ("", None),
            ("gzip;q=2", None),
            ("gzip;q=x, br", Some(Brotli)),
            ("gzip;q=0.001", Some(Gzip)),
            ("gzip;q=0, gzip", None),
            (" , gzip ;q=0.5,", Some(Gzip)),
        ] {
            assert_eq!(one(&[line]), expected, "{line}");
        }
        assert_eq!(one(&[]), None);
        assert_eq!(one(&["gzip", "br"]), Some(Brotli));
    }

    #[test]
    fn only_what_is_offered_and_in_its_order() {
        let mut head = Head::request("GET", "/", "a");
        head.push(b"accept-encoding", b"zstd, br, gzip");
        assert_eq!(among(&head, &[Coding::Gzip, Coding::Zstd]), Some(Coding::Gzip));
        assert_eq!(among(&head, &[]), None);
    }

    #[test]
    fn nothing_is_read_behind_the_bytes_that_anybody_means() {
        let spaces = |count: usize, behind: &str| format!("gzip;q=0.5,{}br{behind}", " ".repeat(count));
        let most = MOST_BYTES - "gzip;q=0.5,br".len();
        assert_eq!(one(&[&spaces(most, "")]), Some(Coding::Brotli));
        assert_eq!(one(&[&spaces(most, ",x")]), Some(Coding::Brotli));
        assert_eq!(one(&[&spaces(most, "x")]), Some(Coding::Gzip), "half of an item is none");
        assert_eq!(one(&[&spaces(most + 1, "")]), Some(Coding::Gzip));
        assert_eq!(one(&[&"x".repeat(16_000), "br"]), Some(Coding::Brotli));
        assert_eq!(one(&[&format!("{}gzip", ",".repeat(MOST_ITEMS))]), None, "empty ones count");
    }

    #[test]
    fn a_bomb_of_items_is_not_read() {
        assert_eq!(one(&[&format!("{}gzip", "a,".repeat(MOST_ITEMS))]), None);
        assert_eq!(one(&[&format!("{}gzip", "a,".repeat(MOST_ITEMS - 1))]), Some(Coding::Gzip));
    }

    proptest! {
        /// What is chosen is never one that the client excludes.
        #[test]
        fn never_what_is_excluded(line in "(gzip|br|zstd|\\*)(;q=0)?(, ?(gzip|br|zstd|identity)(;q=[01])?){0,3}") {
            if let Some(chosen) = one(&[&line]) {
                let first = tokens(line.as_bytes()).find_map(|item| {
                    weighted(item).filter(|(name, _)| Coding::of(name) == Some(chosen)).map(|(_, weight)| weight)
                });
                prop_assert!(first.is_none_or(|weight| weight > 0), "{:?} of {}", chosen, line);
            }
        }
    }
}
