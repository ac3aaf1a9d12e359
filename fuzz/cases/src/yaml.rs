//! Any text as a config: a config, or problems that point into the text.

use std::path::Path;

use evenkeel::config::{Flags, load_text};

/// Any bytes as a config file.
pub fn yaml(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let variables = |name: &str| match name {
        "PORT" => Some("8080".to_owned()),
        "EMPTY" => Some(String::new()),
        // A value with the text's own syntax in it must stay a value.
        "ODD" => Some("a: [b, \"${PORT}\n- *c".to_owned()),
        _ => None,
    };
    // No file of this machine is to be read, whatever the text names.
    let folder = Path::new("/nonexistent");
    let load = || load_text(&text, "case.yaml", folder, &Flags::default(), &variables);
    let first = load();
    assert_eq!(first, load(), "the same text gives the same");
    match first {
        Ok(loaded) => {
            assert!(!loaded.config.targets.is_empty() && !loaded.effective.is_empty());
        }
        Err(problems) => {
            assert!(!problems.list().is_empty());
            // YAML 1.2 §5.4: CR, LF, and the two together end a line.
            let text = text.replace("\r\n", "\n");
            let lines: Vec<&str> = text.split(['\r', '\n']).collect();
            for problem in problems.list() {
                assert!(!problem.message.is_empty());
                assert_eq!(problem.file.as_deref(), Some("case.yaml"), "{problem}");
                let Some(place) = problem.place else { continue };
                let line = (place.line as usize).checked_sub(1).and_then(|index| lines.get(index));
                let Some(line) = line else { panic!("{} lines, and {problem}", lines.len()) };
                // One behind the last character is where something is missing.
                let columns = 1..=line.chars().count() + 1;
                assert!(columns.contains(&(place.column as usize)), "column {columns:?}: {problem}");
                assert!(place.width > 0);
            }
            let shown = problems.to_string();
            let stray = |sign: char| sign.is_control() && sign != '\n';
            assert!(!shown.chars().any(stray), "a terminal would obey this: {shown:?}");
        }
    }
}
