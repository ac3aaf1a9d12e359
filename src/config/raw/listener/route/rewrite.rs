//! `rewrite`: what backends get as path.

use super::matches::plain;
use super::texts::{odd_part, start_of, text};
use crate::config::error::{Wrong, quoted};
use crate::config::model::route::Rewrite;
use crate::config::model::text::{Text, TextPiece, TextPlace, Variable};
use crate::config::origin::{Field, Written};
use crate::config::raw::kind::Shape;
use crate::config::raw::reader::Reader;
use crate::config::yaml::Entry;

const FORM: &str = "`{strip_prefix: /api}`, `{add_prefix: /v2}`, both, or `{path: /new}`";
const PATH_FORM: &str = "a path that begins with `/`, such as `/v2{path_only}`";

/// Walks `rewrite`. `groups`: of the `path_regex` of its route.
pub(in crate::config::raw) fn walk(
    entry: &Entry,
    shape: &Shape,
    groups: Option<usize>,
    reader: &mut Reader<'_>,
) -> Field<Rewrite> {
    Field::read(read(entry, shape, groups, reader))
}

fn read(
    entry: &Entry,
    shape: &Shape,
    groups: Option<usize>,
    reader: &mut Reader<'_>,
) -> Option<Written<Rewrite>> {
    let spot = reader.key_spot(entry);
    let section = reader.section("`rewrite`", &entry.node, shape)?;
    let keys = ["strip_prefix", "add_prefix", "path"];
    let [strip, add, path] = keys.map(|key| section.find(key));
    if let (Some(path), Some(prefix)) = (path, strip.or(add)) {
        let message = format!("`{}` and `path` exclude each other", prefix.key);
        let problem = reader.report.at(path.key_place.max(prefix.key_place), message);
        problem.note("`path` says the whole path");
        return None;
    }
    if let Some(path) = path {
        let read = text(&path.node, "`path`", PATH_FORM, TextPlace::REQUEST.with_groups(groups), reader)?;
        if let Err(wrong) = whole_path(&read.value) {
            reader.report.wrong(&read.spot, "`path`", wrong);
            return None;
        }
        return Some(Written::new(Rewrite::Path(read.value), spot));
    }
    let mut prefix = |entry: Option<&Entry>| -> Option<String> {
        let Some(entry) = entry else { return Some(String::new()) };
        let read = reader.parsed(entry, "a path such as `/api`", plain)?;
        let prefix = read.value.trim_end_matches('/');
        if prefix.is_empty() {
            let wrong = Wrong::new("is the root, which changes nothing", "a path such as `/api`");
            reader.report.wrong(&read.spot, &format!("`{}`", entry.key), wrong);
            return None;
        }
        Some(prefix.to_owned())
    };
    let (strip, add) = (prefix(strip), prefix(add));
    if keys.iter().any(|key| section.is_misspelt(key)) {
        return None;
    }
    let (strip, add) = (strip?, add?);
    if strip.is_empty() && add.is_empty() {
        // Of an unknown key that is all there is, enough has been said.
        if section.entries().is_empty() {
            reader.report.wrong(&spot, "`rewrite`", Wrong::new("says nothing", FORM));
        }
        return None;
    }
    Some(Written::new(Rewrite::Prefix { strip, add }, spot))
}

/// Whether a text gives a path, whatever is filled in.
fn whole_path(text: &Text) -> Result<(), Wrong> {
    let is_path = |piece: &TextPiece| matches!(piece, TextPiece::Value(Variable::Path | Variable::PathOnly));
    if !start_of(text).starts_with('/') && !text.pieces().first().is_some_and(is_path) {
        let wrong =
            Wrong::new(format!("is {}, which does not begin with a slash", quoted(text.source())), PATH_FORM);
        return Err(wrong.note(format!("write `/{}`", text.source())));
    }
    match odd_part(text, |c| !c.is_ascii_graphic() || matches!(c, '\\' | '#' | '"' | '<' | '>' | '`')) {
        Some(odd) => Err(Wrong::new(
            format!("has {}, which no path has as it is", quoted(&odd.to_string())),
            "such characters as escapes: `%20` is a blank",
        )),
        None => Ok(()),
    }
}
