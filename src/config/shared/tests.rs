#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const OWN: &str =
    "name: a\naddress: 127.0.0.7\nworkers: 3\ncluster: {name: t}\ntargets: {web: {listener: 1}}\n";

struct Lab {
    folder: TempDir,
}

impl Lab {
    fn new(own: &str) -> Lab {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("own.yaml"), own).unwrap();
        Lab { folder }
    }

    fn own(&self) -> PathBuf {
        self.folder.path().join("own.yaml")
    }

    fn load(&self, text: &str) -> Result<Loaded, Problems> {
        let shared = SharedText { name: "revision 1".into(), text: text.into() };
        let env = |name: &str| (name == "PORT").then(|| "81".to_owned());
        load_shared(&self.own(), &shared, &Flags::default(), &env)
    }

    fn problems(&self, text: &str) -> String {
        self.load(text).unwrap_err().to_string()
    }
}

fn web(keys: &str) -> String {
    format!("targets: {{web: {{protocol: http, listener: 8080{keys}, backends: [{{host: a, port: 1}}]}}}}\n")
}

#[test]
fn what_is_shared_holds_with_what_the_node_says_of_itself() {
    let lab = Lab::new(OWN);
    let text = format!("workers: 9\naddress: 10.0.0.1\nlogging: debug\nshutdown_timeout: 5s\n{}", web(""));
    let loaded = lab.load(&text).unwrap();
    let config = &loaded.config;
    // Of its own file: also where that says nothing, and what is shared does.
    assert_eq!((config.workers, config.instance.name.as_deref()), (3, Some("a")));
    assert_eq!(config.log_level, crate::config::model::LogLevel::Info);
    assert!(
        format!("{:?}", config.listeners[0].binds).contains("127.0.0.7:8080"),
        "{:?}",
        config.listeners[0].binds
    );
    // Of what is shared, and of its own file nothing else.
    assert_eq!(config.shutdown_timeout.as_secs(), 5);
    assert_eq!(config.targets.len(), 1);
    assert!(loaded.files.paths().any(|path| *path == *lab.own()), "its own file is watched");
}

#[test]
fn each_node_has_its_own_environment_and_its_own_files() {
    let lab = Lab::new(OWN);
    std::fs::create_dir(lab.folder.path().join("conf.d")).unwrap();
    std::fs::write(lab.folder.path().join("conf.d/more.yaml"), "max_connections: 77\nworkers: 5\n").unwrap();
    let text = web("").replace("port: 1", "port: \"${PORT}\"");
    let loaded = lab.load(&format!("include: conf.d/*.yaml\n{text}")).unwrap();
    assert_eq!(loaded.config.targets[0].backends[0].address.to_string(), "a:81");
    assert_eq!((loaded.config.max_connections, loaded.config.workers), (Some(77), 3));
}

#[test]
fn what_is_wrong_with_what_is_shared_is_told_where_it_stands() {
    let lab = Lab::new(OWN);
    let said = lab.problems("\n\nshutdown_timeout: soon\n");
    assert!(said.contains("revision 1:3:19: `shutdown_timeout` is `soon`"), "{said}");
    assert!(said.contains("revision 1: what is shared has no `targets`"), "{said}");
    let lab = Lab::new("workers: many\ntargets: {}\n");
    let said = lab.problems(&web(""));
    assert!(said.contains("own.yaml:1:10: `workers` is the text `many`"), "{said}");
}

#[test]
fn what_is_shared_names_files_below_the_folder_and_no_programs() {
    let lab = Lab::new(OWN);
    std::fs::write(lab.folder.path().join("body.html"), "hello").unwrap();
    let respond = |file: &str| {
        format!(
            "listeners: {{front: {{bind: 80, routes: [{{match: {{path: /}}, respond: {{status: 200, body_file: {file}}}}}]}}}}\n"
        )
    };
    lab.load(&respond("body.html")).unwrap();
    for outside in ["/etc/hostname", "../own.yaml", "sub/../../x"] {
        let said = lab.problems(&respond(outside));
        assert!(
            said.contains("revision 1:1:")
                && said.contains("is not below the folder of this node's own file"),
            "{said}"
        );
    }
    let program = "acme: {contact: a@b.example, challenge: dns-01, dns_hook: hook}\n";
    std::fs::write(lab.folder.path().join("hook"), "").unwrap();
    let said = lab.problems(&format!("{program}{}", web("")));
    assert!(said.contains("names a program, which what is shared may not"), "{said}");
    // Its own file may name what it likes.
    let outside = tempfile::tempdir().unwrap();
    let log = outside.path().join("access.log");
    let lab = Lab::new(&format!("access_log: {{path: {}}}\n", log.display()));
    lab.load(&web("")).unwrap();
}

#[test]
fn the_shared_part_of_a_file_has_each_line_where_it_was() {
    let text = "# top\nname: a\nadmin:\n  # of admin\n  listener: 9900\n\nshutdown_timeout: 5s\ncluster:\n  name: t\ntargets:\n  web: {}\nworkers: 3\n";
    let part = shared_part(text, Path::new("own.yaml"), &|_| None).unwrap();
    let lines: Vec<&str> = part.text.split('\n').collect();
    assert_eq!(
        lines,
        ["# top", "", "", "", "", "", "shutdown_timeout: 5s", "", "", "targets:", "  web: {}", "", ""]
    );
    assert_eq!(part.secrets, []);
    for (text, wanted) in [
        ("{name: a, targets: {}}", Uncut::SameLine { line: 1, key: "name".to_owned() }),
        ("- a\n", Uncut::NoMapping),
        ("a: [\n", Uncut::NoMapping),
    ] {
        assert_eq!(shared_part(text, Path::new("own.yaml"), &|_| None), Err(wanted), "{text}");
    }
}

#[test]
fn secrets_that_stand_in_a_text_are_found_and_references_are_none() {
    let sticky = |key: &str| web(&format!(", sticky: {{cookie: c, key: {key}}}"));
    let found = |text: &str| {
        shared_part(text, Path::new("own.yaml"), &|_| Some("0123456789abcdef0123456789abcdef".to_owned()))
            .unwrap()
            .secrets
    };
    let secret = found(&format!("# line one\n{}", sticky("0123456789abcdef0123456789abcdef")));
    assert_eq!(secret, [InlineSecret { line: 2, key: "key".to_owned() }]);
    assert_eq!(found(&sticky("\"${KEY}\"")), []);
    assert_eq!(found("webhooks: [{url: 'https://h.example/secret'}]\ntargets: {}\n").len(), 1);
    // The node's own are not there any more.
    assert_eq!(found("cluster: {name: t, etcd: {endpoints: 'http://a'}}\ntargets: {}\n"), []);
}
