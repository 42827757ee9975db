//! README and `docs/`: pastes every command in them into a shell, in order; each must work.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod examples;
mod flags;
mod packages;
mod page;
mod paste;
mod units;

use std::cmp::Reverse;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use self::page::Page;
use self::paste::{Ended, Shell};

/// Build commands, which are not run: their results exist when tests run.
const BUILDS: [&str; 2] = ["cargo run -- demo", "cargo test --workspace"];

/// How many pages are pasted at once for each processor. Their commands mostly wait.
const PAGES_PER_PROCESSOR: usize = 2;

#[test]
fn every_command_works_as_pasted() {
    let mut pages = Page::all();
    // Those that measure most take longest.
    pages.sort_by_key(|page| Reverse(page.text.matches("\nhawser bench ").count()));
    let next = AtomicUsize::new(0);
    let (skipped, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let paste_pages = || {
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            match Shell::new().paste(&page.script(&BUILDS)) {
                Ended::Done => {}
                Ended::NoNamespaces(error) => {
                    eprintln!("skipped: {}: {error}", page.name);
                    skipped.fetch_add(1, Ordering::Relaxed);
                }
                Ended::Failed { at, output } => {
                    let message = format!("{}: {at} failed:\n{output}", page.name);
                    failed.lock().unwrap().push(message);
                }
            }
        }
    };
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..PAGES_PER_PROCESSOR * processors {
            scope.spawn(paste_pages);
        }
    });
    eprintln!("{} pages skipped", skipped.into_inner());
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
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
fn no_command_waits_in_a_loop() {
    for page in Page::all() {
        for block in &page.blocks {
            let mut lines = block.text.lines().map(str::trim_start);
            let waits = lines.find(|line| {
                ["until ", "while ", "sleep "].iter().any(|word| {
                    line.starts_with(word)
                        || line.contains(&format!("; {word}"))
                        || line.contains(&format!("do {word}"))
                })
            });
            assert_eq!(waits, None, "{}, line {}", page.name, block.line);
        }
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
