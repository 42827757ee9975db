//! What `receive` offers, for how long, and with which exit code it ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::{As, TestLab, eventually};

const SENDER: &str = "1-ff00:0:110";
const RECEIVER: &str = "1-ff00:0:111";
const ADDRESS: &str = "1-ff00:0:111,10.0.2.1:31000";
/// Content that takes some seconds at the rate of the links.
const LARGE: usize = 12_000_000;

struct Bed {
    lab: TestLab,
    folder: TempDir,
}

/// A receiver that runs.
struct Receiver {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Receiver {
    /// The rest of the line that begins with `start`.
    fn line(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "{start}");
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Waits for its end: the exit code, and what it said to standard error.
    fn end(&mut self) -> (Option<i32>, String) {
        let stderr = self.child.stderr.take().unwrap();
        let text = std::io::read_to_string(stderr).unwrap();
        (self.child.wait().unwrap().code(), text)
    }
}

impl Bed {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn exec(&self, isd_as: &str, args: &[&str]) -> Command {
        let key = self.path(&format!("{isd_as}.key"));
        let all = [&[env!("CARGO_BIN_EXE_hawser")], args, &["--key", &key]].concat();
        let mut command = self.lab.exec(isd_as, &all);
        // Keeps the user's keys out.
        command.env("XDG_CONFIG_HOME", self.folder.path());
        command
    }

    fn receive_command(&self, folder: &str, flags: &[&str]) -> Command {
        let output = self.path(folder);
        let args = ["receive", "-o", &output, "--listen", "10.0.2.1:31000"];
        self.exec(RECEIVER, &[&args[..], flags].concat())
    }

    fn receive(&self, folder: &str, flags: &[&str]) -> Receiver {
        let mut command = self.receive_command(folder, flags);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Receiver { child, stdout }
    }

    fn send(&self, file: &str, flags: &[&str]) -> Command {
        let file = self.path(file);
        self.exec(SENDER, &[&["send", &file, ADDRESS][..], flags].concat())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn assert_refused(output: &Output, reason: &str) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(reason), "{error}");
}

#[test]
fn one_line_a_side_is_enough() {
    let Some(lab) = As::default().up("fig4", "lines") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let bed = Bed { lab, folder };
    fs::write(bed.path("small"), b"small").unwrap();

    // Nobody is there: that is waited for only if requested, and as long as requested.
    let output = bed.send("small", &["--any-server", "--wait=1s"]).output();
    let output = output.unwrap();
    assert_refused(&output, "could not be reached");

    // The side that starts first waits, and does not repeat an error meanwhile.
    let mut waiting = bed.send("small", &["--any-server", "--wait"]);
    let mut waiting = waiting.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert!(first.contains("waiting for it"), "{first}");
    let mut receiver = bed.receive("waited", &["--allow-any", "--count", "1"]);
    assert_eq!(receiver.end().0, Some(0));
    assert!(waiting.wait().unwrap().success());
    let rest = std::io::read_to_string(said).unwrap();
    assert!(!rest.contains("waiting for it"), "{rest}");
    assert_eq!(fs::read(bed.path("waited/small")).unwrap(), b"small");

    // What else fails ends it at once.
    let stranger = format!("SHA256:{}", "A".repeat(43));
    let mut receiver = bed.receive("codes", &[]);
    receiver.line("receiving at");
    let output = bed.send("small", &["--server-key", &stranger, "--wait"]);
    assert_refused(&{ output }.output().unwrap(), "key");

    // The line that the receiver prints is all that the sender needs; no key is allowed here, so a
    // code is made.
    let line = receiver.line("to send: hawser send FILE ");
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!((words[0], words[1]), (ADDRESS, "--code"));
    let sent = bed.send("small", &words[1..]).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(receiver.end().0, Some(0));

    // With a key that is allowed, it has the receiver's.
    let key = bed.exec(SENDER, &["key"]).output().unwrap();
    let mut receiver = bed.receive(
        "keys",
        &["--allow", text(&key.stdout).trim(), "--count", "1"],
    );
    let line = receiver.line("to send: hawser send FILE ");
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!((words[0], words[1]), (ADDRESS, "--server-key"));
    let sent = bed.send("small", &words[1..]).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(receiver.end().0, Some(0));
    assert_eq!(fs::read(bed.path("keys/small")).unwrap(), b"small");
}

#[test]
fn a_receiver_ends_with_the_outcome_and_keeps_its_code_until_then() {
    let Some(lab) = As::default().up("fig4", "offer") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let bed = Bed { lab, folder };
    let mut bytes = vec![0; LARGE];
    fastrand::fill(&mut bytes);
    fs::write(bed.path("large"), &bytes).unwrap();
    fs::write(bed.path("small"), b"small").unwrap();

    // Nothing is offered where nothing can be written.
    let output = bed.receive_command("small", &["--once"]).output().unwrap();
    assert_refused(&output, "small is not a folder");
    assert_eq!(text(&output.stdout), "");
    let output = bed.receive_command("in", &["--allow-any", "--share", &bed.path("none")]);
    assert_refused(&{ output }.output().unwrap(), "cannot read");

    // A transfer that fails counts, and is the outcome.
    fs::create_dir_all(bed.path("in/small")).unwrap();
    let mut receiver = bed.receive("in", &["--allow-any", "--count", "1"]);
    receiver.line("receiving at");
    assert!(receiver.line("writing to").contains("free"));
    let output = bed.send("small", &["--any-server"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (code, said) = receiver.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("hawser: the transfer failed: "), "{said}");

    // Wrong codes leave the offer as it is, until there are too many.
    let wrong = ["--code", "k7q-m3f-xdn"];
    let mut receiver = bed.receive("codes", &["--once"]);
    receiver.line("code");
    for reason in [
        "2 more can be tried",
        "one more can be tried",
        "so were others",
    ] {
        assert_refused(&bed.send("small", &wrong).output().unwrap(), reason);
    }
    let (code, said) = receiver.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("too many codes were wrong"), "{said}");

    // A sender that is killed continues by the same command, and the receiver waits for that.
    for interface in ["1-ff00:0:110#1", "1-ff00:0:110#2"] {
        bed.lab.set(interface, &["--rate", "20mbit"]);
    }
    let mut receiver = bed.receive("out", &["--once", "--data-port", "31500"]);
    let code = receiver.line("code");
    assert_refused(&bed.send("small", &wrong).output().unwrap(), "2 more");
    let by_code = ["--code", code.as_str(), "--data-port", "31600"];
    let mut sending = bed.send("large", &by_code).spawn().unwrap();
    let part = bed.folder.path().join("out/.large.hawser-part");
    eventually("something arrives", || part.exists());
    sending.kill().unwrap();
    sending.wait().unwrap();
    let output = bed.send("large", &by_code).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (code, said) = receiver.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(fs::read(bed.path("out/large")).unwrap() == bytes);
}
