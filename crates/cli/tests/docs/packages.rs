//! `packaging/`: what the packages contain, without making them. `packaging/test` makes and installs
//! them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::units::Unit;

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging")
        .join(name)
}

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(packaging(folder)).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    entries.map(|entry| name(entry.unwrap())).collect()
}

#[test]
fn each_unit_has_its_user_and_its_file_of_flags() {
    let users = fs::read_to_string(packaging("sysusers.d/hawser.conf")).unwrap();
    let lines = users.lines().filter(|line| !line.starts_with('#'));
    let mut made: BTreeSet<&str> = lines.collect();
    let mut files = names("default");
    for unit in Unit::all() {
        // systemd makes up those of others.
        if let Some(user) = unit
            .get("User")
            .filter(|_| unit.get("DynamicUser").is_none())
        {
            let folder = unit.folders().next().unwrap();
            let (begin, end) = (format!("u {user} - \""), format!("\" /var/lib/{folder}"));
            let line = made
                .iter()
                .find(|line| line.starts_with(&begin) && line.ends_with(&end));
            let line = line.copied();
            let line = line.unwrap_or_else(|| panic!("sysusers.d has no {begin}...{end}"));
            made.remove(line);
        }
        if let Some(file) = unit.get("EnvironmentFile") {
            let name = file.strip_prefix("-/etc/default/").unwrap();
            assert!(files.remove(name), "packaging/default has no {name}");
            let text = fs::read_to_string(packaging("default").join(name)).unwrap();
            assert!(text.lines().all(|line| line.starts_with('#')), "{text}");
            let variables = text.lines().filter_map(|line| line[1..].split_once('='));
            for (variable, _) in variables.filter(|(name, _)| !name.contains(' ')) {
                assert!(unit.get("ExecStart").unwrap().contains(variable), "{name}");
            }
        }
    }
    assert_eq!(made, BTreeSet::new(), "users of no unit");
    assert_eq!(files, BTreeSet::new(), "files that no unit reads");
}

#[test]
fn what_the_deb_takes_from_the_sources_exists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let deb = &manifest["package"]["metadata"]["deb"];
    let license = &deb["license-file"][0];
    let assets = deb["assets"].as_array().unwrap();
    let sources = assets.iter().map(|asset| &asset[0]).chain([license]);
    let sources = sources.map(|source| source.as_str().unwrap());
    let sources: Vec<&str> = sources.filter(|one| !one.starts_with("target/")).collect();
    assert!(sources.len() > 5, "{sources:?}");
    for source in sources {
        // A pattern stands for the files of a folder.
        let exists = match source.split_once('*') {
            Some((begin, end)) => fs::read_dir(folder.join(begin)).unwrap().any(|entry| {
                let name = entry.unwrap().file_name();
                name.to_str().unwrap().ends_with(end)
            }),
            None => folder.join(source).is_file(),
        };
        assert!(exists, "{source}");
    }
    let scripts = deb["maintainer-scripts"].as_str().unwrap();
    for script in fs::read_dir(folder.join(scripts)).unwrap() {
        let file = script.unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        // Where cargo deb puts what units need.
        assert!(text.contains("\n#DEBHELPER#\n"), "{file:?}");
        assert_parses("sh", &file);
    }
}

#[test]
fn scripts_parse() {
    for name in ["build", "test"] {
        assert_parses("bash", &packaging(name));
    }
}

fn assert_parses(shell: &str, script: &Path) {
    let output = Command::new(shell).arg("-n").arg(script).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
