//! Several files as one config: what adds up and what does not, and that each word has its own place.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A folder with files; `evenkeel.yaml` is the config.
struct Lab(tempfile::TempDir);

impl Lab {
    fn new(files: &[(&str, &str)]) -> Lab {
        let lab = Lab(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, text)| lab.write(name, text));
        lab
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.0.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn load_with(&self, flags: &Flags) -> Result<Loaded, Problems> {
        load(Some(&self.0.path().join("evenkeel.yaml")), flags, &env)
    }

    fn load(&self) -> Loaded {
        self.load_with(&Flags::default()).unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// What is said of a config that does not load; the folder is left out.
    fn said(&self) -> String {
        self.short(&self.load_with(&Flags::default()).unwrap_err().to_string())
    }

    fn short(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn target(name: &str, port: u16) -> String {
    format!("targets:\n  {name}:\n    listener: {port}\n    backends: [{{host: a, port: 1}}]\n")
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn targets_add_up_in_the_order_of_the_files_and_each_value_knows_its_own() {
    let lab = Lab::new(&[
        ("evenkeel.yaml", &format!("include: [conf.d/*.yaml, none.d/*.yaml]\nx-a: 1\n{}", target("main", 1))),
        ("conf.d/20.yaml", &format!("x-a: 2\n{}", target("late", 3))),
        ("conf.d/10.yaml", &format!("include: more/m.yml\n{}", target("early", 2))),
        (
            "conf.d/more/m.yml",
            "workers: 3\ntargets:\n  sock: {listener: unix:s, backends: [{url: unix:b}]}\n",
        ),
        ("conf.d/30.yaml", "# nothing in it\n"),
        ("conf.d/40.yaml", "targets:\n"),
        ("conf.d/.50.yaml", "no: yaml: at all"),
    ]);
    let loaded = lab.load();
    let names: Vec<&str> = loaded.config.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["main", "early", "sock", "late"]);
    assert_eq!(loaded.config.workers, 3);
    let socket = lab.0.path().join("conf.d/more/s");
    assert_eq!(loaded.config.listeners[2].binds, [model::Bind::Unix(socket)], "relative to its own file");
    let origin = |path: &str| {
        let row = loaded.effective.iter().find(|row| row.path == path).unwrap();
        lab.short(&row.origin.to_string())
    };
    assert_eq!(origin("include[0]"), "evenkeel.yaml:1");
    assert_eq!(origin("include[2]"), "conf.d/10.yaml:1");
    assert_eq!(origin("workers"), "conf.d/more/m.yml:1");
    assert_eq!(origin("targets.late.listener"), "conf.d/20.yaml:4");
    for listener in &loaded.config.listeners {
        assert!(listener.routes[0].targets().eq([&*listener.name]));
    }
}

#[test]
fn receivers_of_several_files_add_up_and_none_is_there_twice() {
    let hook = |host: &str| format!("webhooks: [{{url: 'http://{host}/hush'}}]\n");
    let main = format!("include: '*.yaml'\n{}{}", hook("a"), target("t", 80));
    let dead = format!("{}on_dead_server_webhook: http://c/hush\n", hook("b"));
    let lab = Lab::new(&[("evenkeel.yaml", &main), ("more.yaml", &dead)]);
    let loaded = lab.load();
    let hosts: Vec<String> = loaded.config.webhooks.iter().map(|hook| hook.url.to_string()).collect();
    assert_eq!(hosts, ["http://a/…", "http://b/…", "http://c/…"]);
    assert!(!format!("{loaded:?}").contains("hush"), "{loaded:?}");
    let rows = loaded.effective.iter().filter(|row| row.path.ends_with("url"));
    assert_eq!(rows.map(|row| row.path.as_str()).collect::<Vec<_>>(), ["webhooks[0].url", "webhooks[1].url"]);
    lab.write("more.yaml", &hook("a"));
    let (again, place) = ("more.yaml:1:18: the webhook at http://a/…", "twice: first at evenkeel.yaml:2");
    assert_has(&lab.said(), &[again, place]);
}

#[test]
fn flags_and_variables_work_in_every_file() {
    let lab = Lab::new(&[
        ("evenkeel.yaml", "include: \"${NONE:-more}.yaml\"\n"),
        ("more.yaml", "workers: 2\ntargets:\n  t: {listener: \"${PORT}\", backends: [{host: a, port: 1}]}\n"),
    ]);
    let flags = Flags { workers: Some(5), backends: vec!["tcp://z:9".into()], ..Flags::default() };
    let loaded = lab.load_with(&flags).unwrap();
    assert_eq!(loaded.config.workers, 5);
    assert_eq!(loaded.config.targets[0].backends[0].name, "z:9");
    let row = loaded.effective.iter().find(|row| row.path == "targets.t.listener").unwrap();
    assert_eq!(lab.short(&row.origin.to_string()), "more.yaml:3 (${PORT})");
}

#[test]
fn what_does_not_add_up_is_told_with_both_places() {
    let lab = Lab::new(&[
        ("evenkeel.yaml", &format!("include: b.yaml\nworkers: 2\n{}", target("web", 80))),
        ("b.yaml", &format!("zone: x\nworkers: 3\n{}", target("web", 81))),
    ]);
    assert_has(
        &lab.said(),
        &[
            "b.yaml:2:1: the key `workers` is written twice: first at evenkeel.yaml:2\n    2 | workers: 3",
            "hint: remove this one, or that at evenkeel.yaml:2 if this one is right",
            "b.yaml:4:3: the target `web` is there twice: first at evenkeel.yaml:4\n    4 |   web:",
            "2 problems",
        ],
    );
    lab.write("b.yaml", &target("other", 80));
    assert_has(
        &lab.said(),
        &[
            "b.yaml:3:15: port 80 is used twice",
            "already listens on `127.0.0.1:80` (evenkeel.yaml:5)",
            "1 problem",
        ],
    );
    lab.write("b.yaml", "servers: [http://a:1]\n");
    assert_has(&lab.said(), &["b.yaml:1:1: `servers` and `targets` exclude each other"]);
    lab.write("b.yaml", "health_check_frequency_in_seconds: 3\n");
    lab.write("evenkeel.yaml", &format!("include: b.yaml\nhealth_check_interval: 3\n{}", target("web", 80)));
    assert_has(
        &lab.said(),
        &["b.yaml:1:1: `health_check_interval` and `health_check_frequency_in_seconds` mean the same"],
    );
}

#[test]
fn problems_hints_and_slips_of_each_file_stand_in_it() {
    let lab = Lab::new(&[
        ("evenkeel.yaml", &format!("include: [a.yaml, b.yaml]\nwokers: 2\n{}", target("web", 80))),
        ("a.yaml", &format!("# a\n{}    balanse: first\n", target("a", 81))),
        ("b.yaml", &format!("# b\n{}    timeouts: {{connect: 2}}\n", target("b", 82))),
    ]);
    let problems = lab.load_with(&Flags::default()).unwrap_err();
    let places: Vec<String> = problems
        .list()
        .iter()
        .map(|problem| {
            let place = problem.place.unwrap();
            format!("{}:{}:{}", lab.short(problem.file.as_ref().unwrap()), place.line, place.column)
        })
        .collect();
    assert_eq!(places, ["evenkeel.yaml:2:1", "a.yaml:6:5", "b.yaml:6:25"]);
    // The hint is an edit of that file.
    let text = fs::read_to_string(lab.0.path().join("a.yaml")).unwrap();
    assert_has(&problems.list()[1].mended(&text).unwrap(), &["    balance: first\n"]);
    assert_has(&problems.to_string(), &["    6 |     balanse: first\n      |     ^^^^^^^", "`balance`"]);
    // What is no YAML at all is told by name.
    lab.write("a.yaml", "targets:\n\tb: {listener: 83, backends: [{host: a, port: 1}]}\n");
    lab.write("evenkeel.yaml", &format!("include: a.yaml\n{}", target("web", 80)));
    assert_has(&lab.said(), &["a.yaml:2:1: a tab stands where YAML allows only spaces", "1 problem"]);
    lab.write("a.yaml", "targets:\n  b:\n    listener:83\n    backends: [{host: a, port: 1}]\n");
    assert_has(
        &lab.said(),
        &["a.yaml:3:5: a space is missing behind `listener:`", "hint: write `listener: 83`"],
    );
    // One of another program.
    lab.write("a.yaml", "upstream a {\n  server b;\n}\n");
    assert_has(&lab.said(), &["a.yaml:1:1: this is a configuration of nginx", "1 problem"]);
    lab.write("a.yaml", "- 1\n");
    assert_has(&lab.said(), &["a.yaml:1:1: the file is a list"]);
    fs::write(lab.0.path().join("a.yaml"), b"# \xe9\n").unwrap();
    assert_has(&lab.said(), &["a.yaml:1:3: this byte is not part of a UTF-8 text", "1 problem"]);
}

#[test]
fn anchors_are_of_one_file() {
    let lab = Lab::new(&[
        ("evenkeel.yaml", &format!("include: b.yaml\nx-t: &t {{connect: 1s}}\n{}", target("web", 80))),
        ("b.yaml", &format!("{}    timeouts: *t\n", target("b", 81))),
    ]);
    assert_has(&lab.said(), &["b.yaml:5:15: `*t` refers to nothing", "1 problem"]);
}

#[test]
fn what_is_not_there_is_told_where_it_is_named() {
    let lab = Lab::new(&[("evenkeel.yaml", "include: [a.yaml, \"none.d/*.yaml\"]\n")]);
    let said = lab.said();
    assert_has(
        &said,
        &["evenkeel.yaml:1:11: `a.yaml` does not exist\n    1 | include: [a.yaml,", "1 problem"],
    );
    lab.write("a.yml", "");
    assert_has(&lab.said(), &["note: there is `a.yml`"]);
    fs::create_dir(lab.0.path().join("a.yaml")).unwrap();
    assert_has(&lab.said(), &["evenkeel.yaml:1:11: `a.yaml` is a folder"]);
    // What a pattern matches and can't be read is no silence.
    lab.write("evenkeel.yaml", &format!("include: c/*.yaml\n{}", target("web", 80)));
    fs::create_dir(lab.0.path().join("c")).unwrap();
    symlink("nowhere", lab.0.path().join("c/x.yaml")).unwrap();
    assert_has(&lab.said(), &["evenkeel.yaml:1:10: `c/x.yaml`, which `c/*.yaml` matches, does not exist"]);
    fs::remove_file(lab.0.path().join("c/x.yaml")).unwrap();
    // Without any target at all.
    lab.write("evenkeel.yaml", "include: c/*.yaml\n");
    assert_has(&lab.said(), &["evenkeel.yaml: neither this file nor one that it includes has `targets`"]);
}

/// Else the targets of a folder would be gone with the rights to look into it.
#[test]
fn a_folder_that_can_t_be_looked_through_is_no_folder_with_nothing_in_it() {
    let lab = Lab::new(&[("evenkeel.yaml", &format!("include: c/*.yaml\n{}", target("web", 80)))]);
    assert_eq!(lab.load().config.targets.len(), 1, "it need not be there");
    lab.write("c", "no folder");
    assert_has(
        &lab.said(),
        &[
            "evenkeel.yaml:1:10: `c/*.yaml` looks through the folder `c`, which can't be read: Not a directory",
        ],
    );
    let before = lab.load_with(&Flags::default()).unwrap_err().files().clone();
    fs::remove_file(lab.0.path().join("c")).unwrap();
    assert_ne!(before.again(), before, "whoever watches tries again");
}

/// Somebody is about to write it, or the disk is full: what was in it is not to be taken away for that.
#[test]
fn an_included_file_without_a_byte_is_no_file_that_says_nothing() {
    let lab = Lab::new(&[
        ("evenkeel.yaml", &format!("include: [c/*.yaml, b.yaml]\n{}", target("web", 80))),
        ("c/a.yaml", "\n"),
        ("b.yaml", ""),
    ]);
    assert_has(
        &lab.said(),
        &["evenkeel.yaml:1:11: `c/a.yaml` is empty", "evenkeel.yaml:1:21: `b.yaml` is empty", "2 problems"],
    );
    lab.write("c/a.yaml", "# nothing yet\n");
    lab.write("b.yaml", "targets:\n");
    assert_eq!(lab.load().config.targets.len(), 1);
}

/// What `plan FILE` reads would else meet the very config that it is to replace.
#[test]
fn a_text_in_the_place_of_the_config_does_not_include_that() {
    let lab = Lab::new(&[
        ("evenkeel.yaml", &format!("include: \"*.yaml\"\n{}", target("web", 80))),
        ("other.yaml", &target("other", 81)),
    ]);
    let text = format!("include: \"*.yaml\"\n{}", target("web", 82));
    let file = lab.0.path().join("evenkeel.yaml");
    let loaded = load_instead(&text, "new.yaml", &file, &Flags::default(), &env)
        .unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.config.targets.len(), 2);
    let row = loaded.effective.iter().find(|row| row.path == "targets.web.listener").unwrap();
    assert_eq!((row.value.as_str(), row.origin.to_string().as_str()), ("127.0.0.1:82", "new.yaml:4"));
}

#[test]
fn what_include_takes() {
    let lab = Lab::new(&[]);
    for (value, message) in [
        ("", "evenkeel.yaml:1:1: `include` has no value"),
        ("[]", "evenkeel.yaml:1:1: `include` is an empty list"),
        ("yes", "evenkeel.yaml:1:10: `include` is `yes`, which YAML reads as true"),
        ("{a: 1}", "evenkeel.yaml:1:10: `include` is a mapping"),
        ("[[a]]", "evenkeel.yaml:1:11: `include` is a list"),
        ("a/**/b", "evenkeel.yaml:1:10: `a/**/b` has `**`"),
        ("'a/[.yaml'", "evenkeel.yaml:1:10: `a/[.yaml` is no pattern"),
    ] {
        lab.write("evenkeel.yaml", &format!("include: {value}\n{}", target("web", 80)));
        assert_has(&lab.said(), &[message, "1 problem"]);
    }
}

#[test]
fn a_ring_is_told_with_all_of_its_files() {
    let lab = Lab::new(&[
        ("evenkeel.yaml", &format!("include: c/a.yaml\n{}", target("web", 80))),
        ("c/a.yaml", "include: [b.yaml]\n"),
        ("c/b.yaml", "\ninclude: ../evenkeel.yaml\n"),
    ]);
    let ring = "c/b.yaml:2:10: files include one another in a ring: \
                evenkeel.yaml → c/a.yaml → c/b.yaml → c/../evenkeel.yaml";
    assert_has(&lab.said(), &[ring, "1 problem"]);
    lab.write("c/b.yaml", "include: b.yaml\n");
    assert_has(&lab.said(), &["c/b.yaml:1:10: files include one another in a ring: c/b.yaml → c/b.yaml"]);
    // A pattern in the folder of the file is not about that file.
    lab.write("c/b.yaml", "include: \"*.yaml\"\n");
    assert_has(&lab.said(), &["ring: c/a.yaml → c/b.yaml → c/a.yaml"]);
    lab.write("c/a.yaml", "include: \"*.yaml\"\n");
    lab.write("c/b.yaml", "workers: 7\n");
    assert_eq!(lab.load().config.workers, 7);
}

#[test]
fn a_file_that_is_included_twice_is_read_once() {
    let lab = Lab::new(&[
        ("evenkeel.yaml", "include: [c/*.yaml, c/a.yaml, link.yaml, b.yaml]\n"),
        ("b.yaml", "include: c/a.yaml\n"),
        ("c/a.yaml", &target("web", 80)),
    ]);
    symlink("c/a.yaml", lab.0.path().join("link.yaml")).unwrap();
    assert_eq!(lab.load().config.targets.len(), 1);
}

#[test]
fn there_are_limits_to_depth_number_and_size() {
    let lab = Lab::new(&[("evenkeel.yaml", &format!("include: 1.yaml\n{}", target("web", 80)))]);
    for level in 1..16 {
        lab.write(&format!("{level}.yaml"), &format!("include: {}.yaml\n", level + 1));
    }
    lab.write("16.yaml", "workers: 7\n");
    assert_eq!(lab.load().config.workers, 7);
    lab.write("16.yaml", "include: 17.yaml\n");
    assert_has(&lab.said(), &["16.yaml:1:10: files include files more than 16 levels deep", "1 problem"]);

    lab.write("evenkeel.yaml", &format!("include: many/*.yaml\n{}", target("web", 80)));
    for number in 1..1_000 {
        lab.write(&format!("many/{number}.yaml"), "#");
    }
    lab.load();
    lab.write("many/1000.yaml", "#");
    assert_has(&lab.said(), &["evenkeel.yaml:1:10: more than 1000 files are included", "1 problem"]);

    let large = format!("#{}\n", "x".repeat(9 << 20));
    lab.write("evenkeel.yaml", &format!("include: [a.yaml, b.yaml]\n{}", target("web", 80)));
    lab.write("a.yaml", &large);
    lab.write("b.yaml", "workers: 7\n");
    assert_eq!(lab.load().config.workers, 7);
    lab.write("b.yaml", &large);
    assert_has(
        &lab.said(),
        &["evenkeel.yaml:1:19: `b.yaml` is larger than 16MiB, or all files together are"],
    );
}

#[test]
fn whoever_watches_is_told_all_files_also_by_a_config_that_is_refused() {
    let lab = Lab::new(&[
        ("evenkeel.yaml", "include: [c/*.yaml, b.yaml]\n"),
        ("c/a.yaml", &format!("{}    upstream_tls: {{ca_file: ca.pem}}\n", target("a", 80))),
    ]);
    let problems = lab.load_with(&Flags::default()).unwrap_err();
    let paths = |files: &Files| -> Vec<String> {
        files.paths().map(|path| lab.short(&path.display().to_string())).collect()
    };
    assert_eq!(paths(problems.files()), ["b.yaml", "c/a.yaml", "c/ca.pem", "evenkeel.yaml"]);
    assert_eq!(paths(&problems.files().named()), ["c/ca.pem"]);
    let before = problems.files().clone();
    assert_eq!(before.again(), before);
    lab.write("c/b.yaml", "");
    assert_ne!(before.again(), before, "a new file that the pattern matches");
    fs::remove_file(lab.0.path().join("c/b.yaml")).unwrap();
    assert_eq!(before.again(), before);
    lab.write("b.yaml", "");
    assert_ne!(before.again(), before, "one that was missing");
}
