//! A stream that the peer opens: a connection of its program to a server here.

use std::sync::Arc;
use std::time::Duration;

use hawser_endhost::patience::wait;

use super::copy::{CopyError, copy_both};
use super::registry::Connections;
use super::shared::Stream;
use crate::carrier::node::Node;
use crate::link::ToHolder;
use crate::protocol::{Preamble, Status, preamble};
use crate::relay;
use crate::relay::{IncomingError, connect_server};

/// How long the other side may take to say what it connects to, without the time in which this process
/// did not run.
const PREAMBLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves a stream of the host `from` until it ends.
pub(crate) async fn serve(stream: Stream, from: String, connections: Connections, node: Node) {
    let result = handle(&stream, &connections, &node).await;
    let is_refused = |error: &IncomingError| error.status().is_some();
    let was_set_up = !result.as_ref().is_err_and(is_refused);
    let failure = match result {
        Ok(()) => {
            stream.complete();
            None
        }
        Err(error) => {
            stream.reset(error.status().unwrap_or(Status::Connected));
            let is_end = matches!(&error, IncomingError::Broken(error) if relay::is_end(error));
            (!is_end).then(|| format!("from {from}: {error}"))
        }
    };
    if let Some(failure) = &failure {
        tracing::info!("a connection failed: {failure}");
    }
    node.tell(ToHolder::StreamEnded {
        was_set_up,
        failure,
    });
}

async fn handle(
    stream: &Stream,
    connections: &Connections,
    node: &Node,
) -> Result<(), IncomingError> {
    let mut bytes = [0; preamble::LENGTH];
    let read = wait(PREAMBLE_TIMEOUT, read_exact(stream, &mut bytes)).await;
    read.ok_or(IncomingError::Silent)??;
    let ends = Preamble::decode(&bytes)?;
    let server = Arc::new(connect_server(node.served(), &ends).await?);
    let _added = connections.add(ends, stream);
    let copied = copy_both(&server, stream).await;
    if matches!(copied, Err(CopyError::Reset(_))) && stream.is_at_end() {
        // The program had ended its direction before: the server is to have what it sent.
        relay::delivered(&*server).await;
    }
    copied
        .map_err(IncomingError::from)
        .inspect_err(|_| relay::reset(&*server))
}

async fn read_exact(stream: &Stream, buffer: &mut [u8]) -> Result<(), IncomingError> {
    let mut read = 0;
    while read < buffer.len() {
        let bytes = stream.read(buffer.len() - read).await;
        let bytes = bytes.map_err(CopyError::from)?;
        let bytes = bytes.ok_or(IncomingError::Silent)?;
        buffer[read..read + bytes.len()].copy_from_slice(&bytes);
        read += bytes.len();
        stream.consume(bytes.len());
    }
    Ok(())
}

impl From<CopyError> for IncomingError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Tcp(error) => Self::Broken(error),
            CopyError::Reset(Status::Connected) => {
                Self::Broken(std::io::ErrorKind::ConnectionReset.into())
            }
            CopyError::Reset(status) => Self::Ended(format!("the session has ended: {status}")),
        }
    }
}
