//! Plain IP over links with delay, jitter and loss.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{A, B, B_HOST, folder};
use crate::support::{As, TestLab, eventually, kill, runs, topology};

/// Bytes of payload in each datagram.
const PAYLOAD: u64 = 1000;

/// A receiver of a baseline in B.
struct Receiver {
    process: Child,
    out: BufReader<ChildStdout>,
    address: String,
}

impl Receiver {
    fn start(lab: &TestLab, kind: &str) -> Self {
        let program = lab.program();
        let args = [program, "internal", "plain-receive", kind, "10.0.2.1:0"];
        let mut command = lab.exec(B, &args);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut address = String::new();
        out.read_line(&mut address).unwrap();
        Self {
            process,
            out,
            address: address.trim().to_owned(),
        }
    }

    fn end(mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        assert!(self.process.wait().unwrap().success());
        serde_json::from_str(&line).unwrap()
    }
}

/// Sends a baseline from A to B for `millis`; returns what was sent, what arrived, and the time
/// that the sender took.
fn carry(lab: &TestLab, kind: &str, millis: &str) -> (u64, Value, Duration) {
    let receiver = Receiver::start(lab, kind);
    let payload = PAYLOAD.to_string();
    let begin = Instant::now();
    let send = [
        "internal",
        "plain-send",
        kind,
        &receiver.address,
        millis,
        &payload,
    ];
    let sent = lab.hawser(A, &send);
    let time = begin.elapsed();
    assert!(sent.status.success(), "{sent:?}");
    let sent: Value = serde_json::from_slice(&sent.stdout).unwrap();
    (sent["bytes"].as_u64().unwrap(), receiver.end(), time)
}

/// What A's end of the link has carried of plain IP.
fn carried(lab: &TestLab) -> [u64; 3] {
    let counters = &lab.status()["links"][0]["a"]["plain_ip"];
    ["packets", "lost", "dropped"].map(|key| counters[key].as_u64().unwrap())
}

/// Whether `found` of `all` may be the draws of a share of a tenth: within six standard deviations.
fn is_a_tenth(found: u64, all: u64) -> bool {
    let (found, all) = (found as f64, all as f64);
    (found - all * 0.1).abs() <= 6.0 * (all * 0.09).sqrt()
}

fn of_both(lab: &TestLab, key: &str) -> [Value; 2] {
    let status = lab.status();
    [0, 1].map(|at| status["ases"][at]["emulator"][key].clone())
}

#[test]
fn plain_ip_meets_the_delay_and_loss_of_links() {
    let files = tempfile::tempdir().unwrap();
    let file = topology(
        files.path(),
        r#"
ASes: {"1-ff00:0:110": {core: true}, "1-ff00:0:111": {}}
links: [{a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CHILD, rate: 1gbit}]
"#,
    );
    let Some(lab) = As::default().up(&file, "emulated") else {
        return;
    };
    // Without delay and loss there is no emulator.
    assert_eq!(of_both(&lab, "pid"), [Value::Null, Value::Null]);
    let link = "1-ff00:0:110#1";
    let none = lab
        .by
        .refuse(&["lab", "restart", A, "emulator", "--name", &lab.name]);
    assert!(none.contains("no emulator"), "{none}");

    // SCION packets are delayed by the routers only.
    lab.set(link, &["--delay", "50ms", "--jitter", "1ms"]);
    lab.assert_answers(A, B_HOST);
    assert_eq!(carried(&lab), [0; 3]);
    // The handshakes of TCP and TLS take two round trips.
    let (sent, received, time) = carry(&lab, "tls", "1");
    assert_eq!(received["bytes"], sent);
    assert!(time >= Duration::from_millis(2 * 2 * 49), "{time:?}");
    let [packets, lost, _] = carried(&lab);
    assert!(packets > 0);
    assert_eq!(lost, 0);

    // Packets of segmentation offload are lost one by one, and the others stay intact.
    lab.set(link, &["--delay", "1ms", "--loss", "10%"]);
    let before = carried(&lab);
    let (mut all_sent, mut all_received) = (0, 0);
    // A busy machine sends little in this time.
    eventually("enough is sent", || {
        let (sent, received, _) = carry(&lab, "udp", "200");
        let arrived = received["packets"].as_u64().unwrap();
        assert_eq!(received["bytes"], arrived * PAYLOAD);
        all_sent += sent / PAYLOAD;
        all_received += arrived;
        all_sent > 500
    });
    let [packets, lost, dropped] = [0, 1, 2].map(|i| carried(&lab)[i] - before[i]);
    assert!(packets + dropped >= all_received);
    // The sender also sends a few packets that are not counted.
    let all = packets + lost + dropped;
    assert!(all >= all_sent, "{all} {all_sent}");
    assert!(is_a_tenth(lost, all), "{lost} of {all}");
    let (sent, received, _) = carry(&lab, "tls", "100");
    assert_eq!(received["bytes"], sent);

    // A router that ends does not take plain IP away, and an emulator that ends is started again.
    let emulators = of_both(&lab, "pid").map(|pid| pid.as_i64().unwrap());
    let status = lab.status();
    let router = status["ases"][0]["routers"][0]["pid"].as_i64().unwrap();
    kill(&[router, emulators[0]]);
    eventually("another emulator", || {
        let [restarts, alive] = ["restarts", "alive"].map(|key| of_both(&lab, key)[0].clone());
        (restarts, alive) == (1.into(), true.into())
    });
    lab.set(link, &["--loss", "0%"]);
    let before = carried(&lab);
    let (sent, received, _) = carry(&lab, "tls", "100");
    assert_eq!(received["bytes"], sent);
    let after = carried(&lab);
    assert!(after[0] > before[0]);
    assert_eq!(after[1], before[1]);
    let table = lab.by.print(&["lab", "status", "--name", &lab.name]);
    assert!(
        table.contains("EMULATOR") && table.contains("plain IP has"),
        "{table}"
    );

    let (folder, services) = (folder(&lab), lab.services());
    assert_eq!(services.len(), 6);
    // The kernel ends them with the supervisor.
    kill(&[lab.supervisor()]);
    eventually("the end of all services", || {
        !services.iter().copied().any(runs)
    });
    lab.down();
    lab.assert_gone(&folder, &services);
}
