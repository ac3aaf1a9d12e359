//! What is done by way of the dashboard, in a real browser: each thing behind a question, by mouse or by keyboard, and told.

use fake_backend::{Behaviour, Running};
use serde_json::json;

use super::door_lab::{CONFIGURE, OPERATE, READ, door, tokens};
use super::support::browser::Browser;
use super::support::port::Reserved;
use super::support::process::{Process, whole};
use super::support::{Client, eventually, fakes};

/// A target with backends that are called b0 and on, a cache, and the admin API over TCP for those with a token.
pub fn shop(backends: &[Running], port: u16) -> Process {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokens"), tokens()).unwrap();
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(&config(backends, port, ""))).unwrap();
    Process::start_in(folder, 1)
}

pub fn config(backends: &[Running], port: u16, more: &str) -> String {
    let line = |(number, backend): (usize, &Running)| {
        format!("      - {{name: b{number}, host: 127.0.0.1, port: {}{more}}}\n", backend.port())
    };
    let backends: String = backends.iter().enumerate().map(line).collect();
    format!(
        "workers: 1\nadmin: {{listener: 127.0.0.1:{port}, token_file: tokens, configure_over_tcp: true}}\nlisteners:\n  front:\n    \
         bind: 127.0.0.1:0\n    routes: [{{name: all, target: web, cache: {{ttl: 1h}}}}]\ntargets:\n  web:\n    \
         health_check: {{path: /health, interval: 100ms, timeout: 2s, fall: 1}}\n    backends:\n{backends}"
    )
}

/// Opens the page and logs in, as people do.
pub fn log_in(browser: &Browser, process: &Process, token: &str) {
    browser.open(&format!("http://{}/", door(process)));
    browser.until("the form is there", "document.activeElement?.id === 'token'");
    browser.write(token);
    browser.press("Enter");
    browser.until("all is well", "document.querySelector('#says')?.innerText.includes('All is well')");
}

fn click(browser: &Browser, within: &str, label: &str) {
    let script = format!(
        "[...document.querySelectorAll('{within} button')].find(one => one.innerText === '{label}' && !one.disabled)"
    );
    browser.until(&format!("{label} is there"), &script);
    browser.eval(&format!("{script}.click()"));
}

fn fill(browser: &Browser, selector: &str, text: &str) {
    browser.eval(&format!(
        "(() => {{ const one = document.querySelector('{selector}'); one.focus(); one.select?.(); }})()"
    ));
    browser.write(text);
}

/// Opens what stands at `#`.
fn go(browser: &Browser, place: &str) {
    browser.eval(&format!("location.hash = '#{place}'"));
}

#[test]
fn what_is_done_to_a_backend_is_asked_in_numbers_done_and_told() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(3);
    let process = shop(&backends, 0);
    log_in(&browser, &process, OPERATE);
    go(&browser, "backend%2Fweb%2Fb0");
    click(&browser, "#detail", "Drain");
    let asked = browser.text("#question");
    assert!(
        asked.contains("2 of 3 backends of web are left for new clients, 0 requests under way will finish."),
        "{asked}"
    );
    let command = || browser.eval("document.querySelector('#question .command').value");
    assert_eq!(command(), "evenkeel drain web/b0");
    // Whoever thinks better of it has done nothing.
    click(&browser, "#question", "Cancel");
    click(&browser, "#detail", "Drain");
    browser.eval("(() => { const one = document.querySelector('#question select'); one.value = '3600'; one.dispatchEvent(new Event('input', {bubbles: true})); })()");
    browser.until(
        "the command says it",
        "document.querySelector('#question .command').value.endsWith(' --for 3600s')",
    );
    click(&browser, "#question", "Drain");
    browser.until(
        "it is told",
        "document.querySelector('#says').innerText.includes('b0 of web taken out by hand')",
    );
    browser.until("and seen", "document.querySelector('#detail dd')?.innerText.startsWith('draining')");
    let events = "document.querySelector('#events').innerText";
    browser.until("it is an event", &format!("{events}.includes('web/b0 is draining')"));
    browser.until(
        "it is no part of the file",
        "document.querySelector(\"[id='panel/config'] summary\").innerText.includes('1 change by hand')",
    );
    click(&browser, "#detail", "Ready");
    click(&browser, "#question", "Make ready");
    browser.until("all is well", "document.querySelector('#says').innerText.includes('All is well')");
    click(&browser, "#detail", "Weight");
    fill(&browser, "#question input[type=number]", "8");
    browser.until("it says what comes of it", "document.querySelector('#question .about').innerText.includes('From weight 1 to 8: about 80 % of new requests')");
    click(&browser, "#question", "Set weight");
    browser.until(
        "it is told",
        "document.querySelector(\"[id='backend/web/b0'] td:nth-child(8)\").innerText === '8'",
    );
    // What can't be is told where it was asked.
    click(&browser, "#detail", "Weight");
    browser.eval("document.querySelector('#question form').noValidate = true");
    fill(&browser, "#question input[type=number]", "300");
    click(&browser, "#question", "Set weight");
    browser.until("it is refused", "document.querySelector('#question .said').innerText.includes('256')");
    browser.press("Escape");
    for name in ["b0", "b1", "b2"] {
        go(&browser, &format!("backend%2Fweb%2F{name}"));
        click(&browser, "#detail", "Take down");
        if name == "b2" {
            assert!(
                browser.text("#question").contains("Nobody is left: requests for web will fail."),
                "{}",
                browser.text("#question")
            );
        }
        click(&browser, "#question", "Take down");
        browser.until("it is over", "!document.querySelector('#question').open");
        browser.until("it is seen", "document.querySelector('#detail dd')?.innerText.startsWith('down')");
    }
    browser.until(
        "it is told",
        "document.querySelector('#says').innerText.includes('all were taken out by hand')",
    );
    assert_eq!(browser.complaints(&["400 (Bad Request)", "422"]), [""; 0]);
}

#[test]
fn a_question_knows_weights_priorities_and_what_the_file_says() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(4);
    let says = ["weight: 3", "weight: 0", "backup: true", "state: drain"];
    let lines = |of: &[usize]| -> String {
        let line = |number: &usize| {
            format!(
                "      - {{name: b{number}, host: 127.0.0.1, port: {}, {}}}\n",
                backends[*number].port(),
                says[*number]
            )
        };
        of.iter().map(line).collect()
    };
    let plain = config(&[], 0, "").replace("interval: 100ms", "interval: 1s");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokens"), tokens()).unwrap();
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(&format!("{plain}{}", lines(&[0, 1, 2, 3]))))
        .unwrap();
    let process = Process::start_in(folder, 1);
    browser.open(&format!("http://{}/", door(&process)));
    browser.until("the form is there", "document.activeElement?.id === 'token'");
    browser.write(OPERATE);
    browser.press("Enter");
    browser.until(
        "it is there",
        "document.querySelector('#says').innerText.includes('b3 of web taken out by hand')",
    );
    browser
        .until("all have a verdict", "document.querySelectorAll('#backends [data-state=up]').length === 3");
    let asked = |name: &str, label: &str| {
        go(&browser, &format!("backend%2Fweb%2F{name}"));
        browser.until(
            "it is there",
            &format!("document.querySelector('#detailname b').innerText === 'web/{name}'"),
        );
        click(&browser, "#detail", label);
        browser.text("#question .about")
    };
    let asked_only = |name: &str, label: &str| {
        let text = asked(name, label);
        click(&browser, "#question", "Cancel");
        text
    };
    // Who has no weight is not left, and a backup is not like the others.
    let drain = asked_only("b0", "Drain");
    assert!(
        drain.starts_with("1 of 3 backends of web are left") && drain.ends_with("Only backups are left."),
        "{drain}"
    );
    let backup = asked_only("b2", "Weight");
    assert!(
        backup.contains(
            "about 0 % of new requests instead of 0 %. It gets none as long as those of priority 0 are up."
        ),
        "{backup}"
    );
    let ready = asked_only("b3", "Ready");
    assert!(
        ready.starts_with(
            "Nothing was said of its state by hand: it is drained by the config, and that stays."
        ),
        "{ready}"
    );
    assert!(asked_only("b0", "Ready").contains("it is up by its probe"), "nothing would change");
    // Enter where the command stands does nothing, and the first thing that has the focus does no harm.
    asked("b3", "Ready");
    assert_eq!(browser.eval("document.activeElement.innerText"), "Cancel");
    browser.eval("document.querySelector('#question .command').focus()");
    browser.press("Enter");
    assert_eq!(browser.eval("document.querySelector('#question').open"), true);
    click(&browser, "#question", "Make ready");
    browser.until(
        "it is told",
        "document.querySelector('#toast').innerText === 'Make web/b3 ready: nothing has changed'",
    );
    // Who is gone meanwhile is asked for nothing.
    asked("b2", "Drain");
    process.reload(&format!("{plain}{}", lines(&[0, 1])));
    browser.until(
        "it is gone",
        "document.querySelector('#question .about').innerText === 'web/b2 is not there any more.'",
    );
    assert_eq!(browser.eval("document.querySelector('#question .go').disabled"), true);
    click(&browser, "#question", "Cancel");
    browser.until("its page says so", "document.querySelector('#detail dd').innerText === 'it is not there' && document.querySelector('#detail .actions').hidden");
    // What was sorted by and looked for stays when the page of an object is closed and when somebody goes back to it.
    browser.eval("document.querySelector('th[data-key=rate] button').click()");
    browser.press("Escape");
    browser
        .until("it is closed", "document.querySelector('#detail').hidden && location.hash === '#?sort=rate'");
    browser.eval("history.back()");
    browser.until("it is there again", "document.querySelector('#detailname b')?.innerText === 'web/b2' && !document.querySelector('#detail').hidden");
    assert_eq!(browser.complaints(&[]), [""; 0]);
}

#[test]
fn networks_are_blocked_and_let_in_and_the_cache_is_purged() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(1);
    let process = shop(&backends, 0);
    let mut client = Client::connect(process.address("front"));
    for _ in 0..4 {
        assert_eq!(client.get("/a").status, 200);
    }
    log_in(&browser, &process, OPERATE);
    let panel = |name: &str| format!("document.querySelector(\"[id='panel/{name}']\").innerText");
    browser.until("what was served is told", &format!("{}.includes('75 % served')", panel("cache")));
    go(&browser, "panel%2Flimits");
    click(&browser, "#panels", "Block");
    fill(&browser, "#question input", "192.0.2.7");
    browser.until(
        "the command says it",
        "document.querySelector('#question .command').value === 'evenkeel block 192.0.2.7'",
    );
    click(&browser, "#question", "Block");
    browser.until("it is told", &format!("{}.includes('192.0.2.7/32 by token hands')", panel("limits")));
    click(&browser, "#panels", "Let in");
    click(&browser, "#question", "Let in");
    browser.until("it is told", &format!("{}.includes('nobody blocked')", panel("limits")));
    go(&browser, "panel%2Fcache");
    click(&browser, "#panels", "Purge");
    browser.eval("(() => { const one = document.querySelector('#question select'); one.value = 'all'; for (const kind of ['change', 'input']) one.dispatchEvent(new Event(kind, {bubbles: true})); })()");
    browser.until(
        "the command says it",
        "document.querySelector('#question .command').value === 'evenkeel purge --all'",
    );
    click(&browser, "#question", "Purge");
    browser.until("it is gone", &format!("{}.includes('· 0 B of')", panel("cache")));
    assert_eq!(browser.complaints(&[]), [""; 0]);
}

#[test]
fn a_config_is_applied_on_trial_confirmed_and_taken_back() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(2);
    let process = shop(&backends, 0);
    log_in(&browser, &process, CONFIGURE);
    let apply = |more: &str| {
        go(&browser, "panel%2Fconfig");
        click(&browser, "#panels", "Apply");
        fill(&browser, "#question textarea", &whole(&config(&backends, 0, more)));
        browser.until(
            "what would change is told",
            "document.querySelector('#question .about').innerText.includes('weight')",
        );
        click(&browser, "#question", "Apply");
        browser.until("it is on trial", "document.querySelector('#says').innerText.includes('is on trial')");
    };
    let weight = "document.querySelector(\"[id='backend/web/b0'] td:nth-child(8)\").innerText";
    apply(", weight: 7");
    browser.until("it is in force", &format!("{weight} === '7'"));
    click(&browser, "#panels", "Confirm");
    click(&browser, "#question", "Confirm");
    browser.until("it stays", "document.querySelector('#says').innerText.includes('All is well')");
    let file = std::fs::read_to_string(process.folder().join("evenkeel.yaml")).unwrap();
    assert!(file.contains("weight: 7"), "{file}");
    browser.eval("location.hash = '#'");
    // What would be refused is told before, and can't be tried.
    go(&browser, "panel%2Fconfig");
    click(&browser, "#panels", "Apply");
    fill(&browser, "#question textarea", "listeners: 7");
    browser.until(
        "it is told",
        "document.querySelector('#question .about').innerText.startsWith('It would be refused')",
    );
    assert_eq!(browser.eval("document.querySelector('#question .go').disabled"), true);
    click(&browser, "#question", "Cancel");
    browser.eval("location.hash = '#'");
    apply(", weight: 9");
    click(&browser, "#panels", "Roll back");
    click(&browser, "#question", "Roll back");
    browser.until("it is as before", &format!("{weight} === '7'"));
    assert_eq!(browser.complaints(&[]), [""; 0]);
}

#[test]
fn the_keyboard_alone_reaches_and_fires_every_button() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(2);
    let process = shop(&backends, 0);
    log_in(&browser, &process, CONFIGURE);
    browser.eval("document.querySelectorAll('details').forEach(one => { one.open = true; })");
    go(&browser, "backend%2Fweb%2Fb1");
    browser.until("its page is there", "document.activeElement?.id === 'detailname'");
    // All that a mouse could click, but those in what is not there.
    let all = "[...document.querySelectorAll('button, a[href], summary, input, select, textarea')] \
        .filter(one => !one.disabled && one.checkVisibility())";
    browser.until("the panels are there", "document.querySelectorAll('#panels button').length >= 6");
    browser.eval("document.activeElement.blur(); window.reached = new Set()");
    let mut steps = 0;
    loop {
        browser.press("Tab");
        browser.eval("document.activeElement && window.reached.add(document.activeElement)");
        steps += 1;
        let left = browser.eval(&format!(
            "{all}.filter(one => !window.reached.has(one)).map(one => one.outerHTML.slice(0, 120))"
        ));
        if left == json!([]) {
            break;
        }
        assert!(steps < 200, "these are not reached: {left}");
    }
    // And it fires: the button of the detail, then that of the question.
    let reach = |label: &str| {
        for _ in 0..200 {
            if browser.eval("document.activeElement?.innerText ?? ''") == label {
                return browser.press("Enter");
            }
            browser.press("Tab");
        }
        panic!("{label} is not reached");
    };
    reach("Take down");
    browser.until("it asks", "document.querySelector('#question').open");
    reach("Take down");
    browser.until(
        "it is done",
        "document.querySelector('#says').innerText.includes('b1 of web taken out by hand')",
    );
    // That may be heard before the answer to the question, which goes by Escape too.
    browser.until("it asks no more", "!document.querySelector('#question').open");
    browser.press("Escape");
    browser.until("the detail is closed", "document.querySelector('#detail').hidden");
    for label in ["Reload", "Block", "Purge"] {
        reach(label);
        browser.until("it asks", "document.querySelector('#question').open");
        browser.press("Escape");
        browser.until("it asks no more", "!document.querySelector('#question').open");
    }
    assert_eq!(browser.complaints(&[]), [""; 0]);
}

#[test]
fn who_may_only_look_has_no_button_that_does_something() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(1);
    let process = shop(&backends, 0);
    log_in(&browser, &process, READ);
    go(&browser, "backend%2Fweb%2Fb0");
    browser.until("its page is there", "document.querySelectorAll('#detail .actions button').length === 4");
    assert_eq!(
        browser.eval("[...document.querySelectorAll('.actions button')].every(one => one.disabled)"),
        true
    );
    assert_eq!(
        browser.eval("document.querySelector('#detail .actions button').title"),
        "this needs a token with the scope operate"
    );
}

#[test]
fn the_page_goes_on_after_a_restart() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(1);
    let reserved = Reserved::new();
    let process = shop(&backends, reserved.number());
    log_in(&browser, &process, READ);
    drop(process);
    browser.until(
        "it says that it hears nothing",
        "document.querySelector('#says').innerText.includes('Nothing is heard')",
    );
    // Another one at the same place has other sessions.
    let process = shop(&backends, reserved.number());
    browser.until(
        "it asks who is there",
        "document.activeElement?.id === 'token' && !document.querySelector('#login').hidden",
    );
    browser.write(READ);
    browser.press("Enter");
    browser.until("all is well", "document.querySelector('#says')?.innerText.includes('All is well')");
    let mut client = Client::connect(process.address("front"));
    assert_eq!(client.get("/x").status, 200);
    go(&browser, "target%2Fweb");
    browser.until(
        "what was counted is that of this one",
        "document.querySelector('#detail dl').innerText.includes('1, 0 of them errors')",
    );
}

#[test]
fn counts_are_exact_and_what_failed_is_told_with_the_sentence_of_why() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(1);
    let process = shop(&backends, 0);
    log_in(&browser, &process, READ);
    let mut client = Client::connect(process.address("front"));
    let mut ask = |count: usize, status: u16| {
        if status != 200 {
            backends[0].behave(Behaviour::status(status).sparing_health());
        }
        for number in 0..count {
            assert_eq!(client.get(&format!("/{status}/{number}")).status, status);
        }
    };
    ask(850, 200);
    ask(100, 404);
    ask(50, 500);
    for (place, label) in [
        ("target%2Fweb", "1\u{202f}000"),
        ("route%2Ffront%2Fall", "1\u{202f}000"),
        ("listener%2Ffront", "1\u{202f}000"),
        ("backend%2Fweb%2Fb0", "1\u{202f}000"),
    ] {
        go(&browser, place);
        let counted =
            format!("document.querySelector('#detail dl').innerText.includes('{label}, 50 of them errors')");
        browser.until(&format!("{place} is exact"), &counted);
    }
    // What came second by second is all that came.
    let sum = "fetch('api/v1/history?of=target/web').then(answer => answer.json()).then(said => { const row = said.rows['target/web']; \
        return [row.requests, row.errors].map(list => list.reduce((all, one) => all + one, 0)); })";
    eventually("the history has all of them", || browser.eval(sum) == json!([1000, 50]));
    // Who opens the page now sees what came before, though nothing comes any more.
    browser.open(&format!("http://{}/", door(&process)));
    let peak = "document.querySelector('#vitals .line')?.getAttribute('d')?.includes(' 2.0')";
    browser.until("the past is drawn", peak);
    browser.until(
        "those that failed are there",
        "document.querySelectorAll(\"#requests li[data-status='5']\").length > 0",
    );
    browser.eval("document.querySelector(\"#requests li[data-status='5'] a\").click()");
    browser.until("its steps are there", "document.querySelectorAll('#detail .steps li').length > 3");
    let told = browser.text("#detail");
    assert!(
        told.contains("The backend answered 500, which was passed on.") && told.contains("/500/"),
        "{told}"
    );
    assert_eq!(browser.complaints(&[]), [""; 0]);
}

#[test]
fn nothing_keeps_people_out_who_cannot_see_or_point() {
    let Some(browser) = Browser::start() else { return };
    let backends = fakes(3);
    let process = shop(&backends, 0);
    browser.open(&format!("http://{}/", door(&process)));
    browser.until("the form is there", "document.activeElement?.id === 'token'");
    assert_eq!(browser.barriers(), [""; 0], "the form");
    log_in(&browser, &process, OPERATE);
    let mut client = Client::connect(process.address("front"));
    backends[1].behave(Behaviour::status(500));
    browser.until("it is told", "document.querySelector('#says').innerText.includes('web/b1 is down')");
    for _ in 0..20 {
        client.get("/x");
    }
    browser.eval("document.querySelectorAll('details').forEach(one => { one.open = true; })");
    for (width, is_dark) in [(1600, false), (1600, true), (400, false), (400, true)] {
        browser.shape(width, 900, is_dark);
        go(&browser, "");
        assert_eq!(browser.barriers(), [""; 0], "the page, {width}, {is_dark}");
        go(&browser, "backend%2Fweb%2Fb1");
        browser.until("its page is there", "document.activeElement?.id === 'detailname'");
        assert_eq!(browser.barriers(), [""; 0], "a backend, {width}, {is_dark}");
        click(&browser, "#detail", "Drain");
        assert_eq!(browser.barriers(), [""; 0], "a question, {width}, {is_dark}");
        browser.press("Escape");
        browser.press("Escape");
        browser.until("it is closed", "document.querySelector('#detail').hidden");
    }
}
