//! Docker engines of a test, each in namespaces of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::machine::Machine;

/// Longest wait for an engine.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// A Docker engine with images and containers of its own. It is process 1 of a process namespace, with
/// mounts and a network of its own: when it is killed nothing of it stays, not even if the test is killed.
pub struct Docker {
    /// The network that it, and nothing else, is in.
    pub machine: Machine,
    /// `unshare`, whose child the engine is.
    process: Child,
    folder: TempDir,
    /// The control group of its containers.
    group: String,
}

impl Docker {
    /// An engine; says why there is none.
    pub fn start(name: &str) -> Option<Self> {
        if Command::new("dockerd").arg("--version").output().is_err() {
            eprintln!("skipped: dockerd is not installed (docker.io)");
            return None;
        }
        let machine = Machine::new();
        // Paths of its sockets are short.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let group = format!("hawser-{name}-{}", std::process::id());
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "nsenter"]);
        command.arg(format!("--net={}", machine.file()));
        command.args(["unshare", "--mount", "--propagation", "private"]);
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.args(["dockerd", "--bridge=none", "--iptables=false"]);
        command.args(["--ip6tables=false", "--ip-masq=false", "--ip-forward=false"]);
        command.arg(format!("--cgroup-parent=/{group}"));
        for (flag, file) in [
            ("--data-root", "data"),
            ("--exec-root", "exec"),
            ("--pidfile", "pid"),
        ] {
            command.arg(flag).arg(folder.path().join(file));
        }
        let socket = format!("unix://{}", folder.path().join("socket").display());
        command.args(["--host", &socket]);
        let process = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let mut docker = Self {
            machine,
            process,
            folder,
            group,
        };
        match docker.wait() {
            true => Some(docker),
            false => {
                let log = fs::read_to_string(docker.folder.path().join("log")).unwrap();
                let last = log.lines().last().unwrap_or_default();
                eprintln!("skipped: a Docker engine cannot start here: {last}");
                None
            }
        }
    }

    /// Waits until it answers; returns false if it ends.
    fn wait(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while !self
            .command(&["version"])
            .output()
            .unwrap()
            .status
            .success()
        {
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(Instant::now() < deadline, "the engine does not answer");
            thread::sleep(Duration::from_millis(100));
        }
        true
    }

    /// A command to it.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("docker");
        let socket = self.folder.path().join("socket");
        command
            .arg("--host")
            .arg(format!("unix://{}", socket.display()));
        // The builder of the engine itself, which every version of the program can use.
        command.env("DOCKER_BUILDKIT", "0").args(args);
        command
    }

    /// Runs a command that must succeed. Returns what it prints.
    pub fn run(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "docker {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Loads an image, and makes one of it that has the program `ip` too, as the exported recipe does.
    pub fn load(&self, archive: &Path, base: &str, with_ip: &str) {
        self.run(&["load", "--quiet", "--input", archive.to_str().unwrap()]);
        let context = tempfile::tempdir().unwrap();
        copy_ip(&context.path().join("root"));
        let recipe = format!("FROM {base}\nCOPY root /\n");
        fs::write(context.path().join("Dockerfile"), recipe).unwrap();
        let context = context.path().to_str().unwrap();
        self.run(&["build", "--quiet", "--tag", with_ip, context]);
    }

    /// The machine of a container.
    pub fn container(&self, name: &str) -> Machine {
        let pid = self.run(&["inspect", "--format", "{{.State.Pid}}", name]);
        let children = format!("/proc/{0}/task/{0}/children", self.process.id());
        let engine = fs::read_to_string(children).unwrap();
        // The number is that of the engine's process namespace, which its /proc shows.
        let file = format!("/proc/{}/root/proc/{}/ns/net", engine.trim(), pid.trim());
        Machine::open(Path::new(&file))
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        // Containers that are removed leave no control groups.
        let all = self.command(&["ps", "--all", "--quiet"]).output();
        let all = all.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let all = all.unwrap_or_default();
        let all: Vec<&str> = all.split_whitespace().collect();
        if !all.is_empty() {
            let _ = self
                .command(&[&["rm", "--force"][..], &all].concat())
                .output();
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        let folders = fs::read_dir("/sys/fs/cgroup").into_iter().flatten();
        let folders = folders.flatten().map(|entry| entry.path());
        for folder in folders.chain([PathBuf::from("/sys/fs/cgroup")]) {
            let _ = fs::remove_dir(folder.join(&self.group));
        }
    }
}

/// Copies the program `ip` and its libraries to below `root`.
fn copy_ip(root: &Path) {
    let find = Command::new("sh").args(["-c", "command -v ip"]).output();
    let ip = String::from_utf8(find.unwrap().stdout).unwrap();
    let ip = fs::canonicalize(ip.trim()).unwrap();
    let copy = |from: &Path, to: &str| {
        let to = root.join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    copy(&ip, "/usr/bin/ip");
    let libraries = Command::new("ldd").arg(&ip).output().unwrap();
    let libraries = String::from_utf8(libraries.stdout).unwrap();
    let files = libraries.split_whitespace().filter(|w| w.starts_with('/'));
    for file in files {
        copy(Path::new(file), file);
    }
}
