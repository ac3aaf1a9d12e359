//! What the program says of its own commands: help, completions, manual pages, the schema.

use super::outcome;

/// The commands that `--help` lists.
fn commands() -> Vec<String> {
    let (_, help, _) = outcome(&["--help"]);
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Deeper lines go on with the text of the command above.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names
        .filter_map(|line| line.split(' ').next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn help_of_every_command_shows_an_example() {
    assert_eq!(
        commands(),
        [
            "check",
            "plan",
            "reload",
            "apply",
            "confirm",
            "rollback",
            "upgrade",
            "healthcheck",
            "status",
            "top",
            "explain",
            "drain",
            "down",
            "ready",
            "weight",
            "add",
            "remove",
            "block",
            "unblock",
            "purge",
            "cluster",
            "diff",
            "save",
            "log",
            "why",
            "demo",
            "completions",
            "man",
            "schema",
            "simulate",
        ]
    );
    for command in commands() {
        let (code, help, _) = outcome(&[&command, "--help"]);
        assert_eq!(code, Some(0), "{command}");
        assert!(help.contains(&format!("Examples:\n  evenkeel {command}")), "{help}");
    }
    let (code, version, _) = outcome(&["--version"]);
    assert_eq!((code, version), (Some(0), format!("evenkeel {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn completions_know_commands_flags_and_names_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, err) = outcome(&["completions", shell]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{shell}");
        for word in ["check", "schema", "health-check-max-retries", "cache-enabled", "evenkeel"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        // What clap writes for these two does not complete values.
        let proposes_values = !matches!(shell, "elvish" | "powershell");
        assert_eq!(script.contains("trace"), proposes_values, "{shell}");
        if shell == "bash" {
            assert!(script.contains(r#"compgen -W "text json""#), "{script}");
        }
    }
    let (code, _, err) = outcome(&["completions", "tcsh"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("tcsh") && err.contains("bash, elvish, fish, powershell, zsh"), "{err}");
}

/// bash begins another word at each colon.
#[test]
fn names_with_colons_are_completed_in_bash() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "#!/bin/sh\nprintf 'web\nweb/10.0.0.1:80\nweb/10.0.0.1:8080\nweb/[::1]:80\n'\n")
        .unwrap();
    // By another process: what is open for writing in this one is open in whatever another test begins at this moment, and can't be run as long.
    let stub = folder.path().join("evenkeel");
    let made = std::process::Command::new("install").args(["-m", "755"]).args([&text, &stub]).status();
    assert!(made.unwrap().success());
    let (_, script, _) = outcome(&["completions", "bash"]);
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    // The words as bash has them when somebody presses the key behind `line`.
    let proposed = |line: &str, words: &str| {
        let ask = format!(
            "source /dev/stdin; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); complete -p evenkeel | grep -q _evenkeel_whole || exit 9; \
             last=\"${{COMP_WORDS[COMP_CWORD]}}\"; _evenkeel_whole evenkeel \"$last\" drain; echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", &ask]).env("PATH", &path).env_remove("COMP_WORDBREAKS");
        bash.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut bash = bash.spawn().unwrap();
        bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        String::from_utf8(bash.wait_with_output().unwrap().stdout).unwrap().trim_end().to_owned()
    };
    assert_eq!(
        proposed("evenkeel drain we", "evenkeel drain we"),
        "web web/10.0.0.1:80 web/10.0.0.1:8080 web/[::1]:80"
    );
    assert_eq!(proposed("evenkeel drain web/10.0.0.1:", "evenkeel drain web/10.0.0.1 ':'"), "80 8080");
    assert_eq!(proposed("evenkeel drain web/10.0.0.1:808", "evenkeel drain web/10.0.0.1 ':' 808"), "8080");
    assert_eq!(proposed("evenkeel drain web/[::", "evenkeel drain 'web/[' '::'"), "1]:80");
    assert_eq!(proposed("evenkeel drain x:", "evenkeel drain x ':'"), "");
}

#[test]
fn the_manual_page_has_every_command_flag_and_exit_code() {
    let (code, page, _) = outcome(&["man"]);
    assert_eq!(code, Some(0));
    assert!(page.contains("\n.TH \"EVENKEEL\" 1 "), "{page}");
    for section in
        ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXAMPLES", "SIGNALS", "\"EXIT STATUS\""]
    {
        assert_eq!(page.matches(&format!("\n.SH {section}\n")).count(), 1, "{section}");
    }
    for command in commands() {
        assert!(page.contains(&format!("\n.SS \"evenkeel {command}\"\n")), "{command}");
    }
    for flag in ["config", "backends", "log\\-level", "http\\-port", "dir", "cache\\-timeout\\-in\\-seconds"]
    {
        assert!(page.contains(&format!("\\fB\\-\\-{flag}\\fR")), "{flag}");
    }
    assert!(page.contains("\n3  connections were cut at the shutdown\n"), "{page}");
}

#[test]
fn manual_pages_are_written_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("share/man1");
    let (code, out, err) = outcome(&["man", "--dir", made.to_str().unwrap()]);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", ""));
    let main = std::fs::read_to_string(made.join("evenkeel.1")).unwrap();
    assert_eq!(main, outcome(&["man"]).1);
    for command in commands() {
        let page = std::fs::read_to_string(made.join(format!("evenkeel-{command}.1"))).unwrap();
        assert!(page.contains(&format!(".TH \"EVENKEEL-{}\" 1 ", command.to_uppercase())), "{page}");
        assert!(page.contains(".SH EXAMPLES\n.nf\nevenkeel") && page.contains("evenkeel(1)"), "{page}");
    }
    assert_eq!(std::fs::read_dir(&made).unwrap().count(), commands().len() + 1);
    let (code, _, err) = outcome(&["man", "--dir", "Cargo.toml"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("Cargo.toml"), "{err}");
}

#[test]
fn the_schema_is_json_that_describes_a_config() {
    let (code, out, err) = outcome(&["schema"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.ends_with("}\n"), "{out}");
    let schema: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["additionalProperties"], false);
    let target = &schema["properties"]["targets"]["additionalProperties"];
    assert_eq!(target["required"], serde_json::json!(["backends"]));
    assert_eq!(target["properties"]["timeouts"]["properties"]["connect"]["default"], "3s");
}
