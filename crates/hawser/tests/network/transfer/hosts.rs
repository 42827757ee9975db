//! Hosts and paths that a transfer supports, and concurrent use of the same files.

use super::*;

/// Two links between A and B; over IPv6, the second is too narrow for QUIC.
const IPV6: &str = r#"
ASes:
  "1-ff00:0:110": {core: true, underlay: UDP/IPv6}
  "1-ff00:0:111": {core: true, underlay: UDP/IPv6}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE, underlay: UDP/IPv6}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:111#2", linkAtoB: CORE, mtu: 1280}
"#;

/// A link between A and B, and a detour whose MTU leaves less than 1200 bytes to QUIC.
const NARROW: &str = r#"
ASes:
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {core: true}
  "1-ff00:0:112": {core: true}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:112#1", linkAtoB: CORE, mtu: 1280}
  - {a: "1-ff00:0:112#2", b: "1-ff00:0:111#2", linkAtoB: CORE, mtu: 1280}
"#;

/// Brings a lab up from the text of its topology.
fn up(text: &str, what: &str) -> Option<TestLab> {
    let folder = tempfile::tempdir().unwrap();
    let file = crate::support::topology(folder.path(), text);
    As::default().up(&file, what)
}

/// The interfaces of the only path in a report.
fn only_path(report: &Value) -> &Value {
    let paths = report["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 1, "{report}");
    &paths[0]["interfaces"]
}

#[test]
fn a_file_crosses_between_ipv6_hosts() {
    let Some(lab) = up(IPV6, "ipv6") else {
        return;
    };
    let files = Files::new(&[("data", 4 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    assert!(peer.starts_with(&format!("{B},[fd")), "{peer}");
    let report = get(&lab, A, &files, &peer, &["--paths", "2"]);
    assert!(files.same("data"));
    // With the IPv4 addresses of hosts in the header the other path would just be wide enough.
    let expected = serde_json::json!([format!("{A}#1"), format!("{B}#1")]);
    assert_eq!(*only_path(&report), expected);
}

#[test]
fn a_path_too_narrow_for_quic_is_left() {
    let Some(lab) = up(NARROW, "narrow") else {
        return;
    };
    lab.assert_paths(A, B, 2);
    let files = Files::new(&[("data", 1 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let mut args = files.get_args(&peer);
    args.extend(["--paths", "2"].map(str::to_owned));
    let log = ["RUST_LOG=hawser_torrent=info"];
    let (report, log) = Running::start_with(&lab, A, &log, &args).end();
    assert!(files.same("data"));
    let expected = serde_json::json!([format!("{A}#1"), format!("{B}#1")]);
    assert_eq!(*only_path(&report), expected);
    // Two ASes result in a header of 80 bytes, three in one of 92.
    let why = "takes SCION packets of 1280 bytes: QUIC needs 1292 (1200 after headers)";
    assert!(log.contains(why), "{log}");

    // Without another path the error is reported at once.
    lab.set(&format!("{A}#1"), &["--down"]);
    eventually("the narrow path is the only one", || {
        lab.paths(A, B).len() == 1
    });
    fs::remove_dir_all(files.downloads()).unwrap();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = lab.hawser(A, &args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(why), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
}

#[test]
fn two_downloads_do_not_share_files() {
    let Some(lab) = As::default().up("fig4", "twice") else {
        return;
    };
    let rate = |rate| {
        for id in ["#1", "#2"] {
            lab.set(&format!("{A}{id}"), &["--rate", rate]);
        }
    };
    // The first does not complete before the second has begun.
    rate("1mbit");
    let files = Files::new(&[("data", 8 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let first = Running::start(&lab, A, &files.get_args(&peer));
    eventually("some of it has come", || {
        sent(&lab).iter().sum::<u64>() > 256 << 10 && files.downloads().join("data").exists()
    });
    let args = files.get_args(&peer);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = lab.hawser(A, &args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("downloads/data is being downloaded already"),
        "{error}"
    );
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    rate("100mbit");
    let (report, _) = first.end();
    assert_eq!(report["fetched_bytes"], 8 << 20);
    assert!(files.same("data"));
}
