//! The round-trip time over plain IP.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::error::PerfError;

/// The discard port (RFC 863), on which nothing listens.
const PORT: u16 = 9;
/// Attempts, of which the shortest counts: the system sends a lost request again only after a second.
const ATTEMPTS: usize = 5;
/// Longest wait for the answer to one of them.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// The shortest of five round trips to the host `to`: the time in which it refuses a TCP connection, or
/// accepts it. It needs no program there, and no privileges.
///
/// # Errors
/// [`PerfError::System`] when no attempt is answered.
pub fn round_trip(to: IpAddr) -> Result<Duration, PerfError> {
    let attempt = || {
        let began = Instant::now();
        match TcpStream::connect_timeout(&SocketAddr::new(to, PORT), ANSWER_TIMEOUT) {
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => Err(error),
            _ => Ok(began.elapsed()),
        }
    };
    let mut shortest = attempt();
    for _ in 1..ATTEMPTS {
        shortest = match (shortest, attempt()) {
            (Ok(one), Ok(other)) => Ok(one.min(other)),
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
            (Err(error), Err(_)) => Err(error),
        };
    }
    Ok(shortest?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_answers_without_a_program() {
        assert!(round_trip([127, 0, 0, 1].into()).unwrap() < ANSWER_TIMEOUT);
    }
}
