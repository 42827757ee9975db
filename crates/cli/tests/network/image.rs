//! `hawser image`: what it writes runs in an empty root, and in podman.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::machine::{Machine, can_run, export, write_archive};
use crate::podman::Podman;

const ARCHIVE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/hawser-image.tar");

/// An image, and a folder for what a test makes of it.
pub struct Made {
    summary: &'static Value,
    folder: TempDir,
}

impl Made {
    /// The image that all tests share, as it takes more than ten seconds to make.
    pub fn new() -> Self {
        static SUMMARY: OnceLock<Value> = OnceLock::new();
        let make = || {
            let output = Command::new(env!("CARGO_BIN_EXE_hawser"))
                .args(["image", "--json", "--force", "-o", ARCHIVE])
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            serde_json::from_slice(&output.stdout).unwrap()
        };
        Self {
            summary: SUMMARY.get_or_init(make),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.summary["name"].as_str().unwrap()
    }

    pub fn archive(&self) -> &'static Path {
        Path::new(ARCHIVE)
    }

    /// The root that a container gets: the layer of the image, and folders that runtimes mount.
    pub fn root(&self) -> PathBuf {
        let layout = self.folder.path().join("layout");
        let root = self.folder.path().join("root");
        fs::create_dir_all(&layout).unwrap();
        untar(self.archive(), &layout);
        let read = |name: &str| -> Value {
            let file = layout.join("blobs").join(name.replace(':', "/"));
            serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
        };
        let manifest = read(self.summary["digest"].as_str().unwrap());
        let layer = manifest["layers"][0]["digest"].as_str().unwrap();
        for name in ["dev", "proc", "sys"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        untar(&layout.join("blobs").join(layer.replace(':', "/")), &root);
        root
    }
}

/// podman with the image of the program, and the name of the image; says why there is none.
pub fn podman_with_image() -> Option<(Podman, String)> {
    if !can_run() {
        return None;
    }
    let made = Made::new();
    let podman = Podman::find(&made.root(), "/usr/bin/hawser", "--version")?;
    podman.run(&["load", "-q", "-i", made.archive().to_str().unwrap()]);
    Some((podman, made.name().to_owned()))
}

fn untar(archive: &Path, to: &Path) {
    let mut command = Command::new("tar");
    let output = command
        .arg("-xf")
        .arg(archive)
        .arg("-C")
        .arg(to)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A command in a root of its own, with an environment of its own, as process 1.
fn inside(root: &Path, args: &[&str]) -> Command {
    let script = "mount --rbind /dev \"$0/dev\" && mount -t proc proc \"$0/proc\" && \
                  exec chroot \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command.args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--propagation",
        "private",
    ]);
    command.args(["sh", "-c", script]).arg(root).args(args);
    command
}

#[test]
fn an_image_runs_in_an_empty_root() {
    if !can_run() {
        return;
    }
    let made = Made::new();
    let root = made.root();
    let output = inside(&root, &["/usr/bin/hawser", "--version"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("hawser "), "{output:?}");
    let mode = fs::metadata(root.join("tmp")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o1777);
    assert!(!root.join("bin").exists() && !root.join("usr/bin/sh").exists());

    // An AS with all its services.
    let folder = tempfile::tempdir().unwrap();
    let fig4 = hawser_topology::Network::ready("fig4").unwrap().to_topo();
    export(&folder, "kubernetes", &fig4);
    let out = folder.path().join("out");
    write_archive(
        &out.join("ases/as1-ff00-0-110.yaml"),
        &root.join("as.tar.gz"),
    );
    let segments = out.join("segments");
    fs::create_dir(root.join("segments")).unwrap();
    for file in fs::read_dir(segments).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), root.join("segments").join(file.file_name())).unwrap();
    }
    let mut machine = Machine::new();
    machine.ip("link add eth0 type veth peer name far");
    machine.ip("address add 10.9.0.1/24 dev eth0");
    machine.ip("link set eth0 up");
    let args = "/usr/bin/hawser as join /as.tar.gz --segments /segments --state /var/lib/as --json";
    let args: Vec<&str> = args.split(' ').collect();
    machine.start(inside(&root, &args));
    machine.wait_ready();
    let output = machine.run(&mut inside(
        &root,
        &["/usr/bin/hawser", "paths", "1-ff00:0:111"],
    ));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("1-ff00:0:111"), "{output:?}");
}

#[test]
fn podman_loads_and_runs_an_image() {
    let Some((podman, name)) = podman_with_image() else {
        return;
    };
    let name = name.as_str();
    let said = podman.run(&["run", "--rm", "--network", "none", name, "--version"]);
    assert!(said.starts_with("hawser "), "{said}");
    let label = "{{index .Config.Labels \"org.opencontainers.image.title\"}}";
    let title = podman.run(&["image", "inspect", "--format", label, name]);
    assert_eq!(title.trim(), "hawser");
    // There is no shell to be run.
    let mut shell = podman.command(&[
        "run",
        "--rm",
        "--network",
        "none",
        "--entrypoint",
        "/bin/sh",
    ]);
    let output = shell.args([name, "-c", "true"]).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
}
