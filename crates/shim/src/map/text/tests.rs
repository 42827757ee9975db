use std::path::Path;

use hawser_path::Policy;
use proptest::prelude::*;

use super::super::{MapFile, MapFileError};
use super::*;

fn read(text: &str) -> Result<MapFile, MapFileError> {
    MapFile::parse(Path::new("/m/map.toml"), text)
}

#[test]
fn entries_are_read_in_the_order_of_the_text() {
    let text = r#"
# ours
[destinations]
"db.example" = "1-ff00:0:5,10.0.0.1" # a note
"10.1.0.0/16" = { to = "1-ff00:0:4", paths = 8, policy = "p.yml:eu", comment = "site \"B\"" }
files = '1-ff00:0:6'
"#;
    let file = read(text).unwrap();
    let lines: Vec<String> = file.entries().iter().map(line).collect();
    assert_eq!(
        lines,
        [
            r#""db.example" = "1-ff00:0:5,10.0.0.1""#,
            r#""10.1.0.0/16" = { to = "1-ff00:0:4", paths = 8, policy = "p.yml:eu", comment = "site \"B\"" }"#,
            r#""files" = "1-ff00:0:6""#,
        ]
    );
    let numbers: Vec<usize> = file.entries().iter().map(|entry| entry.line).collect();
    assert_eq!(numbers, [4, 5, 6]);
    let names: Vec<String> = file.names().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["db.example", "files"]);
    assert!(read("").unwrap().entries().is_empty());
}

#[test]
fn each_error_is_one_line_that_names_its_line() {
    for (text, lines) in [
        (
            "[destination]\n\"10.1.0.0/16\" = \"1-ff00:0:4\"",
            &["map.toml:1: unknown key `destination`: entries stand below [destinations]"][..],
        ),
        (
            "\"10.1.0.0/16\" = \"1-ff00:0:4\"",
            &["map.toml:1: `10.1.0.0/16` stands outside [destinations]"],
        ),
        (
            "[destinations]\n\"10.1.0.1/16\" = \"1-ff00:0:4\"\n\"127.0.0.1\" = \"x\"\n\"10.2.0.0/16\" = 5",
            &[
                "map.toml:2: `10.1.0.1/16` has bits set beyond its length: write 10.1.0.0/16",
                "map.toml:3: `127.0.0.1` has loopback addresses",
                "map.toml:3: `x` is not one AS",
                "map.toml:4: `10.2.0.0/16` has no target: write a target",
            ],
        ),
        (
            "[destinations]\na = { paths = 9, weight = 2, policy = 1 }\nb = { to = 1 }",
            &[
                "map.toml:2: paths: write a number from 1 to 8",
                "map.toml:2: policy: write a text in quotes",
                "map.toml:2: unknown key `weight`: there are to, paths, policy and comment",
                "map.toml:2: `a` has no target: add to = ",
                "map.toml:3: to: write a text in quotes",
            ],
        ),
        (
            "[destinations]\n\"10.0.0.1\" = \"1-ff00:0:4\"\n\"10.0.0.1/32\" = \"1-ff00:0:5\"",
            &[
                "map.toml:3: `10.0.0.1` is mapped to 1-ff00:0:5 here, and to 1-ff00:0:4 in line 2: remove one of them",
            ],
        ),
        (
            "[destinations]\n\"10.0.0.1\" = \"1-ff00:0:4\"\n\"10.0.0.1\" = \"1-ff00:0:5\"",
            &[
                "map.toml:3: `10.0.0.1` is mapped to a target here, and to 1-ff00:0:4 in line 2: remove one of them",
            ],
        ),
        (
            "[destinations]\n10.1.0.0/16 = \"1-ff00:0:4\"",
            &[
                "map.toml:2: `10.1.0.0/16 = \"1-ff00:0:4\"`: invalid unquoted key, expected letters, numbers, `-`, `_`: write an entry as \"10.1.0.0/16\" = \"1-ff00:0:4\"",
            ],
        ),
        (
            "[destinations]\n[destinations]",
            &["map.toml:2: `[destinations]`: this is in the file already: remove one of them"],
        ),
        (
            "[destinations.\"10.0.0.1\"]\nto = \"1-ff00:0:4\"",
            &["map.toml:1: write [destinations] on a line of its own"],
        ),
        (
            "[destinations]\n[destinations.\"10.0.0.1\"]\nto = \"1-ff00:0:4\"",
            &["map.toml:2: write the entry on one line, its destination in quotes"],
        ),
        (
            "[destinations]\ndb.example = \"1-ff00:0:4\"",
            &["map.toml:2: write the entry on one line, its destination in quotes"],
        ),
        (
            "destinations = { a = \"1-ff00:0:4\" }",
            &["map.toml:1: write [destinations] on a line of its own"],
        ),
        (
            "destinations = 1",
            &["map.toml:1: `destinations` is no table"],
        ),
        (
            "[[destinations]]",
            &["map.toml:1: `destinations` is no table"],
        ),
    ] {
        let error = read(text).unwrap_err().to_string();
        let found: Vec<&str> = error.lines().collect();
        assert_eq!(found.len(), lines.len(), "{text}: {error}");
        for (found, line) in found.iter().zip(lines) {
            assert!(
                found.starts_with("/m/") && found.contains(line),
                "{text}: {error}"
            );
        }
    }
}

#[test]
fn policies_are_read_beside_the_map() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("one.yml", "mine: {acl: ['- 2', '+']}");
    write("two:b", "a: {}\nb: {acl: ['- 2', '+']}");
    let path = folder.path().join("map.toml");
    let map = |policy: &str| {
        let text = format!("[destinations]\na = {{ to = \"1-ff00:0:4\", policy = \"{policy}\" }}");
        std::fs::write(&path, text).unwrap();
        let file = MapFile::read(&path).map_err(|error| error.to_string())?;
        Ok::<_, String>(file.policy(&file.entries()[0]).unwrap().unwrap())
    };
    let policy = Policy::new().with_acl("- 2; +".parse().unwrap());
    assert_eq!(map("one.yml"), Ok(policy.clone()));
    assert_eq!(map("one.yml:mine"), Ok(policy.clone()));
    assert_eq!(map("two:b:b"), Ok(policy));
    for (name, part) in [
        ("one.yml:other", "\"mine\""),
        ("two:b", "name one"),
        ("none.yml", "none.yml"),
    ] {
        let error = map(name).unwrap_err();
        let start = format!("{}:2: policy `{name}`: ", path.display());
        assert!(error.starts_with(&start) && error.contains(part), "{error}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
        let _ = read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_text_of_the_right_parts_is_read_without_panic(
        parts in "(\\[destinations\\]|\"10\\.0\\.0\\.[0-9]\"|= ?|\"1-ff00:0:4\"|\\{|\\}|to|paths|,|[0-9]|\\.|\n|é|\"|#|\\[|\\]){0,40}",
    ) {
        let _ = read(&parts);
        let _ = read(&format!("[destinations]\n{parts}"));
    }

    #[test]
    fn a_written_entry_is_read_back(comment in "\\PC*|[\\x00-\\xff]*", policy: Option<String>, paths in 0u8..=8) {
        let mut entry = Entry::new("10.0.0.0/8".parse().unwrap(), "1-ff00:0:4".parse().unwrap());
        entry.paths = NonZeroU8::new(paths);
        entry.comment = Some(comment);
        entry.policy = policy;
        entry.line = 2;
        let (entries, errors) = parse(&format!("[destinations]\n{}\n", line(&entry)));
        prop_assert_eq!(errors, []);
        prop_assert_eq!(entries, [entry]);
    }
}
