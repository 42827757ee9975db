//! Files of links and arguments of `hawser limit` that are wrong. Nothing is changed: each is refused
//! before the kernel is asked for anything but its state.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::{command, refused, wrong};

/// The worked example of the thesis (004, listing 5.1).
const EXAMPLE: &str = r#"{
    "1": {"AS_ID": 1, "IsUserAS": true, "Bandwidth": 500, "IP-Address": "fe80::20c:29ff:fe08:993c"},
    "2": {"AS_ID": 2, "IsUserAS": true, "Bandwidth": 500, "IP-Address": "192.168.17.129"}
}"#;

/// What `hawser limit apply --dry-run` says of a file with this text.
fn apply(folder: &Path, name: &str, text: &str) -> Output {
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let args = ["limit", "apply", "--dry-run", "--links", file];
    command(&args)
        .env("XDG_CONFIG_HOME", folder)
        .output()
        .unwrap()
}

#[test]
fn wrong_files_of_links_are_refused_with_the_entry() {
    let folder = tempfile::tempdir().unwrap();
    let json = |from: &str, to: &str| EXAMPLE.replacen(from, to, 1);
    for (text, words) in [
        (json("500", "-500"), ["entry \"1\"", "Bandwidth is -500"]),
        (json("500", "1e99"), ["entry \"1\"", "choose 8 kbit/s"]),
        (json("500", "\"much\""), ["entry \"1\"", "not a number"]),
        (
            json("192.168.17.129", "192.168.17"),
            ["entry \"2\"", "not an IP address"],
        ),
        (json("\"2\"", "\"1\""), ["entry \"1\"", "twice"]),
        (
            json("\"IsUserAS\"", "\"UserAS\""),
            ["entry \"1\"", "unknown field"],
        ),
        (EXAMPLE[..80].to_owned(), ["links.json", "cut short"]),
        (String::new(), ["links.json", "cut short"]),
    ] {
        let output = apply(folder.path(), "links.json", &text);
        refused(&output, 1, &[&words[..], &["links.json"]].concat());
    }
    let two = "[[link]]\naddress = '192.0.2.1'\ndevice = 'lo'\nrate = '1mbit'\n".repeat(2);
    let output = apply(folder.path(), "links.toml", &two);
    refused(&output, 1, &["link 1 and link 2 are both for 192.0.2.1"]);
    let gone = two
        .replace("'lo'", "'hawser-none'")
        .replacen("2.1", "2.2", 1);
    let output = apply(folder.path(), "links.toml", &gone);
    refused(&output, 1, &["no device hawser-none"]);
    let output = apply(
        folder.path(),
        "links.yaml",
        "link: [{address: 192.0.2.1, rate: 1}]",
    );
    refused(&output, 1, &["links.yaml", "link 1: rate"]);
}

#[test]
fn wrong_arguments_are_wrong_use() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere.json");
    let nowhere = nowhere.to_str().unwrap();
    let limit = |args: &[&str]| {
        let args = [&["limit"], args].concat();
        command(&args)
            .env("XDG_CONFIG_HOME", folder.path())
            .output()
            .unwrap()
    };
    refused(&limit(&["apply", "--links", nowhere]), 2, &["nowhere.json"]);
    refused(&limit(&["apply"]), 2, &["links.toml", "--links"]);
    refused(&limit(&["-p", nowhere]), 2, &["nowhere.json"]);
    refused(&limit(&["-b", "1"]), 2, &["-b 1", "8 to 100000000"]);
    refused(
        &limit(&["show", "--device", "hawser-none"]),
        1,
        &["no device hawser-none"],
    );
    let plot = ["bench", "limit", "--plot", nowhere];
    refused(&command(&plot).output().unwrap(), 2, &["no such folder"]);
    wrong(&["limit"], &["Usage"]);
    wrong(&["limit", "-b", "fast"], &["fast"]);
    wrong(&["limit", "-l", "-r"], &["-r"]);
    wrong(
        &["limit", "apply", "--default", "100bit"],
        &["out of bounds"],
    );
    wrong(&["limit", "apply", "--limit", "1mbit"], &["--from"]);
    wrong(
        &["limit", "apply", "--from", "x", "--limit", "a=1mbit"],
        &["not the number of an interface"],
    );
    wrong(
        &["limit", "show", "--json", "--prometheus"],
        &["--prometheus"],
    );
}
