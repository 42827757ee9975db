//! Hosts that are added to the ASes of a running lab: network namespaces of others, and some of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{A, B, B_HOST};
use crate::content::{Content, Running, print};
use crate::image::podman_with_image;
use crate::machine::{Machine, can_run};
use crate::support::{As, NARROW, TestLab, eventually, kill, topology};

/// What `lab attach` prints as JSON.
fn attach(lab: &TestLab, guest: &str, isd_as: &str) -> Value {
    let args = [
        "lab", "attach", guest, isd_as, "--json", "--name", &lab.name,
    ];
    serde_json::from_str(&lab.by.print(&args)).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

/// The devices, addresses, neighbours and routes of a machine.
fn contents(machine: &Machine) -> String {
    let all = [
        "-o address show",
        "neigh show nud all",
        "route show table all",
        "-6 route show table all",
    ];
    let of = |words: &str| {
        let mut command = Command::new("ip");
        let output = machine.run(command.args(words.split(' ')));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    all.map(of).concat()
}

/// A hawser command on a machine that is a host.
fn hawser(machine: &Machine, host: &Value, args: &[&str]) -> Command {
    let mut command = machine.command(args);
    command.env("SCION_DAEMON", text(host, "daemon"));
    command
}

/// The added hosts that `lab status` lists, as `AS NAME ended`.
fn listed(lab: &TestLab) -> Vec<String> {
    let status = lab.status();
    let ases = status["ases"].as_array().unwrap().iter();
    let hosts = ases.flat_map(|a| {
        let hosts = a["hosts"].as_array().unwrap().iter();
        hosts.map(|host| {
            format!(
                "{} {} {}",
                text(a, "isd_as"),
                text(host, "name"),
                host["ended"]
            )
        })
    });
    hosts.collect()
}

#[test]
fn namespaces_become_hosts_and_are_left_as_they_were() {
    if !can_run() {
        return;
    }
    let lab = As::default().up("fig4", "guests").unwrap();
    let (first, second) = (Machine::new(), Machine::new());
    let before = contents(&first);
    let mut sleeper = Command::new("nsenter");
    sleeper.arg(format!("--net={}", first.file()));
    let sleeper = Running(sleeper.args(["sleep", "1000"]).spawn().unwrap());
    let net = format!("/proc/{}/ns/net", sleeper.0.id());
    let inode = |path: &str| {
        fs::metadata(path)
            .map(|m| std::os::unix::fs::MetadataExt::ino(&m))
            .ok()
    };
    eventually("the process is inside", || {
        inode(&net) == inode(&first.file())
    });

    // One by a process, with lines for a shell, one by a file.
    let pid = sleeper.0.id().to_string();
    let lines = lab
        .by
        .print(&["lab", "attach", &pid, A, "--name", &lab.name]);
    let mut shell = Command::new("sh");
    let said = print({
        shell.args(["-c", "eval \"$0\"; echo $SCION_DAEMON", &lines]);
        shell
    });
    assert_eq!(said.trim(), "10.0.1.254:30255", "{lines}");
    assert!(
        lines.contains("host2 is 1-ff00:0:110,10.0.1.2\n"),
        "{lines}"
    );
    assert!(lines.contains("http://10.0.1.254:8041\n"), "{lines}");
    let host: Value = serde_json::from_str("{\"daemon\": \"10.0.1.254:30255\"}").unwrap();
    let other = attach(&lab, &second.file(), A);
    assert_eq!(text(&other, "address"), "1-ff00:0:110,10.0.1.3");
    assert_eq!(
        listed(&lab),
        [format!("{A} host2 false"), format!("{A} host3 false")]
    );
    let table = lab.by.print(&["lab", "status", "--name", &lab.name]);
    assert!(
        table.contains("10.0.1.3         host host3 (attached)"),
        "{table}"
    );

    // Paths, echoes, downloads: from it over two paths, to it, and inside its AS.
    let paths = print(hawser(&first, &host, &["paths", B, "--wait=60s"]));
    assert_eq!(paths.matches("alive").count(), 2, "{paths}");
    print(hawser(
        &first,
        &host,
        &["ping", B_HOST, "-c", "3", "--interval", "100ms"],
    ));
    let bootstrap = ["paths", B, "--bootstrap", text(&other, "bootstrap")];
    let state = tempfile::tempdir().unwrap();
    let mut joined = hawser(&second, &other, &bootstrap);
    // What it trusts is kept, and other labs have other keys.
    joined.env("XDG_STATE_HOME", state.path());
    print(joined);
    let content = Content::new();
    let on_first = |args: &[&str]| hawser(&first, &host, args);
    let on_second = |args: &[&str]| hawser(&second, &other, args);
    let in_b = |args: &[&str]| lab.exec(B, &[&[lab.program()], args].concat());
    let (_seeder, peer) = content.seed(in_b);
    assert_eq!(content.get(on_first, &peer), 2);
    let (seeder, peer) = content.seed(on_second);
    assert!(peer.starts_with("1-ff00:0:110,10.0.1.3:"), "{peer}");
    assert_eq!(content.get(in_b, &peer), 2);
    content.get(on_first, &peer);

    // The lab is changed around it.
    lab.by
        .print(&["lab", "add", "as", "1-ff00:0:112", "--name", &lab.name]);
    print(hawser(&first, &host, &["ping", B_HOST, "-c", "1"]));

    // By the process, and then again; by the name when the namespace has ended.
    lab.by.print(&["lab", "detach", &pid, "--name", &lab.name]);
    assert_eq!(contents(&first), before);
    assert_eq!(
        text(&attach(&lab, &pid, B), "address"),
        "1-ff00:0:111,10.0.2.2"
    );
    drop((seeder, second));
    let ended = [format!("{A} host3 true"), format!("{B} host2 false")];
    eventually("the end is seen", || listed(&lab) == ended);
    lab.by
        .print(&["lab", "detach", "host3", "--name", &lab.name]);
    assert_eq!(listed(&lab), [format!("{B} host2 false")]);
    lab.down();
    assert_eq!(contents(&first), before);
}

#[test]
fn a_killed_lab_leaves_nothing_in_a_guest() {
    if !can_run() {
        return;
    }
    let lab = As::default().up("fig4", "guest-killed").unwrap();
    let machine = Machine::new();
    let before = contents(&machine);
    attach(&lab, &machine.file(), A);
    assert_ne!(contents(&machine), before);
    kill(&[lab.supervisor()]);
    eventually("the device is gone", || contents(&machine) == before);
    lab.down();
}

#[test]
fn what_cannot_be_a_host_is_refused_with_a_line() {
    if !can_run() {
        return;
    }
    let lab = As::default().up("fig4", "guest-faults").unwrap();
    let machine = Machine::new();
    let here = machine.file();
    let refuse = |args: &[&str]| {
        lab.by
            .refuse(&[&["lab"], args, &["--name", &lab.name]].concat())
    };
    let own = std::process::id().to_string();
    let inside = lab.services()[0].to_string();
    for (args, word) in [
        (
            vec!["attach", &here, "1-ff00:0:999"],
            "the lab has no AS 1-ff00:0:999: it has",
        ),
        (vec!["attach", "4194305", A], "there is no process 4194305"),
        (
            vec!["attach", "no-such", A],
            "there is no network namespace \"no-such\"",
        ),
        (vec!["attach", "/dev/null", A], "not a network namespace"),
        (vec!["attach", &own, A], "namespace of this machine"),
        (vec!["attach", &inside, A], "one of the lab's own"),
        (
            vec!["attach", &here, A, "--host", "A b"],
            "is not a name for a host",
        ),
        (vec!["detach", &here], "nothing is"),
        (vec!["remove", "host", "x", A], "no added host \"x\""),
    ] {
        let error = refuse(&args);
        assert!(error.contains(word), "{args:?}: {error}");
    }
    machine.ip("link add eth0 type veth peer name far");
    machine.ip("address add 10.0.1.77/24 dev eth0");
    let before = contents(&machine);
    let error = refuse(&["attach", &here, A]);
    assert!(error.contains("has the address 10.0.1.77"), "{error}");
    assert_eq!(contents(&machine), before);
    attach(&lab, &here, B);
    let error = refuse(&["attach", &here, B]);
    assert!(error.contains("a device hawser0 already"), "{error}");
    let error = refuse(&["detach", "elsewhere"]);
    assert!(error.contains("elsewhere"), "{error}");
    let error = refuse(&["add", "host", "host2", B]);
    assert!(error.contains("has a host \"host2\" already"), "{error}");
    let exec = ["lab", "exec", B, "--host", "host2", "--name", &lab.name];
    let error = lab.by.refuse(&[&exec[..], &["--", "true"]].concat());
    assert!(error.contains("of another program"), "{error}");
}

#[test]
fn hosts_of_the_labs_own_run_programs() {
    let folder = tempfile::tempdir().unwrap();
    // With hosts of IPv6, and of IPv4.
    for (what, topo, network) in [
        ("hosts6", topology(folder.path(), NARROW), "fd00:0:0:1::"),
        ("hosts", "fig4".to_owned(), "10.0.1."),
    ] {
        let Some(lab) = As::default().up(&topo, what) else {
            return;
        };
        let name = ["--name", &lab.name];
        for host in ["web", "client"] {
            lab.by
                .print(&[&["lab", "add", "host", host, A], &name[..]].concat());
        }
        let content = Content::new();
        let run = |host: &'static str| {
            let lab = &lab;
            move |args: &[&str]| {
                let exec = ["lab", "exec", A, "--host", host, "--name", &lab.name, "--"];
                lab.by.command(&[&exec[..], args].concat())
            }
        };
        let on = |host: &'static str| {
            let program = lab.program();
            move |args: &[&str]| run(host)(&[&[program], args].concat())
        };
        names_resolve(run("client"));
        plain_ip_reaches(&lab, run("client"));
        let (mut seeder, peer) = content.seed(on("web"));
        assert!(peer.contains(&format!("{network}2")), "{peer}");
        content.get(on("client"), &peer);
        let in_b = |args: &[&str]| lab.exec(B, &[&[lab.program()], args].concat());
        content.get(in_b, &peer);
        // What runs in a host ends with it.
        lab.by
            .print(&[&["lab", "remove", "host", "web", A], &name[..]].concat());
        assert!(seeder.0.wait().is_ok());
        assert_eq!(listed(&lab), [format!("{A} client false")]);
        let exec = ["lab", "exec", A, "--host", "client", "--name", &lab.name];
        let mut left = lab.by.command(&exec);
        left.args(["--", "sh", "-c", "echo runs; exec sleep 1000"]);
        let mut left = Running(left.stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        let out = left.0.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        assert_eq!(line, "runs\n");
        // Also if it cannot be read any more what the lab consists of.
        fs::write(super::folder(&lab).join("state.json"), "{").unwrap();
        lab.down();
        assert!(left.0.wait().is_ok());
    }
}

/// Hosts of all ASes have names in a host.
fn names_resolve(on: impl Fn(&[&str]) -> Command) {
    for name in [
        "as1-ff00-0-110",
        "as1-ff00-0-111",
        "web",
        "web.as1-ff00-0-110",
    ] {
        let found = print(on(&["getent", "hosts", name]));
        assert!(found.contains(name), "{name}: {found}");
    }
    let own = fs::read_to_string("/etc/hosts").unwrap_or_default();
    assert!(!own.contains("as1-ff00-0-110"), "{own}");
}

/// A host that was added exchanges plain IP with the host of another AS, and with another one of its own.
fn plain_ip_reaches(lab: &TestLab, on: impl Fn(&[&str]) -> Command) {
    let script = "import socket, sys\n\
         s = socket.create_server((sys.argv[1], 0))\n\
         print(s.getsockname()[1], flush=True)\n\
         c, peer = s.accept()\n\
         c.sendall(peer[0].encode())\n";
    if Command::new("python3").arg("-V").output().is_err() {
        eprintln!("skipped: there is no python3 to listen with");
        return;
    }
    let name = ["--name", &lab.name];
    for (at, address) in [(&[B][..], "10.0.2.1"), (&[A, "--host", "web"], "10.0.1.2")] {
        let exec = [
            &["lab", "exec"],
            at,
            &name,
            &["--", "python3", "-c", script, address],
        ];
        let mut server = lab.by.command(&exec.concat());
        let mut server = Running(server.stdout(Stdio::piped()).spawn().unwrap());
        let mut port = String::new();
        let out = server.0.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut port).unwrap();
        let client = "import socket, sys\n\
             s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n\
             print(s.recv(99).decode())\n";
        let seen = print(on(&["python3", "-c", client, address, port.trim()]));
        // The server sees the address of the host, not one of its AS.
        assert_eq!(seen.trim(), "10.0.1.3", "{address}");
    }
}

#[test]
fn a_container_of_podman_becomes_a_host() {
    if !can_run() {
        return;
    }
    let Some((podman, image)) = podman_with_image() else {
        return;
    };
    let image = image.as_str();
    let lab = As::default().up("fig4", "guest-podman").unwrap();
    // It has no shell: a tracker is a program that stays. The address is that of the AS to come.
    let daemon = "SCION_DAEMON=10.0.1.254:30255";
    let tracker = [
        "--entrypoint",
        "/usr/bin/hawser",
        image,
        "tracker",
        "--http",
        "127.0.0.1:6969",
    ];
    let run = [
        "run",
        "-d",
        "--name",
        "guest",
        "--network",
        "none",
        "-e",
        daemon,
    ];
    podman.run(&[&run[..], &tracker].concat());
    let pid = podman.run(&["inspect", "--format", "{{.State.Pid}}", "guest"]);
    attach(&lab, pid.trim(), A);
    let hawser = ["exec", "guest", "/usr/bin/hawser"];
    let paths = podman.run(&[&hawser[..], &["paths", B, "--wait=60s"]].concat());
    assert_eq!(paths.matches("alive").count(), 2, "{paths}");
    podman.run(
        &[
            &hawser[..],
            &["ping", B_HOST, "-c", "3", "--interval", "100ms"],
        ]
        .concat(),
    );
    // The container ends first.
    podman.run(&["rm", "--force", "--time", "0", "guest"]);
    let ended = [format!("{A} host2 true")];
    eventually("the end is seen", || listed(&lab) == ended);
    lab.by
        .print(&["lab", "detach", "host2", "--name", &lab.name]);
    assert!(listed(&lab).is_empty());
}
