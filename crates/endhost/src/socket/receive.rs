//! Receive buffers of the kernel, split into packets.

use std::io::{self, IoSliceMut};

use noq_udp::RecvMeta;

use super::arrival::Arrival;
use super::reader::Reader;

/// Most bytes in one piece from the kernel.
const PIECE: usize = 65536;
/// Pieces received with one system call. More would only fill the caches.
const PIECES: usize = 8;

/// Room for the packets of one receive, reused by the next.
pub struct ReceiveBuffer {
    bytes: Box<[u8]>,
    meta: [RecvMeta; PIECES],
    pieces: usize,
    /// Where the next packet begins: piece, and offset in the piece.
    next: (usize, usize),
}

/// The packets of one receive that are for the socket; others are dropped and counted.
pub struct Packets<'a> {
    reader: &'a Reader,
    bytes: &'a [u8],
    meta: &'a [RecvMeta],
    next: &'a mut (usize, usize),
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        Self {
            bytes: vec![0; PIECES * PIECE].into(),
            meta: [RecvMeta::default(); PIECES],
            pieces: 0,
            next: (0, 0),
        }
    }
}

impl ReceiveBuffer {
    pub(super) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let mut pieces = self.bytes.chunks_exact_mut(PIECE);
        let mut bufs: [IoSliceMut<'_>; PIECES] =
            std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
        self.pieces = 0;
        self.next = (0, 0);
        self.pieces = receive(&mut bufs, &mut self.meta)?;
        Ok(())
    }

    /// The packets received and not yet taken, in order.
    pub(super) fn packets<'a>(&'a mut self, reader: &'a Reader) -> Packets<'a> {
        Packets {
            reader,
            bytes: &self.bytes,
            meta: &self.meta[..self.pieces],
            next: &mut self.next,
        }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Arrival<'a>;

    #[inline]
    fn next(&mut self) -> Option<Arrival<'a>> {
        loop {
            let (piece, at) = *self.next;
            let meta = self.meta.get(piece)?;
            let end = (at + meta.stride.max(1)).min(meta.len);
            *self.next = if end >= meta.len {
                (piece + 1, 0)
            } else {
                (piece, end)
            };
            let packet = &self.bytes[piece * PIECE + at..piece * PIECE + end];
            if let Some(arrival) = self.reader.accept(packet, meta.addr) {
                return Some(arrival);
            }
        }
    }
}
