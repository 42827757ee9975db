//! Receive buffers of the kernel, split into packets.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

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

    /// Puts packets together that arrive one by one: those of one sender and one size, as the kernel
    /// does. `receive` is called with a function that takes a packet, or returns `false` when there is
    /// no more room. Returns how many it says were received.
    pub(super) fn gather(
        &mut self,
        receive: impl FnOnce(&mut dyn FnMut(SocketAddr, &[u8]) -> bool) -> usize,
    ) -> usize {
        let Self {
            bytes,
            meta,
            pieces,
            next,
        } = self;
        *pieces = 0;
        *next = (0, 0);
        receive(&mut |from, packet| {
            let last = pieces.checked_sub(1).and_then(|last| meta.get_mut(last));
            let fits = |last: &RecvMeta| {
                // A shorter packet ends a piece.
                let whole = last.len.is_multiple_of(last.stride);
                let end = last.len + packet.len();
                last.addr == from && whole && packet.len() <= last.stride && end <= PIECE
            };
            // Not even a malformed packet is empty or larger than a piece.
            if packet.is_empty() || packet.len() > PIECE {
                return true;
            }
            let (piece, at) = match last.filter(|last| fits(last)) {
                Some(last) => {
                    let at = last.len;
                    last.len += packet.len();
                    (*pieces - 1, at)
                }
                None => {
                    let Some(free) = meta.get_mut(*pieces) else {
                        return false;
                    };
                    *free = RecvMeta::default();
                    (free.addr, free.len, free.stride) = (from, packet.len(), packet.len());
                    *pieces += 1;
                    (*pieces - 1, 0)
                }
            };
            let start = piece * PIECE + at;
            bytes[start..start + packet.len()].copy_from_slice(packet);
            true
        })
    }

    /// How many packets the last receive returned.
    pub(super) fn count(&self) -> usize {
        let count = |meta: &RecvMeta| meta.len.div_ceil(meta.stride.max(1));
        self.meta[..self.pieces].iter().map(count).sum()
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Packets that arrive one by one are there in order, with their senders, as long as there is
        /// room; those of one sender and size share a piece.
        #[test]
        fn packets_put_together_stay_what_they_are(
            runs in prop::collection::vec((1u16..4, 1usize..3000, 1usize..40), 1..12),
        ) {
            let mut buffer = ReceiveBuffer::default();
            let mut sent = Vec::new();
            for (port, size, count) in &runs {
                for _ in 0..*count {
                    let from = SocketAddr::from(([10, 0, 0, 1], *port));
                    sent.push((from, vec![sent.len() as u8; *size]));
                }
            }
            let taken = buffer.gather(|take| {
                sent.iter().take_while(|(from, packet)| take(*from, packet)).count()
            });
            prop_assert_eq!(buffer.count(), taken);
            prop_assert!(taken == sent.len() || buffer.pieces == PIECES);
            let pieces = buffer.meta[..buffer.pieces].iter().zip(buffer.bytes.chunks(PIECE));
            let received: Vec<_> = pieces
                .flat_map(|(meta, bytes)| {
                    let packets = bytes[..meta.len].chunks(meta.stride);
                    packets.map(|packet| (meta.addr, packet.to_vec()))
                })
                .collect();
            prop_assert_eq!(&received[..], &sent[..taken]);
            if runs.len() <= PIECES && runs.iter().all(|(_, size, count)| size * count <= PIECE) {
                prop_assert_eq!(taken, sent.len());
            }
        }
    }
}
