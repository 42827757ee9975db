//! Images.

use std::fs;

use super::common::{command, refused, wrong};

#[test]
fn what_is_there_is_not_replaced_and_wrong_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("there.tar");
    fs::write(&file, "there").unwrap();
    let file = file.to_str().unwrap();
    wrong(&["image", "-o", file], &["the file exists", "--force"]);
    assert_eq!(fs::read(file).unwrap(), b"there");
    let full = folder.path().to_str().unwrap();
    wrong(
        &["image", "-o", full],
        &["is not an empty folder", "name another one"],
    );
    wrong(
        &["image", "-o", &format!("{file}/x")],
        &["is not an empty folder"],
    );
    wrong(&["image"], &["--output"]);
    let new = folder.path().join("new.tar");
    let new = new.to_str().unwrap();
    for name in ["hawser", "Hawser:1", "", "a:b:c"] {
        let args = ["image", "-o", new, "--name", name];
        wrong(&args, &["is not the name of an image with a tag"]);
    }
    for time in ["tomorrow", "-1", "99999999999", ""] {
        let mut command = command(&["image", "-o", new]);
        let output = command.env("SOURCE_DATE_EPOCH", time).output().unwrap();
        refused(&output, 2, &["SOURCE_DATE_EPOCH", "date +%s"]);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
