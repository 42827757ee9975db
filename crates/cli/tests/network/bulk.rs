//! Bulk transfer in a lab: folders arrive, nothing confirmed is sent again, strangers are refused.

mod files;
mod mangled;
mod mangler;
mod policy;

use std::fs;
use std::io::{BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{As, NARROW, TestLab, eventually, topology};

const SENDER: &str = "1-ff00:0:110";
const RECEIVER: &str = "1-ff00:0:111";

/// A lab with a receiver and a sender, and their folders.
struct Bed {
    lab: TestLab,
    folder: TempDir,
}

/// A receiver that runs; it ends with its value.
struct Receiver {
    child: Child,
    /// Open until the receiver ends: it writes to it.
    stdout: BufReader<ChildStdout>,
    address: String,
    key: String,
}

impl Receiver {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let listening = read_object(&mut stdout);
        let text = |field: &str| listening[field].as_str().unwrap().to_owned();
        Self {
            address: text("listening"),
            key: text("key"),
            stdout,
            child,
        }
    }

    /// Its report of the next transfer.
    fn report(&mut self) -> Value {
        read_object(&mut self.stdout)
    }
}

/// Reads one object.
fn read_object(from: impl Read) -> Value {
    let mut objects = serde_json::Deserializer::from_reader(from).into_iter();
    objects.next().unwrap().unwrap()
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
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

    fn receive(&self, flags: &[&str]) -> Receiver {
        self.receive_in("in", flags)
    }

    fn receive_in(&self, folder: &str, flags: &[&str]) -> Receiver {
        Receiver::start(self.receive_command(folder, flags))
    }

    fn receive_command(&self, folder: &str, flags: &[&str]) -> Command {
        let (output, share) = (self.path(folder), self.path("data"));
        let args = [
            &["receive", "-o", &output, "--share", &share, "--json"],
            flags,
        ];
        self.exec(RECEIVER, &args.concat())
    }

    fn send(&self, to: &Receiver, flags: &[&str]) -> Command {
        let data = self.path("data");
        let mut args = vec![
            "send",
            &data,
            &to.address,
            "--json",
            "--server-key",
            &to.key,
        ];
        args.extend(flags);
        self.exec(SENDER, &args)
    }

    /// Fetches `name` into the folder `out`.
    fn fetch(&self, from: &Receiver, name: &str, flags: &[&str]) -> Command {
        let (source, output) = (format!("{}/{name}", from.address), self.path("out"));
        let fetch = ["fetch", &source, "-o", &output, "--json"];
        let trusts = ["--server-key", &from.key];
        self.exec(SENDER, &[&fetch[..], &trusts, flags].concat())
    }

    /// The report of a transfer that must work.
    fn report(&self, mut command: Command) -> Value {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Sends to several receivers; their reports.
    fn send_to_all(&self, receivers: &[&Receiver]) -> Vec<Value> {
        let data = self.path("data");
        let mut args = vec!["send", &data];
        args.extend(receivers.iter().map(|one| one.address.as_str()));
        args.push("--json");
        for one in receivers {
            args.extend(["--server-key", &one.key]);
        }
        let output = self.exec(SENDER, &args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let reports = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
        reports.map(Result::unwrap).collect()
    }

    /// Sets the rate of both links.
    fn set_rate(&self, rate: &str) {
        for link in ["#1", "#2"] {
            let interface = format!("{SENDER}{link}");
            self.lab.set(&interface, &["--rate", rate]);
        }
    }

    /// Asserts that what was sent is in the receiver's folder.
    fn assert_received(&self) {
        assert_same(
            &self.folder.path().join("data"),
            &self.folder.path().join("in/data"),
        );
    }
}

/// Asserts that two folders have the same files, with the same modes and times.
fn assert_same(one: &Path, other: &Path) {
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(one), names(other), "{other:?}");
    for name in names(one) {
        let (one, other) = (one.join(&name), other.join(&name));
        let (left, right) = (
            fs::symlink_metadata(&one).unwrap(),
            fs::symlink_metadata(&other).unwrap(),
        );
        assert_eq!(left.file_type(), right.file_type(), "{other:?}");
        if left.is_symlink() {
            let target = |path: &Path| fs::read_link(path).unwrap();
            assert_eq!(target(&one), target(&other));
            continue;
        }
        assert_eq!(
            left.permissions().mode(),
            right.permissions().mode(),
            "{other:?}"
        );
        assert_eq!(
            left.modified().unwrap(),
            right.modified().unwrap(),
            "{other:?}"
        );
        match left.is_dir() {
            true => assert_same(&one, &other),
            false => assert!(
                fs::read(&one).unwrap() == fs::read(&other).unwrap(),
                "{other:?}"
            ),
        }
    }
}

#[test]
fn a_path_of_the_smallest_mtu_carries_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = topology(folder.path(), NARROW);
    let Some(lab) = As::default().up(&file, "bulk-narrow") else {
        return;
    };
    let bed = Bed { lab, folder };
    let data = bed.folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let mut bytes = vec![0; 4 << 20];
    fastrand::fill(&mut bytes);
    fs::write(data.join("file"), &bytes).unwrap();
    let receiver = bed.receive(&["--allow-any"]);
    bed.report(bed.send(&receiver, &[]));
    bed.assert_received();
}

#[test]
fn folders_arrive_whatever_ends_on_the_way() {
    let Some(lab) = As::default().up("fig4", "bulk") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let bed = Bed { lab, folder };
    let data = bed.folder.path().join("data");
    fs::create_dir_all(data.join("a/b")).unwrap();
    let mut bytes = vec![0; 20_000_000];
    fastrand::fill(&mut bytes);
    fs::write(data.join("a/large"), &bytes).unwrap();
    fs::write(data.join("a/b/small"), b"small").unwrap();
    fs::write(data.join("empty"), b"").unwrap();
    fs::set_permissions(data.join("a/b"), fs::Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::symlink("../a/large", data.join("a/link")).unwrap();
    let sparse = fs::File::create(data.join("sparse")).unwrap();
    sparse.set_len(5_000_000).unwrap();
    drop(sparse);

    // A stranger writes nothing, and trusts nobody.
    let receiver = bed.receive(&[]);
    let refused = bed.send(&receiver, &[]).output().unwrap();
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("is not allowed here"), "{error}");
    assert!(!bed.folder.path().join("in").exists());
    let stranger = format!("SHA256:{}", "A".repeat(43));
    let data_path = bed.path("data");
    let args = [
        "send",
        &data_path,
        &receiver.address,
        "--server-key",
        &stranger,
    ];
    let refused = bed.exec(SENDER, &args).output().unwrap();
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("not the given one"), "{error}");
    drop(receiver);

    // The sender, then the receiver is killed on the way; what was verified is not sent again.
    let key = bed.exec(SENDER, &["key"]).output().unwrap();
    let key = String::from_utf8(key.stdout).unwrap();
    let allow = ["--allow", key.trim()];
    let mut receiver = bed.receive(&allow);
    // Neither transfer is over before it is disturbed.
    bed.set_rate("40mbit");
    let mut sending = bed.send(&receiver, &[]).spawn().unwrap();
    let part = bed.folder.path().join("in/data/a");
    // Ranges of a MiB that are written; the rest of the file is a hole.
    let written = || {
        let names = fs::read_dir(&part).into_iter().flatten();
        let files = names.filter_map(|entry| entry.ok()?.metadata().ok());
        files.map(|file| (file.blocks() * 512) >> 20).max()
    };
    eventually("something is verified", || written() >= Some(2));
    sending.kill().unwrap();
    sending.wait().unwrap();
    let sending = bed
        .send(&receiver, &["--paths", "2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let before = written();
    eventually("more is verified", || written() > before);
    receiver.child.kill().unwrap();
    receiver.child.wait().unwrap();
    bed.set_rate("300mbit");
    // The sender finds the receiver again, and continues by itself.
    let receiver = bed.receive(&[&allow[..], &["--listen", &receiver.address]].concat());
    let output = sending.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["existing_bytes"].as_u64() > Some(0), "{report}");
    let bytes = |path: &Value| path["bytes"].as_u64().unwrap();
    let paths = report["paths"].as_array().unwrap();
    assert!(
        paths.len() == 2 && paths.iter().all(|path| bytes(path) > 0),
        "{report}"
    );
    // The connections to the receiver that was killed, and what they went over.
    let failures = |path: &Value| path["failures"].as_u64().unwrap();
    let known = |path: &Value| !path["interfaces"].as_array().unwrap().is_empty();
    assert!(
        paths.iter().map(failures).sum::<u64>() > 0 && paths.iter().all(known),
        "{report}"
    );
    bed.assert_received();

    // All is there: nothing is sent. Then one byte changes.
    let report = bed.report(bed.send(&receiver, &[]));
    assert_eq!(report["existing_bytes"], report["bytes"]);
    let mut bytes = fs::read(data.join("a/large")).unwrap();
    bytes[3_000_000] ^= 1;
    fs::write(data.join("a/large"), &bytes).unwrap();
    let report = bed.report(bed.send(&receiver, &[]));
    let sent = report["bytes"].as_u64().unwrap() - report["existing_bytes"].as_u64().unwrap();
    assert_eq!(sent, 1 << 20, "{report}");
    bed.assert_received();

    // Two receivers at once, of which one has everything.
    let other = bed.receive_in("other", &allow);
    let reports = bed.send_to_all(&[&receiver, &other]);
    let existing = |receiver: &Receiver| {
        let report = reports.iter().find(|one| one["peer"] == receiver.address);
        report.unwrap()["existing_bytes"].clone()
    };
    assert_eq!(existing(&receiver), reports[0]["bytes"]);
    assert_eq!(existing(&other), 0);
    assert_same(&data, &bed.folder.path().join("other/data"));
    drop(other);

    // The sender's limit, then one of the receiver, which asks the server to keep to it. Of 20 MB,
    // 20 ms are sent at once at most.
    let limited = |report: &Value, flag: &str| {
        assert_eq!(report[flag], 100.0, "{report}");
        assert!(report["seconds"].as_f64() > Some(1.5), "{report}");
    };
    fs::remove_dir_all(bed.folder.path().join("in")).unwrap();
    let flags = ["--limit", "100Mbit", "--paths", "2"];
    let report = bed.report(bed.send(&receiver, &flags));
    limited(&report, "limit_mbit");
    bed.assert_received();
    let strict = bed.receive_in("strict", &[&allow[..], &["--limit", "100mbit"]].concat());
    let report = bed.report(bed.send(&strict, &["--paths", "2"]));
    limited(&report, "peer_limit_mbit");
    assert_same(&data, &bed.folder.path().join("strict/data"));
    drop(strict);

    // A link goes down on the way, when something is fetched.
    let fetching = (bed.fetch(&receiver, "a", &[]).stdout(Stdio::piped()))
        .spawn()
        .unwrap();
    let part = bed.folder.path().join("out/a");
    eventually("something arrives", || part.exists());
    bed.lab.set("1-ff00:0:110#1", &["--down"]);
    let output = fetching.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_same(&data.join("a"), &part);
}
