//! Parts of tests in processes of their own.

use std::process::{Child, Command, Stdio};

/// Set in the processes that these tests start.
const INSIDE: &str = "HAWSER_CAPTURE_TEST_INSIDE";

/// Whether this process was started by [`command`].
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// A process that runs the test `name` of this crate, in which [`is_inside`] is true.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([name, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Reads from the process until it has written a line with `text`.
pub fn read_until(child: &mut Child, text: &str) {
    use std::io::Read;
    let mut output = Vec::new();
    let stdout = child.stdout.as_mut().unwrap();
    while !String::from_utf8_lossy(&output).contains(text) {
        let mut byte = [0];
        let read = stdout.read(&mut byte).unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&output));
        output.extend(byte);
    }
}
