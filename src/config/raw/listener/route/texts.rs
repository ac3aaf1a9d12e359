//! Texts with variables, and mappings of names to them.

use crate::config::error::{Wrong, one_of, quoted};
use crate::config::model::text::{Text, TextFault, TextFaultKind, TextPiece, TextPlace, Variable};
use crate::config::origin::Written;
use crate::config::raw::reader::{Reader, found};
use crate::config::raw::vocabulary::nearest::nearest;
use crate::config::yaml::{Node, Typed};

/// The longest text there may be, in bytes: a head has to hold what becomes of several.
const LONGEST: usize = 4_096;

/// Names that nginx, HAProxy, Envoy, Traefik and the access log have for our variables.
const FOREIGN: &[(&str, &str)] = &[
    ("remote_addr", "client_ip"),
    ("client", "client_ip"),
    ("ip", "client_ip"),
    ("src", "client_ip"),
    ("uri", "path_only"),
    ("request_uri", "path"),
    ("args", "query"),
    ("query_string", "query"),
    ("server_name", "hostname"),
    ("authority", "host"),
    ("proto", "scheme"),
    ("protocol", "scheme"),
    ("request_id", "id"),
    ("request_method", "method"),
    ("upstream", "target"),
    ("username", "user"),
];

/// Reads a text that stands in such a place; `subject` is what a message calls it, `expected` what would be right.
pub(super) fn text(
    node: &Node,
    subject: &str,
    expected: &str,
    place: TextPlace,
    reader: &mut Reader<'_>,
) -> Option<Written<Text>> {
    let spot = reader.spot_of(node);
    let source = match (node.typed(), node.text()) {
        (Typed::Null | Typed::List(_) | Typed::Map(_), _) | (_, None) => {
            let wrong = Wrong::new(found(node), expected);
            let wrong = match node.typed() {
                Typed::Map([only]) if only.node.is_null() => {
                    wrong.note(format!("a value that begins with `{{` needs quotes: \"{{{}}}\"", only.key))
                }
                Typed::Map(_) => wrong.note("a value that begins with `{` needs quotes"),
                _ => wrong,
            };
            reader.report.wrong(&spot, subject, wrong);
            return None;
        }
        (_, Some(source)) => source,
    };
    if source.len() > LONGEST {
        let wrong = Wrong::new(format!("is longer than {LONGEST} bytes"), "a shorter text");
        reader.report.wrong(&spot, subject, wrong);
        return None;
    }
    match Text::parse(source, place) {
        Ok(text) => Some(Written::new(text, spot)),
        Err(faults) => {
            for fault in &faults {
                let at = reader.spot_inside(node, fault.start, fault.width);
                reader.report.wrong(&at, subject, wrong_of(fault));
            }
            None
        }
    }
}

/// What is wrong, in words.
fn wrong_of(fault: &TextFault) -> Wrong {
    match &fault.kind {
        TextFaultKind::Unknown(name) => unknown(name),
        TextFaultKind::TooEarly(name) if name == "backend" => {
            Wrong::bare(format!("has {}, and no backend is chosen yet", quoted(&format!("{{{name}}}"))))
                .note("it is known in `headers: {response: …}` only")
        }
        TextFaultKind::TooEarly(name) => {
            Wrong::bare(format!("has {}, and here nothing goes to a target", quoted(&format!("{{{name}}}"))))
                .note("write the name itself")
        }
        TextFaultKind::BadHeader(name) if name.is_empty() => {
            Wrong::new("has a header without a name", "a name behind the point, such as `{header.origin}`")
        }
        TextFaultKind::BadHeader(name) => Wrong::new(
            format!("asks for the header {}, which no request can have", quoted(name)),
            "letters, digits and `-`",
        ),
        TextFaultKind::BadCookie(name) if name.is_empty() => {
            Wrong::new("has a cookie without a name", "a name behind the point, such as `{cookie.user}`")
        }
        TextFaultKind::BadCookie(name) => Wrong::new(
            format!("asks for the cookie {}, which no request can have", quoted(name)),
            "letters, digits, `-` and `_`",
        ),
        TextFaultKind::Unclosed => Wrong::bare("has a `{` that no `}` closes")
            .hint("write `{{` if the character itself is meant", "{{"),
        TextFaultKind::Unopened => Wrong::bare("has a `}` that no `{` opens")
            .hint("write `}}` if the character itself is meant", "}}"),
        TextFaultKind::NoExpression(number) => {
            Wrong::bare(format!("has `${number}`, and there is no `path_regex` whose group that could be"))
                .hint(
                    format!("write `$${number}` if the characters themselves are meant"),
                    format!("$${number}"),
                )
        }
        TextFaultKind::NoGroup(0, _) => Wrong::new(
            "has `$0`, and groups count from 1",
            "`$1` to `$9`, or `{path_only}` for all of the path",
        ),
        TextFaultKind::NoGroup(number, there) => {
            let groups = match there {
                0 => "no group".to_owned(),
                1 => "one group".to_owned(),
                many => format!("{many} groups"),
            };
            Wrong::bare(format!("has `${number}`, and `path_regex` has {groups}"))
                .note(format!("`$${number}` is how the characters themselves are written"))
        }
        TextFaultKind::Control => Wrong::new("has a line end or another control character", "one line")
            .note("a text behind `>-` becomes one line"),
    }
}

fn unknown(name: &str) -> Wrong {
    let names = || Variable::NAMED.iter().map(|(name, _)| *name);
    let message = format!("has the variable {}, which does not exist", quoted(&format!("{{{name}}}")));
    let lower = name.trim().trim_start_matches('$').to_lowercase().replace('-', "_");
    let foreign = FOREIGN.iter().find(|(word, _)| *word == lower).map(|(_, ours)| *ours);
    let inside =
        |starts: &[&str]| starts.iter().find_map(|start| lower.strip_prefix(start)).map(str::to_owned);
    let header = inside(&["header_", "header:", "http_", "req.hdr.", "request.header."]);
    let header = header.map(|header| format!("{{header.{}}}", header.replace('_', "-")));
    let cookie = inside(&["cookie_", "cookie:"]).map(|cookie| format!("{{cookie.{cookie}}}"));
    let meant = foreign.or_else(|| nearest(&lower, names())).map(|ours| format!("{{{ours}}}"));
    match meant.or(header).or(cookie) {
        Some(meant) => Wrong::bare(message).hint(format!("did you mean `{meant}`?"), meant),
        None => Wrong::new(message, one_of(names().chain(["header.<name>", "cookie.<name>"])))
            .note("`{{` and `}}` are the braces themselves"),
    }
}

/// The first of its constant parts that has something which does not fit.
pub(super) fn odd_part(text: &Text, is_odd: impl Fn(char) -> bool) -> Option<char> {
    text.pieces().iter().find_map(|piece| match piece {
        TextPiece::Plain(plain) => plain.chars().find(|c| is_odd(*c)),
        TextPiece::Value(_) => None,
    })
}

/// What it begins with, as far as that is constant.
pub(super) fn start_of(text: &Text) -> &str {
    match text.pieces() {
        [TextPiece::Plain(plain), ..] => plain,
        _ => "",
    }
}
