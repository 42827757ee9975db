//! Clocks that are wrong, for one process alone.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A clock that is wrong by SHIFT seconds, for programs that load it.
const CLOCK: &str = "#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, id, now);
    if (!failed && id == CLOCK_REALTIME) now->tv_sec += SHIFT;
    return failed;
}
";

/// Writes a library to `path` for which a program that loads it (`LD_PRELOAD`) has another time, by that many
/// seconds.
pub fn write(path: &Path, shift: i64) {
    let source = path.with_extension("c");
    fs::write(&source, CLOCK).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", &format!("-DSHIFT=({shift}L)")]);
    let made = cc.arg("-o").arg(path).arg(&source).status();
    assert!(made.expect("cc links programs of Rust, too").success());
}
