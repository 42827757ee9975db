//! Labs in which scionproto's programs take the place of ours.
//!
//! The tests run where they are installed: as its packages name them (`scion-router`) in PATH, or as
//! its sources do (`router`) in the folder `HAWSER_SCIONPROTO`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{As, TestLab, topology};

/// Two ISDs. Their core ASes peer, with each other and with an AS below, one of them has a link to a
/// child in the other ISD, and the smallest MTU is below that of the packets of control services.
const NETWORK: &str = r#"
ASes:
  "1-ff00:0:110": {core: true, voting: true, authoritative: true, issuing: true}
  "1-ff00:0:111": {cert_issuer: 1-ff00:0:110, mtu: 1280}
  "2-ff00:0:210": {core: true, voting: true, authoritative: true, issuing: true}
  "2-ff00:0:211": {cert_issuer: 2-ff00:0:210, underlay: UDP/IPv6}
links:
  - {a: "1-ff00:0:110-A#1", b: "2-ff00:0:210#1", linkAtoB: CORE, mtu: 1280}
  - {a: "1-ff00:0:110-B#2", b: "1-ff00:0:111#1", linkAtoB: CHILD, mtu: 1280}
  - {a: "2-ff00:0:210#2", b: "2-ff00:0:211#1", linkAtoB: CHILD}
  - {a: "1-ff00:0:110-A#7", b: "2-ff00:0:210#7", linkAtoB: PEER}
  - {a: "1-ff00:0:110-B#8", b: "2-ff00:0:211#8", linkAtoB: PEER}
  - {a: "1-ff00:0:110-B#9", b: "2-ff00:0:211#9", linkAtoB: CHILD}
"#;

/// Longest wait for scionproto's beacons, on a busy machine.
const BEACONING: Duration = Duration::from_secs(300);

/// scionproto's programs.
struct Reference {
    /// Where they are; `None` for the folders of PATH.
    folder: Option<PathBuf>,
}

impl Reference {
    /// Finds them; `None`, with a message, if they are not installed.
    fn find() -> Option<Self> {
        let folder = std::env::var_os("HAWSER_SCIONPROTO").map(PathBuf::from);
        let found = Self { folder };
        let wanted = ["control", "daemon", "dispatcher", "router"].map(|name| found.program(name));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places: Vec<_> = std::env::split_paths(&path).collect();
        let is_there = |program: &PathBuf| places.iter().any(|place| place.join(program).is_file());
        if let Some(missing) = wanted.iter().find(|program| !is_there(program)) {
            // A folder that is named must have them.
            assert!(found.folder.is_none(), "{} is no file", missing.display());
            eprintln!("skipped: {} is not installed", missing.display());
            return None;
        }
        Some(found)
    }

    fn program(&self, name: &str) -> PathBuf {
        match &self.folder {
            Some(folder) => folder.join(name),
            None => PathBuf::from(format!("scion-{name}")),
        }
    }
}

/// A program that runs in an AS of a lab, until the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended with the lab.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The services of an AS of a lab as scionproto configures them.
struct Services<'a> {
    reference: &'a Reference,
    lab: &'a TestLab,
    isd_as: &'a str,
    /// The AS's folder in the lab.
    dir: PathBuf,
    topology: Value,
    /// Where configurations and databases are written.
    state: &'a Path,
}

impl<'a> Services<'a> {
    fn new(reference: &'a Reference, lab: &'a TestLab, isd_as: &'a str, state: &'a Path) -> Self {
        let lab_dir = PathBuf::from(lab.status()["dir"].as_str().unwrap());
        let dir = lab_dir.join(isd_as.replace(':', "_"));
        let topology = std::fs::read(dir.join("topology.json")).unwrap();
        Self {
            topology: serde_json::from_slice(&topology).unwrap(),
            reference,
            lab,
            isd_as,
            dir,
            state,
        }
    }

    /// Starts a program whose configuration has the common part, with `id`, and `more`.
    fn start(&self, program: &str, id: &str, more: &str) -> Running {
        let file = self.state.join(format!("{id}.{program}.toml"));
        let dir = self.dir.display();
        let general = format!("[general]\nid = \"{id}\"\nconfig_dir = \"{dir}\"\n");
        std::fs::write(&file, general + more).unwrap();
        self.run(program, &file)
    }

    fn run(&self, program: &str, configuration: &Path) -> Running {
        let program = self.reference.program(program);
        let command = [&program, Path::new("--config"), configuration];
        let command = command.map(|part| part.to_str().unwrap());
        let mut command = self.lab.exec(self.isd_as, &command);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().unwrap())
    }

    /// The names of an AS's services of a kind, as its `topology.json` has them.
    fn names(&self, kind: &str) -> Vec<String> {
        let services = self.topology[kind].as_object().unwrap();
        services.keys().cloned().collect()
    }

    fn routers(&self) -> Vec<Running> {
        let names = self.names("border_routers");
        let one_core = "[router]\nnum_processors = 1\n";
        let start = |name: &String| self.start("router", name, one_core);
        names.iter().map(start).collect()
    }

    /// The control service, the daemon and the dispatcher, which hands packets to the first.
    fn control_plane(&self) -> Vec<Running> {
        let database = |name: &str, of: &str| {
            let file = self.state.join(format!("{}.{of}.{name}", self.isd_as));
            format!("[{name}]\nconnection = \"{}\"\n", file.display())
        };
        let databases = |of: &str, names: &[&str]| {
            let texts = names.iter().map(|name| database(name, of));
            texts.collect::<String>()
        };
        let mut control = databases("control", &["trust_db", "beacon_db", "path_db"]);
        if self.dir.join("crypto/ca").is_dir() {
            control += "[ca]\nmode = \"in-process\"\n";
        }
        // They ask for segments again at once, so that the test sees new ones.
        control += "[path]\nquery_interval = \"1s\"\n";
        let daemon = databases("daemon", &["trust_db", "path_db"])
            + "[sd]\naddress = \"127.0.0.1:30255\"\nquery_interval = \"1s\"\n";
        let name = &self.names("control_service")[0];
        let dispatcher = self.state.join("dispatcher.toml");
        std::fs::write(&dispatcher, "[dispatcher]\nid = \"dispatcher\"\n").unwrap();
        vec![
            self.start("control", name, &control),
            self.start("daemon", &format!("sd-{}", self.isd_as), &daemon),
            self.run("dispatcher", &dispatcher),
        ]
    }
}

/// The paths of all pairs of ASes, in their order; of those that do not answer, nothing.
type Paths = BTreeMap<(String, String), Vec<String>>;

fn alive(lab: &TestLab, ases: &[String]) -> Paths {
    let mut all = Paths::new();
    for src in ases {
        for dst in ases.iter().filter(|dst| *dst != src) {
            let list = ["paths", dst, "--json", "--refresh", "--maxpaths", "0"];
            let output = lab.hawser(src, &list);
            let listing: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let paths = listing["paths"].as_array().into_iter().flatten();
            let paths = paths.filter(|path| path["status"] == "alive");
            let paths = paths.map(|path| path["sequence"].as_str().unwrap().to_owned());
            all.insert((src.clone(), dst.clone()), paths.collect());
        }
    }
    all
}

/// Waits until all paths of a lab are these, and alive.
fn assert_paths(lab: &TestLab, ases: &[String], expected: &Paths) {
    let deadline = Instant::now() + BEACONING;
    loop {
        let found = alive(lab, ases);
        if found == *expected {
            return;
        }
        if Instant::now() > deadline {
            assert_eq!(found, *expected);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn ases(lab: &TestLab) -> Vec<String> {
    let status = lab.status();
    let ases = status["ases"].as_array().unwrap().iter();
    let names = ases.map(|a| a["isd_as"].as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn the_reference_has_the_same_paths_on_our_routers_and_we_on_its() {
    let Some(reference) = Reference::find() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = topology(folder.path(), NETWORK);
    let Some(lab) = As::default().up_with(&file, "own-paths", &[]) else {
        return;
    };
    let ases = ases(&lab);
    let expected = alive(&lab, &ases);
    // Over the core and over both peerings, not over the link to the child in another ISD.
    let below = ("1-ff00:0:111".to_owned(), "2-ff00:0:211".to_owned());
    assert_eq!(expected[&below].len(), 3, "{expected:?}");
    assert!(expected.values().all(|paths| !paths.is_empty()));
    lab.down();

    let flags = ["--no-control", "all", "--no-echo"];
    let lab = As::default()
        .up_with(&file, "their-control", &flags)
        .unwrap();
    let state = tempfile::tempdir().unwrap();
    let services = |isd_as| Services::new(&reference, &lab, isd_as, state.path());
    let running: Vec<_> = ases.iter().map(|a| services(a).control_plane()).collect();
    assert_paths(&lab, &ases, &expected);
    drop(running);
    lab.down();

    let flags = ["--no-router", "all"];
    let lab = As::default()
        .up_with(&file, "their-routers", &flags)
        .unwrap();
    let services = |isd_as| Services::new(&reference, &lab, isd_as, state.path());
    let running: Vec<_> = ases.iter().map(|a| services(a).routers()).collect();
    assert_paths(&lab, &ases, &expected);
    drop(running);
    lab.down();
}
