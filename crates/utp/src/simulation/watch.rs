//! What must be true of the packets of a network with one connection.

use crate::packet::{Packet, PacketKind};
use crate::sequence::{FIRST_EPOCH, expand};

/// What one host has sent, and may send.
#[derive(Debug, Default)]
struct Direction {
    /// The number of the first packet with content.
    first: Option<u64>,
    /// The content of each, and where it ends in the stream.
    packets: Vec<(Vec<u8>, u64)>,
    /// Up to where the peer has announced room, as far as the host has heard.
    room: u64,
}

/// The packets of a connection: none changes its content, and none exceeds the room of the peer but by one byte.
#[derive(Debug, Default)]
pub(super) struct Watch {
    directions: [Direction; 2],
}

impl Direction {
    fn number(&self, sequence: u16) -> u64 {
        let near = self.first.unwrap_or(FIRST_EPOCH) + self.packets.len() as u64;
        expand(near, sequence)
    }

    /// Where the stream ends with this packet.
    fn end(&self, number: u64) -> u64 {
        let first = self.first.unwrap_or(number + 1);
        let index = (number + 1)
            .checked_sub(first)
            .and_then(|it| it.checked_sub(1));
        index.map_or(0, |index| self.packets[index as usize].1)
    }
}

impl Watch {
    pub fn on_sent(&mut self, from: usize, datagram: &[u8]) {
        let packet = Packet::parse(datagram).unwrap();
        if !matches!(packet.header.kind, PacketKind::Data | PacketKind::Fin) {
            return;
        }
        let direction = &mut self.directions[from];
        let number = direction.number(packet.header.sequence);
        let first = *direction.first.get_or_insert(number);
        let index = (number - first) as usize;
        if let Some((content, _)) = direction.packets.get(index) {
            assert_eq!(content, packet.payload, "a packet changed");
            return;
        }
        assert_eq!(index, direction.packets.len(), "a number was left out");
        let begin = direction.packets.last().map_or(0, |(_, end)| *end);
        let end = begin + packet.payload.len() as u64;
        let probes = u64::from(packet.payload.len() == 1);
        assert!(end <= direction.room + probes, "{end} {}", direction.room);
        direction.packets.push((packet.payload.to_vec(), end));
    }

    pub fn on_received(&mut self, at: usize, datagram: &[u8]) {
        let packet = Packet::parse(datagram).unwrap();
        if packet.header.kind == PacketKind::Reset {
            return;
        }
        let direction = &mut self.directions[at];
        let acknowledged = match packet.header.kind {
            PacketKind::Syn => 0,
            _ => direction.end(direction.number(packet.header.acknowledged)),
        };
        let room = acknowledged + u64::from(packet.header.window);
        direction.room = direction.room.max(room);
    }
}
