//! Hosts and paths that a transfer supports, and concurrent use of the same files.

use super::*;
use crate::support::NARROW;

/// A link between A and B.
const IPV6: &str = r#"
ASes:
  "1-ff00:0:110": {core: true, underlay: UDP/IPv6}
  "1-ff00:0:111": {core: true, underlay: UDP/IPv6}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE, underlay: UDP/IPv6}
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
    let expected = serde_json::json!([format!("{A}#1"), format!("{B}#1")]);
    assert_eq!(*only_path(&report), expected);
}

#[test]
fn a_path_of_the_smallest_mtu_carries_a_file() {
    let Some(lab) = up(NARROW, "narrow") else {
        return;
    };
    let files = Files::new(&[("data", 4 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    get(&lab, A, &files, &peer, &[]);
    assert!(files.same("data"));
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
