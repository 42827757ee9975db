//! Unreliable messages.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;

use crate::MAX_DATAGRAM;
use crate::error::{ReceiveError, SendError};
use crate::session::User;

/// Unreliable messages over the paths of a [`Connection`](crate::Connection): each arrives once or not at
/// all, in any order. A message goes over the path in use with the shortest round-trip time; it is not
/// sent again when that path is lost. Messages are encrypted as the stream is, and share congestion control
/// with it.
///
/// Cloning shares it. It keeps the connection open.
///
/// ```no_run
/// # async fn example(connection: hawser::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// let datagrams = connection.datagrams();
/// datagrams.send(b"ping")?;
/// let answer = datagrams.receive().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Datagrams(Arc<User>);

impl Datagrams {
    pub(crate) fn new(user: Arc<User>) -> Self {
        Self(user)
    }

    /// Sends a message of at most [`MAX_DATAGRAM`] bytes without waiting. Up to 256 KiB wait on a path for
    /// congestion control; beyond, the oldest are dropped.
    ///
    /// ```no_run
    /// # fn example(datagrams: hawser::Datagrams) -> Result<(), hawser::SendError> {
    /// datagrams.send(b"42")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send(&self, message: &[u8]) -> Result<(), SendError> {
        let size = message.len();
        if size > MAX_DATAGRAM {
            return Err(SendError::TooLarge { size });
        }
        self.0
            .session()
            .send_message(Bytes::copy_from_slice(message))
    }

    /// The next message. Up to 256 wait to be received; beyond, the oldest are dropped. Cancel safe.
    ///
    /// ```no_run
    /// # async fn example(datagrams: hawser::Datagrams) -> Result<(), hawser::ReceiveError> {
    /// let message = datagrams.receive().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ReceiveError::Ended`].
    pub async fn receive(&self) -> Result<Vec<u8>, ReceiveError> {
        let message = poll_fn(|cx| self.0.session().poll_message(cx)).await;
        message.map(Vec::from).ok_or(ReceiveError::Ended)
    }
}
