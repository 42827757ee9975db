//! Peering links of core ASes, and links to children in another ISD: facts of scionproto.

use super::*;

/// A core AS and one below it in each of two ISDs, with a link between the core ASes.
const TWO_CORES: &str = r#"
ASes:
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {}
  "2-ff00:0:210": {core: true}
  "2-ff00:0:211": {}
links:
  - {a: "1-ff00:0:110#1", b: "2-ff00:0:210#1", linkAtoB: CORE}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:111#1", linkAtoB: CHILD}
  - {a: "2-ff00:0:210#2", b: "2-ff00:0:211#1", linkAtoB: CHILD}
"#;

/// That network with one more link.
fn two_cores_and(link: &str) -> Network {
    Network::parse(&format!("{TWO_CORES}  - {link}\n")).unwrap()
}

#[test]
fn peering_links_of_core_ases_serve_the_ases_below_them() {
    // As in scionproto since v0.12 (control/beaconing/originator.go).
    let network = two_cores_and(r#"{a: "1-ff00:0:110#9", b: "2-ff00:0:210#9", linkAtoB: PEER}"#);
    let mut below = texts(&network, "1-ff00:0:111", "2-ff00:0:211");
    below.sort();
    let over = |link| format!("111#1 110#2 {link} 210#2 211#1");
    assert_eq!(below, [over("110#1 210#1"), over("110#9 210#9")]);
    // The core ASes themselves have no segment with it.
    for (src, dst, path) in [
        ("1-ff00:0:110", "2-ff00:0:210", "110#1 210#1"),
        ("1-ff00:0:110", "2-ff00:0:211", "110#1 210#1 210#2 211#1"),
    ] {
        assert_eq!(texts(&network, src, dst), [path]);
    }
    // A core AS that peers with an AS below another one.
    let network = two_cores_and(r#"{a: "1-ff00:0:110#9", b: "2-ff00:0:211#9", linkAtoB: PEER}"#);
    assert_eq!(
        texts(&network, "1-ff00:0:111", "2-ff00:0:211"),
        [
            "111#1 110#2 110#9 211#9",
            "111#1 110#2 110#1 210#1 210#2 211#1"
        ]
    );
    assert!(check_all(&network) > 0);
}

#[test]
fn links_to_children_in_another_isd_serve_no_path() {
    // As in scionproto (private/segment/segfetcher/splitter.go).
    let network = two_cores_and(r#"{a: "1-ff00:0:110#9", b: "2-ff00:0:211#9", linkAtoB: CHILD}"#);
    let over_core = "110#1 210#1 210#2 211#1";
    assert_eq!(texts(&network, "1-ff00:0:110", "2-ff00:0:211"), [over_core]);
    assert_eq!(
        texts(&network, "1-ff00:0:111", "2-ff00:0:211"),
        [format!("111#1 110#2 {over_core}")]
    );
    assert!(check_all(&network) > 0);
    // Lookups of segments by hosts neither.
    let mut plane = plane(&network, ia("2-ff00:0:211"));
    for core in ["1-0", "1-ff00:0:110"] {
        let found = plane.lookup(IsdAsn::WILDCARD, ia(core), NOW).unwrap();
        assert!(
            found
                .up
                .iter()
                .all(|up| up.segment.first() != ia("1-ff00:0:110"))
        );
    }
}
