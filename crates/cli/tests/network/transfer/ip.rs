//! IP peers, by plain TCP.

use super::*;

/// The host of B.
const HOST: &str = "10.0.2.1";

/// Received bytes by peer.
fn carried(report: &Value) -> Vec<(&str, u64)> {
    let paths = report["paths"].as_array().unwrap();
    let of = |path: &'_ Value| path["bytes"].as_u64().unwrap();
    let each = paths
        .iter()
        .map(|path| (path["peer"].as_str().unwrap(), of(path)));
    each.collect()
}

#[test]
fn ip_and_scion_peers_serve_one_download() {
    let Some(lab) = As::default().up("fig4", "ip") else {
        return;
    };
    // Two links of 20 Mbit/s, so that neither peer can complete the download before the other
    // begins.
    for link in ["1-ff00:0:110#1", "1-ff00:0:110#2"] {
        lab.set(link, &["--rate", "20mbit"]);
    }
    let files = Files::new(&[("data", 4 << 20)]);
    let listen = format!("{HOST}:0");
    let (torrent, content) = (files.torrent(), files.content());
    let (_seeder, told) = Running::seed_told(&lab, B, &torrent, &content, &["--tcp", &listen]);
    let [scion, ip] = ["listening", "listening_tcp"].map(|key| told[key].as_str().unwrap());
    let report = get(&lab, A, &files, scion, &["--peer", ip, "--paths", "2"]);
    assert!(files.same("data"));
    let from = |peer: &str| {
        let each = carried(&report)
            .into_iter()
            .filter(|(from, _)| *from == peer);
        each.map(|(_, bytes)| bytes).sum::<u64>()
    };
    assert!(from(scion) > 0 && from(ip) > 0, "{report}");
    assert_eq!(
        from(scion) + from(ip),
        report["fetched_bytes"].as_u64().unwrap() + report["wasted_bytes"].as_u64().unwrap()
    );

    // With IP peers alone no daemon is needed.
    fs::remove_dir_all(files.downloads()).unwrap();
    let nowhere = ["SCION_DAEMON=127.0.0.1:1"];
    let (report, _) = Running::start_with(&lab, A, &nowhere, &files.get_args(ip)).end();
    assert!(files.same("data"));
    assert_eq!(carried(&report), [(ip, 4 << 20)], "{report}");

    // The second program at an address gets an error.
    let more = ["--tcp".to_owned(), ip.to_owned()];
    let mut args: Vec<String> = ["seed"].map(str::to_owned).into();
    args.extend([torrent, content].map(|path| path.to_str().unwrap().to_owned()));
    args.extend(more);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = lab.hawser(B, &args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains(ip) && error.contains("another port"),
        "{error}"
    );
}

#[test]
fn a_download_continues_to_seed_to_scion_and_ip_peers() {
    let Some(lab) = As::default().up("fig4", "go-on") else {
        return;
    };
    for link in ["1-ff00:0:110#1", "1-ff00:0:110#2"] {
        lab.set(link, &["--rate", "20mbit"]);
    }
    let files = Files::new(&[("data", 8 << 20)]);
    let (seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let mut args = files.get_args(&peer);
    args.extend(["--seed", "--tcp", "10.0.1.1:0"].map(str::to_owned));
    let mut middle = Running::start(&lab, A, &args);
    let mut out = BufReader::new(middle.0.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended");
        serde_json::from_str::<Value>(&line).unwrap()
    };
    let report = next();
    assert!(files.same("data"));
    drop(seeder);

    // Paths are chosen as by a seeder: both paths for the only downloader.
    let [scion, ip] = ["listening", "listening_tcp"].map(|key| report[key].as_str().unwrap());
    let torrent = files.torrent();
    let other = files.folder.path().join("other");
    let [torrent, folder] = [&torrent, &other].map(|path| path.to_str().unwrap());
    let args = ["get", torrent, "-o", folder, "--peer", scion, ip, "--json"];
    let output = lab.hawser(B, &args);
    assert!(output.status.success(), "{output:?}");
    let last: Value = serde_json::from_slice(&output.stdout).unwrap();
    let from = |peer: &str| {
        carried(&last)
            .iter()
            .filter(|(from, _)| *from == peer)
            .count()
    };
    assert_eq!((from(scion), from(ip)), (2, 1), "{last}");
    assert!(fs::read(other.join("data")).unwrap() == fs::read(files.content()).unwrap());

    let interrupt = format!("kill -INT {}", middle.0.id());
    let told = Command::new("sh").args(["-c", &interrupt]).status();
    assert!(told.unwrap().success());
    let ended = next();
    assert_eq!(ended["ended_by"], "interrupt", "{ended}");
    assert!(
        ended["uploaded_bytes"].as_u64().unwrap() >= 8 << 20,
        "{ended}"
    );
    assert!(middle.0.wait().unwrap().success());
}

#[test]
fn a_seeder_reports_a_file_that_shrinks() {
    let Some(lab) = As::default().up("fig4", "ip-shrinks") else {
        return;
    };
    let files = Files::new(&[("data", 4 << 20)]);
    let (torrent, content) = (files.torrent(), files.content());
    let args = ["seed", "--json"].map(str::to_owned);
    let content_args = [&torrent, &content].map(|path| path.to_str().unwrap().to_owned());
    let args: Vec<String> = args.into_iter().chain(content_args).collect();
    let mut seeder = Running::start(&lab, B, &args);
    let mut lines = BufReader::new(seeder.0.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    // The seeder listens.
    assert!(next()["listening"].is_string());
    let file = fs::File::options().write(true).open(&content);
    file.unwrap().set_len(1 << 20).unwrap();
    let changed = next();
    assert!(
        changed["file"].as_str().unwrap().ends_with("data"),
        "{changed}"
    );
    let [lost, pieces] = ["lost_pieces", "pieces"].map(|key| changed[key].as_u64().unwrap());
    assert_eq!(lost * 4, pieces * 3, "{changed}");
}
