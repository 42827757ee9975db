//! Labs whose commands, owners or supervisors are killed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use super::{A, B, B_HOST, folder};
use crate::support::{As, TestLab, eventually, kill, runs};

/// A process that owns a lab.
fn owner() -> Child {
    Command::new("sleep").arg("100000").spawn().unwrap()
}

/// A lab with an owner other than the test, and its processes.
fn owned(by: As, what: &str, owner: &Child) -> Option<(TestLab, Vec<i64>)> {
    let (name, pid) = (
        format!("test-{what}-{}", std::process::id()),
        owner.id().to_string(),
    );
    let output = by.run(&["lab", "up", "fig4", "--name", &name, "--pid", &pid]);
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("user namespaces are not allowed here") {
        eprintln!("skipped: {error}");
        return None;
    }
    assert!(output.status.success(), "{error}");
    let lab = TestLab::named(by, name);
    let mut processes = lab.services();
    processes.push(lab.supervisor());
    processes.push(lab.leave_behind(B));
    Some((lab, processes))
}

#[test]
fn a_lab_ends_with_its_owner() {
    let mut owner = owner();
    if let Some((lab, processes)) = owned(As::default(), "owned", &owner) {
        let folder = folder(&lab);
        owner.kill().unwrap();
        eventually("the end of the lab", || {
            !folder.exists() && !processes.iter().any(|&pid| runs(pid))
        });
        lab.assert_gone(&folder, &processes);
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
}

#[test]
fn the_next_change_removes_a_lab_whose_supervisor_was_killed() {
    let mut owner = owner();
    // Commands of other tests would remove the lab, too.
    let runtime = tempfile::tempdir().unwrap();
    let by = As {
        runtime: Some(runtime.path().to_owned()),
        ..As::default()
    };
    if let Some((lab, processes)) = owned(by, "orphan", &owner) {
        let folder = folder(&lab);
        kill(&[lab.supervisor()]);
        let other = format!("test-none-{}", std::process::id());
        let sweep = || lab.by.run(&["lab", "down", "--name", &other]);
        // The owner may still take the lab down.
        sweep();
        assert!(folder.exists());
        owner.kill().unwrap();
        owner.wait().unwrap();
        // Commands that only look leave everything as it is.
        let services = &processes[..processes.len() - 1];
        eventually("the end of its services", || {
            !services.iter().any(|&pid| runs(pid))
        });
        let before = files(&folder);
        let name = ["--name", &lab.name];
        for look in [
            &["lab", "list"][..],
            &["lab", "list", "--json"],
            &[&["lab", "status"][..], &name].concat(),
            &[&["lab", "graph"][..], &name].concat(),
            &[&["lab", "logs"][..], &name].concat(),
            &[&["lab", "save"][..], &name].concat(),
        ] {
            lab.by.run(look);
            assert_eq!(files(&folder), before, "{look:?}");
        }
        sweep();
        lab.assert_gone(&folder, &processes);
    }
    let _ = owner.kill();
    owner.wait().unwrap();
}

/// All files below a folder, with their sizes and the times of their last change.
fn files(folder: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (meta.len(), meta.modified().unwrap()));
        }
    }
    found
}

#[test]
fn an_owner_that_does_not_run_is_refused() {
    let mut owner = owner();
    owner.kill().unwrap();
    owner.wait().unwrap();
    let pid = owner.id().to_string();
    let name = format!("test-nobody-{}", std::process::id());
    let refused = As::default().refuse(&["lab", "up", "fig4", "--name", &name, "--pid", &pid]);
    assert!(refused.contains(&pid), "{refused}");
}

#[test]
fn an_interrupted_up_does_not_block_the_next() {
    let by = As::default();
    let Some(lab) = by.up("fig4", "cut") else {
        return;
    };
    let mut interrupted = 0;
    for (turn, millis) in [0, 1, 3, 8, 15, 25, 40, 60, 90].into_iter().enumerate() {
        lab.down();
        let up = ["lab", "up", "fig4", "--name", &lab.name];
        let mut cut = by.command(&up).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        if turn % 2 == 0 {
            cut.kill().unwrap();
        } else {
            let pid = cut.id().to_string();
            Command::new("kill").args(["-INT", &pid]).status().unwrap();
        }
        cut.wait().unwrap();
        let owner = std::process::id().to_string();
        let next = by.run(&[&up[..], &["--pid", &owner]].concat());
        if next.status.success() {
            interrupted += 1;
        } else {
            // The lab was up already: then it is complete.
            let error = String::from_utf8_lossy(&next.stderr);
            assert!(error.contains("there is a lab"), "{error}");
            assert_eq!(lab.paths(A, B).len(), 2);
        }
    }
    assert!(interrupted > 0, "none was interrupted before it was up");
    lab.down();

    // Also without another command.
    let up = ["lab", "up", "fig7a", "--name", &lab.name];
    let mut cut = by.command(&up).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    cut.kill().unwrap();
    if !cut.wait().unwrap().success() {
        // If no supervisor was started, the next change removes what there is.
        let other = format!("test-none-{}", std::process::id());
        eventually("the end of the lab", || {
            by.run(&["lab", "down", "--name", &other]);
            !by.names().contains(&lab.name)
        });
    }
}

#[test]
fn up_replaces_a_lab_that_lost_its_supervisor() {
    let Some(lab) = As::default().up("fig4", "mend") else {
        return;
    };
    let mut processes = lab.services();
    processes.push(lab.leave_behind(B));
    kill(&[lab.supervisor()]);
    let status = lab.status();
    assert_eq!(status["running"], false);

    let output = lab.by.run(&["lab", "up", "fig4", "--name", &lab.name]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    assert!(error.contains(&lab.name), "{error}");
    assert!(!processes.into_iter().any(runs));
    assert_eq!(lab.status()["running"], true);
    lab.assert_answers(A, B_HOST);
    lab.down();
}

#[test]
fn down_removes_what_a_killed_up_has_written() {
    let folder = tempfile::tempdir().unwrap();
    let by = As {
        runtime: Some(folder.path().to_owned()),
        ..As::default()
    };
    let half = folder.path().join("hawser/lab/half");
    std::fs::create_dir_all(&half).unwrap();
    for at in 0..200 {
        std::fs::create_dir(half.join(format!("1-ff00_0_{at}"))).unwrap();
    }
    let down = by.run(&["lab", "down", "--name", "half"]);
    let error = String::from_utf8_lossy(&down.stderr);
    assert!(down.status.success(), "{error}");
    assert_eq!(error, "hawser: removing the folder of lab half\n");
    assert!(!half.exists());
    by.refuse(&["lab", "down", "--name", "half"]);
}
