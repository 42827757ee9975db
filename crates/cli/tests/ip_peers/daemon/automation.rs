//! What a daemon does by itself.

use super::*;

/// Waits until a file is there.
fn wait_for(path: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !path.exists() {
        assert!(Instant::now() < deadline, "{path:?} is never there");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_file_put_into_a_watched_folder_is_added_and_renamed() {
    let files = Files::new();
    let watched = files.name("watched");
    let missing = command(&["daemon", "--watch", &watched, "--state", &files.name("s")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        text.contains("--watch") && text.contains(&watched),
        "{text}"
    );
    assert_eq!(missing.status.code(), Some(1));

    fs::create_dir(&watched).unwrap();
    let (_daemon, _) = daemon_with(&files, &["--watch", &watched]);
    // As browsers and programs that copy do: under its name from the beginning.
    let put = Path::new(&watched).join("data.torrent");
    let bytes = fs::read(files.name("data.torrent")).unwrap();
    let mut file = fs::File::create(&put).unwrap();
    file.write_all(&bytes[..bytes.len() / 2]).unwrap();
    file.write_all(&bytes[bytes.len() / 2..]).unwrap();
    drop(file);
    wait_for(&Path::new(&watched).join("data.torrent.added"));
    assert!(!put.exists());
    let list = object(&files, &["list"]);
    assert_eq!(list["torrents"].as_array().unwrap().len(), 1);
    assert_eq!(text_of(&list), "data");
}

/// The name of the only torrent of a list.
fn text_of(list: &Value) -> &str {
    text(&list["torrents"][0], "name")
}
