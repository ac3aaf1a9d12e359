//! How a target chooses, from text to the accepted form; and secrets that stay secret.

use super::*;
use crate::config::model::{Balance, HashKey, OwnerMode, Policy, Portion};

/// An HTTP target with these keys and two backends.
fn web(keys: &str) -> String {
    format!(
        "targets: {{web: {{protocol: http, listener: 8080, {keys}, backends: [{{host: a, port: 1}}, {{host: b, port: 2}}]}}}}\n"
    )
}

/// A target with two backends, each with keys of its own.
fn pair(first: &str, second: &str) -> String {
    format!(
        "targets: {{web: {{listener: 8080, backends: [{{host: a, port: 1, {first}}}, {{host: b, port: 2, {second}}}]}}}}\n"
    )
}

fn problems(text: &str) -> String {
    load_with(text, &Flags::default()).expect_err(text).to_string()
}

#[test]
fn without_keys_everything_is_as_the_model_says() {
    let config = config(WEB);
    assert_eq!(config.targets[0].balance, Policy::default());
    assert_eq!(config.targets[0].sticky, None);
    assert_eq!(config.targets[0].backends[0].portion, Portion::default());
}

#[test]
fn the_name_in_force_is_the_main_one() {
    for (alias, balance) in Balance::ALIASES {
        let text = web(&format!("algorithm: {alias}"));
        assert_eq!(config(&text).targets[0].balance.algorithm, *balance, "{alias}");
        let rows = effective(&text, &Flags::default());
        let main = Balance::ALL.iter().find(|(_, other)| other == balance).unwrap().0;
        let row = format!("targets.web.balance = {main} (t.yaml:1)");
        assert!(rows.contains(&row), "{row} is not in {rows:#?}");
    }
}

#[test]
fn what_is_in_force_is_shown_as_it_would_be_written() {
    let keys = "balance: ring_hash, hash_key: {header: X-User}, bounded_load: off, slow_start: 90s";
    let rows = effective(&web(keys), &Flags::default());
    for row in [
        "targets.web.balance = ring_hash (t.yaml:1)",
        "targets.web.hash_key = {header: x-user} (t.yaml:1)",
        "targets.web.bounded_load = off (t.yaml:1)",
        "targets.web.slow_start = 90s (t.yaml:1)",
    ] {
        assert!(rows.iter().any(|other| other == row), "{row} is not in {rows:#?}");
    }
    let rows = effective(&web("balance: ring_hash"), &Flags::default());
    assert!(rows.iter().any(|row| row == "targets.web.bounded_load = 125% (default)"), "{rows:#?}");
    // Of what has no effect nothing is shown.
    let rows = effective(&web("balance: random"), &Flags::default());
    assert!(!rows.iter().any(|row| row.contains("hash_key") || row.contains("bounded_load")), "{rows:#?}");
    let rows = effective(&pair("backup: yes", "weight: 0, zone: b"), &Flags::default());
    for row in ["[0].backup = true", "[1].priority = 0", "[1].weight = 0", "[1].zone = b"] {
        let row = format!("targets.web.backends{row} ");
        assert!(rows.iter().any(|other| other.starts_with(&row)), "{row} is not in {rows:#?}");
    }
    assert!(!rows.iter().any(|row| row.contains("[0].priority")), "{rows:#?}");
}

#[test]
fn a_flag_of_another_algorithm_leaves_the_file_alone() {
    let text = web("balance: maglev, hash_key: path");
    let flags = Flags { algorithm: Some("p2c".into()), ..Flags::default() };
    let policy = load_with(&text, &flags).unwrap().config.targets.remove(0).balance;
    assert_eq!((policy.algorithm, policy.hash_key), (Balance::PowerOfTwo, HashKey::ClientIp));
}

#[test]
fn an_algorithm_for_all_gives_a_hash_key_its_effect() {
    let policy = config(&format!("algorithm: maglev\n{}", web("hash_key: path"))).targets.remove(0).balance;
    assert_eq!((policy.algorithm, policy.hash_key), (Balance::Maglev, HashKey::Path));
}

#[test]
fn of_a_faulty_algorithm_one_thing_is_said() {
    for algorithm in ["balance: fastest", "balanse: maglev", "lb_policy: maglev"] {
        assert_eq!(messages(&web(&format!("{algorithm}, hash_key: path")), &Flags::default()).len(), 1);
    }
    let text = format!("algorithm: fastest\n{}", web("hash_key: path, bounded_load: off"));
    assert_eq!(messages(&text, &Flags::default()).len(), 1);
}

#[test]
fn zones_need_not_meet() {
    let policy = config(&format!("zone: x\n{WEB}")).targets.remove(0).balance;
    assert_eq!(policy.zone.as_deref(), Some("x"));
    let backends = config(&pair("zone: a", "zone: b")).targets.remove(0).backends;
    assert_eq!(backends[1].portion.zone.as_deref(), Some("b"));
}

#[test]
fn backups_alone_are_a_target_and_weights_of_nothing_alone_are_none() {
    let backends = config(&pair("backup: yes", "backup: yes")).targets.remove(0).backends;
    assert!(backends.iter().all(|backend| backend.portion.priority == Portion::BACKUP));
    assert!(load_with(&pair("weight: 0", "weight: 1"), &Flags::default()).is_ok());
    assert_eq!(
        messages(&pair("weight: 0", "weight: 0"), &Flags::default()),
        ["all backends of the target `web` have the weight 0"]
    );
    // A backup that is none has a priority.
    let backends = config(&pair("backup: no, priority: 3", "")).targets.remove(0).backends;
    assert_eq!(backends[0].portion.priority, 3);
}

#[test]
fn a_made_key_is_long_and_lasts_as_long_as_the_process() {
    let sticky = |text: &str| config(text).targets.remove(0).sticky.unwrap();
    let made = sticky(&web("sticky: {}"));
    assert!(made.is_fleeting && made.key.len() == 32 && made.key.iter().any(|&byte| byte != 0));
    assert_eq!(made, sticky(&web("sticky: {}")), "a file that is loaded again keeps its cookies");
    let given = sticky(&web("sticky: {key: 0123456789abcdef}"));
    assert!(!given.is_fleeting && given.cookie == "evenkeel");
    let of = |text: &str| config(text).fleeting().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(of(&web("sticky: {}")), ["web"]);
    assert!(of(&web("sticky: {key: 0123456789abcdef}")).is_empty() && of(WEB).is_empty());
}

#[test]
fn a_key_file_is_the_key_without_its_line_end() {
    let folder = tempfile::tempdir().unwrap();
    let load = |content: &[u8]| {
        std::fs::write(folder.path().join("k"), content).unwrap();
        load_text(&web("sticky: {key_file: k}"), "t.yaml", folder.path(), &Flags::default(), &env)
    };
    for (content, key) in [
        (&b"0123456789abcdef\n"[..], &b"0123456789abcdef"[..]),
        (b"0123456789abcdef\r\n", b"0123456789abcdef"),
        (b"0123456789abcdef\n\n", b"0123456789abcdef\n"),
        (b"\xff123456789abcdef", b"\xff123456789abcdef"),
    ] {
        let loaded = load(content).unwrap();
        assert_eq!(&*loaded.config.targets[0].sticky.as_ref().unwrap().key, key);
        assert!(loaded.effective.iter().any(|row| row.path.ends_with("sticky.key_file")));
    }
    for (content, why) in [
        (&b"0123456789abcde\n"[..], "shorter than 16 bytes"),
        (b"", "shorter than 16 bytes"),
        (&[b'a'; 65 * 1024], "larger than 64KiB"),
    ] {
        let text = load(content).unwrap_err().to_string();
        assert!(text.contains(why) && !text.contains("0123"), "{text}");
    }
    std::fs::remove_file(folder.path().join("k")).unwrap();
    std::fs::create_dir(folder.path().join("k")).unwrap();
    let text = load_text(&web("sticky: {key_file: k}"), "t.yaml", folder.path(), &Flags::default(), &env);
    assert!(text.unwrap_err().to_string().contains("which is no file"));
}

#[test]
fn no_message_has_a_secret_in_it() {
    // `S3CRET` stands wherever a key could.
    let texts = [
        web("sticky: {key: S3CRET}"),
        web("sticky: {key: S3CRET, cookie: 'a b'}"),
        web("sticky: {cookie: 'a b', key: \"S3CRET\"}"),
        web("sticky: {key: S3CRET-S3CRET-S3CRET, keyfile: x}"),
        web("sticky: {secret: S3CRET}"),
        web("sticky: {kee: S3CRET}"),
        web("sticky: {password: S3CRET}"),
        web("sticky: S3CRET"),
        web("sticky: [S3CRET]"),
        web("sticky: {key: [S3CRET]}"),
        web("sticky: {key: {a: S3CRET}}"),
        web("sticky: {key: S3CRET-S3CRET-S3CRET, key_file: k}"),
        web("sticky: {key: S3CRET, key: S3CRET}"),
        web("sticky: {key: 'S3CRET${'}"),
        web("sticky: {key: 'S3CRET${S3CRET!}'}"),
        web("sticky: {key: '${UNSET:-S3CRET}'}"),
        web("sticky: {key: \"S3CRET"),
        web("sticky: {key: S3CRET").replace("backends", "\tbackends"),
        format!("sticky: {{key: S3CRET}}\n{WEB}"),
        "sticky:\n  key: S3CRET\n bad: x".to_owned(),
        "targets:\n  web:\n    protocol: http\n    listener: 1\n    sticky: {key: S3CRET-S3CRET-S3CRET}\n    balance: maglev\n".to_owned(),
    ];
    for text in texts {
        let shown = problems(&text);
        assert!(!shown.contains("S3CRET"), "{shown}");
    }
    // What is no secret stays readable.
    let shown = problems(&web("sticky: {key: '${UNSET_KEY}'}"));
    assert!(shown.contains("`UNSET_KEY` is not set") && shown.contains("{key: '${UNSET_KEY}'"), "{shown}");
}

#[test]
fn the_accepted_form_does_not_print_its_key() {
    let config = config(&web("sticky: {key: 0123456789abcdef}"));
    let shown = format!("{config:?}");
    let bytes = format!("{:?}", b"0123456789abcdef");
    assert!(
        !shown.contains("0123456789abcdef") && !shown.contains(bytes.trim_matches(['[', ']'])),
        "{shown}"
    );
}

/// A password for Redis: each reload that changes it would else log it.
#[test]
fn what_a_check_sends_from_the_environment_is_not_shown_and_its_change_is_seen() {
    let of = |send: &str| {
        let text = web(&format!("health_check: {{send: '{send}', receive: OK}}"));
        let loaded = load_with(&text, &Flags::default()).unwrap_or_else(|problems| panic!("{problems}"));
        loaded.effective.into_iter().find(|row| row.path.ends_with("health_check.send")).unwrap()
    };
    assert_eq!(of("AUTH x").value, "AUTH x");
    let (one, same, other) = (of("AUTH ${WORD}"), of("AUTH ${WORD}"), of("AUTH ${SWITCH}"));
    assert_eq!(one.value, "(hidden)");
    assert!(one.content == same.content && one.content != other.content);
}

#[test]
fn who_owns_backends_needs_a_limit_beyond_which_it_takes_others() {
    for keys in ["owner: soft", "owner: soft, max_in_flight: off"] {
        let said = messages(&web(keys), &Flags::default());
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("`owner: soft` is for targets with `max_in_flight`"), "{said:?}");
    }
    for (keys, why) in [
        ("owner: soft, max_in_flight: adaptive", "needs a number"),
        ("owner: soft, max_in_flight: 1, balance: maglev", "its own backends"),
        ("owner: soft, max_in_flight: 1, balance: first", "its own backends"),
    ] {
        let said = messages(&web(keys), &Flags::default());
        assert!(said.len() == 1 && said[0].contains(why), "{said:?}");
    }
    for (keys, owner) in [
        ("owner: soft, max_in_flight: 2", OwnerMode::Soft),
        ("owner: shared", OwnerMode::Shared),
        ("max_in_flight: 2", OwnerMode::Shared),
    ] {
        assert_eq!(config(&web(keys)).targets.remove(0).balance.owner, owner);
    }
    assert!(messages(&web("owner: hard, max_in_flight: 2"), &Flags::default())[0].contains("owner"));
}
