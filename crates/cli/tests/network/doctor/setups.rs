//! Hosts that are broken in fact, each in one way: `hawser doctor` names it, with a remedy.
//!
//! Prints the table of all of them; see it with `--nocapture`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Output;
use std::time::Instant;

use hawser_kernel::namespace::is_privileged;
use serde_json::{Value, json};

use super::{D, doctor, problems, report};
use crate::clock;
use crate::support::{As, TestLab, eventually};

/// What the scripts of [`SETUPS`] use. The program is `$H`, and `$F` the folder with [`prepare`]'s files.
const PRELUDE: &str = r#"
H=$0 F=$1
doctor() { "$H" doctor --json "$@"; }
patient() { doctor --timeout 60s "$@"; }
at_end() { trap "$1" EXIT; }
hold() {
    # Made here: the one before may have left a file, which `>` empties only once the process began.
    held=$(mktemp "$F/held.XXXXXX")
    "$H" internal plain-receive "$1" "$2" >"$held" & at_end "kill $!"
    until [ -s "$held" ]; do sleep 0.05; done
}
clock() { LD_PRELOAD="$F/$1.so"; export LD_PRELOAD; }
keys() {
    XDG_CONFIG_HOME="$F/$1"; export XDG_CONFIG_HOME
    mkdir -p "$F/$1/hawser"; cd "$F/$1/hawser"
}
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$F/hawser" doctor --json "$@"; }
"#;

/// What is broken, the finding (or one of several), and how. Each script runs on D of fig7a, in a mount
/// namespace of its own.
const SETUPS: &[(&str, &str, &str)] = &[
    (
        "the clock is 30 days behind",
        "clock-behind",
        "clock behind; patient --config-dir $F/own",
    ),
    (
        "the clock is 10 days ahead",
        "clock-ahead",
        "clock ahead; patient",
    ),
    (
        "the certificate has expired",
        "certificate-expired",
        "clock years; patient --config-dir $F/own",
    ),
    (
        "the TRC has expired",
        "trc-expired",
        "clock years; patient --config-dir $F/own",
    ),
    (
        "a TRC is damaged",
        "trust-file",
        "patient --config-dir $F/trust",
    ),
    (
        "the daemon is gone",
        "daemon-unreachable",
        "doctor --sciond 127.0.0.1:9",
    ),
    (
        "the daemon hangs",
        "daemon-timeout",
        "hold tcp 127.0.0.1:7001; doctor --sciond 127.0.0.1:7001",
    ),
    (
        "the daemon's address is none",
        "daemon-address",
        "export SCION_DAEMON=here; doctor",
    ),
    (
        "the daemon's name is unknown",
        "daemon-name",
        "doctor --sciond host.invalid:30255",
    ),
    (
        "the bootstrap server is gone",
        "bootstrap-unreachable",
        "doctor --bootstrap http://127.0.0.1:9",
    ),
    (
        "the bootstrap server hangs",
        "bootstrap-timeout",
        "hold tcp 127.0.0.1:7002; doctor --bootstrap http://127.0.0.1:7002",
    ),
    (
        "topology.json is another AS's",
        "as-mismatch",
        "patient --sciond 127.0.0.1:30255 --config-dir $F/other",
    ),
    (
        "topology.json is damaged",
        "config-folder",
        "doctor --config-dir $F/broken",
    ),
    (
        "neither daemon nor topology.json",
        "no-network",
        "unshare --net env -u SCION_DAEMON -u SCION_DAEMON_ADDRESS \"$H\" doctor --json",
    ),
    (
        "the AS has no router",
        "no-router",
        "patient --config-dir $F/no-router",
    ),
    (
        "no route to the router",
        "no-route",
        "doctor --config-dir $F/no-route",
    ),
    (
        "the router does not run",
        "router-refused",
        "doctor --config-dir $F/refused",
    ),
    (
        "the router hangs",
        "router-silent",
        "at_end \"kill -CONT $ROUTERS\"; kill -STOP $ROUTERS; doctor",
    ),
    (
        "the port is blocked",
        "router-silent",
        "at_end 'ip rule add pref 0 lookup local; ip rule del pref 1; ip rule del pref 2'; \
         ip rule add pref 2 lookup local; ip rule add pref 1 ipproto udp dport 31000-32767 blackhole; \
         ip rule del pref 0; doctor",
    ),
    (
        "the MTU is too small",
        "mtu-small",
        "at_end \"ip link set lo mtu $(cat /sys/class/net/lo/mtu)\"; ip link set lo mtu 1300; patient",
    ),
    (
        "the port is taken",
        "port-taken",
        "hold udp 10.0.4.1:31777; patient --listen 10.0.4.1:31777",
    ),
    (
        "routers do not deliver to the port",
        "port-outside",
        "patient --listen 10.0.4.1:1777",
    ),
    (
        "the address is another host's",
        "address-not-here",
        "patient --local 10.9.9.9",
    ),
    (
        "the address is none",
        "local-address",
        "export SCION_LOCAL_ADDR=here; patient",
    ),
    (
        "the destination is in no network",
        "no-paths daemon-invalid",
        "patient 1-ff00:0:99",
    ),
    (
        "the destination is off",
        "host-silent",
        "doctor --timeout 12s 1-ff00:0:1,10.0.1.77",
    ),
    (
        "the destination's key is unknown",
        "key-unknown",
        "patient 1-ff00:0:1,10.0.1.1",
    ),
    (
        "others can read the key",
        "key-open",
        "keys open; echo x >key; chmod 644 key; patient",
    ),
    (
        "the key is damaged",
        "key-unusable",
        "keys damaged; echo x >key; chmod 600 key; patient",
    ),
    (
        "known_hosts is damaged",
        "keys-file",
        "keys known; echo x >known_hosts; patient",
    ),
    (
        "the disk is full",
        "disk-full",
        "mount -t tmpfs -o size=64k none $F/state; head -c 65536 /dev/zero >$F/state/x || true; \
         patient --state $F/state",
    ),
    (
        "the disk takes no more files",
        "no-inodes",
        "mount -t tmpfs -o nr_inodes=2 none $F/state; : >$F/state/x; patient --state $F/state",
    ),
    (
        "the disk is read-only",
        "folder-read-only",
        "mount -t tmpfs -o ro none $F/state; patient --state $F/state",
    ),
    (
        "the state is another user's",
        "folder-not-writable",
        "nobody --timeout 60s --state $F/state",
    ),
    (
        "no right to set limits",
        "no-net-admin",
        "nobody --timeout 60s --for limit",
    ),
    (
        "no TUN device",
        "no-tun",
        "mount -t tmpfs none /dev/net; patient --for shim",
    ),
];

/// Writes the files that the setups need, for every user.
fn prepare(folder: &Path, lab: &TestLab) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_hawser"), folder.join("hawser")).unwrap();
    fs::create_dir(folder.join("state")).unwrap();
    for (name, days) in [("behind", -30), ("ahead", 10), ("years", 20_000)] {
        clock::write(&folder.join(format!("{name}.so")), days * 86400);
    }
    let place = hawser_lab::Lab::open(&lab.name).unwrap();
    let [own, other] = ["1-ff00_0_4", "1-ff00_0_1"].map(|name| place.dir().join(name));
    symlink(&own, folder.join("own")).unwrap();
    symlink(other, folder.join("other")).unwrap();
    let text = fs::read_to_string(own.join("topology.json")).unwrap();
    let topology: Value = serde_json::from_str(&text).unwrap();
    let write = |name: &str, topology: &Value| {
        fs::create_dir(folder.join(name)).unwrap();
        let file = folder.join(name).join("topology.json");
        fs::write(file, topology.to_string()).unwrap();
    };
    let routers_at = |address: &str| {
        let mut topology = topology.clone();
        let routers = topology["border_routers"].as_object_mut().unwrap();
        let routers = routers.values_mut();
        routers.for_each(|router| router["internal_addr"] = json!(address));
        topology
    };
    let mut no_router = topology.clone();
    no_router["border_routers"] = json!({});
    write("no-route", &routers_at("192.0.2.1:30042"));
    write("refused", &routers_at("10.0.4.1:9"));
    write("no-router", &no_router);
    write("trust", &topology);
    fs::create_dir(folder.join("trust/certs")).unwrap();
    fs::write(folder.join("trust/certs/ISD1-B1-S1.trc"), "x").unwrap();
    write("broken", &json!("{"));
}

fn run(lab: &TestLab, folder: &Path, script: &str) -> Output {
    let script = format!("{PRELUDE}{script}");
    let folder_text = folder.to_str().unwrap();
    let mut command = lab.exec(
        D,
        &[
            "unshare",
            "--mount",
            "sh",
            "-c",
            &script,
            lab.program(),
            folder_text,
        ],
    );
    let status = lab.status();
    let ases = status["ases"].as_array().unwrap();
    let own = ases.iter().find(|one| one["isd_as"] == D).unwrap();
    let routers = own["routers"].as_array().unwrap().iter();
    let routers: Vec<String> = routers.map(|router| router["pid"].to_string()).collect();
    command.env("ROUTERS", routers.join(" "));
    command.env("XDG_CONFIG_HOME", folder.join("config"));
    command.env("HOME", folder);
    command.output().unwrap()
}

#[test]
fn each_broken_host_is_named_with_its_remedy() {
    if !is_privileged() {
        eprintln!("skipped: needs root, to break a host");
        return;
    }
    let Some(lab) = As::default().up("fig7a", "doctor-setups") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepare(folder, &lab);
    let config = folder.join("config");
    let is_sound = || problems(&doctor(&lab, D, &config, &[])).is_empty();
    eventually("the host is sound", is_sound);
    let begun = Instant::now();
    let sound = doctor(&lab, D, &config, &[]);
    let took = begun.elapsed();
    println!(
        "on a sound host: {:?}, {} ms",
        problems(&sound),
        took.as_millis()
    );

    let (mut wrong, mut codes) = (Vec::new(), BTreeSet::new());
    println!("{:<38} {:<20} remedy", "set-up", "finding");
    for (what, expected, script) in SETUPS {
        let output = run(&lab, folder, script);
        let found = match output.stdout.is_empty() {
            true => Vec::new(),
            false => report(&output)["findings"].as_array().unwrap().clone(),
        };
        let is_it = |finding: &&Value| {
            let code = finding["code"].as_str().unwrap();
            expected.split(' ').any(|one| one == code) && finding["severity"] != "note"
        };
        let named = found.iter().find(is_it);
        let remedy = named.and_then(|finding| finding["remedy"].as_str());
        let remedy = remedy.filter(|remedy| !remedy.is_empty());
        let (Some(finding), Some(remedy), Some(1)) = (named, remedy, output.status.code()) else {
            wrong.push(format!("{what}: not {expected}, but {found:?}: {output:?}"));
            continue;
        };
        let code = finding["code"].as_str().unwrap().to_owned();
        println!("{what:<38} {code:<20} {remedy}");
        codes.insert(code);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!(
        "{} set-ups, {} kinds of findings",
        SETUPS.len(),
        codes.len()
    );
    assert!(codes.len() >= 20, "{codes:?}");
    // What broke it was mended: nothing of that is left.
    eventually("the host is sound again", is_sound);
}
