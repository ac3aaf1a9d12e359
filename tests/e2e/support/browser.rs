//! A real browser: Chromium without a window, told what to do over the Chrome DevTools Protocol through two pipes.

use std::cell::{Cell, RefCell};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::PATIENCE;

/// Its third and fourth descriptor are the pipes; the shell has them as its input and its output.
const START: &str = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --no-default-browser-check \
    --disable-background-networking --disable-component-update --disable-sync --force-device-scale-factor=1 --hide-scrollbars \
    --user-data-dir=\"$0\" --remote-debugging-pipe about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1";

/// A browser with one page. It ends, with all that it has started, when it is dropped.
pub struct Browser {
    child: Child,
    orders: RefCell<ChildStdin>,
    heard: Receiver<Value>,
    number: Cell<u64>,
    session: RefCell<String>,
    /// What the page and the browser have complained about.
    complaints: RefCell<Vec<String>>,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Starts one; `None`: there is no Chromium on this machine, which is said.
    #[expect(clippy::print_stderr, reason = "who runs the tests is to know what was skipped")]
    pub fn start() -> Option<Browser> {
        if !std::env::split_paths(&std::env::var_os("PATH")?).any(|folder| folder.join("chromium").is_file())
        {
            eprintln!("SKIPPED: there is no chromium (Debian: apt-get install chromium)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", START])
            .arg(folder.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (told, heard) = channel();
        let (orders, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let messages = BufReader::new(answers).split(0).map_while(Result::ok);
            messages
                .map(|message| serde_json::from_slice(&message).unwrap())
                .all(|message: Value| told.send(message).is_ok())
        });
        let browser = Browser {
            child,
            orders: RefCell::new(orders),
            heard,
            number: Cell::new(0),
            session: RefCell::default(),
            complaints: RefCell::default(),
            _folder: folder,
        };
        let target = browser.order("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.order("Target.attachToTarget", attach);
        *browser.session.borrow_mut() = session["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Audits", "Network"] {
            browser.order(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Gives an order and waits for its answer.
    pub fn order(&self, method: &str, parameters: Value) -> Value {
        self.tried(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The same; `Err`: it can't be done now.
    fn tried(&self, method: &str, parameters: Value) -> Result<Value, Value> {
        let number = self.number.get() + 1;
        self.number.set(number);
        let mut order = json!({"id": number, "method": method, "params": parameters});
        if !self.session.borrow().is_empty() {
            order["sessionId"] = json!(*self.session.borrow());
        }
        let mut bytes = serde_json::to_vec(&order).unwrap();
        bytes.push(0);
        self.orders.borrow_mut().write_all(&bytes).unwrap();
        loop {
            let message = self.heard.recv_timeout(PATIENCE).unwrap_or_else(|why| panic!("{method}: {why}"));
            if message["id"] == number {
                let error = &message["error"];
                return if error.is_null() { Ok(message["result"].clone()) } else { Err(error.clone()) };
            }
            self.note(&message);
        }
    }

    /// Keeps what is a complaint.
    fn note(&self, message: &Value) {
        let said = &message["params"];
        let complaint = match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                said["exceptionDetails"]["exception"]["description"].to_string()
            }
            Some("Runtime.consoleAPICalled")
                if matches!(said["type"].as_str(), Some("error" | "warning" | "assert")) =>
            {
                said["args"].to_string()
            }
            Some("Log.entryAdded") if said["entry"]["level"] == "error" => said["entry"].to_string(),
            Some("Audits.issueAdded") if said["issue"]["code"] == "ContentSecurityPolicyIssue" => {
                said["issue"].to_string()
            }
            _ => return,
        };
        self.complaints.borrow_mut().push(complaint);
    }

    /// What there was to complain about since it was last asked, without what has one of these words in it.
    pub fn complaints(&self, but: &[&str]) -> Vec<String> {
        while let Ok(message) = self.heard.try_recv() {
            self.note(&message);
        }
        let mut all = self.complaints.take();
        all.retain(|complaint| !but.iter().any(|word| complaint.contains(word)));
        all
    }

    /// Goes to a page.
    pub fn open(&self, url: &str) {
        let gone = self.order("Page.navigate", json!({"url": url}));
        assert!(gone["errorText"].is_null(), "{url}: {gone}");
    }

    /// What a script comes to in the page.
    pub fn eval(&self, script: &str) -> Value {
        let asked = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let came = self.order("Runtime.evaluate", asked);
        assert!(came["exceptionDetails"].is_null(), "{script}: {}", came["exceptionDetails"]);
        came["result"]["value"].clone()
    }

    /// The text that can be seen in what `selector` finds.
    pub fn text(&self, selector: &str) -> String {
        let found = self.eval(&format!("document.querySelector({})?.innerText ?? ''", json!(selector)));
        found.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a script comes to true.
    pub fn until(&self, what: &str, script: &str) {
        // While a page goes and another one comes there is nothing to look at.
        let script = format!("(() => {{ try {{ return Boolean({script}); }} catch {{ return false; }} }})()");
        let asked = json!({"expression": script, "returnByValue": true});
        let came = super::comes_within(PATIENCE, || {
            self.tried("Runtime.evaluate", asked.clone()).is_ok_and(|came| came["result"]["value"] == true)
        });
        assert!(came, "not in time: {what}; the page says {}", self.text("body"));
    }

    /// Has the page in so many pixels, light or dark.
    pub fn shape(&self, width: u32, height: u32, is_dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.order("Emulation.setDeviceMetricsOverride", size);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.order("Emulation.setEmulatedMedia", features);
    }
}

impl Browser {
    /// Presses a key, as a person does who has no mouse.
    pub fn press(&self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            _ => panic!("{key} is no key that is known"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.order("Input.dispatchKeyEvent", event);
        }
    }

    /// Writes where the cursor is.
    pub fn write(&self, text: &str) {
        self.order("Input.insertText", json!({"text": text}));
    }

    /// What axe-core finds in the page that keeps people out.
    pub fn barriers(&self) -> Vec<String> {
        const AXE: &str = include_str!("axe/axe.min.js");
        self.eval(&format!("{AXE}; 0"));
        let script = "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations \
            .filter(one => ['serious', 'critical'].includes(one.impact)) \
            .map(one => one.id + ': ' + one.nodes.map(node => node.html.slice(0, 160) + ' ' + node.failureSummary).join(' | ')))";
        serde_json::from_value(self.eval(script)).unwrap()
    }

    /// What can be seen of the page, as a PNG.
    pub fn picture(&self) -> Vec<u8> {
        let taken = self.order("Page.captureScreenshot", json!({"format": "png"}));
        STANDARD.decode(taken["data"].as_str().unwrap()).unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
