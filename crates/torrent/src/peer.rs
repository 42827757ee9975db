//! One connection: the handshake, then reading and writing until it ends.

mod reader;
mod shared;
mod upload;
mod writer;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use hawser_store::Reservation;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

pub(crate) use self::shared::Shared;
pub(crate) use self::upload::{QUEUE, Uploads};
use crate::address::PeerAddr;
use crate::bitfield::Bitfield;
use crate::close::{CloseCode, Closed};
use crate::transport::Connection;
use crate::wire::{
    ExtendedHandshake, HANDSHAKE_BYTES, Handshake, Message, Multipath, Request, WireError, encode,
};

/// A peer has so long to say its handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Counts of one connection, written by its task and read by the owner.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Bytes read from the stream.
    pub received: AtomicU64,
    /// Bytes of blocks written to it.
    pub uploaded: AtomicU64,
}

/// What a peer said, for the owner of the torrent.
#[derive(Debug)]
pub(crate) enum Input {
    Block { request: Request, data: Bytes },
    Have(u32),
    Bitfield(Bitfield),
    Choke,
    Unchoke,
    Extended(ExtendedHandshake),
    Multipath(Multipath),
}

/// What one read brought.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub inputs: Vec<Input>,
    /// Room for the blocks among them.
    pub room: Option<Reservation>,
}

/// What the owner has sent to a peer, apart from blocks.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// Encoded messages.
    Messages(Vec<u8>),
    /// The end of the stream, after all that goes before.
    End,
}

/// Why a connection is of no more use.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum Gone {
    /// The peer broke the protocol.
    #[error("dropped: {0}")]
    Broke(#[from] WireError),
    /// The peer is ours: we dialed ourselves.
    #[error("it is this program itself")]
    Ourselves,
    /// The peer did not say its handshake in time.
    #[error("no BitTorrent handshake within {} s", HANDSHAKE_TIME.as_secs())]
    Silent,
    /// The connection ended.
    #[error("{0}")]
    Closed(Closed),
    /// What a peer asked for could not be read from disk.
    #[error("cannot read what it asked for: {0}")]
    Disk(String),
}

impl Gone {
    /// The connection ended, for a reason that is not the peer's.
    fn closed(text: impl Into<String>) -> Self {
        Self::Closed(Closed::plain(text))
    }

    /// What the peer is sent when the connection is closed for this.
    pub fn code(&self) -> CloseCode {
        match self {
            Self::Broke(_) => CloseCode::Banned,
            Self::Disk(_) => CloseCode::Storage,
            Self::Ourselves | Self::Silent | Self::Closed(_) => CloseCode::Plain,
        }
    }

    /// Whether the peer will be of no more use later: it serves something else, or is ourselves.
    pub fn is_final(&self) -> bool {
        let broke = |fault: &WireError| {
            matches!(
                fault,
                WireError::WrongInfoHash(_) | WireError::NotThisTorrent | WireError::NotBitTorrent
            )
        };
        matches!(self, Self::Ourselves) || matches!(self, Self::Broke(fault) if broke(fault))
    }
}

/// A connection after the handshake.
#[derive(Debug)]
pub(crate) struct Session<C: Connection> {
    pub connection: Arc<C>,
    /// Whether the peer understands extended messages.
    pub extended: bool,
    /// Whether our extended handshake went out with the first one.
    pub introduced: bool,
    /// The pieces we told the peer of.
    pub said: Bitfield,
    read: C::Read,
    write: C::Write,
}

/// Who opened a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// We did, so we speak first.
    Dialed,
    /// The peer did.
    Accepted,
}

/// Says the handshakes. What we have and want goes out with ours, so that requests can follow the
/// peer's answer at once; so does `introduction`, our extended handshake, where we dial over SCION:
/// who is dialed then knows what it needs to unchoke us, a round trip earlier.
///
/// # Errors
/// Why the connection, now closed, is of no use.
pub(crate) async fn establish<C: Connection>(
    connection: C,
    side: Side,
    introduction: &Message,
    shared: &Shared,
) -> Result<Session<C>, Gone> {
    let connection = Arc::new(connection);
    let handshakes = handshakes(Arc::clone(&connection), side, introduction, shared);
    let result = tokio::time::timeout(HANDSHAKE_TIME, handshakes)
        .await
        .unwrap_or(Err(Gone::Silent));
    if let Err(gone) = &result {
        connection.close(gone.code(), &gone.to_string());
    }
    result
}

async fn handshakes<C: Connection>(
    connection: Arc<C>,
    side: Side,
    introduction: &Message,
    shared: &Shared,
) -> Result<Session<C>, Gone> {
    let closed = |error: std::io::Error| ended(&*connection, &error.to_string());
    let (mut read, mut write) = connection
        .stream()
        .await
        .map_err(|reason| ended(&*connection, &reason))?;
    let said = shared.offered();
    let mut greeting = greeting(shared, &said);
    let introduced = matches!(
        (side, connection.peer()),
        (Side::Dialed, PeerAddr::Scion(_))
    );
    if introduced {
        // Nobody speaks this over SCION who does not know extended messages.
        encode(introduction, &mut greeting);
    }
    // Other programs may be surprised by more than a handshake before they answered: aria2 drops
    // who says more.
    let (first, rest) = match (side, connection.peer()) {
        (Side::Dialed, PeerAddr::Scion(_)) => (&greeting[..], &[][..]),
        (Side::Dialed, PeerAddr::Ip(_)) => greeting.split_at(HANDSHAKE_BYTES),
        (Side::Accepted, _) => (&[][..], &greeting[..]),
    };
    write.write_all(first).await.map_err(closed)?;
    let mut theirs = [0; HANDSHAKE_BYTES];
    read.read_exact(&mut theirs).await.map_err(closed)?;
    let theirs = match Handshake::decode(&theirs, shared.ours.info_hash) {
        Err(fault @ WireError::WrongInfoHash(_)) if side == Side::Accepted => {
            refuse(&mut read, &mut write, shared)
                .await
                .map_err(closed)?;
            return Err(fault.into());
        }
        theirs => theirs?,
    };
    if theirs.peer_id == shared.ours.peer_id {
        return Err(Gone::Ourselves);
    }
    write.write_all(rest).await.map_err(closed)?;
    Ok(Session {
        connection,
        extended: theirs.extended,
        introduced,
        said,
        read,
        write,
    })
}

/// Tells a peer that asks for another torrent that it is not here, and waits until it ends the
/// connection: what is closed at once may take back what was said.
async fn refuse(
    read: &mut (impl AsyncRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    shared: &Shared,
) -> std::io::Result<()> {
    write.write_all(&shared.ours.refusal().encode()).await?;
    write.flush().await?;
    let mut rest = [0; 1024];
    while read.read(&mut rest).await? > 0 {}
    Ok(())
}

/// Our handshake, what we have and whether we want something. Not yet that the peer may ask: that
/// depends on whether it leaves the choice of paths to us.
fn greeting(shared: &Shared, verified: &Bitfield) -> Vec<u8> {
    let mut out = shared.ours.encode().to_vec();
    if !verified.is_empty() {
        let bits = Bytes::copy_from_slice(verified.as_wire());
        encode(&Message::Bitfield(bits), &mut out);
    }
    if shared.fetches() {
        encode(&Message::Interested, &mut out);
    }
    out
}

/// The more telling of why the connection closed and what failed.
fn ended(connection: &impl Connection, otherwise: &str) -> Gone {
    let closed = connection.close_reason();
    Gone::Closed(closed.unwrap_or_else(|| Closed::plain(otherwise)))
}

/// Reads and writes until the connection ends or the peer breaks the protocol, then closes it.
/// `messages` are sent as they come, and dropping their sender ends it too; what the peer says goes
/// to `events`, wrapped.
pub(crate) async fn run<C: Connection, E: Send>(
    session: Session<C>,
    shared: Arc<Shared>,
    counts: Arc<Counts>,
    uploads: Arc<Uploads>,
    messages: mpsc::UnboundedReceiver<Outgoing>,
    events: mpsc::Sender<E>,
    wrap: impl Fn(Inputs) -> E + Send,
) -> Gone {
    let Session {
        connection,
        read,
        write,
        ..
    } = session;
    let gone = tokio::select! {
        gone = reader::run(read, &shared, &counts, &uploads, &events, wrap) => gone,
        gone = writer::run(write, &shared, &counts, &uploads, messages) => gone,
    };
    let gone = match gone {
        Gone::Closed(otherwise) => ended(&*connection, &otherwise.text),
        other => other,
    };
    connection.close(gone.code(), &gone.to_string());
    gone
}
