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
    let missing = command(&[
        "daemon",
        "--watch-dir",
        &watched,
        "--state",
        &files.name("s"),
    ])
    .output()
    .unwrap();
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        text.contains("--watch-dir") && text.contains(&watched),
        "{text}"
    );
    assert_eq!(missing.status.code(), Some(1));

    fs::create_dir(&watched).unwrap();
    let (_daemon, _) = daemon_with(&files, &["--watch-dir", &watched]);
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

/// Makes a program that appends a line to a file.
fn program(files: &Files, told: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;

    let program = files.name("program");
    let text = format!(
        "#!/bin/sh\necho \"$TR_TORRENT_NAME in $TR_TORRENT_DIR\" >> {}\n",
        told.display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[test]
fn a_program_is_run_once_for_a_completed_download_also_after_a_kill() {
    let files = Files::new();
    let (_seeder, ready) = files.seed("127.0.0.1:0");
    let seed = text(&ready, "listening_tcp");
    let told = PathBuf::from(files.name("told"));
    let program = program(&files, &told);
    let refused = command(&[
        "daemon",
        "--on-complete",
        "/",
        "--state",
        &files.name("s"),
        "--no-scion",
    ])
    .args(["--listen", "127.0.0.1:0", "--tcp", "127.0.0.1:0"])
    .output()
    .unwrap();
    let reason = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(reason.contains("--on-complete"), "{reason}");

    let flags = ["--on-complete", &program];
    let (mut daemon, _) = daemon_with(&files, &flags);
    object(
        &files,
        &["add", &files.name("data.torrent"), "--peer", seed],
    );
    wait_for(&told);
    object(&files, &["wait", "data"]);
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();

    // What is complete already is not announced again; the next one is.
    let (_daemon, _) = daemon_with(&files, &flags);
    object(&files, &["wait", "data"]);
    object(&files, &["remove", "data", "--content"]);
    object(
        &files,
        &["add", &files.name("data.torrent"), "--peer", seed],
    );
    let deadline = Instant::now() + PATIENCE;
    let line = format!("data in {}\n", files.name("downloads"));
    while fs::read_to_string(&told).unwrap().lines().count() < 2 {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(fs::read_to_string(&told).unwrap(), line.repeat(2));
}

/// Serves a `.torrent` file to all that ask, and returns its URL.
fn serve(torrent: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/data.torrent", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            // It may have left.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            let _ = stream.write_all(&torrent);
        }
    });
    url
}

#[test]
fn a_torrent_is_downloaded_by_the_url_of_its_file() {
    let files = Files::new();
    let (_seeder, ready) = files.seed("127.0.0.1:0");
    let seed = text(&ready, "listening_tcp");
    let url = serve(fs::read(files.name("data.torrent")).unwrap());
    let (_daemon, _) = daemon(&files);
    object(&files, &["add", &url, "--peer", seed]);
    object(&files, &["wait", "data"]);
    assert!(files.same("downloads"));

    let folder = files.name("got");
    let mut get = Running::start(&["get", &url, "-o", &folder, "--peer", seed, "--json"]);
    get.json();
    get.end();
    assert!(files.same("got"));
    let refused = command(&["get", "http://127.0.0.1:1/x.torrent", "--peer", seed])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let refused = command(&["torrent", "show", &url]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let reason = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(reason.contains("hawser get"), "{reason}");
}

#[test]
fn a_file_has_a_name_of_its_own_until_it_is_complete() {
    let files = Files::new();
    let (_seeder, ready) = files.seed("127.0.0.1:0");
    let relay = Relay::start(text(&ready, "listening_tcp"), SIZE / 2);
    let (_daemon, _) = daemon_with(&files, &["--part-suffix", "--allocate", "full"]);
    let torrent = files.name("data.torrent");
    object(&files, &["add", &torrent, "--peer", &relay.address]);
    wait_for(&files.path("downloads/data.part"));
    let deadline = Instant::now() + PATIENCE;
    let verified = || {
        let list = object(&files, &["list"]);
        list["torrents"][0]["content"]["verified_bytes"]
            .as_u64()
            .unwrap()
    };
    while verified() < SIZE / 4 {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(20));
    }
    assert!(!files.path("downloads/data").exists());
    object(&files, &["stop", "data"]);
    object(&files, &["move", "data", &files.name("elsewhere")]);
    wait_for(&files.path("elsewhere/data.part"));
    assert!(!files.path("downloads/data.part").exists());
    // The file is there before the daemon has noted the end of the move.
    while object(&files, &["list"])["torrents"][0]["status"] != "stopped" {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(20));
    }
    object(&files, &["start", "data"]);
    relay.allowed.store(u64::MAX, Ordering::SeqCst);
    object(&files, &["wait", "data"]);
    assert!(files.same("elsewhere") && !files.path("elsewhere/data.part").exists());
}

#[test]
fn the_port_is_mapped_by_the_gateway_until_the_daemon_ends() {
    let files = Files::new();
    let gateway = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let map_port = format!("--map-port={}", gateway.local_addr().unwrap());
    let (mut daemon, _) = daemon_with(&files, &[&map_port]);
    gateway.set_read_timeout(Some(PATIENCE)).unwrap();
    // The gateway answers each request until both protocols are mapped, or unmapped.
    let answer_until = |lifetime: u32| {
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 2 {
            let mut bytes = [0; 64];
            let (length, from) = gateway.recv_from(&mut bytes).unwrap();
            let [0, protocol @ 1..=2, _, _, a, b, _, _, rest @ ..] = &bytes[..length] else {
                continue;
            };
            let wanted = u32::from_be_bytes(rest.try_into().unwrap());
            let mut answer = vec![0, 128 + protocol, 0, 0, 0, 0, 0, 1, *a, *b, *a, *b];
            answer.extend(wanted.to_be_bytes());
            gateway.send_to(&answer, from).unwrap();
            if wanted == lifetime {
                seen.insert(*protocol);
            }
        }
    };
    answer_until(7200);
    daemon.signal("TERM");
    answer_until(0);
    assert_eq!(daemon.code(), Some(0));
}
