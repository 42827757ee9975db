//! A shell into which commands are pasted.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::namespace::{NetNs, is_privileged};
use hawser_kernel::netlink::Netlink;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// What commands print where they are not allowed to work.
const NO_NAMESPACES: &str = "user namespaces are not allowed here";
const NO_TUN: &str = "this process may not open /dev/net/tun";

/// A shell in a temporary folder, with its own labs.
pub struct Shell {
    folder: TempDir,
}

/// How a script ended.
pub enum Ended {
    /// Every command worked.
    Done,
    /// Namespaces of a lab, or TUN devices in them, are not allowed on this machine.
    NoNamespaces(String),
    /// A command failed.
    Failed {
        /// The block of the command.
        at: String,
        /// All output.
        output: String,
    },
}

impl Shell {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        std::fs::create_dir(folder.path().join("run")).unwrap();
        Self { folder }
    }

    fn command(&self, program: &str) -> Command {
        let hawser = Path::new(env!("CARGO_BIN_EXE_hawser")).parent().unwrap();
        let path = format!("{}:{}", hawser.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path().join("work"))
            .env("PATH", path)
            // Keeps labs of the same names outside apart.
            .env("XDG_RUNTIME_DIR", self.folder.path().join("run"))
            // Keeps the user's keys out.
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env_remove("SCION_DAEMON")
            .env_remove("SCION_DAEMON_ADDRESS")
            .env_remove("SCION_LOCAL_ADDR");
        command
    }

    /// Runs a script until a command fails, and then kills its background processes.
    pub fn paste(&self, script: &str) -> Ended {
        let file = self.folder.path().join("output");
        let output = File::create(&file).unwrap();
        let mut shell = self.command("bash");
        let commands = self.folder.path().join("commands");
        std::fs::write(&commands, script).unwrap();
        shell
            .args(["-e", "-o", "pipefail"])
            .arg(commands)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .process_group(0);
        let mut shell = spawn_apart(shell).unwrap();
        let written = || String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        let status = loop {
            if let Some(status) = shell.try_wait().unwrap() {
                break Some(status);
            }
            // A page may wait for a shim that is not allowed to begin.
            if written().contains(NO_TUN) {
                break None;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        if let Some(group) = Pid::from_raw(shell.id() as i32) {
            // No process of the script may remain.
            let _ = kill_process_group(group, Signal::KILL);
        }
        if status.is_some_and(|status| status.success()) {
            return Ended::Done;
        }
        // Has an effect only after a kill.
        let _ = shell.wait();
        let output = written();
        let refused = |line: &&str| line.contains(NO_NAMESPACES) || line.contains(NO_TUN);
        if let Some(line) = output.lines().find(refused) {
            return Ended::NoNamespaces(line.to_owned());
        }
        let mut blocks = output.lines().filter_map(|line| line.strip_prefix('@'));
        Ended::Failed {
            at: blocks.next_back().unwrap_or("the shell").to_owned(),
            output,
        }
    }
}

/// Spawns `command` where its ports are no other program's: the commands of the pages name some. Without the
/// right to a network namespace it shares those of this machine.
fn spawn_apart(mut command: Command) -> io::Result<Child> {
    if !is_privileged() {
        return command.spawn();
    }
    NetNs::create()?.run(|| {
        Netlink::open()?.set_up(LOOPBACK, true)?;
        command.spawn()
    })?
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Take down labs that a page left up.
        let list = self.command("hawser").args(["lab", "list"]).output();
        let names = list.map(|list| String::from_utf8_lossy(&list.stdout).into_owned());
        for line in names.unwrap_or_default().lines() {
            let name = line.split_whitespace().next().unwrap_or_default();
            let _ = self
                .command("hawser")
                .args(["lab", "down", "--name", name])
                .output();
        }
    }
}
