//! `docs/` and `--help` must have the same flags.

use std::collections::BTreeSet;

use crate::common::printed;
use crate::page::Page;

/// Commands whose flags must all be on a page.
const DOCUMENTED: [&[&str]; 52] = [
    &["coordinator"],
    &["as", "join"],
    &["as", "health"],
    &["get"],
    &["send"],
    &["receive"],
    &["fetch"],
    &["daemon"],
    &["torrent", "add"],
    &["torrent", "files"],
    &["torrent", "limit"],
    &["torrent", "group"],
    &["torrent", "trackers"],
    &["torrent", "remove"],
    &["seed"],
    &["torrent", "create"],
    &["tracker"],
    &["paths"],
    &["ping"],
    &["doctor"],
    &["demo"],
    &["bench"],
    &["bench", "throughput"],
    &["bench", "scale"],
    &["bench", "ases"],
    &["bench", "clients"],
    &["bench", "bulk-distance"],
    &["bench", "bulk-congested"],
    &["bench", "mptcp"],
    &["bench", "round-trips"],
    &["bench", "bad-path"],
    &["bench", "limit"],
    &["perf"],
    &["simulate"],
    &["key"],
    &["run"],
    &["shim", "map", "add"],
    &["shim", "map", "remove"],
    &["shim", "map", "list"],
    &["shim", "up"],
    &["shim", "status"],
    &["shim", "down"],
    &["lab", "up"],
    &["lab", "apply"],
    &["lab", "attach"],
    &["lab", "invite"],
    &["lab", "export"],
    &["image"],
    &["limit", "apply"],
    &["limit", "reset"],
    &["limit", "show"],
    &["limit", "watch"],
];

/// Flags of other programs on the pages.
const FOREIGN: [&str; 20] = [
    "--format",
    "--examples",
    "--now",
    "--system",
    "--fail-with-body",
    "--home-dir",
    "--listen-port",
    "--config",
    "--release",
    "--workspace",
    "--bench",
    "--example",
    "--batch",
    "--case",
    "--flows",
    "--network",
    "--replace",
    "--strip-components",
    "--server-side",
    "--rm",
];

fn help(command: &[&str]) -> BTreeSet<String> {
    let text = printed(&[command, &["--help"]].concat());
    // Only the beginning of each line: descriptions may mention other flags.
    let lines = text.lines().map(str::trim_start);
    let lines = lines.filter(|line| line.starts_with('-'));
    // Pages need not have every name of a flag.
    let lines = lines.filter_map(|line| line.split("[aliases:").next());
    lines.flat_map(flags).collect()
}

/// Every `--flag` in a text.
fn flags(text: &str) -> Vec<String> {
    let of = |(at, _): (usize, &str)| {
        let before = text[..at].chars().next_back();
        let name: String = text[at + 2..]
            .chars()
            .take_while(|c| c.is_ascii_lowercase() || *c == '-' || c.is_ascii_digit())
            .collect();
        let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
        let apart = before.is_none_or(|c| !c.is_alphanumeric() && c != '-');
        (begins && apart).then(|| format!("--{}", name.trim_end_matches('-')))
    };
    text.match_indices("--").filter_map(of).collect()
}

#[test]
fn pages_and_help_have_the_same_flags() {
    let written: BTreeSet<String> = Page::all().iter().flat_map(|p| flags(&p.text)).collect();
    for command in DOCUMENTED {
        for flag in help(command) {
            let general = ["--help", "--version"].contains(&flag.as_str());
            assert!(general || written.contains(&flag), "{command:?} {flag}");
        }
    }
    let others: [&[&str]; 14] = [
        &["traceroute"],
        &["lab", "status"],
        &["lab", "capture"],
        &["lab", "graph"],
        &["lab", "logs"],
        &["lab", "save"],
        &["lab", "link", "set"],
        &["lab", "add", "as"],
        &["lab", "add", "link"],
        &["lab", "exec"],
        &["router", "run"],
        &["control", "run"],
        &["man"],
        &["torrent", "show"],
    ];
    let known: BTreeSet<String> = DOCUMENTED
        .iter()
        .chain(&others)
        .flat_map(|c| help(c))
        .collect();
    for flag in written {
        let foreign = FOREIGN.contains(&flag.as_str()) || flag == "--epic";
        assert!(foreign || known.contains(&flag), "{flag} is on a page only");
    }
}

#[test]
fn flags_are_found_in_texts() {
    assert_eq!(
        flags("`-n N`, `--paths N` --a-b2, x--y ---"),
        ["--paths", "--a-b2"]
    );
}

#[test]
fn every_finding_of_the_doctor_is_documented() {
    let pages = Page::all();
    let mut pages = pages.iter();
    let page = pages.find(|page| page.name == "docs/doctor.md").unwrap();
    for code in hawser_doctor::Code::ALL {
        assert!(page.text.contains(&format!("`{code}`")), "{code}");
    }
}
