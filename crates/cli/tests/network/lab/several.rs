//! Labs with the features of scionproto's topologies: several routers in an AS, IPv6, peering, and
//! services that the user runs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Output, Stdio};

use serde_json::Value;

use crate::support::{As, TestLab, eventually, kill, topology};

const CORE: &str = "1-ff00:0:110";
const SPREAD: &str = "1-ff00:0:111";

/// Two ISDs; ASes and links of both underlays, an AS with three routers, link ends without numbers,
/// small and large MTUs.
const MIXED: &str = r#"
ASes:
  "1-ff00:0:110": {core: true, voting: true, authoritative: true, issuing: true, underlay: UDP/IPv6}
  "1-ff00:0:111": {cert_issuer: 1-ff00:0:110, underlay: UDP/IPv6}
  "1-ff00:0:112": {cert_issuer: 1-ff00:0:110, mtu: 1350}
  "2-ff00:0:210": {core: true}
  "2-ff00:0:211": {underlay: UDP/IPv6, dispatched_ports: all}
links:
  - {a: "1-ff00:0:110-A", b: "2-ff00:0:210-A", linkAtoB: CORE, underlay: UDP/IPv6}
  - {a: "1-ff00:0:110-B", b: "2-ff00:0:210-B", linkAtoB: CORE, mtu: 1280}
  - {a: "1-ff00:0:110-A", b: "1-ff00:0:111-A", linkAtoB: CHILD, bw: 500}
  - {a: "1-ff00:0:110-B", b: "1-ff00:0:111-B", linkAtoB: CHILD, underlay: UDP/IPv6}
  - {a: "1-ff00:0:111-C#7", b: "1-ff00:0:112#1", linkAtoB: CHILD}
  - {a: "2-ff00:0:210-B#9", b: "2-ff00:0:211#1", linkAtoB: CHILD}
  - {a: "1-ff00:0:111-A#8", b: "2-ff00:0:211#2", linkAtoB: PEER, underlay: UDP/IPv6}
"#;

fn up(what: &str, flags: &[&str]) -> Option<TestLab> {
    let folder = tempfile::tempdir().unwrap();
    let file = topology(folder.path(), MIXED);
    As::default().up_with(&file, what, flags)
}

/// The ASes, with the SCION address of each host.
fn hosts(status: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let ases = status["ases"].as_array().unwrap().iter();
    ases.map(|a| {
        let isd_as = text(&a["isd_as"]);
        let host = format!("{isd_as},{}", text(&a["host"]));
        (isd_as, host)
    })
    .collect()
}

#[test]
fn every_pair_of_a_mixed_network_answers() {
    let Some(lab) = up("mixed", &[]) else {
        return;
    };
    let status = lab.status();
    let hosts = hosts(&status);
    assert_eq!(hosts[0].1, format!("{CORE},fd00:0:0:1::1"));
    assert_eq!(hosts[2].1, "1-ff00:0:112,10.0.3.1");
    for (from, _) in &hosts {
        for (to, host) in &hosts {
            if from != to {
                lab.assert_answers(from, host);
            }
        }
    }
    let names: Vec<_> = status["ases"][1]["routers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|router| router["name"].as_str().unwrap())
        .collect();
    let expected = [1, 2, 3].map(|n| format!("br1-ff00_0_111-{n}"));
    assert_eq!(names, expected);
    // The router of each interface counts its packets.
    for link in lab.status()["links"].as_array().unwrap() {
        for end in [&link["a"], &link["b"]] {
            assert!(end["counters"]["rx_packets"].is_u64(), "{end}");
        }
    }
    lab.down();
}

/// A lab in which a link beyond the first one of a path has a smaller MTU than the one that the control plane
/// announces, so that hosts send packets that are larger. `flags` are those of `lab up`.
fn narrower_than_announced(what: &str, flags: &[&str]) -> Option<TestLab> {
    let folder = tempfile::tempdir().unwrap();
    let narrow = r#"
ASes:
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {cert_issuer: 1-ff00:0:110}
  "1-ff00:0:112": {cert_issuer: 1-ff00:0:110}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CHILD}
  - {a: "1-ff00:0:111#2", b: "1-ff00:0:112#1", linkAtoB: CHILD, mtu: 1280}
"#;
    let lab = As::default().up_with(&topology(folder.path(), narrow), what, flags)?;
    // The control services read the network at their first request.
    let file = Path::new(lab.status()["dir"].as_str().unwrap()).join("network.json");
    let network = std::fs::read_to_string(&file).unwrap();
    assert_eq!(network.matches("1280").count(), 1, "{network}");
    std::fs::write(&file, network.replace("1280", "1472")).unwrap();
    Some(lab)
}

/// Sends one echo request of 1472 bytes over that link.
fn ping_above_the_mtu(lab: &TestLab) -> Output {
    let ping = [
        "ping",
        "1-ff00:0:112,10.0.3.1",
        "-c",
        "1",
        "--packet-size",
        "1472",
    ];
    let exec = [
        "lab",
        "exec",
        "--name",
        &lab.name,
        CORE,
        "--",
        env!("CARGO_BIN_EXE_hawser"),
    ];
    lab.by.run(&[&exec[..], &ping].concat())
}

#[test]
fn packets_above_the_mtu_of_a_link_cross_it_in_fragments() {
    let Some(lab) = narrower_than_announced("narrow", &[]) else {
        return;
    };
    let output = ping_above_the_mtu(&lab);
    assert!(output.status.success(), "{output:?}");
    let table = lab.by.print(&["lab", "status", "--name", &lab.name]);
    assert!(!table.contains("packet-too-big"), "{table}");
    lab.down();
}

#[test]
fn an_enforced_mtu_shows_in_answers_and_as_drops() {
    let Some(lab) = narrower_than_announced("strict", &["--enforce-mtu"]) else {
        return;
    };
    let output = ping_above_the_mtu(&lab);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let table = lab.by.print(&["lab", "status", "--name", &lab.name]);
    let line = "br1-ff00_0_111-1         1 packet-too-big\n";
    assert!(table.contains(line), "{table}");
    assert!(table.contains("refuse packets above the MTU"), "{table}");
    lab.down();
}

#[test]
fn a_link_of_one_of_several_routers_goes_down_and_up_again() {
    let Some(lab) = up("spread", &[]) else {
        return;
    };
    let leaf = "1-ff00:0:112,10.0.3.1";
    lab.assert_answers(CORE, leaf);
    // The only link there, at the third router.
    lab.set("1-ff00:0:111#7", &["--down"]);
    assert!(!lab.answers(CORE, leaf));
    lab.assert_answers(CORE, &format!("{SPREAD},fd00:0:0:2::1"));
    lab.set("1-ff00:0:112#1", &["--up"]);
    lab.assert_answers(CORE, leaf);
    // Over IPv6: the addresses that the kernel removed with the device exist again.
    let both = lab.paths(CORE, SPREAD).len();
    lab.set("1-ff00:0:111#1", &["--down"]);
    lab.set("1-ff00:0:111#2", &["--down"]);
    lab.set("1-ff00:0:111#2", &["--up"]);
    lab.assert_answers(CORE, leaf);
    lab.set("1-ff00:0:111#1", &["--up"]);
    lab.assert_paths(CORE, SPREAD, both);
    lab.down();
}

#[test]
fn the_death_of_one_router_does_not_affect_the_others() {
    let Some(lab) = up("onedead", &[]) else {
        return;
    };
    let routers = lab.status()["ases"][1]["routers"].clone();
    kill(&[routers[2]["pid"].as_i64().unwrap()]);
    let mut after = Value::Null;
    // It may have been started again when that is seen.
    eventually("its death is noticed", || {
        after = lab.status()["ases"][1].clone();
        let third = &after["routers"][2];
        third["alive"] == false || third["pid"] != routers[2]["pid"]
    });
    for at in [0, 1] {
        assert_eq!(after["routers"][at]["alive"], true, "{after}");
        assert_eq!(after["routers"][at]["pid"], routers[at]["pid"], "{after}");
    }
    assert_eq!(after["control"]["alive"], true);
    lab.assert_answers(CORE, &format!("{SPREAD},fd00:0:0:2::1"));
    lab.down();
}

/// A service that the test runs itself.
struct Own(Child);

impl Drop for Own {
    fn drop(&mut self) {
        // It may have ended with the lab.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(lab: &TestLab, isd_as: &str, args: &[&str]) -> Own {
    let mut command = vec![env!("CARGO_BIN_EXE_hawser")];
    command.extend(args);
    let mut command = lab.exec(isd_as, &command);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Own(command.spawn().unwrap())
}

/// Retries until the condition holds; only the test's time limit ends the loop otherwise.
fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn services_may_be_left_to_the_user() {
    let flags = ["--no-router", SPREAD, "--no-control", SPREAD];
    let Some(lab) = up("left", &flags) else {
        return;
    };
    // Not an error of the lab: `status` succeeds.
    let status = lab.status();
    let left = &status["ases"][1];
    for process in [&left["routers"][0], &left["routers"][2], &left["control"]] {
        assert_eq!(
            (&process["ours"], &process["alive"]),
            (&false.into(), &false.into())
        );
    }
    assert_eq!(status["ases"][0]["control"]["ours"], true);
    let table = lab.by.print(&["lab", "status", "--name", &lab.name]);
    assert_eq!(table.matches("not ours").count(), 4, "{table}");
    let host = format!("{SPREAD},fd00:0:0:2::1");
    assert!(!lab.answers(CORE, &host));
    // A change skips services that do not run.
    lab.set("1-ff00:0:111#7", &["--down"]);
    lab.set("1-ff00:0:111#7", &["--up"]);

    let dir = format!("{}/1-ff00_0_111", status["dir"].as_str().unwrap());
    let router = |n| format!("br1-ff00_0_111-{n}");
    let _routers =
        [1, 2, 3].map(|n| run(&lab, SPREAD, &["router", "run", &dir, "--id", &router(n)]));
    let _control = run(&lab, SPREAD, &["control", "run", &dir]);
    until(|| lab.answers(CORE, &host));
    until(|| lab.answers(SPREAD, &format!("{CORE},fd00:0:0:1::1")));
    lab.down();
}

#[test]
fn a_router_starts_while_one_of_its_links_is_down() {
    let flags = ["--no-router", SPREAD];
    let Some(lab) = As::default().up_with("fig4", "startdown", &flags) else {
        return;
    };
    lab.set("1-ff00:0:110#1", &["--down"]);
    let dir = lab.status()["dir"].as_str().unwrap().to_owned();
    let _router = run(
        &lab,
        SPREAD,
        &["router", "run", &format!("{dir}/1-ff00_0_111")],
    );
    until(|| lab.answers(CORE, &format!("{SPREAD},10.0.2.1")));
    let bfd_up = |lab: &TestLab| lab.status()["links"][0]["a"]["bfd_up"].clone();
    assert_ne!(bfd_up(&lab), true);
    lab.set("1-ff00:0:110#1", &["--up"]);
    until(|| bfd_up(&lab) == true);
    lab.down();
}

#[test]
fn invalid_flags_are_refused() {
    let by = As::default();
    let name = format!("test-flags-{}", std::process::id());
    let up = |flag: &str, value: &str| by.run(&["lab", "up", "fig4", "--name", &name, flag, value]);
    let nobody = up("--no-router", "1-ff00:0:999");
    let error = String::from_utf8(nobody.stderr).unwrap();
    assert_eq!(nobody.status.code(), Some(1), "{error}");
    assert!(error.contains("1-ff00:0:999"), "{error}");
    for wrong in ["1s", "25h", "soon"] {
        let lifetime = up("--segment-lifetime", wrong);
        let error = String::from_utf8(lifetime.stderr).unwrap();
        assert_eq!(lifetime.status.code(), Some(2), "{error}");
        assert!(error.contains(wrong), "{error}");
    }
    assert!(!by.names().contains(&name));
}

#[test]
fn hosts_answer_echoes_without_a_control_service() {
    let up = |what: &str, flags: &[&str]| As::default().up_with("fig4", what, flags);
    let Some(lab) = up("echo", &["--no-control", "1-ff00:0:111"]) else {
        return;
    };
    lab.assert_answers("1-ff00:0:110", "1-ff00:0:111,10.0.2.1");
    let flags = ["--no-control", "1-ff00:0:111", "--no-echo"];
    let silent = up("no-echo", &flags).unwrap();
    // The port is free for a dispatcher.
    let bind = ["internal", "plain-receive", "udp", "10.0.2.1:30041"];
    let command = [&[silent.program()], &bind[..]].concat();
    let mut dispatcher = silent.exec("1-ff00:0:111", &command);
    let mut dispatcher = dispatcher.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let out = dispatcher.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    assert!(line.contains(":30041"), "{line}");
    dispatcher.kill().unwrap();
    dispatcher.wait().unwrap();
}
