//! Cross traffic: UDP at a constant rate, without congestion control.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use rustix::io::Errno;

/// Payload bytes of a datagram; with its headers it is a frame of 1442 bytes.
const DATAGRAM: usize = 1400;
/// Ethernet, IPv4 and UDP headers of its frame, in bytes.
const HEADERS: usize = 14 + 20 + 8;
/// The discard port (RFC 863). Nothing listens there: the receiving kernel drops the datagrams.
const PORT: u16 = 9;
/// Longest lag that faster sending makes up for; a longer pause of the machine is skipped.
const MAX_LAG: Duration = Duration::from_millis(20);

/// Sends UDP from one address to another for `time`, at `rate` bit/s counted in Ethernet frames.
/// Blocks until the end.
///
/// # Errors
/// When `from` is not an address of this host, or the system refuses to send; the text names both
/// addresses.
pub fn send(from: IpAddr, to: IpAddr, rate: u64, time: Duration) -> io::Result<()> {
    send_paced(from, to, rate, time).map_err(|error| {
        let text = format!("cross traffic from {from} to {to}: {error}");
        io::Error::new(error.kind(), text)
    })
}

fn send_paced(from: IpAddr, to: IpAddr, rate: u64, time: Duration) -> io::Result<()> {
    let socket = UdpSocket::bind((from, 0))?;
    let datagram = [0; DATAGRAM];
    let gap = Duration::from_secs_f64(((DATAGRAM + HEADERS) * 8) as f64 / rate.max(1) as f64);
    let begun = Instant::now();
    let mut due = begun;
    while begun.elapsed() < time {
        let wait = due.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        match socket.send_to(&datagram, (to, PORT)) {
            // A full queue, or "port unreachable" from the other end: both are expected.
            Err(error)
                if error.kind() != ErrorKind::ConnectionRefused
                    && Errno::from_io_error(&error) != Some(Errno::NOBUFS) =>
            {
                return Err(error);
            }
            _ => {}
        }
        due = (due + gap).max(Instant::now() - MAX_LAG);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_host_is_refused() {
        let from = IpAddr::from([192, 0, 2, 1]);
        let to = IpAddr::from([127, 0, 0, 1]);
        let error = send(from, to, 1_000_000, Duration::from_millis(1)).unwrap_err();
        assert!(error.to_string().contains("192.0.2.1"), "{error}");
    }
}
