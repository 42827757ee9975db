//! rTorrent.

use std::fs;
use std::process::Command;

use super::Task;

pub fn command(task: &Task) -> Command {
    let session = task.home.join("session");
    fs::create_dir(&session).unwrap();
    let (addr, manner) = (task.addr, task.manner);
    let dht = match manner.finds.node() {
        Some(node) => format!(
            "dht.mode.set = on\ndht.port.set = {port}\nschedule2 = enter, 1, 0, ((dht.add_node, \"{node}\"))",
            port = addr.port()
        ),
        None => "dht.mode.set = disable".to_owned(),
    };
    let settings = format!(
        "system.daemon.set = true
network.bind_address.set = {ip}
network.port_range.set = {port}-{port}
network.port_random.set = no
directory.default.set = {dir}
session.path.set = {session}
protocol.pex.set = {exchanges}
trackers.use_udp.set = yes
throttle.global_down.max_rate.set_kb = {download_rate}
{dht}
protocol.encryption.set = {encryption}
throttle.global_up.max_rate.set_kb = {rate}
log.open_file = \"all\", {log}
log.add_output = \"info\", \"all\"
log.add_output = \"connection_debug\", \"all\"
log.add_output = \"peer_debug\", \"all\"
log.add_output = \"tracker_debug\", \"all\"
",
        log = task.home.join("log").display(),
        ip = addr.ip(),
        port = addr.port(),
        dir = task.dir.display(),
        session = session.display(),
        encryption = match manner.encrypts {
            true => "allow_incoming,try_outgoing,require,require_RC4",
            false => "none",
        },
        rate = manner.rate.unwrap_or(0),
        download_rate = manner.download_rate.unwrap_or(0),
        exchanges = if manner.finds.exchanges() {
            "yes"
        } else {
            "no"
        },
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
