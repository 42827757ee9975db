//! rTorrent.

use std::fs;
use std::process::Command;

use super::Task;

pub fn command(task: &Task) -> Command {
    let session = task.home.join("session");
    fs::create_dir(&session).unwrap();
    let (addr, manner) = (task.addr, task.manner);
    let settings = format!(
        "system.daemon.set = true
network.bind_address.set = {ip}
network.port_range.set = {port}-{port}
network.port_random.set = no
directory.default.set = {dir}
session.path.set = {session}
dht.mode.set = disable
protocol.pex.set = no
trackers.use_udp.set = no
protocol.encryption.set = {encryption}
throttle.global_up.max_rate.set_kb = {rate}
",
        ip = addr.ip(),
        port = addr.port(),
        dir = task.dir.display(),
        session = session.display(),
        encryption = match manner.encrypts {
            true => "allow_incoming,try_outgoing,require,require_RC4",
            false => "none",
        },
        rate = manner.rate.unwrap_or(0),
    );
    let file = task.home.join("rtorrent.rc");
    fs::write(&file, settings).unwrap();
    let mut command = Command::new("rtorrent");
    command.arg("-n").arg("-o");
    command
        .arg(format!("import={}", file.display()))
        .arg(&task.torrent);
    command
}
