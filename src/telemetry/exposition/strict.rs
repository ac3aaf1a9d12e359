//! A reader of both forms that takes nothing for granted: what tests read metrics with.

use std::collections::{BTreeMap, HashSet};

/// A family as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReadFamily {
    pub(crate) kind: String,
    pub(crate) help: String,
    pub(crate) samples: Vec<ReadSample>,
}

/// Reads all of a text; `open`: in the form of OpenMetrics.
pub(crate) fn read(text: &str, open: bool) -> Result<BTreeMap<String, ReadFamily>, String> {
    let mut families: BTreeMap<String, ReadFamily> = BTreeMap::new();
    let (mut current, mut seen, mut ended) = (String::new(), HashSet::new(), false);
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("no line break at the end".to_owned());
    }
    for line in text.lines() {
        let wrong = |why: &str| Err(format!("{why}: {line}"));
        if ended {
            return wrong("behind the end");
        }
        if let Some(rest) = line.strip_prefix("# ") {
            let words: Vec<&str> = rest.splitn(3, ' ').collect();
            match words[..] {
                ["EOF"] if open => ended = true,
                ["HELP", name, help] => {
                    if families.contains_key(name) {
                        return wrong("twice");
                    }
                    name.clone_into(&mut current);
                    let family = ReadFamily { help: help.to_owned(), ..ReadFamily::default() };
                    families.insert(name.to_owned(), family);
                }
                ["TYPE", name, kind] => match families.get_mut(name) {
                    Some(family)
                        if name == current && family.kind.is_empty() && family.samples.is_empty() =>
                    {
                        kind.clone_into(&mut family.kind);
                    }
                    _ => return wrong("no HELP before it"),
                },
                _ => return wrong("a strange comment"),
            }
            continue;
        }
        let (name, labels, value) = sample(line)?;
        let Some(family) = families.get_mut(&current) else { return wrong("no family") };
        let suffix = name.strip_prefix(current.as_str());
        let fits = match (family.kind.as_str(), suffix) {
            ("counter", Some("_total")) => open,
            ("counter", Some("")) => !open && name.ends_with("_total"),
            ("gauge", Some("")) => true,
            ("histogram", Some("_bucket")) => labels.last().is_some_and(|(name, _)| name == "le"),
            ("histogram", Some("_sum" | "_count")) => true,
            _ => false,
        };
        if !fits {
            return wrong("not of its family");
        }
        if family.kind != "gauge" && (value < 0.0 || value.is_nan()) {
            return wrong("less than nothing");
        }
        if !seen.insert((name.clone(), labels.clone())) {
            return wrong("the same series twice");
        }
        family.samples.push((name, labels, value));
    }
    if open != ended {
        return Err("no end".to_owned());
    }
    families.values().try_for_each(buckets_grow)?;
    Ok(families)
}

/// The buckets of one series stand together, grow, and end with all of them.
fn buckets_grow(family: &ReadFamily) -> Result<(), String> {
    let mut last = (Vec::new(), f64::NEG_INFINITY, 0.0);
    for (name, labels, value) in &family.samples {
        let mut own = labels.clone();
        if name.ends_with("_bucket") && family.kind == "histogram" {
            let le = own.pop().map(|(_, le)| le).unwrap_or_default();
            let edge = if le == "+Inf" {
                f64::INFINITY
            } else {
                le.parse().map_err(|_| format!("{le}: no edge"))?
            };
            if own != last.0 {
                last = (own, f64::NEG_INFINITY, 0.0);
            }
            if edge <= last.1 || *value < last.2 {
                return Err(format!("buckets shrink: {name} {labels:?}"));
            }
            (last.1, last.2) = (edge, *value);
        } else if name.ends_with("_count") && family.kind == "histogram" {
            let same = own == last.0 && last.1.is_infinite() && last.2.to_bits() == value.to_bits();
            if !same {
                return Err(format!("the last bucket is not the count: {name} {labels:?}"));
            }
        }
    }
    Ok(())
}

/// Name, labels in their order, value.
pub(crate) type ReadSample = (String, Vec<(String, String)>, f64);

/// One line: `name{label="value",…} number`.
fn sample(line: &str) -> Result<ReadSample, String> {
    let wrong = |why: &str| format!("{why}: {line}");
    let is_name = |text: &str| {
        let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_') && text.chars().all(rest)
    };
    let at = line.find(['{', ' ']).ok_or_else(|| wrong("no value"))?;
    let (name, mut rest) = line.split_at(at);
    if !is_name(name) {
        return Err(wrong("no name"));
    }
    let mut labels: Vec<(String, String)> = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, behind) = rest.split_once("=\"").ok_or_else(|| wrong("no label"))?;
            if !is_name(label) || labels.iter().any(|(known, _)| known == label) {
                return Err(wrong("a bad label"));
            }
            let (mut value, mut signs) = (String::new(), behind.char_indices());
            let end = loop {
                match signs.next().ok_or_else(|| wrong("no end of a value"))? {
                    (at, '"') => break at + 1,
                    (_, '\\') => value.push(match signs.next() {
                        Some((_, '\\')) => '\\',
                        Some((_, '"')) => '"',
                        Some((_, 'n')) => '\n',
                        _ => return Err(wrong("a strange escape")),
                    }),
                    (_, sign) => value.push(sign),
                }
            };
            labels.push((label.to_owned(), value));
            rest = &behind[end..];
            if let Some(more) = rest.strip_prefix(',') {
                rest = more;
            } else {
                rest = rest.strip_prefix('}').ok_or_else(|| wrong("no end of the labels"))?;
                break;
            }
        }
    }
    let text = rest.strip_prefix(' ').ok_or_else(|| wrong("no blank"))?;
    let value = match text {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        _ => text.parse().map_err(|_| wrong("no number"))?,
    };
    Ok((name.to_owned(), labels, value))
}
