//! What a connection and the owner of the torrent pass to each other.

use bytes::Bytes;
use hawser_store::Reservation;

use crate::bitfield::Bitfield;
use crate::wire::{ExtendedHandshake, Multipath, Request};

/// A message of a peer that the owner of the torrent acts on.
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

/// What one read from the stream brought.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub inputs: Vec<Input>,
    /// Held until the blocks among them are on disk.
    pub room: Option<Reservation>,
}

/// What the owner sends to a peer, apart from blocks.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// Encoded messages.
    Messages(Vec<u8>),
    /// The end of the stream, after everything given before it.
    End,
}
