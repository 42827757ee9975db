//! podman, where it can run containers.

use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hawser_kernel::namespace::NetNs;
use tempfile::TempDir;

/// What podman is configured with, tried in this order: with names of containers by netavark, or without;
/// and each also for systems where neither limits may be raised nor control groups have one version.
const CONFIGURATIONS: [[bool; 2]; 4] = [[true, false], [true, true], [false, false], [false, true]];

/// The configuration with names, and with little that the system must allow.
fn configuration([has_names, is_modest]: [bool; 2]) -> String {
    let mut text = String::new();
    if is_modest {
        text += "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n";
        text += "[engine]\nruntime = \"runc\"\n";
    }
    if has_names {
        text += "[network]\nnetwork_backend = \"netavark\"\n";
    }
    text
}

/// podman with images and containers of its own, which are removed when this is dropped.
pub struct Podman {
    configuration: PathBuf,
    /// Whether containers of a network find each other by their names, if the programs for it are there.
    pub has_names: bool,
    folder: TempDir,
    /// Where it makes its networks: it lets forward and redirect packets there, and not on this machine.
    namespace: NetNs,
}

impl Podman {
    /// A podman that runs `program` with `argument` in the root `root`; says why there is none.
    pub fn find(root: &Path, program: &str, argument: &str) -> Option<Self> {
        if Command::new("podman").arg("--version").output().is_err() {
            eprintln!("skipped: podman is not installed");
            return None;
        }
        let mut reasons = Vec::new();
        for wanted in CONFIGURATIONS {
            // Paths of its sockets are short.
            let folder = tempfile::tempdir_in("/tmp").unwrap();
            let configuration = folder.path().join("containers.conf");
            fs::write(&configuration, self::configuration(wanted)).unwrap();
            let [has_names, _] = wanted;
            let podman = Self {
                configuration,
                has_names,
                folder,
                namespace: NetNs::create().unwrap(),
            };
            let mut command = podman.command(&["run", "--rm", "--network", "none", "--rootfs"]);
            let output = command
                .arg(root)
                .args([program, argument])
                .output()
                .unwrap();
            if output.status.success() {
                return Some(podman);
            }
            reasons.push(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        eprintln!("skipped: podman cannot run containers here: {reasons:?}");
        None
    }

    /// A command of it.
    pub fn command(&self, args: &[&str]) -> Command {
        let (own, namespace) = (std::process::id(), self.namespace.as_fd().as_raw_fd());
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{own}/fd/{namespace}"));
        command.arg("podman");
        let folder = |name| self.folder.path().join(name);
        command.env("CONTAINERS_CONF", &self.configuration);
        command.arg("--root").arg(folder("root"));
        command.arg("--runroot").arg(folder("run"));
        command.arg("--tmpdir").arg(folder("tmp"));
        command.arg("--network-config-dir").arg(folder("networks"));
        command.args(args);
        command
    }

    /// Makes a network in which `image` runs and containers find each other by their names, and returns its
    /// name; says why there is none.
    pub fn network(&self, image: &str) -> Option<String> {
        let network = format!("hawser-{}", std::process::id());
        let create = ["network", "create", &network];
        let run = ["run", "--rm", "--network", &network, image, "--version"];
        for args in [&create[..], &run] {
            let tried = self.command(args).output().unwrap();
            if !self.has_names || !tried.status.success() {
                eprintln!(
                    "skipped: podman has no networks with names here (netavark, aardvark-dns): {tried:?}"
                );
                return None;
            }
        }
        Some(network)
    }

    /// Runs a command that must succeed. Returns what it prints.
    pub fn run(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "podman {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        // Whatever is mounted would keep its folder.
        let clear = |args: &[&str]| -> Option<Output> { self.command(args).output().ok() };
        clear(&["pod", "rm", "--all", "--force", "--time", "0"]);
        clear(&["rm", "--all", "--force", "--time", "0"]);
        clear(&["network", "prune", "--force"]);
        clear(&["rmi", "--all", "--force"]);
    }
}
