//! Round trips of one byte on one TCP connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::set_up::{ANSWER_TIMEOUT, routed};
use crate::error::PerfError;

/// A connection to a server of [`answer`](super::answer).
#[derive(Debug)]
pub struct Dialogue(TcpStream);

impl Dialogue {
    /// Connects. Waits until there is a route to the server.
    ///
    /// # Errors
    /// [`PerfError::System`] when the server cannot be reached.
    pub fn connect(to: SocketAddr) -> Result<Self, PerfError> {
        let tcp = routed(|| TcpStream::connect(to))?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(Self(tcp))
    }

    /// Sends `count` bytes, each once the one before it was answered. Returns how long each answer took.
    ///
    /// # Errors
    /// [`PerfError::System`] when the server does not answer.
    pub fn round_trips(&mut self, count: u32) -> Result<Vec<Duration>, PerfError> {
        let mut byte = [1];
        let mut times = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let began = Instant::now();
            self.0.write_all(&byte)?;
            self.0.read_exact(&mut byte)?;
            times.push(began.elapsed());
        }
        Ok(times)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn each_byte_is_answered() {
        let (address, listening) = mpsc::channel();
        let any = "127.0.0.1:0".parse().unwrap();
        thread::spawn(move || crate::plain::answer(any, |at| address.send(at).unwrap()));
        let mut dialogue = Dialogue::connect(listening.recv().unwrap()).unwrap();
        for count in [0, 1, 100] {
            let times = dialogue.round_trips(count).unwrap();
            assert_eq!(times.len(), count as usize);
            assert!(times.iter().all(|time| *time > Duration::ZERO));
        }
    }

    #[test]
    fn a_server_that_closes_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut dialogue = Dialogue::connect(listener.local_addr().unwrap()).unwrap();
        drop(listener.accept().unwrap());
        assert!(dialogue.round_trips(1).is_err());
    }
}
