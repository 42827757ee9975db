//! A limit of time for tests.

use std::env;
use std::io::{self, Write};
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Far more than any test takes.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// Set for tests that are to take longer.
const ROUNDS: &str = "HAWSER_KILL_ROUNDS";

/// Ends all tests with an error when one of them takes longer than [`LIMIT`]: it waits without end, for a
/// process or a connection, and the others, which are waited for with it, would hide which test it is.
pub struct Watch {
    /// The watching thread ends when this is dropped.
    _end: mpsc::Sender<()>,
}

impl Watch {
    /// Watches the test that runs in this thread until it is dropped.
    pub fn new() -> Self {
        let (end, ended) = mpsc::channel();
        let test = thread::current().name().unwrap_or_default().to_owned();
        if env::var_os(ROUNDS).is_none() {
            thread::spawn(move || {
                if ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                    // What `eprintln!` prints is kept until the test has ended.
                    let text = format!("test {test} did not end within {LIMIT:?}");
                    let _ = writeln!(io::stderr(), "{text}");
                    process::exit(101);
                }
            });
        }
        Self { _end: end }
    }
}
