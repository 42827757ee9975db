//! How long a TCP connection takes until its first answer.

use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::PerfError;

/// Longest wait for an answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest wait for a route to the server, and the time between two attempts.
const ROUTE_TIMEOUT: Duration = Duration::from_secs(10);
const ATTEMPT: Duration = Duration::from_millis(10);

/// How long the parts of one connection took, in seconds since its program began to connect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SetUp {
    /// Until connect(2) returned.
    pub connected: f64,
    /// Until the first byte of an answer to one byte was there.
    pub answered: f64,
}

/// Answers each byte with one, on one connection after the other. Reports the address it listens at
/// before it waits.
///
/// # Errors
/// [`PerfError::System`] when the system refuses.
pub fn answer(
    listen: SocketAddr,
    listening: impl FnOnce(SocketAddr),
) -> Result<Infallible, PerfError> {
    let listener = TcpListener::bind(listen)?;
    listening(listener.local_addr()?);
    loop {
        let (tcp, _) = listener.accept()?;
        // One that breaks must not end the others.
        let _ = echo(tcp);
    }
}

fn echo(mut tcp: TcpStream) -> io::Result<()> {
    tcp.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    tcp.set_nodelay(true)?;
    let mut byte = [0];
    while tcp.read(&mut byte)? > 0 {
        tcp.write_all(&byte)?;
    }
    Ok(())
}

/// Connects `count` times, one after the other, to a server of [`answer`]. Waits until there is a
/// route to it, without counting that.
///
/// # Errors
/// [`PerfError::System`] when the server cannot be reached, or does not answer.
pub fn set_up(to: SocketAddr, count: u16) -> Result<Vec<SetUp>, PerfError> {
    let times = (0..count).map(|_| routed(|| connect(to)));
    Ok(times.collect::<io::Result<_>>()?)
}

/// Connects, once there is a route.
pub(super) fn routed<T>(connect: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + ROUTE_TIMEOUT;
    loop {
        match connect() {
            Err(error) if is_unrouted(&error) && Instant::now() < deadline => {
                thread::sleep(ATTEMPT);
            }
            connected => return connected,
        }
    }
}

fn is_unrouted(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable
    )
}

fn connect(to: SocketAddr) -> io::Result<SetUp> {
    let began = Instant::now();
    let mut tcp = TcpStream::connect(to)?;
    let connected = began.elapsed();
    tcp.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let mut byte = [1];
    tcp.write_all(&byte)?;
    tcp.read_exact(&mut byte)?;
    Ok(SetUp {
        connected: connected.as_secs_f64(),
        answered: began.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn each_connection_is_answered() {
        let (address, listening) = mpsc::channel();
        let any = "127.0.0.1:0".parse().unwrap();
        thread::spawn(move || answer(any, |at| address.send(at).unwrap()));
        let times = set_up(listening.recv().unwrap(), 3).unwrap();
        assert_eq!(times.len(), 3);
        for one in times {
            assert!(one.connected > 0.0 && one.connected <= one.answered);
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_an_error() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = free.local_addr().unwrap();
        drop(free);
        assert!(set_up(to, 1).is_err());
    }
}
