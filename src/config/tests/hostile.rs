//! Whatever the text, there is an answer: large files load, and nothing panics.

use proptest::prelude::*;

use super::*;

#[test]
fn a_config_of_many_megabytes_loads() {
    use std::fmt::Write as _;
    let mut text = String::from("targets:\n");
    for target in 0..100 {
        writeln!(text, "  t{target}:\n    protocol: http\n    listener: {}\n    backends:", 10_000 + target)
            .unwrap();
        for backend in 0..500 {
            writeln!(
                text,
                "      - host: 10.{target}.{}.{}\n        port: 8080\n        name: b{backend}",
                backend / 250,
                backend % 250 + 1
            )
            .unwrap();
        }
    }
    assert!(text.len() > 2_400_000, "{}", text.len());
    let config = config(&text);
    assert_eq!(config.targets.iter().map(|target| target.backends.len()).sum::<usize>(), 50_000);
}

/// Words that make texts which come near to a config.
fn word() -> impl Strategy<Value = String> {
    let words: Vec<String> = keys()
        .iter()
        .filter_map(|key| key.rsplit('.').next().map(str::to_owned))
        .chain(
            [
                ":",
                ": ",
                "- ",
                "\n",
                "\n  ",
                "\n    ",
                "[",
                "]",
                "{",
                "}",
                ", ",
                "\"",
                "'",
                "&a ",
                "*a",
                "<<: ",
                "off",
                "no",
                "8080",
                "0",
                "-1",
                "2s",
                "10MiB",
                "127.0.0.1",
                "\"*:80\"",
                "http://a:1/",
                "unix:",
                "${PORT}",
                "${",
                "$${",
                "}",
                "# ",
                "\t",
                "|\n",
                ">-\n",
                "!!str ",
                "---\n",
                "...\n",
                "%",
                "@",
                "\u{0}",
                "\u{7f}",
                "ä",
                "\u{feff}",
                "\r\n",
                "~",
                "200-399",
                "::1",
                "99999999999999999999999",
                "1e999",
                ".",
            ]
            .map(str::to_owned),
        )
        .collect();
    proptest::sample::select(words)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_has_an_answer(text in any::<String>()) {
        let _ = load_with(&text, &Flags::default()).map_err(|problems| problems.to_string());
    }

    #[test]
    fn any_text_that_looks_like_a_config_has_an_answer(words in proptest::collection::vec(word(), 0..60)) {
        let text = words.concat();
        if let Err(problems) = load_with(&text, &Flags::default()) {
            prop_assert!(!problems.list().is_empty());
            let _ = problems.to_string();
        }
    }

    #[test]
    fn any_value_of_any_key_has_an_answer(index in 0..keys().len(), value in any::<String>(), word in word()) {
        let keys = keys();
        let mut parts: Vec<&str> = keys[index].split('.').collect();
        let last = parts.pop().unwrap_or_default();
        let mut text = String::new();
        for (depth, part) in parts.iter().enumerate() {
            let indent = " ".repeat(depth * 2);
            match part.strip_suffix("[]") {
                Some(list) => text.push_str(&format!("{indent}{list}:\n{indent} -\n")),
                None => text.push_str(&format!("{indent}{}:\n", part.replace("<name>", "web"))),
            }
        }
        let indent = " ".repeat(parts.len() * 2);
        for value in [format!("{value:?}"), word, value] {
            let text = format!("{text}{indent}{last}: {value}\n");
            let _ = load_with(&text, &Flags::default()).map_err(|problems| problems.to_string());
        }
    }

    #[test]
    fn any_flags_have_an_answer(backend in any::<String>(), address in any::<String>(), path in any::<String>(), port in any::<u16>()) {
        let flags = Flags {
            backends: vec![backend.clone(), format!("http://{backend}")],
            address: Some(address.clone()),
            port: Some(port),
            algorithm: Some(address),
            health_path: Some(path),
            ..Flags::default()
        };
        let _ = load(None, &flags, &env).map_err(|problems| problems.to_string());
    }
}
