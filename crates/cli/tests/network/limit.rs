//! `hawser limit` on a device of a network namespace.

mod failures;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use hawser_kernel::namespace::{NetNs, is_privileged};

use crate::support::eventually;

/// The worked example of the thesis (004, listing 5.1).
const EXAMPLE: &str = r#"{
    "1": {"AS_ID": 1, "IsUserAS": true, "Bandwidth": 500, "IP-Address": "fe80::20c:29ff:fe08:993c"},
    "2": {"AS_ID": 2, "IsUserAS": true, "Bandwidth": 500, "IP-Address": "192.168.17.129"}
}"#;

/// A namespace with the device `ens33` in the network of the thesis's example, and a folder of
/// configuration.
struct Bed {
    namespace: NetNs,
    folder: tempfile::TempDir,
}

impl Bed {
    fn new() -> Option<Self> {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return None;
        }
        let bed = Self {
            namespace: NetNs::create().unwrap(),
            folder: tempfile::tempdir().unwrap(),
        };
        bed.sh(
            "ip link set lo up; ip link add name ens33 type veth peer name far; \
             ip addr add 192.168.17.128/24 dev ens33; ip link set ens33 up; ip link set far up; \
             sysctl -qw net.ipv6.conf.far.disable_ipv6=1; \
             ip addr add fe80::1/64 dev ens33 nodad",
        );
        // The kernel says of both ends that they are connected, but not at once.
        eventually("both ends are up", || {
            bed.sh("ip link show up").matches("state UP").count() == 2
        });
        Some(bed)
    }

    fn run(&self, mut command: Command) -> Output {
        let run = || command.output().unwrap();
        self.namespace.run(run).unwrap()
    }

    fn sh(&self, commands: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-ec", commands]);
        let output = self.run(command);
        assert!(output.status.success(), "{commands}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        command
            .arg("limit")
            .args(args)
            .env("XDG_CONFIG_HOME", self.folder.path());
        command
    }

    /// What the program prints, which must succeed.
    fn limit(&self, args: &[&str]) -> String {
        let output = self.run(self.command(args));
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        replace(&path, text);
        path.to_str().unwrap().to_owned()
    }

    fn printed(&self) -> String {
        self.sh(
            "tc qdisc show; tc filter show dev ens33; tc filter show dev ens33 ingress; ip link show",
        )
    }

    fn shown(&self) -> Vec<(String, String, u64)> {
        let json: serde_json::Value =
            serde_json::from_str(&self.limit(&["show", "--json"])).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let rows = json.as_array().unwrap().iter();
        rows.map(|row| {
            (
                text(&row["link"]),
                text(&row["direction"]),
                row["limit"].as_u64().unwrap(),
            )
        })
        .collect()
    }
}

/// Replaces a file as a whole, as the programs that write it do.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

#[test]
fn the_example_of_the_thesis_is_applied_by_its_letters() {
    let Some(bed) = Bed::new() else { return };
    let before = bed.printed();
    let file = bed.file("link_info.json", EXAMPLE);
    assert_eq!(
        bed.limit(&["-l", "-b", "1000", "-p", &file]),
        "limits: 6 added, 0 changed, 0 removed\n"
    );
    let row = |link: &str, direction: &str, rate| (link.to_owned(), direction.to_owned(), rate);
    let expected = [
        row("192.168.17.129", "egress", 500_000),
        row("192.168.17.129", "ingress", 500_000),
        row("fe80::20c:29ff:fe08:993c", "egress", 500_000),
        row("fe80::20c:29ff:fe08:993c", "ingress", 500_000),
        row("default", "egress", 1_000_000),
        row("default", "ingress", 1_000_000),
    ];
    assert_eq!(bed.shown(), expected);
    let classes = bed.sh("tc class show dev ens33");
    assert!(classes.contains("rate 500Kbit ceil 500Kbit"), "{classes}");
    // The settings are kept.
    assert_eq!(bed.limit(&["-l"]), "no changes needed\n");
    let shown = bed.limit(&["-s"]);
    assert!(shown.contains("192.168.17.129"), "{shown}");
    let metrics = bed.limit(&["show", "--prometheus"]);
    let line = "hawser_limit_rate_bits_per_second{attachment_point=\"\",device=\"ens33\",\
                link=\"192.168.17.129\",direction=\"egress\",number=\"\"} 500000";
    assert!(metrics.contains(line), "{metrics}");
    bed.limit(&["-r"]);
    assert_eq!(bed.printed(), before);
}

#[test]
fn what_a_dry_run_prints_is_what_apply_does() {
    let Some(bed) = Bed::new() else { return };
    let before = bed.printed();
    let file = bed.file("links.json", EXAMPLE);
    let apply = ["apply", "--links", &file, "--default", "2mbit"];
    let commands = bed.limit(&[&apply[..], &["--dry-run"]].concat());
    assert_eq!(bed.printed(), before);
    bed.sh(&commands);
    assert_eq!(bed.limit(&apply), "no changes needed\n");
    let commands = bed.limit(&["reset", "--dry-run"]);
    bed.sh(&commands);
    assert_eq!(bed.printed(), before);
}

#[test]
fn links_are_found_in_a_topology() {
    let Some(bed) = Bed::new() else { return };
    let topology = bed.file(
        "topology.json",
        r#"{"isd_as": "1-ff00:0:110", "mtu": 1472, "border_routers": {"br1": {
            "internal_addr": "127.0.0.1:30042", "interfaces": {
            "1": {"isd_as": "1-ff00:0:111", "link_to": "child", "mtu": 1472, "underlay":
                {"local": "192.168.17.128:50000", "remote": "192.168.17.129:50000"}},
            "2": {"isd_as": "1-ff00:0:112", "link_to": "child", "mtu": 1472, "underlay":
                {"local": "192.168.17.128:50001", "remote": "192.168.17.129:50001"}}}}}}"#,
    );
    let from = ["apply", "--from", &topology];
    bed.limit(&[&from[..], &["--limit", "5mbit", "--limit", "2=7mbit"]].concat());
    let rates: Vec<_> = bed
        .shown()
        .into_iter()
        .map(|(link, _, rate)| (link, rate))
        .collect();
    let row = |link: &str, rate| (link.to_owned(), rate);
    let [first, second] = ["192.168.17.129:50000", "192.168.17.129:50001"];
    assert_eq!(
        rates,
        [
            row(first, 5_000_000),
            row(first, 5_000_000),
            row(second, 7_000_000),
            row(second, 7_000_000)
        ]
    );
    let output = bed.run(bed.command(&[&from[..], &["--limit", "9=1mbit"]].concat()));
    assert_eq!(output.status.code(), Some(2));
    let named = bed.file("links.toml", "[[link]]\ninterface = 2\nrate = '1mbit'\n");
    bed.limit(&[&from[..], &["--links", &named]].concat());
    assert_eq!(bed.shown().len(), 2);
}

/// A file with limits of many links.
fn many(rate: &str) -> String {
    let link = |i: u32| {
        let address = std::net::Ipv4Addr::from(0x0a00_0000 + i);
        format!("[[link]]\naddress = '{address}'\ndevice = 'ens33'\nrate = '{rate}'\n")
    };
    (0..600).map(link).collect()
}

#[test]
fn killed_at_any_time_the_next_apply_completes_it() {
    const KILLS: u32 = 25;
    let Some(bed) = Bed::new() else { return };
    let before = bed.printed();
    let files = [
        bed.file("a.toml", &many("1mbit")),
        bed.file("b.toml", &many("2mbit")),
    ];
    let start = Instant::now();
    bed.limit(&["apply", "--links", &files[0]]);
    let whole = start.elapsed();
    for kill in 0..KILLS {
        if kill % 2 == 0 {
            bed.limit(&["reset"]);
        }
        let file = &files[kill as usize % 2];
        let mut command = bed.command(&["apply", "--links", file]);
        let spawn = || command.stdout(Stdio::null()).spawn().unwrap();
        let mut child = bed.namespace.run(spawn).unwrap();
        // Where it is killed is left to chance: the time only spreads it.
        std::thread::sleep(whole.mul_f64(f64::from(kill) / f64::from(KILLS)));
        child.kill().unwrap();
        child.wait().unwrap();
        bed.limit(&["apply", "--links", file]);
        let again = bed.limit(&["apply", "--links", file]);
        assert_eq!(again, "no changes needed\n", "kill {kill}");
    }
    bed.limit(&["reset"]);
    assert_eq!(bed.printed(), before);
}

#[test]
fn a_service_follows_its_file_and_repairs_what_others_change() {
    let Some(bed) = Bed::new() else { return };
    let path = bed.file("links.json", EXAMPLE);
    let mut command = bed.command(&["watch", "--links", &path]);
    let spawn = || {
        command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut service = bed.namespace.run(spawn).unwrap();
    let until = |what: &str, done: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        }
    };
    // What is set up only in part cannot be shown.
    let rates = || {
        let output = bed.run(bed.command(&["show", "--json"]));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let rows = json.as_array().cloned().unwrap_or_default();
        let rates = rows.iter().filter_map(|row| row["limit"].as_u64());
        rates.collect::<Vec<_>>()
    };
    until("set", &|| rates() == [500_000; 4]);
    replace(Path::new(&path), &EXAMPLE.replace("500", "800"));
    until("changed", &|| rates() == [800_000; 4]);
    bed.sh("tc qdisc del dev ens33 root");
    until("repaired", &|| rates() == [800_000; 4]);
    // A wrong file leaves the limits as they are, and is said.
    replace(Path::new(&path), "{");
    let mut line = String::new();
    let mut said = std::io::BufReader::new(service.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert!(line.contains("cut short"), "{line}");
    assert_eq!(rates(), [800_000; 4]);
    replace(Path::new(&path), &EXAMPLE.replace("500", "900"));
    until("right again", &|| rates() == [900_000; 4]);
    // It ends at SIGTERM, and its limits stay.
    let pid = rustix::process::Pid::from_child(&service);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(service.wait().unwrap().success());
    assert_eq!(rates(), [900_000; 4]);
}
