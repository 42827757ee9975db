//! Wrong use of `hawser lab export`: exit code 2 and one line; nothing is written.

use std::fs;

use crate::common::{hawser, refused};

#[test]
fn wrong_exports_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, text) in [
        ("one", "a 192.0.2.1\n"),
        ("twice", "a 192.0.2.1\na 192.0.2.2\n"),
        ("three", "a 192.0.2.1\nb 192.0.2.2\nc 192.0.2.3\n"),
        ("taken", "not a folder"),
    ] {
        fs::write(path(name), text).unwrap();
    }
    let (one, twice, three) = (path("one"), path("twice"), path("three"));
    let long = "x".repeat(41);
    for (args, words) in [
        (
            &["--to", "containerlab", "--hosts", &one][..],
            &["one", "has 1 of them"][..],
        ),
        (
            &["--to", "containerlab", "--hosts", &twice],
            &["line 2", "a is in line 1"],
        ),
        (
            &["--to", "containerlab", "--hosts", &three],
            &["3 hosts", "ASes (2)"],
        ),
        (
            &["--to", "containerlab", "--hosts", "/missing"],
            &["/missing", "no such file"],
        ),
        (
            &["--to", "kubernetes", "--hosts", &three],
            &["for containerlab"],
        ),
        (
            &["--to", "podman", "--hosts", &three],
            &["for containerlab"],
        ),
        (
            &["--to", "kubernetes", "--image", "Not One"],
            &["Not One", "name of an image"],
        ),
        (
            &["--to", "kubernetes", "--name", &long],
            &["not a name for an export"],
        ),
    ] {
        let out = path("out");
        let output = hawser(&[&["lab", "export", "fig4", "-o", &out], args].concat());
        refused(&output, 2, words);
        assert!(fs::metadata(&out).is_err(), "{args:?}");
    }
    let taken = path("taken");
    let args = ["lab", "export", "fig4", "--to", "kubernetes", "-o", &taken];
    refused(&hawser(&args), 2, &["taken", "is not a folder"]);
    let args = ["lab", "export", "fig5", "--to", "kubernetes", "-o", &taken];
    refused(&hawser(&args), 2, &["fig5", "fig4, fig7a, fig9"]);
}
