//! The configuration file.

use std::fs;

use super::common::{command, failed, hawser, printed, refused};

#[test]
fn a_file_gives_defaults_and_what_is_wrong_in_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let name = file.to_str().unwrap();
    let key = folder.path().join("key");
    fs::write(&file, format!("[key]\nkey = {key:?}\njson = true\n")).unwrap();
    let shown = printed(&["--config", name, "key"]);
    assert!(shown.starts_with('{') && key.is_file(), "{shown}");

    // The flag comes before the variable, and either before the usual place.
    let usual = folder.path().join("hawser");
    fs::create_dir(&usual).unwrap();
    fs::write(usual.join("config.toml"), "[key]\njsno = true\n").unwrap();
    let usual = usual.join("config.toml");
    let run = |args: &[&str], variable: Option<&str>| {
        let mut command = command(args);
        command.env("XDG_CONFIG_HOME", folder.path());
        if let Some(file) = variable {
            command.env("HAWSER_CONFIG", file);
        }
        command.output().unwrap()
    };
    let wrong = format!("{}:2: hawser key has no flag --jsno", usual.display());
    refused(&run(&["key"], None), 2, &[&wrong, "did you mean json?"]);
    assert!(run(&["key"], Some(name)).status.success());
    let of_flag = run(&["--config", name, "key"], Some("/nonexistent"));
    assert!(of_flag.status.success(), "{of_flag:?}");
    refused(&run(&["key"], Some("/nonexistent")), 2, &["/nonexistent: "]);
    // `--help` works beside a file that is wrong.
    assert!(run(&["key", "--help"], None).status.success());
}

#[test]
fn a_wrong_value_is_reported_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "[torrent.create]\npiece-length = 'many'\n").unwrap();
    let name = file.to_str().unwrap();
    let output = hawser(&["--config", name, "torrent", "create", "x"]);
    let place = format!("{name}:2: --piece-length=many");
    failed(&output, 2, &["--piece-length", &place]);
}
