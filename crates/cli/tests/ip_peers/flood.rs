//! Flood, a web front end of Transmission, commands the daemon for a day's work. `HAWSER_FLOOD` is the path of
//! its `dist/index.js`, which Node runs; without it the test is skipped, with a message.

use std::io::Write;

use serde_json::json;

use super::daemon::{daemon, object};
use super::finding::{await_seeder, tracker};
use super::*;

/// A Flood that commands one daemon, ended with its test.
struct Flood {
    process: Running,
    address: String,
    cookie: String,
}

impl Flood {
    /// For the daemon with this API and token. It may change files below the folder.
    fn start(program: &str, files: &Files, api: &str, token: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut node = Command::new("node");
        node.arg(program).env("HOME", files.name("flood"));
        node.args(["--auth", "none", "--rundir", &files.name("flood")]);
        node.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
        node.args(["--trurl", &format!("http://{api}/transmission/rpc")]);
        node.args(["--truser", "any", "--trpass", token]);
        node.arg("--allowedpath").arg(files.folder.path());
        let process = Running::spawn(&mut node).expect("node, which runs Flood");
        let mut flood = Self {
            process,
            address: address.to_string(),
            cookie: String::new(),
        };
        flood.cookie = flood.log_in();
        flood
    }

    /// Waits until it listens; returns the cookie of the one user that it has.
    fn log_in(&mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok((_, head, _)) = self.ask("GET", "/auth/verify", &Value::Null) {
                let cookies = head.lines().filter_map(|line| line.split_once(": "));
                let mut cookies =
                    cookies.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
                let (_, cookie) = cookies.next().unwrap_or_else(|| panic!("{head}"));
                return cookie.split(';').next().unwrap_or_default().to_owned();
            }
            if let Some(status) = self.process.child.try_wait().unwrap() {
                panic!("Flood ended, {status}: {}", self.process.log());
            }
            assert!(Instant::now() < deadline, "Flood does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The status, head and body of an answer. It ends with the connection, as of HTTP/1.0.
    fn ask(
        &self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> std::io::Result<(u16, String, Vec<u8>)> {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "{method} /api{path} HTTP/1.0\r\nCookie: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.cookie,
            body.len()
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&answer)));
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.unwrap_or_else(|| panic!("{head}"));
        Ok((status, head, answer.split_off(end + 4)))
    }

    /// Has a request succeed; returns the JSON of its answer, or null where that is none.
    fn works(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, _, answer) = self.ask(method, path, &body).unwrap();
        let text = String::from_utf8_lossy(&answer);
        assert_eq!(status, 200, "{method} {path} {body}: {text}");
        serde_json::from_slice(&answer).unwrap_or_default()
    }

    /// Waits until its list of torrents is as `wanted` says.
    fn list_until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let list = self.works("GET", "/torrents", Value::Null)["torrents"].take();
            if wanted(&list) {
                return list;
            }
            assert!(Instant::now() < deadline, "not {what}: {list}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
fn flood_commands_the_daemon_for_a_days_work() {
    let Ok(program) = std::env::var("HAWSER_FLOOD") else {
        eprintln!("skipped: HAWSER_FLOOD does not name Flood's dist/index.js");
        return;
    };
    let files = Files::new();
    let (_tracker, urls) = tracker(&files);
    fs::create_dir(files.path("set")).unwrap();
    for (name, byte) in [("a", 1), ("b", 2)] {
        fs::write(files.path("set").join(name), [byte; 300_000]).unwrap();
    }
    let (content, torrent) = (files.name("set"), files.name("set.torrent"));
    let create = [
        "torrent", "create", &content, "-o", &torrent, "-a", &urls[0],
    ];
    let created = command(&create).output().unwrap();
    assert!(created.status.success(), "{created:?}");
    let at = ["--no-scion", "--tcp", "127.0.0.1:0", "--json"];
    let mut seeder = Running::start(&[&["seed", &torrent, &content], &at[..]].concat());
    let ready = seeder.json();
    await_seeder(&urls[0], &ready);
    let (_daemon, api) = daemon(&files);
    let token = fs::read_to_string(files.path("state/token")).unwrap();
    let flood = Flood::start(&program, &files, &api, token.trim());

    // Added, without its first file, and with a label.
    let hash = text(&ready, "info_hash").to_owned();
    let key = hash.to_uppercase();
    let encode = Command::new("base64").args(["-w0", &torrent]).output();
    let encoded = String::from_utf8(encode.unwrap().stdout).unwrap();
    let new = json!({
        "files": [encoded],
        "destination": files.name("first"), "tags": ["one"], "start": false,
        "isBasePath": false, "isCompleted": false,
    });
    assert_eq!(
        flood.works("POST", "/torrents/add-files", new),
        json!([hash])
    );
    let contents = format!("/torrents/{key}/contents");
    let without = json!({"indices": [0], "priority": 0});
    flood.works("PATCH", &contents, without);
    let shown = flood.works("GET", &contents, Value::Null);
    assert_eq!(
        (&shown[0]["priority"], &shown[1]["priority"]),
        (&json!(0), &json!(1))
    );
    // A limit that is no multiple of 1024, and none.
    let settings = "/client/settings";
    flood.works(
        "PATCH",
        settings,
        json!({"throttleGlobalDownSpeed": 1_000_000}),
    );
    let shown = flood.works("GET", settings, Value::Null);
    assert_eq!(shown["throttleGlobalDownSpeed"], 977 * 1024);
    flood.works("PATCH", settings, json!({"throttleGlobalDownSpeed": 0}));
    // Downloaded, then its other file.
    let these = json!({"hashes": [key]});
    flood.works("POST", "/torrents/start", these.clone());
    assert_eq!(object(&files, &["wait", &hash])["status"], "seeding");
    let same = |folder: &str, name: &str| {
        let got = fs::read(files.path(folder).join("set").join(name));
        got.ok() == fs::read(files.path("set").join(name)).ok()
    };
    assert!(same("first", "b") && !same("first", "a"));
    flood.works("PATCH", &contents, json!({"indices": [0], "priority": 2}));
    let list = flood.list_until("complete", |list| list[&key]["percentComplete"] == 100);
    assert_eq!(list[&key]["tags"], json!(["one"]), "{list}");
    assert!(same("first", "a"));
    flood.works("POST", "/torrents/reannounce", these.clone());
    // Paused, moved, its trackers changed.
    flood.works("POST", "/torrents/stop", these.clone());
    flood.list_until("stopped", |list| {
        let status = list[&key]["status"].as_array();
        status.is_some_and(|all| all.contains(&json!("stopped")))
    });
    let second = files.name("second");
    let to = json!({
        "hashes": [key], "destination": second, "moveFiles": true, "isBasePath": false,
        "isCheckHash": false,
    });
    flood.works("POST", "/torrents/move", to);
    flood.list_until("moved", |list| list[&key]["directory"] == second);
    assert!(same("second", "a") && same("second", "b") && !same("first", "a"));
    let trackers = json!({"hashes": [key], "trackers": ["udp://127.0.0.1:1/announce"]});
    flood.works("PATCH", "/torrents/trackers", trackers);
    let shown = flood.works("GET", &format!("/torrents/{key}/trackers"), Value::Null);
    assert_eq!(shown[0]["url"], "udp://127.0.0.1:1/announce", "{shown}");
    let metainfo = format!("/torrents/{key}/metainfo");
    let (status, _, kept) = flood.ask("GET", &metainfo, &Value::Null).unwrap();
    assert_eq!((status, kept), (200, fs::read(&torrent).unwrap()));
    // Removed, with its content.
    let all = json!({"hashes": [key], "deleteData": true});
    flood.works("POST", "/torrents/delete", all);
    flood.list_until("removed", |list| list.get(&key).is_none());
    let deadline = Instant::now() + PATIENCE;
    while files.path("second/set").exists() {
        assert!(Instant::now() < deadline, "its content is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}
