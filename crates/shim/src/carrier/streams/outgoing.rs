//! A program's connection, carried by a stream.

use std::sync::Arc;

use hawser_endhost::ScionAddr;
use tokio::net::TcpStream;

use super::copy::{CopyError, copy_both};
use super::registry::{Connections, name};
use super::shared::{SharedStreams, StreamHandle};
use crate::carrier::node::Node;
use crate::handover::Handed;
use crate::link::ToHolder;
use crate::protocol::{Preamble, Status};
use crate::relay;

/// Carries a connection of a program to the host `peer` until it ends.
pub(crate) async fn carry(
    handed: Handed,
    peer: ScionAddr,
    streams: SharedStreams,
    connections: Connections,
    node: Node,
) {
    let Handed { ends, program } = handed;
    let program = match TcpStream::from_std(program) {
        Ok(program) => Arc::new(program),
        Err(error) => {
            let failure = format!("{} at {peer}: {error}", name(&ends));
            return node.tell(ToHolder::StreamEnded {
                was_set_up: false,
                failure: Some(failure),
            });
        }
    };
    let stream = streams.open();
    let added = connections.add(ends, &stream);
    let result = relay_program(&program, &stream, &ends).await;
    drop(added);
    let is_refused = |error: &CopyError| matches!(error, CopyError::Reset(_)) && !error.is_end();
    let was_set_up = !result.as_ref().is_err_and(is_refused);
    let failure = match result {
        Ok(()) => {
            stream.complete();
            None
        }
        Err(error) => {
            relay::reset(&*program);
            stream.reset(Status::Connected);
            (!error.is_end()).then(|| format!("{} at {peer}: {error}", name(&ends)))
        }
    };
    if let Some(failure) = &failure {
        tracing::warn!("a connection failed: {failure}");
    }
    node.tell(ToHolder::StreamEnded {
        was_set_up,
        failure,
    });
}

async fn relay_program(
    program: &Arc<TcpStream>,
    stream: &StreamHandle,
    ends: &Preamble,
) -> Result<(), CopyError> {
    stream.write_all(&ends.encode()).await?;
    copy_both(program, stream).await
}
