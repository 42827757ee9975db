//! aria2.

use std::process::Command;

use super::Task;

pub fn command(task: &Task) -> Command {
    let manner = task.manner;
    let rate = manner.rate.unwrap_or(0);
    let mut command = Command::new("aria2c");
    command
        .args([
            "--no-conf=true",
            "--enable-dht=false",
            "--enable-dht6=false",
        ])
        .args(["--bt-enable-lpd=false", "--enable-peer-exchange=false"])
        .args(["--seed-ratio=0.0", "--check-integrity=true"])
        .args(["--file-allocation=none", "--summary-interval=0"])
        .arg(format!("--listen-port={}", task.addr.port()))
        .arg(format!("--max-overall-upload-limit={rate}K"))
        .arg(format!("--bt-require-crypto={}", manner.encrypts))
        .args(manner.encrypts.then_some("--bt-min-crypto-level=arc4"))
        .arg("--dir")
        .arg(task.dir)
        .arg(&task.torrent);
    command
}
