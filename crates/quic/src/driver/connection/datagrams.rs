//! The datagrams of a connection (RFC 9221), as the application uses them.

use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use noq_proto::{ConnectionError, SendDatagramError};

use super::Connection;
use super::state::Cause;
use crate::connection::DatagramError;

impl Connection {
    /// Sends a datagram; older ones that wait for congestion control are dropped for it.
    pub(crate) fn send_datagram(&self, bytes: Bytes) -> Result<(), DatagramError> {
        self.update(Instant::now(), Cause::Application, |state| {
            if state.error.is_some() {
                return Err(DatagramError::Closed);
            }
            let mut datagrams = state.quic.datagrams();
            let max = datagrams.max_size().unwrap_or_default();
            datagrams.send(bytes, true).map_err(|error| match error {
                SendDatagramError::TooLarge => DatagramError::TooLarge { max },
                _ => DatagramError::Unsupported,
            })
        })
    }

    /// The next datagram that arrived.
    pub(crate) fn poll_datagram(&self, cx: &Context<'_>) -> Poll<Result<Bytes, ConnectionError>> {
        let mut state = self.lock();
        match (state.quic.datagrams().recv(), &state.error) {
            (Some(bytes), _) => Poll::Ready(Ok(bytes)),
            (None, Some(error)) => Poll::Ready(Err(error.clone())),
            (None, None) => state.tasks.wait(cx),
        }
    }
}
