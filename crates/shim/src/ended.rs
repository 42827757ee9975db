//! Threads and tasks without which a carrier does not work: when one of them ends, so does the carrier,
//! with the reason. Its connections wait for another one.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::mpsc;

/// Learns of the threads that end before their time. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Watcher(mpsc::Sender<String>);

impl Watcher {
    /// A watcher, and what receives which thread has ended first, and why.
    pub(crate) fn new() -> (Self, mpsc::Receiver<String>) {
        let (sender, ended) = mpsc::channel(1);
        (Self(sender), ended)
    }

    /// Runs `work`, which is to last as long as the carrier: `name` says what it does.
    pub(crate) fn run(&self, name: &str, work: impl FnOnce() -> io::Result<()>) {
        // Of what `work` has changed only locks are used afterwards, which are poisoned.
        let reason = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "its thread panicked".to_owned(),
        };
        // Another one was first.
        let _ = self.0.try_send(format!("cannot {name}: {reason}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_fails_or_panics_is_reported() {
        let (watcher, mut ended) = Watcher::new();
        watcher.run("do this", || Ok(()));
        assert!(ended.try_recv().is_err());
        watcher.run("do that", || Err(io::Error::other("no")));
        watcher.run("do more", || panic!("as the test wants"));
        assert_eq!(ended.try_recv().as_deref(), Ok("cannot do that: no"));
        watcher.run("do more", || panic!("as the test wants"));
        let reason = "cannot do more: its thread panicked";
        assert_eq!(ended.try_recv().as_deref(), Ok(reason));
    }
}
