//! What is seeded and downloaded in a network, and the processes that do so.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A process that is killed at the end of its test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command that must succeed, and returns what it prints.
pub fn print(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Content with its torrent.
pub struct Content(tempfile::TempDir);

impl Content {
    pub const SIZE: usize = 8 << 20;

    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = vec![0; Self::SIZE];
        fastrand::Rng::with_seed(7).fill(&mut bytes);
        fs::write(folder.path().join("data"), bytes).unwrap();
        let content = Self(folder);
        let (data, torrent) = (content.path("data"), content.path("data.torrent"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        command.args(["torrent", "create", &data, "-o", &torrent]);
        print(command);
        content
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Starts a seeder; returns its address, too.
    pub fn seed(&self, start: impl FnOnce(&[&str]) -> Command) -> (Running, String) {
        let (data, torrent) = (self.path("data"), self.path("data.torrent"));
        let mut command = start(&["seed", &torrent, &data, "--json"]);
        let mut seeder = Running(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        let out = seeder.0.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        (seeder, ready["listening"].as_str().unwrap().to_owned())
    }

    /// Downloads from a peer; returns the number of paths over which content came.
    pub fn get(&self, start: impl FnOnce(&[&str]) -> Command, peer: &str) -> usize {
        let (torrent, to) = (self.path("data.torrent"), self.path("downloads"));
        let report = print(start(&[
            "get", &torrent, "-o", &to, "--peer", peer, "--paths", "2", "--json",
        ]));
        let got = fs::read(self.0.path().join("downloads/data")).unwrap();
        assert!(got == fs::read(self.path("data")).unwrap(), "{report}");
        fs::remove_dir_all(self.path("downloads")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let paths = report["paths"].as_array().unwrap().iter();
        paths
            .filter(|path| path["bytes"].as_u64().unwrap() > 0)
            .count()
    }
}
