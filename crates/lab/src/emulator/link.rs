//! One end of a link, for plain IP.

use std::io;
use std::time::Instant;

use hawser_emulation::{Emulator, max_batch};
use hawser_kernel::packet_socket::{Frames, HEADER, Receiver, Sender};
use hawser_topology::LinkState;

use super::frame::{packets, split};
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
            let lost = self.emulator.clear().map(|frames| count(&frames));
            self.counters.dropped += lost.sum::<u64>();
        }
    }

    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    pub fn counters(&mut self) -> io::Result<PlainIp> {
        self.counters.dropped += u64::from(self.receiver.dropped()?);
        Ok(self.counters)
    }

    /// Whether memory can be released.
    pub fn take_drained(&mut self) -> bool {
        self.emulator.take_drained()
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.emulator.next_due()
    }

    /// Receives packets that have arrived.
    pub fn receive(&mut self, frames: &mut Frames, sender: &Sender) -> io::Result<()> {
        match self.receiver.receive(frames) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.counters.dropped += 1;
                return Ok(());
            }
            received => received?,
        }
        for (arrival, frame) in frames.iter() {
            self.pass(arrival, frame, sender);
        }
        Ok(())
    }

    /// Loses packets of a frame, and holds or sends the others.
    fn pass(&mut self, arrival: Instant, frame: &[u8], sender: &Sender) {
        let kept = split(frame, self.batch, || self.emulator.loses());
        self.counters.lost += packets(frame) - count(&kept);
        if !self.emulator.delays() {
            return kept.iter().for_each(|frame| self.send(frame, sender));
        }
        if kept.is_empty() {
            return;
        }
        let bytes = kept.iter().map(Vec::len).sum();
        if let Err(refused) = self.emulator.hold(arrival, bytes, kept) {
            self.counters.dropped += count(&refused);
        }
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

/// The number of packets of frames.
fn count(frames: &[Vec<u8>]) -> u64 {
    frames.iter().map(|frame| packets(frame)).sum()
}
