//! Headless Chromium, driven over a pipe by the DevTools protocol.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base64::Engine;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A browser that does not answer for so long has died.
const GIVEN_UP: Duration = Duration::from_secs(300);

/// The program, if it is installed.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut folders = std::env::split_paths(&path);
    folders.find_map(|folder| {
        names
            .iter()
            .map(|name| folder.join(name))
            .find(|file| file.is_file())
    })
}

/// One page in a browser of its own.
pub struct Browser {
    process: Child,
    input: File,
    messages: Receiver<Value>,
    session: Option<String>,
    next: u64,
    /// What went wrong in the page: exceptions, and what its policy refused.
    pub problems: Vec<String>,
    _folder: TempDir,
}

impl Browser {
    pub fn start(program: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (input, output) = (folder.path().join("in"), folder.path().join("out"));
        let made = Command::new("mkfifo")
            .args([&input, &output])
            .status()
            .unwrap();
        assert!(made.success());
        // Chromium reads commands from descriptor 3, and writes to 4.
        let script = "exec \"$0\" \"$@\" 3<\"$HAWSER_IN\" 4>\"$HAWSER_OUT\"";
        let process = Command::new("sh")
            .args(["-c", script])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
            ])
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ))
            .env("HAWSER_IN", &input)
            .env("HAWSER_OUT", &output)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = File::options().write(true).open(input).unwrap();
        let output = File::open(output).unwrap();
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0) {
                let message = message
                    .ok()
                    .and_then(|bytes| serde_json::from_slice(&bytes).ok());
                if message.is_none_or(|message| sender.send(message).is_err()) {
                    return;
                }
            }
        });
        let mut browser = Self {
            process,
            input,
            messages,
            session: None,
            next: 1,
            problems: Vec::new(),
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", target);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// The result of a command.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.next;
        self.next += 1;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.input.write_all(&bytes).unwrap();
        loop {
            let message = self.messages.recv_timeout(GIVEN_UP);
            let message = message.unwrap_or_else(|_| panic!("no answer to {method}"));
            self.note(&message);
            if message["id"] == id {
                assert!(
                    message.get("error").is_none(),
                    "{method}: {}",
                    message["error"]
                );
                return message["result"].clone();
            }
        }
    }

    fn note(&mut self, message: &Value) {
        let problem = match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                &message["params"]["exceptionDetails"]["exception"]["description"]
            }
            // Requests that are refused on purpose are logged, too.
            Some("Log.entryAdded")
                if message["params"]["entry"]["level"] == "error"
                    && message["params"]["entry"]["source"] != "network" =>
            {
                &message["params"]["entry"]["text"]
            }
            _ => return,
        };
        self.problems.push(problem.to_string());
    }

    /// The value of an expression; promises are awaited.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
        });
        let result = self.call("Runtime.evaluate", parameters);
        let failed = result.get("exceptionDetails");
        assert!(
            failed.is_none(),
            "{expression}: {}",
            failed.unwrap_or(&Value::Null)
        );
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true, looking at each change of the page.
    pub fn until(&mut self, expression: &str) {
        let waiting = format!(
            "new Promise((done) => {{
                const look = () => {{
                    const is = (() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})();
                    if (is) {{ observer.disconnect(); clearTimeout(timer); done(true); }}
                }};
                const observer = new MutationObserver(look);
                observer.observe(document, {{ subtree: true, childList: true, attributes: true, characterData: true }});
                const timer = setTimeout(() => {{ observer.disconnect(); done(false); }}, 240000);
                look();
            }})"
        );
        if self.evaluate(&waiting) != true {
            let text = self.evaluate("document.body.innerText");
            panic!(
                "{expression} did not become true; the page: {text}; {:?}",
                self.problems
            );
        }
    }

    pub fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'");
        // What the status line says is gone after some seconds.
        self.evaluate(
            "(() => {
                window.said = [];
                const status = document.getElementById('status');
                if (!status) return;
                new MutationObserver(() => { if (status.textContent) said.push(status.textContent); })
                    .observe(status, { subtree: true, childList: true, characterData: true });
            })()",
        );
    }

    /// Waits until the status line says this, or has said it since the page was opened.
    #[allow(dead_code, reason = "not every page has such a line")]
    pub fn until_said(&mut self, text: &str) {
        self.until(&format!("said.includes({})", json!(text)));
    }

    /// A screen of this size, with light or dark colours.
    pub fn screen(&mut self, width: u32, height: u32, colours: &str) {
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500,
        });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let feature = json!({ "name": "prefers-color-scheme", "value": colours });
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [feature] }),
        );
    }

    /// Presses a key some times.
    pub fn press(&mut self, key: &str, code: u32, times: usize) {
        for _ in 0..times {
            for kind in ["rawKeyDown", "keyUp"] {
                let event = json!({
                    "type": kind, "key": key, "code": key,
                    "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code,
                });
                self.call("Input.dispatchKeyEvent", event);
            }
            if key == "Enter" {
                let event = json!({
                    "type": "char", "key": key, "code": key, "text": "\r", "windowsVirtualKeyCode": code,
                });
                self.call("Input.dispatchKeyEvent", event);
            }
        }
    }

    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Writes a picture of the page to a folder of the target directory, and over one with the same
    /// name in the folder that `HAWSER_SCREENSHOTS` names.
    pub fn shot(&mut self, name: &str, whole: bool) {
        let parameters = json!({ "format": "png", "captureBeyondViewport": whole });
        let shot = self.call("Page.captureScreenshot", parameters);
        let engine = base64::engine::general_purpose::STANDARD;
        let bytes = engine.decode(shot["data"].as_str().unwrap()).unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let name = format!("{name}.png");
        std::fs::write(folder.join(&name), &bytes).unwrap();
        let documented = documented().map(|folder| folder.join(&name));
        if let Some(file) = documented.filter(|file| file.exists()) {
            std::fs::write(file, bytes).unwrap();
        }
    }
}

/// The folder of pictures to be replaced, if there is one: seen from the root of the repository.
pub fn documented() -> Option<PathBuf> {
    let folder = std::env::var_os("HAWSER_SCREENSHOTS")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Some(root.join(folder))
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
