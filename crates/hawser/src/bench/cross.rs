//! Cross traffic: UDP at a steady rate that nothing slows down.

use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::failure::{Doing, Failure};
use crate::out::errln;

/// Bytes of a datagram: with its headers a frame of 1442 bytes.
const DATAGRAM: usize = 1400;
/// Ethernet, IPv4 and UDP headers of its frame, in bytes.
const HEADERS: usize = 14 + 20 + 8;
/// The discard port (RFC 863). Nobody listens: the kernel at the other end drops what comes.
const PORT: u16 = 9;

/// Sends frames of `rate` bit/s from one address to another for `time`.
pub fn send(from: IpAddr, to: IpAddr, rate: u64, time: Duration) -> ExitCode {
    match flow(from, to, rate, time) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            errln!("hawser: cross traffic: {failure}");
            failure.exit_code()
        }
    }
}

fn flow(from: IpAddr, to: IpAddr, rate: u64, time: Duration) -> Result<(), Failure> {
    let socket = UdpSocket::bind((from, 0)).doing(from)?;
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
            // A full queue, or an answer that nobody listens: both are what is wanted.
            Err(error)
                if error.kind() != ErrorKind::ConnectionRefused
                    && Errno::from_io_error(&error) != Some(Errno::NOBUFS) =>
            {
                return Err(error).doing(format_args!("sending to {to}"));
            }
            _ => {}
        }
        // What sleep was late by is made up for, but not a whole pause of the machine.
        due = (due + gap).max(Instant::now() - Duration::from_millis(20));
    }
    Ok(())
}
