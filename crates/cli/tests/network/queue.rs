//! The daemon in a lab: the transfers that it accepted arrive and its torrents complete, whatever ends on the way.

use std::fs;
use std::process::{Child, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{As, TestLab, eventually};

const SENDER: &str = "1-ff00:0:110";
const RECEIVER: &str = "1-ff00:0:111";
const SERVER: &str = "1-ff00:0:111,10.0.2.1:31000";

/// Two sites with a daemon each; that of the sender has the users alice and bob.
struct Sites {
    lab: TestLab,
    folder: TempDir,
}

/// A daemon that runs; it is killed with its value.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Sites {
    fn new(lab: TestLab) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sites = Self { lab, folder };
        for site in ["a/data", "b/in"] {
            fs::create_dir_all(sites.folder.path().join(site)).unwrap();
        }
        let hash = |token: &str| {
            let output = std::process::Command::new("sh")
                .args(["-c", "printf %s \"$0\" | sha256sum", token])
                .output();
            String::from_utf8(output.unwrap().stdout).unwrap()[..64].to_owned()
        };
        let a = format!(
            "state = 'state'\nkey = 'key'\ntorrents.tcp = 'none'\n\
             [transfers]\nserver_keys = ['{}']\n\
             [users.alice]\ntoken_sha256 = '{}'\nfolders = ['data']\n\
             [users.bob]\ntoken_sha256 = '{}'\nfolders = ['data']\nqueued = 1\nrunning = 1\n",
            sites.key("b"),
            hash("alice"),
            hash("bob"),
        );
        sites.write("a/daemon.toml", a.as_bytes());
        let b = format!(
            "state = 'state'\nkey = 'key'\n\
             torrents = {{ tcp = 'none', scion = '10.0.2.1:31500' }}\n\
             [http]\nanonymous = 'fts'\n[users.fts]\n\
             [receive]\nfolder = 'in'\nlisten = '10.0.2.1:31000'\nallow = ['{}']\n",
            sites.key("a"),
        );
        sites.write("b/daemon.toml", b.as_bytes());
        sites
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.folder.path().join(name), content).unwrap();
    }

    /// The key of a site, which is made by this.
    fn key(&self, site: &str) -> String {
        let file = self.path(&format!("{site}/key"));
        let printed = As::default().print(&["key", "--key", &file]);
        printed.trim().to_owned()
    }

    /// Starts the daemon of a site, and waits until it answers.
    fn serve(&self, isd_as: &str, site: &str) -> Daemon {
        let config = self.path(&format!("{site}/daemon.toml"));
        let downloads = self.path(&format!("{site}/downloads"));
        let args = [env!("CARGO_BIN_EXE_hawser"), "daemon", "--config", &config];
        let args = [&args[..], &["--download-dir", &downloads]].concat();
        let mut command = self.lab.exec(isd_as, &args);
        // Keeps the user's keys out.
        command.env("XDG_CONFIG_HOME", self.folder.path());
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let daemon = Daemon(child);
        eventually("the daemon answers", || {
            let answer = self.ask(isd_as, "", "metrics", &[]);
            answer.contains("# HELP hawser_service_jobs")
        });
        daemon
    }

    /// The answer to a request at a site, by the token of a user.
    fn ask(&self, isd_as: &str, user: &str, path: &str, flags: &[&str]) -> String {
        let url = format!("http://127.0.0.1:9091/{path}");
        let token = format!("Authorization: Bearer {user}");
        let mut args = vec!["curl", "-s", &url];
        if !user.is_empty() {
            args.extend(["-H", &token]);
        }
        args.extend(flags);
        let output = self.lab.exec(isd_as, &args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, user: &str, path: &str, flags: &[&str]) -> Value {
        let text = self.ask(SENDER, user, path, flags);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {text:?}: {error}"))
    }

    fn submit(&self, user: &str, source: &str, destination: &str) -> Value {
        let body = serde_json::json!({
            "source": source, "server": SERVER, "destination": destination,
        });
        self.json(user, "api/v1/transfers", &["-d", &body.to_string()])
    }

    /// Waits until a transfer has a state.
    fn until(&self, id: &Value, state: &str) -> Value {
        let path = format!("api/v1/transfers/{id}");
        let mut job = Value::Null;
        eventually(state, || {
            job = self.json("alice", &path, &[]);
            let failed = job["state"] == "failed" && state != "failed";
            assert!(!failed, "{job}");
            job["state"] == state
        });
        job
    }

    fn set_rate(&self, rate: &str) {
        for interface in ["1-ff00:0:110#1", "1-ff00:0:110#2"] {
            self.lab.set(interface, &["--rate", rate]);
        }
    }

    fn assert_arrived(&self, source: &str, destination: &str) {
        let read = |name: String| fs::read(self.path(&name)).unwrap();
        let same = read(format!("a/data/{source}")) == read(format!("b/in/{destination}"));
        assert!(same, "{destination} differs from {source}");
    }
}

#[test]
fn accepted_transfers_arrive_after_the_daemon_was_killed() {
    let Some(lab) = As::default().up("fig4", "queue") else {
        return;
    };
    let sites = Sites::new(lab);
    let mut bytes = vec![0; 20_000_000];
    fastrand::fill(&mut bytes);
    sites.write("a/data/large", &bytes);
    sites.write("a/data/small", b"small");
    let _receiver = sites.serve(RECEIVER, "b");
    let sender = sites.serve(SENDER, "a");

    // Killed on the way, it continues where it was.
    sites.set_rate("20mbit");
    let job = sites.submit("alice", "large", "runs/1");
    assert_eq!(job["state"], "queued", "{job}");
    let path = format!("api/v1/transfers/{}", job["id"]);
    eventually("something is verified", || {
        let now = sites.json("alice", &path, &[]);
        now["progress"]["verified_bytes"].as_u64() >= Some(3 << 20)
    });
    drop(sender);
    let mut sender = sites.serve(SENDER, "a");
    sites.set_rate("300mbit");
    let done = sites.until(&job["id"], "done");
    assert!(
        done["progress"]["existing_bytes"].as_u64() >= Some(2 << 20),
        "{done}"
    );
    sites.assert_arrived("large", "runs/1");

    // The questions of the plug-in for gfal2, in its order: to both sites.
    let stat =
        |isd_as, user, file: &str| sites.ask(isd_as, user, &format!("stat?file={file}"), &[]);
    assert_eq!(stat(SENDER, "alice", "large"), "OK 1 20000000\n");
    assert_eq!(stat(RECEIVER, "", "plug/in"), "OK 0 0\n");
    let server = sites.ask(RECEIVER, "", "server", &[]);
    let server = server.strip_prefix("OK ").unwrap();
    let request = format!("submit?file=large&dest={server}&destfile=plug/in");
    let answer = sites.ask(SENDER, "alice", &request, &[]);
    let id = answer.trim_end().strip_prefix("OK ").unwrap();
    eventually("it is done", || {
        let status = sites.ask(SENDER, "alice", &format!("status?id={id}"), &[]);
        let fields: Vec<&str> = status.split_whitespace().collect();
        assert_eq!((fields[0], fields.len()), ("OK", 6), "{status}");
        fields[2] == "7" && fields[3] == "1" && fields[5] == "20000000"
    });
    assert_eq!(stat(RECEIVER, "", "plug/in"), "OK 1 20000000\n");
    sites.assert_arrived("large", "plug/in");

    // Limits, tokens, cancelling.
    let wrong = sites.ask(SENDER, "eve", "api/v1/transfers", &["-w", "%{http_code}"]);
    assert!(wrong.ends_with("401"), "{wrong}");
    sites.set_rate("5mbit");
    let first = sites.submit("bob", "large", "bob/1");
    eventually("bob's first runs", || {
        let job = sites.json("bob", &format!("api/v1/transfers/{}", first["id"]), &[]);
        job["state"] == "running"
    });
    let second = sites.submit("bob", "small", "bob/2");
    assert_eq!(second["state"], "queued");
    let third = sites.submit("bob", "small", "bob/3");
    assert!(
        third["error"]
            .as_str()
            .unwrap()
            .contains("1 jobs are queued"),
        "{third}"
    );
    let path = format!("api/v1/transfers/{}", first["id"]);
    let cancelled = sites.json("bob", &path, &["-X", "DELETE"]);
    assert_eq!(cancelled["state"], "cancelled");
    let path = format!("api/v1/transfers/{}", second["id"]);
    eventually("bob's second is done", || {
        sites.json("bob", &path, &[])["state"] == "done"
    });
    sites.assert_arrived("small", "bob/2");

    // It ends when asked to, and the list is kept.
    let terminated = std::process::Command::new("kill")
        .arg(sender.0.id().to_string())
        .status();
    assert!(terminated.unwrap().success());
    assert!(sender.0.wait().unwrap().success());
    let _sender = sites.serve(SENDER, "a");
    let list = sites.json("alice", "api/v1/transfers", &[]);
    let states: Vec<_> = list["transfers"].as_array().unwrap().iter().collect();
    assert!(
        states.len() == 2 && states.iter().all(|job| job["state"] == "done"),
        "{list}"
    );
}

#[test]
fn twenty_kills_lose_neither_a_torrent_nor_a_transfer() {
    const KILLS: usize = 20;
    let Some(lab) = As::default().up("fig4", "kills") else {
        return;
    };
    let sites = Sites::new(lab);
    let mut bytes = vec![0; 24_000_000];
    fastrand::fill(&mut bytes);
    fs::create_dir(sites.folder.path().join("b/downloads")).unwrap();
    sites.write("b/downloads/content", &bytes);
    let (content, torrent) = (
        sites.path("b/downloads/content"),
        sites.path("content.torrent"),
    );
    As::default().print(&["torrent", "create", &content, "-o", &torrent]);
    let _receiver = sites.serve(RECEIVER, "b");
    let command = |isd_as, site: &str, args: &[&str]| -> Value {
        let state = sites.path(&format!("{site}/state"));
        let args = [&["torrent"], args, &["--state", &state, "--json"]].concat();
        let output = sites.lab.hawser(isd_as, &args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    command(RECEIVER, "b", &["add", &torrent]);
    assert_eq!(
        command(RECEIVER, "b", &["wait", "content"])["status"],
        "seeding"
    );

    sites.set_rate("12mbit");
    let mut daemon = sites.serve(SENDER, "a");
    let peer = "1-ff00:0:111,10.0.2.1:31500";
    command(SENDER, "a", &["add", &torrent, "--peer", peer]);
    let mut accepted = Vec::new();
    for kill in 0..KILLS {
        let (source, destination) = (format!("run{kill}"), format!("runs/{kill}"));
        let mut run = vec![0; fastrand::usize(1..500_000)];
        fastrand::fill(&mut run);
        sites.write(&format!("a/data/{source}"), &run);
        let job = sites.submit("alice", &source, &destination);
        assert_eq!(job["state"], "queued", "{job}");
        accepted.push((job["id"].clone(), source, destination));
        // At any time of what it does then.
        std::thread::sleep(std::time::Duration::from_millis(fastrand::u64(0..700)));
        drop(daemon);
        daemon = sites.serve(SENDER, "a");
    }
    sites.set_rate("300mbit");
    for (id, source, destination) in &accepted {
        sites.until(id, "done");
        sites.assert_arrived(source, destination);
    }
    let list = sites.json("alice", "api/v1/transfers", &[]);
    assert_eq!(list["transfers"].as_array().unwrap().len(), KILLS, "{list}");
    let settled = command(SENDER, "a", &["wait", "content"]);
    assert_eq!(settled["status"], "seeding", "{settled}");
    let downloaded = fs::read(sites.path("a/downloads/content")).unwrap();
    assert!(downloaded == bytes, "the content differs");
}
