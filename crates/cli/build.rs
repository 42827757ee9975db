//! Says which commit the program is built from, for `hawser --version`: the variable
//! `HAWSER_COMMIT` where it is set (for builds without a repository), otherwise what git says,
//! otherwise nothing. Links a development build so that it starts faster.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HAWSER_COMMIT");
    let commit = match std::env::var("HAWSER_COMMIT") {
        Ok(commit) => Some(commit).filter(|commit| !commit.is_empty()),
        Err(_) => commit(),
    };
    let suffix = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=HAWSER_VERSION_SUFFIX={suffix}");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    // A program with the libraries of the system in it is linked in another manner.
    let is_static = variable("CARGO_CFG_TARGET_FEATURE").contains("crt-static");
    let is_gnu =
        variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if variable("PROFILE") == "debug" && is_gnu && !is_static {
        // Tests start the program thousands of times, and a quarter of a start is to move it to another address.
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

/// The commit that is checked out, and its day.
fn commit() -> Option<String> {
    // Without this the commit of a repository that only surrounds the sources would be named.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    let files: Vec<String> = [Some("HEAD".to_owned()), branch]
        .into_iter()
        .flatten()
        .filter_map(|name| git(&["rev-parse", "--git-path", &name]))
        // A file that does not exist would count as changed at every build.
        .filter(|file| Path::new(file).exists())
        .collect();
    for file in &files {
        println!("cargo::rerun-if-changed={file}");
    }
    // A branch without a file of its own is packed.
    if let ([_], Some(packed)) = (&files[..], git(&["rev-parse", "--git-path", "packed-refs"]))
        && Path::new(&packed).exists()
    {
        println!("cargo::rerun-if-changed={packed}");
    }
    git(&["log", "-1", "--abbrev=8", "--format=%h, %cs"])
}

/// What git prints; `None` if it fails or is not there.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
