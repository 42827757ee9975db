//! `hawser as join` as process 1 of a container.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::coordinator::bed::Process;
use crate::machine::{Machine, can_run, export, write_archive};
use crate::support::eventually;

/// The children of a process, with their names.
fn children(pid: u32) -> Vec<(u32, String)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let listed = threads.filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    let mut all = Vec::new();
    for pid in listed.flat_map(|list| list.split(' ').map(str::to_owned).collect::<Vec<_>>()) {
        if let Ok(name) = fs::read_to_string(format!("/proc/{pid}/comm")) {
            all.push((pid.parse().unwrap(), name.trim().to_owned()));
        }
    }
    all
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

#[test]
fn process_1_reaps_orphans_restarts_services_and_ends_in_order() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fig4 = hawser_topology::Network::ready("fig4").unwrap().to_topo();
    export(&folder, "kubernetes", &fig4);
    let archive = folder.path().join("as.tar.gz");
    let manifest = folder.path().join("out/ases/as1-ff00-0-110.yaml");
    write_archive(&manifest, &archive);
    let machine = Machine::new();
    machine.ip("link add eth0 type veth peer name far");
    machine.ip("address add 10.9.0.1/24 dev eth0");
    machine.ip("link set eth0 up");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    command
        .arg(env!("CARGO_BIN_EXE_hawser"))
        .args(["as", "join"]);
    let state = folder.path().join("as");
    command.arg(&archive).arg("--state").arg(&state);
    command.args(["--listen", "127.0.0.1:8042", "--json"]);
    command.stderr(Stdio::inherit());
    let process = machine.namespace.run(|| Process::start(command)).unwrap();
    process.wait_for("the AS is ready", |event| event["event"] == "ready");
    let [(init, _)] = children(process.id())[..] else {
        panic!("unshare has one child");
    };
    let [(node, _)] = children(init)[..] else {
        panic!("process 1 has one child");
    };

    // What is started in a container by others becomes the child of its process 1.
    let mut orphan = Command::new("nsenter");
    orphan.args(["--target", &init.to_string(), "--pid", "sh", "-c"]);
    orphan.arg("sleep 1000 >/dev/null 2>&1 &");
    assert!(orphan.status().unwrap().success());
    let sleeps = || children(init).into_iter().find(|(_, name)| name == "sleep");
    eventually("process 1 has the orphan", || sleeps().is_some());
    let (orphan, _) = sleeps().unwrap();
    signal(orphan, Signal::KILL);
    let gone = || !Path::new(&format!("/proc/{orphan}")).exists();
    eventually("the orphan was reaped", gone);

    // It reaps nothing that belongs to the node, which starts its services again.
    let (service, _) = children(node)[0];
    signal(service, Signal::KILL);
    process.wait_for("the service ended", |event| event["event"] == "ended");
    eventually("two services run", || children(node).len() == 2);
    // No other AS is there, and that is said.
    let (status, report) = machine.get("/ready").unwrap();
    let reasons = report["reasons"].as_array().unwrap();
    assert!(status == 503 && !reasons.is_empty(), "{report}");
    assert_eq!(machine.get("/live").unwrap().0, 200);
    // A command in the container reads the same from the socket in the folder.
    let ask = |more: &[&str]| {
        let mut health = Command::new(env!("CARGO_BIN_EXE_hawser"));
        health.args(["as", "health", "--state"]).arg(&state);
        health.args(more).output().unwrap()
    };
    let alive = ask(&[]);
    assert!(alive.status.success(), "{alive:?}");
    assert_eq!(alive.stdout, b"alive\n");
    let ready = ask(&["--ready", "--json"]);
    assert_eq!(ready.status.code(), Some(1), "{ready:?}");
    let said: serde_json::Value = serde_json::from_slice(&ready.stdout).unwrap();
    assert_eq!(said["ready"], false, "{said}");

    signal(init, Signal::TERM);
    let status = process.wait();
    assert_eq!((status.code(), status.signal()), (Some(0), None));
    assert!(!Path::new(&format!("/proc/{service}")).exists());
}
