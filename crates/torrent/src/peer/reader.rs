//! Reading messages and judging them for the owner of the torrent.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hawser_magnet::MetadataMessage;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

use super::gone::Gone;
use super::shared::Shared;
use super::traffic::{Input, Inputs, Traffic, Uploads};
use crate::bitfield::Bitfield;
use crate::failed::why;
use crate::wire::{
    AddrKind, Decoder, EXTENDED_HANDSHAKE, Exchange, ExtendedHandshake, MULTIPATH, Message,
    Multipath, Request, SCION_PEX, UT_METADATA, UT_PEX, WireError,
};

/// Bytes read at a time: few on a connection with little traffic, so that a thousand idle ones cost
/// little; many blocks when more is waiting, so that the owner is woken once for all of them.
const READ: std::ops::RangeInclusive<usize> = 16 << 10..=256 << 10;

/// Most messages that the owner acts on, beside blocks, in [`PERIOD`], and as many more as there are pieces to
/// announce. Each costs the owner far more than its few bytes cost the peer.
const MAX_MESSAGES: u32 = 10_000;
const PERIOD: Duration = Duration::from_secs(10);

/// Counts the messages of a peer that are no blocks.
struct Messages {
    since: Instant,
    count: u32,
}

impl Messages {
    /// Counts one more.
    ///
    /// # Errors
    /// If there are too many.
    fn count(&mut self, pieces: u32, now: Instant) -> Result<(), WireError> {
        if now.saturating_duration_since(self.since) >= PERIOD {
            (self.since, self.count) = (now, 0);
        }
        self.count += 1;
        match self.count > MAX_MESSAGES.saturating_add(pieces) {
            true => Err(WireError::TooManyMessages(self.count)),
            false => Ok(()),
        }
    }
}

/// Reads until the stream ends, the peer breaks the protocol, or the receiver of `events` is
/// dropped. `key` is that of the peer.
pub(super) async fn run<E: Send>(
    mut stream: impl AsyncRead + Unpin,
    shared: &Shared,
    traffic: &Traffic,
    key: [u8; 32],
    events: &mpsc::Sender<E>,
    wrap: impl Fn(Inputs) -> E,
) -> Gone {
    let mut decoder = Decoder::new(shared.pieces.count());
    let mut room = *READ.start();
    let mut messages = Messages {
        since: Instant::now(),
        count: 0,
    };
    loop {
        let limit = &shared.rates.down;
        let most = match limit.is_limited() {
            true => *READ.start(),
            false => room,
        };
        let read = match stream.read_buf(decoder.buffer(most)).await {
            Ok(0) => return Gone::closed("the peer ended the connection"),
            Ok(read) => read,
            Err(error) => return Gone::closed(why(&error)),
        };
        if decoder.is_filled() {
            room = (room * 2).min(*READ.end());
        }
        traffic.received.fetch_add(read as u64, Ordering::Relaxed);
        let (mut inputs, now) = (Vec::new(), Instant::now());
        // Messages before a fault still count.
        let fault = loop {
            let message = match decoder.next_message() {
                Ok(None) => break None,
                Ok(Some(message)) => message,
                Err(fault) => break Some(fault),
            };
            match judge(message, shared, &traffic.uploads) {
                Ok(Some(input @ Input::Block { .. })) => inputs.push(input),
                Ok(None) => {}
                Ok(Some(input)) => match messages.count(shared.pieces.count(), now) {
                    Ok(()) => inputs.push(input),
                    Err(fault) => break Some(fault),
                },
                Err(fault) => break Some(fault),
            }
        };
        if !inputs.is_empty() {
            let blocks = inputs.iter().map(|input| match input {
                Input::Block { data, .. } => data.len(),
                _ => 0,
            });
            traffic.backlogged.store(true, Ordering::Relaxed);
            let room = match blocks.sum() {
                0 => None,
                bytes => {
                    if limit.is_limited() {
                        limit.acquire(key).await.spend(bytes as u64);
                    }
                    Some(shared.account.reserve(bytes).await)
                }
            };
            let sent = events.send(wrap(Inputs { inputs, room })).await;
            traffic.backlogged.store(false, Ordering::Relaxed);
            if sent.is_err() {
                return Gone::closed("the torrent was stopped");
            }
        }
        if let Some(fault) = fault {
            return Gone::Broke(fault);
        }
    }
}

/// The input for the owner; `None` if the message changes nothing or concerns only requests.
fn judge(message: Message, shared: &Shared, uploads: &Uploads) -> Result<Option<Input>, WireError> {
    let pieces = shared.pieces.count();
    let input = match message {
        Message::Port(port) if shared.has_dht_node() => Input::Port(port),
        Message::KeepAlive | Message::Port(_) => return Ok(None),
        Message::Hashes(named, hashes) => Input::Hashes(named, hashes),
        Message::HashReject(named) => Input::HashReject(named),
        Message::HashRequest(wanted) => Input::HashRequest(wanted),
        Message::Interested => Input::Interested,
        Message::NotInterested => Input::NotInterested,
        Message::Choke => Input::Choke,
        Message::Unchoke => Input::Unchoke,
        Message::Have(piece) if piece < pieces => Input::Have(piece),
        Message::Have(piece) => return Err(WireError::NoSuchPiece { piece, pieces }),
        // BEP 3 allows it right after the handshake only, but aria2 sends it instead of many
        // `have`, and other clients accept it at any time.
        Message::Bitfield(bits) => Input::Bitfield(
            Bitfield::from_wire(&bits, pieces).ok_or(WireError::BadBitfield { pieces })?,
        ),
        Message::Request(request) => {
            if !request.fits(shared.requestable(request.piece)) {
                return Err(WireError::BadRequest(request));
            }
            if !shared.offers(request.piece) {
                // It may have been offered before its file changed.
                if shared.content.get().is_some() {
                    return Ok(None);
                }
                return Err(WireError::RequestedMissing(request.piece));
            }
            uploads.push(request)?;
            return Ok(None);
        }
        Message::Cancel(request) => {
            uploads.cancel(request);
            return Ok(None);
        }
        Message::Piece { piece, begin, data } => {
            let request = Request {
                piece,
                begin,
                length: data.len() as u32,
            };
            // Nobody can have asked for it. Any other block may be a late or repeated answer.
            if !request.fits(shared.pieces.size(piece)) {
                return Err(WireError::OutOfRange(request));
            }
            Input::Block { request, data }
        }
        Message::Extended { id, payload } if id == EXTENDED_HANDSHAKE => {
            Input::Extended(ExtendedHandshake::decode(&payload)?)
        }
        Message::Extended { id, payload } if id == MULTIPATH => {
            match Multipath::decode(&payload)? {
                Some(message) => Input::Multipath(message),
                None => return Ok(None),
            }
        }
        Message::Extended { id, payload } if id == UT_PEX => {
            Input::Exchange(Exchange::decode(&payload, AddrKind::Ip)?)
        }
        Message::Extended { id, payload } if id == SCION_PEX => {
            Input::Exchange(Exchange::decode(&payload, AddrKind::Scion)?)
        }
        Message::Extended { id, payload } if id == UT_METADATA => {
            match MetadataMessage::parse(&payload).map_err(WireError::BadMetadata)? {
                Some(MetadataMessage::Request { piece }) => Input::MetadataRequest(piece),
                // Nothing was asked for.
                _ => return Ok(None),
            }
        }
        Message::Extended { .. } => return Ok(None),
    };
    Ok(Some(input))
}
