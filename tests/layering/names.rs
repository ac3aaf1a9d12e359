//! One name, one type; and folders that can be overlooked.

use std::collections::BTreeMap;
use std::path::Path;

use syn::{Attribute, Item, Visibility};

use super::collect;

/// Files directly in one folder, at most.
const MOST_FILES: usize = 20;

/// Every type of a file that is public in any degree, but for what only tests compile.
fn types(items: &[Item], found: &mut Vec<String>) {
    for item in items {
        let (attributes, visibility, name) = match item {
            Item::Struct(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Enum(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Trait(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Type(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Union(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Mod(module) => {
                if let Some((_, inner)) = module.content.as_ref().filter(|_| !is_test(&module.attrs)) {
                    types(inner, found);
                }
                continue;
            }
            _ => continue,
        };
        if !matches!(visibility, Visibility::Inherited) && !is_test(attributes) {
            found.push(name.to_string());
        }
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|one| {
        one.path().is_ident("cfg") && one.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

#[test]
fn no_public_type_name_stands_for_two_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let name = file.strip_prefix(&root).expect("below it").display().to_string();
        // Files that only tests compile.
        if name.ends_with("tests.rs") || name.contains("/tests/") {
            continue;
        }
        let source = std::fs::read_to_string(&file).expect("readable");
        let mut found = Vec::new();
        types(&syn::parse_file(&source).expect("Rust").items, &mut found);
        for one in found {
            names.entry(one).or_default().push(name.clone());
        }
    }
    assert!(names.len() > 200, "saw {} types: the check looks in the wrong place", names.len());
    let twice: Vec<_> = names.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:#?}");
}

#[test]
fn the_check_sees_every_degree_of_public_and_no_tests() {
    let source = "pub struct A; pub(crate) enum B {} pub(in crate::x) trait C {} struct D; mod x { pub type E = u8; } \
                  #[cfg(test)] mod tests { pub struct F; } #[cfg(test)] pub struct G;";
    let mut found = Vec::new();
    types(&syn::parse_file(source).expect("Rust").items, &mut found);
    assert_eq!(found, ["A", "B", "C", "E"]);
}

#[test]
fn no_folder_has_more_files_than_one_sees_at_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    let mut folders: BTreeMap<&Path, usize> = BTreeMap::new();
    for file in &files {
        *folders.entry(file.parent().expect("a folder")).or_default() += 1;
    }
    assert!(folders.len() > 10, "saw {} folders: the check looks in the wrong place", folders.len());
    let full: Vec<_> = folders.iter().filter(|(_, count)| **count > MOST_FILES).collect();
    assert!(full.is_empty(), "{full:?}");
}

#[test]
fn every_source_file_that_the_docs_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(root.join("docs")).expect("docs") {
        let file = entry.expect("readable").path();
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        for quoted in text.split('`').skip(1).step_by(2).filter(|quoted| quoted.starts_with("src/")) {
            seen += 1;
            if !root.join(quoted).exists() {
                missing.push(format!("{}: {quoted}", file.display()));
            }
        }
    }
    assert!(seen > 40, "saw {seen} names: the check looks in the wrong place");
    assert!(missing.is_empty(), "{missing:#?}");
}
