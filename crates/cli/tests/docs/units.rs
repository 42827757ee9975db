//! `packaging/systemd`: what one unit may read, no other may.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A unit: its name, and its settings, of which only the last of each name counts.
pub struct Unit {
    name: String,
    text: String,
    settings: BTreeMap<String, String>,
}

impl Unit {
    pub fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
        let files = fs::read_dir(folder).unwrap();
        let units: Vec<Self> = files
            .map(|file| Self::read(&file.unwrap().path()))
            .collect();
        assert!(units.len() >= 6);
        units
    }

    fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let settings = lines.filter_map(|line| line.split_once('='));
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            name: file.file_stem().unwrap().to_str().unwrap().to_owned(),
            settings: settings.collect(),
            text,
        }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// The folders of its state, below `/var/lib`; the first one has what it must not lose.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        let folders = self.get("StateDirectory").unwrap_or_default();
        folders.split_whitespace()
    }

    /// The user that the unit runs as; `None` for root.
    fn user(&self) -> Option<&str> {
        match self.get("DynamicUser") {
            // systemd makes one up that has the unit's name.
            Some("yes") => Some(self.get("User").unwrap_or(&self.name)),
            _ => self.get("User"),
        }
    }
}

#[test]
fn no_two_units_share_a_user_or_a_folder() {
    let units = Unit::all();
    let mut users = BTreeMap::new();
    let mut folders = BTreeMap::new();
    for unit in &units {
        if let Some(user) = unit.user() {
            let other = users.insert(user, &unit.name);
            assert_eq!(other, None, "{} has the user {user}, too", unit.name);
            assert_eq!(user, unit.name);
            // A group would be shared in the same way.
            assert_eq!(unit.get("Group").unwrap_or(user), user);
        }
        for folder in unit.folders() {
            let other = folders.insert(folder, &unit.name);
            assert_eq!(other, None, "{} has the folder {folder}, too", unit.name);
        }
    }
    for (folder, unit) in &folders {
        let inside = |other: &str| Path::new(other).starts_with(folder) && other != *folder;
        let inner = folders.keys().find(|other| inside(other));
        assert_eq!(inner, None, "it is in the folder of {unit}");
    }
    assert_eq!(users.len(), units.len() - 1, "only the shim runs as root");
}

#[test]
fn each_unit_says_which_user_to_make() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coordinator.md");
    let docs = fs::read_to_string(docs).unwrap();
    for unit in Unit::all() {
        let Some(user) = unit.get("User") else {
            continue;
        };
        let folder = unit.folders().next().unwrap();
        let made = format!("useradd --system --home-dir /var/lib/{folder} {user}\n");
        assert!(unit.text.contains(&made), "{}: {made}", unit.name);
        let row = format!("| `{}` | `{user}` | `/var/lib/{folder}`", unit.name);
        assert!(docs.contains(&row), "{row}");
    }
}

#[test]
fn systemd_takes_every_unit() {
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    };
    assert!(version.status.success());
    let folder = tempfile::tempdir().unwrap();
    let mut files: Vec<PathBuf> = Vec::new();
    for unit in Unit::all() {
        let file = folder.path().join(format!("{}.service", unit.name));
        // Programs of units must exist.
        let text = unit
            .text
            .replace("/usr/bin/hawser", env!("CARGO_BIN_EXE_hawser"));
        fs::write(&file, text).unwrap();
        files.push(file);
    }
    let mut verify = Command::new("systemd-analyze");
    let output = verify.args(["verify", "--man=no"]).args(&files).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // It also looks at units of the system that ours refer to.
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("hawser"))
        .collect();
    assert_eq!(ours, Vec::<&str>::new());
    assert!(output.status.success(), "{said}");
}
