//! qBittorrent, without its windows.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use super::Task;

pub fn command(task: &Task) -> Command {
    let folder = task.home.join("qBittorrent/config");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("qBittorrent.conf"), settings(task)).unwrap();
    let mut profile = "--profile=".to_owned();
    profile.push_str(task.home.to_str().unwrap());
    let mut command = Command::new("qbittorrent-nox");
    command.arg(profile).arg(&task.torrent);
    command
}

/// TCP or uTP only, with peers found in one way alone; it enters the DHT at [`super::PUBLIC_NODE`].
fn settings(task: &Task) -> String {
    // Its own page must be somewhere.
    let page = TcpListener::bind("127.0.0.1:0").unwrap();
    let page = page.local_addr().unwrap().port();
    format!(
        r"[LegalNotice]
Accepted=true

[BitTorrent]
Session\AddTorrentPaused=false
Session\BTProtocol={protocol}
Session\DHTEnabled={dht}
Session\DefaultSavePath={dir}
Session\Encryption={encryption}
Session\GlobalDLSpeedLimit={download_rate}
Session\GlobalUPSpeedLimit={rate}
Session\IgnoreLimitsOnLAN=false
Session\InterfaceAddress={ip}
Session\LSDEnabled=false
Session\PeXEnabled={exchanges}
Session\Port={port}
Session\QueueingSystemEnabled=false

[Network]
PortForwardingEnabled=false

[Preferences]
WebUI\Address=127.0.0.1
WebUI\Port={page}
",
        dir = task.dir.display(),
        encryption = if task.manner.encrypts { 1 } else { 2 },
        protocol = if task.manner.utp { "UTP" } else { "TCP" },
        dht = task.manner.finds.node().is_some(),
        download_rate = task.manner.download_rate.unwrap_or(0),
        exchanges = task.manner.finds.exchanges(),
        rate = task.manner.rate.unwrap_or(0),
        ip = task.addr.ip(),
        port = task.addr.port(),
    )
}
