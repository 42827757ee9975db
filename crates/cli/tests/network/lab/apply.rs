//! Labs that are changed while they run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::support::{As, TestLab, eventually, pause_until, topology};

const CORE: &str = "1-ff00:0:110";
const OTHER_CORE: &str = "1-ff00:0:111";
const LEAF: &str = "1-ff00:0:112";

const BEFORE: &str = r#"
ASes:
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {core: true}
  "1-ff00:0:112": {}
  "1-ff00:0:113": {}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:112#1", linkAtoB: CHILD}
  - {a: "1-ff00:0:111#2", b: "1-ff00:0:113#1", linkAtoB: CHILD, delay: 5ms}
  - {a: "1-ff00:0:111#3", b: "1-ff00:0:113#2", linkAtoB: CHILD}
"#;

/// An AS gone, a leaf, a core AS and an ISD added; a link with another end, others with another delay
/// and MTU; a second border router.
const AFTER: &str = r#"
ASes:
  "2-ff00:0:210": {core: true, underlay: UDP/IPv6}
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {core: true}
  "1-ff00:0:112": {}
  "1-ff00:0:114": {}
  "1-ff00:0:115": {core: true}
links:
  - {a: "1-ff00:0:111#1", b: "1-ff00:0:110#1", linkAtoB: CORE}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:112#1", linkAtoB: CHILD}
  - {a: "1-ff00:0:111#2", b: "1-ff00:0:114#1", linkAtoB: CHILD, delay: 1ms}
  - {a: "1-ff00:0:115-A#1", b: "1-ff00:0:114#2", linkAtoB: CHILD, mtu: 1400}
  - {a: "1-ff00:0:115-B#2", b: "1-ff00:0:111#4", linkAtoB: CORE, rate: 100mbit}
  - {a: "2-ff00:0:210#1", b: "1-ff00:0:111#5", linkAtoB: CORE, underlay: UDP/IPv6}
"#;

pub fn up(what: &str, text: &str) -> Option<TestLab> {
    let folder = tempfile::tempdir().unwrap();
    let file = topology(folder.path(), text);
    As::default().up(&file, what)
}

fn apply_command(lab: &TestLab, file: &str, flags: &[&str]) -> Command {
    let mut args = vec!["lab", "apply", file, "--name", &lab.name];
    args.extend(flags);
    lab.by.command(&args)
}

/// Changes a lab; the command must succeed.
pub fn apply(lab: &TestLab, text: &str, flags: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = topology(folder.path(), text);
    let output = apply_command(lab, &file, flags).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The services of each AS by name, each with its process.
fn processes(lab: &TestLab) -> BTreeMap<String, Value> {
    let status = lab.status();
    let ases = status["ases"].as_array().unwrap();
    let mut all = BTreeMap::new();
    for as_ in ases {
        let isd_as = as_["isd_as"].as_str().unwrap();
        for router in as_["routers"].as_array().unwrap() {
            let name = format!("{isd_as} {}", router["name"].as_str().unwrap());
            all.insert(name, router["pid"].clone());
        }
        all.insert(format!("{isd_as} control"), as_["control"]["pid"].clone());
    }
    all
}

/// The host of each AS.
fn hosts(lab: &TestLab) -> BTreeMap<String, String> {
    let status = lab.status();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let ases = status["ases"].as_array().unwrap().iter();
    ases.map(|a| (text(&a["isd_as"]), text(&a["host"])))
        .collect()
}

/// The paths between all pairs of ASes.
pub fn all_paths(lab: &TestLab) -> BTreeMap<(String, String), Vec<String>> {
    let hosts = hosts(lab);
    let mut all = BTreeMap::new();
    for from in hosts.keys() {
        for to in hosts.keys().filter(|to| *to != from) {
            let mut paths = lab.paths(from, to);
            paths.sort();
            all.insert((from.clone(), to.clone()), paths);
        }
    }
    all
}

/// Echo requests without an end, over a link that stays, or by plain IP.
pub fn start_pings(lab: &TestLab, from: &str, host: &str) -> Child {
    let program = lab.program().to_owned();
    let args = [
        "ping",
        host,
        "--interval",
        "20ms",
        "--timeout",
        "60s",
        "--json",
    ];
    let command: Vec<&str> = [program.as_str()].into_iter().chain(args).collect();
    let mut command = lab.exec(from, &command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// How many requests were answered, and those before the last answered one that were not.
pub fn end_pings(child: Child) -> (usize, Vec<u64>) {
    let script = format!("kill -INT {}", child.id());
    let killed = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let replies = report["replies"].as_array().unwrap();
    let answered = replies
        .iter()
        .map(|reply| reply["scmp_seq"].as_u64().unwrap());
    let answered: BTreeSet<u64> = answered.collect();
    let last = answered.last().copied().unwrap_or_default();
    let lost = (0..last).filter(|one| !answered.contains(one)).collect();
    (answered.len(), lost)
}

#[test]
fn a_lab_is_changed_while_traffic_crosses_it() {
    let Some(lab) = up("apply", BEFORE) else {
        return;
    };
    let before = (processes(&lab), hosts(&lab));
    let dry = apply(&lab, AFTER, &["--dry-run"]);
    assert!(dry.contains("remove AS 1-ff00:0:113\n"), "{dry}");
    assert!(dry.contains("add AS 2-ff00:0:210\n"), "{dry}");
    assert!(!dry.contains("link 1-ff00:0:110#"), "{dry}");
    assert!(dry.contains("none of them done"), "{dry}");
    assert_eq!((processes(&lab), hosts(&lab)), before);

    let pings = start_pings(&lab, LEAF, "1-ff00:0:111,10.0.2.1");
    let mut program = lab.exec(LEAF, &["sleep", "100000"]).spawn().unwrap();
    let json = apply(&lab, AFTER, &["--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["steps"].as_array().unwrap().len() + 1,
        dry.lines().count()
    );
    assert_eq!(json["dead_links"], Value::Array(Vec::new()));
    let (answered, lost) = end_pings(pings);
    assert!(
        answered > 10 && lost.is_empty(),
        "{answered} answered, lost {lost:?}"
    );

    // Programs and services of ASes that stay are the same, and so are their addresses.
    let after = (processes(&lab), hosts(&lab));
    for (service, pid) in &before.0 {
        if !service.starts_with("1-ff00:0:113") {
            assert_eq!(after.0.get(service), Some(pid), "{service} was restarted");
        }
    }
    for (isd_as, host) in &before.1 {
        if isd_as != "1-ff00:0:113" {
            assert_eq!(after.1.get(isd_as), Some(host));
        }
    }
    assert_eq!(after.1.len(), 6);
    assert!(
        program.try_wait().unwrap().is_none(),
        "a program inside has ended"
    );
    program.kill().unwrap();
    program.wait().unwrap();

    let Some(fresh) = up("apply-fresh", AFTER) else {
        return;
    };
    assert_eq!(all_paths(&lab), all_paths(&fresh));
    for (from, to) in [
        (LEAF, "1-ff00:0:114"),
        ("1-ff00:0:115", "2-ff00:0:210"),
        ("2-ff00:0:210", LEAF),
    ] {
        lab.assert_answers(from, &format!("{to},{}", after.1[to]));
    }
    // Plain IP has new routes, too.
    let ping = ["ping", "-c", "1", "-W", "10", "10.0.3.1"];
    if Command::new("ping").arg("-V").output().is_ok() {
        eventually("plain IP reaches an AS that stays", || {
            lab.exec("1-ff00:0:114", &ping)
                .output()
                .unwrap()
                .status
                .success()
        });
    }
    let nothing = apply(&lab, AFTER, &[]);
    assert!(nothing.contains("no changes needed"), "{nothing}");
    fresh.down();

    // And back: the paths are those of the first lab.
    apply(&lab, BEFORE, &[]);
    assert_eq!(hosts(&lab).len(), 4);
    assert_eq!(lab.paths(LEAF, "1-ff00:0:113").len(), 2);
    lab.assert_answers(
        LEAF,
        &format!("1-ff00:0:113,{}", hosts(&lab)["1-ff00:0:113"]),
    );
    lab.down();
}

#[test]
fn a_change_that_failed_or_was_killed_is_completed_by_the_next() {
    let Some(lab) = up("apply-again", BEFORE) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = topology(folder.path(), AFTER);
    // A router that does not answer makes one step fail.
    let router = processes(&lab)[&format!("{OTHER_CORE} br1-ff00_0_111-1")]
        .as_i64()
        .unwrap();
    let output: Output = pause_until(router, || apply_command(&lab, &file, &[]).output().unwrap());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    let words = ["1-ff00:0:111", "steps are done", "`hawser lab apply`"];
    assert!(words.iter().all(|word| error.contains(word)), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    // The lab is one that can be looked at, and its other parts work.
    lab.status();
    lab.assert_answers(LEAF, "1-ff00:0:110,10.0.1.1");
    // The next one is killed half-way.
    let mut command = apply_command(&lab, &file, &[]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    lab.status();
    let done = apply(&lab, AFTER, &[]);
    assert!(
        done.contains("is changed") || done.contains("no changes needed"),
        "{done}"
    );
    assert_eq!(hosts(&lab).len(), 6);
    for (from, to) in [(LEAF, "1-ff00:0:114"), ("1-ff00:0:114", CORE)] {
        lab.assert_answers(from, &format!("{to},{}", hosts(&lab)[to]));
    }

    // What is left of one that was killed is removed with the lab.
    let file = topology(folder.path(), BEFORE);
    let mut command = apply_command(&lab, &file, &[]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let (dir, services) = (lab.status()["dir"].clone(), lab.services());
    lab.down();
    lab.assert_gone(dir.as_str().unwrap().as_ref(), &services);
}

#[test]
fn parts_are_added_and_removed() {
    let Some(lab) = up("edit", BEFORE) else {
        return;
    };
    let edit = |args: &[&str]| {
        let mut command = vec!["lab"];
        command.extend(args);
        command.extend(["--name", &lab.name]);
        lab.by.print(&command)
    };
    let refuse = |args: &[&str]| {
        let mut command = vec!["lab"];
        command.extend(args);
        command.extend(["--name", &lab.name]);
        lab.by.refuse(&command)
    };
    edit(&["add", "as", "1-ff00:0:116", "--note", "late"]);
    let out = edit(&["add", "link", OTHER_CORE, "1-ff00:0:116", "--delay", "1ms"]);
    assert!(
        out.contains("add link 1-ff00:0:111#4 - 1-ff00:0:116#1\n"),
        "{out}"
    );
    let host = format!("1-ff00:0:116,{}", hosts(&lab)["1-ff00:0:116"]);
    lab.assert_answers(LEAF, &host);
    let mtu_of = || lab.status()["links"][1]["mtu"].clone();
    lab.set("1-ff00:0:110#2", &["--mtu", "1300", "--rate", "50mbit"]);
    assert_eq!(mtu_of(), 1300);
    lab.assert_answers(LEAF, &host);
    edit(&["add", "router", CORE, "B", "2"]);
    let names = |lab: &TestLab| {
        processes(lab)
            .keys()
            .filter(|k| k.starts_with(CORE))
            .count()
    };
    assert_eq!(names(&lab), 3);
    lab.assert_answers(LEAF, &host);
    edit(&["remove", "router", CORE, "B"]);
    assert_eq!(names(&lab), 2);
    lab.assert_answers(LEAF, &host);
    edit(&["remove", "link", "1-ff00:0:116#1"]);
    eventually("an AS without links is not reached", || {
        !lab.answers(LEAF, &host)
    });
    edit(&["remove", "as", "1-ff00:0:116"]);
    let error = refuse(&["remove", "as", "1-ff00:0:116"]);
    assert!(error.contains("there is no AS 1-ff00:0:116"), "{error}");
    let error = refuse(&["add", "link", "1-ff00:0:110#1", LEAF]);
    assert!(
        error.contains("1-ff00:0:110#1 is used by two links"),
        "{error}"
    );
    // The last core AS but one goes, and what remains works on.
    edit(&["remove", "as", OTHER_CORE]);
    lab.assert_answers(LEAF, "1-ff00:0:110,10.0.1.1");
    let error = refuse(&["remove", "as", CORE]);
    assert!(error.contains("ISD 1 has no core AS"), "{error}");
}
