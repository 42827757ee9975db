//! aria2.

use std::process::Command;

use super::Task;

pub fn command(task: &Task) -> Command {
    let manner = task.manner;
    let (rate, download_rate) = (manner.rate, manner.download_rate);
    let (rate, download_rate) = (rate.unwrap_or(0), download_rate.unwrap_or(0));
    let mut command = Command::new("aria2c");
    command
        .args(["--no-conf=true", "--enable-dht6=false"])
        .arg("--bt-enable-lpd=false")
        .arg(format!(
            "--enable-peer-exchange={}",
            manner.finds.exchanges()
        ))
        .args(["--seed-ratio=0.0", "--check-integrity=true"])
        .args(["--file-allocation=none", "--summary-interval=0"])
        .arg(format!("--listen-port={}", task.addr.port()))
        .arg(format!("--max-overall-upload-limit={rate}K"))
        .arg(format!("--bt-require-crypto={}", manner.encrypts))
        .args(manner.encrypts.then_some("--bt-min-crypto-level=arc4"))
        .arg(format!("--max-overall-download-limit={download_rate}K"));
    // Without the DHT it asks no tracker over UDP. Without a node it finds nobody there.
    command
        .arg("--enable-dht=true")
        .arg(format!("--dht-listen-port={}", task.addr.port()))
        .arg("--dht-file-path")
        .arg(task.home.join("dht.dat"));
    if let Some(node) = manner.finds.node() {
        command.arg(format!("--dht-entry-point={node}"));
    }
    command.arg("--dir").arg(task.dir).arg(&task.torrent);
    command
}
