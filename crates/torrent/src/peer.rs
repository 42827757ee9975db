//! One connection: the handshakes, then reading and writing until it ends.

mod gone;
mod handshake;
mod reader;
mod shared;
mod traffic;
mod writer;

use std::sync::Arc;

use tokio::sync::mpsc;

pub(crate) use self::gone::Gone;
pub(crate) use self::handshake::{Session, Side, establish};
pub(crate) use self::shared::Shared;
pub(crate) use self::traffic::{Input, Inputs, Outgoing, QUEUE, Traffic};

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
    let gone = tokio::select! {
        gone = reader::run(read, &shared, &traffic, &events, wrap) => gone,
        gone = writer::run(write, &shared, &traffic, messages) => gone,
    };
    let gone = match gone {
        Gone::Closed(otherwise) => Gone::of(&*connection, &otherwise.text),
        other => other,
    };
    connection.close(gone.code(), &gone.to_string());
    gone
}
