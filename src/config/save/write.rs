//! Single changes on a page, and how values are written.

use super::find::{FoundTarget, Obstacle};
use super::page::Page;
use super::wanted::WantedValue;
use crate::config::yaml::{NodeForm, NodeMark, Quotes, Typed, YamlPiece, plain};

/// `max_in_flight` of a target.
pub(super) fn in_flight(
    page: &mut Page<'_>,
    found: &FoundTarget<'_>,
    value: &WantedValue,
) -> Result<(), Obstacle> {
    const KEY: &str = "max_in_flight";
    let target = found.target()?;
    if target.entry(KEY).is_some() || target.is_flow() {
        return field(page, found, target, (KEY, value));
    }
    let entries = entries(target);
    let Some((first, _)) = entries.first() else {
        return Err(found.obstacle(target.start.line, "the target is not written out"));
    };
    // Behind the last short key in front of the backends, and not behind all of them.
    let list = entries.iter().position(|(key, _)| key.text() == Some("backends")).unwrap_or(entries.len());
    let is_short =
        |(key, value): &&(YamlPiece, YamlPiece)| is_single(value) && value.end.line == key.start.line;
    let line = match entries[..list].iter().rev().find(is_short) {
        Some((key, _)) => key.start.line + 1,
        None if list > 0 && list < entries.len() => entries[list].0.start.line,
        None => {
            behind(page, found, target)?;
            target.end.line + 1
        }
    };
    page.insert(line, [" ".repeat(first.start.column) + &self::line(KEY, value)]);
    Ok(())
}

/// One key of a mapping.
pub(super) fn field(
    page: &mut Page<'_>,
    found: &FoundTarget<'_>,
    of: &YamlPiece,
    (key, value): (&str, &WantedValue),
) -> Result<(), Obstacle> {
    let Some((name, now)) = of.entry(key) else { return new_field(page, found, of, &line(key, value)) };
    let refuse = |why: String| Err(found.obstacle(name.start.line, why));
    let NodeForm::Scalar(text, quotes) = &now.form else {
        return refuse(format!("`{key}` is an alias"));
    };
    if now.is_marked {
        return refuse(format!("`{key}` has an anchor or a tag"));
    }
    if text.contains("${") {
        return refuse(format!("`{key}` comes from a variable"));
    }
    // What spans several lines, or has none of its own.
    if *quotes == Quotes::Block || now.start >= now.end || page.between(now.start, now.end).is_none() {
        return refuse(format!("`{key}` is not written on one line"));
    }
    page.replace(now.start, now.end, scalar(value, *quotes, true))
        .ok_or_else(|| found.obstacle(name.start.line, format!("`{key}` is not where it should be")))
}

/// A key that a mapping does not have yet.
fn new_field(
    page: &mut Page<'_>,
    found: &FoundTarget<'_>,
    of: &YamlPiece,
    line: &str,
) -> Result<(), Obstacle> {
    let (Some((first, _)), Some((_, last))) = (entries(of).first(), entries(of).last()) else {
        return Err(found.obstacle(of.start.line, "this mapping is empty"));
    };
    if of.is_flow() {
        // A key without a value ends nowhere.
        if last.start >= last.end {
            return Err(found.obstacle(of.start.line, "the last key in these brackets has no value"));
        }
        return page
            .replace(last.end, last.end, format!(", {line}"))
            .ok_or_else(|| found.obstacle(of.start.line, "these brackets are not where they should be"));
    }
    behind(page, found, of)?;
    page.insert(of.end.line + 1, [" ".repeat(first.start.column) + line]);
    Ok(())
}

/// One more backend behind the last one.
pub(super) fn add(
    page: &mut Page<'_>,
    found: &FoundTarget<'_>,
    fields: &[(&'static str, WantedValue)],
) -> Result<(), Obstacle> {
    let (list, items) = found.items()?;
    let Some(last) = items.last().filter(|_| !list.is_flow()) else {
        let obstacle = found.obstacle(list.start.line, "the backends stand in brackets");
        return Err(Obstacle { is_flow: list.is_flow(), ..obstacle });
    };
    let (_, dash) = dash(page, found, items.first().unwrap_or(last))?;
    behind(page, found, last)?;
    let lines = match (&last.form, fields) {
        (_, [(_, url)]) if found.is_servers() => vec![format!("- {}", scalar(url, Quotes::None, false))],
        _ if found.is_servers() => {
            return Err(found.obstacle(
                list.start.line,
                "`servers` takes nothing but URLs: it has to become a target below `targets`",
            ));
        }
        (NodeForm::Map { is_flow: true, .. }, _) => vec![format!("- {}", in_flow(fields))],
        (NodeForm::Map { .. }, _) => item_with(fields, last.start.column.saturating_sub(dash).max(2)),
        (NodeForm::Scalar(..) | NodeForm::List { .. } | NodeForm::Alias, _) => item(fields),
    };
    let lead = " ".repeat(dash);
    page.insert(own_end(page, last, dash) + 1, lines.into_iter().map(|line| format!("{lead}{line}")));
    Ok(())
}

/// One backend less, with the comments that belong to it.
pub(super) fn remove(page: &mut Page<'_>, found: &FoundTarget<'_>, number: usize) -> Result<(), Obstacle> {
    let (list, _) = found.items()?;
    let item = found.one(number)?;
    if list.is_flow() {
        return Err(found.obstacle(item.start.line, "the backends stand in brackets"));
    }
    if item.any(&|piece| piece.is_marked) {
        return Err(found.marked(item, "this backend, or a value of it,"));
    }
    behind(page, found, item)?;
    let (first, dash) = dash(page, found, item)?;
    let is_its = |line: &usize| is_comment(page.line(*line)) && indent(page.line(*line)) == dash;
    let first = (0..first).rev().take_while(is_its).last().unwrap_or(first);
    let last = own_end(page, item, dash);
    page.remove(first, last);
    Ok(())
}

/// The line with the dash in front of an item, and the column of the dash.
fn dash(page: &Page<'_>, found: &FoundTarget<'_>, item: &YamlPiece) -> Result<(usize, usize), Obstacle> {
    // It may stand on a line of its own, with comments behind it.
    let mut lines = (0..=item.start.line).rev().map(|line| (line, page.line(line)));
    let is_its = |(line, text): &(usize, &str)| {
        text.trim_start().starts_with('-') && (*line < item.start.line || indent(text) < item.start.column)
    };
    let (line, text) = lines
        .find(is_its)
        .ok_or_else(|| found.obstacle(item.start.line, "this item does not begin with a dash"))?;
    Ok((line, indent(text)))
}

/// Refuses what does not end with its line, or where nobody knows with which.
fn behind(page: &Page<'_>, found: &FoundTarget<'_>, piece: &YamlPiece) -> Result<(), Obstacle> {
    if piece.any(&|piece| matches!(piece.form, NodeForm::Scalar(_, Quotes::Block))) {
        return Err(found.obstacle(piece.start.line, "it has a text that is a block of lines"));
    }
    let line = page.line(piece.end.line);
    let end = NodeMark { line: piece.end.line, column: line.chars().count() };
    let rest = page.between(piece.end, end).map(str::trim_start);
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#')) {
        return Ok(());
    }
    Err(found.obstacle(piece.end.line, "something else stands behind it on its line"))
}

/// The last line of an item whose dash stands in this column: comments below it that are deeper are its own.
fn own_end(page: &Page<'_>, item: &YamlPiece, dash: usize) -> usize {
    let is_its = |line: &usize| is_comment(page.line(*line)) && indent(page.line(*line)) > dash;
    (item.end.line + 1..).take_while(is_its).last().unwrap_or(item.end.line)
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

fn indent(line: &str) -> usize {
    line.chars().take_while(|sign| *sign == ' ').count()
}

fn entries(of: &YamlPiece) -> &[(YamlPiece, YamlPiece)] {
    match &of.form {
        NodeForm::Map { entries, .. } => entries,
        NodeForm::Scalar(..) | NodeForm::List { .. } | NodeForm::Alias => &[],
    }
}

fn is_single(piece: &YamlPiece) -> bool {
    matches!(piece.form, NodeForm::Scalar(_, quotes) if quotes != Quotes::Block)
        && piece.start.line == piece.end.line
}

/// `key: value`.
pub(super) fn line(key: &str, value: &WantedValue) -> String {
    format!("{key}: {}", scalar(value, Quotes::None, true))
}

/// A backend as the lines of an item.
pub(super) fn item(fields: &[(&'static str, WantedValue)]) -> Vec<String> {
    item_with(fields, 2)
}

fn item_with(fields: &[(&'static str, WantedValue)], depth: usize) -> Vec<String> {
    let lead = |number: usize| {
        if number == 0 { format!("-{}", " ".repeat(depth - 1)) } else { " ".repeat(depth) }
    };
    let line = |(number, (key, value)): (usize, &(&str, WantedValue))| lead(number) + &line_of(key, value);
    fields.iter().enumerate().map(line).collect()
}

fn line_of(key: &str, value: &WantedValue) -> String {
    format!("{key}: {}", scalar(value, Quotes::None, false))
}

/// The same in brackets.
pub(super) fn in_flow(fields: &[(&'static str, WantedValue)]) -> String {
    let keys: Vec<String> = fields.iter().map(|(key, value)| line(key, value)).collect();
    format!("{{{}}}", keys.join(", "))
}

/// A value in the quotes that stood there, if it is a text. `is_flow`: it may stand in brackets.
fn scalar(value: &WantedValue, quotes: Quotes, is_flow: bool) -> String {
    match (value, quotes) {
        (WantedValue::Plain(text), _) => text.clone(),
        (WantedValue::Text(text), Quotes::None | Quotes::Block) if is_plain(text, is_flow) => text.clone(),
        (WantedValue::Text(text), Quotes::Single) if !text.contains(['\'', '$', '\\']) => format!("'{text}'"),
        (WantedValue::Text(text), _) => {
            let mut quoted = String::from("\"");
            for sign in text.replace("${", "$${").chars() {
                if matches!(sign, '"' | '\\') {
                    quoted.push('\\');
                }
                quoted.push(sign);
            }
            quoted + "\""
        }
    }
}

/// Whether a text may stand without quotes.
fn is_plain(text: &str, is_flow: bool) -> bool {
    let is_safe = |sign: char| {
        sign.is_ascii_alphanumeric() || "-._~/:@+=".contains(sign) || (!is_flow && "[]".contains(sign))
    };
    let begins = text.starts_with(|sign: char| sign.is_ascii_alphanumeric() || sign == '/' || sign == '_');
    begins && text.chars().all(is_safe) && !text.ends_with(':') && matches!(plain(text), Typed::Text(_))
}
