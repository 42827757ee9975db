//! Typed messages over the first stream of a QUIC connection.
//!
//! # The life of a stream
//!
//! 1. *Opening*: the side that dialed opens it and writes; the other side waits for it and its
//!    first message, up to [`FIRST_MESSAGE_TIMEOUT`].
//! 2. *In turn*: the task that sets the connection up reads and writes, and each waits for the
//!    other side. It may end here: refused, with a last message that the peer has 5 s to receive,
//!    or dropped, which resets it.
//! 3. *Running*: [`Control::run`], in one task. Messages of the queue are sent as QUIC takes them;
//!    those that arrive go to the inbox, and while that is full nothing is read.
//! 4. *Closing*: the queue is closed, and empties. It ends when the peer has received everything or
//!    has ended its direction, or 2 s after the queue was closed.
//!
//! An error in 3 ends it too, after what arrived before it was passed on; where the peer only
//! stopped reading, what it still sends is read for 2 s. Received bytes take no more than one
//! message and 64 KiB; what bounds messages that wait to be sent says [`MessageSender`].
//!
//! The one lock is that of the waiting messages (`queue`). Under it messages are encoded, and the
//! queue is closed, so that nothing follows the last message. No other lock of this crate is taken
//! under it, and nothing awaits.

mod framing;
#[cfg(test)]
mod fuzz;
mod queue;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use hawser_endhost::patience::{elapse, wait};
use hawser_quic::{Connection, RecvStream, SendStream, StreamError};
use thiserror::Error;
use tokio::sync::mpsc;

pub use self::framing::{ControlMessage, Framing};
pub use self::queue::{MessageQueue, MessageSender, message_queue};

/// Longest wait for a message that must come next while a connection is set up, without the time in
/// which this process did not run.
pub const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait until the peer has received a refusal, counted in the same manner.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait, once no more messages are sent, until the peer has received those before.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait for what a peer sends that reads no more itself.
const STOPPED_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes read from the stream at once.
const CHUNK: usize = 64 << 10;

/// Why a control stream cannot be used any more. `E` is why bytes are not a message of its protocol.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ControlError<E> {
    /// The stream, or its connection, has failed.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The peer sends no more messages.
    #[error("the other side closed the connection")]
    Ended,
    /// The peer did not send the first message in time.
    #[error("it sends no first message")]
    Silent,
    /// The peer ended the stream inside a message.
    #[error("the other side breaks the protocol: its stream ends inside a message")]
    Truncated,
    /// The peer announced a message that is longer than any of the protocol.
    #[error(
        "the other side breaks the protocol: a message has {length} bytes, and {max} are allowed"
    )]
    TooLong {
        /// The length that it announced, in bytes.
        length: u64,
        /// The length of the longest message, in bytes.
        max: usize,
    },
    /// The peer sent bytes that are not a message.
    #[error("the other side breaks the protocol: {0}")]
    Invalid(E),
}

/// The control stream of a connection: messages of one protocol, in both directions.
///
/// The side that dialed [opens](Self::open) it, the other one [accepts](Self::accept) it with its first
/// message. Both write and read in turn while the connection is set up. Then one of them
/// [refuses](Self::refuse) it, or both [run](Self::run) it. Dropping it resets the stream.
#[derive(Debug)]
pub struct Control<M> {
    connection: Connection,
    send: SendStream,
    reader: Reader<M>,
}

/// The direction of a stream from the peer.
#[derive(Debug)]
struct Reader<M> {
    stream: RecvStream,
    framing: Framing<M>,
}

/// What becomes of a [`Control`], and of a message or the reason why there is none.
type Accepted<M> = (
    Control<M>,
    Result<M, ControlError<<M as ControlMessage>::Error>>,
);

impl<M: ControlMessage> Control<M> {
    /// Opens the stream, as the side that dialed.
    ///
    /// # Errors
    /// [`ControlError::Stream`] when the connection is closed.
    pub async fn open(connection: Connection) -> Result<Self, ControlError<M::Error>> {
        let streams = connection.open_bi().await?;
        Ok(Self::new(connection, streams))
    }

    /// Waits for the stream of the side that dialed, and its first message, up to
    /// [`FIRST_MESSAGE_TIMEOUT`] in all. If what the peer wrote is not a message, the stream comes with
    /// the error, so that the peer can be told why it is refused.
    ///
    /// # Errors
    /// [`ControlError::Stream`], [`ControlError::Ended`] or [`ControlError::Silent`] when the peer writes
    /// nothing.
    pub async fn accept(connection: Connection) -> Result<Accepted<M>, ControlError<M::Error>> {
        let first = async {
            let streams = connection.accept_bi().await?;
            let mut control = Self::new(connection, streams);
            match control.read().await {
                Err(error @ (ControlError::Stream(_) | ControlError::Ended)) => Err(error),
                first => Ok((control, first)),
            }
        };
        wait(FIRST_MESSAGE_TIMEOUT, first)
            .await
            .unwrap_or(Err(ControlError::Silent))
    }

    fn new(connection: Connection, (send, receive): (SendStream, RecvStream)) -> Self {
        Self {
            connection,
            send,
            reader: Reader {
                stream: receive,
                framing: Framing::default(),
            },
        }
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Sends a message, waiting for room.
    ///
    /// # Errors
    /// [`ControlError::Stream`].
    pub async fn write(&mut self, message: &M) -> Result<(), ControlError<M::Error>> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        self.write_encoded(&bytes).await
    }

    /// Sends messages that were [encoded](ControlMessage::encode) before, waiting for room.
    ///
    /// # Errors
    /// [`ControlError::Stream`].
    pub async fn write_encoded(&mut self, bytes: &[u8]) -> Result<(), ControlError<M::Error>> {
        Ok(self.send.write_all(bytes).await?)
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// [`ControlError`]; there are no more messages then.
    pub async fn read(&mut self) -> Result<M, ControlError<M::Error>> {
        self.reader.next().await
    }

    /// Sends a last message, and keeps the connection until the peer has received it, or for some
    /// seconds: a peer that takes nothing does not learn why it is refused.
    pub async fn refuse(mut self, refusal: &M) {
        let refused = async {
            if self.write(refusal).await.is_ok() && self.send.finish().is_ok() {
                let _ = self.send.delivered().await;
            }
        };
        let _ = wait(REFUSAL_TIMEOUT, refused).await;
    }

    /// Carries messages in both directions, of a peer that is known: those in `queue` are sent, those
    /// that arrive go to `inbox` as `wrap` makes them. While `inbox` is full nothing is read, so that
    /// QUIC stops the peer; while the peer reads nothing, messages that arrive are still passed on.
    ///
    /// Returns once this side has [closed](MessageSender::close) the queue, and the peer has received
    /// everything, has ended its direction as well, or takes nothing for two seconds. Everything that
    /// arrived before an error was passed on. Nothing is passed on once the receiver of `inbox` is gone.
    ///
    /// # Errors
    /// [`ControlError`], if the stream ends before the queue is closed.
    pub async fn run<T>(
        self,
        mut queue: MessageQueue<M>,
        inbox: mpsc::Sender<T>,
        wrap: impl Fn(M) -> T,
    ) -> Result<(), ControlError<M::Error>> {
        let Self {
            connection,
            mut send,
            mut reader,
        } = self;
        connection.expect_data();
        let state = queue.state();
        let mut receiving = pin!(async {
            loop {
                let message = match reader.next().await {
                    Ok(message) => message,
                    Err(error) => return Err::<Infallible, _>(error),
                };
                if inbox.send(wrap(message)).await.is_err() {
                    return Err(StreamError::Closed(connection.closed().await).into());
                }
            }
        });
        let sending = async {
            while let Some(bytes) = queue.next().await {
                send.write_chunk(bytes).await?;
            }
            send.finish()?;
            send.delivered().await
        };
        let closing = async {
            state.closed().await;
            elapse(CLOSE_TIMEOUT).await;
        };
        let error = tokio::select! {
            // When both sides finish at once, neither has a packet left that would carry the
            // acknowledgement, and QUIC delays it by up to 25 ms (RFC 9000, 13.2.1): that the peer ends
            // its direction counts as much. It needs nothing more.
            Err(error) = &mut receiving => error,
            sent = sending => match sent {
                Ok(()) => return Ok(()),
                // What the peer sent before it left tells why.
                Err(StreamError::Closed(_)) => {
                    let Err(error) = receiving.await;
                    error
                }
                Err(stopped) => match wait(STOPPED_TIMEOUT, receiving).await {
                    Some(Err(error)) => error,
                    None => stopped.into(),
                },
            },
            () = closing => return Ok(()),
        };
        match state.is_closed() {
            true => Ok(()),
            false => Err(error),
        }
    }
}

impl<M: ControlMessage> Reader<M> {
    /// Waits for the next message. Cancel safe.
    async fn next(&mut self) -> Result<M, ControlError<M::Error>> {
        loop {
            if let Some(message) = self.framing.pop()? {
                return Ok(message);
            }
            match self.stream.read_chunk(CHUNK).await? {
                Some(chunk) => self.framing.push(&chunk),
                None if self.framing.is_empty() => return Err(ControlError::Ended),
                None => return Err(ControlError::Truncated),
            }
        }
    }
}
