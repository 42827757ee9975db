//! Bulk transfer by AF_XDP: hosts behind a cable to their AS, each with a device of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::{fs, thread};

use hawser_kernel::namespace::NetNs;
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{As, TestLab, eventually};

const SENDER: &str = "1-ff00:0:110";
const RECEIVER: &str = "1-ff00:0:111";

/// A host in a network namespace of its own, with the device `card`.
struct Host {
    namespace: NetNs,
    /// Its address in the AS.
    ip: String,
    /// The AS's folder.
    config: String,
}

impl Host {
    /// The `number`-th host, in the AS `isd_as` of `lab`.
    fn new(lab: &TestLab, isd_as: &str, number: usize) -> Self {
        let status = lab.status();
        let ases = status["ases"].as_array().unwrap();
        let found = ases.iter().find(|one| one["isd_as"] == isd_as).unwrap();
        let folder = Path::new(status["dir"].as_str().unwrap()).join(isd_as.replace(':', "_"));
        let host = Self {
            namespace: NetNs::create().unwrap(),
            ip: format!("10.77.{number}.2"),
            config: folder.to_str().unwrap().to_owned(),
        };
        let (inside, gateway) = (&found["control"]["pid"], format!("10.77.{number}.1"));
        let ip = &host.ip;
        host.shell(&format!(
            "ip link add card type veth peer name cable netns {inside} &&
             ip link add other type veth peer name another && ip link set other up && ip link set lo up &&
             ip address add {ip}/30 dev card && ip link set card up &&
             ip route add default via {gateway}"
        ));
        let script = format!("ip address add {gateway}/30 dev cable && ip link set cable up");
        let output = lab.exec(isd_as, &["sh", "-c", &script]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        host
    }

    /// Runs a script at this host, which must succeed.
    fn shell(&self, script: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let output = self.namespace.run(|| command.output()).unwrap().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn hawser(&self, args: &[&str], folder: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        let place = ["--config-dir", &self.config, "--local", &self.ip];
        command.args(args).args(place);
        // Keeps the user's keys out.
        command.env("XDG_CONFIG_HOME", folder);
        command
    }

    fn output(&self, args: &[&str], folder: &Path) -> Output {
        let mut command = self.hawser(args, folder);
        self.namespace.run(|| command.output()).unwrap().unwrap()
    }
}

/// A receiver that runs; it ends with its value.
struct Receiver {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// What it prints when it listens.
    listening: Value,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Receiver {
    fn new(host: &Host, folder: &Path) -> Self {
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (to, share) = (path("in"), path("data"));
        let args = ["receive", "-o", &to, "--share", &share, "--allow-any"];
        let args = [&args[..], &["--json", "--xdp", "card"]].concat();
        let mut command = host.hawser(&args, folder);
        command.stdout(Stdio::piped());
        let mut child = host.namespace.run(|| command.spawn()).unwrap().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let listening = line(&mut stdout);
        Self {
            child,
            stdout,
            listening,
        }
    }
}

fn line(from: &mut impl BufRead) -> Value {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn data() -> (TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = vec![0; 20_000_000];
    fastrand::fill(&mut bytes);
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("data/large"), &bytes).unwrap();
    (folder, bytes)
}

/// Asserts that `output` is one line that contains `text`, with this exit code.
fn assert_refused(output: &Output, code: i32, text: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    assert!(error.contains(text), "{error}");
}

#[test]
fn content_passes_the_kernels_stack_by() {
    let has_ip = Command::new("ip").arg("-V").output().is_ok();
    if !has_ip || !hawser_kernel::namespace::is_privileged() {
        eprintln!("skipped: needs root and iproute2");
        return;
    }
    let Some(lab) = As::default().up("fig4", "xdp") else {
        return;
    };
    let sender = Host::new(&lab, SENDER, 1);
    let receiving = Host::new(&lab, RECEIVER, 2);
    let (folder, bytes) = data();
    let folder = folder.path();

    // Devices that cannot be used.
    let receive = |device: &str| {
        let args = ["receive", "--discard", "--allow-any", "--xdp", device];
        sender.output(&args, folder)
    };
    assert_refused(&receive("eth77"), 2, "there is no network device eth77");
    assert_refused(&receive("lo"), 2, "lo is not an Ethernet device");
    let text = "10.77.1.2 is not an address of other, but of card";
    assert_refused(&receive("other"), 2, text);
    // Without the right, which the thread's children do not get either.
    let refused = thread::scope(|scope| {
        let without = scope.spawn(|| {
            sender.namespace.run(|| {
                for one in [CapabilitySet::BPF, CapabilitySet::SYS_ADMIN] {
                    remove_capability_from_bounding_set(one).unwrap();
                }
                let args = ["receive", "--discard", "--allow-any", "--xdp", "card"];
                sender.hawser(&args, folder).output()
            })
        });
        without.join().unwrap().unwrap().unwrap()
    });
    assert_refused(&refused, 1, "capabilities CAP_BPF");

    // By AF_XDP on both sides, over two paths.
    let mut receiver = Receiver::new(&receiving, folder);
    let used = &receiver.listening["xdp"];
    assert_eq!(
        (&used["device"], &used["driver"]),
        (&"card".into(), &"veth".into()),
        "{used}"
    );
    let address = receiver.listening["listening"].as_str().unwrap().to_owned();
    let file = folder.join("data/large");
    let send = [
        "send",
        file.to_str().unwrap(),
        &address,
        "--any-server",
        "--json",
    ];
    let send = [&send[..], &["--paths", "2", "--xdp", "card"]].concat();
    let output = sender.output(&send, folder);
    assert!(output.status.success(), "{output:?}");
    let sent: Value = serde_json::from_slice(&output.stdout).unwrap();
    let received = line(&mut receiver.stdout);
    assert!(fs::read(folder.join("in/large")).unwrap() == bytes);
    // All but what was sent before the neighbour was known.
    let count = |report: &Value, what: &str| report["xdp"][what].as_u64().unwrap();
    for (report, what) in [(&sent, "sent"), (&received, "received")] {
        let by_kernel = count(report, &format!("kernel_{what}"));
        assert!(
            count(report, what) > 13_000 && by_kernel < 2_000,
            "{report}"
        );
    }
    // Acknowledgements.
    assert!(count(&sent, "received") > 0 && count(&received, "sent") > 0);

    // While it runs, the device is in use; after it was killed, nothing of it is left.
    assert!(receiving.shell("ip link show card").contains("xdp"));
    let args = ["receive", "--discard", "--allow-any", "--xdp", "card"];
    assert_refused(
        &receiving.output(&args, folder),
        1,
        "another program uses XDP on card",
    );
    receiver.child.kill().unwrap();
    receiver.child.wait().unwrap();
    // The kernel detaches the program a moment later.
    eventually("nothing of it is left", || {
        !receiving.shell("ip link show card").contains("xdp")
    });
    let receiver = Receiver::new(&receiving, folder);

    // By the kernel on one side.
    let address = receiver.listening["listening"].as_str().unwrap();
    let to = folder.join("out");
    let from = format!("{address}/large");
    let fetch = [
        "fetch",
        &from,
        "-o",
        to.to_str().unwrap(),
        "--any-server",
        "--json",
    ];
    let output = sender.output(&fetch, folder);
    assert!(output.status.success(), "{output:?}");
    assert!(fs::read(to.join("large")).unwrap() == bytes);
}
