//! Services that end and are started again.

use std::process::Stdio;

use serde_json::Value;

use super::{A, B, B_HOST, folder};
use crate::support::{As, TestLab, eventually, kill, runs};

/// The router and the control service of an AS.
fn services(lab: &TestLab, at: usize) -> [Value; 2] {
    let mut status = lab.status();
    let as_ = &mut status["ases"][at];
    [as_["routers"][0].take(), as_["control"].take()]
}

/// The number of a service's process; 0 while it has none.
fn pid(service: &Value) -> i64 {
    service["pid"].as_i64().unwrap_or(0)
}

#[test]
fn dead_services_are_started_again() {
    let Some(lab) = As::default().up("fig4", "again") else {
        return;
    };
    let before = services(&lab, 0).map(|service| pid(&service));
    kill(&before);
    // Their deaths may be noticed a moment later.
    eventually("other services", || {
        let is_new = |s: &Value| s["alive"] == true && !before.contains(&pid(s));
        services(&lab, 0).iter().all(is_new)
    });
    for service in services(&lab, 0) {
        assert_eq!(service["restarts"], 1);
        let ended = service["ended"].as_str().unwrap();
        assert!(ended.contains("SIGKILL"), "{service}");
    }
    eventually("an echo", || lab.answers(A, B_HOST));
    lab.assert_paths(A, B, 2);
    let table = lab.by.print(&["lab", "status", "--name", &lab.name]);
    assert!(table.contains("restarts: 1"), "{table}");
    lab.down();
}

#[test]
fn a_service_that_cannot_start_is_retried_and_does_not_block_down() {
    let Some(lab) = As::default().up("fig4", "dead") else {
        return;
    };
    let (dir, mut processes) = (folder(&lab), lab.services());
    processes.push(lab.supervisor());
    let file = dir.join("1-ff00_0_110/topology.json");
    let topology = std::fs::read(&file).unwrap();
    std::fs::write(&file, "{").unwrap();
    kill(&processes[..1]);
    let router = || services(&lab, 0)[0].clone();
    eventually("another try", || {
        let ended = router()["ended"].as_str().unwrap_or_default().to_owned();
        ended.contains("exit status") && router()["restart_in"].is_number()
    });
    assert_eq!(services(&lab, 0)[1]["alive"], true);
    let name = &lab.name;
    let change = [
        "lab",
        "link",
        "set",
        "1-ff00:0:110#1",
        "--down",
        "--name",
        name,
    ];
    let partly = lab.by.refuse(&change);
    assert!(partly.contains("1-ff00_0_110"), "{partly}");

    std::fs::write(&file, topology).unwrap();
    eventually("the router", || router()["alive"] == true);
    processes.extend(lab.services());
    lab.down();
    lab.assert_gone(&dir, &processes);
}

#[test]
fn restart_ends_services_and_starts_them_again() {
    let Some(lab) = As::default().up("fig4", "restart") else {
        return;
    };
    let restart = |args: &[&str]| {
        let mut all = vec!["lab", "restart", "--name", &lab.name];
        all.extend(args);
        all.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |args: &[&str]| {
        let args = restart(args);
        lab.by
            .print(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let pids = || services(&lab, 0).map(|service| pid(&service));
    let first = pids();
    let said = run(&[A, "router"]);
    assert!(said.contains("router of 1-ff00:0:110"), "{said}");
    let second = pids();
    assert!(second[0] != first[0] && second[1] == first[1]);
    run(&[A, "control"]);
    let third = pids();
    assert!(third[0] == second[0] && third[1] != second[1]);
    run(&[A, "router", "br1-ff00_0_110-1"]);
    run(&[A]);
    let last = pids();
    assert!(last[0] != third[0] && last[1] != third[1]);
    // `status` does not count requested restarts.
    assert_eq!(services(&lab, 0)[0]["restarts"], 0);
    eventually("an echo", || lab.answers(A, B_HOST));

    let refuse = |args: &[&str]| {
        let args = restart(args);
        lab.by
            .refuse(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let nobody = refuse(&["1-ff00:0:999"]);
    assert!(nobody.contains(A) && nobody.contains(B), "{nobody}");
    let none = refuse(&[A, "router", "br9"]);
    assert!(none.contains("br1-ff00_0_110-1"), "{none}");
    lab.down();
}

#[test]
fn a_router_started_by_hand_is_shown() {
    let Some(lab) = As::default().up_with("fig4", "hand", &["--no-router", A]) else {
        return;
    };
    let router = || services(&lab, 0)[0].clone();
    assert_eq!(
        (&router()["ours"], &router()["alive"]),
        (&false.into(), &false.into())
    );
    let dir = folder(&lab).join("1-ff00_0_110");
    let program = env!("CARGO_BIN_EXE_hawser");
    let run = [program, "router", "run", dir.to_str().unwrap()];
    let mut child = lab.exec(A, &run).stderr(Stdio::null()).spawn().unwrap();
    eventually("the router", || router()["alive"] == true);
    assert_eq!(router()["ours"], false);
    assert_eq!(pid(&router()), i64::from(child.id()));
    let table = lab.by.print(&["lab", "status", "--name", &lab.name]);
    assert!(table.contains("by hand"), "{table}");
    let refused = lab
        .by
        .refuse(&["lab", "restart", A, "router", "--name", &lab.name]);
    assert!(refused.contains("--no-router"), "{refused}");

    // The router keeps working when a service of the lab is killed.
    kill(&[pid(&services(&lab, 1)[1])]);
    eventually("an echo", || lab.answers(A, B_HOST));
    let pid = i64::from(child.id());
    lab.down();
    child.wait().unwrap();
    assert!(!runs(pid));
}
