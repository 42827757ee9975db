//! From bytes to what the owner of the torrent has to know.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

use super::{Counts, Gone, Input, Inputs, Shared, Uploads};
use crate::bitfield::Bitfield;
use crate::wire::{
    Decoder, EXTENDED_HANDSHAKE, ExtendedHandshake, MULTIPATH, Message, Multipath, Request,
    WireError,
};

/// Bytes read at a time: few while little comes, so that a thousand idle connections cost little;
/// many blocks when more is waiting, so that the owner is woken once for all of them.
const READ: std::ops::RangeInclusive<usize> = 16 << 10..=256 << 10;

/// Reads until the stream ends, the peer breaks the protocol, or nobody listens to `events`.
pub(super) async fn run<E: Send>(
    mut stream: impl AsyncRead + Unpin,
    shared: &Shared,
    counts: &Counts,
    uploads: &Uploads,
    events: &mpsc::Sender<E>,
    wrap: impl Fn(Inputs) -> E,
) -> Gone {
    let mut decoder = Decoder::new(shared.pieces.count());
    let mut room = *READ.start();
    loop {
        let read = match stream.read_buf(decoder.buffer(room)).await {
            Ok(0) => return Gone::closed("the peer ended the connection"),
            Ok(read) => read,
            Err(error) => return Gone::closed(error.to_string()),
        };
        if decoder.is_filled() {
            room = (room * 2).min(*READ.end());
        }
        counts.received.fetch_add(read as u64, Ordering::Relaxed);
        let mut inputs = Vec::new();
        let mut blocks = 0;
        let mut asked = false;
        // What came before a fault still counts.
        let fault = loop {
            let message = match decoder.next() {
                Ok(None) => break None,
                Ok(Some(message)) => message,
                Err(fault) => break Some(fault),
            };
            match judge(message, shared, uploads) {
                Ok(Heard::Tell(input)) => {
                    if let Input::Block { data, .. } = &input {
                        blocks += data.len();
                    }
                    inputs.push(input);
                }
                Ok(Heard::Asked) => asked = true,
                Ok(Heard::Nothing) => {}
                Err(fault) => break Some(fault),
            }
        };
        if asked {
            uploads.wake();
        }
        if !inputs.is_empty() {
            let room = match blocks {
                0 => None,
                bytes => Some(shared.account.reserve(bytes).await),
            };
            if events.send(wrap(Inputs { inputs, room })).await.is_err() {
                return Gone::closed("the torrent was stopped");
            }
        }
        if let Some(fault) = fault {
            return Gone::Broke(fault);
        }
    }
}

enum Heard {
    Tell(Input),
    Asked,
    Nothing,
}

fn judge(message: Message, shared: &Shared, uploads: &Uploads) -> Result<Heard, WireError> {
    let pieces = shared.pieces.count();
    let input = match message {
        Message::KeepAlive | Message::Interested | Message::NotInterested => {
            return Ok(Heard::Nothing);
        }
        Message::Choke => Input::Choke,
        Message::Unchoke => Input::Unchoke,
        Message::Have(piece) if piece < pieces => Input::Have(piece),
        Message::Have(piece) => return Err(WireError::NoSuchPiece { piece, pieces }),
        // BEP 3 has it right after the handshake only, but aria2 sends it in place of many `have`,
        // and others take it at any time.
        Message::Bitfield(bits) => Input::Bitfield(
            Bitfield::from_wire(&bits, pieces).ok_or(WireError::BadBitfield { pieces })?,
        ),
        Message::Request(request) => {
            check(request, shared.pieces.size(request.piece))?;
            let verified = shared.verified.read();
            if !verified
                .unwrap_or_else(PoisonError::into_inner)
                .has(request.piece)
            {
                // It was offered before the file changed.
                if shared.content.get().is_some() {
                    return Ok(Heard::Nothing);
                }
                return Err(WireError::RequestedMissing(request.piece));
            }
            uploads.push(request)?;
            return Ok(Heard::Asked);
        }
        Message::Cancel(request) => {
            uploads.cancel(request);
            return Ok(Heard::Nothing);
        }
        Message::Piece { piece, begin, data } => Input::Block {
            request: Request {
                piece,
                begin,
                length: data.len() as u32,
            },
            data,
        },
        Message::Extended { id, payload } if id == EXTENDED_HANDSHAKE => {
            Input::Extended(ExtendedHandshake::decode(&payload)?)
        }
        Message::Extended { id, payload } if id == MULTIPATH => {
            match Multipath::decode(&payload)? {
                Some(message) => Input::Multipath(message),
                None => return Ok(Heard::Nothing),
            }
        }
        Message::Extended { .. } => return Ok(Heard::Nothing),
    };
    Ok(Heard::Tell(input))
}

fn check(request: Request, size: u32) -> Result<(), WireError> {
    if request.fits(size) {
        return Ok(());
    }
    Err(WireError::BadRequest {
        piece: request.piece,
        begin: request.begin,
        length: request.length,
    })
}
