//! The clients, and how each is started.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::shape::choices;

/// The program that seeds or downloads through libtorrent's Python binding.
const LIBTORRENT: &str = include_str!("libtorrent.py");

/// Interpreters that may have the binding: Debian installs it for its own only.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];

choices! {
    /// A BitTorrent client.
    #[non_exhaustive]
    Client, "client" {
        /// This program.
        Hawser = "hawser",
        /// rqbit, in Rust.
        Rqbit = "rqbit",
        /// libtorrent (Rasterbar), in C++, the engine of qBittorrent and others; with its settings for
        /// high performance.
        Libtorrent = "libtorrent",
    }
}

/// The files and ports of a transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer<'a> {
    /// The `hawser` program.
    pub program: &'a Path,
    pub torrent: &'a Path,
    /// The folder with the seeded file.
    pub seeded: &'a Path,
    /// The name of the file.
    pub name: &'a str,
    /// The folder to download into.
    pub output: &'a Path,
    /// The ports of the seeders on 127.0.0.1.
    pub seeders: &'a [u16],
    /// The port of the leecher.
    pub leecher: u16,
}

impl Client {
    /// The version of the installed client; `None` if it is not installed.
    pub(crate) fn version(self, program: &Path) -> Option<String> {
        let mut command = match self {
            Self::Hawser => Command::new(program),
            Self::Rqbit => Command::new("rqbit"),
            Self::Libtorrent => {
                let mut command = Command::new(python()?);
                command.args(["-c", "import libtorrent; print(libtorrent.__version__)"]);
                return answer(command);
            }
        };
        command.arg("--version");
        answer(command)
    }

    /// How to install it.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::Hawser => "this program does not run",
            Self::Rqbit => "not installed: `cargo install rqbit`, and have it in PATH",
            Self::Libtorrent => "not installed: `apt install python3-libtorrent`",
        }
    }

    /// The command of the seeder at `port`.
    pub(super) fn seed(self, transfer: &Transfer<'_>, port: u16) -> Command {
        match self {
            Self::Hawser => {
                let mut command = Command::new(transfer.program);
                command.arg("seed").arg(transfer.torrent);
                command.arg(transfer.seeded.join(transfer.name));
                command.args(["--no-scion", "--tcp", &format!("127.0.0.1:{port}")]);
                command
            }
            Self::Rqbit => {
                let mut command = rqbit(port);
                command.arg("--overwrite").arg("-o").arg(transfer.seeded);
                command.arg(transfer.torrent);
                command
            }
            Self::Libtorrent => libtorrent("seed", transfer.seeded, transfer, &[port]),
        }
    }

    /// The leecher's command, which ends once everything is verified.
    pub(super) fn get(self, transfer: &Transfer<'_>) -> Command {
        let peers = transfer.seeders.iter();
        let peers = peers.map(|port| format!("127.0.0.1:{port}"));
        match self {
            Self::Hawser => {
                let mut command = Command::new(transfer.program);
                command.arg("get").arg(transfer.torrent).arg("-o");
                command.arg(transfer.output);
                for peer in peers {
                    command.args(["--peer", &peer]);
                }
                command
            }
            Self::Rqbit => {
                let mut command = rqbit(transfer.leecher);
                let peers: Vec<String> = peers.collect();
                let peers = peers.join(",");
                command.args(["--exit-on-finish", "--initial-peers", &peers, "-o"]);
                command.arg(transfer.output).arg(transfer.torrent);
                command
            }
            Self::Libtorrent => {
                let own = [transfer.leecher];
                let ports: Vec<u16> = own.iter().chain(transfer.seeders).copied().collect();
                libtorrent("get", transfer.output, transfer, &ports)
            }
        }
    }
}

fn rqbit(port: u16) -> Command {
    let mut command = Command::new("rqbit");
    command.args(["--disable-dht", "--disable-lsd", "--disable-trackers"]);
    command.args(["--disable-upnp-port-forward", "--listen-ip", "127.0.0.1"]);
    command.args(["--listen-port", &port.to_string()]);
    command.args(["download", "--disable-http-api"]);
    command
}

fn libtorrent(action: &str, folder: &Path, transfer: &Transfer<'_>, ports: &[u16]) -> Command {
    let mut command = Command::new(python().unwrap_or(PYTHONS[0]));
    command.args(["-c", LIBTORRENT, action]);
    command.arg(transfer.torrent).arg(folder);
    command.args(ports.iter().map(u16::to_string));
    command
}

/// An interpreter that has libtorrent's binding.
fn python() -> Option<&'static str> {
    PYTHONS.into_iter().find(|python| {
        let mut command = Command::new(python);
        command.args(["-c", "import libtorrent"]);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

/// The first line that a command prints, if it succeeds.
fn answer(mut command: Command) -> Option<String> {
    let output = command.output().ok().filter(|it| it.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default();
    // `rqbit 9.1.0`
    Some(line.rsplit(' ').next().unwrap_or(line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::assert_named;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        assert_named::<Client>();
    }
}
