//! lftp. It has neither encryption nor uTP, and exchanges peers always.

use std::fs;
use std::process::Command;

use super::{Task, Torrent};

pub fn command(task: &Task) -> Command {
    let (addr, manner) = (task.addr, task.manner);
    let kib = |rate: Option<u32>| rate.map_or(0, |kib| u64::from(kib) << 10);
    let (down, up) = (kib(manner.download_rate), kib(manner.rate));
    let torrent = match &task.torrent {
        Torrent::File(path) => path.display().to_string(),
        Torrent::Magnet(link) => link.clone(),
    };
    // Without `wait` it leaves its process for one in the background, which nothing ends.
    let script = format!(
        "set torrent:ip {ip}
set torrent:port-range {port}-{port}
set torrent:use-dht no
set torrent:stop-on-ratio 1000000
set net:limit-total-rate {down}:{up}
debug 5
torrent -O {dir:?} {torrent:?}
wait all
",
        ip = addr.ip(),
        port = addr.port(),
        dir = task.dir.display().to_string(),
    );
    let file = task.home.join("script");
    fs::write(&file, script).unwrap();
    let mut command = Command::new("lftp");
    command.arg("--norc").arg("-f").arg(file);
    command
}
