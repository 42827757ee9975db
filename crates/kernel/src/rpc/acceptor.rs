//! Accepting connections in a poll loop.

use std::io::{self, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Time for which no connection is accepted after that has failed.
const REST: Duration = Duration::from_millis(100);

/// A non-blocking listener of a poll loop. When a connection cannot be accepted, as for lack of file
/// descriptors, it still waits and the listener stays ready: the listener rests for a while, so that
/// the loop neither ends nor spins.
#[derive(Debug)]
pub struct Acceptor {
    listener: UnixListener,
    /// When to try again after a failure.
    again: Option<Instant>,
}

impl Acceptor {
    /// Accepts connections at `listener`, which must not block.
    pub fn new(listener: UnixListener) -> Self {
        Self {
            listener,
            again: None,
        }
    }

    /// What to wait for at `now`; nothing while the listener rests.
    pub fn to_poll(&self, now: Instant) -> Option<&UnixListener> {
        self.again
            .is_none_or(|again| again <= now)
            .then_some(&self.listener)
    }

    /// When the listener, which rests at `now`, has rested: the longest that a loop may wait.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        self.again.filter(|again| *again > now)
    }

    /// The next connection at `now`, if one waits.
    ///
    /// # Errors
    /// Why none could be accepted, once for several failures in a row. The listener rests then.
    pub fn accept(&mut self, now: Instant) -> io::Result<Option<UnixStream>> {
        if self.to_poll(now).is_none() {
            return Ok(None);
        }
        let error = match self.listener.accept() {
            Ok((stream, _)) => {
                self.again = None;
                return Ok(Some(stream));
            }
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::WouldBlock => self.again = None,
            // Another one may wait already.
            ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
            _ => {
                if self.again.replace(now + REST).is_none() {
                    return Err(error);
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn a_listener_rests_after_a_failure_and_reports_it_once() {
        let start = Instant::now();
        // Nothing can be accepted at a socket for datagrams.
        let socket = OwnedFd::from(UnixDatagram::unbound().unwrap());
        let mut acceptor = Acceptor::new(socket.into());
        assert!(acceptor.to_poll(start).is_some());
        assert!(acceptor.accept(start).is_err());
        assert!(acceptor.to_poll(start).is_none());
        assert_eq!(acceptor.next_due(start), Some(start + REST));
        assert!(acceptor.accept(start).unwrap().is_none());
        let later = start + REST;
        assert!(acceptor.to_poll(later).is_some());
        assert_eq!(acceptor.next_due(later), None);
        assert!(acceptor.accept(later).unwrap().is_none());
        assert_eq!(acceptor.next_due(later), Some(later + REST));
    }

    #[test]
    fn connections_are_accepted_until_none_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut acceptor = Acceptor::new(listener);
        let _caller = UnixStream::connect(&path).unwrap();
        let now = Instant::now();
        assert!(acceptor.accept(now).unwrap().is_some());
        assert!(acceptor.accept(now).unwrap().is_none());
        assert!(acceptor.to_poll(now).is_some());
    }
}
