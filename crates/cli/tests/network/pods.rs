//! Exported pods on machines that lack something, each in a network namespace in place of a pod.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::clock;
use crate::machine::{Machine, can_run, export, write_archive};
use crate::support::eventually;

const A: &str = "1-ff00:0:110";
const B: &str = "1-ff00:0:111";
const NETWORK: &str = r#"
ASes:
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CHILD, rate: 20mbit}
"#;

/// The pods of two ASes.
struct Pods {
    machines: [Machine; 2],
    folder: TempDir,
}

impl Pods {
    /// Starts them, the program of each by the words that come before it.
    fn start(before: impl Fn(&TempDir) -> [Vec<String>; 2]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        export(&folder, "kubernetes", NETWORK);
        let out = folder.path().join("out");
        // In place of the cluster's name server.
        let hosts = folder.path().join("hosts");
        fs::write(&hosts, "10.9.0.1 as1-ff00-0-110\n10.9.0.2 as1-ff00-0-111\n").unwrap();
        let names = ["as1-ff00-0-110", "as1-ff00-0-111"];
        let mut before = before(&folder).into_iter();
        let machines = names.map(|name| {
            let archive = folder.path().join(format!("{name}.tar.gz"));
            write_archive(&out.join(format!("ases/{name}.yaml")), &archive);
            let mut machine = Machine::new();
            let mut command = Command::new("unshare");
            let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
            command.args(["-m", "--propagation", "private", "sh", "-c", script]);
            command.arg(&hosts).args(before.next().unwrap());
            command.args([env!("CARGO_BIN_EXE_hawser"), "as", "join"]);
            command.arg(&archive);
            command.arg("--segments").arg(out.join("segments"));
            command.arg("--state").arg(folder.path().join(name));
            command.args(["--listen", "127.0.0.1:8042", "--json"]);
            machine.start(command);
            machine
        });
        let [a, b] = &machines;
        a.ip(&format!(
            "link add eth0 type veth peer name eth0 netns {}",
            b.pid()
        ));
        for (machine, address) in [(a, "10.9.0.1"), (b, "10.9.0.2")] {
            machine.ip(&format!("address add {address}/24 dev eth0"));
            machine.ip("link set eth0 mtu 1450 up");
        }
        Self { machines, folder }
    }

    /// Waits until what an AS says about being ready is it.
    fn wait(&self, at: usize, what: &str, is_it: impl Fn(&Value) -> bool) {
        eventually(what, || {
            let answer = self.machines[at].get("/ready");
            answer.is_some_and(|(_, report)| is_it(&report))
        });
    }
}

#[test]
fn without_the_right_an_as_has_no_limits_and_says_so() {
    if !can_run() {
        return;
    }
    let pods = Pods::start(|_| {
        let without = ["setpriv", "--bounding-set", "-net_admin"];
        [Vec::new(), without.map(str::to_owned).into()]
    });
    let [a, b] = &pods.machines;
    let joined = b.joined.as_ref().unwrap();
    joined.wait_for("the limits are not in force", |event| {
        let event = event.to_string();
        event.contains("_failed\"") && event.contains("CAP_NET_ADMIN")
    });
    pods.wait(0, "the other one is ready", |report| {
        report["ready"] == true
    });
    // All else is there, and works.
    pods.wait(1, "the limits alone are missing", |report| {
        let reasons = report["reasons"].as_array().unwrap();
        let [reason] = &reasons[..] else { return false };
        let reason = reason.as_str().unwrap();
        reason.starts_with("the limits") && reason.contains("CAP_NET_ADMIN")
    });
    joined.wait_for("what is missing is logged", |event| {
        let reasons = event["reasons"].to_string();
        event["event"] == "health" && event["ready"] == false && reasons.contains("CAP_NET_ADMIN")
    });
    a.assert_reaches(B);
    b.assert_reaches(A);
}

#[test]
fn clocks_may_be_an_hour_apart_from_that_of_the_export() {
    if !can_run() {
        return;
    }
    let pods = Pods::start(|folder| {
        [("behind", -3600), ("ahead", 3600)].map(|(name, shift)| {
            let library = folder.path().join(format!("{name}.so"));
            clock::write(&library, shift);
            vec![
                "env".to_owned(),
                format!("LD_PRELOAD={}", library.display()),
            ]
        })
    });
    for at in [0, 1] {
        pods.wait(at, "an AS is ready", |report| report["ready"] == true);
    }
    let [a, b] = &pods.machines;
    a.assert_reaches(B);
    b.assert_reaches(A);
    // Programs of hosts have the clocks of their machines.
    for (from, to, name) in [(a, B, "behind"), (b, A, "ahead")] {
        let library = pods.folder.path().join(format!("{name}.so"));
        let mut ping = from.command(&["ping", &format!("{to},127.0.0.1"), "-c", "3"]);
        let output = ping.env("LD_PRELOAD", &library).output().unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
    }
}
