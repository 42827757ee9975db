//! One connection: the handshakes, then reading and writing until it ends.
//!
//! # Its life
//!
//! 1. *Handshakes* ([`establish`]), within 10 s, in the task of the dial, or in one of their own
//!    where the peer opened the connection. Of what the peer sends, only its handshake is kept.
//! 2. *Joined*: the owner of the torrent takes the [`Session`], or closes it if the peer is banned
//!    or was offered pieces that have since been withdrawn.
//! 3. *Open* ([`run`]): one task reads and writes at the same time. It passes messages to the
//!    owner, puts requests into the queue of [`Traffic`], and writes the owner's messages and the
//!    blocks requested. While blocks wait for a limit of the rate, the disk's budget, or room in the
//!    owner's channel, nothing is read.
//! 4. *Gone*: when either direction ends, the peer breaks the protocol, or the owner drops its end
//!    of `messages`, the connection is closed with the code of [`Gone`], which the owner is told.
//!
//! It holds up to 256 KiB that were read, a message that is not complete, up to [`MAX_WAITING`] requests,
//! and 256 KiB of blocks being written with as much being read from disk, on a thread that may
//! wait; the stream keeps what the peer has not received. The owner bounds the queue of its messages.
//!
//! Two locks, neither of which is taken under the other: `Shared::offered`, the pieces that peers
//! may request, which the owner writes and all connections read; and the queue in `Uploads`, which
//! the owner opens and clears, the reader fills and the writer empties. Both are held for one call
//! that neither awaits nor does I/O. Counters and flags are atomic.

mod gone;
mod handshake;
mod reader;
mod shared;
mod traffic;
mod waiting;
mod writer;

use std::sync::Arc;

use tokio::sync::mpsc;

pub(crate) use self::gone::Gone;
pub(crate) use self::handshake::{Session, Side, establish};
pub(crate) use self::shared::Shared;
pub(crate) use self::traffic::{Input, Inputs, Outgoing, Traffic};
pub(crate) use self::waiting::MAX_WAITING;

/// Reads and writes until the connection ends, the peer breaks the protocol, or the sender of
/// `messages` is dropped; then closes it. Sends `messages` in order; passes those of the peer to
/// `events`, converted by `wrap`.
pub(crate) async fn run<E: Send>(
    session: Session,
    shared: Arc<Shared>,
    traffic: Arc<Traffic>,
    messages: mpsc::UnboundedReceiver<Outgoing>,
    events: mpsc::Sender<E>,
    wrap: impl Fn(Inputs) -> E + Send,
) -> Gone {
    let (connection, (read, write)) = (session.connection, session.stream);
    let key = connection.key();
    let gone = tokio::select! {
        gone = reader::run(read, &shared, &traffic, key, &events, wrap) => gone,
        gone = writer::run(write, &shared, &traffic, key, messages) => gone,
    };
    let gone = match gone {
        Gone::Closed(otherwise) => Gone::of(&*connection, &otherwise.text),
        other => other,
    };
    connection.close(gone.code(), &gone.to_string());
    gone
}
