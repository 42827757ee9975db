//! Random changes of a lab under traffic: after each it is what a fresh lab of the same file is.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::apply::{all_paths, apply, end_pings, start_pings, up};
use crate::support::TestLab;

/// How many changes are made, unless `HAWSER_LAB_CHANGES` says it.
const CHANGES: usize = 4;

/// ASes that stay, with a leaf and two core ASes, whose links no change touches: they carry the traffic. The
/// core ASes have other roles in their ISD after each change.
const STAYING: &str = r#"
  "1-ff00:0:110": {core: true, ROLES}
  "1-ff00:0:111": {core: true, ROLES}
  "1-ff00:0:112": {}
"#;
/// The ASes that vote, and those that issue certificates.
const ROLES: [[&str; 2]; 4] = [
    ["voting: true, issuing: true", ""],
    ["issuing: true", "voting: true, authoritative: true"],
    ["voting: true", "voting: true, issuing: true"],
    ["voting: true, cert_issuer: 1-ff00:0:111", "issuing: true"],
];
const STAYING_LINKS: &str = r#"
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE, delay: 1ms}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:112#1", linkAtoB: CHILD, rate: 100mbit}
"#;
const CORE: [&str; 2] = ["1-ff00:0:110", "1-ff00:0:111"];
const LEAF: &str = "1-ff00:0:112";
/// ASes that come and go, and whether they may be core ASes; the last one is in an ISD of its own.
const CHANGING: [(&str, bool); 4] = [
    ("1-ff00:0:113", false),
    ("1-ff00:0:114", true),
    ("1-ff00:0:115", false),
    ("2-ff00:0:210", true),
];
/// Properties of links.
const SHAPES: [&str; 7] = [
    "",
    "",
    ", delay: 2ms",
    ", rate: 50mbit",
    ", mtu: 1400",
    ", loss: 0.01%",
    ", rate: 30mbit, queue: 10ms",
];

/// A network with the ASes that stay, and others.
fn network(random: &mut fastrand::Rng) -> String {
    let (mut ases, mut links) = (STAYING.to_owned(), STAYING_LINKS.to_owned());
    for roles in random.choice(ROLES).unwrap() {
        ases = ases.replacen("ROLES", roles, 1);
    }
    let mut leaves = Vec::new();
    for (at, (isd_as, may_be_core)) in CHANGING.into_iter().enumerate() {
        if random.u8(..4) == 0 {
            continue;
        }
        // An ISD of its own needs a core AS.
        let is_core = may_be_core && (isd_as.starts_with("2-") || random.bool());
        writeln!(ases, "  {isd_as:?}: {{core: {is_core}}}").unwrap();
        if !is_core {
            leaves.push((at, isd_as));
        }
        let kind = if is_core { "CORE" } else { "CHILD" };
        for link in 0..random.usize(1..=2) {
            // A parent of these has an interface for each link that they may have.
            let (parent, far) = (random.choice(CORE).unwrap(), 10 + 2 * at + link);
            let shape = random.choice(SHAPES).unwrap();
            let ends = format!("a: \"{parent}#{far}\", b: \"{isd_as}#{}\"", link + 1);
            writeln!(links, "  - {{{ends}, linkAtoB: {kind}{shape}}}").unwrap();
        }
    }
    if let [(a, first), (b, second), ..] = leaves[..]
        && random.bool()
    {
        let ends = format!("a: \"{first}#{}\", b: \"{second}#{}\"", 20 + b, 20 + a);
        writeln!(links, "  - {{{ends}, linkAtoB: PEER}}").unwrap();
    }
    format!("ASes:{ases}links:{links}")
}

/// The links, as far as they do not depend on numbers that a lab chooses.
fn links(lab: &TestLab) -> BTreeSet<String> {
    let status = lab.status();
    let all = status["links"].as_array().unwrap().iter();
    let end = |end: &Value| format!("{}#{}", end["isd_as"], end["id"]);
    let shown = all.map(|link| {
        let ends = [end(&link["a"]), end(&link["b"])];
        format!(
            "{ends:?} {} {} {} {}",
            link["kind"], link["mtu"], link["up"], link["shape"]
        )
    });
    shown.collect()
}

/// The files with which ASes vote and issue certificates, as far as they follow from the network.
fn keys(lab: &TestLab) -> BTreeSet<String> {
    let status = lab.status();
    let folder = Path::new(status["dir"].as_str().unwrap());
    let mut found = BTreeSet::new();
    for as_ in status["ases"].as_array().unwrap() {
        let name = as_["isd_as"].as_str().unwrap().replace(':', "_");
        for part in ["voting", "ca", "as"] {
            let part = folder.join(&name).join("crypto").join(part);
            let entries = std::fs::read_dir(&part).into_iter().flatten();
            found.extend(entries.map(|entry| {
                let path = entry.unwrap().path();
                path.strip_prefix(folder).unwrap().display().to_string()
            }));
        }
    }
    found
}

#[test]
fn random_changes_under_traffic_lead_to_what_a_fresh_lab_is() {
    let count = std::env::var("HAWSER_LAB_CHANGES");
    let count: usize = count.map_or(CHANGES, |text| text.parse().unwrap());
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut now = network(&mut random);
    let Some(lab) = up("changes", &now) else {
        return;
    };
    let pings = start_pings(&lab, LEAF, &format!("{},10.0.2.1", CORE[1]));
    for change in 0..count {
        let next = network(&mut random);
        apply(&lab, &next, &[]);
        let fresh = up("changes-fresh", &next).unwrap();
        let context = format!("change {change} of seed {seed}, from {now} to {next}");
        assert_eq!(links(&lab), links(&fresh), "{context}");
        assert_eq!(keys(&lab), keys(&fresh), "{context}");
        assert_eq!(all_paths(&lab), all_paths(&fresh), "{context}");
        fresh.down();
        now = next;
    }
    let (answered, lost) = end_pings(pings);
    println!(
        "{count} changes: {answered} echo requests were answered, {} lost",
        lost.len()
    );
    assert!(
        answered > 10 && lost.is_empty(),
        "seed {seed}: lost {lost:?}"
    );
    lab.down();
}
