//! The control stream of one connection.

mod queue;

use std::sync::Arc;

use hawser_quic::{Connection, RecvStream, SendStream, StreamError};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::queue::Queue;
use crate::data::SubflowKey;
use crate::protocol::{DecodeError, Framing, Message};

/// Bytes read from the stream at once.
const CHUNK: usize = 64 << 10;

/// Why the control stream of a connection ended.
#[derive(Debug, Error)]
pub(crate) enum ControlError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("the other side closed the connection")]
    Closed,
    #[error("the other side breaks the protocol: {0}")]
    Decode(#[from] DecodeError),
}

/// The control stream of a connection, before its session uses it.
#[derive(Debug)]
pub(crate) struct Control {
    connection: Connection,
    send: SendStream,
    receive: RecvStream,
    framing: Framing,
}

/// What arrives on the control stream of a subflow.
#[derive(Debug)]
pub(crate) struct Received {
    pub subflow: SubflowKey,
    /// A message, or why there are no more.
    pub message: Result<Message, ControlError>,
}

/// Sends messages on the control stream of a subflow. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub connection: Connection,
    queue: Arc<Queue>,
    writer: Option<JoinHandle<()>>,
}

impl Control {
    /// Opens the stream, as the client.
    pub(crate) async fn open(connection: Connection) -> Result<Self, ControlError> {
        let streams = connection.open_bi().await?;
        Ok(Self::new(connection, streams))
    }

    /// Waits for the client's stream.
    pub(crate) async fn accept(connection: Connection) -> Result<Self, ControlError> {
        let streams = connection.accept_bi().await?;
        Ok(Self::new(connection, streams))
    }

    fn new(connection: Connection, (send, receive): (SendStream, RecvStream)) -> Self {
        Self {
            connection,
            send,
            receive,
            framing: Framing::default(),
        }
    }

    /// The connection.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Sends a message.
    pub(crate) async fn write(&mut self, message: &Message) -> Result<(), ControlError> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        self.write_encoded(&bytes).await
    }

    /// Sends encoded messages.
    pub(crate) async fn write_encoded(&mut self, bytes: &[u8]) -> Result<(), ControlError> {
        Ok(self.send.write_all(bytes).await?)
    }

    /// The next message.
    pub(crate) async fn read(&mut self) -> Result<Message, ControlError> {
        next(&mut self.receive, &mut self.framing).await
    }

    /// Sends no more, and waits until the peer has received all.
    pub(crate) async fn finish(mut self) {
        if self.send.finish().is_ok() {
            let _ = self.send.delivered().await;
        }
    }

    /// Runs the stream for a session: what arrives goes to `inbox`, and no more is read while that is
    /// full.
    pub(crate) fn run(self, subflow: SubflowKey, inbox: mpsc::Sender<Received>) -> Outgoing {
        let Self {
            connection,
            mut send,
            mut receive,
            mut framing,
        } = self;
        // Both sides know each other by now, and manifests may be long.
        connection.expect_data();
        let queue = Arc::new(Queue::default());
        let waiting = Arc::clone(&queue);
        // Both tasks end with the connection; the session closes it by dropping what it sends with.
        let writer = tokio::spawn(async move {
            while let Some(bytes) = waiting.next().await {
                if send.write_chunk(bytes).await.is_err() {
                    // The reader reports why.
                    return;
                }
            }
            if send.finish().is_ok() {
                // When both sides finish at once, neither has a packet left that would carry the
                // acknowledgement, and QUIC delays it by up to 25 ms (RFC 9000, 13.2.1).
                tokio::select! {
                    _ = send.delivered() => {}
                    () = waiting.peer_finished() => {}
                }
            }
        });
        let finished = Arc::clone(&queue);
        tokio::spawn(async move {
            loop {
                let message = next(&mut receive, &mut framing).await;
                let last = message.is_err();
                if matches!(message, Err(ControlError::Closed)) {
                    finished.on_peer_finished();
                }
                let received = Received { subflow, message };
                if inbox.send(received).await.is_err() || last {
                    return;
                }
            }
        });
        Outgoing {
            connection,
            queue,
            writer: Some(writer),
        }
    }
}

impl Outgoing {
    /// Sends a message. If the connection has ended, its reader reports that.
    pub(crate) fn send(&self, message: &Message) {
        self.queue.push(message);
    }

    /// Sends no more messages, and waits until the peer has received all or has finished too: its
    /// session has ended then, and needs nothing more.
    pub(crate) async fn finish(mut self) {
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            // A panic of the task was reported.
            let _ = writer.await;
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.queue.close();
    }
}

async fn next(receive: &mut RecvStream, framing: &mut Framing) -> Result<Message, ControlError> {
    loop {
        if let Some(message) = framing.pop()? {
            return Ok(message);
        }
        let chunk = receive.read_chunk(CHUNK).await?;
        framing.push(&chunk.ok_or(ControlError::Closed)?);
    }
}
