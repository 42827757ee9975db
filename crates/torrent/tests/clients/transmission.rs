//! Transmission.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use super::{Task, Torrent};

/// Gives the daemon, which takes the place of the shell, a link once it listens for that: it takes none
/// by its folder. The first two arguments are the port for that, and the link.
const WITH_LINK: &str = r#"
port=$1 link=$2
shift 2
(for i in $(seq 600); do transmission-remote "$port" -a "$link" && break; sleep 0.1; done) &
exec "$@"
"#;

pub fn command(task: &Task) -> Command {
    let watched = task.home.join("watched");
    fs::create_dir(&watched).unwrap();
    // No other program runs in the namespace.
    let remote = TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = remote.local_addr().unwrap().port();
    let settings = settings(task, &watched, remote);
    fs::write(task.home.join("settings.json"), settings).unwrap();
    if let Some(node) = task.manner.finds.node() {
        let node = format!("{} {}\n", node.ip(), node.port());
        fs::write(task.home.join("dht.bootstrap"), node).unwrap();
    }
    let daemon = "transmission-daemon";
    let mut command = match &task.torrent {
        Torrent::File(path) => {
            fs::copy(path, watched.join("it.torrent")).unwrap();
            Command::new(daemon)
        }
        Torrent::Magnet(link) => {
            let mut command = Command::new("sh");
            command.args(["-c", WITH_LINK, "sh", &remote.to_string(), link, daemon]);
            command
        }
    };
    command.args(["--foreground", "--log-debug", "--config-dir"]);
    command.arg(task.home);
    command.args(task.manner.encrypts.then_some("--encryption-required"));
    command
}

/// TCP only, since it would try uTP first, with peers found in one way alone.
fn settings(task: &Task, watched: &Path, remote: u16) -> String {
    let (addr, manner) = (task.addr, task.manner);
    format!(
        r#"{{
  "bind-address-ipv4": "{ip}",
  "dht-enabled": {dht},
  "download-dir": "{dir}",
  "encryption": {encryption},
  "incomplete-dir-enabled": false,
  "lpd-enabled": false,
  "peer-port": {port},
  "pex-enabled": {exchanges},
  "port-forwarding-enabled": false,
  "rename-partial-files": false,
  "rpc-bind-address": "127.0.0.1",
  "rpc-enabled": true,
  "rpc-port": {remote},
  "speed-limit-down": {download_rate},
  "speed-limit-down-enabled": {download_limited},
  "speed-limit-up": {rate},
  "speed-limit-up-enabled": {limited},
  "start-added-torrents": true,
  "utp-enabled": false,
  "watch-dir": "{watched}",
  "watch-dir-enabled": true
}}"#,
        ip = addr.ip(),
        encryption = if manner.encrypts { 2 } else { 0 },
        port = addr.port(),
        dht = manner.finds.node().is_some(),
        exchanges = manner.finds.exchanges(),
        download_rate = manner.download_rate.unwrap_or(0),
        download_limited = manner.download_rate.is_some(),
        rate = manner.rate.unwrap_or(0),
        limited = manner.rate.is_some(),
        dir = task.dir.display(),
        watched = watched.display(),
    )
}
