//! Runs the program in tests, and checks how it refuses.

// Each test uses a part of this.
#![allow(dead_code)]

use std::process::{Command, Output};

/// The program, with an address of the SCION daemon where nothing listens: port 1 of the loopback.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
    command.args(args).env("SCION_DAEMON", "127.0.0.1:1");
    command
}

/// Runs the program to its end.
pub fn hawser(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// Standard output of the program, which must succeed.
pub fn printed(args: &[&str]) -> String {
    let output = hawser(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Asserts a failure with the exit code, whose message has these words; nothing else may be
/// printed.
pub fn failed(output: &Output, code: i32, words: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    for word in words {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// Like [`failed`], with a message of one line.
pub fn refused(output: &Output, code: i32, words: &[&str]) {
    failed(output, code, words);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
}

/// Runs the program and asserts wrong use, whose message has these words.
pub fn wrong(args: &[&str], words: &[&str]) {
    failed(&hawser(args), 2, words);
}
