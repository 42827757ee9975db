//! Relaying a connection: between a program or server on this host and the other holder.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use hawser_kernel::socket;
use hawser_mptcp::BUFFER_LIMIT;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, Shutdown, ipproto, sockopt};
use tokio::net::{TcpSocket, TcpStream};

use super::endpoint::Endpoint;

/// Bytes copied at once. The buffer belongs to a thread: a connection at rest needs none.
const CHUNK: usize = 256 << 10;
/// Wait after an error of accept(2), as when no more files can be opened.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without anything to read after which the kernel is asked whether there is: at first, and at
/// last on a connection at rest.
const CHECK_INTERVAL: Range<Duration> = Duration::from_millis(100)..Duration::from_secs(10);
/// Interval at which it is looked whether all is acknowledged: at first, and at last.
const POLL_INTERVALS: Range<Duration> = Duration::from_millis(1)..Duration::from_secs(1);

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK]);
}

/// Whether an error of a connection means that one of its ends was closed in haste, as programs do.
pub(crate) fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionReset)
}

/// Copies everything that arrives at `from` to `to`, and then the end of the stream.
///
/// # Errors
/// When one of the connections breaks.
pub(crate) async fn copy(from: &impl Endpoint, to: &impl Endpoint) -> io::Result<()> {
    copy_bytes(from, to, &mut BytesMut::new(), |_| {}).await?;
    finish(to)
}

/// Ends the direction to the other side.
///
/// # Errors
/// When the connection is broken.
pub(crate) fn finish(to: &impl AsFd) -> io::Result<()> {
    match rustix::net::shutdown(to, Shutdown::Write) {
        // The other side has closed already.
        Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Copies everything that arrives at `from` to `to`, first of all the `rest` of an earlier call. `on_read`
/// learns of the bytes of each read. What was read and not written when the future is dropped is `rest`.
///
/// # Errors
/// When one of the connections breaks.
pub(crate) async fn copy_bytes(
    from: &impl Endpoint,
    to: &impl Endpoint,
    rest: &mut BytesMut,
    on_read: impl Fn(usize),
) -> io::Result<()> {
    let is_mptcp = sockopt::socket_protocol(from)? == Some(ipproto::MPTCP);
    // Whether there is something to read that the kernel has not reported.
    let mut unreported = false;
    loop {
        while !rest.is_empty() {
            to.writable().await?;
            match to.try_write(rest) {
                Ok(bytes) => rest.advance(bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        // A connection at rest needs no buffer.
        *rest = BytesMut::new();
        match is_mptcp {
            true if unreported => tokio::task::yield_now().await,
            true => unreported = wait_for_data(from).await?,
            false => from.readable().await?,
        }
        let read = |buffer: &mut [u8]| match unreported {
            true => Ok(rustix::net::recv(from, buffer, RecvFlags::DONTWAIT)?.0),
            false => from.try_read(buffer),
        };
        match BUFFER.with_borrow_mut(|buffer| pass(read, to, buffer, rest)) {
            Ok(0) => return Ok(()),
            Ok(bytes) => on_read(bytes),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => unreported = false,
            Err(error) => return Err(error),
        }
    }
}

/// Waits until there is something to read on an MPTCP connection. Returns whether the kernel has not
/// reported that.
async fn wait_for_data(from: &impl Endpoint) -> io::Result<bool> {
    let mut pause = CHECK_INTERVAL.start;
    loop {
        if let Ok(ready) = tokio::time::timeout(pause, from.readable()).await {
            return ready.map(|()| false);
        }
        if hawser_mptcp::has_received(from, BUFFER_LIMIT as usize)? {
            return Ok(true);
        }
        pause = (pause * 2).min(CHECK_INTERVAL.end);
    }
}

/// Copies what one read gives, without waiting; what `to` has no room for goes to `rest`. Returns
/// how many bytes were read.
fn pass(
    read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    to: &impl Endpoint,
    buffer: &mut [u8],
    rest: &mut BytesMut,
) -> io::Result<usize> {
    let bytes = read(buffer)?;
    let mut unwritten = &buffer[..bytes];
    while !unwritten.is_empty() {
        match to.try_write(unwritten) {
            Ok(written) => unwritten = &unwritten[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                rest.extend_from_slice(unwritten);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// Reads exactly as many bytes as `buffer` has.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`], or as the system says.
pub(crate) async fn read_exact(from: &impl Endpoint, buffer: &mut [u8]) -> io::Result<()> {
    let mut read = 0;
    while read < buffer.len() {
        from.readable().await?;
        match from.try_read(&mut buffer[read..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until the other side closes its direction, and drops what it reads.
///
/// # Errors
/// As the system says.
pub(crate) async fn discard(from: &impl Endpoint) -> io::Result<()> {
    loop {
        from.readable().await?;
        match BUFFER.with_borrow_mut(|buffer| from.try_read(buffer)) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
}

/// Whether everything up to the end of the other side's direction has arrived, or the connection has
/// ended.
pub(crate) fn has_ended(from: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(from, PollFlags::RDHUP)];
    let at_once = Timespec::default();
    poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Whether bytes of either direction are still to get through, and none are here to be read.
pub(crate) fn is_incomplete(stream: &impl AsFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let has_bytes =
        rustix::net::recv(stream, &mut [0][..], flags).is_ok_and(|(bytes, _)| bytes > 0);
    let is_sent = || socket::unacknowledged(stream).is_ok_and(|left| left == 0);
    !(has_bytes || has_ended(stream) && is_sent())
}

/// Waits until the other end has what was written to `to`, or the connection has ended. What it sends
/// is dropped.
pub(crate) async fn delivered(to: &impl Endpoint) {
    let acknowledged = async {
        let mut pause = POLL_INTERVALS.start;
        while socket::unacknowledged(to).is_ok_and(|left| left > 0)
            && matches!(sockopt::socket_error(to), Ok(Ok(())))
        {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(POLL_INTERVALS.end);
        }
    };
    tokio::select! {
        () = acknowledged => {}
        Err(_) = discard(to) => {}
    }
}

/// Writes all of `bytes`.
///
/// # Errors
/// As the system says.
pub(crate) async fn write_all(to: &impl Endpoint, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Has a connection end with a reset, so that its other end learns of the failure.
pub(crate) fn reset(stream: &impl AsFd) {
    // It fails only for what is no connection any more.
    let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Waits after accept(2) has failed.
pub(crate) async fn wait_after(error: &io::Error) {
    tracing::warn!(%error, "cannot accept a connection");
    tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
}

/// Connects to a server by plain TCP; the connection is not captured again.
///
/// # Errors
/// As the system says.
pub(crate) async fn connect(server: SocketAddr) -> io::Result<TcpStream> {
    let socket = match server {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    crate::mark::mark(&socket)?;
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, socket.connect(server)).await;
    let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    sockopt::set_tcp_nodelay(&stream, true)?;
    Ok(stream)
}
