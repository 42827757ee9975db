//! One end of a link, for plain IP.

use std::io;
use std::time::Instant;

use hawser_emulation::{Emulator, max_batch};
use hawser_kernel::packet_socket::{Frames, HEADER, Receiver, Sender};
use hawser_topology::LinkState;

use super::frame::Layout;
use super::live::PlainIp;

/// Size of the buffer in bytes for packets that have not been received. They are received at once,
/// unless the processor is busy.
const BUFFER: usize = 8 << 20;

/// One end of a link.
pub(super) struct Link {
    receiver: Receiver,
    /// Number of the link's device.
    device: u32,
    up: bool,
    /// Maximum number of bytes of a frame of several packets.
    batch: usize,
    emulator: Emulator<Vec<Vec<u8>>>,
    counters: PlainIp,
}

impl Link {
    /// The link whose packets arrive at the device `held`, and are sent over the device with the
    /// number `device`.
    pub fn open(held: &str, device: u32, state: &LinkState, seed: u64) -> io::Result<Self> {
        let mut link = Self {
            receiver: Receiver::open(held, BUFFER)?,
            device,
            up: true,
            batch: usize::MAX,
            emulator: Emulator::new(state.shape, seed),
            counters: PlainIp::default(),
        };
        link.set(state);
        Ok(link)
    }

    /// Sets the state of the link. Packets in flight over a link that goes down are lost.
    pub fn set(&mut self, state: &LinkState) {
        self.up = state.up;
        self.emulator.set_shape(state.shape);
        self.batch = max_batch(state.shape.rate).unwrap_or(usize::MAX);
        if !state.up {
            let lost = self.emulator.clear().flatten();
            self.counters.dropped += lost.map(|frame| packets(&frame)).sum::<u64>();
        }
    }

    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    pub fn counters(&mut self) -> io::Result<PlainIp> {
        self.counters.dropped += u64::from(self.receiver.dropped()?);
        Ok(self.counters)
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.emulator.next_due()
    }

    /// Receives packets that have arrived.
    pub fn receive(&mut self, frames: &mut Frames, sender: &Sender) -> io::Result<()> {
        self.receiver.receive(frames)?;
        for (arrival, frame) in frames.iter() {
            self.pass(arrival, frame, sender);
        }
        Ok(())
    }

    /// Loses packets of a frame, and holds or sends the others.
    fn pass(&mut self, arrival: Instant, frame: &[u8], sender: &Sender) {
        let kept = self.kept(frame);
        if !self.emulator.delays() {
            return kept.iter().for_each(|frame| self.send(frame, sender));
        }
        if kept.is_empty() {
            return;
        }
        let bytes = kept.iter().map(Vec::len).sum();
        if let Err(refused) = self.emulator.hold(arrival, bytes, kept) {
            self.counters.dropped += refused.iter().map(|frame| packets(frame)).sum::<u64>();
        }
    }

    /// The packets of a frame that are not lost, in frames of at most what the link carries at once.
    fn kept(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let Some(layout) = Layout::of(frame) else {
            let lost = self.emulator.loses();
            self.counters.lost += u64::from(lost);
            return if lost {
                Vec::new()
            } else {
                vec![frame.to_vec()]
            };
        };
        let most = (self.batch / layout.packet_length()).max(1);
        if !self.emulator.is_lossy() && layout.packets <= most {
            return vec![frame.to_vec()];
        }
        let mut frames = Vec::new();
        let mut first = 0;
        for packet in 0..layout.packets {
            let lost = self.emulator.loses();
            self.counters.lost += u64::from(lost);
            if packet - first == most || lost {
                if first < packet {
                    frames.push(layout.cut(frame, first..packet));
                }
                first = packet + usize::from(lost);
            }
        }
        if first < layout.packets {
            frames.push(layout.cut(frame, first..layout.packets));
        }
        frames
    }

    /// Sends the packets that are due at `now`.
    pub fn send_due(&mut self, now: Instant, sender: &Sender) {
        while let Some(frames) = self.emulator.take_due(now) {
            for frame in frames {
                self.send(&frame, sender);
            }
        }
    }

    fn send(&mut self, frame: &[u8], sender: &Sender) {
        let count = packets(frame);
        if !self.up {
            self.counters.dropped += count;
            return;
        }
        match sender.send(self.device, frame) {
            Ok(()) => {
                self.counters.packets += count;
                self.counters.bytes += (frame.len() - HEADER) as u64;
            }
            Err(error) => {
                tracing::trace!(%error, "cannot send");
                self.counters.dropped += count;
            }
        }
    }
}

/// The number of packets of a frame.
fn packets(frame: &[u8]) -> u64 {
    Layout::of(frame).map_or(1, |layout| layout.packets as u64)
}
