//! TCP without anything else, as an ordinary program sends and receives it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::MIN_SAMPLE_INTERVAL;
use crate::error::PerfError;
use crate::message::Received;

/// Bytes written and read at once.
const CHUNK: usize = 256 << 10;
/// Longest time without progress.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(30);

pub fn send(to: SocketAddr, time: Duration) -> Result<u64, PerfError> {
    let mut tcp = TcpStream::connect(to)?;
    tcp.set_read_timeout(Some(PROGRESS_TIMEOUT))?;
    tcp.set_write_timeout(Some(PROGRESS_TIMEOUT))?;
    let chunk = vec![0; CHUNK];
    let (began, mut bytes) = (Instant::now(), 0);
    while began.elapsed() < time {
        // Whatever there is room for: a whole chunk could take long at a low rate.
        bytes += tcp.write(&chunk)? as u64;
    }
    tcp.shutdown(Shutdown::Write)?;
    // Waits until the receiver has read everything.
    while tcp.read(&mut [0; 64])? > 0 {}
    Ok(bytes)
}

pub fn receive(
    listen: SocketAddr,
    listening: impl FnOnce(SocketAddr),
    samples: &mut Vec<(f64, u64)>,
) -> Result<Received, PerfError> {
    let listener = TcpListener::bind(listen)?;
    listening(listener.local_addr()?);
    let (mut tcp, _) = listener.accept()?;
    tcp.set_read_timeout(Some(PROGRESS_TIMEOUT))?;
    let mut chunk = vec![0; CHUNK];
    let (mut bytes, mut first, mut time) = (0, None, Duration::ZERO);
    let mut due = Duration::ZERO;
    loop {
        match tcp.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => bytes += length as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        }
        time = first.get_or_insert_with(Instant::now).elapsed();
        if time >= due {
            due = time + MIN_SAMPLE_INTERVAL;
            samples.push((time.as_secs_f64(), bytes));
        }
    }
    samples.push((time.as_secs_f64(), bytes));
    Ok(Received {
        bytes,
        seconds: time.as_secs_f64(),
        ..Received::default()
    })
}
