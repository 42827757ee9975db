//! The exchange of handshakes on a new connection.

use std::sync::Arc;

use bytes::Bytes;
use hawser_address::PeerAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::gone::{Gone, HANDSHAKE_TIMEOUT};
use super::shared::Shared;
use crate::bitfield::Bitfield;
use crate::failed::why;
use crate::transport::{Connection, Stream};
use crate::wire::{HANDSHAKE_BYTES, Handshake, Message, PeerId, WireError, encode};

/// A connection after the handshake.
pub(crate) struct Session {
    pub connection: Arc<dyn Connection>,
    /// The id of the peer.
    pub peer_id: PeerId,
    /// Whether the peer understands extended messages.
    pub extended: bool,
    /// Whether both sides have a node of the DHT (BEP 5).
    pub dht: bool,
    /// Whether the peer understands messages about hashes (BEP 52).
    pub version_two: bool,
    /// Whether our extended handshake was sent with the first one.
    pub introduced: bool,
    /// Whether we told the peer that we are interested, before it told us what it has.
    pub interested: bool,
    /// The pieces in the bitfield that we sent.
    pub offered: Bitfield,
    pub(super) stream: Stream,
}

/// The side that opened a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// This side, which therefore sends its handshake first.
    Dialed,
    /// The peer.
    Accepted,
}

/// Exchanges handshakes. Our bitfield goes with ours, and so does our interest in SCION peers:
/// requests can follow their answer at once. When dialing a SCION peer, so does `introduction`, our
/// extended handshake: the peer then knows a round trip earlier whether to unchoke us.
///
/// # Errors
/// The reason if they fail; the connection is closed then.
pub(crate) async fn establish(
    connection: Arc<dyn Connection>,
    side: Side,
    introduction: &Message,
    shared: &Shared,
) -> Result<Session, Gone> {
    let handshakes = handshakes(Arc::clone(&connection), side, introduction, shared);
    let result = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshakes)
        .await
        .unwrap_or(Err(Gone::Silent));
    if let Err(gone) = &result {
        connection.close(gone.code(), &gone.to_string());
    }
    result
}

async fn handshakes(
    connection: Arc<dyn Connection>,
    side: Side,
    introduction: &Message,
    shared: &Shared,
) -> Result<Session, Gone> {
    let closed = |error: std::io::Error| Gone::of(&*connection, &why(&error));
    connection.set_torrents(Arc::clone(&shared.info_hashes));
    let (mut read, mut write) = connection
        .stream()
        .await
        .map_err(|reason| Gone::of(&*connection, &reason))?;
    let (ours, offered) = (shared.handshake(), shared.announced());
    // WebTorrent misses interest that comes before it has sent its bitfield, and then never
    // unchokes us. IP peers learn of it once they have said what they have.
    let interested = shared.fetches() && matches!(connection.peer(), PeerAddr::Scion(_));
    let mut greeting = greeting(&ours, &offered, interested);
    let introduced = matches!(
        (side, connection.peer()),
        (Side::Dialed, PeerAddr::Scion(_))
    );
    if introduced {
        // Every program that speaks BitTorrent over SCION understands extended messages.
        encode(introduction, &mut greeting);
    }
    // Some programs accept only a handshake before they have answered: aria2 drops peers that send
    // more.
    let (first, rest) = match (side, connection.peer()) {
        (Side::Dialed, PeerAddr::Scion(_)) => (&greeting[..], &[][..]),
        (Side::Dialed, PeerAddr::Ip(_)) => greeting.split_at(HANDSHAKE_BYTES),
        (Side::Accepted, _) => (&[][..], &greeting[HANDSHAKE_BYTES..]),
    };
    write.write_all(first).await.map_err(closed)?;
    write.flush().await.map_err(closed)?;
    let mut theirs = [0; HANDSHAKE_BYTES];
    read.read_exact(&mut theirs).await.map_err(closed)?;
    let theirs = match Handshake::decode(&theirs, &shared.info_hashes) {
        Err(fault @ WireError::WrongInfoHash(_)) if side == Side::Accepted => {
            let refusal = ours.refusal();
            let answered = answer_last(&mut read, &mut write, &refusal);
            answered.await.map_err(closed)?;
            return Err(fault.into());
        }
        theirs => theirs?,
    };
    if theirs.peer_id == ours.peer_id {
        if side == Side::Accepted {
            // The side that dialed learns from it that it has dialed itself.
            let answered = answer_last(&mut read, &mut write, &ours);
            answered.await.map_err(closed)?;
        }
        return Err(Gone::Ourselves);
    }
    connection.set_known();
    if side == Side::Accepted {
        // Of the info-hashes of a torrent, the answer has the one that was named.
        let answer = Handshake {
            info_hash: theirs.info_hash,
            ..ours
        };
        write.write_all(&answer.encode()).await.map_err(closed)?;
    }
    write.write_all(rest).await.map_err(closed)?;
    write.flush().await.map_err(closed)?;
    Ok(Session {
        connection,
        peer_id: theirs.peer_id,
        extended: theirs.extended,
        dht: theirs.dht && ours.dht,
        // The bit is for hybrids; libtorrent, which answers with the hash of version 2, does not set it then.
        version_two: theirs.version_two || shared.info_hashes.get(1) == Some(&theirs.info_hash),
        introduced,
        interested,
        offered,
        stream: (read, write),
    })
}

/// Answers a handshake after which the peer has no reason to stay, and waits until it ends the
/// connection: closing it at once might discard the answer.
async fn answer_last(
    read: &mut (impl AsyncRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    answer: &Handshake,
) -> std::io::Result<()> {
    write.write_all(&answer.encode()).await?;
    write.flush().await?;
    let mut rest = [0; 1024];
    while read.read(&mut rest).await? > 0 {}
    Ok(())
}

/// Our handshake, bitfield and, if `interested`, interest. The peer is not unchoked yet: that depends on whether it
/// leaves the choice of paths to us.
fn greeting(ours: &Handshake, verified: &Bitfield, interested: bool) -> Vec<u8> {
    let mut out = ours.encode().to_vec();
    if !verified.is_empty() {
        let bits = Bytes::copy_from_slice(verified.as_wire());
        encode(&Message::Bitfield(bits), &mut out);
    }
    if interested {
        encode(&Message::Interested, &mut out);
    }
    out
}
