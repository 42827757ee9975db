//! Commands that list and show change nothing: no file, no device, no process.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{As, TestLab, eventually, topology};

const NETWORK: &str = r#"
ASes:
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CHILD, rate: 100Mbit, delay: 1ms}
"#;
const HERE: &str = "1-ff00:0:111";
const THERE: &str = "1-ff00:0:110";

/// Everything that a command could change, by name.
type Snapshot = BTreeMap<String, String>;

/// The files of a folder: what they are, when they were changed, and what they have in them. Logs are
/// those of services that answer.
fn files(folder: &Path, found: &mut Snapshot) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let about = path.symlink_metadata().unwrap();
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        let content = match about.is_file() && !is_log {
            true => fs::read(&path).unwrap(),
            false => Vec::new(),
        };
        let time = match is_log {
            true => (0, 0),
            false => (about.mtime(), about.mtime_nsec()),
        };
        let text = format!("{:o} {time:?} {content:?}", about.mode());
        found.insert(path.display().to_string(), text);
        if about.is_dir() {
            files(&path, found);
        }
    }
}

/// The processes whose command line names the folder.
fn processes(folder: &Path, found: &mut Snapshot) {
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(folder.to_str().unwrap()) {
            found.insert(entry.path().display().to_string(), line);
        }
    }
}

/// Devices, addresses, routes, queueing disciplines and filters of the namespace of an AS.
fn network(lab: &TestLab, isd_as: &str, found: &mut Snapshot) {
    for command in [
        "ip -j link; ip -j addr; ip -j route show table all; ip -j -6 route show table all; ip rule",
        r"tc qdisc; for dev in $(ip -o link | sed 's/^[0-9]*: \([^@:]*\).*/\1/'); do tc filter show dev $dev; tc class show dev $dev; done",
        "ls /proc/sys/net/mptcp && cat /proc/sys/net/mptcp/enabled; true",
    ] {
        let output = lab.exec(isd_as, &["sh", "-c", command]).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        // The kernel says in its own time that a new device is up.
        let text = String::from_utf8(output.stdout).unwrap();
        let text = text.replace("\"operstate\":\"UNKNOWN\"", "\"operstate\":\"UP\"");
        found.insert(format!("{isd_as}: {command}"), text);
    }
}

/// Whether the kernel has set up all devices in the namespace of an AS: the last thing that it adds for each,
/// in its own time, is the route of its IPv6 multicast.
fn is_settled(lab: &TestLab, isd_as: &str) -> bool {
    let devices = |field: &str, command: &[&str]| {
        let output = lab.exec(isd_as, command).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
        let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let is_multicast = |one: &&Value| match one.get("flags") {
            Some(Value::Array(flags)) if field == "ifname" => flags.contains(&"MULTICAST".into()),
            _ => true,
        };
        let names = all.iter().filter(is_multicast);
        let names = names.filter_map(|one| Some(one[field].as_str()?.to_owned()));
        names.collect::<BTreeSet<_>>()
    };
    let up = devices("ifname", &["ip", "-j", "link", "show", "up"]);
    let routed = [
        "ip",
        "-j",
        "-6",
        "route",
        "show",
        "table",
        "local",
        "type",
        "multicast",
    ];
    up == devices("dev", &routed)
}

/// A command that runs until this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // SIGTERM, so that it takes down what it has set up.
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.0.wait();
    }
}

#[test]
fn commands_that_show_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [runtime, config, state, cache] = ["run", "config", "state", "cache"].map(|name| {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    });
    let by = As {
        runtime: Some(runtime),
        ..As::default()
    };
    let path = topology(folder.path(), NETWORK);
    let Some(lab) = by.up(&path, "listing") else {
        return;
    };
    let content = folder.path().join("content");
    fs::write(&content, "content").unwrap();
    let torrent = folder.path().join("content.torrent");
    let [content, torrent] = [&content, &torrent].map(|path| path.to_str().unwrap());
    by.print(&["torrent", "create", content, "-o", torrent]);
    lab.assert_answers(HERE, &format!("{THERE},10.0.1.1"));
    let environment = |command: &mut Command| {
        command
            .env("XDG_CONFIG_HOME", &config)
            .env("XDG_STATE_HOME", &state)
            .env("XDG_CACHE_HOME", &cache)
            .env("HOME", folder.path());
    };
    // This host's key is made when it is first shown.
    let mut key = lab.exec(HERE, &[lab.program(), "key"]);
    environment(&mut key);
    let key = key.output().unwrap();
    assert!(key.status.success(), "{key:?}");
    let key = String::from_utf8(key.stdout).unwrap();
    // A service's configuration, links that are not limited, and a shim that runs.
    let (daemon, links) = (
        folder.path().join("daemon.toml"),
        folder.path().join("links.json"),
    );
    let toml = format!(
        "state = 'served'\n[receive]\nfolder = 'config'\nallow = ['{}']\n",
        key.trim()
    );
    fs::write(&daemon, toml).unwrap();
    let json =
        r#"{"1": {"AS_ID": 1, "IsUserAS": true, "Bandwidth": 500, "IP-Address": "10.0.1.1"}}"#;
    fs::write(&links, json).unwrap();
    let [daemon, links] = [&daemon, &links].map(|path| path.to_str().unwrap());
    let shim = format!("listing-{}", std::process::id());
    let shim = shim.as_str();
    let up = [lab.program(), "shim", "up", "--name", shim, "--allow-any"];
    let mut up = lab.exec(HERE, &up);
    environment(&mut up);
    let _shim = Running(up.stdout(Stdio::null()).spawn().unwrap());
    let shim_status = ["shim", "status", "--name", shim];
    eventually("the shim is up", || {
        let command = [&[lab.program()][..], &shim_status[..]].concat();
        let mut status = lab.exec(HERE, &command);
        environment(&mut status);
        status.output().unwrap().status.success()
    });
    let snapshot = || {
        let mut found = Snapshot::new();
        files(folder.path(), &mut found);
        processes(folder.path(), &mut found);
        for isd_as in [HERE, THERE] {
            network(&lab, isd_as, &mut found);
        }
        found
    };
    // What a killed lab left behind: commands that show it must not remove it.
    let remains = folder.path().join("run/hawser/lab/remains");
    fs::create_dir(&remains).unwrap();
    fs::write(remains.join("settings.json"), "{").unwrap();

    let name = ["--name", &lab.name];
    let outside: &[&[&str]] = &[
        &["lab", "list"],
        &["lab", "list", "--json"],
        &["lab", "status"],
        &["lab", "status", "--json"],
        &["lab", "graph"],
        &["lab", "logs"],
        &["torrent", "show", torrent],
        &["daemon", "--check", "--config", daemon],
        &["simulate", "--generate", "10"],
        &["completions", "bash"],
        &["man"],
        &["torrent", "show", torrent, "--json"],
    ];
    let host = format!("{THERE},10.0.1.1");
    let inside: &[&[&str]] = &[
        &["limit", "show"],
        &["limit", "show", "--json"],
        &["limit", "show", "--prometheus"],
        &["limit", "apply", "--dry-run", "--links", links],
        &shim_status,
        &["shim", "status", "--name", shim, "--json", "--explain"],
        &["shim", "status"],
        &["shim", "status", "--json"],
        &["shim", "map", "list"],
        &["key", "path"],
        &["key", "show"],
        &["paths", THERE],
        &["paths", THERE, "--json"],
        &["ping", &host, "-c", "1"],
        &["traceroute", &host],
        &["doctor"],
        &["doctor", "--json"],
    ];
    eventually("the kernel has set up all devices", || {
        [HERE, THERE].iter().all(|isd_as| is_settled(&lab, isd_as))
    });
    let before = snapshot();
    let check = |args: &[&str], mut command: Command| {
        environment(&mut command);
        let output = command.output().unwrap();
        // Some have nothing to show; none is used wrongly.
        assert_ne!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert_eq!(snapshot(), before, "{args:?}: {output:?}");
    };
    for args in outside {
        let of_lab = args[0] == "lab" && args[1] != "list";
        let name: &[&str] = if of_lab { &name } else { &[] };
        let args = [*args, name].concat();
        check(&args, by.command(&args));
    }
    for args in inside {
        let command = [&[lab.program()][..], args].concat();
        check(args, lab.exec(HERE, &command));
    }
}
