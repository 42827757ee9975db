//! README and `docs/`: pastes every command in them into a shell, in order; each must work.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod flags;
mod page;
mod paste;
mod units;

use std::fs;
use std::path::Path;

use self::page::Page;
use self::paste::{Ended, Shell};

/// Build commands, which are not run: their results exist when tests run.
const BUILDS: [&str; 3] = [
    "cargo run --release -- demo",
    "cargo test --workspace",
    "cargo build --release",
];

#[test]
fn every_command_works_as_pasted() {
    let mut skipped = 0;
    for page in Page::all() {
        let script = page.script(&BUILDS);
        match Shell::new().paste(&script) {
            Ended::Done => {}
            Ended::NoNamespaces(error) => {
                eprintln!("skipped: {}: {error}", page.name);
                skipped += 1;
            }
            Ended::Failed { at, output } => panic!("{}: {at} failed:\n{output}", page.name),
        }
    }
    eprintln!("{skipped} pages skipped");
}

#[test]
fn every_page_begins_with_a_task_and_a_command() {
    for page in Page::all().iter().filter(|page| page.name != "README.md") {
        let task = page.text.find("**Task:").unwrap();
        let command = page.text.find("```sh\nhawser ").unwrap();
        let section = page.text.find("\n## ").unwrap_or(usize::MAX);
        assert!(task < command && command < section, "{}", page.name);
    }
}

#[test]
fn blocks_that_are_not_run_have_a_reason() {
    for page in Page::all() {
        for block in page.blocks.iter().filter(|block| !block.runs) {
            let has_command = |line: &str| line.starts_with("hawser ") || line.starts_with('$');
            if !block.text.lines().any(has_command) {
                continue;
            }
            let reason = ["Not run by the test", "In place of an AS's border router"];
            let said = reason.iter().any(|reason| page.text.contains(reason));
            assert!(said, "{}, line {}", page.name, block.line);
        }
    }
}

#[test]
fn every_link_has_a_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in Page::all() {
        let folder = root.join(&page.name);
        let folder = folder.parent().unwrap();
        for target in page.links() {
            let path = folder.join(target.split('#').next().unwrap());
            assert!(fs::exists(&path).unwrap(), "{}: {target}", page.name);
        }
    }
    let readme = &Page::all()[0];
    for page in &Page::all()[1..] {
        assert!(
            readme.links().any(|link| link == page.name),
            "{}",
            page.name
        );
    }
}
