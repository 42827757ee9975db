//! `hawser doctor` on hosts that are sound, and on broken ones.

mod setups;

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{As, NOBODY, TestLab, eventually};

/// D of fig7a, a host in it, and A.
const D: &str = "1-ff00:0:4";
const D_HOST: &str = "10.0.4.1";
const A: &str = "1-ff00:0:1";

/// Waits for answers that come, however busy the machine is.
const PATIENT: [&str; 2] = ["--timeout", "60s"];

/// Runs `hawser doctor --json` in an AS, with settings of its own.
fn doctor(lab: &TestLab, isd_as: &str, config: &Path, args: &[&str]) -> Output {
    let command = [&[lab.program(), "doctor", "--json"], args].concat();
    let mut command = lab.exec(isd_as, &command);
    command.env("XDG_CONFIG_HOME", config);
    command.output().unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// The codes of the problems, without those of notes; checks the exit code.
fn problems(output: &Output) -> Vec<String> {
    let report = report(output);
    let findings = report["findings"].as_array().unwrap().iter();
    let problems = findings.filter(|finding| finding["severity"] != "note");
    let problems: Vec<String> = problems
        .map(|finding| {
            for field in ["problem", "remedy"] {
                assert!(!finding[field].as_str().unwrap().is_empty(), "{finding}");
            }
            finding["code"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(output.status.code(), Some((!problems.is_empty()).into()));
    assert_eq!(report["sound"], problems.is_empty(), "{report}");
    problems
}

#[test]
fn a_host_of_a_lab_is_sound_until_something_breaks() {
    let Some(lab) = As::default().up("fig7a", "doctor") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path();
    let found = |args: &[&str]| problems(&doctor(&lab, D, config, args));
    // The beginning of a lab on a busy machine may be slow.
    eventually("the host is sound", || found(&PATIENT).is_empty());
    let sound = report(&doctor(&lab, D, config, &PATIENT));
    assert_eq!(sound["isd_as"], D);
    let human = [lab.program(), "doctor", "--timeout", "60s"];
    let human = lab
        .exec(D, &human)
        .env("XDG_CONFIG_HOME", config)
        .output()
        .unwrap();
    let human = String::from_utf8(human.stdout).unwrap();
    assert_eq!(human.lines().last(), Some("no problems found"), "{human}");
    // It made nothing, in particular no key.
    assert_eq!(std::fs::read_dir(config).unwrap().count(), 0);

    // A destination, and its key.
    let host = format!("{A},10.0.1.1");
    let args = [&[host.as_str()], &PATIENT[..]].concat();
    eventually("only the key is unknown", || {
        found(&args) == ["key-unknown"]
    });
    let unknown = [&["1-ff00:0:99"], &PATIENT[..]].concat();
    let codes = found(&unknown);
    let no_paths = ["no-paths", "daemon-invalid"];
    assert!(
        codes.iter().any(|code| no_paths.contains(&code.as_str())),
        "{codes:?}"
    );

    // The daemon is gone.
    assert_eq!(found(&["--sciond", "127.0.0.1:9"]), ["daemon-unreachable"]);

    // A port is taken, and one is outside those that routers deliver to.
    let at = format!("{D_HOST}:31777");
    let mut holder = lab.exec(D, &[lab.program(), "internal", "plain-receive", "udp", &at]);
    let mut holder = holder.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let taken = [&["--listen", &at], &PATIENT[..]].concat();
    assert_eq!(found(&taken), ["port-taken"], "{line}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    eventually("the port is free", || found(&taken).is_empty());
    let outside = format!("{D_HOST}:1777");
    let outside = [&["--listen", &outside], &PATIENT[..]].concat();
    assert_eq!(found(&outside), ["port-outside"]);
    let elsewhere = [&["--local", "10.9.9.9"], &PATIENT[..]].concat();
    assert!(found(&elsewhere).contains(&"address-not-here".to_owned()));

    // A key that others can read, and known_hosts that cannot be read.
    let keys = config.join("hawser");
    std::fs::create_dir(&keys).unwrap();
    std::fs::write(keys.join("key"), "x").unwrap();
    std::fs::set_permissions(
        keys.join("key"),
        std::os::unix::fs::PermissionsExt::from_mode(0o644),
    )
    .unwrap();
    std::fs::write(keys.join("known_hosts"), "x\n").unwrap();
    assert_eq!(found(&PATIENT), ["key-open", "keys-file"]);
}

#[test]
fn a_router_that_does_not_run_is_named() {
    // Its control service runs, and offers paths through it.
    let Some(lab) = As::default().up_with("fig7a", "doctor-router", &["--no-router", D]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    // The answer of the kernel comes at once; a path is not alive.
    let output = doctor(&lab, D, folder.path(), &[]);
    assert_eq!(problems(&output), ["router-refused"], "{output:?}");
    let finding = &report(&output)["findings"][0];
    let problem = finding["problem"].as_str().unwrap();
    assert!(
        problem.contains(&format!("{D}#1, {D}#2, {D}#3")),
        "{problem}"
    );
}

#[test]
fn a_router_without_a_route_is_named() {
    let Some(lab) = As::default().up("fig4", "doctor-route") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let isd_as = "1-ff00:0:110";
    // The network of the AS with its routers at an address to which there is no route.
    let place = hawser_lab::Lab::open(&lab.name).unwrap();
    let file = place.dir().join("1-ff00_0_110/topology.json");
    let text = std::fs::read_to_string(file).unwrap();
    let mut topology: Value = serde_json::from_str(&text).unwrap();
    for router in topology["border_routers"]
        .as_object_mut()
        .unwrap()
        .values_mut()
    {
        router["internal_addr"] = "192.0.2.1:30042".into();
    }
    std::fs::write(folder.path().join("topology.json"), topology.to_string()).unwrap();
    let config = folder.path().to_str().unwrap();
    let output = doctor(&lab, isd_as, folder.path(), &["--config-dir", config]);
    let codes = problems(&output);
    assert!(codes.contains(&"no-route".to_owned()), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("192.0.2.1"), "{text}");

    // And a file that is broken.
    std::fs::write(folder.path().join("topology.json"), "{").unwrap();
    let output = doctor(&lab, isd_as, folder.path(), &["--config-dir", config]);
    assert_eq!(problems(&output), ["config-folder"], "{output:?}");
}

#[test]
fn a_user_without_rights_is_told_so() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root, to become another user");
        return;
    }
    // An ordinary user may not look into the folder of the build.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hawser");
    std::fs::copy(env!("CARGO_BIN_EXE_hawser"), &program).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(&program);
        command
            .args(["doctor", "--json", "--sciond", "127.0.0.1:9"])
            .args(args);
        command
            .env("XDG_CONFIG_HOME", "/tmp/hawser-none")
            .uid(NOBODY)
            .gid(NOBODY);
        let output = command.current_dir("/").output().unwrap();
        report(&output)["findings"].as_array().unwrap().clone()
    };
    let severity = |findings: &[Value], code: &str| {
        let mut of = findings.iter().filter(|finding| finding["code"] == code);
        of.next().map(|finding| finding["severity"].clone())
    };
    assert_eq!(severity(&run(&[]), "no-net-admin"), Some("note".into()));
    let needed = run(&["--for", "limit", "--for", "shim"]);
    assert_eq!(
        severity(&needed, "no-net-admin"),
        Some("error".into()),
        "{needed:?}"
    );
    // A state folder of root.
    let state = tempfile::tempdir().unwrap();
    let state = state.path().to_str().unwrap();
    let unwritable = run(&["--state", state]);
    assert_eq!(
        severity(&unwritable, "folder-not-writable"),
        Some("error".into())
    );
}

#[test]
fn a_full_disk_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().to_str().unwrap();
    // In a mount namespace, which ends with the command.
    let script = "mount -t tmpfs -o size=64k none \"$0\" && \
                  { head -c 65536 /dev/zero > \"$0/file\" || true; } && \
                  exec \"$1\" doctor --json --sciond 127.0.0.1:9 --state \"$0\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script, state]);
    command.arg(env!("CARGO_BIN_EXE_hawser"));
    let output = command
        .env("XDG_CONFIG_HOME", folder.path())
        .output()
        .unwrap();
    if output.stdout.is_empty() {
        eprintln!("skipped: no mount namespaces here: {output:?}");
        return;
    }
    let report = report(&output);
    let full = report["findings"].as_array().unwrap().iter();
    let mut full = full.filter(|finding| finding["code"] == "disk-full");
    let full = full.next().unwrap_or_else(|| panic!("{report}"));
    let problem = full["problem"].as_str().unwrap();
    assert!(
        problem.contains(state) && problem.contains("0 KiB"),
        "{problem}"
    );
}
