//! `hawser coordinator --limits-only` in a network namespace: limits set by the API, in the kernel.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use hawser_kernel::namespace::{NetNs, is_privileged};
use serde_json::{Value, json};

/// The worked example of the thesis (004, listing 5.1).
const EXAMPLE: &str = r#"{
    "1": {"AS_ID": 1, "IsUserAS": true, "Bandwidth": 500, "IP-Address": "fe80::20c:29ff:fe08:993c"},
    "2": {"AS_ID": 2, "IsUserAS": true, "Bandwidth": 500, "IP-Address": "192.168.17.129"}
}"#;

struct Bed {
    namespace: NetNs,
    folder: tempfile::TempDir,
}

/// A server that runs, and where.
struct Server {
    process: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Bed {
    fn sh(&self, commands: &str) -> String {
        let run = || Command::new("sh").args(["-ec", commands]).output();
        let output = self.namespace.run(run).unwrap().unwrap();
        assert!(output.status.success(), "{commands}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn serve(&self, more: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        let state = self.folder.path().join("state");
        command
            .args([
                "coordinator",
                "--limits-only",
                "--listen",
                "127.0.0.1:0",
                "--state",
            ])
            .arg(state)
            .args(more)
            .stdout(Stdio::piped());
        let mut process = self.namespace.run(|| command.spawn()).unwrap().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line = line.unwrap();
            line.strip_prefix("page at http://").map(str::to_owned)
        });
        // The pipe stays open: the server may print more.
        std::thread::spawn(move || lines.for_each(drop));
        Server {
            process,
            address: address.unwrap(),
        }
    }

    fn ask(&self, server: &Server, token: &str, first: &str, body: &str) -> String {
        let request = format!(
            "{first} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        let answer = self.namespace.run(|| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        let answer = answer.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{first}: {answer}");
        body.to_owned()
    }

    fn set(&self, server: &Server, token: &str, body: &Value) -> Value {
        let first = "PATCH /api/v1/links/2?wait=10";
        serde_json::from_str(&self.ask(server, token, first, &body.to_string())).unwrap()
    }

    fn classes(&self) -> String {
        self.sh("tc class show dev ens33")
    }
}

/// The names of the labels that the metrics of links have.
fn labels(metrics: &str) -> BTreeSet<Vec<&str>> {
    let of_links = metrics.lines().filter(|line| line.contains("direction="));
    let names = of_links.map(|line| {
        let inner = line.split_once('{').unwrap().1.split_once('}').unwrap().0;
        let pairs = inner.split(',').map(|pair| pair.split_once('=').unwrap().0);
        pairs.collect()
    });
    names.collect()
}

#[test]
fn a_limit_set_by_the_api_is_in_the_kernel_and_survives_crashes() {
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return;
    }
    let bed = Bed {
        namespace: NetNs::create().unwrap(),
        folder: tempfile::tempdir().unwrap(),
    };
    bed.sh(
        "ip link set lo up; ip link add name ens33 type veth peer name far; \
         ip addr add 192.168.17.128/24 dev ens33; ip link set ens33 up; ip link set far up; \
         sysctl -qw net.ipv6.conf.far.disable_ipv6=1; ip addr add fe80::1/64 dev ens33 nodad",
    );
    let file = bed.folder.path().join("link_info.json");
    fs::write(&file, EXAMPLE).unwrap();
    let server = bed.serve(&["--links", file.to_str().unwrap()]);
    let token = bed.folder.path().join("state/admin-token");
    for file in [&token, &bed.folder.path().join("state/state.redb")] {
        let mode = fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let token = fs::read_to_string(token).unwrap().trim().to_owned();

    // The rates of the file are the maxima.
    let link = bed.set(&server, &token, &json!({ "limit": { "egress": 300_000 } }));
    assert_eq!(link["in_force"], true, "{link}");
    assert_eq!(link["maximum"]["egress"], 500_000);
    assert!(bed.classes().contains("rate 300Kbit"), "{}", bed.classes());
    bed.sh("ping -c 1 -W 1 192.168.17.129 || true");
    let metrics = bed.ask(&server, &token, "GET /metrics", "");
    // `limit show` has the same metrics, with the same labels.
    let value = "link=\"192.168.17.129\",direction=\"egress\",number=\"2\"} 300000";
    let limit = "hawser_limit_rate_bits_per_second{attachment_point=\"0-0\",device=\"\",";
    assert!(metrics.contains(&format!("{limit}{value}")), "{metrics}");
    let program = env!("CARGO_BIN_EXE_hawser");
    let shown = bed.sh(&format!("{program} limit show --prometheus"));
    assert_eq!(labels(&shown), labels(&metrics));
    let families = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().filter(|line| line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    assert!(
        families(&shown).is_subset(&families(&metrics)),
        "{shown}{metrics}"
    );

    // Killed, and its limits removed: what is stored gets into force again.
    drop(server);
    bed.sh(&format!("{} limit reset", env!("CARGO_BIN_EXE_hawser")));
    assert!(!bed.classes().contains("300Kbit"));
    let mut server = bed.serve(&["--default", "7mbit"]);
    let link = bed.set(&server, &token, &json!({ "limit": { "ingress": 200_000 } }));
    assert_eq!(
        (&link["in_force"], &link["error"]),
        (&json!(true), &Value::Null)
    );
    let classes = bed.classes();
    assert!(classes.contains("rate 300Kbit"), "{classes}");
    assert!(classes.contains("rate 7Mbit"), "{classes}");

    // A link whose device vanishes is reported, and served on.
    bed.sh("ip link del ens33");
    let link = bed.set(&server, &token, &json!({ "limit": { "ingress": 100_000 } }));
    assert_eq!(link["in_force"], false, "{link}");
    let error = link["error"].as_str().unwrap();
    assert!(error.contains("no device leads to"), "{error}");

    // Told to end, it ends well.
    let pid = rustix::process::Pid::from_raw(server.process.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(server.process.wait().unwrap().success());
}
