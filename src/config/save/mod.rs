//! Writes what is changed by hand into the text of a config: by spans, so that comments, order and every line that it is not
//! about stay as they are.
//!
//! Pure but for [`sources`]: texts and what is wanted → other texts, or what somebody has to write himself because an anchor, a merge, a list in
//! brackets or a variable stands in the way. All of it is done, or nothing. Whoever calls this reads the texts again before
//! they count, so that nothing here is trusted.

mod find;
mod page;
mod source;
mod wanted;
mod write;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::effective::{Effective, backend_numbers};
use super::origin::Origin;
use super::yaml::{YamlPiece, outline};
use find::{FoundTarget, Obstacle};
use page::Page;
pub use source::{SourceStamp, sources};
pub use wanted::{ChangedLine, Rewritten, SourceText, Unwritten, Wanted, WantedChange, WantedValue};

/// What a config says, and who says it.
#[derive(Clone, Copy)]
struct Said<'a> {
    rows: &'a [Effective],
}

/// The texts that a config with these values was read from, once they say what is `wanted` as well: those that differ.
///
/// # Errors
/// All that can't be done; then nothing is.
pub fn rewrite(
    rows: &[Effective],
    sources: &[SourceText],
    wanted: &[Wanted],
) -> Result<Vec<Rewritten>, Vec<Unwritten>> {
    let said = Said { rows };
    let roots: Vec<Option<YamlPiece>> = sources.iter().map(|source| outline(&source.text)).collect();
    let mut pages: BTreeMap<usize, Page<'_>> = BTreeMap::new();
    let mut unwritten = Vec::new();
    // New keys of the last item come in front of a new item, and what is behind all items comes last.
    let rank = |(_, one): &(usize, &Wanted)| match one.change {
        WantedChange::Field { .. } | WantedChange::Remove(_) => 0,
        WantedChange::Add(_) => 1,
        WantedChange::InFlight(_) => 2,
    };
    let mut ordered: Vec<(usize, &Wanted)> = wanted.iter().enumerate().collect();
    ordered.sort_by_key(rank);
    for (number, one) in ordered {
        let done = find::target(&roots, &one.target).and_then(|found| {
            let page = match pages.entry(found.source) {
                Entry::Occupied(there) => there.into_mut(),
                Entry::Vacant(free) => {
                    let page = Page::new(&sources[found.source].text);
                    free.insert(page.ok_or_else(|| {
                        found.obstacle(found.at(), "lines of this file end with a carriage return alone")
                    })?)
                }
            };
            write(said, page, &found, one)
        });
        if let Err(obstacle) = done {
            unwritten.push((number, obstacle.told(said, sources, one)));
        }
    }
    if !unwritten.is_empty() {
        unwritten.sort_by_key(|(number, _)| *number);
        return Err(unwritten.into_iter().map(|(_, one)| one).collect());
    }
    let rewritten = pages.into_iter().map(|(source, page)| {
        let (text, lines) = page.finish();
        Rewritten { source, text, lines }
    });
    Ok(rewritten.filter(|one| *one.text != *sources[one.source].text).collect())
}

/// Does one change on the page of its target.
fn write(
    said: Said<'_>,
    page: &mut Page<'_>,
    found: &FoundTarget<'_>,
    wanted: &Wanted,
) -> Result<(), Obstacle> {
    match &wanted.change {
        WantedChange::InFlight(value) => write::in_flight(page, found, value),
        WantedChange::Field { backend, key, value } => {
            let item = found.item(number_of(said, &wanted.target, backend)?)?;
            write::field(page, found, item, (*key, value))
        }
        WantedChange::Add(fields) => {
            from_file(said, &wanted.target, 0)?;
            write::add(page, found, fields)
        }
        WantedChange::Remove(backend) => {
            write::remove(page, found, number_of(said, &wanted.target, backend)?)
        }
    }
}

/// The how manieth item of its list a backend is.
fn number_of(said: Said<'_>, target: &str, backend: &str) -> Result<usize, Obstacle> {
    let number = backend_numbers(said.rows, target).get(backend).copied();
    let number =
        number.ok_or_else(|| Obstacle::nowhere(format!("the file has no backend {target}/{backend}")))?;
    from_file(said, target, number)?;
    Ok(number)
}

/// Refuses backends that are those of a flag.
fn from_file(said: Said<'_>, target: &str, number: usize) -> Result<(), Obstacle> {
    let path = format!("targets.{target}.backends[{number}].address");
    match said.rows.iter().find(|row| row.path == path).map(|row| &row.origin) {
        Some(Origin::Flag(flag)) => Err(Obstacle::nowhere(format!(
            "the backends of {target} come from `{flag}`, and not from a file"
        ))),
        _ => Ok(()),
    }
}

impl Obstacle {
    /// With what to write instead.
    fn told(self, said: Said<'_>, sources: &[SourceText], wanted: &Wanted) -> Unwritten {
        let target = &wanted.target;
        let key = match &wanted.change {
            WantedChange::Field { backend, .. } | WantedChange::Remove(backend) => {
                let number = backend_numbers(said.rows, target).get(&**backend).copied();
                format!("targets.{target}.backends[{}].address", number.unwrap_or_default())
            }
            WantedChange::Add(_) => format!("targets.{target}.backends[0].address"),
            WantedChange::InFlight(_) => format!("targets.{target}.protocol"),
        };
        let row = said.rows.iter().find(|row| row.path == key).map(|row| &row.origin);
        let (file, line) = match (self.at, row) {
            (Some((source, line)), _) => (Some(Arc::clone(&sources[source].name)), Some(line + 1)),
            (None, Some(Origin::File { file, line } | Origin::Environment { file, line, .. })) => {
                (Some(Arc::clone(file)), Some(*line))
            }
            (None, _) => (None, None),
        };
        let (instead, lines) = match &wanted.change {
            WantedChange::Field { backend, key, value } => {
                (format!("write into the backend {target}/{backend}"), vec![write::line(key, value)])
            }
            WantedChange::InFlight(value) => {
                (format!("write into the target {target}"), vec![write::line("max_in_flight", value)])
            }
            WantedChange::Add(fields) => {
                let lines = if self.is_flow { vec![write::in_flow(fields)] } else { write::item(fields) };
                (format!("write as one more of the backends of {target}"), lines)
            }
            WantedChange::Remove(backend) => (format!("take the backend {target}/{backend} out"), Vec::new()),
        };
        Unwritten { file, line, why: self.why, instead, lines }
    }
}
