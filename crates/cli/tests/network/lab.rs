//! Whole labs: brought up, used, changed, damaged, taken down.

mod apply;
mod changes;
mod ends;
mod guests;
mod invited;
mod plain;
mod restarts;
mod several;
mod tools;

use std::io::{ErrorKind, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hawser_lab::{Lab, Options, StartError, UpError};
use hawser_topology::Network;

use crate::support::{As, NOBODY, TestLab, kill, runs, topology};

const A: &str = "1-ff00:0:110";
const B: &str = "1-ff00:0:111";
const B_HOST: &str = "1-ff00:0:111,10.0.2.1";

fn folder(lab: &TestLab) -> PathBuf {
    PathBuf::from(lab.status()["dir"].as_str().unwrap())
}

#[test]
fn labs_run_side_by_side() {
    let by = As::default();
    let Some(four) = by.up("fig4", "four") else {
        return;
    };
    let seven = by.up("fig7a", "seven").unwrap();
    for lab in [&four, &seven] {
        let status = lab.status();
        assert_eq!(status["running"], true);
        for a in status["ases"].as_array().unwrap() {
            let router = &a["routers"][0];
            assert_eq!(
                (&router["alive"], &a["control"]["alive"]),
                (&true.into(), &true.into())
            );
            assert!(router["resident"].as_u64().unwrap() > 0);
        }
        assert!(by.names().contains(&lab.name));
    }
    // Paths exist as soon as `up` has ended.
    assert_eq!(four.paths(A, B).len(), 2);
    assert_eq!(seven.paths("1-ff00:0:4", "1-ff00:0:1").len(), 3);
    // The machine's own namespace has none of the devices.
    let devices = std::fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!devices.contains("if1:"), "{devices}");

    let (dir, processes) = (folder(&four), four.services());
    four.down();
    four.assert_gone(&dir, &processes);
    assert_eq!(seven.status()["running"], true);
    assert!(seven.services().into_iter().all(runs));
    seven.down();
}

#[test]
fn exec_becomes_the_program_it_runs() {
    let Some(lab) = As::default().up("fig4", "exec") else {
        return;
    };
    let coded = lab.exec(A, &["sh", "-c", "exit 7"]).status().unwrap();
    assert_eq!(coded.code(), Some(7));
    let killed = lab
        .exec(A, &["sh", "-c", "kill -TERM $$"])
        .status()
        .unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&killed),
        Some(15)
    );

    // The exit codes of a shell for programs that it cannot run.
    for (program, code) in [("no-such-program", 127), ("/etc/passwd", 126)] {
        let output = lab.exec(A, &[program]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(program), "{error}");
    }

    let mut cat = lab
        .exec(B, &["cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    cat.stdin.take().unwrap().write_all(b"through").unwrap();
    assert_eq!(cat.wait_with_output().unwrap().stdout, b"through");

    let daemon = lab
        .exec(A, &["sh", "-c", "echo $SCION_DAEMON"])
        .output()
        .unwrap();
    assert_eq!(daemon.stdout, b"127.0.0.1:30255\n");
    let other = lab
        .exec(A, &["sh", "-c", "echo $SCION_DAEMON"])
        .env("SCION_DAEMON", "127.0.0.1:7")
        .output()
        .unwrap();
    assert_eq!(other.stdout, b"127.0.0.1:7\n");
    let devices = lab
        .exec(B, &["cat", "/proc/self/net/dev"])
        .output()
        .unwrap();
    let devices = String::from_utf8(devices.stdout).unwrap();
    assert!(
        devices.contains("if1:") && devices.contains("if2:"),
        "{devices}"
    );
}

/// A shell inside the lab reaches the lab's other ASes, but cannot take its own lab down.
fn works_from_inside(lab: &TestLab, isd_as: &str, other: &str) {
    let name = lab.name.as_str();
    let script = "wc -l < /proc/self/net/dev";
    let nested = [
        "lab", "exec", other, "--name", name, "--", "sh", "-c", script,
    ];
    let inside = lab.hawser(isd_as, &nested);
    let direct = lab.exec(other, &["sh", "-c", script]).output().unwrap();
    assert_eq!(inside.stdout, direct.stdout, "{inside:?}");
    assert!(direct.status.success());

    let down = lab.hawser(isd_as, &["lab", "down", "--name", name]);
    let error = String::from_utf8(down.stderr).unwrap();
    assert_eq!(down.status.code(), Some(1), "{error}");
    assert!(error.contains("inside the lab"), "{error}");
    assert_eq!(lab.status()["running"], true);
}

#[test]
fn a_shell_inside_reaches_the_other_ases() {
    let Some(lab) = As::default().up("fig7a", "inside") else {
        return;
    };
    works_from_inside(&lab, "1-ff00:0:1", "1-ff00:0:4");
}

#[test]
fn hosts_reach_each_other_by_plain_ip() {
    let Some(test) = As::default().up("fig7a", "plain") else {
        return;
    };
    let lab = Lab::open(&test.name).unwrap();
    let network = lab.network().unwrap();
    for from in &network.ases {
        for to in &network.ases {
            let host = (lab.host(to.isd_as).unwrap().unwrap(), 9);
            let mut command = lab.command(from.isd_as, Command::new("true")).unwrap();
            // SAFETY: only makes system calls.
            unsafe {
                command.pre_exec(move || match TcpStream::connect(host) {
                    // No program listens there, as its kernel reports.
                    Err(e) if e.kind() == ErrorKind::ConnectionRefused => Ok(()),
                    Err(e) => Err(e),
                    Ok(_) => Err(ErrorKind::AddrInUse.into()),
                })
            };
            let reached = command.status();
            assert!(
                reached.is_ok(),
                "{} to {}: {reached:?}",
                from.isd_as,
                to.isd_as
            );
        }
    }
}

#[test]
fn unknown_names_are_refused_in_one_line() {
    let by = As::default();
    let nowhere = by.refuse(&["lab", "status", "--name", "no-such-lab"]);
    assert!(nowhere.contains("no-such-lab"), "{nowhere}");
    let outside = by.run(&["lab", "up", "fig4", "--name", "../x"]);
    assert_eq!(outside.status.code(), Some(2), "{outside:?}");

    let Some(lab) = by.up("fig4", "names") else {
        return;
    };
    let second = by.refuse(&["lab", "up", "fig4", "--name", &lab.name]);
    assert!(
        second.contains("lab down") && second.contains("--name"),
        "{second}"
    );
    let name = &lab.name;
    let nobody = by.refuse(&["lab", "exec", "--name", name, "1-ff00:0:999", "--", "true"]);
    assert!(nobody.contains(A) && nobody.contains(B), "{nobody}");
    let no_link = format!("{A}#9");
    let nothing = by.refuse(&["lab", "link", "set", &no_link, "--down", "--name", name]);
    assert!(nothing.contains(&format!("{A}#2")), "{nothing}");
}

#[test]
fn broken_topologies_leave_nothing() {
    let by = As::default();
    let dir = tempfile::tempdir().unwrap();
    let name = format!("test-broken-{}", std::process::id());
    let ases = r#"ASes: {"1-ff00:0:1": {core: true}, "1-ff00:0:2": {core: true}}"#;
    for (links, word) in [
        (
            r#"[{a: "1-ff00:0:1#1", b: "1-ff00:0:2#1", linkAtoB: CORE, colour: red}]"#,
            "colour",
        ),
        (
            r#"[{a: "1-ff00:0:1#1", b: "1-ff00:0:3#1", linkAtoB: CORE}]"#,
            "1-ff00:0:3",
        ),
        (
            r#"[{a: "1-ff00:0:1#1", b: "1-ff00:0:2#1", linkAtoB: CORE},
                {a: "1-ff00:0:1#1", b: "1-ff00:0:2#2", linkAtoB: CORE}]"#,
            "1-ff00:0:1#1",
        ),
        (
            r#"[{a: "1-ff00:0:1#1", b: "1-ff00:0:2#1", linkAtoB: CORE, mtu: 65530}]"#,
            "65530",
        ),
    ] {
        let file = topology(dir.path(), &format!("{ases}\nlinks: {links}\n"));
        let error = by.refuse(&["lab", "up", &file, "--name", &name]);
        assert!(error.contains(word), "{word:?} is not in: {error}");
        assert!(!by.names().contains(&name));
    }
}

/// A program that runs a line of sh(1) before it becomes `hawser`.
fn wrapper(folder: &Path, before: &str) -> PathBuf {
    let program = folder.join("wrapper");
    let script = format!(
        "#!/bin/sh\n{before}\nexec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_hawser")
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[test]
fn a_service_that_fails_at_start_is_named_and_ends_the_lab() {
    let dir = tempfile::tempdir().unwrap();
    let fails = "case \"$*\" in router*_111) echo no luck today >&2; exit 3;; esac";
    let program = wrapper(dir.path(), fails);
    let name = format!("test-fails-{}", std::process::id());
    let network = Network::ready("fig4").unwrap();
    let options = Options {
        name: name.clone(),
        ..Options::new(&program)
    };
    match Lab::up(&network, &options) {
        Err(UpError::Start(StartError::NoUserNamespace(reason))) => eprintln!("skipped: {reason}"),
        Err(UpError::Start(error @ StartError::NotReady { .. })) => {
            let text = error.to_string();
            for word in ["router of 1-ff00:0:111", "exit status: 3", "no luck today"] {
                assert!(text.contains(word), "{word:?} is not in: {text}");
            }
        }
        other => panic!("{other:?}"),
    }
    assert!(Lab::open(&name).is_err());
}

#[test]
fn links_that_do_not_come_up_are_named() {
    let dir = tempfile::tempdir().unwrap();
    // A port that is not the neighbour's, on the second link.
    let deaf = "case \"$*\" in router*_111) sed -i s/10.128.0.2:50000/10.128.0.2:50001/ \"$3/topology.json\";; esac";
    let program = wrapper(dir.path(), deaf);
    let name = format!("test-deaf-{}", std::process::id());
    let network = Network::ready("fig4").unwrap();
    let options = Options {
        name: name.clone(),
        owner: Some(std::process::id()),
        ..Options::new(&program)
    };
    let up = match Lab::up(&network, &options) {
        Err(UpError::Start(StartError::NoUserNamespace(reason))) => {
            eprintln!("skipped: {reason}");
            return;
        }
        up => up.unwrap(),
    };
    assert_eq!(up.dead_links, ["1-ff00:0:110#2 - 1-ff00:0:111#2"]);
    let test = TestLab::named(As::default(), name);
    test.assert_answers(A, B_HOST);
    test.down();
}

/// Sends datagrams from inside an AS over its first link, as fast as possible.
fn burst(lab: &Lab, packets: usize) {
    let mut command = lab
        .command(A.parse().unwrap(), Command::new("true"))
        .unwrap();
    // SAFETY: only makes system calls.
    unsafe {
        command.pre_exec(move || {
            let socket = UdpSocket::bind("10.128.0.0:0")?;
            for _ in 0..packets {
                socket.send_to(&[0; 1000], "10.128.0.1:9")?;
            }
            Ok(())
        })
    };
    assert!(command.status().unwrap().success());
}

#[test]
fn rates_are_the_kernels_at_both_ends_and_change_at_once() {
    const PACKETS: usize = 500;
    let Some(test) = As::default().up("fig4", "rate") else {
        return;
    };
    let lab = Lab::open(&test.name).unwrap();
    let limits = || {
        let link = &lab.status().unwrap().links[0];
        (link.a.limit, link.b.limit)
    };
    // Half a megabyte at once, into a queue of 50 ms: 6 kB at 1 Mbit/s.
    test.set("1-ff00:0:110#1", &["--rate", "1mbit"]);
    burst(&lab, PACKETS);
    let (Some(a), Some(b)) = limits() else {
        panic!("no limits");
    };
    assert_eq!((a.rate, b.rate), (1_000_000, 1_000_000));
    assert!(a.drops > 400, "{a:?}");
    assert!(a.bytes > 0, "{a:?}");
    assert_eq!(b.drops, 0);

    // The link is named by its other end; its queue now takes everything.
    test.set("1-ff00:0:111#1", &["--rate", "1gbit"]);
    burst(&lab, PACKETS);
    let wide = limits().0.unwrap();
    assert_eq!((wide.rate, wide.drops), (1_000_000_000, a.drops));

    test.set("1-ff00:0:110#1", &["--rate", "none"]);
    assert_eq!(limits(), (None, None));
    let shape = &test.status()["links"][0]["shape"];
    assert!(shape["rate"].is_null(), "{shape}");
    // The other link keeps its rate.
    assert_eq!(test.status()["links"][1]["shape"]["rate"], 300_000_000);
}

#[test]
fn a_link_goes_down_and_up_again() {
    let Some(lab) = As::default().up("fig4", "down") else {
        return;
    };
    lab.assert_answers(A, B_HOST);
    let both = lab.paths(A, B);

    lab.set("1-ff00:0:110#1", &["--down"]);
    assert_eq!(lab.status()["links"][0]["up"], false);
    let left = lab.paths(A, B);
    assert_eq!(left.len(), 1);
    assert!(left[0].contains("\"interface\":2"), "{left:?}");
    lab.assert_answers(A, B_HOST);

    // Set at the other end; further changes leave the link down.
    lab.set("1-ff00:0:111#2", &["--down"]);
    lab.set("1-ff00:0:111#2", &["--delay", "1ms"]);
    assert!(!lab.answers(A, B_HOST));

    lab.set("1-ff00:0:111#1", &["--up"]);
    lab.set("1-ff00:0:110#2", &["--up"]);
    lab.assert_paths(A, B, both.len());
    lab.assert_answers(A, B_HOST);
}

/// Takes three labs down: a running one, one whose supervisor was killed, and one whose processes
/// were all killed.
fn leaves_nothing(by: &As) {
    type Kill = fn(&TestLab);
    let ways: [(&str, Kill); 3] = [
        ("whole", |_| {}),
        ("headless", |lab| kill(&[lab.supervisor()])),
        ("killed", |lab| {
            let services = lab.services();
            kill(&[lab.supervisor()]);
            kill(&services);
        }),
    ];
    for (what, way) in ways {
        let Some(lab) = by.up("fig4", what) else {
            return;
        };
        let dir = folder(&lab);
        let mut processes = lab.services();
        processes.push(lab.supervisor());
        processes.push(lab.leave_behind(B));
        assert!(processes.iter().all(|&pid| runs(pid)), "{what}");
        way(&lab);
        lab.down();
        lab.assert_gone(&dir, &processes);
        // The name is free again.
        let again = by.up("fig4", what).unwrap();
        again.down();
    }
}

#[test]
fn down_leaves_nothing() {
    leaves_nothing(&As::default());
}

/// Runs commands as an ordinary user; `None` unless the test is root.
fn nobody(home: &Path) -> Option<As> {
    let own = std::fs::metadata("/proc/self").unwrap();
    if std::os::unix::fs::MetadataExt::uid(&own) != 0 {
        eprintln!("skipped: the other tests run as an ordinary user already");
        return None;
    }
    // The test's build may be in a folder that others cannot read.
    let program = home.join("hawser");
    // Copied by another process: while this one has a program open for writing, neither it nor a
    // child that it forks meanwhile can run that program.
    let copied = Command::new("cp")
        .args([Path::new(env!("CARGO_BIN_EXE_hawser")), &program])
        .status();
    assert!(copied.unwrap().success());
    let runtime = home.join("run");
    std::fs::create_dir(&runtime).unwrap();
    std::fs::set_permissions(home, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&runtime, Some(NOBODY), Some(NOBODY)).unwrap();
    Some(As {
        nobody: Some((program, runtime)),
        ..As::default()
    })
}

#[test]
fn an_ordinary_user_has_labs_too() {
    let home = tempfile::tempdir().unwrap();
    let Some(by) = nobody(home.path()) else {
        return;
    };
    let Some(lab) = by.up("fig7a", "user") else {
        return;
    };
    assert_eq!(lab.status()["rootless"], true);
    assert_eq!(lab.paths("1-ff00:0:4", "1-ff00:0:1").len(), 3);
    lab.assert_answers("1-ff00:0:4", "1-ff00:0:1,10.0.1.1");
    lab.set("1-ff00:0:4#3", &["--rate", "3mbit", "--delay", "1ms"]);
    let status = lab.status();
    let emulators = [3, 6].map(|at| &status["ases"][at]["emulator"]["alive"]);
    assert_eq!(emulators, [true, true], "{status}");
    let limits: Vec<_> = status["links"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|link| [&link["a"]["limit"]["rate"], &link["b"]["limit"]["rate"]])
        .filter(|rate| **rate == 3_000_000)
        .collect();
    assert_eq!(limits.len(), 2, "{status}");
    works_from_inside(&lab, "1-ff00:0:1", "1-ff00:0:4");
    lab.down();
    leaves_nothing(&by);
}
