//! Exported networks run, each AS in a network namespace in place of a container: what containerlab and
//! Kubernetes would do with the files is done by hand.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::content::print;
use crate::machine::{Machine, can_run, export, read, write_archive};
use crate::support::eventually;

const A: &str = "1-ff00:0:110";
const B: &str = "1-ff00:0:111";
const C: &str = "1-ff00:0:112";

/// Links with everything that links can have.
const NETWORK: &str = r#"
ASes:
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {}
  "1-ff00:0:112": {note: "a leaf"}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CHILD, rate: 20mbit, delay: 5ms, queue: 7ms}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:112-x#1", linkAtoB: CHILD, underlay: UDP/IPv6, loss: 0.1%}
  - {a: "1-ff00:0:111#2", b: "1-ff00:0:112-y#2", linkAtoB: PEER, mtu: 1400}
"#;

#[test]
fn a_network_for_containerlab_runs() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    export(&folder, "containerlab", NETWORK);
    let out = folder.path().join("out");
    let file = read(&out.join("hawser.clab.yml")).remove(0);
    let nodes = file["topology"]["nodes"].as_object().unwrap();
    let names: Vec<&String> = nodes.keys().collect();
    let at = |name: &Value| names.iter().position(|n| name == *n).unwrap();
    let mut machines: Vec<Machine> = names.iter().map(|_| Machine::new()).collect();
    // Nodes run before they have their links, as containerlab has it.
    for (node, machine) in nodes.values().zip(&mut machines) {
        let state = tempfile::tempdir_in(folder.path()).unwrap().keep();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        for word in node["cmd"].as_str().unwrap().split_whitespace() {
            let mut word = word.replace("/var/lib/hawser", state.to_str().unwrap());
            for bind in node["binds"].as_array().unwrap() {
                let parts: Vec<&str> = bind.as_str().unwrap().split(':').collect();
                if word == parts[1] {
                    word = out.join(parts[0]).to_str().unwrap().to_owned();
                }
            }
            command.arg(word);
        }
        command.arg("--json");
        machine.start(command);
    }
    for link in file["topology"]["links"].as_array().unwrap() {
        assert_eq!(link["type"], "veth");
        let [a, b] = [0, 1].map(|end| &link["endpoints"][end]);
        let interface = |end: &Value| end["interface"].as_str().unwrap().to_owned();
        let (near, far) = (&machines[at(&a["node"])], &machines[at(&b["node"])]);
        let (here, there, pid) = (interface(a), interface(b), far.pid());
        near.ip(&format!(
            "link add {here} type veth peer name {there} netns {pid}"
        ));
        for (machine, device) in [(near, here), (far, there)] {
            machine.ip(&format!("link set {device} mtu {} up", link["mtu"]));
        }
    }
    for (node, machine) in nodes.values().zip(&machines) {
        for line in node["exec"].as_array().unwrap() {
            machine.ip(line.as_str().unwrap().strip_prefix("ip ").unwrap());
        }
    }
    for machine in &machines {
        machine.wait_ready();
    }
    let machine = |isd_as: &str| {
        let name = format!("as{}", isd_as.replace(':', "-"));
        &machines[at(&Value::from(name))]
    };
    for (from, to) in [(A, B), (B, C), (C, A)] {
        machine(from).assert_reaches(to);
    }
    // The core AS, and the peering link.
    let output = machine(B).hawser(&["paths", C, "--json"]);
    let listing: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listing["paths"].as_array().unwrap().len(), 2, "{listing}");
    for end in [A, B] {
        let limits = machine(end).hawser(&["limit", "show", "--json"]);
        let limits = String::from_utf8(limits.stdout).unwrap();
        // 7 ms of the rate, as the kernel has it.
        let has_both = limits.contains("20000000") && limits.contains("17500");
        assert!(has_both, "{end}: {limits}");
    }
}

#[test]
fn pods_find_their_neighbours_also_after_these_moved() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fig4 = hawser_topology::Network::ready("fig4").unwrap().to_topo();
    export(&folder, "kubernetes", &fig4);
    let out = folder.path().join("out");
    let names = ["as1-ff00-0-110", "as1-ff00-0-111"];
    // In place of the cluster's name server.
    let hosts = folder.path().join("hosts");
    let write_hosts = |addresses: [&str; 2]| {
        let lines: String = addresses
            .iter()
            .zip(names)
            .map(|(address, name)| format!("{address} {name}\n"))
            .collect();
        fs::write(&hosts, lines).unwrap();
    };
    // The second has no address yet.
    fs::write(&hosts, format!("10.9.0.1 {}\n", names[0])).unwrap();
    let mut machines = names.map(|name| {
        let archive = folder.path().join(format!("{name}.tar.gz"));
        write_archive(&out.join(format!("ases/{name}.yaml")), &archive);
        let mut machine = Machine::new();
        let mut command = Command::new("unshare");
        let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
        command.args(["-m", "--propagation", "private", "sh", "-c", script]);
        command.arg(&hosts).arg(env!("CARGO_BIN_EXE_hawser"));
        command.args(["as", "join"]).arg(&archive);
        command.arg("--segments").arg(out.join("segments"));
        command.arg("--state").arg(folder.path().join(name));
        command.args(["--listen", "127.0.0.1:8042", "--json"]);
        machine.start(command);
        machine
    });
    let [a, b] = &mut machines;
    a.ip(&format!(
        "link add eth0 type veth peer name eth0 netns {}",
        b.pid()
    ));
    for (machine, address) in [(&*a, "10.9.0.1"), (&*b, "10.9.0.2")] {
        machine.ip(&format!("address add {address}/24 dev eth0"));
        machine.ip("link set eth0 mtu 1450 up");
    }
    // Their links are down: the second is not known to the first.
    eventually("the first is alive", || {
        a.get("/live").is_some_and(|(status, _)| status == 200)
    });
    let (status, report) = a.get("/ready").unwrap();
    assert!(status == 503 && report["ready"] == false, "{report}");
    write_hosts(["10.9.0.1", "10.9.0.2"]);
    for machine in [&*a, &*b] {
        eventually("both are ready", || {
            machine
                .get("/ready")
                .is_some_and(|(status, _)| status == 200)
        });
    }
    a.assert_reaches(B);
    b.assert_reaches(A);
    let control = a.control();
    // Paths announce what fits the device, whatever the topology says.
    for (device, fits) in [(1400, 1372), (1450, 1422)] {
        for machine in [&*a, &*b] {
            machine.ip(&format!("link set eth0 mtu {device}"));
        }
        eventually("the paths take what the device takes", || {
            a.mtus(B) == [fits].into() && b.mtus(A) == [fits].into()
        });
        let ping = |size: u64| {
            let (host, size) = (format!("{B},127.0.0.1"), size.to_string());
            a.hawser(&["ping", &host, "-c", "1", "--packet-size", &size])
        };
        let largest = ping(fits);
        assert!(largest.status.success(), "{largest:?}");
        let larger = ping(fits + 1);
        let said = String::from_utf8_lossy(&larger.stderr);
        assert!(!larger.status.success(), "{larger:?}");
        assert!(said.contains(&format!("the path takes {fits}")), "{said}");
    }
    // The route to where the neighbour will be takes less.
    a.ip("route add 10.9.0.3/32 dev eth0 mtu 1350");
    // Another pod of the AS has another address.
    b.ip("address add 10.9.0.3/24 dev eth0");
    b.ip("address delete 10.9.0.2/24 dev eth0");
    b.ip("address replace 10.9.0.3/24 dev eth0");
    write_hosts(["10.9.0.1", "10.9.0.3"]);
    let moved = |event: &Value| {
        let address = event["address"].as_str().unwrap_or_default();
        event["event"] == "neighbour_at" && address.starts_with("10.9.0.3:")
    };
    a.joined
        .as_ref()
        .unwrap()
        .wait_for("the neighbour moved", moved);
    a.assert_reaches(B);
    eventually("the paths take what the new route takes", || {
        a.mtus(B) == [1322].into()
    });
    // Hosts of an AS had their daemon while its neighbour moved.
    assert_eq!(a.control(), control);
}

#[test]
fn an_archive_says_where_its_links_lead_before_addresses_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let network = r#"
ASes:
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {}
  "1-ff00:0:112": {}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CHILD, rate: 20mbit}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:112#1", linkAtoB: CHILD, rate: 8mbit}
"#;
    export(&folder, "kubernetes", network);
    let archive = folder.path().join("as.tar.gz");
    let manifest = folder.path().join("out/ases/as1-ff00-0-110.yaml");
    write_archive(&manifest, &archive);
    let mut join = Command::new(env!("CARGO_BIN_EXE_hawser"));
    join.args(["as", "join", "--unpack"]).arg(&archive);
    join.arg("--state").arg(folder.path().join("as"));
    let printed = print(join);
    for line in [
        "#1 to child 1-ff00:0:111: 0.0.0.0:50000 to as1-ff00-0-111:50000, out at most 20mbit",
        "#2 to child 1-ff00:0:112: 0.0.0.0:50001 to as1-ff00-0-112:50000, out at most 8mbit",
    ] {
        assert!(printed.contains(line), "{printed}");
    }
}
