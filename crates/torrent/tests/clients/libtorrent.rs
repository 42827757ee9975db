//! libtorrent, by its bindings for Python.

use std::path::Path;
use std::process::Command;

use super::Task;

/// The interpreter that the distribution's bindings are for.
const PYTHON: &str = "/usr/bin/python3";

/// Adds a torrent or a link, and prints what happens, without an end.
const SCRIPT: &str = r#"
import sys
import libtorrent as lt

torrent, folder, listen, limit, download_limit, encrypts, utp, node = sys.argv[1:]
policy = lt.enc_policy.forced if encrypts == "true" else lt.enc_policy.disabled
session = lt.session({
    "listen_interfaces": listen,
    "outgoing_interfaces": listen.rsplit(":", 1)[0],
    "enable_dht": node != "",
    "dht_bootstrap_nodes": node,
    # All nodes of the test are at one host.
    "dht_restrict_routing_ips": False,
    "dht_restrict_search_ips": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "enable_incoming_utp": utp == "true",
    "enable_outgoing_utp": utp == "true",
    "enable_incoming_tcp": utp != "true",
    "enable_outgoing_tcp": utp != "true",
    "in_enc_policy": int(policy),
    "out_enc_policy": int(policy),
    "allowed_enc_level": int(lt.enc_level.rc4 if encrypts == "true" else lt.enc_level.both),
    "upload_rate_limit": int(limit) * 1024,
    "download_rate_limit": int(download_limit) * 1024,
    "alert_mask": lt.alert.category_t.all_categories & ~lt.alert.category_t.stats_notification,
})
# Limits hold for peers at private addresses, too.
everyone = lt.ip_filter()
everyone.add_rule("0.0.0.0", "255.255.255.255", 1 << lt.session.global_peer_class_id)
session.set_peer_class_filter(everyone)
if torrent.startswith("magnet:"):
    params = lt.parse_magnet_uri(torrent)
else:
    params = lt.add_torrent_params()
    params.ti = lt.torrent_info(torrent)
params.save_path = folder
handle = session.add_torrent(params)
while True:
    session.wait_for_alert(1000)
    for alert in session.pop_alerts():
        print(alert.what(), alert.message(), flush=True)
"#;

/// Makes a torrent of version 2 or of both (BEP 52), whose files are aligned to pieces (BEP 47).
const CREATE: &str = r#"
import sys, os
import libtorrent as lt

content, torrent, version, *web_seeds = sys.argv[1:]
files = lt.file_storage()
lt.add_files(files, content)
flags = lt.create_torrent.v2_only if version == "2" else 0
made = lt.create_torrent(files, 1 << 15, flags)
for url in web_seeds:
    made.add_url_seed(url)
lt.set_piece_hashes(made, os.path.dirname(content))
open(torrent, "wb").write(lt.bencode(made.generate()))
"#;

pub fn is_installed() -> bool {
    let mut command = Command::new(PYTHON);
    let asked = command.args(["-c", "import libtorrent"]).output();
    asked.is_ok_and(|output| output.status.success())
}

pub fn command(task: &Task) -> Command {
    let manner = task.manner;
    let node = manner.finds.node();
    let mut command = Command::new(PYTHON);
    command
        .args(["-c", SCRIPT])
        .arg(&task.torrent)
        .arg(task.dir)
        .arg(task.addr.to_string())
        .arg(manner.rate.unwrap_or(0).to_string())
        .arg(manner.download_rate.unwrap_or(0).to_string())
        .arg(manner.encrypts.to_string())
        .arg(manner.utp.to_string())
        .arg(node.map_or(String::new(), |node| node.to_string()));
    command
}

/// Makes a torrent of version `2` or `hybrid` of the file or folder `content`, perhaps with a web seed.
pub fn create(content: &Path, torrent: &Path, version: &str, web_seed: Option<&str>) {
    let mut command = Command::new(PYTHON);
    command.args(["-c", CREATE]).arg(content).arg(torrent);
    command.arg(version).args(web_seed);
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}
