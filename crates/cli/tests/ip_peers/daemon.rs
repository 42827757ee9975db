//! `hawser daemon` and the commands that it serves.

use std::io::{ErrorKind, Write};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;

#[path = "daemon/again.rs"]
mod again;
#[path = "daemon/automation.rs"]
mod automation;
#[path = "daemon/discovery.rs"]
mod discovery;
#[path = "daemon/kills.rs"]
mod kills;

/// A relay between a download and a seeder, which lets a number of bytes of the seeder pass.
struct Relay {
    address: String,
    allowed: Arc<AtomicU64>,
    passed: Arc<AtomicU64>,
}

impl Relay {
    fn start(seeder: &str, allowed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Self {
            address: listener.local_addr().unwrap().to_string(),
            allowed: Arc::new(AtomicU64::new(allowed)),
            passed: Arc::default(),
        };
        let (seeder, allowed, passed) = (
            seeder.to_owned(),
            Arc::clone(&relay.allowed),
            Arc::clone(&relay.passed),
        );
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&seeder).unwrap();
                let (up, down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || copy(up, server, |_| {}));
                let (allowed, passed) = (Arc::clone(&allowed), Arc::clone(&passed));
                thread::spawn(move || {
                    copy(down, client, |count| {
                        // What is too much waits here, as on a slow line, until the download is killed.
                        while passed.load(Ordering::SeqCst) > allowed.load(Ordering::SeqCst) {
                            thread::sleep(Duration::from_millis(10));
                        }
                        passed.fetch_add(count, Ordering::SeqCst);
                    });
                });
            }
        });
        relay
    }
}

/// Copies until either end is closed; `before` is called before each write.
fn copy(mut from: TcpStream, mut to: TcpStream, before: impl Fn(u64)) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        before(count as u64);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // It may be closed already.
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// A daemon with its state and downloads in a folder of files, and the address of its API.
pub fn daemon(files: &Files) -> (Running, String) {
    daemon_with(files, &[])
}

/// The same with more flags.
fn daemon_with(files: &Files, flags: &[&str]) -> (Running, String) {
    let (state, downloads) = (files.name("state"), files.name("downloads"));
    let args = [
        "daemon",
        "--state",
        &state,
        "--download-dir",
        &downloads,
        "--listen",
        "127.0.0.1:0",
        "--tcp",
        "127.0.0.1:0",
        "--no-scion",
    ];
    let mut daemon = Running::start(&[&args, flags].concat());
    let mut lines = String::new();
    for _ in 0..2 {
        daemon.stdout.read_line(&mut lines).unwrap();
    }
    let address = lines
        .lines()
        .find_map(|line| line.strip_prefix("API at http://"));
    let Some(address) = address.map(str::to_owned) else {
        panic!("{lines}{}", daemon.log());
    };
    (daemon, address)
}

/// Runs a command about the torrents of the daemon.
fn torrent(files: &Files, args: &[&str]) -> Output {
    let state = files.name("state");
    command(&[&["torrent"], args, &["--state", &state, "--json"]].concat())
        .output()
        .unwrap()
}

/// The object that such a command prints.
pub fn object(files: &Files, args: &[&str]) -> Value {
    let output = torrent(files, args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_daemon_that_is_killed_completes_its_download_when_it_runs_again() {
    let files = Files::new();
    let (_seeder, ready) = {
        let (torrent, content) = (files.name("data.torrent"), files.name("data"));
        let at = "127.0.0.1:0";
        let mut seeder = Running::start(&[
            "seed",
            &torrent,
            &content,
            "--json",
            "--no-scion",
            "--tcp",
            at,
        ]);
        let ready = seeder.json();
        (seeder, ready)
    };
    let relay = Relay::start(text(&ready, "listening_tcp"), SIZE / 2);
    let (mut first, _) = daemon(&files);
    let added = object(
        &files,
        &["add", &files.name("data.torrent"), "--peer", &relay.address],
    );
    let hash = text(&added, "info_hash").to_owned();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let list = object(&files, &["list"]);
        let verified = list["torrents"][0]["content"]["verified_bytes"]
            .as_u64()
            .unwrap();
        assert!(verified < SIZE, "the relay let all of it pass");
        if verified > SIZE / 4 {
            break;
        }
        assert!(Instant::now() < deadline, "{list}");
        thread::sleep(Duration::from_millis(20));
    }
    first.signal("KILL");
    assert_eq!(first.code(), None);
    let refused = torrent(&files, &["list"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(1) && message.contains("`hawser daemon`"),
        "{message}"
    );

    let before = relay.passed.load(Ordering::SeqCst);
    relay.allowed.store(u64::MAX, Ordering::SeqCst);
    let (mut second, _) = daemon(&files);
    let settled = object(&files, &["wait", &hash]);
    assert_eq!(settled["status"], "seeding", "{settled}");
    assert!(files.same("downloads"));
    // What was verified before was not fetched again.
    let again = relay.passed.load(Ordering::SeqCst) - before;
    assert!(again < SIZE, "{again} bytes were sent after the restart");
    second.signal("TERM");
    assert_eq!(second.code(), Some(0), "{}", second.log());
}

#[test]
fn torrents_are_commanded_from_the_command_line() {
    let files = Files::new();
    let (seeder, ready) = files.seed("127.0.0.1:0");
    let (mut daemon, _) = daemon(&files);
    let peer = text(&ready, "listening_tcp");
    let link = format!(
        "magnet:?xt=urn:btih:{}&x.pe={peer}",
        text(&ready, "info_hash")
    );
    let added = object(&files, &["add", &link, "--label", "one"]);
    let hash = text(&added, "info_hash");
    assert_eq!(object(&files, &["wait", hash])["status"], "seeding");
    assert_eq!(
        object(&files, &["files", "data"])["files"][0]["bytes"],
        SIZE
    );
    let limited = object(
        &files,
        &[
            "limit",
            &hash[..6],
            "--seed-ratio",
            "2",
            "--seed-time",
            "none",
            "--seed-idle",
            "2h",
            "--limit-down",
            "1gbit",
            "--limit-up",
            "none",
            "--priority",
            "high",
        ],
    );
    assert_eq!(
        limited["limits"],
        serde_json::json!({"ratio": 2.0, "seconds": "unlimited", "idle_seconds": 7200.0,
            "download_rate": 1_000_000_000,
            "upload_rate": "unlimited", "group": null, "exempt": false, "priority": "high",
            "max_peers": "default"})
    );
    drop(seeder);

    object(&files, &["stop", hash]);
    assert_eq!(object(&files, &["wait", hash])["status"], "stopped");
    // A flaw is found, and there is nobody to mend it.
    let content = files.path("downloads/data");
    let mut bytes = fs::read(&content).unwrap();
    bytes[0] ^= 1;
    fs::write(&content, bytes).unwrap();
    object(&files, &["verify", hash]);
    let verified = torrent(&files, &["wait", hash]);
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
    object(&files, &["remove", hash, "--content"]);
    assert_eq!(object(&files, &["list"])["torrents"], serde_json::json!([]));
    assert!(!content.exists());
    let unknown = torrent(&files, &["start", hash]);
    assert_eq!(unknown.status.code(), Some(1), "{unknown:?}");
    daemon.signal("TERM");
    assert_eq!(daemon.code(), Some(0), "{}", daemon.log());
    assert_eq!(torrent(&files, &["list"]).status.code(), Some(1));
}

#[test]
fn peers_groups_trackers_and_names_are_set_from_the_command_line() {
    let files = Files::new();
    let (mut daemon, _) = daemon(&files);
    let added = object(&files, &["add", &files.name("data.torrent"), "--stopped"]);
    let hash = text(&added, "info_hash");
    let limit = |args: &[&str]| {
        let limited = object(&files, &[&["limit", hash], args].concat());
        let limits = &limited["limits"];
        ["max_peers", "group", "exempt"].map(|name| limits[name].clone())
    };
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let set = limit(&["--max-peers", "7", "--in-group", "slow", "--exempt"]);
    assert_eq!(set, ["7.0", r#""slow""#, "true"].map(json));
    let slow = json(
        r#"[{"name": "slow", "download_rate": 10000000, "upload_rate": "unlimited", "exempt": false}]"#,
    );
    let change: &[&str] = &["group", "slow", "--limit-down", "10mbit"];
    for args in [change, &["group"]] {
        assert_eq!(object(&files, args)["groups"], slow);
    }
    let none = limit(&[
        "--max-peers",
        "default",
        "--in-group",
        "none",
        "--not-exempt",
    ]);
    assert_eq!(none, [r#""default""#, "null", "false"].map(json));
    for wrong in [&["group", "slow"][..], &["group", "--limit-up", "none"]] {
        assert_eq!(torrent(&files, wrong).status.code(), Some(2), "{wrong:?}");
    }

    let [one, two] = ["one", "two"].map(|host| format!("http://{host}.example/announce"));
    let trackers = |args: &[&str]| -> Vec<(String, u64)> {
        let detail = object(&files, &[&["trackers", hash], args].concat());
        let trackers = detail["trackers"].as_array().unwrap().iter();
        let shown = trackers.map(|it| (text(it, "url").to_owned(), it["tier"].as_u64().unwrap()));
        shown.collect()
    };
    let added = trackers(&["--add", &one, "--add", &two]);
    assert_eq!(added, [(one.clone(), 0), (two.clone(), 1)]);
    assert_eq!(trackers(&["--remove", &one]), [(two.clone(), 0)]);
    let both = trackers(&["--set", &format!("{one},{two}"), "--reannounce"]);
    assert_eq!(both, [(one.clone(), 0), (two, 0)]);
    let refused = torrent(&files, &["trackers", hash, "--add", &one]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");

    let renamed = object(&files, &["files", hash, "--rename", "data", "other"]);
    assert_eq!(text(&renamed["files"][0], "path"), "other");
    assert_eq!(text(&renamed["torrent"], "name"), "other");
    daemon.signal("TERM");
    assert_eq!(daemon.code(), Some(0), "{}", daemon.log());
}

#[test]
fn some_files_of_a_torrent_are_downloaded_and_others_later() {
    let files = Files::new();
    let (set, made) = (files.path("set"), files.name("set.torrent"));
    fs::create_dir(&set).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(set.join(name), name.repeat(100_000)).unwrap();
    }
    let content = files.name("set");
    let create = ["torrent", "create", &content, "-o", &made];
    assert!(command(&create).output().unwrap().status.success());
    let seed = ["seed", &made, &content, "--json", "--no-scion", "--tcp"];
    let mut seeder = Running::start(&[&seed[..], &["127.0.0.1:0"]].concat());
    let ready = seeder.json();
    let (_daemon, _) = daemon(&files);
    let peer = text(&ready, "listening_tcp");
    object(&files, &["add", &made, "--peer", peer, "--files", "2"]);
    assert_eq!(object(&files, &["wait", "set"])["status"], "seeding");
    let listed = object(&files, &["list"])["torrents"][0].take();
    assert_eq!(listed["content"]["done"], 1.0, "{listed}");
    let state = files.name("state");
    let shown = command(&["torrent", "files", "set", "--state", &state]).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = shown.lines().map(words).collect();
    for begin in ["file 1 skip ", "file 2 normal 100 % "] {
        let is_there = lines.iter().any(|line| line.starts_with(begin));
        assert!(is_there, "{begin}: {shown}");
    }
    let there = |name: &str| files.path("downloads/set").join(name).exists();
    assert_eq!(["a", "b", "c"].map(there), [false, true, false]);

    let flags = ["--skip", "*", "--want", "b,3", "--priority", "high"];
    let changed = object(&files, &[&["files", "set"], &flags[..]].concat());
    let wishes = [0, 1, 2].map(|file| {
        let file = &changed["files"][file];
        (file["wanted"].clone(), file["priority"].clone())
    });
    let wish = |wanted: bool, priority: &str| (wanted.into(), priority.into());
    assert_eq!(
        wishes,
        [
            wish(false, "normal"),
            wish(true, "high"),
            wish(true, "high")
        ]
    );
    assert_eq!(object(&files, &["wait", "set"])["status"], "seeding");
    assert_eq!(["a", "b", "c"].map(there), [false, true, true]);
    let shown = object(&files, &["files", "set", "--sequential"]);
    assert_eq!(shown["files"][2]["verified_bytes"], 100_000);
    for wrong in [&["--want", "4"][..], &["--skip", "*.iso"]] {
        let output = torrent(&files, &[&["files", "set"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

#[test]
fn limits_of_all_torrents_are_kept_until_others_are_given() {
    let files = Files::new();
    let kept = |flags: &[&str]| {
        let (mut daemon, _) = daemon_with(&files, flags);
        daemon.signal("TERM");
        assert_eq!(daemon.code(), Some(0), "{}", daemon.log());
        let text = fs::read_to_string(files.path("state/torrents/limits.json")).unwrap();
        let mut limits = serde_json::from_str::<Value>(&text).unwrap();
        let rates = limits["rates"].take();
        ["download", "upload"].map(|one| match rates[one]["holds"].as_bool() {
            Some(true) => rates[one]["rate"].as_u64(),
            _ => None,
        })
    };
    assert_eq!(kept(&[]), [None, None]);
    let both = ["--limit-down", "80mbit", "--limit-up", "8mbit"];
    assert_eq!(kept(&both), [Some(80_000_000), Some(8_000_000)]);
    assert_eq!(kept(&[]), [Some(80_000_000), Some(8_000_000)]);
    assert_eq!(kept(&["--limit-down", "none"]), [None, Some(8_000_000)]);
}

#[test]
fn alternative_limits_of_all_torrents_are_kept_until_others_are_given() {
    let files = Files::new();
    let kept = |flags: &[&str]| {
        let (mut daemon, _) = daemon_with(&files, flags);
        daemon.signal("TERM");
        assert_eq!(daemon.code(), Some(0), "{}", daemon.log());
        let text = fs::read_to_string(files.path("state/torrents/limits.json")).unwrap();
        let mut limits = serde_json::from_str::<Value>(&text).unwrap();
        limits["alternative"].take()
    };
    let first = kept(&["--alt-limit-up", "80kbit", "--alt-times", "00:00-00:00"]);
    let schedule = serde_json::json!({"is_on": true, "begin": 0, "end": 0, "days": 127});
    // It is always time.
    let all = serde_json::json!({"download": 400_000, "upload": 80_000, "holds": true, "schedule": schedule});
    assert_eq!(first, all);
    assert_eq!(kept(&[]), all);
    let last = kept(&["--alt-limit-down", "8kbit", "--alt-times", "none"]);
    assert_eq!(
        (&last["download"], &last["schedule"]["is_on"]),
        (&8_000.into(), &false.into())
    );
}

#[test]
fn the_limits_of_the_queue_are_kept_until_others_are_given() {
    let files = Files::new();
    let kept = |flags: &[&str]| {
        let (mut daemon, _) = daemon_with(&files, flags);
        daemon.signal("TERM");
        assert_eq!(daemon.code(), Some(0), "{}", daemon.log());
        let text = fs::read_to_string(files.path("state/torrents/limits.json")).unwrap();
        let queue = serde_json::from_str::<Value>(&text).unwrap()["queue"].take();
        ["downloads", "ratio", "idle"].map(|one| match queue[one]["holds"].as_bool() {
            Some(true) => queue[one]["value"].as_f64(),
            _ => None,
        })
    };
    assert_eq!(kept(&[]), [Some(5.0), None, None]);
    let flags = [
        "--downloads",
        "2",
        "--seed-ratio",
        "1.5",
        "--seed-idle",
        "2m",
    ];
    assert_eq!(kept(&flags), [Some(2.0), Some(1.5), Some(120.0)]);
    assert_eq!(kept(&[]), [Some(2.0), Some(1.5), Some(120.0)]);
    let flags = ["--downloads", "none", "--seed-ratio", "none"];
    assert_eq!(kept(&flags), [None, None, Some(120.0)]);
}

#[test]
fn transmission_remote_commands_the_daemon() {
    let files = Files::new();
    let (mut daemon, address) = daemon(&files);
    let token = fs::read_to_string(files.path("state/token")).unwrap();
    let auth = format!("any:{}", token.trim());
    let remote = |args: &[&str]| {
        let mut command = Command::new("transmission-remote");
        let output = match command
            .args([&address, "--auth", &auth])
            .args(args)
            .output()
        {
            Ok(output) => output,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => panic!("transmission-remote: {error}"),
        };
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Some((output.status.success(), printed + &errors))
    };
    let works = |args: &[&str]| match remote(args) {
        Some((true, printed)) => printed,
        other => panic!("{args:?}: {other:?}"),
    };
    let Some((is_added, printed)) = remote(&["--add", &files.name("data.torrent")]) else {
        eprintln!("skipped: transmission-remote is not installed");
        return;
    };
    assert!(is_added, "{printed}");
    let listed = works(&["--list"]);
    assert!(listed.contains(" data\n"), "{listed}");
    works(&["-t", "1", "--stop"]);
    let listed = object(&files, &["list"]);
    let status = text(&listed["torrents"][0], "status");
    assert!(["stopping", "stopped"].contains(&status), "{listed}");
    let shown = works(&["-t", "1", "--info"]);
    assert!(
        shown.contains(text(&listed["torrents"][0], "info_hash")),
        "{shown}"
    );
    works(&["-t", "1", "--downlimit", "100"]);
    works(&["--uplimit", "50"]);
    let limited = object(&files, &["list"]);
    assert_eq!(
        limited["torrents"][0]["limits"]["download_rate"],
        100 * 8_000
    );
    works(&["-t", "1", "--priority-high", "0"]);
    assert!(works(&["-t", "1", "--files"]).contains("High"));
    let session = works(&["--session-info"]);
    assert!(session.contains("Enabled limit: 50 kB/s"), "{session}");
    let session = works(&["--session-info"]);
    assert!(
        session.contains("Default seed ratio limit: Unlimited"),
        "{session}"
    );
    works(&["--global-seedratio", "1.5", "-t", "1", "--seedratio", "3"]);
    let session = works(&["--session-info"]);
    assert!(
        session.contains("Default seed ratio limit: 1.5"),
        "{session}"
    );
    let limited = object(&files, &["list"]);
    assert_eq!(limited["torrents"][0]["limits"]["ratio"], 3.0);
    works(&["-as", "-asd", "30", "-asu", "20"]);
    let session = works(&["--session-info"]);
    assert!(
        session.contains("Enabled turtle limit: 30 kB/s"),
        "{session}"
    );
    assert!(
        session.contains("Enabled turtle limit: 20 kB/s"),
        "{session}"
    );
    works(&["-AS"]);
    let session = works(&["--session-info"]);
    assert!(
        session.contains("Disabled turtle limit: 30 kB/s"),
        "{session}"
    );
    // All of each day.
    for flags in [
        ["--alt-speed-time-begin", "0700"],
        ["--alt-speed-time-end", "0700"],
        ["--alt-speed-days", "1-7"],
    ] {
        works(&flags);
    }
    works(&["--alt-speed-scheduler"]);
    let session = works(&["--session-info"]);
    assert!(
        session.contains("Turtle schedule: 07:00 - 07:00"),
        "{session}"
    );
    assert!(
        session.contains("Enabled turtle limit: 30 kB/s"),
        "{session}"
    );
    works(&["-t", "1", "--tracker-add", "http://127.0.0.1:9/announce"]);
    works(&["-t", "1", "--tracker-add", "udp://127.0.0.1:9"]);
    let listed = works(&["-t", "1", "--info-trackers"]);
    let shown: Vec<_> = listed
        .lines()
        .filter(|line| line.contains("127.0.0.1:9"))
        .collect();
    let [first, second] = shown[..] else {
        panic!("{listed}");
    };
    let number = |line: &str| {
        let number = line
            .trim()
            .strip_prefix("Tracker ")
            .and_then(|it| it.split_once(':'));
        number.unwrap_or_else(|| panic!("{listed}")).0.to_owned()
    };
    for line in [first, second] {
        works(&["-t", "1", "--tracker-remove", &number(line)]);
    }
    let listed = works(&["-t", "1", "--info-trackers"]);
    assert!(!listed.contains("127.0.0.1:9"), "{listed}");
    works(&["-t", "1", "--reannounce"]);
    works(&["-pr", "40"]);
    works(&["-t", "1", "-pr", "30"]);
    assert!(works(&["--session-info"]).contains("Peer limit: 40"));
    assert!(works(&["-t", "1", "--info"]).contains("Peer limit: 30"));
    works(&["-t", "1", "--remove"]);
    let deadline = Instant::now() + PATIENCE;
    while object(&files, &["list"])["torrents"] != serde_json::json!([]) {
        assert!(Instant::now() < deadline, "it is not removed");
        thread::sleep(Duration::from_millis(20));
    }
    works(&["--exit"]);
    assert_eq!(daemon.code(), Some(0), "{}", daemon.log());
}
