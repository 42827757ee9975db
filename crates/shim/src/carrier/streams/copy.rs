//! Copies between a TCP connection on this host and a stream.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use rustix::net::Shutdown;
use thiserror::Error;
use tokio::net::TcpStream;

use super::inline::{self, Load};
use super::shared::{Reset, StreamHandle};
use crate::protocol::Status;
use crate::relay;

/// Bytes copied at once. The buffer belongs to a thread: a connection at rest needs none.
const CHUNK: usize = 128 << 10;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK]);
}

/// Why copying ends before both directions have ended.
#[derive(Debug, Error)]
pub(super) enum CopyError {
    /// The TCP connection broke.
    #[error("it broke: {0}")]
    Tcp(#[from] io::Error),
    /// The other side ended the stream.
    #[error("{0}")]
    Reset(Status),
}

impl From<Reset> for CopyError {
    fn from(Reset(status): Reset) -> Self {
        Self::Reset(status)
    }
}

impl CopyError {
    /// Whether an end of the connection was closed in haste, as programs do.
    pub(super) fn is_end(&self) -> bool {
        match self {
            Self::Tcp(error) => relay::is_end(error),
            Self::Reset(status) => *status == Status::Connected,
        }
    }
}

/// Copies in both directions until both have ended. The thread that has received bytes of the stream also
/// writes them to the TCP connection.
pub(super) async fn copy_both(
    tcp: &Arc<TcpStream>,
    stream: &StreamHandle,
) -> Result<(), CopyError> {
    let load = Load::default();
    let receive = receive(stream.clone(), Arc::clone(tcp), load.clone());
    let receive = inline::run(load, receive);
    tokio::select! {
        done = async { tokio::try_join!(send(tcp, stream), receive) } => done.map(drop),
        // Also while nothing is to be read or written.
        reset = stream.was_reset() => Err(reset.into()),
    }
}

/// Copies everything that arrives at `tcp` to the stream, and then the end.
async fn send(tcp: &TcpStream, stream: &StreamHandle) -> Result<(), CopyError> {
    loop {
        stream.writable().await?;
        tcp.readable().await?;
        // What the stream had no room for.
        let mut rest = Vec::new();
        let read = BUFFER.with_borrow_mut(|buffer| {
            let bytes = tcp.try_read(buffer)?;
            let written = stream.try_write(&buffer[..bytes])?;
            rest.extend_from_slice(&buffer[written..bytes]);
            Ok(bytes)
        });
        match read {
            Ok(0) => {
                stream.finish();
                return Ok(());
            }
            Ok(_) => stream.write_all(&rest).await?,
            Err(CopyError::Tcp(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Copies everything that arrives in the stream to `tcp`, and then the end.
async fn receive(stream: StreamHandle, tcp: Arc<TcpStream>, load: Load) -> Result<(), CopyError> {
    while let Some(bytes) = stream.read(CHUNK).await? {
        load.note(bytes.len());
        relay::write_all(&*tcp, &bytes).await?;
        stream.consume(bytes.len());
    }
    match rustix::net::shutdown(&*tcp, Shutdown::Write) {
        // The other side has closed already.
        Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}
