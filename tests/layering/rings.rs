//! Files that import one another in a ring.
//!
//! A file imports another one when it names something that is defined there, in a `use` or in a path. A name that a file only
//! passes on (`pub use`) is followed to where it is defined; passing on is no import. Between a file and the folder of
//! the same name it is like anywhere else: either the file above uses what is in the folder, or those in the folder use what it
//! defines. `mod x;` alone imports nothing. What only tests compile is left out: a test may use whatever there is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{collect, is_punct, is_word};

type Module = Vec<String>;

/// The crates that are looked at.
const CRATES: &[&str] = &["src", "fake_backend/src", "benches/rig/src", "fuzz/cases/src"];

#[test]
fn no_files_import_one_another_in_a_ring() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut report = String::new();
    for folder in CRATES {
        let folder = root.join(folder);
        let mut files = Vec::new();
        collect(&folder, &mut files);
        let has_lib = folder.join("lib.rs").exists();
        let sources = files.iter().filter_map(|file| {
            let name = file.strip_prefix(&folder).expect("below it").to_str().expect("UTF-8");
            // Where there is a library, the command is another crate.
            let source = std::fs::read_to_string(file).expect("readable");
            (!has_lib || name != "main.rs").then(|| (name.to_owned(), source))
        });
        let tree = Tree::read(sources);
        assert!(tree.files.len() > 3, "saw {} files in {}", tree.files.len(), folder.display());
        let edges = tree.edges();
        let count: usize = edges.values().map(BTreeMap::len).sum();
        assert!(count > tree.files.len() / 2, "saw {count} imports in {}", folder.display());
        report += &rings(&edges).concat();
    }
    assert!(report.is_empty(), "\n{report}");
}

/// What one file says about others.
#[derive(Default)]
struct File {
    uses: Vec<Use>,
    paths: Vec<Vec<String>>,
    children: BTreeSet<String>,
}

/// One leaf of a `use`.
struct Use {
    passes_on: bool,
    path: Vec<String>,
    name: String,
}

#[derive(Default)]
struct Tree {
    files: BTreeMap<Module, File>,
}

/// Which file imports which, and by what names.
type Edges = BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>>;

impl Tree {
    fn read(sources: impl Iterator<Item = (String, String)>) -> Tree {
        let (mut tree, mut tests) = (Tree::default(), Vec::new());
        for (name, source) in sources {
            let inner = name.trim_end_matches(".rs");
            let inner = inner.strip_suffix("/mod").unwrap_or(inner);
            let parts = inner.split('/').filter(|part| !matches!(*part, "lib" | "main" | "mod"));
            let module: Module = parts.map(str::to_owned).collect();
            let tokens: TokenStream = source.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut scan = Scan { file: File::default(), tests: Vec::new() };
            scan.walk(tokens);
            tests.extend(scan.tests.into_iter().map(|child| [&module[..], &[child]].concat()));
            tree.files.insert(module, scan.file);
        }
        tree.files.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        tree
    }

    fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (module, file) in &self.files {
            let uses = file.uses.iter().filter(|used| !used.passes_on).map(|used| &used.path);
            for path in uses.chain(&file.paths) {
                let Some(full) = self.absolute(module, path) else { continue };
                let star = full.last().is_some_and(|last| last == "*");
                let target = self.resolve(&full[..full.len() - usize::from(star)], &mut BTreeSet::new());
                if target != *module {
                    let names = edges.entry(module.clone()).or_default().entry(target).or_default();
                    names.insert(path.join("::"));
                }
            }
        }
        edges
    }

    /// The path from the root of the crate; `None`: it leads to another crate, or into the file itself.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let first = path.first()?.as_str();
        if first == "crate" {
            return Some(path[1..].to_vec());
        }
        let rest = if first == "self" { &path[1..] } else { path };
        let up = rest.iter().take_while(|part| *part == "super").count();
        let is_child = self.files.get(module).is_some_and(|file| file.children.contains(first));
        if first == "self" || up > 0 || is_child {
            return Some([&module[..module.len().checked_sub(up)?], &rest[up..]].concat());
        }
        // A module that was imported by name.
        let used =
            self.files.get(module)?.uses.iter().find(|used| used.name == first && used.path != path)?;
        let is_module = matches!(used.path[0].as_str(), "crate" | "self" | "super");
        if !is_module || path.len() < 2 {
            return None;
        }
        Some([&self.absolute(module, &used.path)?[..], &path[1..]].concat())
    }

    /// The file in which what is at this path is defined.
    fn resolve(&self, path: &[String], seen: &mut BTreeSet<Vec<String>>) -> Module {
        let depth =
            (0..=path.len()).rev().find(|&depth| self.files.contains_key(&path[..depth])).unwrap_or(0);
        let (module, rest) = path.split_at(depth);
        let Some(item) = rest.first().filter(|_| seen.insert(path.to_vec())) else { return module.to_vec() };
        let Some(file) = self.files.get(module) else { return module.to_vec() };
        let passed = file.uses.iter().find(|used| used.name == *item);
        match passed.and_then(|used| self.absolute(module, &used.path)) {
            Some(behind) if behind[..] != *path => self.resolve(&[&behind[..], &rest[1..]].concat(), seen),
            _ => module.to_vec(),
        }
    }
}

/// A walk over one file's tokens.
struct Scan {
    file: File,
    /// Children that only tests compile.
    tests: Vec<String>,
}

impl Scan {
    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let mut public = false;
        while let Some(token) = tokens.get(at) {
            if is_test_only(&tokens[at..]) {
                at = self.skip(&tokens, at + 2);
                continue;
            }
            let is_pub = is_word(Some(token), "pub");
            match token {
                TokenTree::Ident(ident) if *ident == "use" => {
                    let end = tokens[at..].iter().position(|token| is_punct(Some(token), ';'));
                    let end = end.map_or(tokens.len(), |end| at + end);
                    self.leaves(&tokens[at + 1..end], &[], public);
                    at = end;
                }
                TokenTree::Ident(ident) if *ident == "mod" && is_punct(tokens.get(at + 2), ';') => {
                    self.file.children.extend(tokens.get(at + 1).map(ToString::to_string));
                    at += 3;
                }
                TokenTree::Ident(_) => at = self.path(&tokens, at),
                // `pub(…)` is public as well; it names a scope and imports nothing.
                TokenTree::Group(group) if public && group.delimiter() == Delimiter::Parenthesis => {
                    at += 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    self.walk(group.stream());
                    at += 1;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => at += 1,
            }
            public = is_pub;
        }
    }

    /// Behind the item, or the statement, that begins at `at`.
    fn skip(&mut self, tokens: &[TokenTree], mut at: usize) -> usize {
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Ident(ident) if *ident == "mod" => {
                    self.tests.extend(tokens.get(at).map(ToString::to_string));
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => break,
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                _ => {}
            }
        }
        at
    }

    /// The path that begins at `at`, if it is one. Where it ends.
    fn path(&mut self, tokens: &[TokenTree], mut at: usize) -> usize {
        let mut path = Vec::new();
        while let Some(TokenTree::Ident(ident)) = tokens.get(at) {
            path.push(ident.to_string());
            at += 1;
            let goes_on = is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':');
            if !goes_on {
                break;
            }
            at += 2;
        }
        if path.len() > 1 {
            self.file.paths.push(path);
        }
        at
    }

    /// The leaves of a `use`.
    fn leaves(&mut self, tokens: &[TokenTree], before: &[String], passes_on: bool) {
        let mut path = before.to_vec();
        let mut alias = None;
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Ident(ident) if *ident == "as" => {
                    alias = tokens.get(at + 1).map(ToString::to_string);
                    break;
                }
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Punct(punct) if punct.as_char() == '*' => path.push("*".to_owned()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    for branch in
                        inner.split(|token| is_punct(Some(token), ',')).filter(|one| !one.is_empty())
                    {
                        self.leaves(branch, &path, passes_on);
                    }
                    return;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(last) = path.last() {
            let name = alias.unwrap_or_else(|| last.clone());
            self.file.uses.push(Use { passes_on, name, path });
        }
    }
}

/// Whether `#[cfg(test)]` comes first.
fn is_test_only(tokens: &[TokenTree]) -> bool {
    is_punct(tokens.first(), '#')
        && matches!(tokens.get(1), Some(TokenTree::Group(group)) if group.stream().to_string().replace(' ', "") == "cfg(test)")
}

/// Every ring, with what its files name of one another.
fn rings(edges: &Edges) -> Vec<String> {
    let reach = |from: &Module| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(module) = next.pop() {
            for target in edges.get(module).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(target) {
                    next.push(target);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        edges.keys().map(|from| (from, reach(from))).collect();
    let mut rings: BTreeSet<Vec<&Module>> = BTreeSet::new();
    for (from, targets) in reached.iter().filter(|(from, targets)| targets.contains(*from)) {
        let back = |target: &&&Module| reached.get(**target).is_some_and(|behind| behind.contains(from));
        rings.insert(targets.iter().filter(back).copied().collect());
    }
    let shown = |ring: Vec<&Module>| {
        let mut text = format!("a ring of {} files\n", ring.len());
        for from in &ring {
            for (target, names) in edges[*from].iter().filter(|(target, _)| ring.contains(target)) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                text += &format!("  {} → {}: {}\n", from.join("::"), target.join("::"), names.join(", "));
            }
        }
        text
    };
    rings.into_iter().map(shown).collect()
}

/// The rings of these files, given as name and source.
fn rings_of(files: &[(&str, &str)]) -> Vec<String> {
    let sources = files.iter().map(|(name, source)| ((*name).to_owned(), (*source).to_owned()));
    rings(&Tree::read(sources).edges())
}

#[test]
fn a_ring_is_found_however_its_imports_are_written() {
    for (one, other) in [
        ("use super::b::B;", "use crate::x::a::A;"),
        ("use super::b;\nfn f() { b::g() }", "fn g(a: &super::a::A) {}"),
        ("use crate::x::{b::{self, B}};", "fn f() { assert!(super::a::is()) }"),
        ("fn f() { super::b::g(); }", "macro_rules! m { () => { $crate::x::a::f() } }"),
        ("use super::B as Other;", "use super::A;"),
        ("pub(crate) struct A(super::b::B);", "pub(in crate::x) struct B;\nuse super::a::*;"),
    ] {
        let root = "mod a; mod b; pub(crate) use a::A; pub use b::B;";
        let rings = rings_of(&[("lib.rs", "mod x;"), ("x/mod.rs", root), ("x/a.rs", one), ("x/b.rs", other)]);
        assert!(rings.len() == 1 && rings[0].starts_with("a ring of 2 files"), "{one}\n{other}\n{rings:?}");
    }
    let parent = "mod child; use child::C; pub struct P;";
    assert_eq!(rings_of(&[("p.rs", parent), ("p/child.rs", "use super::P; pub struct C;")]).len(), 1);
}

#[test]
fn what_only_leads_downwards_or_only_tests_compile_is_no_ring() {
    let low = "pub struct A; #[cfg(test)] mod tests { use super::super::b::B; }";
    let mid = "use super::a::A; #[cfg(test)] fn f() { super::c::g() } fn g() { #[cfg(test)] crate::c::g(); }";
    let top = "use crate::{a::A, b}; #[cfg(test)] mod tests;";
    let tests = "use super::*; use crate::d::D;";
    let above = "use crate::c::C;";
    let files = [("a.rs", low), ("b.rs", mid), ("c.rs", top), ("c/tests.rs", tests), ("d.rs", above)];
    assert_eq!(rings_of(&files), Vec::<String>::new());
    let folder =
        [("p/mod.rs", "mod child; pub use child::C; pub struct P;"), ("p/child.rs", "use super::P;")];
    assert_eq!(rings_of(&folder), Vec::<String>::new(), "passing on is no import");
}
