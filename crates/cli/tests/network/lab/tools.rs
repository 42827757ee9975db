//! The tools of a lab: its logs, a shell in it, captures of its links, its map, and its `.topo`
//! file.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hawser_lab::Lab;
use hawser_topology::Network;
use serde_json::Value;

use super::{A, B, B_HOST};
use crate::support::{As, TestLab, kill};

#[test]
fn the_tools_of_a_lab_work() {
    let Some(lab) = As::default().up("fig4", "tools") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    logs(&lab);
    shell(&lab);
    captures(&lab, folder.path());
    ends_of_captures(&lab, folder.path());
    maps_and_files(&lab, folder.path());
    faults(&lab, folder.path());
    followed_logs_end_with_the_lab(lab);
}

/// A command for the lab.
fn on(lab: &TestLab, args: &[&str]) -> Command {
    lab.by.command(&[args, &["--name", &lab.name]].concat())
}

fn print(lab: &TestLab, args: &[&str]) -> String {
    lab.by.print(&[args, &["--name", &lab.name]].concat())
}

fn refuse(lab: &TestLab, args: &[&str]) -> String {
    lab.by.refuse(&[args, &["--name", &lab.name]].concat())
}

/// The one line of an error of wrong use.
fn misuse(lab: &TestLab, args: &[&str]) -> String {
    let output = on(lab, args).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    error
}

fn logs(lab: &TestLab) {
    let all = print(lab, &["lab", "logs"]);
    assert!(all.contains("supervisor           | 2"), "{all}");
    for isd_as in [A, B] {
        let prefix = format!("{isd_as} router  | 2");
        assert!(all.contains(&prefix), "{prefix}: {all}");
    }
    assert!(!all.contains('\x1b'), "{all}");
    let times: Vec<&str> = all.lines().map(|l| l.split("| ").nth(1).unwrap()).collect();
    assert!(times.is_sorted(), "{all}");

    let json = print(lab, &["lab", "logs", A, "-n", "1", "--json"]);
    let line: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&line["isd_as"], &line["service"]),
        (&A.into(), &"router".into())
    );
    assert!(
        line["text"]
            .as_str()
            .unwrap()
            .contains(line["time"].as_str().unwrap())
    );
}

fn shell(lab: &TestLab) {
    let mut shell = on(lab, &["lab", "shell", A])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let script = b"echo $SCION_DAEMON $HAWSER_AS $HAWSER_LAB; cat /proc/self/net/dev; exit 7\n";
    shell.stdin.take().unwrap().write_all(script).unwrap();
    let output = shell.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let first = format!("127.0.0.1:30255 {A} {}\n", lab.name);
    assert!(text.starts_with(&first) && text.contains("if1:"), "{text}");
    assert_eq!(output.status.code(), Some(7));

    let none = on(lab, &["lab", "shell", A])
        .env("SHELL", "/no/such/shell")
        .output();
    let none = none.unwrap();
    assert_eq!(none.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&none.stderr).contains("/no/such/shell"));
}

/// A running capture, with its messages.
fn capture(lab: &TestLab, flags: &[&str]) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = on(
        lab,
        &[&["lab", "capture", "1-ff00:0:110#1"], flags].concat(),
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    messages.read_line(&mut first).unwrap();
    assert!(
        first.contains("1-ff00:0:110#1") && first.contains("1-ff00:0:111#1"),
        "{first}"
    );
    (child, messages)
}

/// The messages at the end of a capture.
fn ended(mut child: Child, mut messages: impl Read) -> String {
    let mut last = String::new();
    messages.read_to_string(&mut last).unwrap();
    assert!(child.wait().unwrap().success(), "{last}");
    last
}

fn captures(lab: &TestLab, folder: &Path) {
    let file = folder.join("a.pcapng");
    let (child, messages) = capture(lab, &["-w", file.to_str().unwrap()]);
    // SCMP echoes over both links, including the captured one.
    for path in lab.paths(A, B) {
        assert!(!path.is_empty());
        lab.assert_answers(A, B_HOST);
    }
    let pid = child.id().to_string();
    let stopped = Command::new("kill").args(["-INT", &pid]).status();
    assert!(stopped.unwrap().success());
    let last = ended(child, messages);
    assert!(last.contains("packets captured, 0 dropped"), "{last}");
    let count: usize = last.split(' ').next().unwrap().parse().unwrap();
    assert!(count > 0, "{last}");

    let fields = [
        "frame.interface_name",
        "frame.packet_flags_direction",
        "udp.dstport",
    ];
    let Some(read) = tshark(&file, &fields) else {
        return;
    };
    assert_eq!(read.len(), count);
    assert!(
        read.iter()
            .all(|row| row[0] == "1-ff00:0:110#1" && row[2] == "50000"),
        "{read:?}"
    );
    // In both directions.
    for direction in ["0x00000001", "0x00000002"] {
        assert!(read.iter().any(|row| row[1] == direction), "{read:?}");
    }
}

/// Rows of fields as tshark reads them; `None`, with a message, if tshark is not installed.
fn tshark(file: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        eprintln!("skipped: there is no tshark to read the capture");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| line.split('\t').map(str::to_owned).collect();
    Some(text.lines().map(row).collect())
}

fn ends_of_captures(lab: &TestLab, folder: &Path) {
    // BFD sends packets all the time.
    let file = folder.join("b.pcapng");
    let (child, messages) = capture(lab, &["-w", file.to_str().unwrap(), "-c", "2", "-s", "60"]);
    assert!(ended(child, messages).starts_with("2 packets"));
    let again = misuse(
        lab,
        &[
            "lab",
            "capture",
            "1-ff00:0:110#1",
            "-w",
            file.to_str().unwrap(),
        ],
    );
    assert!(
        again.contains("b.pcapng") && again.contains("--force"),
        "{again}"
    );
    let flags = ["-w", file.to_str().unwrap(), "--force", "--time", "10ms"];
    let (child, messages) = capture(lab, &flags);
    ended(child, messages);

    // The reader of the capture closes the pipe.
    let (mut child, messages) = capture(lab, &["-w", "-"]);
    let mut begin = [0; 4];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut begin).unwrap();
    assert_eq!(begin, [0x0a, 0x0d, 0x0d, 0x0a]);
    drop(out);
    ended(child, messages);
}

fn maps_and_files(lab: &TestLab, folder: &Path) {
    lab.set(
        "1-ff00:0:110#1",
        &[
            "--rate", "12.5mbit", "--delay", "5ms", "--jitter", "1ms", "--loss", "0.3%",
        ],
    );
    lab.set("1-ff00:0:111#2", &["--down"]);
    let map = print(lab, &["lab", "graph"]);
    assert!(map.contains("2 links, 1 down"), "{map}");
    assert!(map.contains("12.5 Mbit/s  5ms ±1ms  0.3% lost"), "{map}");
    let graph: Value = serde_json::from_str(&print(lab, &["lab", "graph", "--json"])).unwrap();
    let link = &graph["links"][1];
    assert_eq!(
        (&link["state"], &link["kind"]),
        (&"down".into(), &"CORE".into())
    );
    assert_eq!(link["a"], serde_json::json!({"isd_as": A, "interface": 2}));
    assert_eq!(graph["links"][0]["rate"], 12_500_000);
    let picture = folder.join("map.svg");
    let svg = ["lab", "graph", "--svg", picture.to_str().unwrap()];
    print(lab, &svg);
    let drawn = std::fs::read_to_string(&picture).unwrap();
    assert_eq!(drawn, print(lab, &["lab", "graph", "--svg", "-"]));
    assert!(drawn.contains("link core down"), "{drawn}");
    assert!(misuse(lab, &svg).contains("--force"));
    print(lab, &[&svg[..], &["--force"]].concat());

    let file = folder.join("saved.topo");
    let path = file.to_str().unwrap();
    let saved = on(lab, &["lab", "save", path]).output().unwrap();
    assert!(saved.status.success(), "{saved:?}");
    let note = String::from_utf8(saved.stderr).unwrap();
    assert!(note.contains("1-ff00:0:110#2 --down"), "{note}");
    assert!(misuse(lab, &["lab", "save", path]).contains("--force"));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("# Down: 1-ff00:0:110#2 - 1-ff00:0:111#2"),
        "{text}"
    );
    assert_eq!(text, print(lab, &["lab", "save", "-"]));
    let live = Lab::open(&lab.name).unwrap().network().unwrap();
    assert_eq!(Network::load(&file).unwrap(), live);

    // Bring the saved network up again.
    let again = TestLab::named(lab.by.clone(), format!("test-again-{}", std::process::id()));
    let flags = ["--no-router", B, "--no-control", B, "--json"];
    let up = print(&again, &[&["lab", "up", path][..], &flags].concat());
    let up: Value = serde_json::from_str(&up).unwrap();
    assert_eq!(
        (&up["links"], &up["ases"][1]["host"]),
        (&2.into(), &"10.0.2.1".into())
    );
    let network = Lab::open(&again.name).unwrap().network().unwrap();
    assert_eq!(network, live);
    let flags = on(&again, &["lab", "save", "-"]).output().unwrap();
    let note = String::from_utf8(flags.stderr).unwrap();
    assert!(note.contains(&format!("--no-router {B}")), "{note}");
    // Its links delay plain IP, so the lab runs an emulator there, and nothing else.
    let left = print(&again, &["lab", "logs", B]);
    assert!(left.lines().all(|line| line.contains("emulator")), "{left}");
    let bare = TestLab::named(lab.by.clone(), format!("test-bare-{}", std::process::id()));
    let flags = ["lab", "up", "fig4", "--no-router", B, "--no-control", B];
    print(&bare, &flags);
    let left = refuse(&bare, &["lab", "logs", B]);
    assert!(left.contains("runs no service"), "{left}");
    let none = refuse(&again, &["lab", "shell", "1-ff00:0:999"]);
    assert!(none.contains(A), "{none}");
    let list: Value = serde_json::from_str(&again.by.print(&["lab", "list", "--json"])).unwrap();
    let listed = list
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == again.name.as_str());
    assert_eq!(
        (&listed.unwrap()["running"], &listed.unwrap()["ases"]),
        (&true.into(), &2.into())
    );
    again.down();
}

fn faults(lab: &TestLab, folder: &Path) {
    let file = folder.join("none.pcapng");
    let path = file.to_str().unwrap();
    let unknown = refuse(lab, &["lab", "capture", "1-ff00:0:110#9", "-w", path]);
    assert!(unknown.contains("1-ff00:0:110#1"), "{unknown}");
    assert!(!file.exists());
    let nobody = refuse(lab, &["lab", "logs", "1-ff00:0:999"]);
    assert!(nobody.contains(A) && nobody.contains(B), "{nobody}");
    for args in [
        &["lab", "save", "/nowhere/x"][..],
        &["lab", "graph", "--svg", "/nowhere/x"],
        &["lab", "capture", "1-ff00:0:110#1", "-w", "/nowhere/x"],
    ] {
        let error = misuse(lab, args);
        assert!(
            error.contains("/nowhere/x") && error.contains("the folder /nowhere"),
            "{error}"
        );
    }
    let path = folder.to_str().unwrap();
    for args in [
        &["lab", "save", path][..],
        &["lab", "graph", "--force", "--svg", path],
        &["lab", "capture", "1-ff00:0:110#1", "-w", path],
    ] {
        let error = misuse(lab, args);
        assert!(error.contains("this is a folder"), "{error}");
    }
}

/// The lab ends while one of its logs is followed.
fn followed_logs_end_with_the_lab(lab: TestLab) {
    let mut child = on(&lab, &["lab", "logs", "-f"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    lines.find(|line| line.contains("are up")).unwrap();
    // New lines are printed: this router's neighbour logs its end.
    let router = lab.status()["ases"][1]["routers"][0]["pid"]
        .as_i64()
        .unwrap();
    kill(&[router]);
    let noticed = |line: &String| line.starts_with(A) && line.contains("up=false");
    lines.find(noticed).unwrap();

    kill(&[lab.supervisor()]);
    for args in [
        &["lab", "graph"][..],
        &["lab", "shell", A],
        &["lab", "logs", "-n", "1"],
    ] {
        let dead = on(&lab, args).output().unwrap();
        let code = if args[1] == "logs" { 0 } else { 1 };
        let error = String::from_utf8(dead.stderr).unwrap();
        assert_eq!(dead.status.code(), Some(code), "{args:?}: {error}");
        assert!(code == 0 || error.contains("hawser lab down"), "{error}");
    }
    lab.down();
    lines.for_each(drop);
    let mut last = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut last)
        .unwrap();
    assert!(last.contains("is down"), "{last}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_tools_of_a_lab_work_for_an_ordinary_user() {
    let home = tempfile::tempdir().unwrap();
    let Some(by) = super::nobody(home.path()) else {
        return;
    };
    let Some(lab) = by.up("fig4", "usertools") else {
        return;
    };
    let (child, messages) = capture(&lab, &["-w", "-", "-c", "1"]);
    assert!(ended(child, messages).starts_with("1 packets captured"));
    assert!(print(&lab, &["lab", "logs", A]).contains("router"));
    let forbidden = PathBuf::from("/proc/x.topo");
    let error = misuse(&lab, &["lab", "save", forbidden.to_str().unwrap()]);
    assert!(error.contains("/proc/x.topo"), "{error}");
    lab.down();
}
