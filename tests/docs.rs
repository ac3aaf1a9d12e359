//! The documentation names everything there is.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use evenkeel::config;
use evenkeel::config::model::Balance;
use evenkeel::config::model::template::{DerivedField, LogField};
use evenkeel::events::EventKind;
use evenkeel::message::Cause;
use evenkeel::metrics;
use evenkeel::reload::NEED_RESTART;
use evenkeel::reload::bound::Bound;
use evenkeel::reload::fates::FATES;
use evenkeel::server::{Options, Server};
use evenkeel::simulate::Workload;

fn operations() -> String {
    std::fs::read_to_string("docs/operations.md").unwrap()
}

#[test]
fn every_cause_is_documented_with_its_status() {
    let text = operations();
    for cause in Cause::ALL {
        let row = format!("| `{}` | {} |", cause.token(), cause.status());
        assert!(text.contains(&row), "docs/operations.md lacks {row}");
    }
}

#[test]
fn every_cause_has_its_row_at_3_in_the_morning_with_its_status() {
    let text = std::fs::read_to_string("docs/at-3-am.md").unwrap();
    for cause in Cause::ALL.iter().filter(|cause| **cause != Cause::Done) {
        let row = format!("| `{}` | {} |", cause.token(), cause.status());
        assert_eq!(text.matches(&row).count(), 1, "docs/at-3-am.md: {row}");
    }
}

#[test]
fn the_configs_for_whoever_installs_it_load() {
    let folder = tempfile::tempdir().unwrap();
    let authority = fake_backend::Authority::new("docs");
    let issued = authority.issue(["localhost"]);
    std::fs::create_dir(folder.path().join("tls")).unwrap();
    for (name, text) in [("shop.pem", &issued.cert_pem), ("shop.key", &issued.key_pem)] {
        std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::write(folder.path().join("tls").join(name), text).unwrap();
    }
    std::fs::write(folder.path().join("key"), [7; 32]).unwrap();
    let mut count = 0;
    for page in ["docs/install.md", "docs/containers.md"] {
        let text = std::fs::read_to_string(page).unwrap();
        let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        // Objects of Kubernetes are not ours.
        for block in blocks.filter(|block| !block.starts_with("apiVersion")) {
            let here = folder.path().display().to_string();
            let block = block.replace("/var/log/evenkeel/", "").replace("/etc/evenkeel-cluster", &here);
            let block = block.replace("/etc/ssl/private", &here);
            let file = folder.path().join("evenkeel.yaml");
            std::fs::write(&file, &block).unwrap();
            let done = Command::new(env!("CARGO_BIN_EXE_evenkeel")).arg("check").arg(&file).output().unwrap();
            let said =
                String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{page}\n{block}\n{said}");
            count += 1;
        }
    }
    assert_eq!(count, 6);
}

/// What `--help` of a command says; of the program itself without one.
fn help(command: Option<&str>) -> String {
    let help = Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(command).arg("--help").output().unwrap();
    String::from_utf8(help.stdout).unwrap()
}

/// The commands that `--help` lists.
fn commands(help: &str) -> Vec<&str> {
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Deeper lines go on with the text of the command above.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").collect()
}

#[test]
fn every_flag_and_command_is_documented() {
    let text = operations();
    let mut seen = 0;
    let whole = help(None);
    let commands = commands(&whole);
    assert!(commands.contains(&"check") && commands.contains(&"demo"), "{commands:?}");
    for command in &commands {
        assert!(
            text.contains(&format!("| `evenkeel {command}")),
            "docs/operations.md lacks `evenkeel {command}`"
        );
    }
    for help in commands.iter().map(|command| help(Some(command))).chain([whole.clone()]) {
        for word in help.split(|sign: char| sign.is_whitespace() || ",[]=".contains(sign)) {
            let is_flag = word.len() > 2 && word.starts_with("--");
            if is_flag {
                seen += 1;
                assert!(text.contains(&format!("`{word}")), "docs/operations.md lacks `{word}`");
            }
        }
    }
    assert!(seen > 10, "only {seen} flags were found in --help");
}

/// The figures themselves are not compared: they differ by what a machine's `ln` rounds.
#[test]
fn balancing_has_figures_of_every_workload_and_algorithm() {
    let text = std::fs::read_to_string("docs/balancing.md").unwrap();
    let workloads = Workload::stock();
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        rows.map(str::to_owned).collect()
    };
    let names: Vec<&str> = Balance::ALL.iter().map(|(name, _)| *name).collect();
    for Workload { name, about, .. } in &workloads {
        let start = format!("#### {name}\n\n");
        let section = text.split(&start).nth(1).unwrap_or_else(|| panic!("docs/balancing.md lacks {name}"));
        let section = section.split("\n#").next().unwrap();
        assert!(section[1..].starts_with(&about[1..]), "docs/balancing.md says something else about {name}");
        assert_eq!(rows(section), names, "docs/balancing.md: {name}");
        assert!(text.contains(&format!("| [`{name}`](#{name}) |")), "the overview lacks {name}");
    }
    assert_eq!(text.matches("\n#### ").count(), workloads.len(), "docs/balancing.md has a workload too many");
}

#[test]
fn every_field_of_the_access_log_is_documented() {
    let backend = fake_backend::Fake::http("one").start_in_thread().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.json");
    let yaml = format!(
        "access_log: {{path: {}, format: json}}\ntargets: {{web: {{protocol: http, listener: 0, backends: [{{host: 127.0.0.1, port: {}}}]}}}}",
        path.display(),
        backend.port(),
    );
    let loaded =
        config::load_text(&yaml, "test.yaml", folder.path(), &config::Flags::default(), &|_| None).unwrap();
    let server = Server::start(&loaded.config, Options::default()).unwrap();
    let Bound::Tcp(address) = server.bound()[0].1.clone() else { panic!("a TCP listener") };
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    socket.read_to_end(&mut Vec::new()).unwrap();
    server.shutdown().advance();
    server.wait().unwrap();
    let line: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let text = operations();
    let fields = line.as_object().unwrap();
    assert!(fields.len() > 15, "{line}");
    for field in fields.keys() {
        assert!(text.contains(&format!("`{field}`")), "docs/operations.md lacks the field `{field}`");
    }
}

#[test]
fn every_field_of_a_template_is_documented() {
    let text = operations();
    let names = LogField::ALL.iter().map(|field| field.name());
    for name in names.chain(DerivedField::ALL.iter().map(|field| field.name())) {
        assert!(text.contains(&format!("`{name}`")), "docs/operations.md lacks the field `{name}`");
    }
}

#[test]
fn what_a_reload_does_is_told_of_each_kind_of_object() {
    let text = operations();
    let table = text.split("| object | what a reload does |\n|---|---|\n").nth(1).unwrap();
    let rows = table.lines().map_while(|row| row.strip_prefix("| ")?.split_once(" | "));
    let rows: Vec<(&str, &str)> = rows.collect();
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), FATES);
    let (_, refused) = rows.last().unwrap();
    let named: Vec<&str> = refused.split('`').skip(1).step_by(2).collect();
    assert_eq!(named, NEED_RESTART.map(|(key, _)| key));
}

#[test]
fn every_family_of_metrics_is_documented_and_no_other() {
    let text = std::fs::read_to_string("docs/metrics.md").unwrap();
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| `evenkeel_") || line.starts_with("| `process_"))
        .collect();
    let expected: Vec<String> = metrics::all()
        .map(|family| {
            let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
            let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
            format!(
                "| `{}` | {} | {labels} | {} | ",
                family.head.name,
                family.head.kind.name(),
                family.head.help
            )
        })
        .collect();
    for (row, expected) in rows.iter().zip(&expected) {
        let question = row.strip_prefix(expected.as_str());
        assert!(question.is_some_and(|rest| rest.contains('?')), "docs/metrics.md has {row}, not {expected}");
    }
    assert_eq!(rows.len(), expected.len(), "docs/metrics.md has rows of {} families", rows.len());
}

/// Every word of `text` that is the name of a family, or of a part of one.
fn families_in(text: &str) -> Vec<&str> {
    let words = text.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
    words.filter(|word| word.starts_with("evenkeel_") || word.starts_with("process_")).collect()
}

#[test]
fn dashboard_alerts_and_queries_use_families_that_exist() {
    let known: Vec<&str> = metrics::all().map(|family| family.head.name).collect();
    for file in ["docs/observability/dashboard.json", "docs/observability/alerts.yaml", "docs/metrics.md"] {
        let text = std::fs::read_to_string(file).unwrap();
        let used = families_in(&text);
        assert!(used.len() > 10, "{file} has {} names", used.len());
        for name in used {
            let part = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            assert!(
                known.contains(&name) || part.is_some_and(|name| known.contains(&name)),
                "{file}: {name}"
            );
        }
    }
    let text = std::fs::read_to_string("docs/observability/dashboard.json").unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() > 10);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut seen = 0;
    let folders = ["docs", "docs/coming-from"].map(|folder| std::fs::read_dir(folder).unwrap());
    let docs = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    for path in docs.chain(["README.md".into(), "CHANGELOG.md".into()]) {
        let text = std::fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with('#') {
                continue;
            }
            seen += 1;
            let file = link.split('#').next().unwrap();
            assert!(path.parent().unwrap().join(file).exists(), "{}: {link} leads nowhere", path.display());
        }
    }
    assert!(seen > 5, "only {seen} links were found");
}

/// Whether a name in which `*` stands for anything fits.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => {
            let Some(name) = name.strip_prefix(start) else { return false };
            (0..=name.len()).filter(|&at| name.is_char_boundary(at)).any(|at| fits(rest, &name[at..]))
        }
    }
}

#[test]
fn every_test_that_security_names_exists() {
    let text = std::fs::read_to_string("docs/security.md").unwrap();
    let table = text.split("| what happened | tests |").nth(1).unwrap().split("\n## ").next().unwrap();
    let names = |folder: &str, suffix: &str| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter_map(|name| Some(name.to_str()?.strip_suffix(suffix)?.to_owned())).collect()
    };
    let mut known = names("fixtures/http/request", ".txt");
    known.extend(names("fixtures/http/answer", ".txt").iter().map(|name| format!("answer/{name}")));
    let config = ["src/config/tests", "src/config/tests/secured"].map(|folder| (folder, "config::"));
    for (folder, prefix) in [("tests/e2e", "")].into_iter().chain(config) {
        for module in names(folder, ".rs") {
            let source = std::fs::read_to_string(format!("{folder}/{module}.rs")).unwrap();
            let functions = source.split("#[test]\nfn ").skip(1).filter_map(|rest| rest.split('(').next());
            known.extend(functions.map(|name| format!("{prefix}{module}::{name}")));
        }
    }
    let mut seen = 0;
    for row in table.lines().filter(|row| row.starts_with("| ")) {
        let tests = row.split(" | ").nth(1).unwrap();
        for name in tests.split('`').skip(1).step_by(2) {
            // Bars have names of one word.
            let is_bar = ["stuck", "slow-head", "slow-body", "slow-read"].contains(&name);
            assert!(is_bar || known.iter().any(|known| fits(name, known)), "there is no `{name}`: {row}");
            seen += 1;
        }
    }
    assert!(seen > 50, "saw {seen}");
}

/// All Rust files below a folder.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn every_event_has_its_words_in_one_folder() {
    let mut files = Vec::new();
    sources(Path::new("src"), &mut files);
    let mut seen = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let shipped = text.split("#[cfg(test)]").next().unwrap();
        let told = ["error", "warn", "info", "debug", "trace"].map(|level| format!("tracing::{level}!"));
        let count: usize = told.iter().map(|macro_of_it| shipped.matches(macro_of_it).count()).sum();
        if file.starts_with("src/events") || file.ends_with("src/events.rs") {
            seen += count;
        } else {
            assert_eq!(count, 0, "{} tells something that src/events does not know", file.display());
        }
    }
    assert!(seen > 30, "only {seen} events");
}

#[test]
fn every_event_has_a_kind_and_every_kind_is_told_and_documented() {
    let mut files = vec![PathBuf::from("src/events.rs")];
    sources(Path::new("src/events"), &mut files);
    let mut told = String::new();
    for file in files.iter().filter(|file| !file.ends_with("tests.rs") && !file.ends_with("kind.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        let shipped = text.split("#[cfg(test)]").next().unwrap();
        for level in ["error", "warn", "info"] {
            for call in shipped.split(&format!("tracing::{level}!(")).skip(1) {
                assert!(call.trim_start().starts_with("kind = "), "{}: {call:.60}", file.display());
            }
        }
        told += shipped;
    }
    let text = operations();
    let table = text.split("| kind | level | what it tells |\n|---|---|---|\n").nth(1).unwrap();
    let rows: Vec<&str> = table.lines().map_while(|row| row.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(rows, EventKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>());
    for kind in EventKind::ALL {
        assert!(told.contains(&format!("EventKind::{kind:?}")), "nobody tells {kind:?}");
        assert_eq!(EventKind::named(kind.name()), Some(*kind), "two kinds have one name");
    }
}

/// The example stands where receivers are written, so it must do what it says.
#[test]
fn the_example_for_receivers_of_webhooks_verifies_a_signature() {
    let text = operations();
    let example = text.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    // The signature that a test of `webhook::signature` expects.
    let header = "t=1700000000,v1=9eb18f493f8ec135d9eb2dad817c369bb4e9cbfa818657897a7437c1cd8c3a23";
    let program = format!(
        "{example}\nsecret, body, now = b'0123456789abcdef', b'{{\"a\":1}}', 1700000001\n\
         print(is_ours(secret, '{header}', body, now), is_ours(secret, '{header}', body + b' ', now), \
         is_ours(b'other', '{header}', body, now), is_ours(secret, '{header}', body, now + 300))\n"
    );
    let done = match Command::new("python3").arg("-c").arg(program).output() {
        Ok(done) => done,
        // As with clients that other people wrote: whoever has none runs the bars elsewhere.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => panic!("{error}"),
    };
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert_eq!(said, "True False False False\n");
}

#[test]
fn the_configs_of_the_first_steps_load() {
    let text = std::fs::read_to_string("docs/first-steps.md").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let blocks: Vec<&str> =
        text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let here = block.replace("/var/log/evenkeel/", "");
        let loaded =
            config::load_text(&here, "first-steps.md", folder.path(), &config::Flags::default(), &|_| None);
        assert!(loaded.is_ok(), "{block}\n{}", loaded.unwrap_err());
    }
}

/// The headings of the recipes, each with its config.
fn recipes(text: &str) -> Vec<(&str, &str)> {
    let all = text.split("\n## Recipes\n").nth(1).unwrap().split("\n### ").skip(1);
    let parts = all.map(|recipe| {
        let (name, rest) = recipe.split_once('\n').unwrap();
        (name, rest.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap())
    });
    parts.collect()
}

#[test]
fn each_recipe_loads_and_does_what_its_tests_say() {
    let text = std::fs::read_to_string("docs/routing.md").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(["shop.example".to_owned()]).unwrap();
    std::fs::write(folder.path().join("shop.pem"), certified.cert.pem()).unwrap();
    let key = folder.path().join("shop.key");
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(folder.path().join("maintenance.html"), "<p>back soon</p>").unwrap();
    let all = recipes(&text);
    assert_eq!(all.len(), 8);
    for (name, config) in all {
        let file = folder.path().join("recipe.yaml");
        std::fs::write(&file, config).unwrap();
        let check = || {
            Command::new(env!("CARGO_BIN_EXE_evenkeel")).arg("check").arg("-c").arg(&file).output().unwrap()
        };
        let done = check();
        assert!(done.status.success(), "{name}\n{}", String::from_utf8_lossy(&done.stderr));
        // Its tests can fail.
        let first = config.split("expect: {target: ").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
        let wrong = config.replacen(&format!("expect: {{target: {first}}}"), "expect: {status: 418}", 1);
        assert_ne!(wrong, config, "{name}");
        std::fs::write(&file, wrong).unwrap();
        assert!(!check().status.success(), "{name}");
    }
}

#[test]
fn the_configs_for_those_who_come_from_elsewhere_load_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for page in std::fs::read_dir("docs/coming-from").unwrap() {
        let page = page.unwrap().path();
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let file = folder.path().join("evenkeel.yaml");
            std::fs::write(&file, block).unwrap();
            let done = Command::new(env!("CARGO_BIN_EXE_evenkeel")).arg("check").arg(&file).output().unwrap();
            let said =
                String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
            assert!(
                done.status.success() && !said.contains("warning"),
                "{}\n{block}\n{said}",
                page.display()
            );
            count += 1;
        }
    }
    assert_eq!(count, 5 * 3, "three for each program");
}

#[test]
fn the_unit_takes_every_end_for_what_it_is() {
    let text = operations();
    let unit = text.split("```ini\n").nth(1).unwrap().split("```").next().unwrap();
    let value = |key: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("the unit has no {key}")).to_owned()
    };
    assert_eq!(unit, std::fs::read_to_string("packaging/systemd/evenkeel.service").unwrap());
    // The exit codes of the table: connections were cut, a wrong command line.
    assert_eq!((value("SuccessExitStatus"), value("RestartPreventExitStatus")), ("3".into(), "2".into()));
    let patience: u64 = value("TimeoutStopSec").trim_end_matches('s').parse().unwrap();
    let flags = config::Flags { backends: vec!["http://127.0.0.1:1".into()], ..Default::default() };
    let config = config::load(None, &flags, &|_| None).unwrap().config;
    let whole = config.shutdown_delay + config.shutdown_timeout;
    assert!(patience > whole.as_secs(), "it would be killed while it drains");
}
